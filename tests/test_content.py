from __future__ import annotations

import json
from typing import Any

import lxml.html
import pyarrow as pa
import pytest

from templates.dom import flattened
from udfs.conversion.content import CONTENT_LIST, VERSION, content_list, to_json
from udfs.conversion.inline import plain

PAGE = """<body><h1>Title</h1><p>One <b>bold</b> and <a href="/x" title="t">link</a>, <code>f(x)</code>.</p>
<blockquote><p>Quoted</p><ul><li>In it</li></ul></blockquote>
<ul><li>a<ol start="3"><li>b</li></ol>c</li><li><input type="checkbox" checked> d</li></ul>
<dl><dt>term</dt><dd>text</dd></dl><pre><code class="language-js">let a;</code></pre>
<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2</td></tr></table>
<table><tr><th colspan="2">A</th></tr><tr><td>1</td><td>2</td></tr></table>
<figure><img src="i.png" alt="Alt"><figcaption>Caption</figcaption></figure>
<video src="v.mp4"></video><audio src="a.mp3"></audio><p>$$x^2$$</p><p>\\(y\\)</p></body>"""


def items(html: str, url: str = "https://site.example/a/b.html") -> list[dict[str, Any]]:
    return content_list(html, url)


def texts(html: str) -> list[str]:
    return [plain(item["content"]["segments"]) for item in items(html)]


def test_every_type_of_item_is_found_in_order() -> None:
    assert [item["type"] for item in items(PAGE)] == [
        "title", "paragraph", "paragraph", "list", "list", "list", "code", "simple_table", "complex_table", "image",
        "video", "audio", "equation-interline", "equation-inline",
    ]  # fmt: skip


def test_content_list_fits_its_schema_and_json() -> None:
    found = items(PAGE)
    back = pa.array([found], CONTENT_LIST).to_pylist()[0]

    def pruned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: pruned(one) for key, one in value.items() if one is not None}
        return [pruned(one) for one in value] if isinstance(value, list) else value

    assert pruned(back) == pruned(found)
    assert json.loads(to_json(found)) == {"version": VERSION, "items": found}


def test_xpaths_lead_to_the_elements() -> None:
    tree = lxml.html.document_fromstring(PAGE).getroottree()

    def tags(found: list[dict[str, Any]]) -> list[str]:
        out: list[str] = []
        for item in found:
            elements: Any = tree.xpath(item["xpath"])
            assert len(elements) == 1
            out.append(elements[0].tag)
            for entry in item["content"].get("items", ()):
                out += tags(entry["blocks"])
        return out

    assert tags(items(PAGE)) == (
        [
            "h1",
            "p",
            "p",
            "ul",
            "li",
            "ul",
            "li",
            "li",
            "li",
            "li",
            "dl",
            "dt",
            "dd",
            "pre",
            "table",
            "table",
            "img",
            "video",
            "audio",
            "p",
            "p",
        ]
    )


def test_attributes_of_each_type() -> None:
    found = items(PAGE)
    assert found[0]["content"]["title_content"] == "Title" and found[0]["content"]["level"] == 1
    link = next(one for one in found[1]["content"]["segments"] if one.get("href"))
    assert link == {"t": "text", "c": "link", "href": "https://site.example/x", "link_title": "t"}
    assert found[2]["quotes"] == found[3]["quotes"] == ["/html/body/blockquote[1]"]
    entries = found[4]["content"]["items"]
    assert [(one["level"], one["attribute"], one.get("number"), one.get("checked")) for one in entries] == [
        (0, "unordered", None, None),
        (1, "ordered", 3, None),
        (0, "continuation", None, None),
        (0, "unordered", None, True),
    ]
    assert found[4]["content"]["list_nest_level"] == 2
    assert found[5]["content"]["list_attribute"] == "definition"
    assert found[6]["content"] == {"code_content": "let a;", "language": "js"}
    image = {"url": "https://site.example/a/i.png", "alt": "Alt", "caption": [[{"t": "text", "c": "Caption"}]]}
    assert found[9]["content"] == image
    assert found[12]["content"]["math_content"] == "x^2"


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p> a\n b\t c </p>", ["a b c"]),
        ("<p><span>M</span><small>ayor</small> x</p>", ["Mayor x"]),
        ("<p>a<b> b</b><i> c </i> d</p>", ["a b c d"]),
        ("<div>a<div>b</div>c</div>", ["a", "b", "c"]),
        ("<p>図書館は\n来月</p><p>한국\n어</p><p>図書\n<b>館</b></p>", ["図書館は来月", "한국 어", "図書館"]),
        ("<p>co\u00adop\u200ber\ufeffate</p>", ["cooperate"]),
        ("<p>می\u200cخواهم \u200fא</p>", ["می\u200cخواهم \u200fא"]),
        ("<p>5&nbsp;m &check; &amp;amp;</p>", ["5 m ✓ &amp;"]),
        ("<p>a<br>b</p>", ["a b"]),
        ("<p>a<br><br>b</p>", ["a", "b"]),
        ("<p><ruby>表<rp>(</rp><rt>ひょう</rt><rp>)</rp>示</ruby></p>", ["表示"]),
        ("<p>x <q>y <q>z</q></q></p>", ["x “y ‘z’”"]),
        ("<x-a><x-b>a</x-b> b</x-a>", ["a b"]),
        ("<p>\x01a\x7fb</p>", ["ab"]),
    ],
)
def test_white_space_and_characters(html: str, expected: list[str]) -> None:
    assert texts(html) == expected


@pytest.mark.parametrize(
    "hidden",
    [
        '<p style="display: none">no</p>', '<span style="color:red;DISPLAY :none">no</span>', "<p hidden>no</p>",
        '<i aria-hidden="true">no</i>', "<template><p>no</p></template>", "<script>no</script>", "<style>no</style>",
        "<noscript>no</noscript>", "<svg><title>no</title></svg>", "<button>no</button>", "<dialog>no</dialog>",
        "<select><option>no</select>", "<!-- no -->", "<?php no ?>",
    ],
)  # fmt: skip
def test_what_is_hidden_is_no_text(hidden: str) -> None:
    assert texts(f"<p>yes {hidden}yes</p>")[0].startswith("yes")
    assert "no" not in " ".join(texts(f"<p>yes {hidden}yes</p>"))


@pytest.mark.parametrize("style", ["--footer-display: none", "visibility: hidden"])
def test_what_only_looks_hidden_is_text(style: str) -> None:
    assert "shown" in " ".join(texts(f'<p style="{style}">shown</p>'))


def test_a_block_hidden_from_screen_readers_alone_is_text() -> None:
    assert texts('<div aria-hidden="true"><p>shown</p></div>') == ["shown"]


def test_footnotes_are_matched_with_their_marks() -> None:
    html = '<p>x<sup><a href="#n1">[1]</a></sup></p><ol><li id="n1">Note <a href="#r1">↩</a></li></ol>'
    found = items(html)
    assert found[0]["content"]["segments"][1] == {"t": "footnote", "c": "1"}
    (entry,) = found[1]["content"]["items"]
    assert (entry["attribute"], entry["label"]) == ("footnote", "1")
    assert plain(entry["blocks"][0]["content"]["segments"]) == "Note"
    assert texts('<p>x<sup><a href="#gone">1</a></sup></p>') == ["x1"]


def test_addresses_are_absolute_by_base_and_url() -> None:
    html = '<html><head><base href="/v2/"></head><body><a href="p.html">a</a> <a href="javascript:x()">b</a></body>'
    segments = items(html)[0]["content"]["segments"]
    assert segments[0]["href"] == "https://site.example/v2/p.html"
    assert "href" not in segments[1]
    assert (
        content_list('<a href="http://[bad">a</a>', "https://e.x")[0]["content"]["segments"][0]["href"] == "http://[bad"
    )


def test_permanent_links_of_headings_are_no_text() -> None:
    assert texts('<h2>Usage<a class="headerlink" href="#usage">¶</a></h2>') == ["Usage"]


def test_elements_nested_deeper_than_the_parser_goes_keep_their_text() -> None:
    depth = 6000
    html = "<div>" * depth + "<p>one</p><p>two</p>" + "</div>" * depth + "<p>three</p>"
    assert texts(html) == ["one", "two", "three"]
    assert texts("<b>" * depth + "one<i>two") == ["onetwo"]
    assert flattened("<p><b>a</b></p>", 1) == "<p>a</p>"


def test_what_follows_the_end_of_the_document_is_text() -> None:
    assert texts("<html><body><p>a</p></body></html><p>b</p>") == ["a", "b"]


@pytest.mark.parametrize(
    "html", ["", "   ", "<!-- x -->", "<body></body>", "<p></p>", "<ul><li></li></ul>", "<table></table>"]
)
def test_nothing_gives_nothing(html: str) -> None:
    assert items(html) == []


def test_a_converted_tree_is_read_once_whatever_the_nesting_of_tables() -> None:
    html = "<table><tr><th>a</th></tr><tr><td>" * 60 + "deep" + "</td></tr></table>" * 60
    assert json.dumps(items(html)).count("deep") >= 1
