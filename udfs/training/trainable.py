"""The network of `udfs.classifiers.network` in torch, to be trained: over the blocks of several pages at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from udfs.classifiers.network import EPSILON, NEAR, POOLED
from udfs.classifiers.texts import Ragged
from udfs.training.examples import Example

Tensors = dict[str, npt.NDArray[np.generic]]


@dataclass(frozen=True)
class Sizes:
    """How large the network is: layers; width of a block's vector, and inside a layer (mixed); of embeddings."""

    layers: int = 3
    width: int = 64
    mixed: int = 96
    marks: int = 32
    words: int = 24


class Network(nn.Module):
    """The network of `udfs.classifiers.network`, over the blocks of several pages laid end to end."""

    def __init__(self, known: Mapping[str, npt.NDArray[np.uint32]], numbers: int, sizes: Sizes, dropout: float) -> None:
        super().__init__()
        self.known = known
        self.marks = nn.EmbeddingBag(len(known["marks"]), sizes.marks, mode="sum")
        self.words = nn.EmbeddingBag(len(known["words"]), sizes.words, mode="sum")
        for bag in (self.marks, self.words):
            nn.init.normal_(bag.weight, std=0.1)
        self.mean, self.scale = nn.Buffer(torch.zeros(numbers)), nn.Buffer(torch.ones(numbers))
        width = sizes.width
        self.input = nn.Linear(numbers + 3 * sizes.marks + sizes.words, width)
        self.mix = nn.ModuleList(nn.Linear((4 + len(POOLED)) * width, sizes.mixed) for _ in range(sizes.layers))
        self.back = nn.ModuleList(nn.Linear(sizes.mixed, width) for _ in range(sizes.layers))
        self.output = nn.Linear(width, 1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, batch: Batch) -> Tensor:
        """Return the log-odds of each block."""
        numbers = (batch.numbers - self.mean) / self.scale
        own, near, far = _above(_bags(self.marks, batch.marks), batch.parents, batch.within)
        inputs = torch.cat([numbers, own, near, far, _bags(self.words, batch.words)], 1)
        hidden = _norm(torch.relu(self.input(self.dropout(inputs))))
        for layer, (mix, back) in enumerate(zip(self.mix, self.back, strict=True)):
            mixed = torch.relu(mix(self.dropout(_context(hidden, batch, 2**layer))))
            hidden = _norm(hidden + back(mixed))
        return self.output(hidden)[:, 0]

    def tensors(self) -> Tensors:
        """Return the weights as they are stored: floats in half precision but for the scaling of numbers."""
        stored: Tensors = {}
        for name, tensor in self.state_dict().items():
            values = tensor.numpy()
            if name in ("marks.weight", "words.weight"):
                name = name.replace("weight", "rows")
            stored[name] = values if name in ("mean", "scale") else values.astype(np.float16)
        return stored | {f"{name}.known": known for name, known in self.known.items()}


@dataclass(frozen=True)
class Batch:
    """Pages end to end; indices go into the whole. page: of each block; root: its page's first element."""

    numbers: Tensor
    marks: tuple[Tensor, Tensor]
    words: tuple[Tensor, Tensor]
    within: Tensor
    around: Tensor
    parents: Tensor
    starts: Tensor
    ends: Tensor
    page: Tensor
    root: Tensor
    target: Tensor
    counted: Tensor
    lengths: Tensor

    @classmethod
    def of(cls, examples: Sequence[Example]) -> Batch:
        """Lay examples, whose tokens are rows of the embeddings already, end to end."""
        pages = [example.page for example in examples]
        blocks = np.cumsum([0, *(len(page.numbers) for page in pages)])
        elements = np.cumsum([0, *(len(page.parents) for page in pages)])

        def joined(arrays: Sequence[npt.NDArray[np.generic]], axis: int = 0) -> Tensor:
            return torch.from_numpy(np.concatenate(arrays, axis))

        def moved(name: str, by: npt.NDArray[np.int64], axis: int = 0) -> Tensor:
            return joined([getattr(page, name) + start for page, start in zip(pages, by[:-1], strict=True)], axis)

        return cls(
            numbers=joined([page.numbers for page in pages]),
            marks=_joined([page.marks for page in pages]),
            words=_joined([page.words for page in pages]),
            within=moved("within", elements),
            around=moved("around", elements, 1),
            parents=joined(
                [
                    np.where(page.parents < 0, -1, page.parents + start)
                    for page, start in zip(pages, elements, strict=False)
                ]
            ),
            starts=moved("starts", blocks),
            ends=moved("ends", blocks),
            page=torch.from_numpy(np.repeat(np.arange(len(pages)), np.diff(blocks))),
            root=torch.from_numpy(np.repeat(elements[:-1], np.diff(blocks))),
            target=joined([example.target for example in examples]),
            counted=joined([example.counted for example in examples]),
            lengths=joined([example.lengths for example in examples]),
        )


def _joined(lists: Sequence[Ragged]) -> tuple[Tensor, Tensor]:
    starts = np.cumsum([0, *(len(tokens.ids) for tokens in lists)])
    offsets = [tokens.offsets[:-1] + start for tokens, start in zip(lists, starts, strict=False)]
    ids = np.concatenate([tokens.ids for tokens in lists]).astype(np.int64)
    return torch.from_numpy(ids), torch.from_numpy(np.concatenate([*offsets, starts[-1:]]))


def _bags(bag: nn.EmbeddingBag, tokens: tuple[Tensor, Tensor]) -> Tensor:
    ids, offsets = tokens
    counts = torch.diff(offsets).clamp(min=1)
    added: Tensor = bag(ids, offsets[:-1])
    return added / counts.sqrt()[:, None]


def _above(marks: Tensor, parents: Tensor, within: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    nothing = len(marks)
    marks = torch.cat([marks, marks.new_zeros(1, marks.shape[1])])
    up = torch.cat([torch.where(parents < 0, nothing, parents), parents.new_tensor([nothing])])
    near, at = torch.zeros_like(marks[within]), within
    for _ in range(NEAR):
        at = up[at]
        near = near + marks[at]
    total, jump = marks, up
    while bool((jump != nothing).any()):
        total = total + total[jump]
        jump = jump[jump]
    return marks[within], near / math.sqrt(NEAR), total[up[at]] / NEAR


def _context(hidden: Tensor, batch: Batch, distance: int) -> Tensor:
    running = torch.cat([hidden.new_zeros(1, hidden.shape[1], dtype=torch.float64), hidden.double().cumsum(0)])
    means = ((running[batch.ends] - running[batch.starts]) / (batch.ends - batch.starts)[:, None]).float()
    around = [means[batch.around[level]] for level in POOLED]
    before, after = torch.zeros_like(hidden), torch.zeros_like(hidden)
    before[distance:] = hidden[:-distance]
    after[:-distance] = hidden[distance:]
    same = batch.page[distance:] == batch.page[:-distance]
    before[distance:] *= same[:, None]
    after[:-distance] *= same[:, None]
    return torch.cat([hidden, before, after, *around, means[batch.root]], 1)


def _norm(hidden: Tensor) -> Tensor:
    return hidden * torch.rsqrt((hidden * hidden).mean(1, keepdim=True) + EPSILON)
