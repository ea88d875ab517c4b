"""Numbering: item ids on the original tree, which make it the map HTML, and the way back from there."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Set
from itertools import compress

import lxml.etree
import lxml.html
from lxml.etree import _Element

ITEM = "_item_id"
WRAPPER = "cc-alg-uc-text"
"""The element that the map HTML puts around a run that is no element of its own."""

_URL = re.compile(r"(href=\"|src=\")(.*?)(\")", re.IGNORECASE | re.DOTALL)
_SCHEMES = ("http://", "https://", "ftp://", "HTTP://", "HTTPS://", "FTP://", "//")


class Original:
    """The tree of a page as it was parsed, with item ids as far as they have been given.

    numbers: of the elements that will be spoken of, in document order before anything was changed; None: of all.
    To keep the others out of Python's hands saves time, above all the garbage collector's.
    """

    def __init__(self, root: _Element, is_annotated: bool, numbers: Set[int] | None = None) -> None:
        if numbers is None:
            self.elements = dict(enumerate(root.iter()))
        else:
            wanted = bytearray(max(numbers, default=-1) + 1)
            for number in numbers:
                wanted[number] = 1
            self.elements = dict(zip(sorted(numbers), compress(root.iter(), wanted), strict=True))
        self._tails: dict[_Element, dict[str, list[_Element]]] = {}
        self._is_annotated = is_annotated

    def mark_holder(self, number: int) -> None:
        """Mark an inline element that holds a block."""
        self.elements[number].set("cc-block-type", "true")

    def number_element(self, number: int, item: int) -> None:
        """Give an element an item id, and the mark that an annotation may have left below it."""
        element = self.elements[number]
        element.set(ITEM, str(item))
        if self._is_annotated:
            for below in element.iterdescendants():
                if (selection := below.get("cc-select")) is not None:
                    element.set("cc-select", selection)
                    break

    def number_text(self, owner: int, text: str, item: int) -> None:
        """Wrap the first text of `owner` that reads, stripped, as `text`; if there is none, the item has no element."""
        parent = self.elements[owner]
        if parent.text and parent.text.strip() == text:
            wrapper = self._wrapper(parent, item)
            wrapper.text, parent.text = parent.text, None
            parent.insert(0, wrapper)
            return
        for child in self._tails_of(parent).pop(text, ()):
            holder = _holder(child, parent)
            if holder is not None and holder.tail and holder.tail.strip() == text:
                wrapper = self._wrapper(parent, item)
                wrapper.text, holder.tail = holder.tail, None
                holder.addnext(wrapper)
                return

    def number_run(self, owner: int, first: int, last: int, item: int) -> bool:
        """Wrap siblings with the texts before and after them; False, if they are no children of `owner` any more."""
        parent, start, end = self.elements[owner], self.elements.get(first), self.elements.get(last)
        if start is None or end is None or start.getparent() is not parent or end.getparent() is not parent:
            return False
        wrapper = self._wrapper(parent, item)
        before = start.getprevious()
        if before is None:
            wrapper.text, parent.text = parent.text or None, None
        else:
            wrapper.text, before.tail = before.tail or None, None
        start.addprevious(wrapper)
        node: _Element | None = start
        while node is not None:
            following = node.getnext() if node is not end else None
            wrapper.append(node)
            node = following
        if end.tag == "br" and end.tail:
            wrapper.tail, end.tail = end.tail, None
        return True

    def _wrapper(self, parent: _Element, item: int) -> _Element:
        wrapper = lxml.etree.Element(WRAPPER)
        wrapper.set(ITEM, str(item))
        if (selection := parent.get("cc-select")) is not None:
            wrapper.set("cc-select", selection)
        return wrapper

    def _tails_of(self, parent: _Element) -> dict[str, list[_Element]]:
        """Index the tails of an element's children once: each text is asked for at most once."""
        tails = self._tails.get(parent)
        if tails is None:
            tails = self._tails[parent] = {}
            for child in parent:
                if (tail := child.tail) and (text := tail.strip()):
                    tails.setdefault(text, []).append(child)
        return tails


def _holder(child: _Element, parent: _Element) -> _Element | None:
    """Find the child of `parent` that a tail hangs on now: a wrapper took over that of its last child, a `br`."""
    now = child.getparent()
    if now is parent:
        return child
    return now if now is not None and now.tag == WRAPPER and now.getparent() is parent else None


def main_html(map_html: str, labels: Mapping[str, str]) -> str:
    """Cut a map HTML down to the items labelled `main`, as the published reconstruction does.

    labels: item id → `main` or `other`. What stays: these elements with all below and above them, the text of what
    is above up to the first element that goes, and `br` elements beside what stays. Linear in the page.
    """
    root = read_map(map_html)
    if root is None:
        return ""
    kept, above = kept_elements(root, {item for item, label in labels.items() if label == "main"})
    stack = [root]
    while stack:
        element = stack.pop()
        for child in list(element):
            if child not in kept:
                element.remove(child)  # with its tail
            elif child in above:
                stack.append(child)
    lxml.etree.strip_tags(root, WRAPPER)
    written: bytes = lxml.html.tostring(root, encoding="utf-8")
    text = written.decode("utf-8")
    return _URL.sub(_unescaped, text) if "&" in text else text


def read_map(map_html: str) -> _Element | None:
    """Parse a map HTML as the published reconstruction does; None if there is nothing in it."""
    parser = lxml.etree.HTMLParser(
        collect_ids=False, encoding="utf-8", remove_blank_text=True, remove_comments=True, remove_pis=True
    )
    is_declared = any(word in map_html for word in ("<?xml", "<meta charset", "encoding="))
    try:
        root: _Element = lxml.html.fromstring(map_html.encode() if is_declared else map_html, parser=parser)
    except lxml.etree.ParserError:
        return None
    return root


def kept_elements(root: _Element, main: Set[str]) -> tuple[set[_Element], set[_Element]]:
    """Find what stays of a map with the items `main`, and what of it stands above an item."""
    elements = list(root.iter())
    items: dict[str, _Element] = {}
    for element in elements:
        item = element.get(ITEM)
        if item is not None and item not in items:
            items[item] = element
    kept: set[_Element] = set()
    above: set[_Element] = set()
    for item in main:
        if (found := items.get(item)) is not None:
            if found not in kept:
                kept.update(found.iter())
            for ancestor in found.iterancestors():
                if ancestor in above:
                    break
                above.add(ancestor)
    kept |= above
    previous = root
    for element in elements:
        if element.tag == "br":
            if previous in kept and previous.tag != "br":
                kept.add(element)
        elif previous.tag == "br" and element in kept:
            kept.add(previous)
        previous = element
    return kept, above


def _unescaped(match: re.Match[str]) -> str:
    url = match[2]
    return f"{match[1]}{html.unescape(url)}{match[3]}" if url.startswith(_SCHEMES) else match[0]
