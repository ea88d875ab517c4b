"""The text of a code element: lines and indentation as shown, without line numbers, buttons and prompts."""

from __future__ import annotations

import re
from functools import lru_cache

import lxml.etree
from lxml.html import HtmlElement

_BLOCKS = frozenset(
    "div p li tr table tbody thead ol ul dl dt dd blockquote section article aside header footer main figure "
    "figcaption caption h1 h2 h3 h4 h5 h6 pre".split()
)
_LINES = frozenset(("li", "tr"))
_STRUCTURE = frozenset(("table", "tbody", "thead", "tr", "ol", "ul"))
DROPPED = frozenset(
    "button script style template noscript textarea input select svg head iframe object audio video".split()
)
_ROOTS = frozenset(
    "fragment syntaxhighlighter dp-highlighter codemirror-code cm-content view-lines linenums ace_text-layer".split()
)
"""Classes of elements that hold lines of code without any `pre`."""
_CELLS = frozenset(
    "code blob-code blob-code-inner crayon-code crayon-pre filecontents-linecontents line-code hljs-ln-code "
    "line_content lines-code code-line rouge-code lntd de1 container".split()
)
_GUTTERS = frozenset(
    "gutter lineno linenos linenodiv linenumber linenumbers line-number line_number rouge-gutter lnt "
    "blob-num hljs-ln-numbers hljs-ln-n crayon-nums crayon-num crayon-nums-content line-numbers-rows "
    "codemirror-linenumber codemirror-gutter codemirror-gutter-wrapper codemirror-gutters cm-gutters "
    "cm-gutter react-code-line-number diff-line-num code-line-number linenum line-num lnnum "
    "filecontents-linenum linenumbering token-line-number ace_gutter lines-number lines-num pre-numbering ".split()
)
_NUMBERS = frozenset("line-numbers ln gl num lno nr n ll".split())
"""Classes of line numbers and of other things: an element of one is a line number if its text is."""
_PROMPTS = frozenset("prompt shell-prompt command-prompt cli-prompt command-line-prompt prompt-symbol".split())
_TOOLS = frozenset("toolbar crayon-toolbar crayon-plain-wrap crayon-info crayon-tools zeroclipboard-container".split())
_LINE = frozenset(("line", "code-line", "codemirror-line", "cm-line", "view-line", "token-line", "crayon-line", "cl"))
_NUMBER = re.compile(r"\s*\d+[.:|]?\s*\Z")
_SHELL = re.compile(r"\s*[$#%]\s*\Z")
_UNSELECTABLE = re.compile(r"user-select\s*:\s*none")
HIDDEN_STYLE = re.compile(r"(?<![\w-])display\s*:\s*none", re.IGNORECASE)
"""Of an inline style. `visibility` is not heeded: much of what it hides is shown by a script at once."""
_DISPLAY_BLOCK = re.compile(r"(?<![\w-])display\s*:\s*block")
CHARACTERS = str.maketrans({"\xa0": " ", "\r": None, "\u200b": None, "\ufeff": None, "\xad": None})
_FOLDED = re.compile(r"[ \t\r]*\n\s*")
_BLANK = re.compile(r"^[ \t]+$", re.MULTILINE)
_LEADING = re.compile(r"\A\n+")


@lru_cache(maxsize=8192)
def kind_of(name: str) -> str:
    """Return what a class says inside a code block: drop, tool, number, prompt, line, root, cell or nothing."""
    tokens = set(name.lower().split())
    if tokens & _GUTTERS or tokens & _PROMPTS:
        return "drop"
    if tokens & _TOOLS or any(
        ("copy" in token and "copyright" not in token) or "clipboard" in token for token in tokens
    ):
        return "tool"
    for kind, names in (("line", _LINE), ("root", _ROOTS), ("cell", _CELLS), ("number", _NUMBERS)):
        if tokens & names:
            return kind
    return "prompt" if "gp" in tokens else ""


def text_of(root: HtmlElement) -> str:
    """Return the code of an element as it is shown: white space kept, a line for each line element."""
    if len(root) == 0:
        return clean(root.text or "")
    writer = _Writer(root)
    return clean("".join(writer.pieces))


def loose_text(element: HtmlElement) -> str:
    """Return the code of an element outside `pre`: where it has `br`, those are its line breaks and no others."""
    if next(element.iter("br"), None) is None:
        return text_of(element)
    pieces = _Writer(element, folds=True).pieces
    return clean("".join(pieces))


def clean(text: str) -> str:
    """Return code without blank lines around it; a fixed space is a space, what has no width is nothing."""
    return _LEADING.sub("", _BLANK.sub("", text.translate(CHARACTERS))).rstrip()


class _Writer:
    """Collects the pieces of code below a root, each either a text or a line break."""

    def __init__(self, root: HtmlElement, folds: bool = False) -> None:
        self.pieces: list[str] = []
        self.folds = folds
        # Filters that make `br` of line feeds keep the line feeds: there the two are one line break.
        self.doubled = not folds and all((br.tail or "").startswith(("\n", "\r\n")) for br in root.iter("br"))
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
        if element.tag in DROPPED or not isinstance(element.tag, str):
            return True
        name = element.get("class")
        kind = kind_of(name) if name else ""
        if kind in ("drop", "tool"):
            return True
        text = element.text or ""
        if kind == "number" and len(element) == 0:
            return _NUMBER.match(text) is not None
        if kind == "prompt":
            return not self.keeps_prompts and _SHELL.match(text) is not None
        style = element.get("style")
        if style and (
            HIDDEN_STYLE.search(style) or (_UNSELECTABLE.search(style) and len(text) < 13 and len(element) == 0)
        ):
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
                self.write(text)

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
            same = following is not None and following.tag == tag and self.kind(following) == self.kind(element)
            if same and (tag != "code" or element.getparent().tag == "pre"):
                self.fresh_line()
        if tail and not (tail.isspace() and (element.getparent().tag in _STRUCTURE or (is_block and "\n" in tail))):
            self.write(tail[tail.index("\n") + 1 :] if tag == "br" and self.doubled else tail)

    def write(self, text: str) -> None:
        if self.folds and "\n" in text:
            text = _FOLDED.sub(" ", text)
            if not self.pieces or self.pieces[-1].endswith("\n"):
                text = text.lstrip(" ")
        if text:
            self.pieces.append(text)

    def fresh_line(self) -> None:
        if self.pieces and not self.pieces[-1].endswith("\n"):
            self.pieces.append("\n")

    @staticmethod
    def kind(element: HtmlElement) -> str:
        name = element.get("class")
        return kind_of(name) if name else ""

    @staticmethod
    def is_block(element: HtmlElement) -> bool:
        if element.tag in _BLOCKS:
            return True
        style = element.get("style")
        return style is not None and _DISPLAY_BLOCK.search(style) is not None
