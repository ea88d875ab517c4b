"""Application: a template's rules decide what of a page is main, and how far they can be trusted there."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from lxml.html import HtmlElement

from templates.dom import line_hash, strip_textless, text_length
from templates.labels import Labels, resolve
from templates.template import MAIN, SEPARATOR, UNNAMED, Stepper, Template, stepper

MIN_LIKENESS = 0.4
"""An element without a rule takes that of the sibling rule with the most like step, if so much is alike."""

_FEW = 20
"""Characters: less text than that is no evidence."""

_VOID = frozenset({"img", "br", "hr", "video", "audio", "iframe", "embed", "object", "canvas", "svg", "math"})
"""Elements that are content without any text."""


@dataclass
class _Node:
    main: bool = False
    holds_main: bool = False
    children: dict[str, _Node] = field(default_factory=dict)


@dataclass(frozen=True)
class CompiledTemplate:
    """A template made ready to be applied to many pages; `compile_template` makes it."""

    top: _Node
    step: Stepper
    frame: frozenset[int]


@dataclass
class Evidence:
    """How a page's text fared, in characters.

    main: kept. dropped: dropped and not a line of the template's frame. guessed: kept or dropped for no rule of
    its own. unknown: dropped for no rule of its own, and not of the frame.
    """

    main: int = 0
    dropped: int = 0
    guessed: int = 0
    unknown: int = 0

    @property
    def coverage(self) -> float:
        """Share of the page's text, lines of the frame aside, that some rule decided; 1 for a page without text."""
        total = self.main + self.dropped
        return 1.0 - min(self.guessed, total) / total if total else 1.0


def confidence(page: Evidence, template: Template) -> float:
    """Predict in 0..1 whether the template decided the page rightly.

    The probability of a token F1 of 0.8 and more, by a logistic regression on the siblings of 54 real sites, whose
    representatives had perfect labels. Its arguments: dropped text beyond what the template's pages usually drop,
    dropped text without a rule, text decided without a rule (each as a share), how much shorter than usual main is,
    and whether there is none at all.
    """
    excess = max(0.0, page.dropped - 1.5 * template.usual_dropped)
    shortfall = math.log((template.usual_main + _FEW) / (page.main + _FEW))
    score = (
        5.0
        - 2.6 * excess / (page.main + excess + _FEW)
        - 3.4 * page.unknown / (page.main + page.unknown + _FEW)
        - 0.8 * page.guessed / (page.main + page.dropped + _FEW)
        - 0.5 * max(0.0, shortfall)
        - 2.4 * (template.usual_main > 0 and page.main == 0)
    )
    return 1.0 / (1.0 + math.exp(-score))


def compile_template(template: Template) -> CompiledTemplate:
    """Turn the rules into a tree of steps; cost is linear in their number."""
    top = _Node()
    vocabulary: set[str] = set()
    for rule in template.rules:
        path = [top]
        for step in rule.path.split(SEPARATOR)[1:]:
            vocabulary.update(step.split(" ")[1:])
            path.append(path[-1].children.setdefault(step, _Node()))
        path[-1].main = rule.label == MAIN
        if rule.label == MAIN:
            for node in path:
                node.holds_main = True
    return CompiledTemplate(top, stepper(frozenset(vocabulary)), template.frame)


def apply_template(root: HtmlElement, template: CompiledTemplate) -> Evidence:
    """Cut a page down to its main content, in place, and tell how its text fared."""
    strip_textless(root)
    evidence = Evidence()
    partial: list[HtmlElement] = []
    stack = [(root, template.top)]
    while stack:
        element, node = stack.pop()
        partial.append(element)
        _own_text(element, node.main, template.frame, evidence)
        for child, rule, known in _matched(element, node, template.step):
            if rule.children:
                stack.append((child, rule))
                if not known:
                    evidence.guessed += text_length(child)
            else:
                _whole(child, rule.main, known, template.frame, evidence)
    _drop_empty(partial)
    return evidence


def apply_labels(root: HtmlElement, labels: Labels) -> None:
    """Cut a page down, in place, to what its labels call main (a main probability of at least a half)."""
    resolved = resolve(root, labels)
    strip_textless(root)
    above: set[HtmlElement] = set()
    for labelled in (*resolved.elements, *resolved.texts, *resolved.tails):
        node: HtmlElement | None = labelled
        while node is not None and node not in above:
            above.add(node)
            node = node.getparent()
    partial: list[HtmlElement] = []
    stack = [(root, resolved.elements.get(root, 0.0))]
    while stack:
        element, label = stack.pop()
        partial.append(element)
        if element.text and resolved.texts.get(element, label) < 0.5:
            element.text = None
        for child in list(element):
            child_label = resolved.elements.get(child, label)
            if child.tail and resolved.tails.get(child, label) < 0.5:
                child.tail = None
            if child in above:
                stack.append((child, child_label))
            elif child_label < 0.5:
                child.drop_tree()
    _drop_empty(partial)


def _drop_empty(partial: list[HtmlElement]) -> None:
    """Drop what a cut left without text and elements; `partial` lists ancestors before what they hold, root first."""
    for element in reversed(partial[1:]):
        if not len(element) and not (element.text and element.text.strip()) and element.tag not in _VOID:
            element.drop_tree()


_KEEP, _DROP = _Node(main=True, holds_main=True), _Node()


def _matched(element: HtmlElement, node: _Node, step: Stepper) -> list[tuple[HtmlElement, _Node, bool]]:
    """Pair each child with its rule; False with it where it has none of its own.

    Below `other`, where a main region of the template is missing, unknown elements of its tag stand in for it.
    """
    children = list(element)
    steps = [step(child) for child in children]
    rules = node.children
    matches = [rules.get(name) or _likest(name, rules) for name in steps]
    absent: dict[str, _Node] = {}
    if not node.main:
        found = {id(match) for match in matches}
        for name, rule in rules.items():
            if rule.holds_main and id(rule) not in found:
                absent.setdefault(name.partition(" ")[0], rule)
    default = _KEEP if node.main else _DROP
    return [
        (child, match, True) if match else (child, absent.get(child.tag, default), False)
        for child, match in zip(children, matches, strict=True)
    ]


def _likest(step: str, rules: dict[str, _Node]) -> _Node | None:
    tag, *names = step.split(" ")
    best, likest = MIN_LIKENESS, None
    for other, rule in rules.items():
        other_tag, *other_names = other.split(" ")
        if other_tag == tag:
            likeness = _likeness(set(names), set(other_names))
            if likeness > best:
                best, likest = likeness, rule
    return likest


def _likeness(names: set[str], others: set[str]) -> float:
    if names | others == {UNNAMED}:
        return 0.5
    return len(names & others) / len(names | others) if names | others else 1.0


def _own_text(element: HtmlElement, main: bool, frame: frozenset[int], evidence: Evidence) -> None:
    if element.text and not _text(element.text, main, frame, evidence):
        element.text = None
    for child in element:
        if child.tail and not _text(child.tail, main, frame, evidence):
            child.tail = None


def _text(text: str, main: bool, frame: frozenset[int], evidence: Evidence) -> bool:
    stripped = text.strip()
    if main:
        evidence.main += len(stripped)
    elif stripped and line_hash(stripped) not in frame:
        evidence.dropped += len(stripped)
    return main


def _whole(element: HtmlElement, main: bool, known: bool, frame: frozenset[int], evidence: Evidence) -> None:
    """Keep or drop an element with everything in it; one without a rule is dropped if it is mostly of the frame."""
    if main and known:
        evidence.main += text_length(element)
        return
    lines = [line for text in element.itertext(with_tail=False) if (line := text.strip())]
    length = sum(map(len, lines))
    new = sum(len(line) for line in lines if line_hash(line) not in frame)
    if main and new * 2 >= length:
        evidence.main += length
        evidence.guessed += length
        return
    evidence.dropped += new
    if not known:
        evidence.guessed += new
        evidence.unknown += new
    element.drop_tree()
