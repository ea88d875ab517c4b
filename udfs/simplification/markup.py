"""Markup: a parsed page as one list of tokens, with what the published preprocessing asks of each element."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import lxml.etree

BLOCK, NO_CELL, TEXT, LONG_LIST, ODD, OWN_TEXT = 1, 2, 4, 8, 16, 32
"""What an element holds. NO_CELL: what a data table can't. TEXT: something to see. ODD: what an HTML parser reads
back differently than it was written. OWN_TEXT (not handed on): a text that is a child of the element."""

ALWAYS, CELL, ITEM, TERM = 1, 2, 3, 4  # when an element is a block: always; in a table; in a list; in a dl

INLINE_TAGS = frozenset([
    "a", "abbr", "acronym", "b", "basefont", "bdo", "big", "blink", "button", "cccode-inline", "ccmath-inline",
    "cite", "code", "dfn", "em", "font", "i", "img", "input", "kbd", "label", "map", "mark", "marked-tail",
    "marked-text", "nobr", "object", "optgroup", "option", "pic", "q", "s", "samp", "script", "small", "span",
    "strike", "strong", "sub", "sup", "svg", "time", "u", "var",
])  # fmt: skip
_TABLE_TAGS = frozenset(["caption", "colgroup", "col", "thead", "tbody", "tfoot", "tr", "td", "th", "br"])
_REMOVED_TAGS = frozenset(["title", "head", "style", "script", "link", "meta", "iframe", "frame", "nav"])
_RAW_TAGS = frozenset(["xmp", "noembed", "noframes", "plaintext", "noscript", "listing"])
_ODD_TAGS = frozenset(["html", "body", "frameset", "plaintext"])
ENDLESS_TAGS = frozenset([
    "area", "base", "basefont", "br", "col", "frame", "hr", "img", "input", "isindex", "link", "meta", "param",
])  # fmt: skip
_SPECIAL_TAGS = ENDLESS_TAGS | {"table", "td", "th", "details"}
_SPECIAL_BLOCKS = frozenset(["table", "ul", "ol", "dl", "math", "details"])
_TABLE_MARKS = frozenset(["caption", "col", "colgroup"])
_INVISIBLE = {
    "display": "none", "font-size": "0px", "color": "transparent", "visibility": "hidden", "opacity": "0",
}  # fmt: skip
_BLOCK_KINDS = {"td": CELL, "th": CELL, "li": ITEM, "dt": TERM, "dd": TERM, "math": 0}

_ATTRIBUTE = re.compile(r"(\s=?[^\s=]*=)(?:\"([^\"]*)\"|'([^']*)')")
_CONTROLS = "".join(map(chr, (*range(9), 11, 12, *range(14, 32), 0xFFFE, 0xFFFF)))
_CONTROL = re.compile(f"[{_CONTROLS}]")
_MANGLED = "&#xFFFD;"  # what libxml2 writes for a control character
_STAND_INS = {ord(control): 0xF8D0 + at for at, control in enumerate(_CONTROLS)}
_PLAIN_URL = re.compile(r"[!#-%(-;=?-~]*").fullmatch
_ODD_NAME = re.compile("[\"'&<]")
_OUTER = ~OWN_TEXT


_KINDS: dict[str, tuple[bool, int, int, str]] = {}


class Tag:
    """A start tag as it is written, between `<` and `>`: all elements of a page that are written alike share one.

    opened: its clean form, without `>`; empty if there is none. block: when it is a block. removed: "tail" (with
    the text after it), "self", "nav" (below body alone) or "". own: bits of the element itself. shut: without
    content. sightless: an image without an address.
    """

    __slots__ = (
        "block", "clean", "closing", "headers", "inline", "is_data", "is_open", "is_special", "name", "opened", "own",
        "removed", "shut", "sightless",
    )  # fmt: skip

    def __init__(self, token: str) -> None:
        self.shut = token[-1] in "/?"
        name = token.partition(" ")[0]
        self.name = name = name.removesuffix("/") if self.shut else name
        self.inline, self.block, self.own, self.removed = _KINDS.get(name) or _kind(name)
        self.headers = self.is_data = self.sightless = False
        self.is_open = True
        matters = name in _SPECIAL_TAGS or " class=" in token or " id=" in token or " style=" in token or "{" in token
        found = _attributes(token, len(name)) if matters and not self.removed and "=" in token else {}
        if name in _SPECIAL_TAGS:
            self._specialise(found)
        if "{" in token and any(key.startswith(" {") for key in found):
            self.own |= ODD
        try:
            self.opened = _opened(name, found) if found else f"<{name}"
        except ValueError:  # control characters
            self.opened = ""
        self.is_special = name in _SPECIAL_BLOCKS
        self.closing = f"</{name}>"
        is_endless = name in ENDLESS_TAGS or (name == "li" and self.shut)
        self.clean = f"{self.opened}>{self.closing}" if self.shut and not is_endless else self.opened + ">"
        if found:
            if " style=" in found and _is_invisible(found[" style="]):
                self.removed = "self"
            elif found.get(" class=") == "nav" or found.get(" id=") == "nav":
                self.removed = "nav"

    def _specialise(self, found: dict[str, str]) -> None:
        if self.name == "img":
            source = found.get(" src=", "")
            self.sightless = not _value(source).strip() or _is_data_url(source)
            self.own |= 0 if self.sightless else TEXT
        elif self.name == "table":
            self.is_data = found.get(" role=") == "table" or bool(found.get(" data-table="))
        elif self.name == "details":
            self.is_open = " open=" in found
        else:
            self.headers = " headers=" in found
        if self.name in ENDLESS_TAGS and not self.shut:
            self.own |= ODD


def _kind(name: str) -> tuple[bool, int, int, str]:
    """Tell what elements of a name are: inline, when a block, their own bits, whether they are removed."""
    if name.startswith("?"):
        return False, 0, NO_CELL | TEXT | ODD, ""
    inline = name in INLINE_TAGS
    own = 0 if inline or name in _TABLE_TAGS else NO_CELL
    if name in _ODD_TAGS or _ODD_NAME.search(name):
        own |= ODD
    block = _BLOCK_KINDS.get(name, 0 if inline else ALWAYS)
    return inline, block, own, "tail" if name in _REMOVED_TAGS else ""


def _attributes(token: str, start: int) -> dict[str, str]:
    """Find the attributes of a start tag, as written; keys are like ` class=`."""
    if "='" not in token:
        pieces = token.split('"')
        keys = pieces[:-1:2]
        keys[0] = keys[0][start:]
        if all(key[-1] == "=" for key in keys):
            return dict(zip(keys, pieces[1::2], strict=False))
    return {key: double or single for key, double, single in _ATTRIBUTE.findall(token)}


def _is_invisible(style: str) -> bool:
    for declaration in _value(style).split(";"):
        key, colon, value = declaration.partition(":")
        if colon and _INVISIBLE.get(key.strip()) == value.strip():
            return True
    return False


def _is_data_url(source: str) -> bool:
    return _value(source).strip().startswith("data:image/")


def _value(raw: str) -> str:
    return unescape(raw) if "&" in raw else raw


def _opened(name: str, found: dict[str, str]) -> str:
    """Write a start tag, without its `>`, with the attributes that a model sees."""
    keys = (" src=", " alt=", " class=", " id=") if name == "img" else (" class=", " id=")
    pieces = [f"<{name}"]
    for key in keys:
        raw = found.get(key)
        if not raw or (key == " src=" and _is_data_url(raw)):
            continue
        raw = raw.strip()
        simple = raw.replace("&amp;", "") if "&" in raw else raw
        if "&" not in simple and '"' not in raw and (key != " src=" or _PLAIN_URL(simple)):
            if raw:
                pieces.append(f'{key}"{raw}"')
        elif value := _value(raw).strip():
            pieces.append(_attribute(key[1:-1], value))
    return "".join(pieces)


def _attribute(key: str, value: str) -> str:
    element = lxml.etree.Element("img")
    element.set(key, value)
    return lxml.etree.tostring(element, method="html", encoding="unicode")[4:-1]


def unescape(raw: str) -> str:
    """Undo the escapes of an XML serialisation."""
    for escape, character in (
        (_MANGLED, "\ufffd"),
        ("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#10;", "\n"), ("&#13;", "\r"), ("&#9;", "\t"),
    ):  # fmt: skip
        raw = raw.replace(escape, character)
    return raw.replace("&amp;", "&")


def is_long(name: str, names: Sequence[str]) -> bool:
    """Tell whether a list with such children is shortened."""
    return len(names) > 2 and (name in ("ul", "ol") or (name == "dl" and names.count("dt") > 1))


def stripped(raw: str) -> str:
    """Strip a text as it is written; a carriage return is written as an escape."""
    text = raw.strip()
    if "&#13;" not in text:
        return text
    while text.startswith("&#13;") or text.endswith("&#13;"):
        text = text.removeprefix("&#13;").removesuffix("&#13;").strip()
    return text


def is_control(text: str) -> bool:
    """Tell whether lxml would refuse a text for its characters."""
    return _CONTROL.search(text) is not None


def folded(text: str) -> str:
    """Write a text with every run of white space as one blank."""
    if text.isascii() and text.isprintable() and "  " not in text:
        return text
    words = " ".join(text.split())
    if not words:
        return " " if text else ""
    return f"{' ' if text[0].isspace() else ''}{words}{' ' if text[-1].isspace() else ''}"


def written(root: lxml.etree._Element) -> tuple[str, bool]:
    """Write a tree as XML, where `<` and `>` stand in tags alone; and tell whether control characters are in it.

    libxml2 would write all of them alike; here they are kept in texts.
    """
    xml: str = lxml.etree.tostring(root, encoding="unicode", with_tail=False)
    if _MANGLED not in xml:
        return xml, False
    root = copy.deepcopy(root)
    for element in root.iter():
        if element.text and is_control(element.text):
            element.text = element.text.translate(_STAND_INS)
        if element.tail and is_control(element.tail):
            element.tail = element.tail.translate(_STAND_INS)
    xml = lxml.etree.tostring(root, encoding="unicode", with_tail=False)
    return xml.translate({stand_in: control for control, stand_in in _STAND_INS.items()}), True


def mangled(text: str) -> str:
    """Write control characters as libxml2 writes them."""
    return _CONTROL.sub(_MANGLED, text)


@dataclass
class Markup:
    """A page without what the published preprocessing removes.

    tokens: tag (without `<` and `>`), text, tag, text, …, as written; texts may be empty. clean: the same (with
    them) for the simplified HTML.
    By element, in document order: tags; starts and ends, as token numbers; children; bits of what it holds; lengths:
    characters of text in it; blocks; numbers in the original tree. wholes: data tables and content lists, which
    stay in one piece.
    """

    tokens: list[str] = field(default_factory=list)
    clean: list[str] = field(default_factory=list)
    tags: list[Tag] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    children: list[list[int]] = field(default_factory=list)
    bits: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    blocks: list[bool] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    wholes: set[int] = field(default_factory=set)

    def text(self, element: int) -> str:
        """Return an element's text before its first child, as written."""
        start = self.starts[element]
        return self.tokens[start + 1] if start != self.ends[element] else ""

    def tail(self, element: int) -> str:
        """Return the text after an element, as written."""
        return self.tokens[self.ends[element] + 1]


def read(root: lxml.etree._Element) -> Markup:
    """Read a tree: what is removed, what is a block. One pass, linear."""
    xml, has_controls = written(root)
    return _read(_pieces(xml), has_controls)


def _pieces(xml: str) -> list[str]:
    """Cut at every start of a tag: each piece is what stands in the tag, `>`, and the text after it."""
    pieces = xml.split("<")
    if xml.count(">") == len(pieces) - 1:
        del pieces[0]
        return pieces
    whole: list[str] = []
    for piece in reversed(pieces[1:]):  # a `<` in the name of an attribute
        if ">" in piece:
            whole.append(piece)
        else:
            whole[-1] = f"{piece}<{whole[-1]}"
    return whole[::-1]


def _read(pieces: list[str], controls: bool) -> Markup:
    """Read the pieces of a tree. One loop with everything in it, since a call for each piece would cost more."""
    page = Markup()
    out, clean, tags, starts, ends = page.tokens, page.clean, page.tags, page.starts, page.ends
    children, bits, blocks, lengths, numbers = page.children, page.bits, page.blocks, page.lengths, page.numbers
    if len(_KNOWN) > _MAX_KNOWN:
        _KNOWN.clear()
    known = {} if controls else _KNOWN
    open_elements: list[int] = []
    data_tables: set[int] = set()
    tables: list[int] = []
    lists: list[int] = []
    terms: list[int] = []
    total = 0
    number = -1
    parent = -1  # the element that is open
    position, count = 0, len(pieces)
    while position < count:
        token, _, text = pieces[position].partition(">")
        position += 1
        if token[0] == "/":
            element = parent
            tag = tags[element]
            ends[element] = len(out)
            out.append(token)
            clean.append(tag.closing if tag.name != "li" or ends[element] - starts[element] > 2 or out[-2] else "")
            open_elements.pop()
            parent = open_elements[-1] if open_elements else -1
            held = bits[element]
            lengths[element] = total - lengths[element]
            if tag.is_special:
                held = _close(page, element, held, data_tables)
                if tag.name == "table":
                    tables.pop()
                elif tag.name == "dl":
                    terms.pop()
                elif tag.name != "math" and tag.name != "details":
                    lists.pop()
            bits[element] = held | tag.own & (TEXT | ODD)
            is_sightless = False
            if parent >= 0:
                bits[parent] |= held & _OUTER | tag.own | blocks[element]
        else:
            number += 1
            found = known.get(token)
            if found is None:
                tag = Tag(token)
                if controls and _MANGLED in token:
                    tag.own |= ODD
                if len(token) < _MAX_TAG:
                    known[token] = tag
            else:
                tag = found
            element = len(tags)
            if parent >= 0:
                above = tags[parent]
                if (tag.removed or not above.is_open) and (removal := _removal(tag, above)):
                    depth = 0 if tag.shut else 1
                    while depth:
                        token, _, text = pieces[position].partition(">")
                        position += 1
                        if token[0] == "/":
                            depth -= 1
                        else:
                            number += 1
                            if token[-1] not in "/?":
                                depth += 1
                    if text and removal != "tail":
                        _append_text(page, parent, text, controls)
                        total += len(text)
                    continue
                siblings = children[parent]
                if siblings:
                    siblings.append(element)
                else:
                    children[parent] = [element]
                if tables and (tag.headers or tag.name in _TABLE_MARKS):
                    data_tables.add(tables[-1])
            kind = tag.block
            is_block = kind == ALWAYS or (
                kind != 0 and bool(tables if kind == CELL else lists if kind == ITEM else terms)
            )
            start = len(out)
            tags.append(tag)
            starts.append(start)
            children.append(_CHILDLESS)
            blocks.append(is_block)
            numbers.append(number)
            out.append(token)
            clean.append(tag.clean)
            if tag.shut:
                ends.append(start)
                lengths.append(0)
                own = tag.own
                bits.append(own & (TEXT | ODD))
                is_sightless = tag.sightless
                if parent >= 0:
                    bits[parent] |= own | is_block
            elif pieces[position][0] == "/" and not tag.is_special and text and parent >= 0 and not controls:
                # An element with nothing but a text: start and end at once.
                held = tag.own & (TEXT | ODD)
                if not text.isspace() and ("&" not in text or (stripped(text) and tag.name not in _RAW_TAGS)):
                    held |= TEXT
                elif "&" in text and stripped(text):
                    held |= TEXT | ODD
                out.append(text)
                clean.append(folded(text))
                ends.append(start + 2)
                lengths.append(len(text))
                total += len(text)
                bits.append(held | (OWN_TEXT if held & TEXT else 0))
                bits[parent] |= held | tag.own | is_block
                token, _, text = pieces[position].partition(">")
                position += 1
                out.append(token)
                clean.append(tag.closing)
                is_sightless = False
            else:
                ends.append(start)
                bits.append(0)
                lengths.append(total)
                is_sightless = False
                open_elements.append(element)
                parent = element
                if tag.is_special:
                    if tag.name == "table":
                        tables.append(element)
                    elif tag.name == "dl":
                        terms.append(element)
                    elif tag.name != "math" and tag.name != "details":
                        lists.append(element)
        out.append(text)
        if not text:
            clean.append("")
            continue
        total += len(text)
        if text.isspace():
            clean.append(" ")
        else:
            clean.append(folded(text))
            if "&" in text:
                _hold_text(page, parent, text, controls)
            else:  # the text behind an image without an address is not looked at
                bits[parent] |= OWN_TEXT if is_sightless else OWN_TEXT | TEXT
        if controls and parent >= 0 and is_control(text):
            bits[parent] |= ODD
    return page


def _close(page: Markup, element: int, held: int, data_tables: set[int]) -> int:
    """Tell what a table, list or formula holds, at its end, and whether it stays in one piece."""
    name = page.tags[element].name
    if name == "table":
        if element in data_tables or page.tags[element].is_data or not held & NO_CELL:
            page.wholes.add(element)
    elif name == "math":
        held &= ~BLOCK
    elif name != "details":
        names = [page.tags[child].name for child in page.children[element]]
        if is_long(name, names):
            held |= LONG_LIST | TEXT  # its ellipsis is something to see
        if not held & OWN_TEXT and _is_content(page, element, names):
            page.wholes.add(element)
    return held


def _append_text(page: Markup, parent: int, text: str, controls: bool) -> None:
    """Append the text behind a removed element to what stands before it: a text, or the text in a sibling."""
    children, tokens, clean = page.children[parent], page.tokens, page.clean
    if not children or tokens[-1]:
        tokens[-1] += text
        clean[-1] = folded(tokens[-1])
        _hold_text(page, parent, tokens[-1], controls)
        return
    last = children[-1]
    at = page.starts[last] + 1
    if page.tags[last].shut:
        tag = page.tags[last] = Tag(tokens[-2].removesuffix("/"))
        tokens[-2:] = [tokens[-2].removesuffix("/"), "", f"/{tag.name}", ""]
        clean[-2:] = [tag.clean, "", tag.closing, ""]
        page.ends[last] = len(tokens) - 2
        page.bits[last] |= tag.own & ODD
    tokens[at] += text
    clean[at] = folded(tokens[at])
    page.lengths[last] += len(text)
    if stripped(text):
        page.bits[last] |= OWN_TEXT | TEXT
        page.bits[last] |= ODD if "&" in text and page.tags[last].name in _RAW_TAGS else 0
    if controls and is_control(text):
        page.bits[last] |= ODD
    page.bits[parent] |= page.bits[last] & (TEXT | ODD)


def _removal(tag: Tag, parent: Tag) -> str:
    if tag.removed and (tag.removed != "nav" or parent.name == "body"):
        return tag.removed
    return "" if parent.is_open or tag.name == "summary" else "self"


def _hold_text(page: Markup, parent: int, text: str, controls: bool) -> None:
    """Note what a text, the last one so far, is to the element that it stands in."""
    if stripped(text):
        children = page.children[parent]
        is_tail = bool(children) and page.ends[children[-1]] == len(page.tokens) - 2
        is_sightless = is_tail and page.tags[children[-1]].sightless
        page.bits[parent] |= OWN_TEXT if is_sightless else OWN_TEXT | TEXT
        if "&" in text and page.tags[parent].name in _RAW_TAGS:
            page.bits[parent] |= ODD
    if controls and is_control(text):
        page.bits[parent] |= ODD


def _is_content(page: Markup, element: int, names: Sequence[str]) -> bool:
    """Tell whether a list holds nothing but items, and no item a block."""
    items = ("dt", "dd") if page.tags[element].name == "dl" else ("li",)
    return bool(names) and all(
        name in items and not page.bits[child] & BLOCK
        for name, child in zip(names, page.children[element], strict=True)
    )


_KINDS.update({name: _kind(name) for name in (*INLINE_TAGS, *_TABLE_TAGS, *_REMOVED_TAGS, "div", "p", "li", "ul")})
_CHILDLESS: list[int] = []
_MAX_TAG, _MAX_KNOWN = 100, 10_000
_KNOWN: dict[str, Tag] = {}
