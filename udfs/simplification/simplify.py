"""Simplified HTML and map HTML of a page, byte for byte those of the published preprocessing.

The published models were trained on what `simplify_html` of MinerU-HTML 1.1.2 (Apache-2.0; Ma et al., "Dripper",
2025) makes of a page, and `simplify` of Pulpie, its port. Its oddities are kept, since they are part of the models.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import lxml.etree
import lxml.html
from lxml.etree import _Element

from templates.dom import MAX_HTML_CHARS, PageError
from udfs.simplification import cutting
from udfs.simplification.markup import (
    BLOCK,
    INLINE_TAGS,
    LONG_LIST,
    ODD,
    TEXT,
    Markup,
    folded,
    is_control,
    is_long,
    mangled,
    read,
    stripped,
    unescape,
    written,
)
from udfs.simplification.numbering import Original, main_html

__all__ = ["main_html", "simplify"]

CUTOFF = 500
"""Characters of text that a block keeps."""

_HEAD = '<html><head><meta charset="utf-8"></head><body>'
_XML_DECLARATION = re.compile(r"<\?xml\s+.*?\??>", re.DOTALL)


class _Run(NamedTuple):
    """A block: children of an element between two blocks, behind a text; or (no owner) a whole element."""

    owner: int
    lead: str
    members: list[int]


def simplify(html: str) -> tuple[str, str]:
    """Make the simplified HTML, which a model reads, and the map HTML, which its answer is applied to.

    Both carry the same item ids: 1, 2, …. Time is linear in the page. Raises PageError `too_large` or `unparsable`;
    ImportError without selectolax<1, whose Modest parser defines the segmentation.
    """
    root = _parsed(html)
    page = read(root)
    holders: list[int] = []
    runs = list(_runs(page, holders))
    original = Original(root, "cc-select" in html, _numbers(page, runs, holders))
    for number in holders:
        original.mark_holder(number)
    blocks: list[str] = []
    for run in runs:
        try:
            block = _block(page, run, original, len(blocks) + 1)
        except ValueError:  # lxml refuses control characters: the block is lost there, too
            block = None
        if block is not None:
            blocks.append(block)
    return (
        f"{_HEAD}{''.join(blocks)}</body></html>",
        lxml.etree.tostring(root, method="html", encoding="unicode"),
    )


def _parsed(html: str) -> _Element:
    if len(html) > MAX_HTML_CHARS:
        raise PageError("too_large")
    try:
        from selectolax.parser import HTMLParser
    except ImportError as error:
        raise ImportError(f"models need selectolax below 1 (pip install 'webstencil[models]'): {error}") from error
    fixed = HTMLParser(html).html
    if not fixed:
        raise PageError("unparsable")
    if "<?xml" in fixed:
        fixed = _XML_DECLARATION.sub("", fixed)
    try:
        root = lxml.html.fromstring(fixed, parser=lxml.etree.HTMLParser(remove_comments=True))
    except (lxml.etree.LxmlError, ValueError):
        raise PageError("unparsable") from None
    root.getroottree().docinfo.clear()  # below an XHTML doctype, libxml2 writes ids that are not there
    if "data-uid" in fixed:
        lxml.etree.strip_attributes(root, "data-uid")
    return root


def _numbers(page: Markup, runs: Sequence[_Run], holders: Sequence[int]) -> set[int] | None:
    """Find the elements of the original that numbering speaks of; None: with odd blocks, it may be any."""
    spoken = set(holders)
    for owner, _, members in runs:
        if owner < 0:
            is_odd = page.bits[members[0]] & ODD
        else:
            is_odd = page.bits[owner] & ODD and page.tags[owner].name != "body"
            spoken.add(page.numbers[owner])
        if is_odd:
            return None
        if members:
            spoken.add(page.numbers[members[0]])
            spoken.add(page.numbers[members[-1]])
    return spoken


def _runs(page: Markup, holders: list[int]) -> Iterator[_Run]:
    """Yield the blocks of a page in order, without its repeated equal texts; note inline elements with blocks."""
    tags, bits, blocks, wholes = page.tags, page.bits, page.blocks, page.wholes
    tokens, ends = page.tokens, page.ends
    seen: set[tuple[int, str]] = set()
    members: list[int] = []
    lead = stripped(page.text(0))
    stack = [(0, iter(page.children[0]))]
    while stack:
        owner, children = stack[-1]
        for child in children:
            held = bits[child]
            if not blocks[child] and not held & BLOCK:
                members.append(child)
                continue
            tag = tags[child]
            is_break = tag.name == "br"
            if is_break:
                members.append(child)
            if members:
                yield _Run(owner, lead, members)
                members = []
            elif lead and (owner, lead) not in seen:
                seen.add((owner, lead))
                yield _Run(owner, lead, [])
            if not is_break:
                if held & BLOCK and child not in wholes:
                    if tag.inline:
                        holders.append(page.numbers[child])
                    stack.append((child, iter(page.children[child])))
                    lead = stripped(page.text(child))
                    break
                if held & (TEXT | ODD):
                    yield _Run(-1, "", [child])
            lead = tokens[ends[child] + 1]
            if lead:
                lead = stripped(lead)
        else:
            if members:
                yield _Run(owner, lead, members)
                members = []
            elif lead and (owner, lead) not in seen:
                seen.add((owner, lead))
                yield _Run(owner, lead, [])
            stack.pop()
            lead = stripped(page.tail(owner)) if stack else ""


def _block(page: Markup, run: _Run, original: Original, item: int) -> str | None:
    """Write a block of the simplified HTML and give its original the item id; None, if nothing is in it."""
    owner, lead, members = run
    if owner < 0:
        element = members[0]
        if page.bits[element] & ODD:
            return _odd_block(page, run, original, item)
        if not page.bits[element] & TEXT:
            return None
        original.number_element(page.numbers[element], item)
        return _element_html(page, element, item)
    if page.tags[owner].name == "body" and (lead or len(members) != 1):
        return None
    if page.bits[owner] & ODD:
        return _odd_block(page, run, original, item)
    if not lead and not _has_text(page, members) and not _is_long_run(page, run):
        return None
    if not members:
        original.number_text(page.numbers[owner], unescape(lead), item)
    elif not original.number_run(page.numbers[owner], page.numbers[members[0]], page.numbers[members[-1]], item):
        return None
    return _run_html(page, run, item)


def _has_text(page: Markup, members: list[int]) -> bool:
    for member in members:
        if page.bits[member] & TEXT:
            return True
        tag = page.tags[member]
        if not tag.sightless and (tag.name != "br" or member != members[-1]) and stripped(page.tail(member)):
            return True
    return False


def _is_long_run(page: Markup, run: _Run) -> bool:
    name = page.tags[run.owner].name
    return name in ("ul", "ol", "dl") and is_long(name, [page.tags[member].name for member in run.members])


def _element_html(page: Markup, element: int, item: int) -> str:
    start, end = page.starts[element], page.ends[element]
    if page.lengths[element] > CUTOFF or page.bits[element] & LONG_LIST:
        root = cutting.tree(page, element)
        cutting.cut(root, CUTOFF)
        return cutting.html(root, item)
    return f'{page.tags[element].opened} _item_id="{item}">{"".join(page.clean[start + 1 : end + 1])}'


def _run_html(page: Markup, run: _Run, item: int) -> str:
    owner, lead, members = run
    tag = page.tags[owner]
    start, end, length = 0, 0, len(lead)
    if members:
        start, end = page.starts[members[0]], page.ends[members[-1]] + 1
        length += sum(page.lengths[member] + len(page.tail(member)) for member in members)
        if page.tags[members[-1]].name != "br":
            end += 1  # with the text behind it
    if length > CUTOFF or _is_long_run(page, run) or any(page.bits[member] & LONG_LIST for member in members):
        root = cutting.tree(page, owner, lead, members)
        cutting.cut(root, CUTOFF)
        return cutting.html(root, item)
    return f'{tag.opened} _item_id="{item}">{folded(lead)}{"".join(page.clean[start:end])}</{tag.name}>'


def _odd_block(page: Markup, run: _Run, original: Original, item: int) -> str | None:
    """Do literally what the published preprocessing does with a block: write it as XML, read that as HTML.

    For the rare blocks that are not the same afterwards; those that it can't write or read are lost there, too.
    """
    try:
        xml = _xml(page, run, original)
        root = lxml.html.fragment_fromstring(xml)
        again = read(root)
        if not all(tag.opened for tag in again.tags) or not again.bits[0] & TEXT:
            return None
        block = _element_html(again, 0, item)
    except (lxml.etree.LxmlError, AssertionError, ValueError):
        return None
    if run.owner < 0:
        original.number_element(page.numbers[run.members[0]], item)
        return block
    return block if _number_odd(root, run, page, original, item) else None


def _number_odd(root: _Element, run: _Run, page: Markup, original: Original, item: int) -> bool:
    number = int(root.get("data-uid", -1))
    element = original.elements[number]
    owner = page.numbers[run.owner]
    if len(root):
        if root.tag in INLINE_TAGS and element.tag != "body" and element.get("cc-block-type") != "true":
            element.set("_item_id", str(item))
            return True
        children = [int(uid) for child in root if (uid := child.get("data-uid"))]
        return not children or original.number_run(owner, children[0], children[-1], item)
    if run.members and not run.lead:
        element.set("_item_id", str(item))
    elif root.text and root.text.strip():
        original.number_text(owner, root.text.strip(), item)
    return True


def _xml(page: Markup, run: _Run, original: Original) -> str:
    """Write a block as the published preprocessing does. Raises ValueError where lxml refuses to build it."""
    owner, lead, members = run
    element = members[0] if owner < 0 else owner
    shell = lxml.html.Element(page.tags[element].name)
    shell.attrib.update(original.elements[page.numbers[element]].attrib)
    shell.set("data-uid", str(page.numbers[element]))
    text = page.text(element) if owner < 0 else lead
    shell.text = unescape(text) or None
    if owner < 0:
        start, end = page.starts[element] + 2, page.ends[element]
        number = element + 1
    else:
        for member in members:
            tail = "" if page.tags[member].name == "br" else page.tail(member)
            if not tail.isspace() and is_control(tail):
                raise ValueError("control characters between elements")
        start, end, number = 0, 0, 0
        if members:
            start, end, number = page.starts[members[0]], page.ends[members[-1]] + 1, members[0]
            if page.tags[members[-1]].name != "br":
                end += 1
    inner: list[str] = []
    tokens = page.tokens[start:end]
    for at in range(0, len(tokens), 2):
        token = tokens[at]
        if token[0] not in "/?":
            close = "/" if token[-1] == "/" else ""
            token = f'{token.removesuffix("/")} data-uid="{page.numbers[number]}"{close}'
            number += 1
        inner.append(f"<{token}>{mangled(''.join(tokens[at + 1 : at + 2]))}")
    shell.append(lxml.etree.Element("cc-inner"))
    return written(shell)[0].replace("<cc-inner/>", "".join(inner))
