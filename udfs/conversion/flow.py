"""The flow of a page: one pass over a tree that writes its blocks, and the inline content of each, in order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urljoin

from lxml.html import HtmlElement

from udfs.conversion import code, footnotes, math, paragraphs
from udfs.conversion.codetext import HIDDEN_STYLE
from udfs.conversion.inline import PLAIN, Line

Item = dict[str, Any]
Leave = Callable[[], None]
Entered = tuple[bool, Leave | None]
"""Whether an element is done with, and what is to be done at its end."""
Handler = Callable[["Flow", HtmlElement, str, str], Entered]
"""Begins an element, given with its tag and its XPath."""

_BLOCK_STYLE = re.compile(r"(?<![\w-])display\s*:\s*(?:block|flex|grid|table|list-item|flow-root)", re.IGNORECASE)
LITERAL_STYLE = re.compile(r"white-space\s*:\s*(?:pre|break-spaces)", re.IGNORECASE)
SKIP = frozenset(
    [
        "script",
        "style",
        "template",
        "head",
        "noscript",
        "title",
        "meta",
        "link",
        "base",
        "param",
        "area",
        "svg",
        "canvas",
        "iframe",
        "select",
        "option",
        "optgroup",
        "datalist",
        "colgroup",
        "col",
        "frameset",
        "noframes",
    ]
)
BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "body",
        "caption",
        "center",
        "details",
        "dialog",
        "div",
        "fieldset",
        "figcaption",
        "footer",
        "form",
        "header",
        "hgroup",
        "html",
        "legend",
        "main",
        "nav",
        "p",
        "search",
        "section",
        "summary",
        "table",
        "tbody",
        "td",
        "tfoot",
        "th",
        "thead",
        "tr",
        "dl",
        "pre",
        "listing",
        "xmp",
        "plaintext",
        "textarea",
    ]
)
_CODE_TAGS = frozenset(("pre", "listing", "xmp", "table", "code"))
_CODE_HOLDERS = frozenset(("p", "div", "dd", "center", "figure"))
_MATH_TAGS = frozenset(("math", "script", "img", "mjx-container"))


class Context:
    """What all flows of a page share: its address, and which elements are footnotes."""

    def __init__(self, root: HtmlElement, url: str) -> None:
        self.root = root
        self.base = url
        base = next(root.iter("base"), None)
        if base is not None and base.get("href"):
            self.base = self.address(base.get("href", ""))
        self.notes = footnotes.Notes(root)

    def address(self, href: str) -> str:
        """Return an address as an absolute one, if the page's own is known."""
        href = href.strip()
        if not self.base or href.startswith(("https://", "http://", "mailto:")):
            return href
        try:
            return urljoin(self.base, href)
        except ValueError:
            return href


class OpenList:
    """A list that is open: where its entries go, and what its next entry is."""

    def __init__(self, entries: list[Item], level: int, attribute: str, number: int, step: int) -> None:
        self.entries, self.level, self.attribute = entries, level, attribute
        self.number, self.step = number, step
        self.entry: Item | None = None


class Flow:
    """Reads a tree once and collects its items; `run` is all that others call."""

    def __init__(self, context: Context, handlers: Mapping[str, Handler], tables: int = 0) -> None:
        self.context, self.handlers, self.tables = context, handlers, tables
        self.items: list[Item] = []
        self.line = Line()
        self.style = PLAIN
        self.block = ""
        self.heading = 0
        self.literal = False
        self.quotes: list[str] = []
        self.lists: list[OpenList] = []
        self.quoted = 0
        self.image = ""  # the last picture's XPath

    def run(self, root: HtmlElement, place: str) -> list[Item]:
        """Return the items of what an element contains. `place` is its XPath."""
        self.block = place
        self._walk(root, place)
        self.flush()
        return self.items

    def _walk(self, root: HtmlElement, place: str) -> None:
        stack: list[tuple[Iterator[HtmlElement], HtmlElement, Leave | None, str, dict[str, int]]]
        stack = [(iter(root), root, None, place, {})]
        add = self.add
        if root.text:
            add(root.text)
        while stack:
            children, element, leave, place, counts = stack[-1]
            child = next(children, None)
            if child is None:
                stack.pop()
                if leave is not None:
                    leave()
                if stack and element.tail:
                    add(element.tail)
                continue
            tag = child.tag
            if not isinstance(tag, str):
                continue
            counts[tag] = number = counts.get(tag, 0) + 1
            here = f"{place}/{tag}[{number}]" if ":" not in tag else f"{place}/*[name()='{tag}'][{number}]"
            done, leave = self.enter(child, tag, here)
            if not done:
                if child.text:
                    add(child.text)
                if len(child):
                    stack.append((iter(child), child, leave, here, {}))
                    continue
                if leave is not None:
                    leave()
            if child.tail:
                add(child.tail)

    def add(self, text: str) -> None:
        """Add a text node."""
        if self.literal:
            self.line.literal(text, self.style)
        else:
            self.line.text(text, self.style)

    def enter(self, element: HtmlElement, tag: str, place: str) -> Entered:
        """Begin an element: whether it is done with, and what is to be done at its end."""
        classes = element.get("class")
        if (classes is not None or tag in _MATH_TAGS) and self._formula(element, tag, place):
            return True, None
        if tag in SKIP:
            return tag != "template" or element.get("shadowrootmode") is None, None
        style = element.get("style")
        if (style is not None and HIDDEN_STYLE.search(style)) or element.get("hidden") is not None:
            return True, None
        if element.get("aria-hidden") == "true" and tag not in BLOCKS:
            return True, None
        if (
            classes is not None
            or tag in _CODE_TAGS
            or (tag in _CODE_HOLDERS and len(element) and element[0].tag == "code")
        ):
            found = code.block(element)
            if found is not None:
                self._code(found, place)
                return True, None
        handler = self.handlers.get(tag)
        if handler is not None:
            return handler(self, element, tag, place)
        if style is not None:
            if _BLOCK_STYLE.search(style):
                return self.handlers["div"](self, element, tag, place)
            if LITERAL_STYLE.search(style):
                return False, self._literal()
        if classes is not None and tag == "span" and "footnote" in classes:
            return self._note(element)
        return False, None

    # --- blocks

    def put(self, kind: str, content: Item, place: str) -> None:
        """Add an item where the flow stands: in the open entry of a list, or on the page."""
        item: Item = {"type": kind, "xpath": place, "content": content}
        if self.quotes:
            item["quotes"] = list(self.quotes)
        self.sink().append(item)

    def sink(self) -> list[Item]:
        """Return the list that the next item goes to."""
        if not self.lists:
            return self.items
        top = self.lists[-1]
        if top.entry is None:
            top.entry = {"level": top.level, "attribute": "continuation", "blocks": []}
            top.entries.append(top.entry)
        blocks: list[Item] = top.entry["blocks"]
        return blocks

    def flush(self) -> None:
        """End the block of text that is being read."""
        if not self.line:
            return
        segments = self.line.take()
        if self.heading:
            segments = paragraphs.heading(segments)
            if segments:
                self.put("title", paragraphs.title(segments, self.heading), self.block)
            return
        for kind, content in paragraphs.units(segments):
            self.put(kind, content, self.image if kind == "image" else self.block)

    def boundary(self) -> None:
        """End a line at the edge of a block; within a heading that is but a blank."""
        if self.heading:
            self.line.blank()
        else:
            self.flush()

    def _literal(self) -> Leave:
        before, self.literal = self.literal, True

        def leave() -> None:
            self.literal = before

        return leave

    def _code(self, found: code.Code, place: str) -> None:
        if not found.code:
            self.boundary()
            return
        if self.heading and "\n" not in found.code:
            self.line.blank()
            self.line.segment({"t": "code-inline", "c": found.code}, self.style)
            self.line.blank()
            return
        self.flush()
        content: Item = {"code_content": found.code}
        if found.language:
            content["language"] = found.language
        self.put("code", content, place)

    def _formula(self, element: HtmlElement, tag: str, place: str) -> bool:
        found = math.formula(element)
        if found is None:
            return False
        if not found.latex:
            return True
        if found.display and not self.heading:
            self.flush()
            self.put("equation-interline", paragraphs.equation(found), place)
        else:
            self.line.segment({"t": "equation-inline", "c": found.latex}, self.style)
        return True

    def _note(self, element: HtmlElement) -> Entered:
        label = self.context.notes.reference(element)
        if label is None:
            return False, None
        self.line.segment({"t": "footnote", "c": label}, PLAIN)
        return True, None
