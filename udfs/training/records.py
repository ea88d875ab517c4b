"""Records: what is kept beside trained weights, so that their training can be understood and repeated."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version

import numpy as np
import numpy.typing as npt

_LIBRARIES = ("torch", "numpy", "lxml", "safetensors", "transformers", "tokenizers", "selectolax")


def versions() -> dict[str, str]:
    """Return the versions that decide bytes: of Python and the libraries that are here."""
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # an extra that this training did without
            continue
    return found


def packed(tensors: Mapping[str, npt.NDArray[np.generic]]) -> bytes:
    """Pack tensors as safetensors, in the order of their names. Raises ImportError without that package."""
    from safetensors.numpy import save

    made: bytes = save({name: np.ascontiguousarray(tensors[name]) for name in sorted(tensors)})
    return made


def counts(pages: Sequence[tuple[str, str]]) -> dict[str, dict[str, int]]:
    """Count pages, given as kind and split, by both."""
    found: dict[str, dict[str, int]] = {}
    for kind, split in sorted(pages):
        found.setdefault(kind, {"train": 0, "dev": 0})[split] += 1
    return found
