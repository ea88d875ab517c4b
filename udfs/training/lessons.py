"""Lessons: pages with ground truth as an encoder learns from them: simplified HTML and a target per block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lxml.html import HtmlElement

from templates.dom import PageError, parse
from templates.labels import Labels, Resolved, resolve
from udfs.blocks import segment
from udfs.classifiers.encoder import split_blocks
from udfs.classifiers.items import ITEM_ID, Item, item_shares
from udfs.metrics import overlap, words
from udfs.simplification.simplify import simplify
from udfs.training.examples import Example

NOT_COUNTED = -1
"""The target of a block that nothing is learned from."""

_NOTHING = Item("", 0.0)


@dataclass(frozen=True)
class Lesson:
    """A page for an encoder to learn from, or to be scored on.

    simplified: what the encoder reads. targets: of each of its blocks, 1 main, 0 other or `NOT_COUNTED`.
    texts: the words of each block. truth: those of the ground truth. teacher: another encoder's logits of the blocks, a
    tensor (blocks, 2), if there is one. kind, split: as in `Example`.
    """

    kind: str
    split: str
    simplified: str
    targets: tuple[int, ...]
    texts: tuple[Counter[str], ...]
    truth: Counter[str]
    teacher: Any = None

    def f1(self, labels: Sequence[int]) -> float:
        """Return the token F1 of the blocks with the label 1 with the ground truth."""
        said: Counter[str] = Counter()
        for label, text in zip(labels, self.texts, strict=True):
            if label == 1:
                said.update(text)
        return overlap(said, self.truth).f1


def lesson(row: Mapping[str, Any], example: Example) -> Lesson:
    """Make a lesson of a row of ground truth and its example. Raises PageError where simplification leaves no block.

    A block is main if at least half of its text is, by `gold_paths`; where the row has none, by what the example has
    found of `gold_text`. A title does not count where its corpus leaves titles out.
    """
    simplified, map_html = simplify(row["html"])
    blocks = split_blocks(simplified)
    if not blocks:
        raise PageError("no_elements")
    root = parse(row["html"])
    items = item_shares(root, map_html, _truth(row, root, example))
    titles: dict[str, Item] = {}
    if row.get("title_path") and not row.get("title_in_gold"):
        titles = item_shares(root, map_html, resolve(root, Labels((row["title_path"],), (1.0,))))
    targets: list[int] = []
    texts: list[Counter[str]] = []
    for block in blocks:
        match = ITEM_ID.search(block)
        number = match[1] if match else ""
        is_counted = number in items and titles.get(number, _NOTHING).share < 0.5
        item = items.get(number, _NOTHING)
        targets.append(int(item.share >= 0.5) if is_counted else NOT_COUNTED)
        texts.append(Counter(words(item.text)))
    return Lesson(example.kind, example.split, simplified, tuple(targets), tuple(texts), example.truth)


def _truth(row: Mapping[str, Any], root: HtmlElement, example: Example) -> Resolved:
    main, excluded = row.get("gold_paths") or (), row.get("gold_excluded_paths") or ()
    if main or not example.truth:
        return resolve(root, Labels((*main, *excluded), (1.0,) * len(main) + (0.0,) * len(excluded)))
    found = Resolved()
    for block, share in zip(segment(root), example.target.tolist(), strict=True):
        for holder, part in block.members or ((block.element, "element"),):
            if part == "element":
                found.elements[holder] = share
            else:
                (found.texts if part == "text" else found.tails)[holder] = share
    return found


def class_weights(lessons: Sequence[Lesson]) -> tuple[float, float]:
    """Weigh other and main by the inverse of how often they occur, so that a block weighs 1 on average."""
    counts = Counter(target for one in lessons for target in one.targets if target != NOT_COUNTED)
    other, main = (counts.total() / (2 * counts[label]) if counts[label] else 0.0 for label in (0, 1))
    return other, main
