"""MinHash over tag paths: a page's signature, and the similarity of two."""

from __future__ import annotations

import zlib

import numpy as np
from lxml.html import HtmlElement

SKETCH_SIZE = 256
"""Smallest hashes that a sketch keeps. A page has about 70 different tag paths, so most sketches hold the whole set;
of larger sets they are a uniform sample, and the error of a similarity is below 1 / sqrt(256) = 0.06."""

_IGNORED = frozenset({"head", "script", "style", "template", "noscript", "link", "meta"})
_MIX = np.uint64(0x9E3779B97F4A7C15)


def tag_paths(root: HtmlElement) -> set[int]:
    """Return the CRC-32 of each different tag path below the root; attributes and repetition don't count."""
    paths: set[int] = set()
    stack = [(root, 0)]
    while stack:
        element, path = stack.pop()
        for child in element:
            tag = child.tag
            if tag not in _IGNORED:
                below = zlib.crc32(tag.encode(), path)
                paths.add(below)
                if len(child):
                    stack.append((child, below))
    return paths


def sketch(root: HtmlElement) -> bytes:
    """Return the bottom-k sketch of a page's tag paths: its smallest hashes, sorted, as little-endian uint32.

    A MinHash with one hash function and k minima (Cohen 1997; Broder 1997). Unlike k functions with one minimum
    each, its values are elements of the set, so that paths that every page of the host has can be taken out later.
    """
    return pack(tag_paths(root))


def pack(paths: set[int]) -> bytes:
    """Return the sketch of a set of CRC-32 values; CRC-32 is not uniform on like strings, so they are mixed first."""
    values = np.fromiter(paths, dtype=np.uint64, count=len(paths))
    mixed = np.unique(((values + np.uint64(1)) * _MIX) >> np.uint64(32))
    return mixed[:SKETCH_SIZE].astype("<u4").tobytes()


def unpack(sketch: bytes) -> frozenset[int]:
    """Return the hashes of a sketch."""
    return frozenset(np.frombuffer(sketch, dtype="<u4").tolist())


def similarity(one: frozenset[int], other: frozenset[int]) -> float:
    """Return the Jaccard similarity of two sets of hashes; two empty sets are alike."""
    both = len(one & other)
    either = len(one) + len(other) - both
    return both / either if either else 1.0
