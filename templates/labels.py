"""Labels: what a classifier says about a page, and where in its tree that is."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TypeVar

from lxml.html import HtmlElement

_Node = TypeVar("_Node")
_STEP = re.compile(r"(.+?)(?:\[([0-9]{1,9})\])?", re.DOTALL)


@dataclass(frozen=True)
class Labels:
    """Main probabilities of nodes of one page; what has no labelled ancestor-or-self is `other` (0.0).

    paths: absolute positional XPaths on the tree of `templates.dom.parse`, of elements or of single text
    nodes (`/html/body/div[2]/text()[1]`). probabilities: as many, each in 0..1; one counts for the node and
    what is below it, down to the next label. No paths at all is a statement too: there is no main content.
    Raises ValueError where the lengths differ, a path is not positional, or a probability is outside 0..1.
    """

    paths: tuple[str, ...]
    probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.paths) != len(self.probabilities):
            raise ValueError(f"{len(self.paths)} paths but {len(self.probabilities)} probabilities")
        for path in self.paths:
            check_path(path)
        for probability in self.probabilities:
            if not 0.0 <= probability <= 1.0:
                raise ValueError(f"a main probability lies in 0..1, not {probability!r}")


def check_path(path: str) -> None:
    """Raise ValueError unless the path goes from the root step by step, as lxml's getpath writes it."""
    if not path.startswith("/") or path.endswith("/") or "//" in path:
        raise ValueError(f"not a positional XPath such as /html/body/div[2]/p: {path!r}")


class Addresses:
    """Positional XPaths of nodes of one tree; numbers siblings once, where getpath does so in every call."""

    def __init__(self) -> None:
        self._steps: dict[HtmlElement, str] = {}
        self._numbered: dict[HtmlElement, dict[tuple[HtmlElement, bool], str]] = {}

    def of(self, element: HtmlElement) -> str:
        """Return what lxml's getpath returns for the element."""
        steps: list[str] = []
        node: HtmlElement | None = element
        while node is not None:
            steps.append(self._step(node))
            node = node.getparent()
        return "/" + "/".join(reversed(steps))

    def of_text(self, parent: HtmlElement, holder: HtmlElement) -> str:
        """Return the path of a text of `parent`: its `text` (holder: `parent`), or the tail of a child."""
        steps = self._numbered.get(parent)
        if steps is None:
            nodes = text_nodes(parent)
            steps = {node: f"text()[{number}]" for number, node in enumerate(nodes, 1)}
            if len(nodes) == 1:
                steps[nodes[0]] = "text()"
            self._numbered[parent] = steps
        return f"{self.of(parent)}/{steps[holder, holder is not parent]}"

    def _step(self, element: HtmlElement) -> str:
        if element not in self._steps:
            parent = element.getparent()
            siblings = [element] if parent is None else list(parent)
            totals = Counter(sibling.tag for sibling in siblings)
            numbers: Counter[str] = Counter()
            for sibling in siblings:
                tag = sibling.tag
                numbers[tag] += 1
                self._steps[sibling] = tag if totals[tag] == 1 else f"{tag}[{numbers[tag]}]"
        return self._steps[element]


def text_nodes(parent: HtmlElement) -> list[tuple[HtmlElement, bool]]:
    """List an element's text nodes in XPath's order as (holder, is tail): `holder.text` or `holder.tail`."""
    nodes = [(parent, False)] if parent.text else []
    nodes.extend((child, True) for child in parent if child.tail)
    return nodes


@dataclass(frozen=True)
class Resolved:
    """Labels on the tree itself; each value is a main probability.

    elements: of elements. texts: of an element's `text` that has a label of its own. tails: of an element's
    `tail`, a text of its parent. dropped: the paths that lead nowhere in this tree.
    """

    elements: dict[HtmlElement, float] = field(default_factory=dict)
    texts: dict[HtmlElement, float] = field(default_factory=dict)
    tails: dict[HtmlElement, float] = field(default_factory=dict)
    dropped: list[str] = field(default_factory=list)


def resolve(root: HtmlElement, labels: Labels) -> Resolved:
    """Find the nodes that the labels of a page speak of, in time linear in the tree and in the paths.

    A step without a position stands for every child of that name, as in XPath. Of two labels of one node the
    later one counts.
    """
    resolved = Resolved()
    children: dict[HtmlElement, dict[str, list[HtmlElement]]] = {}
    for path, probability in zip(labels.paths, labels.probabilities, strict=True):
        head, _, last = path.rpartition("/")
        found = False
        if last.startswith("text()"):
            number = _split(last)[1]
            for parent in _elements(root, head, children):
                for holder, is_tail in _pick(text_nodes(parent), number):
                    (resolved.tails if is_tail else resolved.texts)[holder] = probability
                    found = True
        else:
            for element in _elements(root, path, children):
                resolved.elements[element] = probability
                found = True
        if not found:
            resolved.dropped.append(path)
    return resolved


def _elements(
    root: HtmlElement, path: str, children: dict[HtmlElement, dict[str, list[HtmlElement]]]
) -> list[HtmlElement]:
    first, *steps = path.split("/")[1:]
    elements = [root] if first in (root.tag, f"{root.tag}[1]") else []
    for step in steps:
        name, number = _split(step)
        below: list[HtmlElement] = []
        for element in elements:
            if element not in children:
                names: dict[str, list[HtmlElement]] = {}
                for child in element:
                    names.setdefault(child.tag, []).append(child)
                children[element] = names
            below.extend(_pick(children[element].get(name, []), number))
        elements = below
    return elements


def _split(step: str) -> tuple[str, int | None]:
    match = _STEP.fullmatch(step)
    if match is None or match[2] is None:
        return step, None
    return match[1], int(match[2])


def _pick(nodes: list[_Node], number: int | None) -> list[_Node]:
    return nodes if number is None else nodes[number - 1 : number] if number else []
