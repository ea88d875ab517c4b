from __future__ import annotations

import html as entities
import re
from typing import Any

import lxml.html
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from spark_jobs.convert import convert
from templates.dom import PageError, parse
from udfs.conversion.content import content_list
from udfs.conversion.markdown import markdown
from udfs.conversion.spans import Modes


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<h2>A<br>b</h2>", "## A b"),
        ("<h3>C #</h3>", "### C \\#"),
        ("<p>a<br>b</p>", "a  \nb"),
        ("<p>a</p><hr><p>b</p>", "a\n\n---\n\nb"),
        ("<p>x <b>b </b><i>i</i><s>s</s></p>", "x **b** *i*~~s~~"),
        ("<p><b>a <i>b</i></b><i> c</i></p>", "**a b** c"),
        ("<p>10<sup>6</sup> H<sub>2</sub>O</p>", "10<sup>6</sup> H<sub>2</sub>O"),
        ("<b>Note:</b>text", "Note:text"),
        ("<ul><li>a<ul><li>b</ul><li>c</ul>", "- a\n  - b\n- c"),
        ("<ol start=9><li>a<li>b<ul><li>c</ul></ol>", "9. a\n10. b\n    - c"),
        ("<ol><li>a<li value=5>b</ol>", "1. a\n5. b"),
        ("<ol reversed><li>a<li>b</ol>", "2. a\n1. b"),
        ("<ul><li>a</ul><ul><li>b</ul>", "- a\n\n* b"),
        ("<ul><li><p>a</p><p>b</p><li>c</ul>", "- a\n\n  b\n\n- c"),
        ("<ul><li><ul><li>a</ul></ul>", "- - a"),
        ("<ul><li>a<pre>x\n\ny</pre><li>b</ul>", "- a\n\n  ```\n  x\n\n  y\n  ```\n\n- b"),
        ("<ul><li>a<blockquote>q</blockquote></ul>", "- a\n\n  > q"),
        ("<ul><li>a<ol><li>b</ol>c</ul>", "- a\n  1. b\n\n  c"),
        ("<ul><li><input type=checkbox> a<li><input type=checkbox checked> b</ul>", "- [ ] a\n- [x] b"),
        ("<dl><dt>t<dd>d<dd>e<dt>u<dd>f</dl>", "t\n: d\n: e\n\nu\n: f"),
        ("<dl><dt>t<dd><ul><li>a<li>b</ul></dl>", "t\n- a\n- b"),
        ("<dl><dt>t<dd><pre>x</pre></dl>", "t\n\n```\nx\n```"),
        ("<blockquote>a<blockquote>b</blockquote></blockquote>c", "> a\n>\n> > b\n\nc"),
        ("<blockquote>a</blockquote><blockquote>b</blockquote>", "> a\n\n> b"),
        ("<blockquote><ul><li>a<li>b</ul></blockquote>", "> - a\n> - b"),
        ("<p>x<sup><a href='#n'>1</a></sup></p><ol><li id=n>N</ol>", "x[^1]\n\n[^1]: N"),
        ("<details><summary>s</summary>d</details>", "s\n\nd"),
        ("<pre>a\n```\nb</pre>", "````\na\n```\nb\n````"),
        ("<p><code>a`b</code> <code>`</code></p>", "``a`b`` `` ` ``"),
        ("<p>$$a$$</p>", "$$\na\n$$"),
    ],
)
def test_blocks_and_marks(html: str, expected: str) -> None:
    assert convert(html) == expected + "\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("snake_case_name", "snake_case_name"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("price* and more", "price* and more"),
        ("*a* _b_ `c`", "\\*a\\* \\_b\\_ \\`c\\`"),
        ("# h", "\\# h"),
        ("#tag", "#tag"),
        ("1986. A", "1986\\. A"),
        ("- a", "\\- a"),
        ("> a", "\\> a"),
        ("a < b && c > d", "a < b && c > d"),
        ("<b>", "\\<b>"),
        ("&lt;", "\\&lt;"),
        ("AT&T", "AT&T"),
        ("[a] (b)", "[a] (b)"),
        ("[a](b)", "[a\\](b)"),
        ("[a]: b", "\\[a]: b"),
        ("costs $5 and $10", "costs $5 and $10"),
        ("C:\\dir \\* x", "C:\\dir \\\\* x"),
        ("~5 and ~6", "~5 and ~6"),
        ("===", "\\==="),
    ],
)
def test_only_what_would_be_markup_is_escaped(text: str, expected: str) -> None:
    assert convert(f"<p>{entities.escape(text)}</p>") == expected + "\n"


def test_modes_of_links_and_pictures() -> None:
    html = '<p><a href="/u_(x)" title="T">l [m]</a> <a href="/i"><img src="p q.png" alt="A"></a> t</p>'
    url = "https://e.x/d/"
    assert convert(html, url=url) == "l [m] t\n"
    assert convert(html, url=url, images="alt") == "l [m] A t\n"
    assert convert(html, url=url, links="inline") == '[l \\[m\\]](https://e.x/u_(x) "T") t\n'
    assert convert(html, url=url, links="inline", images="inline") == (
        '[l \\[m\\]](https://e.x/u_(x) "T") [![A](https://e.x/d/p%20q.png)](https://e.x/i) t\n'
    )


def test_markdown_needs_the_content_list_alone() -> None:
    import json

    items = content_list("<h1>a</h1><ul><li>b<pre>c</pre></ul>")
    assert markdown(json.loads(json.dumps(items))) == markdown(items)


# --- laws


_INLINE = ["b", "i", "em", "strong", "a", "span", "del", "code", "sub", "sup", "u", "q"]
_BLOCK = [
    "p",
    "div",
    "blockquote",
    "ul",
    "ol",
    "li",
    "h1",
    "h3",
    "section",
    "table",
    "tr",
    "td",
    "th",
    "dl",
    "dt",
    "dd",
    "pre",
    "figure",
    "figcaption",
    "details",
]
_CHARACTERS = "ab1 \n*_`#>+-.|[](){}!~<&;:=x\u4e2d\u3002\xa0'\""
_SPACED = [*_BLOCK, "br", "hr", "thead", "tbody", "body"]


@st.composite
def _element(draw: st.DrawFn, children: st.SearchStrategy[str]) -> str:
    tag = draw(st.sampled_from(_INLINE + _INLINE + _BLOCK + ["br", "hr"]))
    if tag in ("br", "hr"):
        return f"<{tag}>"
    href = ' href="/u_(x"' if tag == "a" else ""
    return f"<{tag}{href}>{''.join(draw(st.lists(children, max_size=4)))}</{tag}>"


def _html(characters: str) -> st.SearchStrategy[str]:
    texts = st.text(alphabet=characters, max_size=12).map(lambda text: entities.escape(text, quote=False))
    return st.lists(st.recursive(texts, _element, max_leaves=14), max_size=6).map("".join)


def _visible(root: Any, between: str) -> str:
    """The text of a tree, blocks set apart by a string."""
    blocks = set(_SPACED)
    out: list[str] = []

    def visit(element: Any) -> None:
        edge = between if element.tag in blocks else ""
        out.append(edge + (element.text or ""))
        for child in element:
            visit(child)
            out.append(child.tail or "")
        out.append(edge)

    visit(root)
    return re.sub("[“”‘’]", "", "".join(out))


def _rendered(text: str) -> Any:
    markdown_it = pytest.importorskip("markdown_it")
    renderer = markdown_it.MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    return lxml.html.fromstring(f"<div>{renderer.render(text)}</div>")


def _squeezed(text: str) -> str:
    return re.sub(r"[\s\u3000]+", "", text).replace(":", "")  # a description begins with a colon


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(_html(_CHARACTERS), st.sampled_from(["none", "inline"]))
def test_the_text_of_rendered_markdown_is_the_visible_text(html: str, links: Any) -> None:
    html = f"<body>{html}x"
    text = markdown(content_list(html, "https://e.x/"), Modes(links))
    shown = _visible(_rendered(text), "")
    assert _squeezed(shown) == _squeezed(_visible(parse(html).find("body"), "")), text


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(_html("ab1 \n.,x"))
def test_words_are_neither_split_nor_glued(html: str) -> None:
    assume("<code" not in html)  # of several lines it is a block
    html = f"<body>{html}x"
    shown = _visible(_rendered(convert(html)), " ").replace(":", " ")  # a description begins with a colon
    assert shown.split() == _visible(parse(html).find("body"), " ").split()


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.one_of(
        _html(_CHARACTERS + "$\\\u200f\U0001f389"), st.text(max_size=200), st.text("<>/ab='\"!-&;#x1 ", max_size=200)
    )
)
def test_conversion_never_raises_and_is_deterministic(html: str) -> None:
    try:
        first = convert(html, links="inline", images="inline")
    except PageError:
        return
    assert convert(html, links="inline", images="inline") == first
    first.encode("utf-8")


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.sampled_from(["<p>{}", "<div>{}</div>", "<ul><li>{}</ul>", "<b>{}</b><br>", "<blockquote>{}</blockquote>"]),
        max_size=12,
    )
)
def test_order_is_kept(patterns: list[str]) -> None:
    html = "".join(pattern.format(f"word{number}x") for number, pattern in enumerate(patterns))
    assert re.findall(r"word(\d+)x", convert(html)) == [str(number) for number in range(len(patterns))]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>x<br><img src=a></p>", "x\n"),
        (
            "<table><tr><th>n<th>m</tr><tr><td><div>1</div><div><img src=a></div><td>2</table>",
            "| n | m |\n| --- | --- |\n| 1 | 2 |\n",
        ),
    ],
)
def test_a_picture_that_is_not_shown_leaves_no_line_break(html: str, text: str) -> None:
    assert convert(html) == text
