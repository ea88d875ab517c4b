"""Evidence: what markup and text say about each block of a page, in numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from lxml.html import HtmlElement

from udfs.blocks import Block, segment

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

SIGNS = (
    "nav", "footer", "aside", "header", "form", "main", "article", "hidden", "navigation", "foot", "side",
    "comment", "social", "related", "pager", "toc", "meta", "ad", "cookie", "head", "tool", "body",
    "outside_main", "outside_article", "outside_body",
)  # fmt: skip
"""What an element around a block may say of it by its tag, role, class or id words; a bit each."""
BIT = {sign: 1 << number for number, sign in enumerate(SIGNS)}

NUMBERS = (
    "link_share", "length", "sentences", "position_squared", "before_h1", "container_link_share",
    "outer_link_share", "container_length", "region_share", "links_on_link_page", "first", "last",
    "comment_beside_text",
)  # fmt: skip
"""The columns of `Evidence.numbers`."""

_TAGS = {tag: BIT[tag] for tag in ("nav", "footer", "aside", "header", "form", "main", "article")}
_TAGS |= {"menu": BIT["nav"], "dialog": BIT["cookie"]}
_ROLES = {
    "navigation": "nav", "menu": "nav", "menubar": "nav", "toolbar": "nav", "tablist": "nav",
    "contentinfo": "footer", "complementary": "aside", "banner": "header", "main": "main",
    "article": "article", "search": "tool", "dialog": "cookie", "alertdialog": "cookie",
    "directory": "toc", "doc-toc": "toc",
}  # fmt: skip
# The web's common vocabulary of class and id words, whatever the language of the page.
_WORDS = {
    "navigation": r"\b(nav|menu)|(nav|navi|navbar|menu|navigation)\b|breadcrumb|crumbs|sitemap|dropdown",
    "foot": r"\bfoot(er)?\b|footer|\bcolophon|\bcopyright|\bbottom",
    "side": r"\bside\b|sidebar|\baside|widget|\brail\b|sidecol|\bsecondary",
    "comment": r"\bcomment|comments\b|disqus|\brespond\b|\breply|replies\b",
    "social": r"\bshar(e|ing)|\bsocial|social\b|share\b|sharing\b|newsletter|subscri|\bfollow",
    "related": r"related|recommend|similar|\bpopular|trending|\blatest|\brecents?\b|read ?more|teaser"
    r"|\bmore\b",
    "pager": r"\bpager|paginat|\bpaging|\bpagenav|\bprev(ious)?\b|\bnext\b",
    "toc": r"\btoc|toc\b|table ?of ?contents|\boutline\b|on ?this ?page",
    "meta": r"\bmeta|meta\b|byline|\bauthor|\bdate\b|\btime(stamp)?\b|\bposted\b|\bpublish|\btags?\b|tags\b"
    r"|\bcategor|keywords|avatar|\bbio\b|profile",
    "ad": r"\bads?\b|advert|sponsor|\bpromo|\bbanner|\bcta\b",
    "cookie": r"cookie|consent|gdpr|\bmodal|popup|overlay|lightbox|\balert",
    "head": r"\bheader|header\b|\bhead\b|masthead|\btop ?bar|\blogo|branding|\btop\b",
    "tool": r"search|\blog ?in|sign ?(in|up)|register|\bcart\b|basket|toolbar|\btools?\b|\bskip"
    r"|screen ?reader|visually ?hidden|sr only|no ?print|\bprint|button|\bbtn",
    "body": r"(article|entry|post|story|page|main|body|text|blog|doc) ?(body|content|text)"
    r"|\bcontent (body|text|main)|\bmarkdown|\bprose\b|richtext|\brst\b",
}
_PATTERNS = [(BIT[sign], re.compile(words)) for sign, words in _WORDS.items()]
_NEGATIVE = sum(BIT[sign] for sign in SIGNS if sign not in ("main", "article", "body"))
_NEGATIVE_AROUND_MAIN = _NEGATIVE & ~(BIT["header"] | BIT["head"] | BIT["hidden"])

_CAMEL = re.compile(r"([a-z])([A-Z])")
_NOT_LETTERS = re.compile(r"[^a-z]+")
_HIDING = re.compile(r"(?<![\w-])(?:display\s*:\s*none|visibility\s*:\s*hidden)")
_SENTENCE_MARK = re.compile(r"[.!?;:,][\s\"')]|[.!?:]$|[。！？、，；：…।؟،]")
_ATTRIBUTE_CHARS = 200  # class lists of utility frameworks: what names the part comes first


@dataclass(frozen=True)
class Evidence:
    """A page's n blocks and the m elements that hold them (each with its blocks start..end, parents first).

    numbers: n x len(NUMBERS). signs: of each element, an int of BITs, its ancestors' included.
    chars: text length of each block; plain_chars: the page's, without link text. within: the element of each
    block. container: the element that groups the block with its like: the parent; of a cell, the table part.
    """

    blocks: list[Block]
    numbers: Floats
    chars: Floats
    plain_chars: float
    within: Integers
    container: Integers
    elements: list[HtmlElement]
    parents: Integers
    starts: Integers
    ends: Integers
    signs: Integers


def gather(root: HtmlElement) -> Evidence | None:
    """Measure every block of a page; None where the page has no text."""
    blocks = list(segment(root))
    if not blocks:
        return None
    elements, parents, starts, ends, within = _tree(blocks)
    texts = [" ".join(block.text.split()) for block in blocks]
    chars = np.array([len(text) for text in texts], np.float64)
    raw = np.array([len(block.text) for block in blocks], np.float64)
    links = chars * np.minimum(1.0, np.array([block.link_chars for block in blocks], np.float64) / raw)
    sentences = np.array([len(_SENTENCE_MARK.findall(text)) for text in texts], np.float64)
    cells = np.array([block.element.tag in ("td", "th") for block in blocks])
    container = np.maximum(parents[np.where(cells, np.maximum(parents[within], 0), within)], 0)
    outer = np.maximum(parents[container], 0)
    region = np.maximum(parents[outer], 0)

    total, linked = sums(chars, starts, ends), sums(links, starts, ends)
    plain = total - linked
    share = linked / total
    signs = _signs(elements, parents.tolist(), plain / (plain[0] + 1e-9), total / total[0])
    signs = _outside(signs, within, chars - links)
    comment = (signs[within] & BIT["comment"]) > 0
    beside = float((chars - links)[~comment].sum() / (plain[0] + 1e-9))
    position = (np.cumsum(chars) - chars / 2) / total[0]
    headings = [number for number, block in enumerate(blocks) if block.element.tag == "h1"]
    first_heading = headings[0] if headings else -1
    numbers = np.column_stack([
        links / chars, np.log2(1 + chars) / 10, np.minimum(sentences, 6) / 6, position**2,
        np.arange(len(blocks)) < first_heading, share[container], share[outer],
        np.log2(1 + plain[container]) / 10, plain[region] / (plain[0] + 1e-9), links / chars * share[0],
        position < 0.05, position > 0.95, comment * beside,
    ]).astype(np.float64)  # fmt: skip
    return Evidence(blocks, numbers, chars, float(plain[0]), within, container, elements, parents, starts, ends, signs)


def _tree(blocks: Sequence[Block]) -> tuple[list[HtmlElement], Integers, Integers, Integers, Integers]:
    """List the elements around blocks: (elements, parents, starts, ends, index of each block's element)."""
    index: dict[HtmlElement, int] = {}
    elements: list[HtmlElement] = []
    parents: list[int] = []
    starts: list[int] = []
    within: list[int] = []
    for number, block in enumerate(blocks):
        chain = []
        node: HtmlElement | None = block.element
        while node is not None and node not in index:
            chain.append(node)
            node = node.getparent()
        parent = -1 if node is None else index[node]
        for element in reversed(chain):
            index[element] = len(elements)
            elements.append(element)
            parents.append(parent)
            starts.append(number)
            parent = index[element]
        within.append(parent)
    ends = [0] * len(elements)
    for number, at in enumerate(within):
        ends[at] = number + 1
    for at in range(len(elements) - 1, 0, -1):
        ends[parents[at]] = max(ends[parents[at]], ends[at])
    return elements, np.array(parents), np.array(starts), np.array(ends), np.array(within)


def sums(values: Floats, starts: Integers, ends: Integers) -> Floats:
    """Add up the values of each element's blocks."""
    running = np.concatenate([[0.0], np.cumsum(values)])
    added: Floats = running[ends] - running[starts]
    return added


def _signs(elements: Sequence[HtmlElement], parents: Sequence[int], plain: Floats, total: Floats) -> Integers:
    """Collect each element's signs and its ancestors'; what holds most text is not judged by its name."""
    own = [_own_signs(element) for element in elements]
    below = [False] * len(own)  # whether the main element or a heading of the first rank stands below
    for at in range(len(own) - 1, 0, -1):
        if below[at] or own[at] & BIT["main"] or elements[at].tag == "h1":
            below[parents[at]] = True
    large = ((plain > 0.5) | (total > 0.6)).tolist()
    signs: list[int] = []
    for at, parent in enumerate(parents):
        kept = own[at]
        if large[at]:
            kept &= ~_NEGATIVE
        elif below[at]:
            kept &= ~_NEGATIVE_AROUND_MAIN
        signs.append(kept | (signs[parent] if parent >= 0 else 0))
    return np.array(signs)


def _own_signs(element: HtmlElement) -> int:
    tag = element.tag
    signs = _TAGS.get(tag, 0)
    for name, value in element.items():
        if name == "class" or name == "id":
            if tag != "body" and tag != "html":  # theirs speak of the page, not of a part
                signs |= _named_signs(value[:_ATTRIBUTE_CHARS])
        elif name == "role":
            signs |= BIT.get(_ROLES.get(value, ""), 0)
        elif name == "hidden" or (name == "style" and _HIDING.search(value)):
            signs |= BIT["hidden"]
        elif name == "itemprop" and value == "articleBody":
            signs |= BIT["body"]
    return signs


@lru_cache(maxsize=65536)
def _named_signs(names: str) -> int:
    words = _NOT_LETTERS.sub(" ", _CAMEL.sub(r"\1 \2", names).lower())
    return sum(bit for bit, pattern in _PATTERNS if pattern.search(words))


def _outside(signs: Integers, within: Integers, plain: Floats) -> Integers:
    """Mark what stands outside of the page's declared main part, where that holds text enough."""
    total = plain.sum() + 1e-9
    for sign, least in (("main", 0.2), ("article", 0.3), ("body", 0.3)):
        inside = (signs[within] & BIT[sign]) > 0
        if plain[inside].sum() > least * total:
            signs = np.where(signs & BIT[sign], signs, signs | BIT[f"outside_{sign}"])
    return signs
