"""Examples: pages with ground truth as the embedded classifier learns from them: features and a target per block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from lxml.html import HtmlElement

from templates.dom import PageError, parse
from templates.labels import Labels, Resolved, resolve
from udfs.blocks import Block
from udfs.classifiers.features import Features, features
from udfs.classifiers.items import inherited_values
from udfs.hosts import host, registered_domain
from udfs.metrics import overlap, words

_LEAST_ALIGNED = 0.9
"""Token F1 of the blocks found by a page's text with that text: with less, the text is not of this page's HTML."""

_GRAM = 3


@dataclass(frozen=True)
class Example:
    """A page to learn from, or to be scored on.

    domain: registered domain; of a site corpus the site. split: train, dev or test. kind: page type and set, for
    figures. page: its features, without the tree. target: share of each block that is main, 0..1.
    counted: whether a block counts; a title does not where its corpus leaves titles out. lengths: words of each block.
    texts: the words of each block; truth: those of the ground truth.
    """

    url: str
    domain: str
    split: str
    kind: str
    page: Features
    target: npt.NDArray[np.float32]
    counted: npt.NDArray[np.bool_]
    lengths: npt.NDArray[np.float32]
    texts: tuple[Counter[str], ...]
    truth: Counter[str]

    def f1(self, main: npt.NDArray[np.bool_]) -> float:
        """Return the token F1 of the blocks that are said to be main with the ground truth."""
        said: Counter[str] = Counter()
        for is_main, text in zip(main.tolist(), self.texts, strict=True):
            if is_main:
                said.update(text)
        return overlap(said, self.truth).f1


def example(row: Mapping[str, Any], site: str | None = None, split: str | None = None) -> Example:
    """Make an example of a row of ground truth.

    Raises PageError: `no_text`, `truth_not_found` where the page's HTML lacks the truth's text, or as
    `dom.parse` has it.
    """
    root = parse(row["html"])
    page = features(root)
    if page is None:
        raise PageError("no_text")
    texts = tuple(Counter(words(block.text)) for block in page.blocks)
    counted = np.ones(len(texts), np.bool_)
    if row.get("title_path") and not row.get("title_in_gold"):
        title = resolve(root, Labels((row["title_path"],), (1.0,)))
        counted = main_shares(root, page.blocks, title) < 0.5
    paths = row.get("gold_paths")
    truth = Counter(words(row.get("gold_text") or ""))
    if paths or (paths is not None and not truth):
        excluded = row.get("gold_excluded_paths") or []
        labels = Labels((*paths, *excluded), (1.0,) * len(paths) + (0.0,) * len(excluded))
        target = main_shares(root, page.blocks, resolve(root, labels))
    else:
        target = _aligned([block.text for block in page.blocks], row.get("gold_text") or "")
    made = Example(
        url=_url(row),
        domain=site or domain_of(row),
        split=split or row.get("split") or "train",
        kind=" ".join(filter(None, (row.get("set") or "sites", row.get("page_type")))),
        page=page.without_tree(),
        target=target,
        counted=counted,
        lengths=np.array([text.total() for text in texts], np.float32),
        texts=texts,
        truth=truth,
    )
    if not paths and truth and made.f1(target >= 0.5) < _LEAST_ALIGNED:
        raise PageError("truth_not_found")
    return made


def domain_of(row: Mapping[str, Any]) -> str:
    """Return the registered domain of a row of ground truth."""
    return row.get("domain") or registered_domain(host(_url(row)))


def _url(row: Mapping[str, Any]) -> str:
    return row.get("url") or row.get("id") or ""


def main_shares(root: HtmlElement, blocks: Iterable[Block], labels: Resolved) -> npt.NDArray[np.float32]:
    """Measure how much of each block of a tree the labels call main, 0..1."""
    inherited = inherited_values(root, labels)
    return np.array([_share(block, inherited, labels) for block in blocks], np.float32)


def _share(block: Block, inherited: Mapping[HtmlElement, float], labels: Resolved) -> float:
    sized = [(len(text.strip()), value) for text, value in _texts(block, inherited, labels)]
    total = sum(size for size, _ in sized)
    return sum(size * value for size, value in sized) / total if total else 0.0


def _texts(block: Block, inherited: Mapping[HtmlElement, float], labels: Resolved) -> Iterator[tuple[str, float]]:
    """Yield the texts of a block, each with its main probability."""
    for holder, part in block.members or ((block.element, "element"),):
        if part == "element":
            for element in holder.iter():
                yield element.text or "", labels.texts.get(element, inherited[element])
                if element is not holder:
                    yield element.tail or "", labels.tails.get(element, inherited[element.getparent()])
        elif part == "text":
            yield holder.text or "", labels.texts.get(holder, inherited[holder])
        else:
            yield holder.tail or "", labels.tails.get(holder, inherited[block.element])


def _aligned(texts: Sequence[str], truth: str) -> npt.NDArray[np.float32]:
    """Measure how much of each text stands in runs of three words that the truth has too."""
    spoken = words(truth)
    grams = set(zip(*(spoken[at:] for at in range(_GRAM)), strict=False))
    lines = {tuple(words(line)) for line in truth.splitlines()}
    shares = []
    for text in texts:
        own = words(text)
        if len(own) < _GRAM:
            shares.append(float(tuple(own) in lines))
            continue
        covered = np.zeros(len(own), np.bool_)
        for at in range(len(own) - _GRAM + 1):
            if tuple(own[at : at + _GRAM]) in grams:
                covered[at : at + _GRAM] = True
        shares.append(float(covered.mean()))
    return np.array(shares, np.float32)
