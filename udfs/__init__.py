"""What happens to a page, then to a batch of pages."""
