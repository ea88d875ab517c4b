"""Markup: a page as a list of tags and texts, with what the published preprocessing removes from it and asks of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import lxml.etree
from lxml.etree import _Element

from udfs.simplification.tags import (
    END,
    GONE,
    GONE_TAG,
    HEAD_TAG,
    NO_CELL,
    NO_END_TAG,
    ODD,
    RAW_TAGS,
    SIGHT,
    START,
    VOID,
    Tag,
    attributes,
    clean_tag,
    read_tags,
)

_CONTROL_BYTES = bytes([*range(9), 11, 12, *range(14, 32)])
_COMMENT = re.compile("<!--.*?-->", re.DOTALL)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def has_controls(page: str, data: bytes) -> bool:
    """Tell whether there are characters in a page that XML can't have. data: the page in UTF-8."""
    return len(data.translate(None, _CONTROL_BYTES)) != len(data) or "\ufffe" in page or "\uffff" in page


def is_control(text: str) -> bool:
    """Tell whether lxml would refuse a text for its characters."""
    return _CONTROL.search(text) is not None


def mangled(text: str) -> str:
    """Write control characters as libxml2 writes them in XML."""
    return _CONTROL.sub("&#xFFFD;", text)


@dataclass
class Markup:
    """A page, as written and without what is removed. A tag has a number, an element that of its start tag.

    raw: text, tag (without `<` and `>`), text, tag, …, as in html, which lacks the `scripts`: the texts of scripts and
    styles. tags, texts: each tag, and the text after it; of what is removed, nothing is left. ends: of a start tag its
    end tag (of an element without one, itself), and the other way round. above: the element around each element.
    blocks, holds: elements that are blocks, that have blocks in them; wholes: data tables and content lists, which stay
    in one piece; long: lists that are shortened; odd: tags at or behind which is what XML does not hand on to HTML.
    inside: texts that were moved into elements without an end. has_odd: whether odd says anything. blind: whether there
    are images without an address. is_marked: whether there are marks of an annotation.
    """

    html: str
    raw: list[str]
    scripts: list[tuple[str, str]]
    tags: list[Tag]
    texts: list[str]
    ends: list[int]
    above: list[int]
    blocks: bytearray
    holds: bytearray
    long: bytearray
    odd: bytearray
    has_empty_items: bool
    has_controls: bool
    is_marked: bool
    wholes: set[int] = field(default_factory=set)
    inside: dict[int, str] = field(default_factory=dict)
    has_odd: bool = False
    blind: bool = False

    def children(self, element: int) -> Iterator[int]:
        """Iterate over the elements in an element that are not removed."""
        ends, tags = self.ends, self.tags
        child, stop = element + 1, ends[element]
        while child < stop:
            if tags[child].kind != GONE:
                yield child
            child = ends[child] + 1

    def text(self, element: int) -> str:
        """Return an element's text before its first child."""
        return self.texts[element] if self.tags[element].kind == START else ""

    def tail(self, element: int) -> str:
        """Return the text after an element."""
        return self.texts[self.ends[element]]

    def token(self, tag: int) -> str:
        """Return what is written between `<` and `>`."""
        return self.raw[2 * tag + 1]

    def opened(self, element: int) -> str:
        """Write a start tag as the simplified HTML has it, without its `>`."""
        clean = self.tags[element].clean
        return (clean_tag(self.raw[2 * element + 1]) if clean is None else clean)[:-1]

    def is_odd(self, start: int, stop: int) -> bool:
        """Tell whether there is something odd at or behind some tags."""
        return self.odd.find(1, start, stop) >= 0

    def is_long(self, start: int, stop: int) -> bool:
        """Tell whether a list that is shortened starts at some tags."""
        return self.long.find(1, start, stop) >= 0

    def shows(self, start: int, stop: int) -> bool:
        """Tell whether there is something to see at some tags or in the texts behind them."""
        tags, texts = self.tags[start:stop], self.texts[start:stop]
        if self.blind:  # the text behind an image without an address is not looked at
            texts = [text for tag, text in zip(tags, texts, strict=True) if not tag.blind]
        text = "".join(texts)
        if text and not text.isspace():
            return True
        return any(tag.own & SIGHT for tag in tags)


def read(root: _Element, controls: bool, scripts: list[tuple[str, str]] | None = None) -> Markup:
    """Read a tree: what is removed, what is a block. Linear.

    controls: whether there are control characters in it. scripts: the texts of scripts and styles, if they are out of
    the tree already; otherwise they are taken out of it.
    """
    if scripts is None:
        scripts = []
        for element in root.iter("script", "style"):
            scripts.append((element.tag, element.text or ""))
            element.text = None
    empty_items = [item for item in root.iter("li") if not len(item) and not item.text]
    for item in empty_items:
        item.text = ""  # or lxml would not write its end
    html: str = lxml.etree.tostring(root, method="html", encoding="unicode")
    raw, tags = _read_around_head(html)
    rare = {tag for tag in set(tags) if tag.rare}
    is_marked = "data-uid" in raw[tags.index(HEAD_TAG) * 2 + 1] if HEAD_TAG in tags[:2] else False
    if any(tag.marked for tag in rare):
        is_marked = True
        raw = _cut_around_comments(html) if "<!--" in html else cut(html)
        tags = read_tags(raw[1::2])
        rare = {tag for tag in set(tags) if tag.rare}
    texts = raw[2::2]
    size = len(tags)
    page = Markup(
        html, raw, scripts, tags, texts, [0] * size, [0] * size, bytearray(size), bytearray(size + 1), bytearray(size),
        bytearray(size), bool(empty_items), controls, is_marked,
    )  # fmt: skip
    _Reader(page).read()
    _note_rarities(page, rare)
    return page


def _read_around_head(html: str) -> tuple[list[str], list[Tag]]:
    """Cut a page and read its tags, but for the head, which is left in one piece."""
    head, end = html.find("<head>"), html.find("</head>") + 7
    if head < 0:
        raw = cut(html)
        return raw, read_tags(raw[1::2])
    before, behind = cut(html[:head]), cut(html[end:])
    tags = [*read_tags(before[1::2]), HEAD_TAG, *read_tags(behind[1::2])]
    return [*before, html[head + 1 : end - 1], *behind], tags


def cut(html: str) -> list[str]:
    """Cut at each `<` and `>`. They stand around tags alone; but a `<` may be in the name of an attribute."""
    raw = html.replace(">", "<").split("<")
    if 2 * html.count("<") == len(raw) - 1:
        return raw
    pieces = html.split("<")
    whole: list[str] = []
    for piece in reversed(pieces[1:]):
        if ">" in piece:
            whole.append(piece)
        else:
            whole[-1] = f"{piece}<{whole[-1]}"
    raw = pieces[:1]
    for piece in reversed(whole):
        tag, _, text = piece.partition(">")
        raw += (tag, text)
    return raw


def _cut_around_comments(html: str) -> list[str]:
    """Cut a page with attributes that look like comments, which libxml2 leaves as they are."""
    raw = cut(_COMMENT.sub(lambda found: found[0].replace("<", "\ud800").replace(">", "\ud801"), html))
    return [piece.replace("\ud800", "<").replace("\ud801", ">") for piece in raw]


def _note_rarities(page: Markup, rare: set[Tag]) -> None:
    for tag in rare:
        page.blind |= tag.blind
    rare = {tag for tag in rare if tag.own & ODD or tag.name in RAW_TAGS}
    for at, tag in enumerate(page.tags) if rare else ():
        if tag in rare and (
            tag.own & ODD or (tag.kind == START and any("&" in text for text in page.texts[at : page.ends[at]]))
        ):
            page.odd[at] = 1
    for at, text in enumerate(page.texts) if page.has_controls else ():
        token = page.raw[2 * at + 1]
        if is_control(text) or is_control(token) or (token.startswith("img ") and "%" in token):
            page.odd[at] = 1
    page.has_odd = 1 in page.odd


class _Reader:
    """One reading of a page: which tags belong together, and what the elements are to one another."""

    def __init__(self, page: Markup) -> None:
        self.page = page
        self.tables: list[int] = []
        self.lists: list[int] = []
        self.terms: list[int] = []
        self.layout_tables: set[int] = set()
        self.data_tables: set[int] = set()
        self.has_closed = False  # a `details` element was met that is not open
        self.gone = (-1, -1)  # the last tag of what was removed last, and the last tag before it that stayed

    def read(self) -> None:
        """Fill in what the page has of each tag."""
        page, tables, layout_tables = self.page, self.tables, self.layout_tables
        ends, above, blocks, holds = page.ends, page.above, page.blocks, page.holds
        holds[-1] = 1  # the root has nothing above it
        parent = -1
        for at, tag in enumerate(page.tags):  # they may be replaced below
            kind = tag.kind
            if kind == END:
                ends[at] = parent
                ends[parent] = at
                if tag.context:
                    self._leave(parent, at)
                parent = above[parent]
                continue
            if kind == GONE or ((tag.removed or self.has_closed) and self._remove(at, parent)):
                continue
            above[at] = parent
            is_block = tag.block
            if tag.context:
                is_block = self._enter(at, tag)
            if tables and tag.own & NO_CELL:
                layout_tables.add(tables[-1])
            if is_block:
                blocks[at] = 1
                holder = parent
                while not holds[holder]:
                    holds[holder] = 1
                    holder = above[holder]
            if tag.context and tag.name == "table":
                tables.append(at)
            if kind == VOID:
                ends[at] = at
            else:
                parent = at

    def _enter(self, at: int, tag: Tag) -> bool:
        """Note the start of an element that matters to those in it, and tell whether it is a block."""
        name = tag.name
        if name == "li":
            return bool(self.lists)
        if name == "td" or name == "th":
            if self.tables and " headers" in (token := self.page.token(at)) and " headers" in attributes(token):
                self.data_tables.add(self.tables[-1])
            return bool(self.tables)
        if name == "dt" or name == "dd":
            return bool(self.terms)
        if name == "math" or name[0] == "?":
            self.page.holds[at] = name == "math"  # what is in a formula is no block to what is around it
            return False
        if name == "dl":
            self.terms.append(at)
        elif name == "ul" or name == "ol":
            self.lists.append(at)
        elif name == "details":
            self.has_closed |= " open" not in attributes(self.page.token(at))
        elif name != "table" and self.tables:
            self.data_tables.add(self.tables[-1])
        return True

    def _leave(self, element: int, end: int) -> None:
        """Note the end of an element: of an empty item, of a formula, of a list or table that stays in one piece."""
        page = self.page
        tag = page.tags[element]
        name = tag.name
        if name == "li":
            if not page.texts[element] and self._before(end) == element:
                page.tags[end] = NO_END_TAG
        elif name == "math":
            page.holds[element] = 0
        elif name == "table":
            self.tables.pop()
            found = attributes(page.token(element))
            is_data = found.get(" role") == "table" or found.get(" data-table")
            if is_data or element in self.data_tables or element not in self.layout_tables:
                page.wholes.add(element)
        else:
            (self.terms if name == "dl" else self.lists).pop()
            children = list(page.children(element))
            names = [page.tags[child].name for child in children]
            page.long[element] = is_long(name, names)
            items = ("dt", "dd") if name == "dl" else ("li",)
            if names and all(item in items for item in names) and not any(page.holds[child] for child in children):
                texts = [page.texts[element], *map(page.tail, children)]
                if not "".join(texts).strip():
                    page.wholes.add(element)

    def _before(self, at: int) -> int:
        """Find the last tag before a tag that is not removed."""
        end, before = self.gone
        return before if at - 1 == end else at - 1

    def _remove(self, at: int, parent: int) -> bool:
        """Remove an element if it is to be, and put the text behind it where the published preprocessing does."""
        page = self.page
        tags, texts = page.tags, page.texts
        tag = tags[at]
        if parent < 0:
            return False
        removed = "" if tag.removed == "nav" and tags[parent].name != "body" else tag.removed
        if not removed and (tags[parent].name != "details" or tag.name == "summary"):
            return False
        if not removed and " open" in attributes(page.token(parent)):
            return False
        end, depth = at, int(tag.kind == START)
        while depth:
            end += 1
            kind = tags[end].kind
            depth += (kind == START) - (kind == END)
        page.ends[at] = end
        text = texts[end]
        before = self._before(at)
        self.gone = end, before
        tags[at : end + 1] = [GONE_TAG] * (end + 1 - at)
        texts[at : end + 1] = [""] * (end + 1 - at)
        if text and removed != "tail":
            self._move(text, before, parent)
        return True

    def _move(self, text: str, before: int, parent: int) -> None:
        """Append a text to the one behind a tag; if there is none behind an end tag, to that in the element."""
        page = self.page
        if before == parent or page.texts[before]:
            page.texts[before] += text
            return
        element = page.ends[before]
        if element == before:
            page.inside[element] = page.inside.get(element, "") + text
            page.odd[element] = 1
            return
        page.texts[element] += text
        if page.tags[before] is NO_END_TAG:
            page.tags[before] = read_tags(["/li"])[0]
        if page.tags[element].name != "table" and text.strip():
            page.wholes.discard(element)  # it was a content list


def is_long(name: str, names: list[str]) -> bool:
    """Tell whether a list with such children is shortened."""
    return len(names) > 2 and (name in ("ul", "ol") or (name == "dl" and names.count("dt") > 1))
