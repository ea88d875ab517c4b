"""Metrics: how far two texts have the same words."""

from __future__ import annotations

import re
from collections import Counter

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W_]+")


def words(text: str) -> list[str]:
    """List the words of a text in lower case; each character of Chinese and Japanese is a word."""
    return _WORD.findall(text.lower())


def token_f1(one: str, other: str) -> float:
    """Return the F1 of two texts as multisets of words; two texts without words agree."""
    mine, theirs = Counter(words(one)), Counter(words(other))
    total = mine.total() + theirs.total()
    return 2 * (mine & theirs).total() / total if total else 1.0
