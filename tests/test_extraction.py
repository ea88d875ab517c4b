"""A page's way through signing, induction and extraction, without Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sites import SitePage, site

from templates.dom import PageError
from templates.labels import Labels
from templates.template import Template
from udfs.classifiers import from_spec
from udfs.conversion.spans import Modes
from udfs.extraction import MIN_CONFIDENCE, Conversion, Decision, extract_page, induce_cluster, sign_page
from udfs.input.pages import Page

ARTICLES = [page for page in site("blog", 60, name="blog.example") if page.template == "blog-article"]


def page_of(sheet: SitePage) -> Page:
    return Page(sheet.url, "part.warc.gz", 7, sheet.html, f"id{hash(sheet.url)}", None, None)


def gold(sheet: SitePage) -> Labels:
    main, other = sheet.gold_paths, sheet.gold_excluded_paths
    return Labels(main + other, (1.0,) * len(main) + (0.0,) * len(other))


def label_row(sheet: SitePage, labelled: bool) -> dict[str, Any]:
    labels = gold(sheet)
    return {
        "page_id": sheet.url,
        "url": sheet.url,
        "host": "blog.example",
        "cluster_id": "c1",
        "role": "representative" if labelled else "witness",
        "html": sheet.html,
        "paths": list(labels.paths) if labelled else None,
        "probabilities": list(labels.probabilities) if labelled else None,
        "classifier": "labels:gold" if labelled else None,
        "error": None,
    }


@pytest.fixture(scope="module")
def template() -> str:
    row = induce_cluster([label_row(ARTICLES[0], True)] + [label_row(sheet, False) for sheet in ARTICLES[1:6]])
    assert row is not None
    assert row["page_ids"] == [ARTICLES[0].url]
    return str(row["body"])


def words(text: str) -> list[str]:
    return text.split()


def test_without_a_labelled_page_there_is_no_template() -> None:
    assert induce_cluster([label_row(ARTICLES[0], False)]) is None


def test_a_sibling_is_extracted_by_the_template(template: str) -> None:
    unexplained = 0
    for sheet in ARTICLES[6:]:
        row, explained = extract_page(page_of(sheet), Decision("c1", template))
        if not explained:
            unexplained += 1
            continue
        assert (row["extracted_by"], row["status"], row["cluster_id"]) == ("template", "ok", "c1")
        assert set(words(row["text"])) == set(words(sheet.gold_text))
        assert row["main_html"].startswith("<body>")
        assert row["confidence"] >= MIN_CONFIDENCE
    assert unexplained <= len(ARTICLES) / 8


def test_a_labelled_page_is_extracted_by_its_labels(template: str) -> None:
    row, explained = extract_page(page_of(ARTICLES[0]), Decision("c1", template, gold(ARTICLES[0])))
    assert explained
    assert row["extracted_by"] == "classifier"
    assert set(words(row["text"])) == set(words(ARTICLES[0].gold_text))


def test_what_no_template_explains_goes_to_the_fallback(template: str) -> None:
    page = replace(page_of(ARTICLES[0]), html="<body><section>" + "<p>Another layout with long text.</p>" * 9)
    row, explained = extract_page(page, Decision("c1", template))
    assert not explained
    assert (row["page_id"], row["split"], row["offset"]) == (page.page_id, "part.warc.gz", 7)
    row, explained = extract_page(page, Decision("c1", template), from_spec("embedded"))
    assert explained
    assert row["extracted_by"] == "fallback"
    assert "Another layout" in row["text"]


def test_a_page_without_body_or_text_is_empty() -> None:
    for html in ("<frameset><frame src=a></frameset>", "<body><script>x()</script></body>"):
        row, _ = extract_page(replace(page_of(ARTICLES[0]), html=html), Decision(labels=Labels((), ())))
        assert (row["status"], row["main_html"], row["text"]) == ("empty", "", "")


def test_the_same_page_gives_the_same_row_whatever_came_before(template: str) -> None:
    pages = [page_of(sheet) for sheet in ARTICLES[6:12]]
    once = [extract_page(page, Decision("c1", template)) for page in pages]
    again = [extract_page(page, Decision("c1", template)) for page in reversed(pages)]
    assert once == again[::-1]


def test_signing() -> None:
    row = sign_page(page_of(ARTICLES[0]))
    assert row["host"] == "blog.example"
    assert row["text_chars"] > 100
    assert len(row["sketch"]) % 4 == 0
    with pytest.raises(PageError, match="empty"):
        sign_page(replace(page_of(ARTICLES[0]), html=""))


def test_agreement_is_measured_on_labelled_pages_that_the_template_has_not_seen() -> None:
    others = [label_row(sheet, True) | {"role": "audit"} for sheet in ARTICLES[1:4]]
    row = induce_cluster([label_row(ARTICLES[0], True), *others, label_row(ARTICLES[5], False)])
    assert row is not None
    assert 0.9 < row["agreement"] <= 1.0
    assert Template.from_json(row["body"]).labelled == 4
    wrong = [other | {"paths": ["/html"], "probabilities": [0.0]} for other in others]
    row = induce_cluster([label_row(ARTICLES[0], True), *wrong])
    assert row is not None
    assert row["agreement"] < 0.1


def test_markdown_and_content_list_are_made_on_request(template: str) -> None:
    html = ARTICLES[7].html.replace("<head>", "<head><base href='/deep/'>").replace("<h1", "<p><a href=x>in</a></p><h1")
    page = replace(page_of(ARTICLES[7]), html=html)
    conversion = Conversion(("content_list", "markdown"), Modes(links="inline"))
    row, _ = extract_page(page, Decision("c1", template), conversion=conversion)
    assert "# " in row["markdown"]
    assert "title" in [item["type"] for item in row["content_list"]]
    plain, _ = extract_page(page, Decision("c1", template))
    assert "markdown" not in plain
