"""The embedded classifier: points for and against each block, added up; no model, no download, no GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from templates.dom import PageError, parse
from templates.labels import Addresses, Labels
from udfs.classifiers.evidence import BIT, NUMBERS, Evidence, Floats, gather, sums

if TYPE_CHECKING:
    from udfs.input.pages import Page

# Points are log-odds of being main. Their sizes come from a logistic regression over 1,135 public pages with
# ground truth (training and development parts), checked on sites that it had not seen; then they were rounded
# by hand. No words of a language and no names of sites are in it.
_NUMBER_POINTS: Mapping[str, float] = MappingProxyType({
    "link_share": -0.8, "length": 0.9, "sentences": 1.1, "position_squared": -1.2, "before_h1": -2.2,
    "container_link_share": -0.4, "outer_link_share": -0.6, "container_length": 0.7, "region_share": 0.9,
    "links_on_link_page": 1.4, "first": -0.6, "last": -0.6, "comment_beside_text": -1.0,
})  # fmt: skip
_SIGN_POINTS: Mapping[str, float] = MappingProxyType({
    "nav": -0.6, "footer": -1.6, "aside": -0.8, "form": -1.4, "main": 0.3, "article": 0.3, "hidden": -0.5,
    "navigation": -1.8, "foot": -1.1, "side": -0.8, "comment": -0.6, "social": -1.5, "related": -1.5,
    "pager": -0.5, "toc": -0.5, "meta": -1.1, "ad": -0.5, "cookie": -1.9, "head": -0.4, "tool": -1.4,
    "body": 0.3, "outside_main": -1.8, "outside_article": -1.5, "outside_body": -1.5,
})  # fmt: skip
_TAG_POINTS: Mapping[str, float] = MappingProxyType(
    {"p": 0.3, "h2": 0.8, "li": -0.2, "pre": 1.0}
    | dict.fromkeys(("button", "select", "label", "legend", "textarea", "form", "fieldset"), -2.2)
    | dict.fromkeys(("div", "section", "article", "main", "header", "aside", "center", "summary", "address"), -0.6)
)

_NUMBER_VECTOR = np.array([_NUMBER_POINTS[name] for name in NUMBERS])
_OWN_WEIGHT, _IN_REGION, _OUT_OF_REGION = 0.8, 0.3, -0.4
_EVEN_CHARS = 400  # longer blocks don't outvote their neighbours further
_LEAST_TEXT = 20  # characters outside links: with fewer, a page may have no main content at all
_WORTH_SAYING = 0.25  # a difference in probability from what the node would inherit
_MOSTLY_MAIN = 0.7  # share of an element's text: then the element is main, and the rest its exceptions


class Embedded:
    """Rules on block features: what text looks like, where it stands, what the elements around it are called.

    Each block gets points (log-odds) for its length, links, sentences and position and for the tags, roles
    and class words around it; blocks of one container pull each other along, and so does the region that
    holds most of what was found. It reads no language and is right less often than a model that reads: expect
    trouble with comments under articles, teasers that look like text, and short pages. Text in `noscript`
    does not count.
    """

    name = "embedded"

    def label(self, pages: Sequence[Page]) -> list[Labels | PageError]:
        """Label pages, in order; a page that can't be parsed is a PageError value."""
        results: list[Labels | PageError] = []
        for page in pages:
            try:
                if page.error is not None:
                    raise PageError(page.error)
                results.append(label_page(page.html))
            except PageError as error:
                results.append(error)
            except Exception:  # noqa: BLE001 - the batch loop: what breaks on one page is that page's error
                results.append(PageError("classifier_failed"))
        return results


def label_page(html: str) -> Labels:
    """Label one page. Raises PageError if it can't be parsed; a page without any text has no labels."""
    evidence = gather(parse(html))
    if evidence is None:
        return Labels((), ())
    return _labels(evidence, probabilities(evidence))


def probabilities(evidence: Evidence) -> Floats:
    """Compute the main probability of every block: 0..1, in the order of the blocks."""
    signs = evidence.signs
    sign_points = {int(value): _points(int(value)) for value in np.unique(signs)}
    odds = evidence.numbers @ _NUMBER_VECTOR
    odds += np.array([_TAG_POINTS.get(block.element.tag, 0.0) for block in evidence.blocks])
    odds += np.array([sign_points[value] for value in signs.tolist()])[evidence.within]
    first, region = _with_neighbours(evidence, odds)
    if first.max() < 0.5 and evidence.plain_chars >= _LEAST_TEXT:
        # Nothing stands out, as on a bare list of links: the better half of the best region is the content.
        odds += 0.1 - np.median(odds[region[0] : region[1]])
        first, _ = _with_neighbours(evidence, odds)
    return first


def _points(signs: int) -> float:
    return sum(points for sign, points in _SIGN_POINTS.items() if signs & BIT[sign])


def _with_neighbours(evidence: Evidence, odds: Floats) -> tuple[Floats, tuple[int, int]]:
    """Let container and region weigh in: (probabilities, blocks start..end of the region by expected F1)."""
    starts, ends = evidence.starts, evidence.ends
    alone = _logistic(odds)
    weight = np.minimum(evidence.chars, _EVEN_CHARS) + 3
    mean = sums(alone * weight, starts, ends) / sums(weight, starts, ends)
    expected = sums(alone * evidence.chars, starts, ends)  # main characters, were the probabilities right
    best = int(np.argmax(expected / (sums(evidence.chars, starts, ends) + expected[0])))
    region = int(starts[best]), int(ends[best])
    odds = _OWN_WEIGHT * odds + (1 - _OWN_WEIGHT) * np.log((mean + 0.01) / (1.01 - mean))[evidence.container]
    odds += _OUT_OF_REGION
    odds[region[0] : region[1]] += _IN_REGION - _OUT_OF_REGION
    return _logistic(odds), region


def _logistic(odds: Floats) -> Floats:
    return 1 / (1 + np.exp(-odds))


def _labels(evidence: Evidence, block_probabilities: Floats) -> Labels:
    """Say it with few paths: an element that is main as a whole, or mostly, and exceptions below it."""
    starts, ends, parents = evidence.starts, evidence.ends, evidence.parents.tolist()
    weights = evidence.chars
    mean = sums(block_probabilities * weights, starts, ends) / sums(weights, starts, ends)
    is_main = (block_probabilities >= 0.5).astype(np.float64)
    count = sums(is_main, starts, ends)
    share = sums(is_main * weights, starts, ends) / sums(weights, starts, ends)
    sides = _sides(evidence, count, share)
    addresses = Addresses()
    said: dict[str, float] = {}
    holds: list[float] = []  # of each element: the probability that its texts have by the labels said so far
    for at, parent in enumerate(parents):
        inherited = holds[parent] if parent >= 0 else 0.0
        value = float(mean[at])
        if sides[at] is not None and (value >= 0.5) != sides[at]:
            value = 0.5 if sides[at] else 0.49  # long blocks of the other side, which get their own labels
        holds.append(inherited)
        if sides[at] is not None and ((inherited >= 0.5) != sides[at] or abs(value - inherited) > _WORTH_SAYING):
            said[addresses.of(evidence.elements[at])] = holds[at] = round(value, 3)
    for block, at, value in zip(evidence.blocks, evidence.within.tolist(), block_probabilities.tolist(), strict=True):
        if (value >= 0.5) != (holds[at] >= 0.5):
            said |= dict.fromkeys(block.paths(addresses), round(value, 3))
    return Labels(tuple(said), tuple(said.values()))


def _sides(evidence: Evidence, count: Floats, share: Floats) -> list[bool | None]:
    """Decide which elements to speak of: True main, False other, None neither (its parts do)."""
    total = evidence.ends - evidence.starts
    parents = evidence.parents
    # Of nested elements with the same main blocks and others around, the innermost is the one that is main.
    same = (count == count[parents]) & (count > 0) & (count < total[parents]) & (parents >= 0)
    outer = np.zeros(len(total), bool)
    outer[parents[same]] = True
    sides: list[bool | None] = []
    for at, element in enumerate(evidence.elements):
        if count[at] == 0:
            sides.append(False)
        elif element.tag == "html" or outer[at]:
            sides.append(None)
        elif count[at] == total[at] or share[at] >= _MOSTLY_MAIN:
            sides.append(True)
        else:
            sides.append(False if share[at] < 1 - _MOSTLY_MAIN else None)
    return sides
