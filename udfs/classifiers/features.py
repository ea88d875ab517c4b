"""Features: what markup and text say about each block of a page, as arrays. No language and no site is known here."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from lxml.html import HtmlElement

from udfs.blocks import Block, segment
from udfs.classifiers.texts import CAPITAL, DIGIT, MARK, MAX_CHARS, START, Floats, Integers, Ragged, Texts

Columns = dict[str, Floats]

LEVELS = 4
"""Elements around a block that are measured: its container, what holds that, and so on."""

_ATTRIBUTE_CHARS = 200  # class lists of utility frameworks: what names the part comes first
_CAMEL = re.compile(r"([a-z])([A-Z])")
_NOT_LETTERS = re.compile(r"[^a-z]+")
_HIDING = re.compile(r"(?<![\w-])(?:display\s*:\s*none|visibility\s*:\s*hidden)")


@dataclass(frozen=True)
class Features:
    """A page's n blocks and the m elements that hold them (each with its blocks start..end, parents first).

    numbers: n x the columns of `NUMBERS`. words: hashes of each block's first words and pairs of them.
    marks: hashes of each element's tag, role, class and id words. chars: text length of each block. same: the first
    block that has its text. within: the element of each block. around: LEVELS x n, the elements around it from the
    inside: the parent (of a cell, the table part), its parent, and so on up to the root.
    """

    blocks: list[Block]
    numbers: npt.NDArray[np.float32]
    words: Ragged
    marks: Ragged
    chars: Floats
    same: Integers
    within: Integers
    around: Integers
    elements: list[HtmlElement]
    parents: Integers
    starts: Integers
    ends: Integers

    def without_tree(self) -> Features:
        """Return the arrays alone, for keeping."""
        return replace(self, blocks=[], elements=[])


def features(root: HtmlElement) -> Features | None:
    """Measure every block of a page; None where the page has no text."""
    blocks = list(segment(root))
    if not blocks:
        return None
    elements, parents, starts, ends, within = _tree(blocks)
    texts = [" ".join(block.text.split()) for block in blocks]
    title = " ".join(" ".join(node.itertext()) for node in root.iter("title"))[:300]
    text = Texts.of([*texts, " ".join(title.split())])
    chars = np.array([len(text) for text in texts], np.float64)
    raw = np.array([len(block.text) for block in blocks], np.float64)
    links = chars * np.minimum(1.0, np.array([block.link_chars for block in blocks], np.float64) / raw)
    cells = np.array([block.element.tag in ("td", "th") for block in blocks])
    around = [np.maximum(parents[np.where(cells, np.maximum(parents[within], 0), within)], 0)]
    while len(around) < LEVELS:
        around.append(np.maximum(parents[around[-1]], 0))
    keys, marks = _marks(elements)
    tags = np.array([element.tag for element in elements])
    total, linked = sums(chars, starts, ends), sums(links, starts, ends)
    plain = np.maximum(total - linked, 0)  # sums of many blocks may be off by a little
    first: dict[str, int] = {}
    same = np.array([first.setdefault(own, number) for number, own in enumerate(texts)])
    columns = _own(chars, links, text, same)
    columns |= _place(blocks, chars, keys[within] + len(keys) * keys[around[0]])
    columns |= _outside(tags, within, chars - links, starts, ends)
    alike = _alike(parents, keys)
    for level, at in enumerate(around):
        columns |= {
            f"link_share_{level}": (linked / total)[at],
            f"length_{level}": _log(plain[at]),
            f"part_{level}": total[at] / total[0],
            f"blocks_{level}": _log((ends - starts)[at]),
            f"mean_{level}": _log(plain[at] / (ends - starts)[at]),
            f"alike_{level}": _log(alike[at]),
        }
    columns["alike"] = _log(alike[within])
    columns |= {
        "page_link_share": np.full(len(blocks), linked[0] / total[0]),
        "page_length": _log(total[:1])[within * 0],
    }
    numbers = np.column_stack([columns[name] for name in NUMBERS]).astype(np.float32)
    stacked = np.array(around)
    return Features(blocks, numbers, text.words(), marks, chars, same, within, stacked, elements, parents, starts, ends)


_OWN = ("link_share", "length", "sentences", "digits", "capitals", "marks", "word_length", "title_words", "repeats")
_PLACE = ("position", "first", "last", "index", "from_end", "before_h1", "after_h1", "no_h1", "depth_alike")
_PAGE = ("in_main", "in_article", "main_part", "article_part", "alike", "page_link_share", "page_length")
_LEVEL = ("link_share", "length", "part", "blocks", "mean", "alike")
GROUPS = {
    "text": _OWN,
    "place": _PLACE,
    "page": _PAGE,
    "around": tuple(f"{name}_{level}" for level in range(LEVELS) for name in _LEVEL),
}
"""The columns of `Features.numbers` by what they measure: a block's text, its place, the page, the elements around."""
NUMBERS = tuple(name for group in GROUPS.values() for name in group)
"""The columns of `Features.numbers`: each about 0..1, without units."""
COLUMNS = {name: slice(NUMBERS.index(own[0]), NUMBERS.index(own[-1]) + 1) for name, own in GROUPS.items()}
"""Where each group stands among them."""


def _log(values: Floats | Integers) -> Floats:
    result: Floats = np.log2(1 + values) / 10
    return result


def _own(chars: Floats, links: Floats, text: Texts, same: Integers) -> Columns:
    """What a block's text is like."""
    read = np.minimum(chars, MAX_CHARS)
    words = text.count(START)
    return {
        "link_share": links / chars,
        "length": _log(chars),
        "sentences": np.minimum(text.sentences() * (chars / read), 6) / 6,
        "digits": text.count(DIGIT) / read,
        "capitals": text.count(CAPITAL) / read,
        "marks": text.count(MARK) / read,
        "word_length": np.minimum(read / np.maximum(words, 1), 20) / 20,
        "title_words": text.of_title(),
        "repeats": np.log2(np.bincount(same)[same]) / 5,
    }


def _place(blocks: Sequence[Block], chars: Floats, keys: Integers) -> Columns:
    """Where a block stands on the page."""
    n = len(blocks)
    order = np.arange(n)
    position = (np.cumsum(chars) - chars / 2) / chars.sum()
    headings = [number for number, block in enumerate(blocks) if block.element.tag == "h1"]
    first = headings[0] if headings else 0
    _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return {
        "position": position,
        "first": np.maximum(0, 1 - position * 20),
        "last": np.maximum(0, 1 - (1 - position) * 20),
        "index": _log(order),
        "from_end": _log(n - 1 - order),
        "before_h1": (order < first).astype(np.float64),
        "after_h1": np.maximum(0, 1 - np.abs(order - first) / 10) if headings else np.zeros(n),
        "no_h1": np.full(n, float(not headings)),
        "depth_alike": _log(counts[inverse]),
    }


def _outside(tags: npt.NDArray[np.str_], within: Integers, plain: Floats, starts: Integers, ends: Integers) -> Columns:
    """Whether the page declares its main part, how much that holds, and whether a block stands in it."""
    columns: Columns = {}
    every = plain.sum() + 1e-9
    for name in ("main", "article"):
        depth = np.zeros(len(within) + 1)
        found = np.flatnonzero(tags == name)
        np.add.at(depth, starts[found], 1)
        np.add.at(depth, ends[found], -1)
        inside = np.cumsum(depth)[:-1] > 0
        columns[f"in_{name}"] = inside.astype(np.float64)
        columns[f"{name}_part"] = np.full(len(within), plain[inside].sum() / every)
    return columns


def _alike(parents: Integers, keys: Integers) -> Integers:
    """Count the siblings of each element that have the same tag, class and id words, itself included."""
    _, inverse, counts = np.unique((parents + 1) * (keys.max() + 1) + keys, return_inverse=True, return_counts=True)
    alike: Integers = counts[inverse]
    return alike


def _tree(blocks: Sequence[Block]) -> tuple[list[HtmlElement], Integers, Integers, Integers, Integers]:
    """List the elements around blocks: (elements, parents, starts, ends, index of each block's element)."""
    index: dict[HtmlElement, int] = {}
    elements: list[HtmlElement] = []
    parents: list[int] = []
    starts: list[int] = []
    within: list[int] = []
    for number, block in enumerate(blocks):
        chain = []
        node: HtmlElement | None = block.element
        while node is not None and node not in index:
            chain.append(node)
            node = node.getparent()
        parent = -1 if node is None else index[node]
        for element in reversed(chain):
            index[element] = len(elements)
            elements.append(element)
            parents.append(parent)
            starts.append(number)
            parent = index[element]
        within.append(parent)
    ends = [0] * len(elements)
    for number, at in enumerate(within):
        ends[at] = number + 1
    for at in range(len(elements) - 1, 0, -1):
        ends[parents[at]] = max(ends[parents[at]], ends[at])
    return elements, np.array(parents), np.array(starts), np.array(ends), np.array(within)


def sums(values: Floats, starts: Integers, ends: Integers) -> Floats:
    """Add up the values of each element's blocks."""
    running = np.concatenate([[0.0], np.cumsum(values)])
    added: Floats = running[ends] - running[starts]
    return added


def _marks(elements: Sequence[HtmlElement]) -> tuple[Integers, Ragged]:
    """Hash what the elements are called: (a number for each different name, the hashes)."""
    numbers: dict[tuple[int, ...], int] = {}
    hashes = [_hashes(element) for element in elements]
    keys = np.array([numbers.setdefault(own, len(numbers)) for own in hashes])
    offsets = np.concatenate([[0], np.cumsum([len(own) for own in hashes])])
    ids = np.fromiter((value for own in hashes for value in own), np.uint32, int(offsets[-1]))
    return keys, Ragged(ids, offsets)


def _hashes(element: HtmlElement) -> tuple[int, ...]:
    tag = element.tag
    named = role = other = ""
    for name, value in element.items():
        if name == "class" or name == "id":
            if tag != "body" and tag != "html":  # theirs speak of the page, not of a part
                named += f" {name} {value[:_ATTRIBUTE_CHARS]}"
        elif name == "role" or name == "itemprop":
            role += f" {name}={value[:40]}"
        elif name == "hidden" or (name == "style" and _HIDING.search(value)):
            other = " hidden"
    return _named(tag, named, role + other)


@lru_cache(maxsize=65536)
def _named(tag: str, named: str, other: str) -> tuple[int, ...]:
    tokens = {f"<{tag}"}
    tokens.update(other.split())
    for value in named.split():
        words = _NOT_LETTERS.sub(" ", _CAMEL.sub(r"\1 \2", value).lower()).split()
        tokens.update(word for word in words if len(word) > 1)
        if len(words) > 1:
            tokens.add("-".join(words))
    return tuple(sorted(zlib.crc32(token.encode()) for token in tokens - {"class", "id"}))
