"""The network of the embedded classifier, in numpy: features of a page → main probability of each block.

Embeddings of hashed tokens stand for what the text says and what the elements around it are called. Layers then mix
each block with its neighbours in reading order, with the means of the elements around it, and with the page's mean.
`udfs.training.learning` has the same network in torch; a test compares the two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from udfs.classifiers.features import NUMBERS, Features
from udfs.classifiers.texts import Ragged

Array = npt.NDArray[np.float32]

NEAR = 3
"""Elements above a block's own that are summed up as near; all above them are far."""

POOLED = (0, 1, 3)
"""Levels of `Features.around` over whose blocks a layer averages."""

EPSILON = 1e-6
"""Keeps the length of a vector of zeros from being divided by."""


@dataclass(frozen=True)
class _Pool:
    """The different elements that stand around the blocks at one level, and which of them each block has."""

    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]

    @classmethod
    def of(cls, page: Features, around: npt.NDArray[np.int64]) -> _Pool:
        elements, places = np.unique(around, return_inverse=True)
        return cls(page.starts[elements], page.ends[elements], places)

    def means(self, running: npt.NDArray[np.float64]) -> Array:
        means: Array = (running[self.ends] - running[self.starts]) / (self.ends - self.starts)[:, None]
        return means.astype(np.float32)


@dataclass(frozen=True)
class Network:
    """Weights by name, as `udfs.training.learning.Network` saves them.

    `marks.known`, `words.known`: sorted hashes; row i of `marks.rows`, `words.rows` is the embedding of the i-th.
    `mean`, `scale`: of the numbers. `input.*`, `mix.N.*`, `back.N.*`, `output.*`: linear maps, weight (out x in), bias.
    """

    tensors: Mapping[str, npt.NDArray[Any]]
    layers: int

    @classmethod
    def of(cls, tensors: Mapping[str, npt.NDArray[Any]]) -> Network:
        """Make the network from stored tensors, whose floats may be of half precision.

        Raises ValueError where they were trained on other features than `features` measures.
        """
        measured = tensors["mean"].size if "mean" in tensors else 0
        if measured != len(NUMBERS):
            raise ValueError(f"weights for {measured} features a block, not {len(NUMBERS)}: train them again")
        ready = {
            name: tensor.astype(np.float32) if tensor.dtype.kind == "f" else tensor for name, tensor in tensors.items()
        }
        return cls(ready, sum(name.startswith("mix.") and name.endswith(".weight") for name in ready))

    def probabilities(self, page: Features) -> npt.NDArray[np.float64]:
        """Compute the main probability of each block, 0..1."""
        hidden = _norm(np.maximum(self._linear("input", self._inputs(page)), 0))
        pools = [_Pool.of(page, page.around[level]) for level in POOLED]
        for layer in range(self.layers):
            mixed = np.maximum(self._mix(layer, hidden, pools), 0)
            hidden = _norm(hidden + self._linear(f"back.{layer}", mixed))
        odds = self._linear("output", hidden)[:, 0].astype(np.float64)
        result: npt.NDArray[np.float64] = 1 / (1 + np.exp(-odds))
        return result

    def _inputs(self, page: Features) -> Array:
        numbers = (page.numbers - self.tensors["mean"]) / self.tensors["scale"]
        own, near, far = _above(self._bags("marks", page.marks), page.parents, page.within)
        words = self._bags("words", page.words)
        return np.concatenate([numbers, own, near, far, words], axis=1, dtype=np.float32)

    def _mix(self, layer: int, hidden: Array, pools: Sequence[_Pool]) -> Array:
        """Map each block, its neighbours at a distance, the means around it and the page's mean; add it all up.

        A part at a time: what many blocks share is mapped once.
        """
        weight = self.tensors[f"mix.{layer}.weight"].T
        own, before, after, *around, whole = np.split(weight, len(weight) // hidden.shape[1])
        distance = 2**layer
        result: Array = hidden @ own + (hidden.mean(axis=0) @ whole + self.tensors[f"mix.{layer}.bias"])
        result[distance:] += hidden[:-distance] @ before
        result[:-distance] += hidden[distance:] @ after
        running = np.concatenate([np.zeros((1, hidden.shape[1])), np.cumsum(hidden, axis=0, dtype=np.float64)])
        for pool, part in zip(pools, around, strict=True):
            result += (pool.means(running) @ part)[pool.places]
        return result

    def _linear(self, name: str, values: Array) -> Array:
        result: Array = values @ self.tensors[f"{name}.weight"].T + self.tensors[f"{name}.bias"]
        return result

    def _bags(self, name: str, tokens: Ragged) -> Array:
        """Add up the embeddings of each row's known tokens, over the root of their number."""
        known = self.tensors[f"{name}.known"]
        rows = self.tensors[f"{name}.rows"]
        at = np.minimum(np.searchsorted(known, tokens.ids), len(known) - 1)
        is_known = known[at] == tokens.ids
        offsets = np.concatenate([[0], np.cumsum(is_known)])[tokens.offsets]
        counts = np.diff(offsets)
        bags = np.zeros((len(counts), rows.shape[1]), np.float32)
        if offsets[-1]:
            filled = counts > 0
            bags[filled] = np.add.reduceat(rows[at[is_known]], offsets[:-1][filled])
            bags[filled] /= np.sqrt(counts[filled, None], dtype=np.float32)
        return bags


def _above(marks: Array, parents: npt.NDArray[np.int64], within: npt.NDArray[np.int64]) -> tuple[Array, Array, Array]:
    """Sum up the marks of each block's element, of NEAR above it, and of all others above."""
    nothing = len(marks)  # the row above the root
    marks = np.concatenate([marks, np.zeros((1, marks.shape[1]), np.float32)])
    up = np.append(np.where(parents < 0, nothing, parents), nothing)
    near = np.zeros((len(within), marks.shape[1]), np.float32)
    at = within
    for _ in range(NEAR):
        at = up[at]
        near += marks[at]
    total, jump = marks, up
    while (jump != nothing).any():  # after k rounds, sums over 2 ** k elements
        total = total + total[jump]
        jump = jump[jump]
    far = total[up[at]]
    return marks[within], near / np.float32(math.sqrt(NEAR)), far / np.float32(NEAR)


def _norm(hidden: Array) -> Array:
    result: Array = hidden / np.sqrt(np.mean(hidden * hidden, axis=1, keepdims=True) + np.float32(EPSILON))
    return result
