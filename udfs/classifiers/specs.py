"""Specs of model classifiers: `encoder:PATH?device=cuda&dtype=bfloat16`, taken apart, filled in and compared."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

_TEXTS = {"encoder": ("device", "dtype"), "decoder": ("device", "dtype", "prompt", "wrapping", "mode", "backend")}
_NUMBERS = {"encoder": ("chunk_tokens", "batch_tokens"), "decoder": ("context_tokens", "batch_tokens")}
_NOT_OF_THE_LABELS = ("device", "batch_tokens")  # where and how fast a model computes, not what


class ModelSpec(NamedTuple):
    """A model: its kind (encoder, decoder), where its checkpoint is, and options."""

    kind: str
    path: str
    options: dict[str, str]

    def __str__(self) -> str:
        query = urlencode(self.options, safe="/:", quote_via=quote)
        return f"{self.kind}:{self.path}" + (f"?{query}" if query else "")

    def arguments(self) -> dict[str, str | int]:
        """Return the options as the classifier takes them."""
        numbers = _NUMBERS[self.kind]
        return {name: int(value) if name in numbers else value for name, value in self.options.items()}


def parse(spec: str) -> ModelSpec | None:
    """Take a model's spec apart; None for a spec of anything else. Raises ValueError for an option that is none."""
    kind, _, argument = spec.partition(":")
    if kind not in _TEXTS or not argument:
        return None
    path, _, query = argument.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    for name, value in options.items():
        is_number = name in _NUMBERS[kind] and value.isdecimal() and int(value) > 0
        if name not in _TEXTS[kind] and not is_number:
            known = ", ".join(_TEXTS[kind] + _NUMBERS[kind])
            raise ValueError(f"no option {name}={value} of {kind}: use {known} (the last two are numbers above 0)")
    return ModelSpec(kind, path, options)


def is_model(spec: str) -> bool:
    """Tell whether a spec names a model, which is loaded and may use a GPU."""
    return parse(spec) is not None


def filled(spec: str, **options: str | int | None) -> str:
    """Put options into a model's spec; those that are None or empty stay out.

    Raises ValueError where the spec is no model's, or has another value already.
    """
    given = {name: str(value) for name, value in options.items() if value is not None and value != ""}
    if not given:
        return spec
    model = parse(spec)
    if model is None:
        names = ", ".join(given)
        raise ValueError(f"{spec!r} is not a model, so it has no {names}: they are for encoder:PATH and decoder:PATH")
    for name, value in given.items():
        if model.options.get(name, value) != value:
            raise ValueError(f"{name} is {value!r}, but {model.options[name]!r} in {spec!r}: give it once")
    return str(model._replace(options=model.options | given))


def identity(spec: str) -> str:
    """Return what of a spec decides its labels: a model's device and batch size do not."""
    model = parse(spec)
    if model is None:
        return spec
    kept = {name: value for name, value in sorted(model.options.items()) if name not in _NOT_OF_THE_LABELS}
    return str(model._replace(options=kept))
