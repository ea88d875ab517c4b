"""Simplified HTML and map HTML of a page, byte for byte those of the published preprocessing.

The published models were trained on what `simplify_html` of MinerU-HTML 1.1.2 (Apache-2.0; Ma et al., "Dripper",
2025) makes of a page, and `simplify` of Pulpie, its port. Its oddities are kept, since they are part of the models.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import TypeAlias

import lxml.etree
import lxml.html
from lxml.etree import _Element

from templates.dom import MAX_HTML_CHARS, PageError
from udfs.simplification import cutting
from udfs.simplification.markup import Markup, cut, has_controls, is_control, is_long, mangled, read
from udfs.simplification.numbering import MapHtml, main_html
from udfs.simplification.tags import END, GONE, INLINE_TAGS, clean_tags, folded, unescape

__all__ = ["main_html", "simplify"]

CUTOFF = 500
"""Characters of text that a block keeps."""

_HEAD = '<html><head><meta charset="utf-8"></head><body>'
_XML_DECLARATION = re.compile(r"<\?xml\s+.*?\??>", re.DOTALL)


_Run: TypeAlias = tuple[int, str | None, int, int]
"""A block: an element, a text in it, and its children behind that text from one to another (-1: none); or, where the
text is None, the whole of the element."""


def simplify(html: str) -> tuple[str, str]:
    """Make the simplified HTML, which a model reads, and the map HTML, which its answer is applied to.

    Both carry the same item ids: 1, 2, …. Time is linear in the page. Raises PageError `too_large` or `unparsable`;
    ImportError without selectolax<1, whose Modest parser defines the segmentation.
    """
    root, controls = _parsed(html)
    page = read(root, controls)
    if page.is_marked and "data-uid" in page.html:
        lxml.etree.strip_attributes(root, "data-uid")
        page = read(root, controls, page.scripts)
    writer = _Writer(page, root)
    blocks = [_HEAD]
    for run in _runs(page, writer.map):
        try:
            block = writer.block(run, len(blocks))
        except ValueError:  # lxml refuses control characters: the block is lost there, too
            block = None
        if block is not None:
            blocks.append(block)
    blocks.append("</body></html>")
    return folded("".join(blocks)), writer.map.write()


def _parsed(html: str) -> tuple[_Element, bool]:
    """Parse a page as the published preprocessing does, and tell whether there are control characters in it."""
    if len(html) > MAX_HTML_CHARS:
        raise PageError("too_large")
    try:
        from selectolax.parser import HTMLParser
    except ImportError as error:
        raise ImportError(f"models need selectolax below 1 (pip install 'webstencil[models]'): {error}") from error
    fixed = HTMLParser(html.encode("utf-8", "ignore"), detect_encoding=False).html
    if not fixed:
        raise PageError("unparsable")
    if "<?xml" in fixed:
        fixed = _XML_DECLARATION.sub("", fixed)
    data = fixed.encode()
    parser = lxml.etree.HTMLParser(remove_comments=True, encoding="utf-8", collect_ids=False)
    try:
        root = lxml.html.fromstring(data, parser=parser)
    except (lxml.etree.LxmlError, ValueError):
        raise PageError("unparsable") from None
    root.getroottree().docinfo.clear()  # below an XHTML doctype, libxml2 writes ids that are not there
    return root, has_controls(fixed, data)


def _runs(page: Markup, original: MapHtml) -> Iterator[_Run]:
    """Yield the blocks of a page in order, without its repeated equal texts; mark inline elements with blocks."""
    tags, texts, ends, blocks, holds = page.tags, page.texts, page.ends, page.blocks, page.holds
    seen: set[tuple[int, str]] = set()
    first = last = -1
    lead = page.text(0).strip()
    owner, at = 0, 1
    while owner >= 0:
        child = at
        is_end = child == ends[owner] or not ends[owner]
        if not is_end:
            at = ends[child] + 1
            tag = tags[child]
            if tag.kind == GONE:
                continue
            is_break = tag.name == "br"
            if is_break or not (blocks[child] or holds[child]):
                first = child if first < 0 else first
                last = child
                if not is_break:
                    continue
        if first >= 0:
            yield (owner, lead, first, last)
            first = -1
        elif lead and (owner, lead) not in seen:
            seen.add((owner, lead))
            yield (owner, lead, -1, -1)
        if is_end:
            at = ends[owner] + 1
            lead = texts[at - 1].strip()
            owner = page.above[owner] if owner else -1
        elif not is_break and holds[child] and child not in page.wholes:
            if tag.inline:
                original.mark_holder(child)
            owner, at = child, child + 1
            lead = texts[child].strip()
        else:
            if not is_break and (
                ends[child] > child + 1 or page.odd[child] or (ends[child] > child and texts[child].strip())
            ):
                yield (child, None, -1, -1)
            lead = texts[at - 1].strip()


class _Writer:
    """Writes the blocks of a page, and gives their originals the item ids."""

    def __init__(self, page: Markup, root: _Element) -> None:
        self.page, self.map, self._root = page, MapHtml(page), root

    def block(self, run: _Run, item: int) -> str | None:
        """Write a block of the simplified HTML and give its original the item id; None, if nothing is in it."""
        page = self.page
        owner, lead, first, last = run
        tag = page.tags[owner]
        is_top = tag.name == "body" or tag.name == "html"
        if lead is None:
            end = page.ends[owner]
            if is_top or (page.has_odd and page.is_odd(owner, end + 1)):
                return self._odd_block(run, item)
            block = _element_html(page, owner, item)
            if block is not None:
                self.map.number_element(owner, item)
            return block
        if is_top:
            return self._body_block(run, item)
        if page.has_odd and (
            page.odd[owner] or is_control(lead) or (first >= 0 and page.is_odd(first, page.ends[last] + 1))
        ):
            return self._odd_block(run, item)
        block = _run_html(page, run, item)
        if block is not None and first >= 0:
            self.map.number_run(owner, first, last, item)
        elif block is not None:
            self.map.number_text(owner, unescape(lead), item)
        return block

    def _body_block(self, run: _Run, item: int) -> str | None:
        """Write what stands in the body itself; it is a block if it is one element alone."""
        page = self.page
        owner, lead, element, last = run
        if lead or element != last:
            return None if page.tags[owner].name == "body" else self._odd_block(run, item)
        is_odd = page.odd[owner] or page.is_odd(element, page.ends[element] + 1)
        if is_odd or not page.tags[element].inline:
            return self._odd_block(run, item)
        block = None if page.tail(element).strip() else _element_html(page, element, item)
        if block is not None:
            self.map.number(element, item)
        return block

    def _odd_block(self, run: _Run, item: int) -> str | None:
        """Do literally what the published preprocessing does with a block: write it as XML, read that as HTML.

        For the rare blocks that are not the same afterwards; those that it can't write or read are lost there, too.
        """
        try:
            root = lxml.html.fragment_fromstring(self._xml(run))
            for image in root.iter("img"):
                image.set("src", image.get("src", "").strip())
            block = _element_html(read(root, False), 0, item)
        except (lxml.etree.LxmlError, AssertionError, ValueError):
            return None
        if block is None or (run[1] is not None and not self._number_odd(root, run, item)):
            return None
        if run[1] is None:
            self.map.number_element(run[0], item)
        return block

    def _number_odd(self, root: _Element, run: _Run, item: int) -> bool:
        owner, lead, first, _ = run
        element = int(root.get("data-uid", -1))
        name = self.page.tags[element].name
        if len(root):
            if root.tag in INLINE_TAGS and name != "body" and not self.map.has(element, "cc-block-type", "true"):
                self.map.number(element, item)
                return True
            children = [int(uid) for child in root if (uid := child.get("data-uid"))]
            return not children or self.map.number_run(owner, children[0], children[-1], item)
        if first >= 0 and not lead:
            self.map.number(element, item)
        elif root.text and root.text.strip():
            self.map.number_text(owner, root.text.strip(), item)
        return True

    def _xml(self, run: _Run) -> str:
        """Write a block as the published preprocessing does. Raises ValueError where lxml refuses to build it."""
        page = self.page
        element, lead, _, _ = run
        shell = lxml.html.Element(page.tags[element].name)
        shell.attrib.update(self._elements[element].attrib)
        shell.set("data-uid", str(element))
        shell.text = unescape(page.text(element) if lead is None else lead) or None
        shell.append(lxml.etree.Element("cc-inner"))
        start, stop = element + 1, page.ends[element]
        texts_stop = stop
        if lead is not None:
            start, stop = (run[2], page.ends[run[3]] + 1) if run[2] >= 0 else (0, 0)
            texts_stop = stop - (page.tags[run[3]].name == "br")
            for member in _members(page, run):
                tail = page.tail(member) if page.tags[member].name != "br" else ""
                if not tail.isspace() and is_control(tail):
                    raise ValueError("control characters between elements")
        inner: list[str] = []
        for at in range(start, stop):
            inner.append(self._xml_tag(at))
            if at < texts_stop:
                inner.append(mangled(page.texts[at]))
        xml: str = lxml.etree.tostring(shell, encoding="unicode")
        return xml.replace("<cc-inner/>", "".join(inner))

    def _xml_tag(self, at: int) -> str:
        page = self.page
        kind = page.tags[at].kind
        if kind == GONE:
            return ""
        element = page.ends[at] if kind == END else at
        inside = page.text(element) or next(page.children(element), None) is not None
        if kind == END:
            return f"</{page.tags[at].name}>" if inside else ""
        start = self._starts[at]
        if start[0] == "?":
            return f"<{start}>"
        if moved := page.inside.get(at):
            return f'<{start} data-uid="{at}">{mangled(moved)}</{page.tags[at].name}>'
        return f'<{start} data-uid="{at}"{"" if inside else "/"}>'

    @cached_property
    def _starts(self) -> dict[int, str]:
        """The start tags of the page in XML, without what stands around them."""
        xml = lxml.etree.tostring(self._root, encoding="unicode", with_tail=False)
        tokens = (token.removesuffix("/") for token in cut(xml)[1::2] if token[0] != "/")
        return dict(zip(self._numbers, tokens, strict=True))

    @cached_property
    def _elements(self) -> dict[int, _Element]:
        """The elements of the original tree."""
        return dict(zip(self._numbers, self._root.iter(), strict=True))

    @cached_property
    def _numbers(self) -> list[int]:
        """The numbers of the elements of the original tree; -1 for what is in the head."""
        numbers: list[int] = []
        for number, token in enumerate(self.page.raw[1::2]):
            if token.startswith("head>"):
                inner = cut(f"<{token}>")[3::2]
                numbers += (number, *(-1 for below in inner if below[0] != "/"))
            elif token[0] != "/":
                numbers.append(number)
        return numbers


def _members(page: Markup, run: _Run) -> list[int]:
    _, _, child, last = run
    members: list[int] = []
    while 0 <= child <= last:
        if page.tags[child].kind != GONE:
            members.append(child)
        child = page.ends[child] + 1
    return members


def _is_long(page: Markup, run: _Run) -> bool:
    name = page.tags[run[0]].name
    return name in ("ul", "ol", "dl") and is_long(name, [page.tags[member].name for member in _members(page, run)])


def _element_html(page: Markup, element: int, item: int) -> str | None:
    """Write an element; None if nothing is to be seen in it."""
    end = page.ends[element]
    texts = page.texts[element:end]
    text = "".join(texts)
    is_long = page.is_long(element, end)
    if (page.blind or not text or text.isspace()) and not is_long and not page.shows(element, max(end, element + 1)):
        return None
    if len(text) > CUTOFF or is_long:
        return _cut(cutting.tree(page, element), item)
    return f'{page.opened(element)} _item_id="{item}">{_interleaved(texts, page, element + 1, end + 1)}'


def _run_html(page: Markup, run: _Run, item: int) -> str | None:
    """Write children of an element behind a text; None if nothing is to be seen. The text behind a last `br` is not."""
    owner, lead, first, last = run
    tag, tags, texts = page.tags[owner], page.tags, page.texts
    if first < 0:
        first = stop = texts_stop = 0
    else:
        texts_stop = stop = page.ends[last] + 1
        texts_stop -= tags[last].name == "br"
    texts = [lead or "", *texts[first:texts_stop]]
    text = "".join(texts)
    is_long = page.is_long(first, stop) or (tag.context and _is_long(page, run))
    if (page.blind or not text or text.isspace()) and not (lead or is_long or page.shows(first, texts_stop)):
        return None
    if len(text) > CUTOFF or is_long:
        return _cut(cutting.tree(page, owner, lead, _members(page, run)), item)
    return f'{page.opened(owner)} _item_id="{item}">{_interleaved(texts, page, first, stop)}{tag.closing}'


def _cut(root: cutting.Node, item: int) -> str:
    cutting.cut(root, CUTOFF)
    return cutting.html(root, item)


def _interleaved(texts: list[str], page: Markup, start: int, stop: int) -> str:
    """Put tags between texts, the first text before the first tag."""
    tags = clean_tags(page.tags[start:stop], page.raw[2 * start + 1 : 2 * stop : 2])
    if len(texts) == len(tags) == 1:
        return texts[0] + tags[0]
    pieces = [""] * (len(texts) + len(tags))
    pieces[::2] = texts
    pieces[1::2] = tags
    return "".join(pieces)
