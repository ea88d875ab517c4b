"""Items: what a model says about the blocks of a map HTML, brought to the tree that templates are made on."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from lxml.etree import _Element
from lxml.html import HtmlElement

from templates.dom import TEXTLESS, PageError, parse
from templates.labels import Addresses, Labels, Resolved
from udfs.simplification.numbering import ITEM, kept_elements, read_map
from udfs.simplification.simplify import simplify

if TYPE_CHECKING:
    from udfs.input.pages import Page

Answer = Mapping[str, float] | PageError
"""Main probabilities by item id."""

ITEM_ID = re.compile(rf'{ITEM}="(\d+)"')

_ATOM_TAGS = frozenset(["br", "img", "video", "audio", "iframe", "embed", "object", "canvas"])
_BY_PLACE = 0.5  # what no model has seen, but the published reconstruction keeps: its element, or the one before it
_EMPTY, _MIXED = -1.0, -2.0


class Item(NamedTuple):
    """What an item holds: its text as a reader sees it, and how much of it is main, as a share."""

    text: str
    share: float


class _Atom(NamedTuple):
    """A text, an image or a line break of a page: the text of `holder`, the text after it, or `holder` itself."""

    holder: _Element
    part: str  # "text", "tail" or "element"
    key: str


def label_pages(
    pages: Sequence[Page], answer: Callable[[Sequence[str]], Sequence[Answer]], group: int
) -> list[Labels | PageError]:
    """Label pages by what `answer` says about their simplified HTML; while it works, the next group is prepared."""
    groups = [pages[start : start + group] for start in range(0, len(pages), group)]
    labels: list[Labels | PageError] = []
    with ThreadPoolExecutor(1) as executor:
        waiting = [executor.submit(_prepare, pages) for pages in groups]
        for some, prepared in zip(groups, waiting, strict=True):
            labels.extend(_label_group(some, prepared.result(), answer))
    return labels


def _prepare(pages: Iterable[Page]) -> list[tuple[str, str] | PageError]:
    prepared: list[tuple[str, str] | PageError] = []
    for page in pages:
        try:
            if page.error is not None:
                raise PageError(page.error)
            simplified, map_html = simplify(page.html)
            if f'{ITEM}="' not in simplified:
                raise PageError("no_elements")
            prepared.append((simplified, map_html))
        except PageError as error:
            prepared.append(error)
        except ImportError:
            raise
        except Exception:  # noqa: BLE001 - the batch loop: what breaks on one page is that page's error
            prepared.append(PageError("simplify_failed"))
    return prepared


def _label_group(
    pages: Sequence[Page],
    prepared: Sequence[tuple[str, str] | PageError],
    answer: Callable[[Sequence[str]], Sequence[Answer]],
) -> Iterator[Labels | PageError]:
    texts = [page[0] for page in prepared if not isinstance(page, PageError)]
    answers = iter(answer(texts) if texts else ())  # a page without blocks costs no call
    for page, made in zip(pages, prepared, strict=True):
        said = made if isinstance(made, PageError) else next(answers)
        if isinstance(made, PageError) or isinstance(said, PageError):
            yield said if isinstance(said, PageError) else PageError("no_elements")
            continue
        try:
            yield item_labels(page.html, made[1], said)
        except PageError as error:
            yield error
        except Exception:  # noqa: BLE001 - the batch loop
            yield PageError("classifier_failed")


def item_labels(html: str, map_html: str, probabilities: Mapping[str, float]) -> Labels:
    """Turn main probabilities of items into Labels of the page, so that the same text stays as in `main_html`.

    The map HTML comes from another parser than the tree of `templates.dom.parse`, and moves nodes: what both share
    is the sequence of texts and images. Each of these takes the probability of its item; a text without an item
    0.5, if the published reconstruction keeps it, else 0. Elements of one probability get one label.
    Raises PageError if the page can't be parsed.
    """
    root = parse(html)
    marked = read_map(map_html)
    if marked is None:
        return Labels((), ())
    atoms = list(_atoms(root))
    values = _aligned(atoms, list(_valued(marked, probabilities)))
    return _labels(root, atoms, values)


def item_shares(root: HtmlElement, map_html: str, labels: Resolved) -> dict[str, Item]:
    """Turn what labels say of a page's tree into what they say of its items: the way back from `item_labels`.

    root: of the tree of `templates.dom.parse`, where the labels are resolved. By item id; an item without text or
    image is left out. A text of the map that the tree has not takes the value of the text before it.
    """
    marked = read_map(map_html)
    if marked is None:
        return {}
    inherited = inherited_values(root, labels)
    said = [(atom.key, _value(atom, inherited, labels)) for atom in _atoms(root)]
    atoms = list(_atoms(marked))
    within: dict[_Element, str | None] = {}
    for element in marked.iter():
        parent = element.getparent()
        within[element] = element.get(ITEM) or (None if parent is None else within[parent])
    found: defaultdict[str, list[tuple[_Atom, float]]] = defaultdict(list)
    for atom, value in zip(atoms, _aligned(atoms, said), strict=True):
        parent = atom.holder.getparent() if atom.part == "tail" else atom.holder
        item = None if parent is None else within[parent]
        if item is not None:
            found[item].append((atom, value))
    return {item: made for item, valued in found.items() if (made := _item(valued))}


def inherited_values(root: HtmlElement, labels: Resolved) -> dict[HtmlElement, float]:
    """Return the main probability of every element of a tree: its label's, else what is said of the one around it."""
    values: dict[HtmlElement, float] = {}
    for element in root.iter():  # parents first
        parent = element.getparent()
        values[element] = labels.elements.get(element, 0.0 if parent is None else values[parent])
    return values


def _value(atom: _Atom, inherited: Mapping[_Element, float], labels: Resolved) -> float:
    if atom.part == "tail":
        parent = atom.holder.getparent()
        return labels.tails.get(atom.holder, 0.0 if parent is None else inherited[parent])
    own = inherited[atom.holder]
    return labels.texts.get(atom.holder, own) if atom.part == "text" else own


def _item(valued: Sequence[tuple[_Atom, float]]) -> Item | None:
    """Weigh the texts of an item by their lengths; an image counts as a character, a line break as none."""
    sizes = [len(atom.key) if atom.part != "element" else int(atom.holder.tag != "br") for atom, _ in valued]
    if not any(sizes):
        return None
    text = " ".join(atom.key for atom, _ in valued if atom.part != "element")
    return Item(text, sum(size * value for size, (_, value) in zip(sizes, valued, strict=True)) / sum(sizes))


def _atoms(root: _Element) -> Iterator[_Atom]:
    """Yield what a reader sees of a tree, in document order."""
    stack = [(root, False)]
    while stack:
        element, is_done = stack.pop()
        if is_done:
            if element.tail and (key := " ".join(element.tail.split())):
                yield _Atom(element, "tail", key)
            continue
        if element is not root:
            stack.append((element, True))
        if not isinstance(element.tag, str) or element.tag in TEXTLESS:
            continue
        if element.tag in _ATOM_TAGS:
            yield _Atom(element, "element", f"<{element.tag}>")
        if element.text and (key := " ".join(element.text.split())):
            yield _Atom(element, "text", key)
        stack.extend((child, False) for child in reversed(element))


def _valued(marked: _Element, probabilities: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    """Yield key and main probability of what a reader sees of a map HTML, in document order."""
    kept, _ = kept_elements(marked, {item for item, value in probabilities.items() if value >= 0.5})
    known: dict[_Element, float] = {}
    for element in marked.iter():
        parent = element.getparent()
        said = probabilities.get(element.get(ITEM, ""))
        known[element] = said if said is not None else known[parent] if parent is not None else _EMPTY
    before = 0.0
    for holder, part, key in _atoms(marked):
        parent = holder.getparent() if part == "tail" else holder
        value = known[parent] if parent is not None else _EMPTY
        if value == _EMPTY:
            value = _BY_PLACE if holder in kept else 0.0
            if part == "element" and (before >= 0.5) == (value >= 0.5):
                value = before  # a line break stays with the text that it follows
        before = value
        yield key, value


def _aligned(atoms: Sequence[_Atom], valued: Sequence[tuple[str, float]]) -> list[float]:
    """Bring the values of one sequence to the other: the n-th of a key to the n-th of that key."""
    if [atom.key for atom in atoms] == [key for key, _ in valued]:
        return [value for _, value in valued]
    waiting: defaultdict[str, deque[float]] = defaultdict(deque)
    for key, value in valued:
        waiting[key].append(value)
    values: list[float] = []
    for atom in atoms:
        queue = waiting.get(atom.key)
        values.append(queue.popleft() if queue else values[-1] if values else 0.0)
    return values


def _labels(root: HtmlElement, atoms: Sequence[_Atom], values: Sequence[float]) -> Labels:
    own: defaultdict[_Element, list[tuple[_Atom, float]]] = defaultdict(list)
    for atom, value in zip(atoms, values, strict=True):
        parent = atom.holder.getparent() if atom.part == "tail" else atom.holder
        if parent is not None:
            own[parent].append((atom, value))
    shared: dict[_Element, float] = {}
    for element in reversed(list(root.iter())):
        found = {value for _, value in own.get(element, ())}
        found.update(shared[child] for child in element)
        found.discard(_EMPTY)
        shared[element] = _EMPTY if not found else found.pop() if len(found) == 1 else _MIXED
    addresses = Addresses()
    said: dict[str, float] = {}
    stack: list[HtmlElement] = [root]
    while stack:
        element = stack.pop()
        value = shared[element]
        if value == _MIXED:
            for atom, its in own.get(element, ()):
                if its > 0 and atom.part != "element":
                    said[addresses.of_text(element, atom.holder)] = _rounded(its)
            stack.extend(reversed(element))
        elif value > 0:
            said[addresses.of(element)] = _rounded(value)
    return Labels(tuple(said), tuple(said.values()))


def _rounded(value: float) -> float:
    rounded = round(value, 4)
    return rounded if (rounded >= 0.5) == (value >= 0.5) else value
