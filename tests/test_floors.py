"""Floors: what is pinned, what has fallen, and that a floor is never lowered unasked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs import floors
from spark_jobs.errors import RequestError
from spark_jobs.floors import Floors, Truth
from templates import storage

TRUTH = Truth(3, "00ff")
VALUES = st.floats(0, 1).map(lambda value: round(value, 6))


def figure(dimension: str, value: str, f1: float, rouge: float | None = None) -> dict[str, Any]:
    return {"dimension": dimension, "value": value, "f1": f1, "rouge_f1": rouge, "snippets": None}


def test_floors_are_rounded_down_and_of_sets() -> None:
    rows = [figure("set", "wcxb", 0.91299, 0.9), figure("language", "en", 0.5), figure("all", "all", 1.0)]
    found = floors.reached(rows, TRUTH)
    assert found.figures == {"set: wcxb": {"f1": 0.912, "rouge_f1": 0.9}, "all: all": {"f1": 1.0}}


def test_a_fall_names_the_figure() -> None:
    pinned = floors.reached([figure("set", "a", 0.9), figure("set", "b", 0.8)], TRUTH)
    now = floors.reached([figure("set", "a", 0.8995)], TRUTH)
    assert floors.fallen(pinned, now) == ["set: a, f1: 0.899, floor 0.9", "set: b, f1: gone, floor 0.8"]


def test_floors_of_other_ground_truth_say_nothing() -> None:
    with pytest.raises(RequestError, match="3 pages, digest 00ff; here 4, 00fe"):
        floors.fallen(Floors(TRUTH), Floors(Truth(4, "00fe")))


@given(st.lists(VALUES, min_size=2, max_size=2), st.lists(VALUES, min_size=3, max_size=3))
def test_raising_never_lowers_and_what_was_reached_never_fell(before: list[float], after: list[float]) -> None:
    pinned = floors.reached([figure("set", str(n), value) for n, value in enumerate(before)], TRUTH)
    now = floors.reached([figure("set", str(n), value) for n, value in enumerate(after)], TRUTH)
    raised = floors.raised(pinned, now)
    assert floors.fallen(now, now) == []
    for group, figures in pinned.figures.items():
        assert raised.figures[group]["f1"] >= figures["f1"]
    assert bool(floors.fallen(pinned, now)) == any(
        now.figures[group]["f1"] < figures["f1"] for group, figures in pinned.figures.items()
    )


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = str(tmp_path / "floors.json")
    assert floors.read(path) == Floors()
    pinned = floors.reached([figure("set", "ä", 0.25, 0.125)], TRUTH)
    storage.write_json(path, floors.to_json(pinned))
    assert floors.read(path) == pinned
    Path(path).write_text('{"floors": []}')
    with pytest.raises(RequestError, match="is no floors file"):
        floors.read(path)
