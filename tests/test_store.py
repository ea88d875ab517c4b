from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from templates.store import Store


def row(host: str, template_id: str, body: str = "{}") -> dict[str, Any]:
    return {"host": host, "template_id": template_id, "body": body, "sketch": b"\x01", "page_ids": ["p"]}


def test_a_store_that_does_not_exist_yet_is_empty(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "templates.store"))
    assert store.files() == []
    assert list(store.read()) == []


def test_appends_add_up_and_are_read_by_host(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "s"))
    store.append([row("b.example", "2"), row("a.example", "1")], "run-1")
    store.append([row("b.example", "3")], "run-2")
    assert [(r["host"], r["template_id"]) for r in store.read()] == [
        ("a.example", "1"), ("b.example", "2"), ("b.example", "3"),
    ]  # fmt: skip
    assert [r["template_id"] for r in store.read(["b.example"])] == ["2", "3"]
    assert list(store.read([])) == []
    assert next(store.read(["a.example"]))["page_ids"] == ["p"]


def test_an_append_that_is_repeated_takes_its_own_place(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "s"))
    store.append([row("a.example", "1")], "run")
    before = {path: Path(path).read_bytes() for path in store.files()}
    store.append(iter([row("a.example", "1")]), "run")
    assert {path: Path(path).read_bytes() for path in store.files()} == before


def test_of_equal_templates_the_last_row_counts(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "s"))
    store.append([row("a.example", "1", "old")], "run-1")
    store.append([row("a.example", "1", "new")], "run-2")
    assert [r["body"] for r in store.read()] == ["new"]


def test_an_empty_append_writes_nothing(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "s"))
    store.append([], "run")
    assert store.files() == []


def test_a_run_id_is_a_plain_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="run_id"):
        Store(str(tmp_path)).append([row("a.example", "1")], "../run")


def test_an_edit_takes_the_place_of_its_template_and_a_forgotten_one_is_gone(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "s"))
    store.append([row("a.example", "1"), row("a.example", "2"), row("b.example", "1")], "run")
    first, second, _ = store.read()
    store.replace(first, '{"edited":1}', "9")
    store.replace(second, None, "forgotten-2")
    assert [(r["host"], r["template_id"], r["body"]) for r in store.read()] == [
        ("a.example", "9", '{"edited":1}'),
        ("b.example", "1", "{}"),
    ]
    edited = next(store.read())
    assert edited["sketch"] == first["sketch"]
    store.append([row("a.example", "1")], "run")  # the run that is repeated does not undo the edit
    assert [r["template_id"] for r in store.read(["a.example"])] == ["9"]


def test_compaction_changes_the_files_and_not_what_is_read(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "s"))
    for run in range(4):
        store.append([row("a.example", str(run)), row(f"{run}.example", "x")], f"run-{run}")
    store.replace(next(store.read(["a.example"])), None, "forgotten")
    before = list(store.read())
    assert len(before) == 7
    assert store.compact() == 8  # and that one is forgotten
    assert len(store.files()) == 1
    assert list(store.read()) == before
    store.append([row("a.example", "0")], "run-0")
    assert store.compact() == 8
    assert list(store.read()) == before


def test_uses_add_up_over_runs(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "s"))
    assert store.uses() == {}
    store.record_uses({"1": 10, "2": 1}, "run-1")
    store.record_uses({"1": 5}, "run-2")
    store.record_uses({"1": 5}, "run-2")
    assert store.uses() == {"1": (2, 15), "2": (1, 1)}
    assert store.files() == []
