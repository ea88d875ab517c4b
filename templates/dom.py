"""The parsed page: parsing within bounds, and the text of a tree."""

from __future__ import annotations

import re
import zlib
from typing import cast

import lxml.etree
import lxml.html
from lxml.html import HtmlElement

MAX_HTML_CHARS = 32 * 1024 * 1024
"""Larger pages are refused: their tree would take more than half a gigabyte (about 15 bytes of tree a character)."""

MAX_DEPTH = 2000
"""libxml2 drops all content nested deeper than 2,048 elements without raising; so deep a page is flattened."""

_SPACE = re.compile(r"\s+")
_LONG = 32768
_LONG_TAG = re.compile(f"<[a-zA-Z][^<>]{{{_LONG},}}>")
_UNREAD = re.compile(
    r"(<(script|style|textarea|title)\b[^>]*>).*?(?:</\2|\Z)|<!--.*?(?:-->|\Z)", re.DOTALL | re.IGNORECASE
)
"""What stands where no tag is read, be it like one."""
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_TAG = re.compile(r"<(/?)([a-zA-Z][^\s/>]*)[^<>]*>")
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
_MAX_ATTRIBUTES = 1000
"""libxml2 compares each attribute of a tag with all earlier ones: 300,000 of them take minutes."""

_CLASSES = lxml.etree.ElementDefaultClassLookup(element=HtmlElement)
"""One class for all elements: lxml.html's own lookup is Python, called for each element whenever it is touched."""

TEXTLESS = ("head", "script", "style", "template", "noscript")

_LEAST_NOSCRIPT = 200
"""Characters: notes that scripts are needed, and addresses of counting pixels, are shorter."""


class PageError(ValueError):
    """A page that cannot be processed, for a `reason` (a slug) that becomes its row's error."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __reduce__(self) -> tuple[type[PageError], tuple[str]]:
        return PageError, (self.reason,)


def parse(html: str) -> HtmlElement:
    """Parse a page into its `html` element, without comments and processing instructions.

    Positional XPaths of elements are those of `lxml.html.document_fromstring(html)`, but for pages that have content
    after an end tag of `body` or `html`, which libxml2 loses, or that are nested deeper than it goes: see `flattened`.
    Raises PageError: `empty`, `too_large`, `too_deep`, `too_many_attributes`, `unparsable`.
    """
    if len(html) > MAX_HTML_CHARS:
        raise PageError("too_large")
    if _has_endless_tag(html) and _has_endless_tag(_UNREAD.sub(r"\1", html)):
        raise PageError("too_many_attributes")
    html = _unended(html)
    try:
        return _parsed(html)
    except PageError as error:
        if error.reason != "too_deep":
            raise
        return _parsed(flattened(html))


def _parsed(html: str) -> HtmlElement:
    # UTF-8 bytes with the encoding fixed: lxml refuses a str that carries an encoding declaration, and
    # libxml2 would otherwise obey a meta tag that is wrong by now. NUL ends the document for libxml2.
    data = html.replace("\0", "").encode("utf-8", "replace")
    parser = lxml.html.HTMLParser(
        encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True, collect_ids=False
    )
    parser.set_element_class_lookup(_CLASSES)
    try:
        root = lxml.etree.fromstring(data, parser)
    except lxml.etree.LxmlError:
        raise PageError("empty" if not data.strip() else "unparsable") from None
    if root is None:
        raise PageError("empty")
    if any("depth" in entry.message for entry in parser.error_log.filter_from_fatals()):
        raise PageError("too_deep")
    return root


def _unended(html: str) -> str:
    """Take the end tags of body and html out where anything follows them: browsers show it."""
    for end in ("</body>", "</BODY>", "</html>", "</HTML>"):
        place = html.find(end)
        if place >= 0 and html[place + len(end) :].strip().lower() not in ("", "</html>"):
            html = html.replace(end, "")
    return html


def flattened(html: str, depth: int = MAX_DEPTH // 4) -> str:
    """Return HTML without the tags of elements nested deeper than that; those of blocks become line breaks."""
    out: list[str] = []
    end, level = 0, 0
    for tag in _TAG.finditer(html):
        name = tag[2].lower()
        if name in _VOID or name == "html":
            continue
        deep = level > depth if tag[1] else level >= depth
        level = max(level - 1, 0) if tag[1] else level + 1
        if deep and name not in ("script", "style"):
            out += html[end : tag.start()], "<br>" if name in _BLOCKS else ""
            end = tag.end()
    out.append(html[end:])
    return "".join(out)


def _has_endless_tag(html: str) -> bool:
    if len(html) <= _LONG:
        return False
    return any(len(_QUOTED.sub("", tag[0]).split()) > _MAX_ATTRIBUTES for tag in _LONG_TAG.finditer(html))


_BLOCKS = frozenset(
    "address article aside blockquote body br caption center dd details dialog div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hr li main menu nav ol option p pre section summary table tbody td tfoot "
    "th thead title tr ul".split()
)


def visible_text(root: HtmlElement) -> str:
    """Return the text of a tree, a line for each block, with white space folded; nothing of scripts and styles."""
    pieces: list[str] = []
    for event, element in lxml.etree.iterwalk(root, events=("start", "end")):
        is_block = element.tag in _BLOCKS
        if event == "start":
            if is_block:
                pieces.append("\n")
            if element.text and element.tag not in TEXTLESS:
                pieces.append(_SPACE.sub(" ", element.text))
        else:
            if is_block:
                pieces.append("\n")
            if element.tail and element is not root:
                pieces.append(_SPACE.sub(" ", element.tail))
    lines = (_SPACE.sub(" ", line).strip() for line in "".join(pieces).split("\n"))
    return "\n".join(line for line in lines if line)


def strip_textless(root: HtmlElement) -> None:
    """Remove, in place, the elements whose text is no text of the page: head, script, style, template, noscript.

    Scripts of a `math/` type stay: they hold the TeX of a formula that MathJax shows. Where `noscript_is_page`,
    noscript elements stay too, as `div`.
    """
    if noscript_is_page(root):
        for noscript in list(root.iter("noscript")):
            noscript.tag = "div"
    formulas = [script for script in root.iter("script") if (script.get("type") or "").startswith("math/")]
    for script in formulas:
        script.tag = "math-script"
    lxml.etree.strip_elements(root, *TEXTLESS, with_tail=False)
    for script in formulas:
        script.tag = "script"


def noscript_is_page(root: HtmlElement) -> bool:
    """Tell whether most of a page's text stands in `noscript`: what readers see where scripts don't build the page.

    Call it before `strip_textless`.
    """
    inside = sum(text_length(noscript) for noscript in root.iter("noscript"))
    if inside < _LEAST_NOSCRIPT:
        return False
    silent = sum(text_length(element) for element in root.iter("title", "script", "style", "template"))
    return inside > text_length(root) - silent - inside


def text_length(element: HtmlElement) -> int:
    """Count the characters of an element's text, white space folded, in C: faster than to fetch the text."""
    return int(cast(float, _normalised_length(element)))


_normalised_length = lxml.etree.XPath("string-length(normalize-space(.))")


def line_hash(text: str) -> int:
    """CRC-32 of a stripped text, by which a template remembers a line."""
    return zlib.crc32(text.encode("utf-8", "replace"))
