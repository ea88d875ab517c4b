from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import lxml.html
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from templates.dom import PageError, parse
from templates.labels import Addresses, Labels, resolve, text_nodes
from udfs.classifiers import from_spec
from udfs.input.pages import Page

HTML = "<html><body><h1>T</h1><div>one<p>two</p>three</div><div><p>four</p><nav>five</nav></div></body></html>"


def page(url: str, html: str = HTML, error: str | None = None) -> Page:
    return Page(url=url, split="s", offset=0, html=html, page_id="0" * 16, truncated=None, error=error)


def write_lines(path: Path, rows: list[Any]) -> str:
    text = "".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return str(path)


def test_labels_are_validated() -> None:
    assert Labels((), ()).paths == ()
    with pytest.raises(ValueError, match="1 paths but 2"):
        Labels(("/html",), (0.5, 0.5))
    for probability in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match=r"0\.\.1"):
            Labels(("/html",), (probability,))
    for path in ("//main", "html/body", "/html/", "", "/html//p"):
        with pytest.raises(ValueError, match="positional XPath"):
            Labels((path,), (1.0,))


def test_resolve_finds_elements_and_texts() -> None:
    root = parse(HTML)
    paths = (
        "/html/body/div[2]",
        "/html/body/div[1]/text()[1]",
        "/html/body/div[1]/text()[2]",
        "/html/body/p[3]",
    )
    resolved = resolve(root, Labels(paths, (1.0, 0.9, 0.8, 0.7)))
    assert {element.tag: value for element, value in resolved.elements.items()} == {"div": 1.0}
    assert {holder.text: value for holder, value in resolved.texts.items()} == {"one": 0.9}
    assert {holder.tail: value for holder, value in resolved.tails.items()} == {"three": 0.8}
    assert resolved.dropped == ["/html/body/p[3]"]


def test_resolve_takes_a_step_without_position_as_xpath_does() -> None:
    root = parse(HTML)
    resolved = resolve(root, Labels(("/html/body/div/p", "/html/body/h1[1]", "/html/body/div/text()"), (1.0, 0.5, 0.2)))
    assert [element.text for element in resolved.elements] == ["two", "four", "T"]
    assert len(resolved.texts) + len(resolved.tails) == 2


def test_resolve_drops_what_is_not_there() -> None:
    paths = (
        "/html/body/div[0]",
        "/html/body/div[9]",
        "/body",
        "/html/body/h1/text()[2]",
        "/html/body/a b[1]",
    )
    assert resolve(parse(HTML), Labels(paths, (1.0,) * len(paths))).dropped == list(paths)


@given(st.lists(st.sampled_from(["<div>", "</div>", "<p>", "x", "<b>y</b>", "<!-- c -->", "<br>", "<td>", "<o:p>"])))
def test_addresses_equal_getpath_and_lead_back(pieces: list[str]) -> None:
    html = "<html><body>" + "".join(pieces)
    root = parse(html)
    addresses = Addresses()
    elements = list(root.iter())
    paths = [addresses.of(element) for element in elements]
    plain = lxml.html.document_fromstring(html)
    assert paths == [plain.getroottree().getpath(element) for element in plain.iter(lxml.etree.Element)]
    resolved = resolve(root, Labels(tuple(paths), (1.0,) * len(paths)))
    assert list(resolved.elements) == elements
    nodes = [(element, *node) for element in elements for node in text_nodes(element)]
    paths = [addresses.of_text(element, holder) for element, holder, _ in nodes]
    resolved = resolve(root, Labels(tuple(paths), (1.0,) * len(paths)))
    assert set(resolved.texts) == {holder for _, holder, is_tail in nodes if not is_tail}
    assert set(resolved.tails) == {holder for _, holder, is_tail in nodes if is_tail}


def test_a_table_of_labels_is_looked_up_by_url(tmp_path: Path) -> None:
    rows = [
        {"url": "a", "gold_paths": ["/html/body/div[2]", "/html/body/div[7]"],
         "gold_excluded_paths": ["/html/body/div[2]/nav"], "html": "<p>"},
        {"url": "b", "gold_paths": []},
        {"url": "c", "gold_paths": None},
    ]  # fmt: skip
    classifier = from_spec("labels:" + write_lines(tmp_path / "labels.jsonl.gz", rows))
    results = classifier.label([page("b"), page("a"), page("c"), page("d"), page("a", ""), page("a", "", "too_large")])
    assert results[:2] == [Labels((), ()), Labels(("/html/body/div[2]", "/html/body/div[2]/nav"), (1.0, 0.0))]
    assert [error.reason for error in results[2:] if isinstance(error, PageError)] == [
        "no_label", "no_label", "empty", "too_large",
    ]  # fmt: skip


def test_folders_globs_and_parquet(tmp_path: Path) -> None:
    paths = pa.array([["/html/body/h1"]], pa.list_(pa.string()))
    pq.write_table(pa.table({"url": ["p"], "gold_paths": paths}), tmp_path / "one.parquet")
    write_lines(tmp_path / "two.jsonl", [{"url": "j", "gold_paths": ["/html/body/div[1]"]}, "\n"])
    for spec, known in ((tmp_path, "pj"), (tmp_path / "*.parquet", "p"), (tmp_path / "two.jsonl", "j")):
        results = from_spec(f"labels:{spec}").label([page("p"), page("j")])
        assert "".join(url for url, result in zip("pj", results, strict=True) if isinstance(result, Labels)) == known


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["{\n"], "line 1 is not JSON"),
        (["[1]\n"], "line 1 is not a JSON object"),
        ([{"gold_paths": []}], "line 1 has no url"),
        ([{"url": "a", "gold_paths": "/html"}], "line 1: gold_paths and gold_excluded_paths are lists"),
        (
            [{"url": "a", "gold_paths": []}, {"url": "b", "gold_paths": ["//main"]}],
            "line 2: not a positional XPath",
        ),
        ([{"url": "a"}], "no gold_paths in any line"),
        ([{"url": "a", "gold_paths": []}, {"url": "a", "gold_paths": ["/html"]}], "hold a twice"),
    ],
)
def test_a_bad_table_says_what_is_wrong(tmp_path: Path, rows: list[Any], message: str) -> None:
    classifier = from_spec("labels:" + write_lines(tmp_path / "labels.jsonl", rows))
    with pytest.raises(ValueError, match=message):
        classifier.label([page("a")])


def test_a_parquet_table_without_the_columns(tmp_path: Path) -> None:
    pq.write_table(pa.table({"url": ["a"], "paths": ["x"]}), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="no column gold_paths; it has url, paths"):
        from_spec(f"labels:{tmp_path}/t.parquet").label([page("a")])


def test_specs_that_name_nothing(tmp_path: Path) -> None:
    for spec in ("", "labels:", "embedded:", "decoder"):
        with pytest.raises(ValueError, match=r"use 'embedded', .* 'labels:PATH'"):
            from_spec(spec)
    with pytest.raises(ValueError, match="labels:"):
        from_spec(f"labels:{tmp_path}/missing.jsonl")


def test_all_labels_of_the_corpora_lead_somewhere(corpora: Path) -> None:
    site = sorted((corpora / "sites").glob("*/pages.jsonl.gz"))[0]
    classifier = from_spec(f"labels:{site}")
    with gzip.open(site, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file][:20]
    for row, result in zip(rows, classifier.label([page(row["url"], row["html"]) for row in rows]), strict=True):
        assert isinstance(result, Labels)
        assert set(result.paths) == {*row["gold_paths"], *row["gold_excluded_paths"]}
