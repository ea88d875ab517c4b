"""Lists in the flow of a page: one item with those in it, an entry for each element of each."""

from __future__ import annotations

import re

from lxml.html import HtmlElement

from udfs.conversion.flow import Entered, Flow, Item, OpenList

_INTEGER = re.compile(r"\s*([+-]?\d{1,9})\s*\Z")
LISTS = {"ul": "unordered", "menu": "unordered", "dir": "unordered", "ol": "ordered", "dl": "definition"}
ENTRIES = {"li": "item", "dt": "term", "dd": "description"}


def begin_list(flow: Flow, element: HtmlElement, tag: str, place: str) -> Entered:
    """Begin a `ul`, `ol` or `dl`."""
    flow.flush()
    open_list(flow, element, tag, place)
    return False, lambda: close_list(flow)


def open_list(flow: Flow, element: HtmlElement, tag: str, place: str) -> None:
    """Begin a list: an item of its own, or a deeper level of the one that is open."""
    attribute = LISTS.get(tag, "unordered")
    number, step = 1, 1
    if tag == "ol":
        start = _INTEGER.match(element.get("start") or "")
        if element.get("reversed") is not None:
            step = -1
            number = sum(child.tag == "li" for child in element)
        number = int(start[1]) if start and int(start[1]) >= 0 else number  # Markdown has no other
    if flow.lists:
        top = flow.lists[-1]
        flow.lists.append(OpenList(top.entries, top.level + 1, attribute, number, step))
        return
    last = flow.items[-1] if flow.items else None
    if tag == "" and last is not None and last["type"] == "list" and last["xpath"] == place:
        entries = last["content"]["items"]  # entries without a list, one after the other
    else:
        entries = []
        flow.put("list", {"list_attribute": attribute, "list_nest_level": 1, "items": entries}, place)
    flow.lists.append(OpenList(entries, 0, attribute, number, step))


def close_list(flow: Flow) -> None:
    """End a list; what follows in the entry around it is a continuation of that."""
    flow.flush()
    closed = flow.lists.pop()
    if flow.lists:
        if closed.entries and closed.entries[-1] is not flow.lists[-1].entry:
            flow.lists[-1].entry = None
        return
    entries = closed.entries
    entries[:] = [entry for entry in entries if entry["blocks"] or entry.get("head")]
    if not entries:
        flow.items.pop()
        return
    flow.items[-1]["content"]["list_nest_level"] = 1 + max(entry["level"] for entry in entries)


def begin_entry(flow: Flow, element: HtmlElement, tag: str, place: str) -> Entered:
    """Begin an `li`, `dt` or `dd`; one that is in no list begins a list with those beside it."""
    flow.flush()
    implicit = not flow.lists
    if implicit:
        open_list(flow, element, "", place.rpartition("/")[0])
    before, flow.block = flow.block, place
    top = flow.lists[-1]
    kind = ENTRIES[tag]
    entry: Item = {"level": top.level, "attribute": kind if kind != "item" else "unordered", "blocks": []}
    if kind == "item" and top.attribute == "ordered":
        value = _INTEGER.match(element.get("value") or "")
        top.number = int(value[1]) if value and int(value[1]) >= 0 else top.number
        entry |= {"attribute": "ordered", "number": top.number}
        top.number += top.step
    label = flow.context.notes.definition(element) if flow.context.notes else None
    if label is not None:
        entry |= {"attribute": "footnote", "label": label}
    if flow.quotes and top.level:
        entry["quotes"] = list(flow.quotes)
    quotes, flow.quotes = flow.quotes, []
    if len(flow.lists) > 1 and flow.lists[-2].entry is not None and not flow.lists[-2].entry["blocks"]:
        flow.lists[-2].entry["head"] = True  # "- - text": its marker stands before that of this one
    top.entry = entry
    top.entries.append(entry)

    def leave() -> None:
        flow.flush()
        flow.block, flow.quotes, top.entry = before, quotes, None
        if implicit:
            close_list(flow)

    return False, leave
