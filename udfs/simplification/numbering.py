"""Numbering: item ids on the original tree, which make it the map HTML, and the way back from there."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Set
from itertools import accumulate
from operator import itemgetter

import lxml.etree
import lxml.html
from lxml.etree import _Element

from udfs.simplification.markup import Markup, is_control
from udfs.simplification.tags import attribute, unescape

ITEM = "_item_id"
WRAPPER = "cc-alg-uc-text"
"""The element that the map HTML puts around a run that is no element of its own."""

_URL = re.compile(r"(href=\"|src=\")(.*?)(\")", re.IGNORECASE | re.DOTALL)
_EMPTY_ITEM = re.compile(r"<li(?:\s[^>]*)?></li>")
_SCHEMES = ("http://", "https://", "ftp://", "HTTP://", "HTTPS://", "FTP://", "//")


class MapHtml:
    """The HTML of a page as it was parsed, with item ids as far as they have been given."""

    def __init__(self, page: Markup) -> None:
        self._page = page
        self._ends = list(accumulate(map(len, page.raw)))
        self._attributes: dict[tuple[int, str], str] = {}
        self._edits: list[tuple[int, int, int, str]] = []  # where, rank, up to where, what is put there
        self._taken: set[int] = set()  # texts that are in a wrapper
        self._texts: dict[int, dict[str, list[int]]] = {}
        self._is_annotated = page.is_marked

    def has(self, element: int, key: str, value: str) -> bool:
        """Tell whether an attribute of an element has a value, which needs no escapes."""
        text = f' {key}="{value}"'
        return self._attributes.get((element, key)) == text or text in self._page.token(element)

    def mark_holder(self, element: int) -> None:
        """Mark an inline element that holds a block."""
        self._attributes[element, "cc-block-type"] = ' cc-block-type="true"'

    def number(self, element: int, item: int) -> None:
        """Give an element an item id."""
        self._attributes[element, ITEM] = f' {ITEM}="{item}"'

    def number_element(self, element: int, item: int) -> None:
        """Give an element an item id, and the mark that an annotation may have left below it."""
        self.number(element, item)
        if self._is_annotated:
            for below in range(element + 1, self._page.ends[element]):
                if selection := attribute(self._page.token(below), "cc-select"):
                    self._attributes[element, "cc-select"] = selection[0]
                    break

    def number_text(self, owner: int, text: str, item: int) -> None:
        """Wrap the first text of `owner` that reads, stripped, as `text`; if there is none, the item has no element."""
        if owner not in self._texts:
            self._texts[owner] = self._texts_of(owner)
        for at in self._texts[owner].get(text, ()):
            if at not in self._taken:
                if self._is_refused(at):
                    raise ValueError("control characters")
                self._taken.add(at)
                self._wrap(owner, self._end(2 * at + 1) + 1, self._end(2 * at + 2), item)
                return

    def number_run(self, owner: int, first: int, last: int, item: int) -> bool:
        """Wrap siblings with the texts before and after them; False, if they are no children of `owner`."""
        page = self._page
        if page.above[first] != owner or page.above[last] != owner:
            return False
        end = page.ends[last]
        at = first - 1
        if self._is_refused(at):
            raise ValueError("control characters")
        start = self._end(2 * at + (2 if at in self._taken else 1)) + (at not in self._taken)
        while at != end:
            self._taken.add(at)
            at = page.ends[at + 1]
        is_break = page.tags[last].name == "br"
        is_refused = is_break and self._is_refused(end)
        if end in self._taken or (is_break and not is_refused):
            self._wrap(owner, start, self._end(2 * end + 1) + 1, item)
        else:
            self._taken.add(end)
            self._wrap(owner, start, self._end(2 * end + 2), item)
        if is_refused:
            raise ValueError("control characters")
        return True

    def write(self) -> str:
        """Write it, with the scripts and styles of the page and without the ends of empty list items."""
        html, edits = self._page.html, self._edits
        for (element, key), text in self._attributes.items():
            token, end = self._page.token(element), self._end(2 * element + 1)
            start = end
            if f" {key}" in token and (found := attribute(token, key)):
                start, end = end - len(token) + found.start(), end - len(token) + found.end()
            edits.append((start, 1, end, text))
        at = {"script": 0, "style": 0}
        for name, text in self._page.scripts:
            at[name] = html.index(f"</{name}>", at[name] + 1)
            if text:
                edits.append((at[name], 1, at[name], text))
        if self._page.has_empty_items:
            edits += [(match.end() - 5, 1, match.end(), "") for match in _EMPTY_ITEM.finditer(html)]
        edits.sort(key=itemgetter(0, 1))
        pieces: list[str] = []
        position = 0
        for start, _, end, text in edits:
            pieces += (html[position:start], text)
            position = end
        pieces.append(html[position:])
        return "".join(pieces)

    def _end(self, at: int) -> int:
        """Return where a text or tag ends."""
        return self._ends[at] + at

    def _is_refused(self, at: int) -> bool:
        """Tell whether lxml would refuse to put a text elsewhere."""
        return self._page.has_controls and at not in self._taken and is_control(self._page.raw[2 * at + 2])

    def _wrap(self, parent: int, start: int, end: int, item: int) -> None:
        selection = attribute(self._page.token(parent), "cc-select") if self._is_annotated else None
        copied = selection[0] if selection else ""
        self._edits.append((start, 2, start, f'<{WRAPPER} {ITEM}="{item}"{copied}>'))
        self._edits.append((end, 0, end, f"</{WRAPPER}>"))

    def _texts_of(self, owner: int) -> dict[str, list[int]]:
        """Index the texts in an element once: each is asked for at most once."""
        page = self._page
        texts: dict[str, list[int]] = {}
        at, stop = owner, page.ends[owner]
        while True:
            if text := unescape(page.raw[2 * at + 2]).strip():
                texts.setdefault(text, []).append(at)
            if at + 1 == stop:
                return texts
            at = page.ends[at + 1]


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
