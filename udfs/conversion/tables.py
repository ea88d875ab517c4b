"""Tables: which hold data and which only lay out a page, and the grid or the reduced HTML of those that hold data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import escape

from lxml.html import HtmlElement

from udfs.conversion.codetext import HIDDEN_STYLE
from udfs.conversion.flow import Item
from udfs.conversion.inline import BREAK, Segment

Read = Callable[[HtmlElement, str], list[Item]]
"""Reads the items of what a cell, or a caption, contains; the string is its XPath."""

_LAYOUT_ROLES = ("presentation", "none")
_EQUATION = re.compile(r"(?:^|[\s_-])(?:ltx_)?(?:eqn?|equation|equationgroup|align)s?(?:$|[\s_-])", re.IGNORECASE)
_ALIGN_STYLE = re.compile(r"text-align\s*:\s*(left|right|center)", re.IGNORECASE)
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6", "article", "section", "main", "form"))
_INLINE_ITEMS = frozenset(("paragraph", "equation-inline", "equation-interline", "image", "title", "audio", "video"))
_MAX_SPAN = 1000
"""HTML limits `colspan` to 1,000 and `rowspan` to 65,534; wider ones are mistakes."""
_NOTHING = frozenset(("script", "style", "template", "noscript", "link", "meta", "input"))
_CELLS = frozenset(("td", "th")) | _NOTHING
_ROWS = frozenset(("tr",)) | _NOTHING
_PARTS = {"tr": _CELLS, "thead": _ROWS, "tbody": _ROWS, "tfoot": _ROWS}
_PARTS["table"] = _ROWS | {"thead", "tbody", "tfoot", "caption", "colgroup", "col"}
_LONG = 400
"""Characters of a cell beyond which a table without any header is no table of data but columns of a page."""


class Cell:
    """A cell: what it contains, how far it reaches, whether it is a header."""

    __slots__ = ("align", "colspan", "header", "items", "rowspan")

    def __init__(self, element: HtmlElement, items: list[Item]) -> None:
        self.items = items
        self.header = element.tag == "th"
        self.colspan, self.rowspan = _span(element, "colspan"), _span(element, "rowspan")
        align = (element.get("align") or "").lower()
        style = element.get("style")
        if not align and style and (match := _ALIGN_STYLE.search(style)):
            align = match[1].lower()
        self.align = align if align in ("left", "right", "center") else ""


def _span(element: HtmlElement, name: str) -> int:
    value = element.get(name)
    return min(max(int(value), 1), _MAX_SPAN) if value and value.strip().isdecimal() else 1


def _rows(table: HtmlElement, place: str) -> Iterator[tuple[str, HtmlElement, str]]:
    """Its rows, each with the group it is in and its XPath, in the order they are shown: the foot last."""
    counts: dict[str, int] = {}
    foot: list[tuple[str, HtmlElement, str]] = []
    for child in table:
        counts[child.tag] = number = counts.get(child.tag, 0) + 1
        here = f"{place}/{child.tag}[{number}]"
        if child.tag == "tr":
            yield "tbody", child, here
        elif child.tag in ("thead", "tbody", "tfoot"):
            rows = (row for row in child if row.tag == "tr")
            group = [(child.tag, row, f"{here}/tr[{index}]") for index, row in enumerate(rows, 1)]
            if child.tag == "tfoot":
                foot += group
            else:
                yield from group
    yield from foot


def is_layout(table: HtmlElement) -> bool:
    """Whether a table only places things on the page: by its role, its shape, or what its cells contain."""
    if table.get("role") in _LAYOUT_ROLES:
        return True
    if _EQUATION.search(table.get("class") or "") or _is_stray(table):
        return True
    widest, nested, headings, long = 0, False, False, False
    for child in table:
        if child.tag in ("caption", "thead"):
            return False
    for _, row, _ in _rows(table, ""):
        cells = [cell for cell in row if cell.tag in ("td", "th")]
        if any(cell.tag == "th" for cell in cells):
            return False
        widest = max(widest, sum(_span(cell, "colspan") for cell in cells))
        for cell in cells:
            nested = nested or next(cell.iter("table"), None) is not None
            headings = headings or next(cell.iter(*_HEADINGS), None) is not None
            long = long or (len(cell) > 3 and sum(len(text) for text in cell.itertext()) > _LONG)
    return widest < 2 or nested or headings or long


def _is_stray(parent: HtmlElement) -> bool:
    """Whether a table, a group of rows or a row contains anything but its parts: only the flow reads all of it."""
    if parent.text and not parent.text.isspace():
        return True
    parts = _PARTS[parent.tag]
    for child in parent:
        if child.tail and not child.tail.isspace():
            return True
        if child.tag not in parts or (child.tag in _PARTS and _is_stray(child)):
            return True
    return False


def table(element: HtmlElement, place: str, read: Read) -> tuple[str, Item] | None:
    """Return the type and the content of a table's item, None if nothing is in it.

    Type "": a table of one cell is what that contains (`items`).
    """
    rows, groups, caption = _read(element, place, read)
    rows, groups = _without_empty(rows, groups)
    if not rows:
        return ("", {"items": caption}) if caption else None
    content: Item = {}
    if caption:
        content["caption"] = [_segments(caption)]
    cells = [cell for row in rows for cell in row]
    if len(cells) == 1 and not caption:
        return "", {"items": cells[0].items}
    if any(cell.colspan > 1 or cell.rowspan > 1 or not _is_inline(cell.items) for cell in cells):
        content["html"] = html(rows, groups)
        content["table_nest_level"] = 1 + max((_nest(cell.items) for cell in cells), default=0)
        return "complex_table", content
    width = max(len(row) for row in rows)
    kept = [column for column in range(width) if any(column < len(row) and row[column].items for row in rows)]
    header = bool(groups[0] == "thead" or all(cell.header for cell in rows[0]))
    align = [_alignment(rows, column) for column in kept]
    content |= {"header": header, "align": align if any(align) else None}
    content["rows"] = [[_segments(row[i].items) if i < len(row) else [] for i in kept] for row in rows]
    content["html"] = html(rows, groups)
    return "simple_table", {name: value for name, value in content.items() if value is not None}


def _read(element: HtmlElement, place: str, read: Read) -> tuple[list[list[Cell]], list[str], list[Item]]:
    rows: list[list[Cell]] = []
    groups: list[str] = []
    caption: list[Item] = []
    for child in element:
        if child.tag == "caption":
            caption += read(child, f"{place}/caption[1]")
    for group, row, here in _rows(element, place):
        cells: list[Cell] = []
        counts = {"td": 0, "th": 0}
        if row.get("hidden") is not None or HIDDEN_STYLE.search(row.get("style") or ""):
            continue
        for cell in row:
            if cell.tag in counts:
                counts[cell.tag] += 1
                items = read(cell, f"{here}/{cell.tag}[{counts[cell.tag]}]")
                cells.append(Cell(cell, items))
        rows.append(cells)
        groups.append(group)
    return rows, groups, caption


def _without_empty(rows: list[list[Cell]], groups: list[str]) -> tuple[list[list[Cell]], list[str]]:
    """Without rows in which nothing is, unless a cell from above or of theirs reaches over them."""
    kept, reach = [], 0
    for number, row in enumerate(rows):
        spans = max((cell.rowspan for cell in row), default=1)
        if any(cell.items for cell in row) or spans > 1 or reach > number:
            kept.append(number)
        reach = max(reach, number + spans)
    return [rows[number] for number in kept], [groups[number] for number in kept]


def _is_inline(items: list[Item]) -> bool:
    return all(item["type"] in _INLINE_ITEMS and not item.get("quotes") for item in items)


def _nest(items: list[Item]) -> int:
    return max((item["content"].get("table_nest_level", 1) for item in items if "table" in item["type"]), default=0)


def _alignment(rows: list[list[Cell]], column: int) -> str:
    found = [row[column].align for row in rows if column < len(row) and row[column].items]
    return found[-1] if found and len(set(found[1:] or found)) == 1 else ""


def _segments(items: list[Item]) -> list[Segment]:
    """The inline content of a cell; its paragraphs are lines."""
    out: list[Segment] = []
    for item in items:
        content = item["content"]
        if out:
            out.append(BREAK)
        if "segments" in content:
            out += content["segments"]
        elif item["type"].startswith("equation"):
            out.append({"t": "equation-inline", "c": content["math_content"]})
        elif item["type"] == "image":
            out.append({"t": "image", "c": content.get("alt", ""), "url": content.get("url")})
        elif out:
            out.pop()
    return out


# --- HTML reduced to structure


def html(rows: list[list[Cell]], groups: list[str]) -> str:
    """Return a table as HTML that keeps only structure: rows, cells and their spans, and what they contain."""
    out = ["<table>"]
    for row, group in zip(rows, groups, strict=True):
        out.append("<tr>")
        for cell in row:
            tag = "th" if cell.header or group == "thead" else "td"
            spans = "".join(
                f' {name}="{value}"'
                for name, value in (("colspan", cell.colspan), ("rowspan", cell.rowspan))
                if value > 1
            )
            out.append(f"<{tag}{spans}>{_html_of(cell.items)}</{tag}>")
        out.append("</tr>")
    out.append("</table>")
    return "".join(out)


def _html_of(items: list[Item]) -> str:
    """What a cell contains: one paragraph by itself, several blocks each in its element."""
    if len(items) == 1 and "segments" in items[0]["content"]:
        return inline_html(items[0]["content"]["segments"])
    return "".join(map(_block_html, items))


def _block_html(item: Item) -> str:
    kind, content = item["type"], item["content"]
    quoted = len(item.get("quotes", ()))
    if kind == "list":
        text = _list_html(content["items"])
    elif kind == "code":
        text = f"<pre>{escape(content['code_content'], quote=False).replace(chr(10), '&#10;')}</pre>"
    elif kind == "equation-interline":
        text = f"$${escape(content['math_content'], quote=False)}$$"
    elif kind == "equation-inline":
        text = f"${escape(content['math_content'], quote=False)}$"
    elif kind in ("simple_table", "complex_table"):
        text = "".join(f"<p>{inline_html(one)}</p>" for one in content.get("caption", ())) + content["html"]
    elif kind in ("image", "audio", "video"):
        one = {"t": "image", "c": content.get("alt", ""), "url": content.get("url")}
        text = inline_html([one]) + "".join(f"<p>{inline_html(part)}</p>" for part in content.get("caption", ()))
    else:
        tag = f"h{content['level']}" if kind == "title" else "p"
        text = f"<{tag}>{inline_html(content['segments'])}</{tag}>"
    return "<blockquote>" * quoted + text + "</blockquote>" * quoted


_LIST_TAGS = {"ordered": ("ol", "li"), "term": ("dl", "dt"), "description": ("dl", "dd")}


def _list_html(entries: list[Item]) -> str:
    out: list[str] = []
    tags: list[str] = []
    for entry in entries:
        outer, inner = _LIST_TAGS.get(entry["attribute"], ("ul", "li"))
        while len(tags) > entry["level"] + 1:
            out.append(f"</{tags.pop()}>")
        if len(tags) == entry["level"] + 1 and tags[-1] != outer and entry["attribute"] != "continuation":
            out.append(f"</{tags.pop()}>")
        while len(tags) < entry["level"] + 1:
            tags.append(outer)
            out.append(f"<{outer}>")
        number = f' value="{entry["number"]}"' if entry.get("number", 1) != 1 and not out[-1].endswith("</li>") else ""
        out.append(f"<{inner}{number}>{_html_of(entry['blocks'])}</{inner}>")
    out += [f"</{tag}>" for tag in reversed(tags)]
    return "".join(out)


_HTML_MARKS = {"strong": "b", "em": "i", "del": "del", "sub": "sub", "sup": "sup"}


def inline_html(segments: list[Segment]) -> str:
    """Return inline content as HTML: marks, links, pictures; formulas as TeX."""
    out: list[str] = []
    for one in segments:
        text = _piece_html(one)
        for mark in reversed(one.get("marks", ())):
            tag = _HTML_MARKS[mark]
            text = f"<{tag}>{text}</{tag}>"
        if one.get("href"):
            text = f'<a href="{escape(one["href"])}">{text}</a>'
        out.append(text)
    return "".join(out)


def _piece_html(one: Segment) -> str:
    text = escape(one["c"], quote=False)
    kind = one["t"]
    if kind == "break":
        return "<br>"
    if kind == "code-inline":
        return f"<code>{text}</code>"
    if kind == "equation-inline":
        return f"${text}$"
    if kind == "equation-interline":
        return f"$${text}$$"
    if kind == "footnote":
        return f"[^{text}]"
    if kind == "image":
        return f'<img src="{escape(one.get("url") or "")}" alt="{escape(one["c"])}">'
    return text
