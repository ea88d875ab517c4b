"""Truth: what of a page is main content, by people: JSON lines of text, of snippets, or as WebMainBench has them."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import fsspec
import pyarrow as pa
from lxml.html import HtmlElement

from templates import storage
from templates.dom import PageError, parse, visible_text
from udfs.hosts import host

Row = dict[str, Any]

SCHEMA = pa.schema(
    [
        ("url", pa.string()),
        ("id", pa.string()),
        ("set", pa.string()),
        ("site", pa.string()),
        ("lang", pa.string()),
        ("page_type", pa.string()),
        ("split", pa.string()),
        ("level", pa.string()),
        ("gold_text", pa.string()),
        ("must_contain", pa.list_(pa.string())),
        ("must_not_contain", pa.list_(pa.string())),
        ("problem", pa.string()),
        ("place", pa.string()),
    ]
)
"""One row a page. problem: why it is no ground truth (`damaged`, `without`); place: which line is meant, and why."""

WEBMAINBENCH = "webmainbench"
"""The set of pages in that benchmark's format, where they name no other."""

_SELECTED = 'cc-select="true"'
_LINK = re.compile(r"!?\[([^\]]*)\]\([^()\s]*(?:\s[^()]*)?\)")


@dataclass(frozen=True)
class Place:
    """A file of truth, and what its surroundings say of its pages; None where they say nothing.

    A file `pages.jsonl` of a folder is a site, named as the folder: `site.json` there has its `language`,
    `splits.json` above it the split of each site. Any other file is a set of its name.
    """

    path: str
    set: str
    site: str | None = None
    split: str | None = None
    lang: str | None = None


def place(path: str) -> Place:
    """Look at a file's surroundings."""
    folder, _, name = path.rpartition("/")
    if not name.startswith("pages."):
        return Place(path, name.split(".")[0])
    above, _, site = folder.rpartition("/")
    about = storage.read_json(storage.join(folder, "site.json")) or {}
    splits = storage.read_json(storage.join(above, "splits.json")) or {}
    return Place(path, above.rpartition("/")[2], site, splits.get(site), about.get("language"))


def read(where: Place) -> Iterator[Row]:
    """Yield a row for every line of a file that is not blank; what is no ground truth has a `problem`."""
    with fsspec.open(where.path, "rb") as stream:
        lines: Iterable[bytes] = gzip.GzipFile(fileobj=stream) if where.path.endswith(".gz") else stream
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield truth(line, where, f"{where.path}, line {number}")


def truth(line: bytes, where: Place, name: str) -> Row:
    """Return the row of a line. WebMainBench's fields are used where there are neither gold_text nor snippets."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {"problem": "damaged", "place": f"{name} is not JSON"}
    if not isinstance(found, dict):
        return {"problem": "damaged", "place": f"{name} is not a JSON object"}
    identifier = found.get("id") or found.get("track_id")
    url = found.get("url") or identifier
    if not url:
        return {"problem": "damaged", "place": f"{name} has neither url nor id"}
    given = found.get("meta")
    meta: Row = given if isinstance(given, dict) else {}
    snippets = {name: _texts(found.get(name)) for name in ("must_contain", "must_not_contain")}
    gold, benchmark = _string(found.get("gold_text")), False
    if gold is None and not any(snippets.values()):
        gold = webmainbench_text(found)
        benchmark = gold is not None
    level = _string(meta.get("level"))
    row = snippets | {
        "url": str(url),
        "id": None if identifier is None else str(identifier),
        "set": _string(found.get("set")) or (WEBMAINBENCH if benchmark else where.set),
        "site": _string(found.get("site")) or where.site or host(str(url)),
        "lang": _string(found.get("lang")) or _string(meta.get("language")) or where.lang,
        "page_type": _string(found.get("page_type")) or _string(meta.get("style")),
        "split": _string(found.get("split")) or where.split,
        "level": level and level.lower(),
        "gold_text": gold,
    }
    if gold is None and not any(snippets.values()):
        row |= {"problem": "without", "place": f"{name}; its fields are {', '.join(sorted(found))}"}
    return row


def webmainbench_text(found: Row) -> str | None:
    """Return the main text of a page of WebMainBench, or None where none of its fields tells it.

    Of `main_html`, which the benchmark's own ROUGE is taken of; else of what `html` marks; else of the Markdown in
    `groundtruth_content` or `convert_main_content`, links without their addresses.
    """
    if isinstance(found.get("main_html"), str):
        return _text(found["main_html"])
    if _SELECTED in (_string(found.get("html")) or ""):
        return selected_text(found["html"])
    for field in ("groundtruth_content", "convert_main_content"):
        if isinstance(found.get(field), str):
            return _LINK.sub(r"\1", found[field])
    return None


def selected_text(html: str) -> str:
    """Return the text of elements with cc-select="true" and of what is below them; nothing that is not displayed."""
    try:
        stack = [parse(html)]
    except PageError:
        return ""
    pieces = []
    while stack:
        element: HtmlElement = stack.pop()
        if "display:none" in (element.get("style") or "").replace(" ", ""):
            continue
        if element.get("cc-select") == "true":
            pieces.append(visible_text(element))
        else:
            stack += reversed(element)
    return "\n".join(pieces)


def _text(html: str) -> str:
    try:
        return visible_text(parse(html))
    except PageError:
        return ""


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _texts(value: Any) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
