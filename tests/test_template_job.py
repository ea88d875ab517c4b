"""`stencil template`: what a person does with a store."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from spark_jobs import template
from spark_jobs.errors import RequestError
from spark_jobs.options import TemplateOptions, parse
from templates.store import Store
from templates.template import Rule, Template

FIRST = Template(
    "h.example", (Rule("html", "other", 1), Rule("html > body > p", "main", 1)), frozenset({7}), 120, 4, 1, 0.97
)
SECOND = dataclasses.replace(FIRST, usual_main=3)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(str(tmp_path / "s"))
    common = {"host": "h.example", "classifier": "embedded", "page_ids": ["p1"], "sketch": b"\x01\x00\x00\x00"}
    store.append([common | {"template_id": t.template_id, "body": t.to_json()} for t in (FIRST, SECOND)], "run")
    return store


def ask(store: Store, line: str) -> list[str]:
    job, options = parse(["template", *line.split(), "--store", store.path])
    assert job == "template"
    assert isinstance(options, TemplateOptions)
    return template.run(options)


def edited(tmp_path: Path, **changes: Any) -> str:
    path = tmp_path / "edited.json"
    path.write_text(dataclasses.replace(FIRST, **changes).to_json(), encoding="utf-8")
    return str(path)


def test_show_is_readable(store: Store) -> None:
    store.record_uses({FIRST.template_id: 12}, "later")
    text = "\n".join(ask(store, f"show h.example --template {FIRST.template_id}"))
    for wanted in (
        "1 labelled page(s) by embedded: p1",
        "0.970",
        "12 pages in 1 later runs",
        "main    1      p",
        "/html/body/p",
    ):
        assert wanted in text
    assert ask(store, "show h.example --json") == [row["body"] for row in store.read()]


def test_an_edit_is_compared_and_then_wins(store: Store, tmp_path: Path) -> None:
    path = edited(tmp_path, rules=(*FIRST.rules, Rule("html > body > ul", "main", 1)))
    where = f"h.example --template {FIRST.template_id} --file {path}"
    assert "+main  html > body > ul" in ask(store, f"diff {where}")
    assert len(list(store.read())) == 2
    assert "takes the place" in ask(store, f"edit-from {where}")[-1]
    bodies = [row["body"] for row in store.read()]
    assert FIRST.to_json() not in bodies
    assert Path(path).read_text(encoding="utf-8") in bodies
    new = Template.from_json(Path(path).read_text(encoding="utf-8")).template_id
    shown = "\n".join(ask(store, f"show h.example --template {new}"))
    assert f"edited by a person, in place of {FIRST.template_id}" in shown
    assert ask(store, "edit-from h.example --template " + new + " --file " + path) == ["nothing has changed"]


def test_forget_and_compact(store: Store) -> None:
    ask(store, f"forget h.example --template {FIRST.template_id}")
    assert [row["template_id"] for row in store.read()] == [SECOND.template_id]
    assert "one file" in ask(store, "compact")[0]
    assert [row["template_id"] for row in store.read()] == [SECOND.template_id]
    ask(store, "forget h.example")
    assert list(store.read()) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("show", "needs a HOST"),
        ("show elsewhere.example", "has no template of 'elsewhere.example'"),
        ("show h.example --template 0", "no template 0"),
        ("diff h.example", "2 templates: choose one"),
    ],
)
def test_a_bad_request_says_what_to_do(store: Store, line: str, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        ask(store, line)


def test_a_bad_file_says_what_is_wrong(store: Store, tmp_path: Path) -> None:
    where = f"diff h.example --template {FIRST.template_id}"
    with pytest.raises(RequestError, match="--file"):
        ask(store, where)
    with pytest.raises(RequestError, match="missing"):
        ask(store, f"{where} --file {tmp_path / 'missing'}")
    with pytest.raises(RequestError, match=r"a template of 'i\.example'"):
        ask(store, f"{where} --file {edited(tmp_path, host='i.example')}")
