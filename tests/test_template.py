from __future__ import annotations

import dataclasses
import json
from typing import Any

import lxml.html
import pytest

from templates.template import Rule, Template, forms, stepper, tokens

TEMPLATE = Template(
    "h.example", (Rule("html", "other", 1), Rule("html > body > p", "main", 1)), frozenset({7, 3}), 120, 4, 1
)


@pytest.mark.parametrize(
    ("token", "wanted"),
    [
        ("entry-content", ["entry-content", "entry-*"]),
        ("main", ["main"]),
        ("post-4711", ["post-*"]),
        ("col-md-8", ["col-md-8", "col-md-*", "col-*"]),
        ("Byline_a1b2c3", ["Byline_*"]),
        ("x1y2z3", []),
        ("mt-3", ["mt-3", "mt-*"]),
        ("-x", ["-x"]),
        ("a-slug-of-a-title-that-no-other-page-has-but-one", None),
        (">", []),
        ("?", []),
    ],
)
def test_a_token_that_is_a_page_s_own_keeps_its_beginning(token: str, wanted: list[str] | None) -> None:
    assert forms(token) == wanted or (wanted is None and token not in forms(token))


def test_tokens_of_an_element() -> None:
    element = lxml.html.fragment_fromstring('<div id=" main " class="b a post-123\n c9f8e7d6c"></div>')
    assert tokens(element) == {"#main", "b", "a", "post-*"}


def test_a_step_names_only_what_the_vocabulary_has() -> None:
    step = stepper(frozenset({"#main", "a"}))
    html = "<div id=main class='b a'></div><div class=b></div><div></div><body class=a>"
    divs = lxml.html.document_fromstring(html).findall(".//div")
    assert [step(div) for div in divs] == ["div #main a", "div ?", "div"]
    assert step(lxml.html.document_fromstring("<html class=a>")) == "html"


@pytest.mark.parametrize(
    ("path", "html"),
    [
        ("html > body > div #main a b > p", "<div id=main class='b x a'><p>hit</p></div>"),
        ("html > body > div post-* > p", "<div class='post-4711'><p>hit</p></div>"),
        ("html > body > div #post-* > p", "<div id=post-4711><p>hit</p></div>"),
        ("html > body > div ? > p", "<div class=x9y8z7w6><p>hit</p></div>"),
        ("html > body > div it's > p", '<div class="it\'s"><p>hit</p></div>'),
    ],
)
def test_a_rule_reads_as_the_xpath_of_its_elements(path: str, html: str) -> None:
    root = lxml.html.document_fromstring(f"<body><div class=other><p>miss</p></div>{html}<p>miss</p>")
    hits: Any = root.getroottree().xpath(Rule(path, "main", 1).xpath)
    assert "hit" in [hit.text for hit in hits]
    assert len(hits) == (2 if "?" in path else 1)


def test_json_is_stable_and_complete() -> None:
    assert Template.from_json(TEMPLATE.to_json()) == TEMPLATE
    assert TEMPLATE.template_id == Template.from_json(TEMPLATE.to_json()).template_id
    assert dataclasses.replace(TEMPLATE, host="i.example").template_id != TEMPLATE.template_id


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"host":"h","rules":[["html"]]}'])
def test_what_is_no_template_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a template"):
        Template.from_json(text)


def test_a_label_is_main_or_other() -> None:
    body = json.loads(TEMPLATE.to_json())
    body["rules"][0][1] = "maybe"
    with pytest.raises(ValueError, match="'maybe'"):
        Template.from_json(json.dumps(body))
