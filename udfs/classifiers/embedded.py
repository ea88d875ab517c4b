"""The embedded classifier: a small trained network over block features, on the CPU, without torch or a download."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.numpy

from templates import storage
from templates.dom import PageError, parse
from templates.labels import Addresses, Labels
from udfs.classifiers.features import Features, features, sums
from udfs.classifiers.network import Network
from udfs.classifiers.texts import Floats, Integers

if TYPE_CHECKING:
    from udfs.input.pages import Page

WEIGHTS = "embedded.safetensors"
"""The weights, beside this module; embedded.json is the record of their training."""

_LEAST_LIKELY = 0.02  # a page where no block is likelier than that has no main content
_SURE = 0.8  # a copy that is so likely main is taken whatever the others are
_SHORT = 25  # a text of fewer characters repeats in tables and lists, not only where a part of the page does
_WORTH_SAYING = 0.25  # a difference in probability from what the node would inherit
_MOSTLY_MAIN = 0.7  # share of an element's text: then the element is main, and the rest its exceptions


class Embedded:
    """A network that sees each block's text, links and place, and what the elements around it are called.

    Trained by `stencil train` on public pages of some 1,300 domains, weights in the package. What it calls main: the
    title and the body of articles and documentation, the posts of forums, the central list of listings, name, price
    and description of products; not navigation, sidebars, related links, comments under articles, bylines, notices.

    folder: a directory or URL with weights of one's own. Raises ValueError where there are none, or none for these
    features.
    """

    def __init__(self, folder: str | None = None) -> None:
        if folder is not None:
            if not storage.exists(storage.join(folder, WEIGHTS)):
                raise ValueError(f"no weights in {folder}: `stencil train` writes {WEIGHTS} there")
            network(folder)  # raises what is wrong with them now, not on every page
        self.name = "embedded" if folder is None else f"embedded:{folder}"
        self._folder = folder

    def label(self, pages: Sequence[Page]) -> list[Labels | PageError]:
        """Label pages, in order; a page that can't be parsed is a PageError value."""
        weights = network(self._folder)
        results: list[Labels | PageError] = []
        for page in pages:
            try:
                if page.error is not None:
                    raise PageError(page.error)
                results.append(label_page(page.html, weights))
            except PageError as error:
                results.append(error)
            except Exception:  # noqa: BLE001 - the batch loop: what breaks on one page is that page's error
                results.append(PageError("classifier_failed"))
        return results


def label_page(html: str, weights: Network) -> Labels:
    """Label one page. Raises PageError if it can't be parsed; a page without any text has no labels."""
    page = features(parse(html))
    if page is None:
        return Labels((), ())
    found = weights.probabilities(page)
    main = choose(found, page.chars, page.same)
    # A block that is main on balance, though less likely than not by itself, is said to be so with 0.5.
    return _labels(page, np.where(main, np.maximum(found, 0.5), np.minimum(found, 0.49)))


def choose(found: Floats, chars: Floats, same: Integers) -> npt.NDArray[np.bool_]:
    """Choose the blocks that are main: those that make the expected F1 of the page's characters greatest.

    found: main probability of each block; chars: their lengths; same: the first block of the same text. Where the
    network is unsure of a whole list, the best F1 is had by taking it, though each entry is less likely main than not.
    The expectation is that of a ratio, taken as the ratio of expectations: Ye et al., Optimizing F-measures: a tale of
    two approaches, 2012. Of a text that stands on the page more than once, no more unsure copies are taken than it is
    expected to be main, rounded: parts of a page are often there twice, for large and for small screens. A short text,
    such as that of a cell or a button, repeats for other reasons.
    """
    order = np.argsort(-found, kind="stable")
    shared, taken = np.cumsum((found * chars)[order]), np.cumsum(chars[order])
    best = int(np.argmax(2 * shared / (taken + shared[-1])))
    main = np.zeros(len(found), np.bool_)
    if found[order[0]] >= _LEAST_LIKELY:
        main[order[: best + 1]] = True
    return main & (_enough(found, same) | (found >= _SURE) | (chars < _SHORT))


def _enough(found: Floats, same: Integers) -> npt.NDArray[np.bool_]:
    """Say which blocks are no copies too many."""
    by_text = np.lexsort((-found, same))  # copies side by side, the likeliest first
    text = same[by_text]
    copies_before = np.empty_like(by_text)
    copies_before[by_text] = np.arange(len(text)) - np.searchsorted(text, text)
    expected = np.bincount(same, found)[same]
    kept: npt.NDArray[np.bool_] = copies_before <= np.maximum(expected - 0.5, 0)
    return kept


@lru_cache(maxsize=2)  # the classifier's and the fallback's
def network(folder: str | None = None) -> Network:
    """Load weights once a process: the package's, or those that `stencil train` wrote into a directory or URL.

    Raises ValueError where they can't be used.
    """
    if folder is None:
        return Network.of(safetensors.numpy.load(files("udfs.classifiers").joinpath(WEIGHTS).read_bytes()))
    try:
        return Network.of(safetensors.numpy.load(storage.read_bytes(storage.join(folder, WEIGHTS))))
    except (OSError, ValueError, safetensors.SafetensorError) as error:
        raise ValueError(f"{WEIGHTS} in {folder} can't be used: {error}") from error


def _labels(page: Features, block_probabilities: Floats) -> Labels:
    """Say it with few paths: an element that is main as a whole, or mostly, and exceptions below it."""
    starts, ends, parents = page.starts, page.ends, page.parents.tolist()
    weights = page.chars
    mean = sums(block_probabilities * weights, starts, ends) / sums(weights, starts, ends)
    is_main = (block_probabilities >= 0.5).astype(np.float64)
    count = sums(is_main, starts, ends)
    share = sums(is_main * weights, starts, ends) / sums(weights, starts, ends)
    sides = _sides(page, count, share)
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
            said[addresses.of(page.elements[at])] = holds[at] = round(value, 3)
    for block, at, value in zip(page.blocks, page.within.tolist(), block_probabilities.tolist(), strict=True):
        if (value >= 0.5) != (holds[at] >= 0.5):
            said |= dict.fromkeys(block.paths(addresses), round(value, 3))
    return Labels(tuple(said), tuple(said.values()))


def _sides(page: Features, count: Floats, share: Floats) -> list[bool | None]:
    """Decide which elements to speak of: True main, False other, None neither (its parts do)."""
    total = page.ends - page.starts
    parents = page.parents
    # Of nested elements with the same main blocks and others around, the innermost is the one that is main.
    same = (count == count[parents]) & (count > 0) & (count < total[parents]) & (parents >= 0)
    outer = np.zeros(len(total), bool)
    outer[parents[same]] = True
    sides: list[bool | None] = []
    for at, element in enumerate(page.elements):
        if count[at] == 0:
            sides.append(False)
        elif element.tag == "html" or outer[at]:
            sides.append(None)
        elif count[at] == total[at] or share[at] >= _MOSTLY_MAIN:
            sides.append(True)
        else:
            sides.append(False if share[at] < 1 - _MOSTLY_MAIN else None)
    return sides
