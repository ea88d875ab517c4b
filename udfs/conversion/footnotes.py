"""Footnotes of a page: which marks refer to which notes."""

from __future__ import annotations

import re

from lxml.html import HtmlElement

_LABEL = re.compile(r"\s*[\[(]?\s*(?:note\s+)?([\w*†‡§]{1,12})\s*[\])]?\s*\Z")
_ARROWS = frozenset(["↩", "↑", "^", "⤴", "↵", "⏎", "⬆", "↩︎", "back"])
_HOLDERS = frozenset(("li", "p", "div", "section", "aside", "dd", "dt", "tr", "td"))


def short_text(element: HtmlElement, limit: int = 32) -> str:
    """Return the text of an element, "" if it is longer than a limit: no more of it is read."""
    pieces: list[str] = []
    size = 0
    for text in element.itertext():
        size += len(text)
        if size > limit:
            return ""
        pieces.append(text)
    return "".join(pieces)


class Notes:
    """The footnotes of a tree. Ids are looked up only when the first mark is met; true once one is known."""

    def __init__(self, root: HtmlElement) -> None:
        self._root = root
        self._ids: dict[str, HtmlElement] | None = None
        self._labels: dict[HtmlElement, str] = {}

    def __bool__(self) -> bool:
        return bool(self._labels)

    def reference(self, element: HtmlElement) -> str | None:
        """Return the label of the note that a mark (`sup` with a link, a link with `sup`, or by its role) refers to.

        None where it is no mark, or its note is not on the page before which it stands.
        """
        link = element if element.tag == "a" else next(element.iter("a"), None)
        if link is None:
            return None
        href = link.get("href") or ""
        if not href.startswith("#") or len(href) < 2:
            return None
        is_mark = element.tag != "a" or "footnote" in (link.get("class") or "").lower()
        is_mark = is_mark or link.get("role") == "doc-noteref" or (len(link) == 1 and link[0].tag == "sup")
        if not is_mark:
            return None
        match = _LABEL.match(short_text(element))
        if match is None:
            return None
        note = self._holder(href[1:])
        if note is None or any(parent is note for parent in element.iterancestors()):
            return None
        return self._labels.setdefault(note, match[1])

    def definition(self, element: HtmlElement) -> str | None:
        """Return the label of the note that an element is, None if no mark before it refers to it."""
        return self._labels.get(element)

    def is_backlink(self, link: HtmlElement) -> bool:
        """Whether a link leads from a note back to its mark."""
        text = short_text(link).replace("\ufe0e", "").strip()
        return text in _ARROWS or link.get("role") == "doc-backlink"

    def _holder(self, name: str) -> HtmlElement | None:
        if self._ids is None:
            self._ids = {}
            for element in self._root.iter():
                key = element.get("id")
                if key is not None:
                    self._ids.setdefault(key, element)
        found = self._ids.get(name)
        if found is not None and found.tag in ("a", "span", "sup"):
            found = next((one for one in found.iterancestors() if one.tag in _HOLDERS), None)
        return found if found is not None and found.tag in _HOLDERS else None
