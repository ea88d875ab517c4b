from __future__ import annotations

import lxml.html
from hypothesis import given
from hypothesis import strategies as st
from lxml.html import HtmlElement

from templates.dom import parse, strip_textless
from templates.labels import Addresses
from udfs.blocks import SILENT_TAGS, Block, segment


def blocks_of(html: str) -> list[Block]:
    return list(segment(parse(html)))


def described(html: str) -> list[tuple[str, list[str]]]:
    addresses = Addresses()
    return [(" ".join(block.text.split()), block.paths(addresses)) for block in blocks_of(html)]


def visible_text(element: HtmlElement) -> str:
    if element.tag in SILENT_TAGS:
        return ""
    return (element.text or "") + "".join(visible_text(child) + (child.tail or "") for child in element)


def test_an_element_without_blocks_below_it_is_one_block() -> None:
    assert described("<body><p>One <b>bold <i>word</i></b><br>here.</p><h1>Two</h1></body>") == [
        ("One bold wordhere.", ["/html/body/p"]),
        ("Two", ["/html/body/h1"]),
    ]


def test_text_directly_between_elements_is_a_block_of_its_nodes() -> None:
    assert described("<body><div>before<p>in</p>between <a href='#'>link</a> and<p>in</p>after</div></body>") == [
        ("before", ["/html/body/div/text()[1]"]),
        ("in", ["/html/body/div/p[1]"]),
        ("between link and", ["/html/body/div/text()[2]", "/html/body/div/a", "/html/body/div/text()[3]"]),
        ("in", ["/html/body/div/p[2]"]),
        ("after", ["/html/body/div/text()[4]"]),
    ]


def test_an_inline_element_around_blocks_is_entered() -> None:
    html = "<body><a href='#'><span>label<div>card</div></span></a>x</body>"
    assert described(html) == [
        ("label", ["/html/body/a/span/text()"]),
        ("card", ["/html/body/a/span/div"]),
        ("x", ["/html/body/text()"]),
    ]
    assert [block.link_chars for block in blocks_of(html)] == [5, 4, 0]


def test_link_text_is_counted() -> None:
    html = "<body><p>see <b>the <a href='#'>docs</a></b> or <a href='#'>ask</a></p></body>"
    (block,) = blocks_of(html)
    assert block.link_chars == len("docs") + len("ask")


def test_silent_text_is_in_no_block() -> None:
    html = "<head><title>t</title></head><body><p>a<script>var x</script>b</p><noscript>n</noscript></body>"
    assert described(html) == [("ab", ["/html/body/p/text()[1]", "/html/body/p/text()[2]"])]


def test_an_image_goes_with_the_text_around_it() -> None:
    html = "<body><div><p>one</p>text <img src='i.png'></div></body>"
    assert described(html)[1] == ("text", ["/html/body/div/text()", "/html/body/div/img"])
    html = "<body><div><img src='i.png'><p>one</p>text</div></body>"
    assert described(html)[1] == ("text", ["/html/body/div/text()"])


def test_table_cells_and_nested_lists() -> None:
    html = "<body><table><tr><th>k<td>v</table><ul><li>a<ul><li>b</ul><li>c</ul></body>"
    assert [text for text, _ in described(html)] == ["k", "v", "a", "b", "c"]


def test_depth_needs_no_recursion() -> None:
    html = "<body>" + "<div><b>x" * 900 + "</body>"
    assert len(blocks_of(html)) == 900


TAGS = st.sampled_from(["div", "p", "span", "a", "b", "ul", "li", "table", "td", "script", "br", "img", "o:p"])
PIECES = st.lists(
    st.one_of(TAGS.map("<{}>".format), TAGS.map("</{}>".format), st.sampled_from(["x", " ", "é<!--c-->"]))
)


@given(PIECES)
def test_every_visible_text_is_in_exactly_one_block_and_paths_lead_to_it(pieces: list[str]) -> None:
    root = parse("<html><body><i>start</i>" + "".join(pieces))
    blocks = list(segment(root))
    assert "".join("".join(block.text for block in blocks).split()) == "".join(visible_text(root).split())
    addresses = Addresses()
    paths = [path for block in blocks for path in block.paths(addresses)]
    assert len(paths) == len(set(paths))
    for block in blocks:
        if any(":" in path for path in block.paths(addresses)):
            continue  # not a name that XPath can look for
        found = [node for path in block.paths(addresses) for node in root.xpath(path)]
        texts = [node.text_content() if isinstance(node, lxml.html.HtmlElement) else node for node in found]
        assert "".join(texts) == block.text


def test_a_page_whose_text_is_all_in_noscript_is_read_from_there() -> None:
    words = "Readers without scripts see the whole thread here, post after post. " * 5
    hidden = f"<body><noscript><div class='post'><p>{words}</p></div></noscript><script>run()</script></body>"
    root = parse(hidden)
    assert [" ".join(block.text.split()) for block in segment(root)] == [words.strip()]
    strip_textless(root)
    assert root.find("body/div/div").get("class") == "post"
    beside = hidden.replace("<script>", f"<p>{words} And here is more of it.</p><script>")
    assert [block.element.tag for block in segment(parse(beside))] == ["p"]
    root = parse(beside)
    strip_textless(root)
    assert root.find("body/div") is None
