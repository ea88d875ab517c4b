"""Blocks: the smallest units of a page that get a label.

There are two segmentations. `segment` is ours, for templates and the embedded classifier: every visible text is in
exactly one block. `simplify` is the published one, which the published models were trained on, byte for byte; its
items leave texts out: directly in the body, behind removed elements such as scripts, equal runs repeated in one
element. Both meet in Labels on the tree of `templates.dom.parse`: `udfs.classifiers.items` gives every text there the
probability of its item, and a text without one 0.5 if `main_html` would keep it, else 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lxml.html import HtmlElement

from templates.dom import noscript_is_page
from templates.labels import Addresses
from udfs.simplification.simplify import main_html, simplify

__all__ = ["BLOCK_TAGS", "SILENT_TAGS", "Block", "Member", "main_html", "segment", "simplify"]

BLOCK_TAGS = frozenset([
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog",
    "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "frameset", "h1", "h2",
    "h3", "h4", "h5", "h6", "header", "hgroup", "hr", "html", "legend", "li", "main", "menu", "nav",
    "noframes", "ol", "p", "pre", "search", "section", "select", "summary", "table", "tbody", "td",
    "textarea", "tfoot", "th", "thead", "tr", "ul",
])  # fmt: skip
"""Elements that start a line of their own; any other is inline, unless it holds one of these."""

SILENT_TAGS = frozenset(["head", "iframe", "noscript", "script", "style", "template"])
"""Elements whose text a reader of the page does not see."""

_BREAKING = BLOCK_TAGS | SILENT_TAGS


class Member(NamedTuple):
    """A node of a block: an element with all below it, the text of `holder`, or the text after `holder`."""

    holder: HtmlElement
    part: str  # "element", "text" or "tail"


class Block(NamedTuple):
    """A run of text without a line break that markup makes.

    element: the block's element, or the one that the run stands in, between its other children.
    members: the nodes of such a run; empty where the block is the whole element.
    text: its text as it stands in the page. link_chars: how many of the text's characters are link text.
    """

    element: HtmlElement
    members: tuple[Member, ...]
    text: str
    link_chars: int

    def paths(self, addresses: Addresses) -> list[str]:
        """Return the positional XPaths that make up the block."""
        if not self.members:
            return [addresses.of(self.element)]
        return [
            addresses.of(holder) if part == "element" else addresses.of_text(self.element, holder)
            for holder, part in self.members
        ]


class _Frame:
    """A block element that the walk is in, with the run that is open in it."""

    __slots__ = ("broken", "children", "element", "in_link", "link_chars", "members", "texts")

    def __init__(self, element: HtmlElement, in_link: bool) -> None:
        self.element = element
        self.children = iter(element)
        self.in_link = in_link
        self.broken = False  # by a block or something silent: then the run is less than the element
        self.link_chars = 0
        self.members: list[Member] = []
        self.texts: list[str] = []
        if text := element.text:
            self.add(element, "text", text, in_link)

    def add(self, holder: HtmlElement, part: str, text: str, is_link: bool) -> None:
        self.members.append(Member(holder, part))
        self.texts.append(text)
        if is_link:
            self.link_chars += len(text)

    def close(self) -> Block | None:
        """End the run: a block, unless it's blank."""
        text = "".join(self.texts)
        block = None
        if text and not text.isspace():
            members = tuple(self.members) if self.broken else ()
            block = Block(self.element, members, text, self.link_chars)
        self.members, self.texts, self.link_chars = [], [], 0
        return block


def segment(root: HtmlElement) -> Iterator[Block]:
    """Yield the blocks of a page that carry text, in document order, in one walk of the tree.

    Every visible text of the page is in exactly one block: a text directly between block elements too. Line
    breaks by `br` do not end a block. Works on trees of any depth.
    """
    silent = SILENT_TAGS - {"noscript"} if noscript_is_page(root) else SILENT_TAGS
    holders = _holders(root)
    frames = [_Frame(root, False)]
    while frames:
        frame = frames[-1]
        for child in frame.children:
            tag = child.tag
            if tag in silent:
                frame.broken = True
            elif child in holders or tag in _BREAKING:
                frame.broken = True
                if frame.members and (block := frame.close()):
                    yield block
                if child in holders:
                    frames.append(_Frame(child, frame.in_link or tag == "a"))
                    break
                if block := _whole(child, frame.in_link):
                    yield block
            else:
                _add_inline(frame, child, tag)
            if tail := child.tail:
                frame.add(child, "tail", tail, frame.in_link)
        else:
            frames.pop()
            if frame.texts and (block := frame.close()):
                yield block
            if frames and (tail := frame.element.tail):
                frames[-1].add(frame.element, "tail", tail, frames[-1].in_link)


def _holders(root: HtmlElement) -> set[HtmlElement]:
    """Find the elements that hold an element that breaks a line."""
    holders: set[HtmlElement] = set()
    for element in root.iter(*_BREAKING):
        holder = element.getparent()
        while holder is not None and holder not in holders:
            holders.add(holder)
            holder = holder.getparent()
    return holders


def _whole(element: HtmlElement, in_link: bool) -> Block | None:
    """Make a block of an element that holds nothing but text and inline elements, unless it's blank."""
    text = "".join(element.itertext()) if len(element) else element.text
    if not text or text.isspace():
        return None
    return Block(element, (), text, len(text) if in_link else _link_chars(element))


def _link_chars(element: HtmlElement) -> int:
    return sum(len("".join(link.itertext())) for link in element.iter("a")) if len(element) else 0


def _add_inline(frame: _Frame, child: HtmlElement, tag: str) -> None:
    text = "".join(child.itertext()) if len(child) else child.text
    if text:
        frame.add(child, "element", text, frame.in_link or tag == "a")
        if tag != "a" and not frame.in_link:
            frame.link_chars += _link_chars(child)
    elif tag not in ("br", "wbr"):
        frame.members.append(Member(child, "element"))  # an image goes with the text around it
