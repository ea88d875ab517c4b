"""Markdown (CommonMark with GFM tables, footnotes and TeX formulas) from a content list alone."""

from __future__ import annotations

import re
from typing import Any

from udfs.conversion.escaping import code_block
from udfs.conversion.inline import Segment
from udfs.conversion.spans import Modes, cell, image, render

Item = dict[str, Any]

_LINK_TAG = re.compile(r"</?a\b[^>]*>")
_IMAGE_TAG = re.compile(r'<img src="[^"]*" alt="([^"]*)">')
_BLANK_LINES = re.compile(r"\n\s*\n")
_DELIMITER = re.compile(r"[*_~]")
_DEFINITION = ("term", "description")
_CLOSING_HASHES = re.compile(r"(?<![^\s])(#+)$")


def markdown(items: list[Item], modes: Modes = Modes()) -> str:  # noqa: B008 - frozen
    """Return a content list as Markdown, ending with one line break unless it is empty."""
    text = _blocks(items, modes)
    return text + "\n" if text else ""


def _blocks(items: list[Item], modes: Modes) -> str:
    """Blocks with a blank line between them; block quotes that enclose two of them enclose that line."""
    out: list[str] = []
    before: list[str] = []
    star = False
    was_list = ""
    for item in items:
        text = block(item, modes)
        if not text:
            continue
        quotes = item.get("quotes") or []
        kind = item["content"]["list_attribute"] if item["type"] == "list" else ""
        star = not star if kind and kind == was_list and quotes == before else False
        if star:
            text = _list(item["content"]["items"], modes, star)
        was_list = kind
        if out:
            common = 0
            while common < min(len(before), len(quotes)) and before[common] == quotes[common]:
                common += 1
            out.append("\n" + ("> " * common).rstrip() + "\n")
        out.append(_prefixed(text, "> " * len(quotes)) if quotes else text)
        before = quotes
    return "".join(out)


def _prefixed(text: str, prefix: str) -> str:
    bare = prefix.rstrip()
    return "\n".join(prefix + line if line else bare for line in text.split("\n"))


def block(item: Item, modes: Modes) -> str:
    """Return one item as Markdown without the quotes around it."""
    kind, content = item["type"], item["content"]
    if kind == "paragraph":
        return render(content["segments"], modes)
    if kind == "title":
        text = render(content["segments"], modes, " ", starts_line=False)
        return f"{'#' * content['level']} {_CLOSING_HASHES.sub(_escaped, text)}" if text else ""
    if kind == "list":
        return _list(content["items"], modes, False)
    if kind == "code":
        return code_block(content["code_content"], content.get("language") or "")
    if kind == "equation-interline":
        return f"$$\n{_BLANK_LINES.sub(chr(10), content['math_content'].strip())}\n$$"
    if kind == "equation-inline":
        return f"${' '.join(content['math_content'].split())}$"
    if kind == "simple_table":
        return _with_captions(_pipes(content, modes), content, modes)
    if kind == "complex_table":
        return _with_captions(_html(content["html"], modes), content, modes)
    return _with_captions(_picture(kind, content, modes), content, modes)


def _escaped(match: re.Match[str]) -> str:
    return "\\" + match[0]


def _with_captions(text: str, content: Item, modes: Modes) -> str:
    parts = [render(one, modes) for name in ("caption", "footnote") for one in content.get(name) or ()]
    parts.insert(0 if "html" in content else len(parts), "")
    order = [*parts, text] if "html" in content and not content.get("footnote") else [text, *parts]
    return "\n\n".join(part for part in order if part)


def _picture(kind: str, content: Item, modes: Modes) -> str:
    one: Segment = {
        "t": "image", "c": content.get("alt") or "", "url": content.get("url"), "title": content.get("title"),
    }  # fmt: skip
    if kind != "image":
        label = content.get("alt") or content.get("title") or content.get("url") or ""
        link: Segment = {"t": "text", "c": label, "href": content.get("url")}
        return render([link], Modes("inline")) if modes.images == "inline" else ""
    shown = image(one, modes)
    if modes.images == "alt":
        return render([{"t": "text", "c": shown}], modes) if shown else ""
    if shown and content.get("href") and modes.links == "inline":
        return render([one | {"href": content["href"]}], modes)
    return shown


# --- tables


def _pipes(content: Item, modes: Modes) -> str:
    """A pipe table. It has no form without a header: where a table has none, its first row takes the place."""
    rows = [[cell(one, modes) for one in row] for row in content["rows"]]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    marks = {"left": ":---", "right": "---:", "center": ":---:"}
    align = content.get("align") or [""] * len(rows[0])
    lines.insert(1, "| " + " | ".join(marks.get(one, "---") for one in align) + " |")
    return "\n".join(lines)


def _html(html: str, modes: Modes) -> str:
    if modes.links == "none":
        html = _LINK_TAG.sub("", html)
    if modes.images != "inline":
        html = _IMAGE_TAG.sub(r"\1" if modes.images == "alt" else "", html)
    return html


# --- lists


def _list(entries: list[Item], modes: Modes, star: bool) -> str:
    """A list with those in it: deeper levels are indented to the text of the entry above."""
    out: list[str] = []
    indents: list[str] = []  # of each level that is open: what its lines begin with
    head = ""  # markers of entries that hold nothing but a list, before that of its first entry
    previous: Item | None = None
    for entry in entries:
        text = _blocks(entry["blocks"], modes)
        level = min(entry["level"], len(indents))
        prefix = (indents[level - 1] if level else "") + "> " * len(entry.get("quotes") or ())
        if entry["attribute"] == "continuation":  # as deep as the entry before it
            marker = indents[level][len(prefix) :] if level < len(indents) else ""
        else:
            marker = _marker(entry, star)
        if entry.get("checked") is not None:
            text = ("[x] " if entry["checked"] else "[ ] ") + text
        if not text and not entry.get("head"):
            continue
        indents[level:] = [prefix + " " * (4 if entry["attribute"] == "footnote" else len(marker))]
        if not text:
            head = (head or prefix) + marker
            continue
        if out:
            # Term and description are one paragraph to most readers: no delimiter of one may meet another's.
            is_paired = entry["attribute"] in _DEFINITION and _DELIMITER.search(text) is not None
            out.append("\n\n" if is_paired else _between(previous, entry))
        out.append((head or prefix) + marker + _prefixed(text, indents[level])[len(indents[level]) :])
        head, previous = "", entry
    return "".join(out)


def _marker(entry: Item, star: bool) -> str:
    kind = entry["attribute"]
    if kind == "ordered":
        return f"{max(entry['number'], 0)}{')' if star else '.'} "
    if kind == "footnote":
        return f"[^{entry['label']}]: "
    if kind == "description" and _is_block(entry):
        return ""  # to most readers a colon begins a paragraph, in which no block would be read
    return {"term": "", "description": ": "}.get(kind, "* " if star else "- ")


def _is_block(entry: Item) -> bool:
    first = entry["blocks"][0] if entry["blocks"] else None
    if first is None:
        return True
    if first["type"] == "paragraph" and first["content"]["segments"][0]["t"] == "rule":
        return True
    return bool(first.get("quotes")) or first["type"] not in ("paragraph", "equation-inline", "image")


def _between(previous: Item | None, entry: Item) -> str:
    """What separates two entries: a line break, with a blank line where one of them has several blocks."""
    if previous is None:
        return "\n"
    kind, before = entry["attribute"], previous["attribute"]
    if kind == "term" and before == "term":
        return "  \n"
    several = len(previous["blocks"]) > 1 or (len(entry["blocks"]) > 1 and kind != "description")
    deeper = entry["level"] > previous["level"]
    if several and not (deeper and len(previous["blocks"]) == 1 and len(entry["blocks"]) == 1):
        return "\n\n"
    if (kind in _DEFINITION) != (before in _DEFINITION) and entry["level"] <= previous["level"]:
        return "\n\n"
    if (
        kind in ("continuation", "term", "footnote")
        or (kind == "description" and _is_block(entry))
        or (kind == "ordered" and deeper and entry["number"] != 1)
    ):
        return "\n\n"
    if previous["blocks"] and previous["blocks"][-1]["type"] not in ("paragraph", "title", "equation-inline"):
        return "\n\n"
    return "\n"
