"""Cutting: long lists and long texts of a block, shortened as the published preprocessing does it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from udfs.simplification.markup import Markup, is_long
from udfs.simplification.tags import START, VOID_TAGS, Tag, unescape

_UNCOUNTED_TAGS = frozenset(["math", "table"])
_ELLIPSIS = -1
_SPAN = Tag("span", START)


class Node:
    """An element of a block that is to be shortened; texts are without escapes."""

    __slots__ = ("children", "closing", "name", "opened", "tail", "text")

    def __init__(self, tag: Tag, opened: str, text: str, tail: str) -> None:
        self.name, self.closing, self.opened = tag.name, tag.closing, opened
        self.text, self.tail = text, tail
        self.children: list[Node] = []


_Above: TypeAlias = "tuple[Node, _Above] | None"


def tree(page: Markup, element: int, lead: str | None = None, members: Sequence[int] = ()) -> Node:
    """Copy a block without the middle of its lists: an element, or a run of `members` in it behind a `lead`."""
    tag = page.tags[element]
    root = Node(tag, page.opened(element), unescape(page.text(element) if lead is None else lead), "")
    open_nodes = [(root, members if lead is not None else list(page.children(element)))]
    while open_nodes:
        node, children = open_nodes.pop()
        for child in _kept(page, node.name, children):
            if child == _ELLIPSIS:
                node.children.append(Node(_SPAN, "<span", "...", ""))
                continue
            tag = page.tags[child]
            copy = Node(tag, page.opened(child), unescape(page.text(child)), unescape(page.tail(child)))
            node.children.append(copy)
            if inner := list(page.children(child)):
                open_nodes.append((copy, inner))
    if members and page.tags[members[-1]].name == "br":
        root.children[-1].tail = ""
    return root


def _kept(page: Markup, name: str, children: Sequence[int]) -> Sequence[int]:
    names = [page.tags[child].name for child in children] if name in ("ul", "ol", "dl") else []
    if not is_long(name, names):
        return children
    if name != "dl":
        return [children[0], _ELLIPSIS, children[-1]]
    terms = [at for at, child_name in enumerate(names) if child_name == "dt"]
    return [*children[terms[0] : terms[1]], _ELLIPSIS, *children[terms[-1] :]]


def cut(root: Node, limit: int) -> None:
    """Cut a block after `limit` characters, in place; text in tables and formulas neither counts nor is cut."""
    texts = list(_texts(root))
    if sum(len(node.tail if is_tail else node.text) for node, is_tail, _, _ in texts) <= limit:
        return
    count = 0
    done = False
    for node, is_tail, may_cut, above in texts:
        text = node.tail if is_tail else node.text
        if done:
            text = ""
        elif count + len(text) <= limit or not may_cut:
            count += len(text)
            continue
        else:
            text = text[: limit - count] + "..."
            done = True
            _drop_after(node, above)
        if is_tail:
            node.tail = text
        else:
            node.text = text


def _drop_after(node: Node, above: _Above) -> None:
    below = node
    while above is not None:
        parent, above = above
        del parent.children[parent.children.index(below) + 1 :]
        below = parent


def _texts(root: Node) -> Iterator[tuple[Node, bool, bool, _Above]]:
    """Yield texts in document order: node, whether it is the tail, whether it may be cut, what is above it."""
    stack: list[tuple[Node, bool, bool, _Above]] = [(root, False, False, None)]
    while stack:
        node, is_tail, uncounted, above = stack.pop()
        if is_tail:
            if node.tail:
                yield node, True, not uncounted, above
            continue
        inner = uncounted or node.name in _UNCOUNTED_TAGS
        if node.text and not inner:
            yield node, False, True, above
        chain: _Above = (node, above)
        for child in reversed(node.children):
            stack.append((child, True, inner, chain))
            stack.append((child, False, inner, chain))


def html(root: Node, item: int) -> str:
    """Write a block as the simplified HTML has it."""
    pieces: list[str] = []
    stack: list[Node | str] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            pieces.append(node)
            continue
        pieces.append(node.opened)
        pieces.append(f' _item_id="{item}">' if node is root else ">")
        if node.text:
            pieces.append(_escaped(node.text))
        tail = _escaped(node.tail) if node.tail else ""
        is_empty = not node.text and not node.children
        if node.name not in VOID_TAGS and not (is_empty and node.name == "li"):
            tail = node.closing + tail
        stack.append(tail)
        stack.extend(reversed(node.children))
    return "".join(pieces)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
