"""Ground truth: lines of both formats, and what a file's surroundings say."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from udfs.input import truth
from udfs.input.truth import Place
from udfs.metrics import words


def row(found: Any) -> truth.Row:
    line = found if isinstance(found, bytes) else json.dumps(found).encode()
    return truth.truth(line, Place("f.jsonl", "f"), "f.jsonl, line 1")


def test_a_page_with_its_text() -> None:
    found = row({"url": "http://A.com/x", "gold_text": "T", "page_type": "forum", "lang": "de", "split": "dev"})
    assert found["gold_text"] == "T" and found["set"] == "f" and found["site"] == "a.com"
    assert (found["page_type"], found["lang"], found["split"], found["level"]) == ("forum", "de", "dev", None)
    assert "problem" not in found
    assert set(found) <= set(truth.SCHEMA.names)


def test_a_set_of_its_own_and_an_empty_text_are_kept() -> None:
    found = row({"id": "1", "set": "s", "site": "home", "gold_text": "", "must_contain": ["a", 3]})
    assert (found["url"], found["id"], found["set"], found["site"]) == ("1", "1", "s", "home")
    assert found["gold_text"] == "" and found["must_contain"] == ["a"]


def test_snippets_alone_are_ground_truth() -> None:
    found = row({"url": "u", "must_not_contain": ["ad"], "html": '<p cc-select="true">x'})
    assert found["gold_text"] is None and "problem" not in found


@pytest.mark.parametrize(
    ("line", "place"),
    [
        (b"{", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[1]", "is not a JSON object"),
        (b'{"gold_text": "x"}', "has neither url nor id"),
    ],
)
def test_a_damaged_line_is_told(line: bytes, place: str) -> None:
    assert row(line) == {"problem": "damaged", "place": f"f.jsonl, line 1 {place}"}


def test_a_page_without_ground_truth_is_told() -> None:
    found = row({"url": "u", "html": "<p>x", "gold_text": 3})
    assert found["problem"] == "without" and found["place"].endswith("its fields are gold_text, html, url")


BENCHMARK = {
    "track_id": "7f",
    "url": "https://example.com/a",
    "html": '<body><p>menu</p><div cc-select="true"><h1>T</h1><p>one</p></div>'
    '<div style="display: none"><p cc-select="true">hidden</p></div><p cc-select="true">two <b>words</b></p></body>',
    "main_html": "<div><h1>T</h1><p>one</p></div><script>x()</script><p>two</p>",
    "convert_main_content": "# T\n\none",
    "groundtruth_content": "# T\n\n[one](http://example.com/b 'c') ![](d.png) two",
    "meta": {"language": "en", "style": "Article", "level": "Mid", "table": []},
}


def test_a_page_of_webmainbench() -> None:
    found = row(BENCHMARK)
    assert words(found["gold_text"]) == ["t", "one", "two"]
    assert (found["id"], found["url"], found["set"]) == ("7f", "https://example.com/a", truth.WEBMAINBENCH)
    assert (found["lang"], found["page_type"], found["level"]) == ("en", "Article", "mid")


def test_webmainbench_without_main_html_is_told_by_marks_then_by_markdown() -> None:
    less = {name: value for name, value in BENCHMARK.items() if name != "main_html"}
    assert words(row(less)["gold_text"]) == ["t", "one", "two", "words"]
    del less["html"]
    assert words(row(less)["gold_text"]) == ["t", "one", "two"]
    del less["groundtruth_content"]
    assert words(row(less)["gold_text"]) == ["t", "one"]
    del less["convert_main_content"]
    assert row(less)["problem"] == "without"


def test_a_site_is_named_by_its_folder_and_told_of_beside_it(tmp_path: Path) -> None:
    folder = tmp_path / "sites" / "home"
    folder.mkdir(parents=True)
    (folder / "site.json").write_text('{"language": "pl"}')
    (tmp_path / "sites" / "splits.json").write_text('{"home": "dev"}')
    path = folder / "pages.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"url": "http://x.org/", "gold_text": "a"}\n\n{"url": "v"}\n'))
    where = truth.place(str(path))
    assert where == Place(str(path), "sites", "home", "dev", "pl")
    first, second = truth.read(where)
    assert (first["set"], first["site"], first["split"], first["lang"]) == ("sites", "home", "dev", "pl")
    assert second["problem"] == "without" and f"{path}, line 3" in second["place"]
    assert pa.Table.from_pylist([first, second], truth.SCHEMA).num_rows == 2
    assert truth.place(str(tmp_path / "wcxb.jsonl.gz")) == Place(str(tmp_path / "wcxb.jsonl.gz"), "wcxb")


def test_the_corpora_are_ground_truth(corpora: Path) -> None:
    for path in sorted((corpora / "pages").glob("*.jsonl.gz")):
        first = next(truth.read(truth.place(str(path))))
        assert first.get("problem") != "damaged" and first["set"] == path.name.split(".")[0]
