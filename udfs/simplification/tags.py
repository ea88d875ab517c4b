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
_INVISIBLE = {
    "display": "none", "font-size": "0px", "color": "transparent", "visibility": "hidden", "opacity": "0",
}  # fmt: skip

_ATTRIBUTE = re.compile(r"(\s=?[^\s=]*)(?:=(?:\"([^\"]*)\"|'([^']*)'))?")
_ODD_NAME = re.compile("[\"'&<]")
_HIDING = re.compile("none|0px|transparent|hidden|opacity")
_AS_IT_IS = re.compile(r"(?: class=%s)?(?: id=%s)?" % (2 * ('"[!#-~]+(?: [!#-~]+)*"',))).fullmatch
_SPACE, _STAND_IN = re.compile(r"\s"), re.compile(r"<!(\d+)>")
_MAX_TOKEN, _MAX_KNOWN = 250, 10_000


class Tag:
    """What tags of a name are to the preprocessing, without or with a class or id; or one tag with telling attributes.

    removed: "tail" (with the text after it), "self", "nav" (below body alone) or "". context: whether its start depends
    on what is around it, or its end does. blind: an image without an address. marked: it may have attributes of ours,
    or be but part of a tag. rare: to be looked at again. clean: the tag in the simplified HTML; None if it depends on
    its attributes. attributed: the same tag with a class or id.
    """

    __slots__ = (
        "attributed", "blind", "block", "clean", "closing", "context", "inline", "kind", "marked", "name", "own",
        "rare", "removed",
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
        self.closing = _guarded(f"</{name}>")
        self.clean: str | None = self.closing if kind == END else "" if kind == GONE else _guarded(f"<{name}>")
        self.attributed: Tag | None = None

    def look(self, token: str) -> None:
        """Note what the attributes make of the tag."""
        found = attributes(token)
        self.clean = None
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
        if "{" in token and any(key.startswith(" {") for key in found):
            self.own |= ODD
        self.marked = _is_marked(token)
        self.rare |= self.blind or self.marked or bool(self.own & ODD)


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
            is_telling = not tag.removed and (name == "img" or '="nav"' in token or "{" in token)
            if not is_telling and " style=" in token and _HIDING.search(token):
                is_telling = not tag.removed
            if is_telling or _is_marked(token):
                tag = Tag(name, tag.kind)
                tag.look(token)
            elif not tag.removed and (" class=" in token or " id=" in token):
                if tag.attributed is None:
                    tag.attributed = Tag(name, tag.kind)
                    tag.attributed.clean = None
                tag = tag.attributed
        if len(token) < _MAX_TOKEN:
            self[token] = tag
        return tag


def _is_marked(token: str) -> bool:
    return "data-uid" in token or "cc-select" in token or "='" in token or token.count('"') & 1 == 1


class _CleanTags(dict[str, str]):
    """Start tags as the simplified HTML has them, with guards on white space that is not to be folded."""

    def __missing__(self, token: str) -> str:
        name = token.partition(" ")[0]
        clean = f"<{token}"
        if name == "img" or not _AS_IT_IS(token, len(name)):
            found = attributes(token)
            clean = f"<{name}"
            for key in (" src", " alt", " class", " id") if name == "img" else (" class", " id"):
                value = found.get(key)
                if value and (value := value.strip()) and not (key == " src" and _is_blind(value)):
                    clean += f"{key}='{value}'" if '"' in value else f'{key}="{value}"'
        clean = _guarded(clean) + ">"
        if len(token) < _MAX_TOKEN:
            self[token] = clean
        return clean


def read_tags(tokens: list[str]) -> list[Tag]:
    """Read what is written between each `<` and `>`."""
    if len(_known) > _MAX_KNOWN:
        _known.clear()
        _clean.clear()
    return [_known[token] for token in tokens]


def clean_tags(tags: list[Tag], tokens: list[str]) -> list[str]:
    """Write tags as the simplified HTML has them."""
    return [_clean[token] if (clean := tag.clean) is None else clean for tag, token in zip(tags, tokens, strict=True)]


def clean_tag(token: str) -> str:
    """Write a start tag as the simplified HTML has it, where that depends on its attributes."""
    return _clean[token]


def attributes(token: str) -> dict[str, str]:
    """Find the attributes of a start tag, as written; keys are like ` class`."""
    start = len(token.partition(" ")[0])
    if "='" not in token:
        pieces = token[start:].split('"')
        keys = "".join(pieces[:-1:2]).split("=")  # an attribute without a value is without `=`
        count = len(keys) - 1
        if "".join(keys).count(" ") == count == len(pieces) // 2 and not keys[-1] and not pieces[-1]:
            return dict(zip(keys, pieces[1::2], strict=False))
    return {key: double or single for key, double, single in _ATTRIBUTE.findall(token, start)}


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


_known, _clean = _Tags(), _CleanTags()
HEAD_TAG = Tag("head", VOID)
"""The whole head of a page, which nothing is asked of."""
GONE_TAG = Tag("gone", GONE)
NO_END_TAG = Tag("li", GONE)
"""The end of a list item without content, which HTML leaves out."""
