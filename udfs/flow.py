"""The flow of a page: one pass over a tree that writes its blocks, and the inline content of each, in order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urljoin

from lxml.html import HtmlElement

from udfs import code, footnotes, math, media, paragraphs
from udfs.inline import PLAIN, Line, Segment, Style

Item = dict[str, Any]
Leave = Callable[[], None]

_HIDDEN_STYLE = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse))", re.IGNORECASE)
_BLOCK_STYLE = re.compile(r"display\s*:\s*(?:block|flex|grid|table|list-item|flow-root)", re.IGNORECASE)
_LITERAL_STYLE = re.compile(r"white-space\s*:\s*(?:pre|break-spaces)", re.IGNORECASE)
_INTEGER = re.compile(r"\s*([+-]?\d{1,9})\s*\Z")
_PERMALINK = frozenset(("¶", "#", "§", "🔗", "⚓", "∞", "link", "permalink"))

SKIP = frozenset(
    ["script", "style", "template", "head", "noscript", "title", "meta", "link", "base", "param", "area", "svg", "canvas", "iframe", "select", "option", "optgroup", "datalist", "colgroup", "col", "frameset", "noframes"]
)
BLOCKS = frozenset(
    ["address", "article", "aside", "body", "caption", "center", "details", "dialog", "div", "fieldset", "figcaption", "footer", "form", "header", "hgroup", "html", "legend", "main", "nav", "p", "search", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "dl", "pre", "listing", "xmp", "plaintext", "textarea"]
)
_LISTS = {"ul": "unordered", "menu": "unordered", "dir": "unordered", "ol": "ordered", "dl": "definition"}
_ENTRIES = {"li": "item", "dt": "term", "dd": "description"}
_MARKS = {
    "b": "strong", "strong": "strong", "i": "em", "em": "em",
    "del": "del", "s": "del", "strike": "del", "sub": "sub", "sup": "sup",
}  # fmt: skip
_LITERAL = frozenset(("pre", "listing", "xmp", "textarea"))
_CODE_TAGS = frozenset(("pre", "listing", "xmp", "table", "code"))
_CODE_HOLDERS = frozenset(("p", "div", "dd", "center", "figure"))
_MATH_TAGS = frozenset(("math", "script", "img", "mjx-container"))
_MAX_TABLES = 24
"""Tables nested deeper are flattened: each level reads its cells by itself."""


class Context:
    """What all flows of a page share: its address, and which elements are footnotes."""

    def __init__(self, root: HtmlElement, url: str) -> None:
        self.root = root
        self.base = url
        base = next(root.iter("base"), None)
        if base is not None and base.get("href"):
            self.base = self.address(base.get("href", ""))
        self.notes = footnotes.Notes(root)

    def address(self, href: str) -> str:
        """Return an address as an absolute one, if the page's own is known."""
        href = href.strip()
        if not self.base or href.startswith(("https://", "http://", "mailto:")):
            return href
        try:
            return urljoin(self.base, href)
        except ValueError:
            return href


class _List:
    """A list that is open: where its entries go, and what its next entry is."""

    def __init__(self, entries: list[Item], level: int, attribute: str, number: int, step: int) -> None:
        self.entries, self.level, self.attribute = entries, level, attribute
        self.number, self.step = number, step
        self.entry: Item | None = None


class Flow:
    """Reads a tree once and collects its items; `run` is all that others call."""

    def __init__(self, context: Context, tables: int = 0) -> None:
        self.context, self.tables = context, tables
        self.items: list[Item] = []
        self.line = Line()
        self.style = PLAIN
        self.block = ""
        self.heading = 0
        self.literal = False
        self.quotes: list[str] = []
        self.lists: list[_List] = []
        self.quoted = 0
        self.image = ""  # the last picture's XPath

    def run(self, root: HtmlElement, place: str) -> list[Item]:
        """Return the items of what an element contains. `place` is its XPath."""
        self.block = place
        self._walk(root, place)
        self.flush()
        return self.items

    def _walk(self, root: HtmlElement, place: str) -> None:
        stack: list[tuple[Iterator[HtmlElement], HtmlElement, Leave | None, str, dict[str, int]]]
        stack = [(iter(root), root, None, place, {})]
        add = self.add
        if root.text:
            add(root.text)
        while stack:
            children, element, leave, place, counts = stack[-1]
            child = next(children, None)
            if child is None:
                stack.pop()
                if leave is not None:
                    leave()
                if stack and element.tail:
                    add(element.tail)
                continue
            tag = child.tag
            if not isinstance(tag, str):
                continue
            counts[tag] = number = counts.get(tag, 0) + 1
            here = f"{place}/{tag}[{number}]" if ":" not in tag else f"{place}/*[name()='{tag}'][{number}]"
            done, leave = self.enter(child, tag, here)
            if not done:
                if child.text:
                    add(child.text)
                if len(child):
                    stack.append((iter(child), child, leave, here, {}))
                    continue
                if leave is not None:
                    leave()
            if child.tail:
                add(child.tail)

    def add(self, text: str) -> None:
        """Add a text node."""
        if self.literal:
            self.line.literal(text, self.style)
        else:
            self.line.text(text, self.style)

    def enter(self, element: HtmlElement, tag: str, place: str) -> tuple[bool, Leave | None]:
        """Begin an element: whether it is done with, and what is to be done at its end."""
        classes = element.get("class")
        if (classes is not None or tag in _MATH_TAGS) and self._formula(element, tag, place):
            return True, None
        if tag in SKIP:
            return tag != "template" or element.get("shadowrootmode") is None, None
        style = element.get("style")
        if (style is not None and _HIDDEN_STYLE.search(style)) or element.get("hidden") is not None:
            return True, None
        if element.get("aria-hidden") == "true" and tag not in BLOCKS:
            return True, None
        if (
            classes is not None
            or tag in _CODE_TAGS
            or (tag in _CODE_HOLDERS and len(element) and element[0].tag == "code")
        ):
            found = code.block(element)
            if found is not None:
                self._code(found, place)
                return True, None
        handler = _HANDLERS.get(tag)
        if handler is not None:
            return handler(self, element, tag, place)
        if style is not None:
            if _BLOCK_STYLE.search(style):
                return _block(self, element, tag, place)
            if _LITERAL_STYLE.search(style):
                return False, self._literal()
        if classes is not None and tag == "span" and "footnote" in classes:
            return self._note(element)
        return False, None

    # --- blocks

    def put(self, kind: str, content: Item, place: str) -> None:
        """Add an item where the flow stands: in the open entry of a list, or on the page."""
        item: Item = {"type": kind, "xpath": place, "content": content}
        if self.quotes:
            item["quotes"] = list(self.quotes)
        self.sink().append(item)

    def sink(self) -> list[Item]:
        """Return the list that the next item goes to."""
        if not self.lists:
            return self.items
        top = self.lists[-1]
        if top.entry is None:
            top.entry = {"level": top.level, "attribute": "continuation", "blocks": []}
            top.entries.append(top.entry)
        blocks: list[Item] = top.entry["blocks"]
        return blocks

    def flush(self) -> None:
        """End the block of text that is being read."""
        if not self.line:
            return
        segments = self.line.take()
        if self.heading:
            segments = paragraphs.heading(segments)
            if segments:
                self.put("title", paragraphs.title(segments, self.heading), self.block)
            return
        for kind, content in paragraphs.units(segments):
            self.put(kind, content, self.image if kind == "image" else self.block)

    def boundary(self) -> None:
        """End a line at the edge of a block; within a heading that is but a blank."""
        if self.heading:
            self.line.blank()
        else:
            self.flush()

    def _literal(self) -> Leave:
        before, self.literal = self.literal, True

        def leave() -> None:
            self.literal = before

        return leave

    def _code(self, found: code.Code, place: str) -> None:
        if not found.code:
            self.boundary()
            return
        if self.heading and "\n" not in found.code:
            self.line.segment({"t": "code-inline", "c": found.code}, self.style)
            return
        self.flush()
        content: Item = {"code_content": found.code}
        if found.language:
            content["language"] = found.language
        self.put("code", content, place)

    def _formula(self, element: HtmlElement, tag: str, place: str) -> bool:
        found = math.formula(element)
        if found is None:
            return False
        if not found.latex:
            return True
        if found.display and not self.heading:
            self.flush()
            self.put("equation-interline", paragraphs.equation(found), place)
        else:
            self.line.segment({"t": "equation-inline", "c": found.latex}, self.style)
        return True

    def _note(self, element: HtmlElement) -> tuple[bool, Leave | None]:
        label = self.context.notes.reference(element)
        if label is None:
            return False, None
        self.line.segment({"t": "footnote", "c": label}, PLAIN)
        return True, None


Entered = tuple[bool, Leave | None]


def _block(flow: Flow, element: HtmlElement, tag: str, place: str) -> Entered:
    flow.boundary()
    before, flow.block = flow.block, place
    style = element.get("style")
    literal = tag in _LITERAL or (style is not None and _LITERAL_STYLE.search(style) is not None)
    was = flow.literal
    flow.literal = literal or was
    note = flow.context.notes.definition(element) if flow.context.notes else None
    if note is not None:
        flow.line.segment({"t": "footnote-definition", "c": note}, PLAIN)

    def leave() -> None:
        flow.boundary()
        flow.block, flow.literal = before, was

    return False, leave


def _heading(flow: Flow, element: HtmlElement, tag: str, place: str) -> Entered:
    flow.flush()
    before, flow.block = flow.block, place
    outer, flow.heading = flow.heading, int(tag[1])

    def leave() -> None:
        flow.flush()
        flow.block, flow.heading = before, outer

    return False, leave


def _quote(flow: Flow, element: HtmlElement, tag: str, place: str) -> Entered:
    flow.flush()
    before, flow.block = flow.block, place
    quotes, flow.quotes = flow.quotes, [*flow.quotes, place]

    def leave() -> None:
        flow.flush()
        flow.block, flow.quotes = before, quotes

    return False, leave


def _list(flow: Flow, element: HtmlElement, tag: str, place: str) -> Entered:
    flow.flush()
    open_list(flow, element, tag, place)
    return False, lambda: close_list(flow)


def open_list(flow: Flow, element: HtmlElement, tag: str, place: str) -> None:
    """Begin a list: an item of its own, or a deeper level of the one that is open."""
    attribute = _LISTS.get(tag, "unordered")
    number, step = 1, 1
    if tag == "ol":
        start = _INTEGER.match(element.get("start") or "")
        if element.get("reversed") is not None:
            step = -1
            number = sum(child.tag == "li" for child in element)
        number = int(start[1]) if start and int(start[1]) >= 0 else number  # Markdown has no other
    if flow.lists:
        top = flow.lists[-1]
        flow.lists.append(_List(top.entries, top.level + 1, attribute, number, step))
        return
    last = flow.items[-1] if flow.items else None
    if tag == "" and last is not None and last["type"] == "list" and last["xpath"] == place:
        entries = last["content"]["items"]  # entries without a list, one after the other
    else:
        entries = []
        flow.put("list", {"list_attribute": attribute, "list_nest_level": 1, "items": entries}, place)
    flow.lists.append(_List(entries, 0, attribute, number, step))


def close_list(flow: Flow) -> None:
    """End a list; what follows in the entry around it is a continuation of that."""
    flow.flush()
    closed = flow.lists.pop()
    if flow.lists:
        if closed.entries and closed.entries[-1] is not flow.lists[-1].entry:
            flow.lists[-1].entry = None
        return
    entries = closed.entries
    entries[:] = [entry for entry in entries if entry["blocks"] or entry.get("head")]
    if not entries:
        flow.items.pop()
        return
    flow.items[-1]["content"]["list_nest_level"] = 1 + max(entry["level"] for entry in entries)


def _entry(flow: Flow, element: HtmlElement, tag: str, place: str) -> Entered:
    flow.flush()
    implicit = not flow.lists
    if implicit:
        open_list(flow, element, "", place.rpartition("/")[0])
    before, flow.block = flow.block, place
    top = flow.lists[-1]
    kind = _ENTRIES[tag]
    entry: Item = {"level": top.level, "attribute": kind if kind != "item" else "unordered", "blocks": []}
    if kind == "item" and top.attribute == "ordered":
        value = _INTEGER.match(element.get("value") or "")
        top.number = int(value[1]) if value and int(value[1]) >= 0 else top.number
        entry |= {"attribute": "ordered", "number": top.number}
        top.number += top.step
    label = flow.context.notes.definition(element) if flow.context.notes else None
    if label is not None:
        entry |= {"attribute": "footnote", "label": label}
    if flow.quotes and top.level:
        entry["quotes"] = list(flow.quotes)
    quotes, flow.quotes = flow.quotes, []
    if implicit or top.level == 0:
        pass
    elif len(flow.lists) > 1 and flow.lists[-2].entry is not None and not flow.lists[-2].entry["blocks"]:
        flow.lists[-2].entry["head"] = True  # "- - text": its marker stands before that of this one
    top.entry = entry
    top.entries.append(entry)

    def leave() -> None:
        flow.flush()
        flow.block, flow.quotes, top.entry = before, quotes, None
        if implicit:
            close_list(flow)

    return False, leave


def _mark(flow: Flow, element: HtmlElement, tag: str, place: str) -> Entered:
    if tag == "sup" and (label := flow.context.notes.reference(element)) is not None:
        flow.line.segment({"t": "footnote", "c": label}, PLAIN)
        return True, None
    before, mark = flow.style, _MARKS[tag]
    if mark not in before.marks:
        flow.style = before._replace(marks=(*before.marks, mark))

    def leave() -> None:
        flow.style = before

    return False, leave


def _link(flow: Flow, element: HtmlElement, tag: str, place: str) -> Entered:
    href = (element.get("href") or "").strip()
    if href.startswith("#"):
        if flow.heading and len(element) <= 1 and footnotes.short_text(element).strip().lower() in _PERMALINK:
            return True, None
        if flow.context.notes.is_backlink(element):
            return True, None
        label = flow.context.notes.reference(element)
        if label is not None:
            flow.line.segment({"t": "footnote", "c": label}, PLAIN)
            return True, None
    if not href or href[:11].lower() == "javascript:":
        return False, None
    before = flow.style
    flow.style = Style(before.marks, flow.context.address(href), element.get("title") or None)

    def leave() -> None:
        flow.style = before

    return False, leave


def _break(flow: Flow, element: HtmlElement, tag: str, place: str) -> Entered:
    if flow.heading:
        flow.line.blank()
    else:
        flow.line.line_break()
    return False, None  # libxml2 leaves nothing in it


def _rule(flow: Flow, element: HtmlElement, tag: str, place: str) -> Entered:
    flow.flush()
    flow.put("paragraph", {"segments": [{"t": "rule", "c": ""}]}, place)
    return True, None


def _inline_code(flow: Flow, element: HtmlElement, tag: str, place: str) -> Entered:
    for line_break in element.iter("br"):
        line_break.tail = f" {line_break.tail or ''}"
    text = code.inline(element)
    if text is None:
        return False, None
    before = "".join(element.itertext())
    if before[:1].isspace():
        flow.line.blank()
    if text:
        flow.line.segment({"t": "code-inline", "c": text}, flow.style)
    if before[-1:].isspace():
        flow.line.blank()
    return True, None


def _image(flow: Flow, element: HtmlElement, tag: str, place: str) -> Entered:
    text = media.emoji(element)
    if text is not None:
        flow.line.text(text, flow.style)
        return True, None
    found = media.image(element, flow.context.address)
    if found is not None:
        segment: Segment = {"t": "image", "c": found["alt"], "url": found["url"]}
        if found["title"]:
            segment["title"] = found["title"]
        flow.line.segment(segment, flow.style)
        flow.image = place
    return True, None


def _media(flow: Flow, element: HtmlElement, tag: str, place: str) -> Entered:
    kind = tag if tag in ("audio", "video") else "image" if media.is_picture(element) else ""
    found = media.media(element, flow.context.address) if kind else None
    if found is not None:
        flow.flush()
        flow.put(kind, {name: value for name, value in found.items() if value}, place)
    elif tag in ("audio", "video"):
        return False, None
    return tag != "embed", None  # libxml2 takes what follows an `embed` for its content


def _checkbox(flow: Flow, element: HtmlElement, tag: str, place: str) -> Entered:
    entry = flow.lists[-1].entry if flow.lists else None
    if entry is not None and element.get("type") == "checkbox" and not entry["blocks"] and not flow.line:
        entry["checked"] = element.get("checked") is not None
    return True, None


def _inline_quote(flow: Flow, element: HtmlElement, tag: str, place: str) -> Entered:
    opening, closing = "“”" if flow.quoted % 2 == 0 else "‘’"
    flow.line.text(opening, flow.style)
    flow.quoted += 1

    def leave() -> None:
        flow.quoted -= 1
        flow.line.text(closing, flow.style)

    return False, leave


def _figure(flow: Flow, element: HtmlElement, tag: str, place: str) -> Entered:
    flow.flush()
    before, flow.block = flow.block, place
    sink = flow.sink() if not flow.lists or flow.lists[-1].entry is not None else None
    start = len(sink) if sink is not None else 0

    def leave() -> None:
        flow.flush()
        flow.block = before
        if sink is not None:
            paragraphs.attach_captions(sink, start, place)

    return False, leave


def _button(flow: Flow, element: HtmlElement, tag: str, place: str) -> Entered:
    """A button is no text, unless it is the heading of what it opens."""
    return not flow.heading and element.get("aria-expanded") is None, None


def _reading(flow: Flow, element: HtmlElement, tag: str, place: str) -> Entered:
    """How a word is read: left out, so that the words of a text stay together."""
    return any(one.tag == "ruby" for _, one in zip(range(3), element.iterancestors(), strict=False)), None


def _dialog(flow: Flow, element: HtmlElement, tag: str, place: str) -> Entered:
    return (True, None) if element.get("open") is None else _block(flow, element, tag, place)


def _table(flow: Flow, element: HtmlElement, tag: str, place: str) -> Entered:
    from udfs import tables  # a table's cells are flows

    if flow.tables >= _MAX_TABLES or tables.is_layout(element):
        return _layout(flow, element, tag, place)
    found = tables.table(element, place, flow.context, flow.tables + 1)
    flow.flush()
    if found is None:
        return True, None
    kind, content = found
    if kind == "":
        flow.sink().extend(content["items"])
    else:
        flow.put(kind, content, place)
    return True, None


def _layout(flow: Flow, element: HtmlElement, tag: str, place: str) -> Entered:
    done, end = _block(flow, element, tag, place)
    flow.tables += 1

    def leave() -> None:
        flow.tables -= 1
        if end is not None:
            end()

    return done, leave


_Handler = Callable[[Flow, HtmlElement, str, str], Entered]
_HANDLERS: dict[str, _Handler] = dict.fromkeys(BLOCKS, _block)
_HANDLERS |= dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), _heading)
_HANDLERS |= dict.fromkeys(_LISTS, _list) | dict.fromkeys(_ENTRIES, _entry) | dict.fromkeys(_MARKS, _mark)
_HANDLERS |= dict.fromkeys(("code", "tt", "kbd", "samp"), _inline_code)
_HANDLERS |= dict.fromkeys(("audio", "video", "embed", "object"), _media)
_HANDLERS |= {"a": _link, "br": _break, "hr": _rule, "img": _image, "input": _checkbox, "q": _inline_quote}
_HANDLERS |= dict.fromkeys(("rt", "rp", "rtc"), _reading) | {"button": _button}
_HANDLERS |= {"blockquote": _quote, "figure": _figure, "dialog": _dialog, "table": _table}
