"""Tags: what the published preprocessing asks of an element, told once for all tags of a page that are alike."""

from __future__ import annotations

import re

START, VOID, END, GONE = range(4)
NO_CELL, SIGHT, ODD = 1, 2, 4
"""What a tag brings. NO_CELL: what a data table can't hold. SIGHT: something to see. ODD: what an HTML parser reads
back differently than XML has it."""

INLINE_TAGS = frozenset([
    "a", "abbr", "acronym", "b", "basefont", "bdo", "big", "blink", "button", "cccode-inline", "ccmath-inline",
    "cite", "code", "dfn", "em", "font", "i", "img", "input", "kbd", "label", "map", "mark", "marked-tail",
    "marked-text", "nobr", "object", "optgroup", "option", "pic", "q", "s", "samp", "script", "small", "span",
    "strike", "strong", "sub", "sup", "svg", "time", "u", "var",
])  # fmt: skip
VOID_TAGS = frozenset([
    "area", "base", "basefont", "br", "col", "frame", "hr", "img", "input", "isindex", "link", "meta", "param",
])  # fmt: skip
RAW_TAGS = frozenset(["xmp", "noembed", "noframes", "plaintext", "noscript", "listing"])
_CELL_TAGS = frozenset(["caption", "colgroup", "col", "thead", "tbody", "tfoot", "tr", "td", "th", "br"])
_REMOVED_TAGS = frozenset(["title", "head", "style", "script", "link", "meta", "iframe", "frame", "nav"])
_ODD_TAGS = frozenset(["frameset", "plaintext"])
_CONTEXT_TAGS = frozenset([
    "table", "caption", "col", "colgroup", "td", "th", "ul", "ol", "li", "dl", "dt", "dd", "math", "details",
])  # fmt: skip
_CLOSING_TAGS = frozenset(["table", "ul", "ol", "li", "dl", "math"])
_READ_TAGS = frozenset(["table", "td", "th", "details"])
_INVISIBLE = {
    "display": "none", "font-size": "0px", "color": "transparent", "visibility": "hidden", "opacity": "0",
}  # fmt: skip

_ATTRIBUTE = re.compile(r"(\s=?[^\s=]*)(?:=(?:\"([^\"]*)\"|'([^']*)'))?")
_ODD_NAME = re.compile("[\"'&<]")
_MARKS = ("cc-select", "data-uid", "='")
_HIDING = re.compile("none|0px|transparent|hidden|opacity")
_AS_IT_IS = re.compile(r"(?: class=%s)?(?: id=%s)?" % (2 * ('"[!#-~]+(?: [!#-~]+)*"',))).fullmatch
_SPACE, _STAND_IN = re.compile(r"\s"), re.compile(r"<!(\d+)>")
_MAX_TOKEN, _MAX_KNOWN = 250, 10_000


class Tag:
    """A tag of the HTML serialisation: an end tag, or a start tag with the attributes that matter.

    removed: "tail" (with the text after it), "self", "nav" (below body alone) or "". context: whether its start depends
    on what is around it, or its end does. blind: an image without an address. marked: it may have
    attributes of ours, or be but part of a tag. rare: to be looked at again. clean: what `write` makes; empty before.
    """

    __slots__ = (
        "_token", "blind", "block", "clean", "closing", "context", "inline", "kind", "marked", "name", "own", "rare",
        "removed",
    )  # fmt: skip

    def __init__(self, name: str, kind: int) -> None:
        is_instruction = name[0] == "?"
        self.name, self.kind = name, kind
        self.inline = name in INLINE_TAGS or is_instruction
        self.block = not self.inline and name not in ("td", "th", "li", "dt", "dd", "math")
        self.context = name in (_CLOSING_TAGS if kind == END else _CONTEXT_TAGS) or is_instruction
        self.removed = "tail" if name in _REMOVED_TAGS else ""
        self.own = 0 if self.inline or name in _CELL_TAGS else NO_CELL
        if is_instruction:
            self.own = NO_CELL | SIGHT | ODD
        elif name in _ODD_TAGS or _ODD_NAME.search(name):
            self.own |= ODD
        self.blind, self.marked = name == "img", False
        self.rare = bool(self.own & ODD or self.blind or name in RAW_TAGS)
        self._token = name
        self.closing = _guarded(f"</{name}>")
        self.clean = self.closing if kind == END else "" if kind == GONE else _guarded(f"<{name}>")

    def varied(self, token: str) -> Tag:
        """Make a tag with attributes of this one, which has none."""
        tag: Tag = Tag.__new__(Tag)
        tag.name, tag.kind, tag.inline, tag.block, tag.context = (
            self.name, self.kind, self.inline, self.block, self.context,
        )  # fmt: skip
        tag.own, tag.removed, tag.rare, tag.blind, tag.marked = self.own, self.removed, self.rare, False, False
        tag._token, tag.clean, tag.closing = token, "", self.closing
        return tag

    def attributes(self) -> dict[str, str]:
        """Find the attributes of a start tag, as written; keys are like ` class`."""
        token, start = self._token, len(self.name)
        if "='" not in token:
            pieces = token[start:].split('"')
            keys = "".join(pieces[:-1:2]).split("=")  # an attribute without a value is without `=`
            count = len(keys) - 1
            if "".join(keys).count(" ") == count == len(pieces) // 2 and not keys[-1] and not pieces[-1]:
                return dict(zip(keys, pieces[1::2], strict=False))
        return {key: double or single for key, double, single in _ATTRIBUTE.findall(token, start)}

    def look(self) -> None:
        """Note what the attributes make of the tag."""
        found = self.attributes()
        if self.name == "img":
            source = found.get(" src", "")
            self.blind = _is_blind(source)
            if not self.blind:
                self.own |= SIGHT
                if source[0] == "%" or source[-3:-2] == "%":
                    self.own |= ODD  # it may be white space, which is to be stripped
        if not self.removed:
            if found.get(" class") == "nav" or found.get(" id") == "nav":
                self.removed = "nav"
            if " style" in found and _is_invisible(found[" style"]):
                self.removed = "self"
        if any(key.startswith(" {") for key in found):
            self.own |= ODD
        self.marked = self._token.count('"') % 2 == 1 or any(key in self._token for key in _MARKS)
        self.rare |= self.blind or self.marked or bool(self.own & ODD)

    def write(self) -> str:
        """Write the tag as the simplified HTML has it, with guards on white space that is not to be folded."""
        if self.clean or self.kind == GONE:
            return self.clean
        clean = f"<{self._token}"
        if self.name == "img" or not _AS_IT_IS(self._token, len(self.name)):
            found = self.attributes()
            clean = f"<{self.name}"
            for key in (" src", " alt", " class", " id") if self.name == "img" else (" class", " id"):
                value = found.get(key)
                if value and (value := value.strip()) and not (key == " src" and _is_blind(value)):
                    clean += f"{key}='{value}'" if '"' in value else f'{key}="{value}"'
        self.clean = _guarded(clean) + ">"
        return self.clean


class _Tags(dict[str, Tag]):
    """Tags by what is written between `<` and `>`."""

    def __missing__(self, token: str) -> Tag:
        name, blank, _ = token.partition(" ")
        if not blank:
            is_end = token[0] == "/"
            tag = Tag(name[is_end:], END if is_end else VOID if name in VOID_TAGS else START)
        elif name[0] == "?":
            return Tag(name, VOID)
        else:
            tag = self[name]
            is_telling = token.count('"') % 2 == 1 or any([mark in token for mark in _MARKS])  # noqa: C419 - faster
            if not tag.removed and not is_telling:
                is_telling = '="nav"' in token or "{" in token or name == "img"
                is_telling = is_telling or (" style=" in token and _HIDING.search(token) is not None)
                if not is_telling and (" class=" in token or " id=" in token or name in _READ_TAGS):
                    tag = tag.varied(token)
            if is_telling:
                tag = tag.varied(token)
                tag.look()
        if len(token) < _MAX_TOKEN:
            self[token] = tag
        return tag


def read_tags(tokens: list[str]) -> list[Tag]:
    """Read what is written between each `<` and `>`."""
    if len(_known) > _MAX_KNOWN:
        _known.clear()
    return [_known[token] for token in tokens]


def attribute(token: str, key: str) -> re.Match[str] | None:
    """Find an attribute in a start tag."""
    found = _ATTRIBUTE.finditer(token, len(token.partition(" ")[0]))
    return next((match for match in found if match[1] == f" {key}"), None)


def _is_blind(source: str) -> bool:
    return not source.strip() or source.startswith("data:image/")


def _is_invisible(style: str) -> bool:
    for declaration in unescape(style).split(";") if style else ():
        key, colon, value = declaration.partition(":")
        if colon and _INVISIBLE.get(key.strip()) == value.strip():
            return True
    return False


def unescape(text: str) -> str:
    """Undo the escapes of an HTML serialisation."""
    if "&" not in text:
        return text
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&amp;", "&")


def _guarded(markup: str) -> str:
    """Put stand-ins, which are nowhere else in HTML, for white space that is not to be folded."""
    if markup.isascii() and markup.isprintable() and "  " not in markup:
        return markup
    return _SPACE.sub(lambda found: f"<!{ord(found[0])}>", markup)


def folded(markup: str) -> str:
    """Write every run of white space as one blank, but for what is guarded."""
    markup = " ".join(markup.split())
    return _STAND_IN.sub(lambda found: chr(int(found[1])), markup) if "<!" in markup else markup


_known = _Tags()
GONE_TAG = Tag("gone", GONE)
NO_END_TAG = Tag("li", GONE)
"""The end of a list item without content, which HTML leaves out."""
