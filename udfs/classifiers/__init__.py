"""Classifiers: they read single pages and say what on them is main content."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import parse_qsl

from templates.dom import PageError
from templates.labels import Labels

if TYPE_CHECKING:
    from udfs.input.pages import Page

__all__ = ["Classifier", "Labels", "PageError", "from_spec"]

_ACCEPTED = (
    "'embedded', 'labels:PATH' (files of Parquet or JSONL with url and gold_paths), 'encoder:PATH' or 'decoder:PATH' "
    "(a checkpoint's folder or its name on the Hugging Face hub; options after it, as in "
    "'encoder:PATH?device=cuda&dtype=bfloat16&batch_tokens=65536')"
)
_TEXTS = {"encoder": ("device", "dtype"), "decoder": ("device", "dtype", "prompt", "wrapping", "mode")}
_NUMBERS = {"encoder": ("chunk_tokens", "batch_tokens"), "decoder": ("context_tokens", "batch_tokens")}


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
    if kind in _TEXTS and argument:
        return _model(spec, kind, argument)
    raise ValueError(f"no classifier {spec!r}: use {_ACCEPTED}")


def _model(spec: str, kind: str, argument: str) -> Classifier:
    path, _, query = argument.partition("?")
    options: dict[str, Any] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key in _TEXTS[kind]:
            options[key] = value
        elif key in _NUMBERS[kind] and value.isdecimal() and int(value) > 0:
            options[key] = int(value)
        else:
            known = ", ".join(_TEXTS[kind] + _NUMBERS[kind])
            raise ValueError(f"no option {key}={value} of {kind}: use {known} (the last two are numbers above 0)")
    if kind == "encoder":
        from udfs.classifiers.encoder import Encoder

        return Encoder(spec, path, **options)
    from udfs.classifiers.decoder import Decoder

    return Decoder(spec, path, **options)
