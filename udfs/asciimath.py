"""AsciiMath as LaTeX."""

from __future__ import annotations


def latex(source: str) -> str:
    """Return the LaTeX of an AsciiMath formula."""
    return source.strip()
