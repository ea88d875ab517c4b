"""Distillation into the embedded classifier: what a teacher says of a page softens the targets of its blocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from templates.dom import parse
from templates.labels import Labels, resolve
from udfs.blocks import segment
from udfs.training.examples import Example, main_shares

TEACHER_SHARE = 0.7
"""Of a target; the ground truth has the rest. Cross-entropy is linear in targets, so this is a mean of two losses."""


def softened(example: Example, html: str, labels: Labels) -> Example:
    """Return an example whose targets are, for the most part, the main probabilities that a teacher gives to its page.

    html: the example's page, of which the labels speak. Raises PageError where it can't be parsed.
    """
    root = parse(html)
    said = main_shares(root, segment(root), resolve(root, labels))
    target = TEACHER_SHARE * said + (1 - TEACHER_SHARE) * example.target
    return replace(example, target=target.astype(np.float32))
