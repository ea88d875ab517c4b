"""From main HTML to the content list, and from that to Markdown."""
