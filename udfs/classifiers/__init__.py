"""Classifiers: they read single pages and say what on them is main content."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from templates.dom import PageError
from templates.labels import Labels
from udfs.classifiers import specs

if TYPE_CHECKING:
    from udfs.input.pages import Page

__all__ = ["Classifier", "Labels", "Model", "PageError", "from_spec", "loaded_once"]

_ACCEPTED = (
    "'embedded', 'embedded:DIR' (weights of `stencil train`), 'labels:PATH' (files of Parquet or JSONL with url and "
    "gold_paths), 'encoder:PATH' or 'decoder:PATH' "
    "(a checkpoint's folder or its name on the Hugging Face hub; options after it, as in "
    "'encoder:PATH?device=cuda&dtype=bfloat16&batch_tokens=65536')"
)


class Classifier(Protocol):
    """What labels pages. It is made from its spec where it works; the spec travels, the object does not."""

    @property
    def name(self) -> str:
        """The spec that made it: stored beside the labels as their provenance."""
        ...

    def label(self, pages: Sequence[Page]) -> list[Labels | PageError]:
        """Label pages, in their order; a page that can't be labelled is a PageError value."""
        ...


@runtime_checkable
class Model(Classifier, Protocol):
    """A classifier with weights. It loads them with its first page, or before, and counts how often."""

    loads: int

    def load(self) -> None:
        """Load the weights unless they are there. Raises CheckpointError or ValueError."""
        ...

    def unload(self) -> None:
        """Give back the memory of the weights, the device's too."""
        ...


@functools.lru_cache(maxsize=2)  # the classifier and the fallback
def loaded_once(spec: str) -> Classifier:
    """Return the classifier of a spec, the same one whenever this process asks, so that a model loads once."""
    return from_spec(spec)


def from_spec(spec: str) -> Classifier:
    """Make the classifier that a spec names, cheaply: it loads what it needs when it labels its first page.

    Raises ValueError, which says what is accepted, for any other spec.
    """
    kind, _, argument = spec.partition(":")
    if spec == "embedded" or (kind == "embedded" and argument):
        from udfs.classifiers.embedded import Embedded

        return Embedded(argument or None)
    if kind == "labels" and argument:
        from udfs.classifiers.labels import LabelTable

        return LabelTable(argument)
    model = specs.parse(spec)
    if model is None:
        raise ValueError(f"no classifier {spec!r}: use {_ACCEPTED}")
    arguments: dict[str, Any] = model.arguments()
    if model.kind == "encoder":
        from udfs.classifiers.encoder import Encoder

        return Encoder(spec, model.path, **arguments)
    from udfs.classifiers.decoder import Decoder

    return Decoder(spec, model.path, **arguments)
