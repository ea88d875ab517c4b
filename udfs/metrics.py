"""Metrics: how far two texts have the same words, in the same order, and hold given snippets."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")

ROUGE_WORDS = 5
"""Words of a gram of ROUGE-5, the length that WebMainBench reports."""

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W_]+")


@dataclass(frozen=True)
class Overlap:
    """How far two multisets agree, each figure in 0..1.

    precision: share of what was found that was wanted. recall: share of what was wanted that was found. f1: their
    harmonic mean.
    """

    precision: float
    recall: float
    f1: float


@dataclass(frozen=True)
class PageScore:
    """What an extracted text is worth beside the true one.

    tokens: of the multisets of words. rouge: of their grams of `ROUGE_WORDS` words. found, wanted: numbers of words.
    """

    tokens: Overlap
    rouge: Overlap
    found: int
    wanted: int


def words(text: str) -> list[str]:
    """List the words of a text in lower case; each character of Chinese and Japanese is a word."""
    return _WORD.findall(text.lower())


def token_f1(one: str, other: str) -> float:
    """Return the F1 of two texts as multisets of words; two texts without words agree."""
    return overlap(Counter(words(one)), Counter(words(other))).f1


def overlap(found: Counter[Item], wanted: Counter[Item]) -> Overlap:
    """Compare two multisets; two empty ones agree, an empty one agrees with no other."""
    sizes = found.total(), wanted.total()
    if not all(sizes):
        same = float(sizes == (0, 0))
        return Overlap(same, same, same)
    small, large = sorted((found, wanted), key=len)
    common = sum(min(count, large.get(key, 0)) for key, count in small.items())
    return Overlap(common / sizes[0], common / sizes[1], 2 * common / sum(sizes))


def grams(of: Sequence[str], size: int = ROUGE_WORDS) -> Counter[tuple[str, ...]]:
    """Count the runs of `size` words; fewer words than that, but not none, are one run."""
    if not of:
        return Counter()
    return Counter(zip(*(islice(of, start, None) for start in range(min(size, len(of)))), strict=False))


def score(found: str, wanted: str) -> PageScore:
    """Score an extracted text by the true one, as token F1 and ROUGE-5.

    ROUGE-N is precision and recall of the grams of N words (Lin, "ROUGE: A Package for Automatic Evaluation of
    Summaries", 2004). WebMainBench takes N = 5 over the tokens of jieba, white space and punctuation among them. Here
    tokens are `words`, which need no dictionary and do not depend on markup; figures of the two must not be mixed.
    A text of fewer than five words is one gram, so that short texts can agree.
    """
    ours, theirs = words(found), words(wanted)
    tokens = overlap(Counter(ours), Counter(theirs))
    return PageScore(tokens, overlap(grams(ours), grams(theirs)), len(ours), len(theirs))


def snippets_passed(text: str, present: Sequence[str], absent: Sequence[str]) -> float | None:
    """Return the share of snippets that a text holds (`present`) or lacks (`absent`), None where there are none.

    Compared as words with single blanks, so that punctuation and white space do not count.
    """
    if not present and not absent:
        return None
    folded = " ".join(words(text))
    passed = sum(" ".join(words(snippet)) in folded for snippet in present)
    passed += sum(" ".join(words(snippet)) not in folded for snippet in absent)
    return passed / (len(present) + len(absent))
