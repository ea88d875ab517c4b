"""The published models' own view of a page: simplified HTML, map HTML, and the way back."""
