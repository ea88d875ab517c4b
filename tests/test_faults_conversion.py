"""Every public bug report of stage conversion, through the conversion."""

from __future__ import annotations

import functools
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from conftest import ROOT

from spark_jobs.convert import convert

FAULTS = ROOT.parent / "shared" / "faults" / "faults.jsonl"
CHECKER = ROOT.parent / "shared" / "tools" / "check_faults.py"


def faults() -> list[Any]:
    if not FAULTS.is_file():
        reason = "no ../shared/faults beside the repository: the reports are not part of it"
        return [pytest.param(None, marks=pytest.mark.skip(reason=reason))]
    rows = map(json.loads, FAULTS.read_text(encoding="utf-8").splitlines())
    return [pytest.param(row, id=row["id"]) for row in rows if row["stage"] == "convert"]


@functools.cache
def checker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_faults", CHECKER)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def html_of(fault: dict[str, Any]) -> str:
    if fault["input_type"] != "generator":
        html: str = fault["input"]
        return html
    scope: dict[str, Any] = {}
    exec(fault["generator"], scope)  # noqa: S102 - the recipe of an input too large to store
    made: str = scope["html"]
    return made


@pytest.mark.parametrize("fault", faults())
def test_public_bug_report(fault: dict[str, Any]) -> None:
    markdown = convert(
        html_of(fault),
        url=fault.get("url", ""),
        links="inline" if fault.get("needs_links") else "none",
        images="inline" if fault.get("needs_images") else "none",
    )
    failures = checker().check(fault["assert"], markdown)
    assert not failures, f"{fault['symptom']}\nexpected: {fault['expected']}\n{failures}\n{markdown[:2000]}"


def test_checker_is_the_one_beside_the_repository() -> None:
    if not CHECKER.is_file():
        pytest.skip("no ../shared/tools beside the repository")
    assert Path(checker().__file__ or "") == CHECKER
