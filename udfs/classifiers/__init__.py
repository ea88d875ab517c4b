"""Classifiers: they read single pages and say what on them is main content."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from templates.dom import PageError
from templates.labels import Labels

if TYPE_CHECKING:
    from udfs.pages import Page

__all__ = ["Classifier", "Labels", "PageError", "from_spec"]

_ACCEPTED = "'embedded', or 'labels:PATH' (files of Parquet or JSONL with url and gold_paths)"


class Classifier(Protocol):
    """What labels pages. It is made from its spec where it works; the spec travels, the object does not."""

    @property
    def name(self) -> str:
        """The spec that made it: stored beside the labels as their provenance."""
        ...

    def label(self, pages: Sequence[Page]) -> list[Labels | PageError]:
        """Label pages, in their order; a page that can't be labelled is a PageError value."""
        ...


def from_spec(spec: str) -> Classifier:
    """Make the classifier that a spec names, cheaply: it loads what it needs when it labels its first page.

    Raises ValueError, which says what is accepted, for any other spec.
    """
    kind, _, argument = spec.partition(":")
    if spec == "embedded":
        from udfs.classifiers.embedded import Embedded

        return Embedded()
    if kind == "labels" and argument:
        from udfs.classifiers.labels import LabelTable

        return LabelTable(argument)
    raise ValueError(f"no classifier {spec!r}: use {_ACCEPTED}")
