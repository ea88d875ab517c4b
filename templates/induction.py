"""Induction: from the labels of one page, or of a few, to the template of their layout."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from lxml.html import HtmlElement

from templates.application import Evidence as Applied
from templates.application import apply_template, compile_template
from templates.dom import line_hash, strip_textless
from templates.labels import Labels, Resolved, resolve
from templates.template import MAIN, OTHER, SEPARATOR, Rule, Stepper, Template, stepper, tokens

MAX_DEPTH = 64
"""Rules end here. Real templates are less than 30 steps deep, and a rule's text grows with its depth."""

MAX_FRAME = 256
"""Lines of boilerplate that a template remembers (1 kB): the longest, which weigh most in the confidence."""


@dataclass(frozen=True)
class LabelledPage:
    """A page that a classifier has read: its tree, which induction cuts down to its main content, and its labels."""

    root: HtmlElement
    labels: Labels


@dataclass
class _Node:
    """All elements of one path on the labelled pages. main, other: characters of their own text by label.

    inherits_main, inherits_other: elements with a labelled ancestor-or-self. below_main, below_other: main and
    other summed over the path and all longer ones. label: what the rule of the path says.
    """

    main: int = 0
    other: int = 0
    inherits_main: int = 0
    inherits_other: int = 0
    below_main: int = 0
    below_other: int = 0
    label: str = OTHER
    pages: set[int] = field(default_factory=set)
    children: dict[str, _Node] = field(default_factory=dict)


@dataclass
class _Evidence:
    """What the pages say: the tree of paths, and the lines of text by label with their lengths."""

    top: _Node = field(default_factory=_Node)
    main_lines: set[int] = field(default_factory=set)
    other_lines: set[int] = field(default_factory=set)
    lengths: dict[int, int] = field(default_factory=dict)


def induce(host: str, pages: Sequence[LabelledPage], witnesses: Sequence[HtmlElement] = ()) -> Template:
    """Make a template from labelled pages of one layout.

    witnesses: trees of other pages of the layout, without labels. They tell which class and id tokens belong to
    the layout (a third of all pages have them) and which lines are its frame (over half of the witnesses do).
    """
    resolved = [resolve(page.root, page.labels) for page in pages]  # paths count the elements that are now stripped
    roots = [*(page.root for page in pages), *witnesses]
    for root in roots:
        strip_textless(root)
    step = stepper(_vocabulary(roots))
    evidence = _Evidence()
    for number, (page, labels) in enumerate(zip(pages, resolved, strict=True)):
        _read(page.root, labels, number, step, evidence)
    _decide(evidence.top)
    frame = (evidence.other_lines | _repeated(witnesses, evidence.lengths)) - evidence.main_lines
    longest = sorted(frame, key=lambda line: (-evidence.lengths[line], line))[:MAX_FRAME]
    rules = tuple(_rules("html", evidence.top, 1))
    template = Template(host, rules, frozenset(longest), 0, 0, len(pages))
    compiled = compile_template(template)
    usual = _usual([apply_template(root, compiled) for root in roots])
    return replace(template, usual_main=usual[0], usual_dropped=usual[1])


def _usual(seen: Sequence[Applied]) -> tuple[int, int]:
    """Return medians of (main, dropped) over the pages that have main; over all pages of a layout without main."""
    fitting = [page for page in seen if page.main] or seen
    return (
        int(statistics.median(page.main for page in fitting)),
        int(statistics.median(page.dropped for page in fitting)),
    )


def _vocabulary(roots: Sequence[HtmlElement]) -> frozenset[str]:
    frequency: Counter[str] = Counter()
    for root in roots:
        frequency.update({token for element in root.iter() for token in tokens(element)})
    # Of two pages nothing can be said about what repeats.
    needed = max(2.0, len(roots) / 3) if len(roots) > 2 else 1
    return frozenset(token for token, count in frequency.items() if count >= needed)


def _repeated(witnesses: Sequence[HtmlElement], lengths: dict[int, int]) -> set[int]:
    if len(witnesses) < 2:
        return set()
    frequency: Counter[int] = Counter()
    for root in witnesses:
        lines = {line_hash(text): len(text) for text in map(str.strip, root.itertext()) if text}
        frequency.update(lines.keys())
        lengths.update(lines)
    return {line for line, count in frequency.items() if count * 2 > len(witnesses)}


def _read(root: HtmlElement, resolved: Resolved, number: int, step: Stepper, evidence: _Evidence) -> None:
    """Add a page to the tree of paths and to the lines. Without a labelled ancestor-or-self a node is other."""
    stack: list[tuple[HtmlElement, _Node, float | None]] = [(root, evidence.top, resolved.elements.get(root))]
    while stack:
        element, node, label = stack.pop()
        node.pages.add(number)
        if label is not None:
            node.inherits_main += label >= 0.5
            node.inherits_other += label < 0.5
        default = label or 0.0
        _count(node, "an image" if element.tag == "img" else "", default, None)
        _count(node, element.text, resolved.texts.get(element, default), evidence)
        for child in element:
            below = node.children.setdefault(step(child), _Node())
            stack.append((child, below, resolved.elements.get(child, label)))
            _count(node, child.tail, resolved.tails.get(child, default), evidence)


def _count(node: _Node, text: str | None, label: float, evidence: _Evidence | None) -> None:
    if not text or not (text := text.strip()):
        return
    if label >= 0.5:
        node.main += len(text)
    else:
        node.other += len(text)
    if evidence is not None:
        line = line_hash(text)
        evidence.lengths[line] = len(text)
        (evidence.main_lines if label >= 0.5 else evidence.other_lines).add(line)


def _decide(top: _Node) -> None:
    order = [top]
    for node in order:
        order.extend(node.children.values())
    for node in reversed(order):
        node.below_main = node.main + sum(child.below_main for child in node.children.values())
        node.below_other = node.other + sum(child.below_other for child in node.children.values())
        node.label = _label(node)


def _rules(path: str, node: _Node, depth: int) -> Iterator[Rule]:
    """Yield a rule for a path and, where both labels lie below it, for each longer path that holds text."""
    yield Rule(path, node.label, len(node.pages))
    if depth < MAX_DEPTH and node.below_main and node.below_other:
        for step, child in sorted(node.children.items()):
            if child.below_main or child.below_other:
                yield from _rules(path + SEPARATOR + step, child, depth + 1)


def _label(node: _Node) -> str:
    """Decide what a path's own text, and an unknown element there, is; of its children that is known already.

    Pure paths are clear, own text is the best evidence of the others, then comes the label of an ancestor; and a
    container that the labels say nothing of is main if most kinds of its children are.
    """
    if not node.below_main or not node.below_other:
        return MAIN if node.below_main else OTHER
    if node.main or node.other:
        return MAIN if node.main > node.other else OTHER
    if node.inherits_main or node.inherits_other:
        return MAIN if node.inherits_main > node.inherits_other else OTHER
    kinds = [child.label == MAIN for child in node.children.values() if child.below_main or child.below_other]
    return MAIN if sum(kinds) * 2 > len(kinds) else OTHER
