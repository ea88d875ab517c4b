"""Markup: a parsed page as one list of tokens, with what the published preprocessing asks of each element."""

from __future__ import annotations

import re
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
_ROOT_TAGS = frozenset(["html", "body", "frameset"])
_ENDLESS_TAGS = frozenset([
    "area", "base", "basefont", "br", "col", "frame", "hr", "img", "input", "isindex", "link", "meta", "param",
])  # fmt: skip
_INVISIBLE = {
    "display": "none", "font-size": "0px", "color": "transparent", "visibility": "hidden", "opacity": "0",
}  # fmt: skip
_BLOCK_KINDS = {"td": CELL, "th": CELL, "li": ITEM, "dt": TERM, "dd": TERM, "math": 0}

_TOKEN = re.compile(r"<[^>]*>|[^<]+")
_TOKEN_PI = re.compile(r"<\?.*?\?>|<[^>]*>|[^<]+", re.DOTALL)
_ATTRIBUTE = re.compile(r"\s(=?[^\s=]*)=(?:\"([^\"]*)\"|'([^']*)')")
_LOOSE_SPACE = re.compile(r"\s{2,}|[^\S ]")
_CONTROL = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_PLAIN = re.compile(r"[^&<>\"'\r]*").fullmatch
_PLAIN_URL = re.compile(r"[!#-&(-;=?-~]*").fullmatch
_OUTER = ~(OWN_TEXT)


class Tag:
    """A start tag as it is written: all elements of a page that are written alike share one.

    opened: its clean form, without `>`. block: when it is a block. removed: "tail" (with the text after it),
    "self", "nav" (below body alone) or "". own: bits of the element itself. shut: without content.
    """

    __slots__ = (
        "block", "closes", "headers", "inline", "is_data", "is_open", "name", "opened", "own", "removed", "shut",
        "sightless",
    )  # fmt: skip

    def __init__(self, token: str) -> None:
        self.shut = token.endswith("/>") or token.startswith("<?")
        name = self.name = token[1:].split(None, 1)[0].rstrip("/>") if token[1] != "?" else "?"
        found = {key: double or single for key, double, single in reversed(_ATTRIBUTE.findall(token))}
        self.inline = name in INLINE_TAGS
        self.block = _BLOCK_KINDS.get(name, 0 if self.inline else ALWAYS)
        self.own = 0 if self.inline or name in _TABLE_TAGS else NO_CELL
        attributes = _kept(name, found)
        self.sightless = name == "img" and "src" not in attributes
        if name == "img" and not self.sightless:
            self.own |= TEXT
        if name in _ROOT_TAGS or (name in _ENDLESS_TAGS and not self.shut) or name == "plaintext":
            self.own |= ODD
        if any(key.startswith("{") for key in found) or _CONTROL.search(token) or re.search("[\"'&<]", name):
            self.own |= ODD
        self.opened = _opened(name, attributes)
        self.closes = name not in _ENDLESS_TAGS and not (name == "li" and self.shut)
        self.headers = name in ("td", "th") and "headers" in found
        self.is_data = name == "table" and (found.get("role") == "table" or bool(found.get("data-table")))
        self.is_open = name != "details" or "open" in found
        self.removed = _removal(name, found)
        if name == "?":
            self.block, self.own, self.removed = 0, NO_CELL | ODD | TEXT, ""


def _removal(name: str, found: dict[str, str]) -> str:
    if name in _REMOVED_TAGS:
        return "tail"
    for declaration in found.get("style", "").split(";"):
        key, colon, value = declaration.partition(":")
        if colon and _INVISIBLE.get(_value(key).strip()) == _value(value).strip():
            return "self"
    return "nav" if "nav" in (found.get("class"), found.get("id")) else ""


def _kept(name: str, found: dict[str, str]) -> dict[str, str]:
    kept: dict[str, str] = {}
    for key in ("src", "alt", "class", "id") if name == "img" else ("class", "id"):
        value = _value(found.get(key, "")).strip()
        if value and not (key == "src" and value.startswith("data:image/")):
            kept[key] = value
    return kept


def _value(raw: str) -> str:
    return unescape(raw) if "&" in raw else raw


def unescape(raw: str) -> str:
    """Undo the escapes of an XML serialisation."""
    for escape, character in (
        ("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#10;", "\n"), ("&#13;", "\r"), ("&#9;", "\t"),
    ):  # fmt: skip
        raw = raw.replace(escape, character)
    return raw.replace("&amp;", "&")


def _opened(name: str, attributes: dict[str, str]) -> str:
    if all((_PLAIN_URL if key == "src" else _PLAIN)(value) for key, value in attributes.items()):
        return f"<{name}" + "".join(
            f' {key}="{value.replace("&", "&amp;")}"' for key, value in attributes.items()
        )
    element = lxml.etree.Element("img" if name == "img" else "b")
    try:
        for key, value in attributes.items():
            element.set(key, value)
    except ValueError:  # control characters: the element is odd, and its paragraph is lost
        return f"<{name}"
    written = lxml.etree.tostring(element, method="html", encoding="unicode")
    return f"<{name}" + written[len(element.tag) + 1 :].removesuffix("</b>").removesuffix(">")


def is_control(text: str) -> bool:
    """Tell whether lxml would refuse a text for its characters."""
    return _CONTROL.search(text) is not None


def folded(text: str) -> str:
    """Write a text with every run of white space as one blank."""
    return " " if text.isspace() else _LOOSE_SPACE.sub(" ", text)


def tokenised(root: lxml.etree._Element) -> list[str]:
    """Write a tree as its start tags, end tags and texts; an element without content is one token."""
    written: str = lxml.etree.tostring(root, encoding="unicode", with_tail=False)
    return (_TOKEN_PI if "<?" in written else _TOKEN).findall(written)


@dataclass
class Markup:
    """A page without what the published preprocessing removes.

    tokens: as written. clean: as the simplified HTML has them. before: characters of text before each token.
    By element, in document order: tags; starts and ends, as token numbers; children; bits of what it holds;
    blocks; wholes: data tables and content lists, which stay in one piece; numbers in the original tree.
    """

    tokens: list[str] = field(default_factory=list)
    clean: list[str] = field(default_factory=list)
    before: list[int] = field(default_factory=list)
    tags: list[Tag] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    children: list[list[int]] = field(default_factory=list)
    bits: list[int] = field(default_factory=list)
    blocks: list[bool] = field(default_factory=list)
    wholes: set[int] = field(default_factory=set)
    numbers: list[int] = field(default_factory=list)

    def text(self, element: int) -> str:
        """Return an element's text before its first child, as written."""
        start = self.starts[element]
        token = self.tokens[start + 1] if start != self.ends[element] else "<"
        return token if token[0] != "<" else ""

    def tail(self, element: int) -> str:
        """Return the text after an element, as written."""
        after = self.ends[element] + 1
        token = self.tokens[after] if after < len(self.tokens) else "<"
        return token if token[0] != "<" else ""


def read(tokens: list[str], numbers: list[int] | None = None) -> Markup:
    """Read the tokens of a tree: what is removed, what is a block. One pass, linear.

    numbers: of the elements in the original tree, where these tokens are only a part of it.
    """
    page, moved = _read(tokens)
    if moved:  # a text went into an element that had none: the tokens change
        again = read(_TOKEN.findall("".join(page.tokens)), page.numbers)
        page = again
    if numbers is not None:
        page.numbers = [numbers[number] for number in page.numbers]
    return page


def _read(tokens: list[str]) -> tuple[Markup, bool]:  # noqa: C901 - one loop over all tokens: calls cost more
    page = Markup()
    out, clean, before, tags, starts, ends = (
        page.tokens, page.clean, page.before, page.tags, page.starts, page.ends,
    )  # fmt: skip
    children, bits, blocks, numbers = page.children, page.bits, page.blocks, page.numbers
    known: dict[str, Tag] = {}
    open_elements: list[int] = []
    tables: list[int] = []
    data_tables: set[int] = set()
    lists = terms = 0
    total = 0
    number = -1
    position, count = 0, len(tokens)
    moved = cut = False
    while position < count:
        token = tokens[position]
        position += 1
        if token[0] != "<":
            top = open_elements[-1]
            if cut and out[-1][0] != "<":
                out[-1] += token
                clean[-1] = folded(out[-1])
            else:
                out.append(token)
                before.append(total)
                clean.append(folded(token))
            total += len(token)
            if not token.isspace() and ("&#13;" not in token or unescape(token).strip()):
                held = OWN_TEXT
                last = children[top][-1] if children[top] else -1
                if last < 0 or not tags[last].sightless:
                    held |= TEXT
                if ("&" in token and tags[top].name in _RAW_TAGS) or is_control(token):
                    held |= ODD
                bits[top] |= held
            elif not token.isascii() or "\x0b" <= token.strip(" \n\t\r") <= "\x1f":
                bits[top] |= ODD if is_control(token) else 0
            continue
        if token[1] == "/":
            element = open_elements.pop()
        else:
            number += 1
            tag = known.get(token)
            if tag is None:
                tag = known[token] = Tag(token)
            if tag.removed or (open_elements and not tags[open_elements[-1]].is_open):
                removed = tag.removed
                parent = tags[open_elements[-1]] if open_elements else None
                if parent is None or (removed == "nav" and parent.name != "body"):
                    removed = ""
                if parent is not None and not removed and not parent.is_open and tag.name != "summary":
                    removed = "self"
                if removed:
                    depth = 0 if tag.shut else 1
                    while depth:
                        token = tokens[position]
                        position += 1
                        if token[0] == "<":
                            if token[1] == "/":
                                depth -= 1
                            else:
                                number += 1
                                if token[-2] != "/" and token[1] != "?":
                                    depth += 1
                    tail = tokens[position] if position < count and tokens[position][0] != "<" else ""
                    cut = True
                    if tail and removed == "tail":
                        position += 1
                    elif tail:
                        siblings = children[open_elements[-1]]
                        if siblings and out[-1][0] == "<":  # moved into the sibling: behind its text
                            position += 1
                            moved = True
                            start = starts[siblings[-1]]
                            if tags[siblings[-1]].shut and out[start][-2] == "/":
                                out[start] = f"{out[start][:-2]}>{tail}</{tags[siblings[-1]].name}>"
                            elif start + 1 < len(out) and out[start + 1][0] != "<":
                                out[start + 1] += tail
                            else:
                                out[start] += tail
                    continue
            element = len(tags)
            if open_elements:
                children[open_elements[-1]].append(element)
            kind = tag.block
            is_block = kind == ALWAYS or (
                kind != 0 and bool(tables if kind == CELL else lists if kind == ITEM else terms)
            )
            name = tag.name
            if tables and (tag.headers or name in ("caption", "col", "colgroup")):
                data_tables.add(tables[-1])
            tags.append(tag)
            starts.append(len(out))
            ends.append(len(out))
            children.append([])
            bits.append(0)
            blocks.append(is_block)
            numbers.append(number)
            out.append(token)
            before.append(total)
            if not tag.shut:
                clean.append(tag.opened + ">")
                open_elements.append(element)
                if name == "table":
                    tables.append(element)
                elif name in ("ul", "ol"):
                    lists += 1
                elif name == "dl":
                    terms += 1
                continue
            clean.append(f"{tag.opened}></{name}>" if tag.closes else tag.opened + ">")
            if name == "?":
                clean[-1] = token.replace("?>", ">")
        # The end of an element.
        tag = tags[element]
        held = bits[element]
        name = tag.name
        if not tag.shut:
            ends[element] = len(out)
            out.append(token)
            clean.append(token)
            before.append(total)
            if name == "table":
                tables.pop()
            elif name in ("ul", "ol"):
                lists -= 1
            elif name == "dl":
                terms -= 1
        if element == 0:
            continue
        if name == "table":
            if element in data_tables or tag.is_data or not held & NO_CELL:
                page.wholes.add(element)
        elif name in ("ul", "ol", "dl"):
            if len(children[element]) > 2:
                held |= LONG_LIST
            if _is_content(page, element):
                page.wholes.add(element)
        bits[element] = held | tag.own & (TEXT | ODD)
        if name == "math":
            held &= ~BLOCK
        bits[open_elements[-1]] |= held & _OUTER | tag.own | blocks[element]
    return page, moved


def _is_content(page: Markup, element: int) -> bool:
    """Tell whether a list holds nothing but items, and no item a block."""
    children = page.children[element]
    items = ("dt", "dd") if page.tags[element].name == "dl" else ("li",)
    return (
        bool(children)
        and not page.bits[element] & OWN_TEXT
        and all(page.tags[child].name in items and not page.bits[child] & BLOCK for child in children)
    )


