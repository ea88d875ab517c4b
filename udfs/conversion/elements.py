"""What each element does to the flow of a page, and the reading of a tree by that."""

from __future__ import annotations

from lxml.html import HtmlElement

from udfs.conversion import code, footnotes, lists, media, paragraphs, tables
from udfs.conversion.flow import BLOCKS, LITERAL_STYLE, Context, Entered, Flow, Handler, Item
from udfs.conversion.inline import PLAIN, Segment, Style

_MARKS = {
    "b": "strong", "strong": "strong", "i": "em", "em": "em",
    "del": "del", "s": "del", "strike": "del", "sub": "sub", "sup": "sup",
}  # fmt: skip
_LITERAL = frozenset(("pre", "listing", "xmp", "textarea"))
_PERMALINK = frozenset(("¶", "#", "§", "🔗", "⚓", "∞", "link", "permalink"))

_MAX_TABLES = 24
"""Tables nested deeper are flattened: each level reads its cells by itself."""


def read(root: HtmlElement, place: str, context: Context, tables: int = 0) -> list[Item]:
    """Return the items of what an element contains. place: its XPath; tables: how many are around it."""
    return Flow(context, HANDLERS, tables).run(root, place)


def _block(flow: Flow, element: HtmlElement, tag: str, place: str) -> Entered:
    flow.boundary()
    before, flow.block = flow.block, place
    style = element.get("style")
    literal = tag in _LITERAL or (style is not None and LITERAL_STYLE.search(style) is not None)
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
    if flow.tables >= _MAX_TABLES or tables.is_layout(element):
        return _layout(flow, element, tag, place)
    depth = flow.tables + 1
    found = tables.table(element, place, lambda cell, at: read(cell, at, flow.context, depth))
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


HANDLERS: dict[str, Handler] = dict.fromkeys(BLOCKS, _block)
HANDLERS |= dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), _heading)
HANDLERS |= (
    dict.fromkeys(lists.LISTS, lists.begin_list)
    | dict.fromkeys(lists.ENTRIES, lists.begin_entry)
    | dict.fromkeys(_MARKS, _mark)
)
HANDLERS |= dict.fromkeys(("code", "tt", "kbd", "samp"), _inline_code)
HANDLERS |= dict.fromkeys(("audio", "video", "embed", "object"), _media)
HANDLERS |= {"a": _link, "br": _break, "hr": _rule, "img": _image, "input": _checkbox, "q": _inline_quote}
HANDLERS |= dict.fromkeys(("rt", "rp", "rtc"), _reading) | {"button": _button}
HANDLERS |= {"blockquote": _quote, "figure": _figure, "dialog": _dialog, "table": _table}
