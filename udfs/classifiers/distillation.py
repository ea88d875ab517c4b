"""Distillation into the embedded classifier: what a teacher says of a page softens the targets of its blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from lxml.html import HtmlElement

from templates.dom import parse
from templates.labels import Labels, Resolved, resolve
from udfs.blocks import Block, segment
from udfs.classifiers.examples import Example
from udfs.classifiers.items import inherited_values

TEACHER_SHARE = 0.7
"""Of a target; the ground truth has the rest. Cross-entropy is linear in targets, so this is a mean of two losses."""


def softened(example: Example, html: str, labels: Labels) -> Example:
    """Return an example whose targets are, for the most part, the main probabilities that a teacher gives to its page.

    html: the example's page, of which the labels speak. Raises PageError where it can't be parsed.
    """
    root = parse(html)
    resolved = resolve(root, labels)
    inherited = inherited_values(root, resolved)
    said = [_share(block, inherited, resolved) for block in segment(root)]
    target = TEACHER_SHARE * np.array(said, np.float32) + (1 - TEACHER_SHARE) * example.target
    return replace(example, target=target.astype(np.float32))


def _share(block: Block, inherited: Mapping[HtmlElement, float], labels: Resolved) -> float:
    sized = [(len(text.strip()), value) for text, value in _texts(block, inherited, labels)]
    total = sum(size for size, _ in sized)
    return sum(size * value for size, value in sized) / total if total else 0.0


def _texts(block: Block, inherited: Mapping[HtmlElement, float], labels: Resolved) -> Iterator[tuple[str, float]]:
    """Yield the texts of a block, each with its main probability."""
    for holder, part in block.members or ((block.element, "element"),):
        if part == "element":
            for element in holder.iter():
                yield element.text or "", labels.texts.get(element, inherited[element])
                if element is not holder:
                    yield element.tail or "", labels.tails.get(element, inherited[element.getparent()])
        elif part == "text":
            yield holder.text or "", labels.texts.get(holder, inherited[holder])
        else:
            yield holder.tail or "", labels.tails.get(holder, inherited[block.element])
