"""The content list of main HTML: its blocks in reading order, typed, each with the XPath it came from.

Version 1. A list of items; absent attributes are null in Spark and left out in JSON.

- `type`: title, paragraph, list, code, equation-interline, equation-inline, simple_table, complex_table, image, audio,
  video. An item is what stands alone: code, formulas and pictures within a text are segments of that.
- `xpath`: of the element in the HTML that was converted, as `templates.dom.parse` reads it.
- `quotes`: XPaths of the block quotes around it, the outermost first.
- `content`, by type:
  title: `title_content` (plain text), `level` (1 to 6), `segments`
  paragraph: `segments`
  list: `list_attribute` (ordered, unordered, definition), `list_nest_level` (levels in it), `items`
  code: `code_content`, `language`
  equation-interline, equation-inline: `math_content`, `math_type` (latex), `by` (what it was found as)
  simple_table: `rows` (segments of each cell), `header` (whether the first row is one), `align` (of each column),
  `html`, `caption`, `footnote`
  complex_table: `html` (rows, cells, spans, and the structure in them), `table_nest_level`, `caption`, `footnote`
  image, audio, video: `url` (absolute), `alt`, `title`, `href` (the link around it), `caption`, `footnote`
- a segment: `t` (text, break, code-inline, equation-inline, image, footnote, footnote-definition, rule), `c` (its
  text), `marks` (strong, em, del, sub, sup; the outermost first), `href` and `link_title` of its link, `url` and
  `title` of a picture. White space is collapsed: texts joined are the text as a browser shows it.
- an entry of a list, in reading order: `level` (from 0), `attribute` (ordered, unordered, term, description, footnote;
  continuation: what follows a nested list in the entry before that), `number`, `label` of a footnote, `checked` of a
  task, `quotes` between it and the entry around it, `head` (it holds nothing but a list), `blocks` (items). Lists in
  lists are entries of deeper levels, because Spark has no recursive types.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa

from templates.dom import PageError, parse
from udfs.conversion.elements import read
from udfs.conversion.flow import Context, Item

VERSION = 1

SEGMENT = pa.struct(
    [
        ("t", pa.string()),
        ("c", pa.string()),
        ("marks", pa.list_(pa.string())),
        ("href", pa.string()),
        ("link_title", pa.string()),
        ("url", pa.string()),
        ("title", pa.string()),
    ]
)
_SEGMENTS = pa.list_(SEGMENT)
_LEAF = [
    ("segments", _SEGMENTS),
    ("title_content", pa.string()),
    ("level", pa.int32()),
    ("code_content", pa.string()),
    ("language", pa.string()),
    ("math_content", pa.string()),
    ("math_type", pa.string()),
    ("by", pa.string()),
    ("html", pa.string()),
    ("rows", pa.list_(pa.list_(_SEGMENTS))),
    ("header", pa.bool_()),
    ("align", pa.list_(pa.string())),
    ("table_nest_level", pa.int32()),
    ("url", pa.string()),
    ("alt", pa.string()),
    ("title", pa.string()),
    ("href", pa.string()),
    ("caption", pa.list_(_SEGMENTS)),
    ("footnote", pa.list_(_SEGMENTS)),
]


def _item(content: list[tuple[str, pa.DataType]]) -> pa.DataType:
    return pa.struct(
        [
            ("type", pa.string()),
            ("xpath", pa.string()),
            ("quotes", pa.list_(pa.string())),
            ("content", pa.struct(content)),
        ]
    )


ENTRY = pa.struct(
    [
        ("level", pa.int32()),
        ("attribute", pa.string()),
        ("number", pa.int64()),
        ("label", pa.string()),
        ("checked", pa.bool_()),
        ("head", pa.bool_()),
        ("quotes", pa.list_(pa.string())),
        ("blocks", pa.list_(_item(_LEAF))),
    ]
)
ITEM = _item(
    [
        *_LEAF,
        ("list_attribute", pa.string()),
        ("list_nest_level", pa.int32()),
        ("items", pa.list_(ENTRY)),
    ]
)
CONTENT_LIST = pa.list_(ITEM)
"""The type of the column `content_list`."""

_XML = re.compile(r"\s*<\?xml\b[^>]*>")
_CLOSED = re.compile(r"<(script|style|title|textarea|iframe|noscript|div|span|p|a|i|b|em|td|th|li)\b([^<>]*?)/>", re.I)


def content_list(html: str, url: str = "") -> list[Item]:
    """Return the content list of HTML that is taken as main content, a fragment or a page.

    url: of the page, against which links are made absolute; a `base` element in the HTML goes before it.
    Raises PageError as `templates.dom.parse` does.
    """
    root = _tree(html)
    if root is None:
        return []
    body = root.find("body")
    alive = list(root.iter())  # lxml would make each element anew whenever it is met again
    context = Context(root, url)
    items = read(root, "/html", context) if body is None else read(body, "/html/body", context)
    del alive
    return items


def _tree(html: str) -> Any:
    if "<?xml" in html[:256] and _XML.match(html):
        html = _CLOSED.sub(r"<\1\2></\1>", html)  # parsed as HTML, an empty XHTML element would never end
    if not html.strip():
        return None
    try:
        return parse(html)
    except PageError as error:
        if error.reason == "empty":
            return None
        raise


def to_json(items: list[Item]) -> str:
    """Return a content list as JSON, with the version of its schema."""
    return json.dumps({"version": VERSION, "items": items}, ensure_ascii=False)
