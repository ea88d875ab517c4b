"""Floors: figures that must not fall, pinned in a file with a digest of the ground truth that they are of."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_jobs.errors import RequestError
from templates import storage

DIMENSIONS = ("all", "means", "set", "set and page type", "WebMainBench")
"""What is pinned. A language or a site often has so few pages that one of them decides."""

FIGURES = ("f1", "rouge_f1", "snippets")
_STEP = 1000
"""Floors are rounded down to so many parts: the last digits differ between versions of libraries."""


@dataclass(frozen=True)
class Truth:
    """Which ground truth: its number of pages, and a digest of their URLs and of what is main."""

    pages: int
    digest: str


@dataclass(frozen=True)
class Floors:
    """Floors by group (`set: wcxb`) and figure, and what they are of; of nothing before they are first written."""

    truth: Truth | None = None
    figures: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def read(path: str) -> Floors:
    """Read a floors file; none is pinned where there is no file. Raises RequestError where it is something else."""
    try:
        found = json.loads(storage.read_bytes(path))
        figures = {
            group: {name: float(value) for name, value in pinned.items()} for group, pinned in found["floors"].items()
        }
        return Floors(Truth(int(found["truth"]["pages"]), str(found["truth"]["digest"])), figures)
    except FileNotFoundError:
        return Floors()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RequestError(f"{path} is no floors file ({error!r}): mend it, or name another one") from error


def to_json(floors: Floors) -> dict[str, Any]:
    """Return what the file holds."""
    truth = None if floors.truth is None else {"pages": floors.truth.pages, "digest": floors.truth.digest}
    return {"truth": truth, "floors": {group: dict(pinned) for group, pinned in floors.figures.items()}}


def reached(rows: Iterable[Mapping[str, Any]], truth: Truth) -> Floors:
    """Make floors of what was reached, rounded down: from rows of FIGURES."""
    figures = {
        f"{row['dimension']}: {row['value']}": {name: _down(row[name]) for name in FIGURES if row[name] is not None}
        for row in rows
        if row["dimension"] in DIMENSIONS
    }
    return Floors(truth, figures)


def fallen(pinned: Floors, now: Floors) -> list[str]:
    """Name each figure that is below its floor, or that is not there any more.

    Raises RequestError where the floors are of another ground truth, which says nothing of this one.
    """
    if pinned.truth is not None and pinned.truth != now.truth:
        raise RequestError(
            f"the floors are of other ground truth ({pinned.truth.pages:,} pages, digest {pinned.truth.digest}; here "
            f"{now.truth and now.truth.pages:,}, {now.truth and now.truth.digest}): give the same --truth and --split, "
            "or pin anew with --lower-floors"
        )
    found = []
    for group, floors in pinned.figures.items():
        for name, floor in floors.items():
            value = now.figures.get(group, {}).get(name)
            if value is None or value < floor:
                found.append(f"{group}, {name}: {'gone' if value is None else value}, floor {floor}")
    return found


def raised(pinned: Floors, now: Floors) -> Floors:
    """Return the floors with what was reached where that is higher, or new."""
    figures = {
        group: {
            name: max(value, pinned.figures.get(group, {}).get(name, 0.0))
            for name, value in now.figures.get(group, {}).items()
        }
        for group in sorted(pinned.figures.keys() | now.figures.keys())
    }
    return Floors(now.truth, figures)


def _down(value: float) -> float:
    return math.floor(value * _STEP + 1e-9) / _STEP
