from __future__ import annotations

import pickle

import lxml.html
import pytest
from hypothesis import given
from hypothesis import strategies as st

from templates.dom import PageError, line_hash, parse, strip_textless, visible_text


@pytest.mark.parametrize(
    ("html", "reason"),
    [
        ("", "empty"),
        (" \0\n", "empty"),
        ("<!-- only a comment -->", "empty"),
        ("<p " + " ".join(f"a{n}" for n in range(20_000)) + ">x</p>", "too_many_attributes"),
        ("<script " + " ".join(f"a{n}" for n in range(20_000)) + ">x</script>", "too_many_attributes"),
        ("x" * (33 << 20), "too_large"),
    ],
)
def test_a_page_that_cannot_be_parsed_has_a_reason(html: str, reason: str) -> None:
    with pytest.raises(PageError) as caught:
        parse(html)
    assert caught.value.reason == reason
    assert pickle.loads(pickle.dumps(caught.value)).reason == reason  # noqa: S301 - our own bytes


def test_a_long_attribute_is_not_many() -> None:
    value = "a = b " * 20_000
    assert visible_text(parse(f"<p data-x='{value}'>kept</p>")) == "kept"


@pytest.mark.parametrize(
    "around", ["<script>if (i{})</script>", "<STYLE>{}</STYLE>", "<!-- {} -->", "<textarea>{}</textarea>"]
)
def test_what_only_looks_like_a_tag_has_no_attributes(around: str) -> None:
    looks_like_a_tag = f"<n {' '.join(f'a{n}' for n in range(20_000))}>"
    assert visible_text(parse(f"<p>before</p>{around.format(looks_like_a_tag)}<p>after</p>")).endswith("after")


@pytest.mark.parametrize(
    "html",
    [
        "<?xml version='1.0' encoding='latin-1'?><html><body><p>é",
        "<meta charset=latin-1><p>é",
        "<p>\0é",
        "<p>a\ud800é",
    ],
)
def test_what_a_page_says_of_its_encoding_no_longer_counts(html: str) -> None:
    assert "é" in visible_text(parse(html))


@given(st.text(alphabet="<>/ab p\n&;=\"'!-?", max_size=80))
def test_paths_are_those_of_lxml(html: str) -> None:
    try:
        root = parse(html)
    except PageError:
        return
    theirs = lxml.html.document_fromstring(html.encode(), parser=lxml.html.HTMLParser(encoding="utf-8"))
    paths = [theirs.getroottree().getpath(element) for element in theirs.iter() if isinstance(element.tag, str)]
    assert [root.getroottree().getpath(element) for element in root.iter()] == paths


def test_what_is_nested_too_deep_for_libxml2_keeps_its_text() -> None:
    assert visible_text(parse("<div>" * 5000 + "<p>inner</p>" + "</div>" * 5000 + "tail")) == "inner\ntail"


@pytest.mark.parametrize(
    "end", ["</body>", "</html>", "</body></html>", "</BODY>\n</HTML>", "</body><script>x()</script>"]
)
def test_what_follows_the_end_of_the_page_is_kept(end: str) -> None:
    root = parse(f"<html><body><p>one</p>{end}<p>two</p></body></html>")
    assert visible_text(root.find("body")) == "one\ntwo"


def test_visible_text_has_a_line_a_block() -> None:
    html = """<title>t</title><style>s</style><h1>A  <b>b</b>ig\n title</h1><p>one<br>two<span> three</span>
        <script>x()</script> four<ul><li>five</li><li>six</ul>tail"""
    assert visible_text(parse(html).find("body")).split("\n") == [
        "A big title", "one", "two three four", "five", "six", "tail",
    ]  # fmt: skip


def test_stripping_keeps_the_text_around() -> None:
    root = parse("<body>a<script>x</script>b<noscript>n</noscript>c<p>d<style>s</style>e</p></body>")
    strip_textless(root)
    assert "".join(root.itertext()) == "abcde"


def test_stripping_keeps_the_source_of_formulas() -> None:
    root = parse("<body>a<script type='math/tex'>x^2</script>b<script>x()</script>")
    strip_textless(root)
    assert [script.text for script in root.iter("script")] == ["x^2"]
    assert visible_text(root) == "ab"


def test_line_hash_takes_any_string() -> None:
    assert line_hash("a\ud800") == line_hash("a?") != line_hash("a")
