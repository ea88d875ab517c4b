"""Texts: counts and hashes of the words of a page's blocks, all at once, in any script."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

MAX_CHARS = 4096
"""Of longer texts the rest is not read: their kind is clear by then."""

_WORDS_OF_BLOCK = 12  # a short block is known by its words ("Related posts"), a long one by its shape


@dataclass(frozen=True)
class Ragged:
    """Lists of hashes, one for each row, end to end: row i has ids[offsets[i]:offsets[i + 1]]."""

    ids: npt.NDArray[np.uint32]
    offsets: Integers


OTHER, SPACE, LETTER, CAPITAL, DIGIT, SYLLABLE, MARK, STOP, START = range(9)
"""Kinds of characters; START is no kind but the first character of a word."""


@lru_cache(maxsize=1)
def _kinds() -> npt.NDArray[np.uint8]:
    """Sort the characters of the basic plane into kinds; a syllable is one whose script sets no blanks."""
    kinds = np.full(0x10000, OTHER, np.uint8)
    for code in range(0x10000):
        category = unicodedata.category(chr(code))
        if category == "Lu":
            kinds[code] = CAPITAL
        elif category[0] in "LM":
            kinds[code] = LETTER
        elif category == "Nd":
            kinds[code] = DIGIT
        elif category[0] in "PS":
            kinds[code] = MARK
        elif category[0] in "ZC":
            kinds[code] = SPACE
    kinds[0x3040:0x3100] = kinds[0x3400:0xA000] = kinds[0xF900:0xFB00] = SYLLABLE
    kinds[0x0E01:0x0E5B] = SYLLABLE
    kinds[[ord(mark) for mark in "。！？、，；：…।؟،"]] = STOP
    return kinds


_MULTIPLIERS = np.array([pow(0x9E3779B97F4A7C15, power, 1 << 64) for power in range(1, 33)], np.uint64)
_ENDING = np.array([ord(mark) for mark in ".!?;:,"])


class Texts:
    """The texts of a page in one array of characters, each read up to a length; the last one is the title's."""

    def __init__(self, codes: npt.NDArray[np.uint32], starts: Integers) -> None:
        self._codes = codes
        self._starts = starts
        self._kinds = _kinds()[np.minimum(codes, 0xFFFF)]
        self._letters = (self._kinds >= LETTER) & (self._kinds <= SYLLABLE)
        before = np.concatenate([[False], self._letters[:-1]])
        syllable = self._kinds == SYLLABLE
        self._begin = self._letters & (~before | syllable | np.concatenate([[False], syllable[:-1]]))
        self._hashes, self._first = self._hash()

    @classmethod
    def of(cls, texts: Sequence[str]) -> Texts:
        cut = [text[:MAX_CHARS] for text in texts]
        codes = np.frombuffer("\n".join([*cut, ""]).encode("utf-32-le", "replace"), np.uint32)
        return cls(codes, np.concatenate([[0], np.cumsum([len(text) + 1 for text in cut])[:-1]]))

    def _added(self, values: npt.NDArray[np.bool_]) -> Floats:
        return np.add.reduceat(values, self._starts, dtype=np.float64)[:-1]

    def count(self, kind: int) -> Floats:
        """Count the characters of a kind in each text; of the kind START, the beginnings of words."""
        return self._added(self._begin if kind == START else self._kinds == kind)

    def sentences(self) -> Floats:
        """Count what ends a sentence or a part of one."""
        ending = np.isin(self._codes, _ENDING)
        ending[:-1] &= self._kinds[1:] == SPACE
        return self._added(ending | (self._kinds == STOP))

    def _hash(self) -> tuple[npt.NDArray[np.uint32], Integers]:
        """Hash every word, without case and with digits alike: (hashes, number of each text's first word)."""
        begins = np.flatnonzero(self._begin)
        first = np.searchsorted(begins, self._starts)
        if not len(begins):
            return np.zeros(0, np.uint32), first
        inside = np.flatnonzero(self._letters)
        word = np.cumsum(self._begin)[inside] - 1
        place = np.minimum(inside - begins[word], len(_MULTIPLIERS) - 1)
        codes = self._codes[inside].astype(np.uint64)
        kinds = self._kinds[inside]
        codes = np.where(kinds == DIGIT, np.uint64(48), codes)
        codes = np.where((kinds == CAPITAL) & (codes < 0x500), _lower(codes), codes)
        mixed = (codes + np.uint64(1)) * _MULTIPLIERS[place]
        added = np.add.reduceat(mixed, np.searchsorted(inside, begins))
        return (added >> np.uint64(32)).astype(np.uint32), first

    def words(self) -> Ragged:
        """List the hashes of each text's first words, and of neighbours among them."""
        first, ends = self._first[:-1], self._first[1:]
        lengths = np.minimum(ends - first, _WORDS_OF_BLOCK)
        pairs = np.maximum(lengths - 1, 0)
        single = _ranges(first, lengths)
        double = _ranges(first, pairs)
        hashes = self._hashes
        mixed = hashes[double] * np.uint32(31) + hashes[double + 1] * np.uint32(0x85EBCA6B)
        owner = np.concatenate([np.repeat(np.arange(len(first)), lengths), np.repeat(np.arange(len(first)), pairs)])
        ids = np.concatenate([hashes[single], mixed])[np.argsort(owner, kind="stable")]
        return Ragged(ids, np.concatenate([[0], np.cumsum(lengths + pairs)]))

    def of_title(self) -> Floats:
        """Measure how many of each text's words stand in the title too, as a share."""
        hashes = self._hashes
        start = self._first[-1]
        known = np.concatenate([[0], np.cumsum(np.isin(hashes[:start], hashes[start:]))])
        words = np.diff(self._first)
        share: Floats = np.diff(known[self._first]) / np.maximum(words, 1)
        return share


def _lower(codes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    return _lower_table()[np.minimum(codes, 0x4FF).astype(np.int64)]


@lru_cache(maxsize=1)
def _lower_table() -> npt.NDArray[np.uint64]:
    lowered = [chr(code).lower() for code in range(0x500)]
    return np.array([ord(text) if len(text) == 1 else code for code, text in enumerate(lowered)], np.uint64)


def _ranges(starts: Integers, lengths: Integers) -> Integers:
    """Return starts[0], starts[0] + 1, … lengths[0] of them, then those of the next."""
    ends = np.cumsum(lengths)
    places: Integers = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - lengths), lengths)
    return places
