"""Code on a page: the block or the inline code that an element is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from lxml.html import HtmlElement

from udfs.conversion import languages
from udfs.conversion.codetext import CHARACTERS, DROPPED, clean, kind_of, loose_text, text_of


@dataclass(frozen=True)
class Code:
    """A code block. Empty `code`: the element shows no code of its own (a gutter), it is to be dropped."""

    code: str
    language: str | None


_PRE = frozenset(("pre", "xmp", "listing"))
_INLINE = frozenset(("code", "samp", "tt", "kbd"))
_PROSE = frozenset("h1 h2 h3 h4 h5 h6 img picture iframe video audio math figcaption caption".split())
_DEPTH = 16
"""Elements that a wrapper may nest above its code; GitHub's gists need eleven. It bounds what is looked at twice."""
_WRAPPER = re.compile(
    r"code|highlight|syntax|crayon|brush|prism|fragment|source|gist|chroma|shiki|lntable|linenums|listing|lang|rouge|"
    r"prettyprint|hljs|geshi|blob|file-?line|filecontents|monaco|dp-|view-lines|ace_",
    re.IGNORECASE,
)
_HOLDERS = frozenset(
    "code codeblock code-block code_block codebox code-box blockcode sourcecode source-code source_code codeview "
    "programlisting bbcode_code tformatcodeblock".split()
)
"""Classes of elements whose text may be code, if it has lines and no paragraphs."""
_LABELS = frozenset(
    "code code: copy copied copied! download edit raw expand collapse run wrap 复制 复制代码 代码 代码: 代码："
    " コピー копировать kopieren copier copiar plain output".split()
) | {
    "select all",
    "copy code",
    "copy to clipboard",
    "view raw",
    "plain text",
    "php code:",
    "quick edit",
    "view source",
}
_NUMBERED = re.compile(r"\s*\d+(?:\s+\d+)*\s*\Z")
_SPACE = re.compile(r"\s+")


@lru_cache(maxsize=8192)
def _may_wrap(name: str) -> bool:
    return _WRAPPER.search(name) is not None


def block(element: HtmlElement) -> Code | None:
    """Return the code block that an element is the wrapper of, None if it is not one or is more than one.

    A `pre`, a highlighter's wrapper, a table of code lines, a paragraph of nothing but lines in `code`; for a
    `code` element only if it stands alone and has several lines. Looks at no more than the tag, the class and
    the first child of other elements.
    """
    tag = element.tag
    if tag in _PRE:
        return _of_pre(element)
    name = element.get("class")
    if name is not None and _may_wrap(name) and tag not in ("body", "main", "article", "html") and tag not in _INLINE:
        code = _of_wrapper(element)
        if code is not None:
            return code
    if tag == "table":
        return _of_wrapper(element) if _has_code_cells(element) else None
    if len(element) > 1 and element[0].tag == "div" and kind_of(element[0].get("class") or "") == "line":
        return _of_lines(element)
    if tag == "code":
        return _of_lone_code(element)
    if tag in ("p", "div", "dd", "center", "figure") and len(element) and element[0].tag == "code":
        return _of_grouped(element)
    return None


def inline(element: HtmlElement) -> str | None:
    """Return the text of a `code`, `samp`, `tt` or `kbd` element with white space folded, None for others."""
    if element.tag not in _INLINE:
        return None
    text = "".join(element.itertext()).translate(CHARACTERS)
    if len(element) and next(element.iter("br"), None) is not None:
        text = text_of(element)
    return _SPACE.sub(" ", text).strip()


def _of_pre(pre: HtmlElement) -> Code | None:
    if next(pre.iter("h1", "h2", "h3", "img", "iframe", "video"), None) is not None:
        return None
    parents = _nearest(pre, 4)
    text = text_of(pre)
    if _NUMBERED.match(text) and any(kind_of(one.get("class") or "") == "drop" for one in (pre, *parents[:3])):
        return Code("", None)
    return Code(text, languages.of(_chain(pre, parents)))


def _nearest(element: HtmlElement, count: int) -> list[HtmlElement]:
    found: list[HtmlElement] = []
    parent = element.getparent()
    while parent is not None and len(found) < count and parent.tag not in ("body", "article", "main", "html"):
        found.append(parent)
        parent = parent.getparent()
    return found


def _chain(root: HtmlElement, parents: list[HtmlElement]) -> Iterator[HtmlElement]:
    """The elements that may name the language of a root: its `code` child, itself, the elements around it."""
    if root.tag in _PRE:
        for child in root[:3]:
            if child.tag == "code":
                yield child
                break
    yield root
    name = ""
    for parent in parents:
        # A parent that holds other blocks too says nothing about this one, unless its class is a highlighter's.
        name = parent.get("class") or ""
        # lxml counts children one by one: len() for each of many siblings would be quadratic.
        if _may_wrap(name) or sum(1 for _ in islice(parent, 4)) < 4:
            yield parent


def _has_code_cells(table: HtmlElement) -> bool:
    """Whether the first row of a table has a gutter and a cell of code."""
    row = table
    for _ in range(3):
        row = next((child for child in row[:3] if child.tag in ("tbody", "tr")), row)
    kinds = [kind_of(cell.get("class") or "") for cell in row[:4] if cell.tag == "td"]
    return "cell" in kinds and "drop" in kinds


def _of_wrapper(wrapper: HtmlElement) -> Code | None:
    found = _roots(wrapper)
    if found is None:
        return _of_holder(wrapper)
    roots, label = found
    if not roots:
        return _of_holder(wrapper)
    if len(roots) > 1:
        kept = [root for root in roots if root.tag not in _PRE or not _NUMBERED.match(text_of(root))]
        if not kept or (len(kept) > 1 and any(root.tag in _PRE for root in kept)):
            return None
        roots = kept
    text = text_of(roots[0]) if len(roots) == 1 else text_of(wrapper)
    if not text:
        return None
    first = roots[0]
    holders = _nearest(first, 6)
    language = languages.of(_chain(first, holders if first is not wrapper else _nearest(wrapper, 2)))
    return Code(text, language or (languages.known(label) if label.lower() in languages.KNOWN else None))


def _of_holder(holder: HtmlElement) -> Code | None:
    """An element that is code by its class alone: lines by `br`, `li` or line feeds, with nothing but text in them."""
    named = _HOLDERS & set((holder.get("class") or "").lower().split())
    if not named:
        return None
    breaks = 0
    for index, element in enumerate(holder.iter()):
        breaks += element.tag in ("br", "li")
        if element.tag in _PROSE or element.tag in ("p", "pre", "table") or index > (5000 if breaks else 20):
            return None
    if not breaks:
        return None
    lines = text_of(holder).split("\n")
    while lines and lines[0].strip().lower() in _LABELS:
        del lines[0]
    while lines and lines[-1].strip().lower() in _LABELS:
        del lines[-1]
    text = clean("\n".join(lines))
    # A single line under the class "code" is as often a code to redeem.
    return Code(text, languages.of([holder])) if "\n" in text or (text and named != {"code"}) else None


def _of_lines(element: HtmlElement) -> Code | None:
    """Line elements of a highlighter and nothing else, where the wrapper has no class that says so."""
    for child in element:
        if kind_of(child.get("class") or "") != "line" or (child.tail and not child.tail.isspace()):
            return None
    first = next(element.iter("code"), element)
    return Code(text_of(element), languages.of([first, *_nearest(element, 2)]))


def _roots(wrapper: HtmlElement) -> tuple[list[HtmlElement], str] | None:
    """The elements of a wrapper that hold its code, and its label; None if it shows anything else."""
    roots: list[HtmlElement] = []
    labels: list[str] = []
    stack: list[tuple[HtmlElement, int, bool]] = [(wrapper, 0, False)]
    pres = 0
    while stack:
        element, depth, inside = stack.pop()
        tag = element.tag
        name = element.get("class")
        kind = kind_of(name) if name else ""
        if depth and not inside and element.tail and not element.tail.isspace():
            labels.append(element.tail)
        if tag in DROPPED or element.get("hidden") is not None or (kind in ("drop", "tool") and _is_aside(element)):
            continue
        if tag in _PROSE or depth > _DEPTH or (tag == "p" and not inside):
            return None
        if tag in _PRE:
            if inside and kind == "line":
                continue
            if roots and roots[-1].tag not in _PRE and _is_within(element, roots[-1]):
                roots.pop()
            pres += kind != "line"
            if pres > 2:
                return None
            roots.append(element)
            continue
        if tag in _INLINE or (not inside and (kind == "root" or (kind == "cell" and tag == "td"))):
            if not inside:
                roots.append(element)
            if tag in _INLINE or (kind == "root" and tag != "div"):
                continue
            inside = True
        if not inside and element.text and not element.text.isspace():
            labels.append(element.text)
        if len(labels) > 3:
            return None
        for child in reversed(element):
            stack.append((child, depth + 1, inside))
    words = [" ".join(label.split()) for label in labels]
    if any(word.lower() not in _LABELS and word.lower() not in languages.KNOWN for word in words):
        return None
    return roots, next((word for word in words if word.lower() in languages.KNOWN), "")


def _is_aside(element: HtmlElement) -> bool:
    """Whether a gutter or a tool bar by its class holds no code: the classes are also given to wrappers."""
    pre = next(element.iter("pre"), None)
    return pre is None or _NUMBERED.match(text_of(pre)) is not None


def _is_within(element: HtmlElement, holder: HtmlElement) -> bool:
    parent = element.getparent()
    for _ in range(_DEPTH):
        if parent is holder or parent is None:
            break
        parent = parent.getparent()
    return parent is holder


def _of_lone_code(code: HtmlElement) -> Code | None:
    """A `code` element of several lines with no text beside it."""
    before = code.getprevious()
    parent = code.getparent()
    if parent is not None and parent.tag in _INLINE:
        return None
    if code.tail and not code.tail.isspace():
        return None
    beside = before.tail if before is not None else parent.text if parent is not None else None
    if beside and not beside.isspace():
        return None
    text = loose_text(code)
    return Code(text, languages.of(_chain(code, _nearest(code, 2)))) if "\n" in text else None


def _of_grouped(element: HtmlElement) -> Code | None:
    """Lines of `code` with line breaks between them, and nothing else."""
    if element.text and not element.text.isspace():
        return None
    for child in element:
        if child.tag not in ("code", "br") or (child.tail and not child.tail.isspace()):
            return None
    text = loose_text(element)
    return Code(text, languages.of(_chain(element[0], [element]))) if "\n" in text else None
