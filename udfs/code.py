"""Code on a page: the block or the inline code that an element is, without line numbers, buttons and prompts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import lxml.etree
from lxml.html import HtmlElement

from udfs import languages


@dataclass(frozen=True)
class Code:
    """A code block. Empty `code`: the element shows no code of its own (a gutter), it is to be dropped."""

    code: str
    language: str | None


_PRE = frozenset(("pre", "xmp", "listing"))
_INLINE = frozenset(("code", "samp", "tt", "kbd"))
_BLOCKS = frozenset(
    "div p li tr table tbody thead ol ul dl dt dd blockquote section figure h1 h2 h3 h4 h5 h6 pre".split()
)
_LINES = frozenset(("li", "tr"))
_STRUCTURE = frozenset(("table", "tbody", "thead", "tr", "ol", "ul"))
_DROPPED = frozenset(
    "button script style template noscript textarea input select svg head iframe object audio video".split()
)
_PROSE = frozenset("h1 h2 h3 h4 h5 h6 img picture iframe video audio math figcaption caption".split())
_DEPTH = 16
"""Elements that a wrapper may nest above its code; GitHub's gists need eleven. It bounds what is looked at twice."""

_WRAPPER = re.compile(
    r"code|highlight|syntax|crayon|brush|prism|fragment|source|gist|chroma|shiki|lntable|linenums|listing|lang|rouge|"
    r"prettyprint|hljs|geshi|blob|file-?line|filecontents|monaco|dp-|view-lines|ace_",
    re.IGNORECASE,
)
_ROOTS = frozenset(
    "fragment syntaxhighlighter dp-highlighter codemirror-code cm-content view-lines linenums ace_text-layer".split()
)
"""Classes of elements that hold lines of code without any `pre`."""
_CELLS = frozenset(
    "code blob-code blob-code-inner crayon-code crayon-pre filecontents-linecontents line-code hljs-ln-code "
    "line_content code-line rouge-code lntd de1 container".split()
)
_GUTTERS = frozenset(
    "gutter lineno linenos linenodiv linenumber linenumbers line-number line_number rouge-gutter lnt blob-num hljs-ln-numbers "
    "hljs-ln-n crayon-nums crayon-num crayon-nums-content line-numbers-rows codemirror-linenumber codemirror-gutter "
    "codemirror-gutter-wrapper codemirror-gutters cm-gutters cm-gutter react-code-line-number diff-line-num "
    "code-line-number linenum line-num lnnum filecontents-linenum linenumbering token-line-number ace_gutter "
    "lines-number pre-numbering".split()
)
_NUMBERS = frozenset("line-numbers ln gl num lno nr n ll".split())
"""Classes of line numbers and of other things: an element of one is a line number if its text is."""
_PROMPTS = frozenset("prompt shell-prompt command-prompt cli-prompt command-line-prompt prompt-symbol".split())
_TOOLS = frozenset("toolbar crayon-toolbar crayon-plain-wrap crayon-info crayon-tools zeroclipboard-container".split())
_LINE = frozenset(("line", "code-line", "codemirror-line", "cm-line", "view-line", "token-line", "crayon-line", "cl"))
_LABELS = frozenset(
    "code code: copy copied copied! download edit raw expand collapse run wrap 复制 复制代码 代码 代码: 代码："
    " コピー копировать kopieren copier copiar plain output".split()
) | {"select all", "copy code", "copy to clipboard", "view raw", "plain text", "php code:", "quick edit", "view source"}

_NUMBER = re.compile(r"\s*\d+[.:|]?\s*\Z")
_NUMBERED = re.compile(r"\s*\d+(?:\s+\d+)*\s*\Z")
_SHELL = re.compile(r"\s*[$#%]\s*\Z")
_SPACE = re.compile(r"\s+")
_UNSELECTABLE = re.compile(r"user-select\s*:\s*none")
_HIDDEN = re.compile(r"display\s*:\s*none")
_DISPLAY_BLOCK = re.compile(r"display\s*:\s*block")
_CHARACTERS = str.maketrans({"\xa0": " ", "\r": None, "\u200b": None, "\ufeff": None, "\xad": None})
_LEADING = re.compile(r"\A(?:[ \t]*\n)+")


@lru_cache(maxsize=8192)
def _kind(name: str) -> str:
    """What a class attribute says inside a code block: drop, number, prompt, line, root, cell or nothing."""
    tokens = set(name.lower().split())
    if tokens & _GUTTERS or tokens & _PROMPTS or tokens & _TOOLS:
        return "drop"
    if any(("copy" in token and "copyright" not in token) or "clipboard" in token for token in tokens):
        return "drop"
    for kind, names in (("line", _LINE), ("root", _ROOTS), ("cell", _CELLS), ("number", _NUMBERS)):
        if tokens & names:
            return kind
    return "prompt" if "gp" in tokens else ""


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
    if tag == "code":
        return _of_lone_code(element)
    if tag in ("p", "div", "dd", "center", "figure") and len(element) and element[0].tag == "code":
        return _of_grouped(element)
    return None


def inline(element: HtmlElement) -> str | None:
    """Return the text of a `code`, `samp`, `tt` or `kbd` element with white space folded, None for others."""
    if element.tag not in _INLINE:
        return None
    text = "".join(element.itertext()).translate(_CHARACTERS)
    return _SPACE.sub(" ", text).strip()


def _of_pre(pre: HtmlElement) -> Code | None:
    if any(pre.iter("h1", "h2", "h3", "img", "iframe", "video")):
        return None
    parents = [parent for parent in pre.iterancestors() if parent is not None][:0]
    parents = _nearest(pre, 4)
    for holder in (pre, *parents[:3]):
        name = holder.get("class")
        if name and (holder is not pre or len(pre) == 0) and _kind(name) == "drop":
            return Code("", None)
    if "codemirror-line" in (pre.get("class") or "").lower():
        return None if parents and _kind(parents[0].get("class") or "") == "root" else Code(_text(pre), None)
    return Code(_text(pre), languages.of(_chain(pre, parents)))


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
        if len(parent) <= 3 or _may_wrap(name):
            yield parent


def _has_code_cells(table: HtmlElement) -> bool:
    """Whether the first row of a table has a gutter and a cell of code."""
    row = table
    for _ in range(3):
        row = next((child for child in row[:3] if child.tag in ("tbody", "tr")), row)
    kinds = [_kind(cell.get("class") or "") for cell in row[:4] if cell.tag == "td"]
    return "cell" in kinds and "drop" in kinds


def _of_wrapper(wrapper: HtmlElement) -> Code | None:
    found = _roots(wrapper)
    if found is None:
        return None
    roots, label = found
    if not roots:
        return None
    if len(roots) > 1:
        kept = [root for root in roots if root.tag not in _PRE or not _NUMBERED.match(_text(root))]
        if not kept or (len(kept) > 1 and any(root.tag in _PRE for root in kept)):
            return None
        roots = kept
    text = _text(roots[0]) if len(roots) == 1 else _text(wrapper)
    if not text:
        return None
    first = roots[0]
    holders = _nearest(first, 6)
    language = languages.of(_chain(first, holders if first is not wrapper else _nearest(wrapper, 2)))
    return Code(text, language or (languages.known(label) if label.lower() in languages.KNOWN else None))


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
        kind = _kind(name) if name else ""
        if depth and not inside and element.tail and not element.tail.isspace():
            labels.append(element.tail)
        if tag in _DROPPED or (kind == "drop" and depth) or element.get("hidden") is not None:
            continue
        if tag in _PROSE or depth > _DEPTH or (tag == "p" and not inside):
            return None
        if tag in _PRE:
            if roots and roots[-1].tag not in _PRE and _is_within(element, roots[-1]):
                roots.pop()
            pres += "codemirror-line" not in (name or "").lower()
            if pres > 2:
                return None
            roots.append(element)
            continue
        if tag in _INLINE or (kind in ("root", "cell") and not inside):
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
    if code.tail and not code.tail.isspace():
        return None
    beside = before.tail if before is not None else parent.text if parent is not None else None
    if beside and not beside.isspace():
        return None
    text = _text(code)
    return Code(text, languages.of(_chain(code, _nearest(code, 2)))) if "\n" in text else None


def _of_grouped(element: HtmlElement) -> Code | None:
    """Lines of `code` with line breaks between them, and nothing else."""
    if element.text and not element.text.isspace():
        return None
    for child in element:
        if child.tag not in ("code", "br") or (child.tail and not child.tail.isspace()):
            return None
    text = _text(element)
    return Code(text, languages.of(_chain(element[0], [element]))) if "\n" in text else None


def _text(root: HtmlElement) -> str:
    """The code of an element as it is shown: white space kept, a line for each line element."""
    if len(root) == 0:
        return _clean(root.text or "")
    writer = _Writer(root)
    return _clean("".join(writer.pieces))


def _clean(text: str) -> str:
    return _LEADING.sub("", text.translate(_CHARACTERS)).rstrip()


class _Writer:
    """Collects the pieces of code below a root, each either a text or a line break."""

    def __init__(self, root: HtmlElement) -> None:
        self.pieces: list[str] = []
        self.starts: list[int] = []
        # A shell prompt goes only where no output is shown: there it tells the two apart.
        self.keeps_prompts = any("go" in (span.get("class") or "").split() for span in root.iter("span"))
        walker = lxml.etree.iterwalk(root, events=("start", "end"))
        for event, element in walker:
            if event == "end":
                self.end(element, root)
            elif element is not root and self.drops(element):
                self.starts.append(-1)
                walker.skip_subtree()
            else:
                self.start(element, root)

    def drops(self, element: HtmlElement) -> bool:
        if element.tag in _DROPPED or not isinstance(element.tag, str):
            return True
        name = element.get("class")
        kind = _kind(name) if name else ""
        if kind == "drop":
            return True
        text = element.text or ""
        if kind == "number" and len(element) == 0:
            return _NUMBER.match(text) is not None
        if kind == "prompt":
            return not self.keeps_prompts and _SHELL.match(text) is not None
        style = element.get("style")
        if style and (_HIDDEN.search(style) or (_UNSELECTABLE.search(style) and len(text) < 13 and len(element) == 0)):
            return True
        return element.get("hidden") is not None

    def start(self, element: HtmlElement, root: HtmlElement) -> None:
        tag = element.tag
        if tag == "br":
            self.pieces.append("\n")
        elif element is not root and self.is_block(element):
            self.fresh_line()
        elif tag == "td" and self.pieces and not self.pieces[-1].endswith("\n"):
            self.pieces.append(" ")
        self.starts.append(len(self.pieces))
        text = element.text
        if text:
            between = text.isspace() and (
                tag in _STRUCTURE or ("\n" in text and len(element) and self.is_block(element[0]))
            )
            if not between:
                self.pieces.append(text)

    def end(self, element: HtmlElement, root: HtmlElement) -> None:
        start = self.starts.pop()
        if element is root:
            return
        tag, tail = element.tag, element.tail
        is_block = start >= 0 and self.is_block(element)
        if is_block:
            if tag in _LINES or self.kind(element) == "line":
                if len(self.pieces) == start or not self.pieces[-1].endswith("\n"):
                    self.pieces.append("\n")
            else:
                self.fresh_line()
        elif start >= 0 and not tail and (tag == "code" or self.kind(element) == "line"):
            following = element.getnext()
            if following is not None and following.tag == tag and self.kind(following) == self.kind(element):
                if tag != "code" or element.getparent().tag in _PRE:
                    self.fresh_line()
        if tail and not (tail.isspace() and (element.getparent().tag in _STRUCTURE or (is_block and "\n" in tail))):
            self.pieces.append(tail)

    def fresh_line(self) -> None:
        if self.pieces and not self.pieces[-1].endswith("\n"):
            self.pieces.append("\n")

    @staticmethod
    def kind(element: HtmlElement) -> str:
        name = element.get("class")
        return _kind(name) if name else ""

    @staticmethod
    def is_block(element: HtmlElement) -> bool:
        if element.tag in _BLOCKS:
            return True
        style = element.get("style")
        return style is not None and _DISPLAY_BLOCK.search(style) is not None
