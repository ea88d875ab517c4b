from __future__ import annotations

import gzip
import hashlib
import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import hostile
import lxml.html
import pyarrow.parquet as pq
import pytest
import sites
from themes import MAIN, OUT, TEXT, THEMES


def digest(pages: list[sites.SitePage]) -> str:
    return hashlib.sha256(repr(pages).encode()).hexdigest()


def test_the_same_seed_gives_the_same_pages() -> None:
    assert digest(list(sites.crawl(9, 5))) == digest(list(sites.crawl(9, 5)))
    assert digest(list(sites.crawl(9, 5))) != digest(list(sites.crawl(9, 5, seed=1)))


def test_a_longer_host_starts_with_the_shorter_one() -> None:
    short = list(sites.site("blog", 12, name="a.example.com"))
    assert list(sites.site("blog", 30, name="a.example.com"))[:12] == short


def test_a_host_of_any_size_streams() -> None:
    pages = sites.site("news", 10**9, name="a.example.com", gold=False)
    assert len(list(itertools.islice(pages, 10))) == 10


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("language", ["en", "ja", "ar"])
def test_paths_select_the_main_text(theme: str, language: str) -> None:
    for page in sites.site(theme, 26, name="a.example.com", language=language):
        assert not any(mark in page.html for mark in (MAIN.strip(), OUT.strip(), TEXT))
        root: Any = lxml.html.document_fromstring(page.html)
        for path in page.gold_excluded_paths:
            (element,) = root.xpath(path)
            for text in element.xpath(".//text()"):
                owner = text.getparent()
                if text.is_text:
                    owner.text = None
                else:
                    owner.tail = None
        pieces: list[str] = []
        for path in page.gold_paths:
            (found,) = root.xpath(path)
            pieces += [found] if isinstance(found, str) else found.itertext()
        assert " ".join(" ".join(pieces).split()) == page.gold_text
        assert (page.gold_text == "") == page.template.endswith("-login")


@pytest.mark.parametrize("theme", THEMES)
def test_main_is_part_of_the_page_only(theme: str) -> None:
    page = next(iter(sites.site(theme, 1, name="a.example.com")))
    root: Any = lxml.html.document_fromstring(page.html)
    everything = " ".join(root.text_content().split())
    assert 0 < len(page.gold_text) < len(everything)


def test_hosts_have_several_templates_and_urls_are_unique() -> None:
    pages = list(sites.crawl(len(THEMES), 30))
    assert len({page.url for page in pages}) == len(pages)
    templates = Counter(page.template for page in pages)
    assert {"blog-home", "blog-listing", "blog-article", "blog-login", "docs-api", "news-article"} <= set(templates)


def test_generated_classes_differ_between_pages() -> None:
    story = [page for page in sites.site("hashed", 12, name="a.example.com") if page.template == "hashed-story"]
    assert len({page.html.split('id="__next"')[1][:60] for page in story}) == 3
    posts = [page for page in sites.site("blog", 7, name="a.example.com") if page.template == "blog-article"]
    assert len({page.html.split("<body")[1][:60] for page in posts}) == len(posts)


def test_warc_has_one_gzip_member_a_record(tmp_path: Path) -> None:
    with sites.Parts(tmp_path, "warc", pages_per_file=4) as parts:
        for page in sites.crawl(2, 3):
            parts.add(page)
        parts.noise()
    assert [path.name for path in sorted(tmp_path.glob("*.warc.gz"))] == [
        "part-00000.warc.gz",
        "part-00001.warc.gz",
    ]
    data = (tmp_path / "part-00000.warc.gz").read_bytes()
    assert data.count(b"\x1f\x8b\x08\x00\x00\x00\x00\x00") == 5
    text = gzip.decompress(data)
    assert text.count(b"WARC/1.0\r\n") == 5 and text.count(b"WARC-Type: response") == 4
    truth = [json.loads(line) for line in gzip.decompress((tmp_path / "truth.jsonl.gz").read_bytes()).splitlines()]
    assert [row["url"] for row in truth] == [page.url for page in sites.crawl(2, 3)]
    assert set(truth[0]) == {"url", "template", "gold_text", "gold_paths", "gold_excluded_paths"}


def test_parquet_and_jsonl_hold_the_same_pages(tmp_path: Path) -> None:
    for form in ("parquet", "jsonl"):
        sites.main(
            [
                str(tmp_path / form),
                "--hosts",
                "2",
                "--pages",
                "130",
                "--format",
                form,
                "--themes",
                "bare,table",
            ]
        )
    rows = pq.read_table(tmp_path / "parquet" / "part-00000.parquet").to_pylist()
    packed = (tmp_path / "jsonl" / "part-00000.jsonl.gz").read_bytes()
    lines = [json.loads(line) for line in gzip.decompress(packed).splitlines()]
    assert len(rows) == 260
    assert [(row["url"], row["html"].decode()) for row in rows] == [(row["url"], row["html"]) for row in lines]


def test_an_unknown_theme_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        sites.main([str(tmp_path), "--themes", "blog,gopher"])
    assert "no theme gopher; there are blog" in capsys.readouterr().err


def test_hostile_pages_are_as_large_as_promised() -> None:
    pages = dict(hostile.hostile())
    assert len(pages["long_text"]) >= 10_000_000
    assert pages["deep_divs"].count(b"<div>") == 100_000
    assert pages["many_cells"].count(b"<td>") == 200_000
    assert pages["empty"] == b"" and b"\0" in pages["nul_bytes"]
    assert all(len(payload) < 300_000 for _, payload in hostile.hostile(size=50))
