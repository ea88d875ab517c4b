"""Paragraphs: what the inline content of a block amounts to, as items of the content list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from udfs.conversion import math
from udfs.conversion.inline import BREAK, Segment, plain

Item = dict[str, Any]


def equation(found: math.Formula) -> Item:
    """Return the content of an equation."""
    return {"math_content": found.latex, "math_type": "latex", "by": found.source}


def title(segments: list[Segment], level: int) -> Item:
    """Return the content of a title."""
    return {"title_content": plain(segments), "level": level, "segments": segments}


def heading(segments: list[Segment]) -> list[Segment]:
    """Return the inline content of a heading, on one line."""
    out: list[Segment] = []
    for one in segments:
        if one["t"] == "break":
            one = {"t": "text", "c": " "}
        out.extend(_split(one) if one["t"] == "text" else (one,))
    for one in out:
        if one["t"] == "equation-interline":
            one["t"] = "equation-inline"
    return [] if all(one["t"] == "text" and not one["c"].strip() for one in out) else out


def units(segments: list[Segment]) -> Iterator[tuple[str, Item]]:
    """Cut the inline content of a block into paragraphs, equations and pictures, each with its content.

    Two line breaks end a paragraph; so does an equation that stands on a line of its own.
    """
    if any(one["t"] == "text" and ("$" in one["c"] or "\\" in one["c"]) for one in segments):
        segments = [part for one in _joined(segments) for part in _split(one)]
    group: list[Segment] = []
    for number, one in enumerate(segments):
        if one["t"] == "equation-interline":
            yield from _unit(group)
            yield one["t"], one["equation"]
            group = []
        elif one["t"] == "break" and number + 1 < len(segments) and segments[number + 1]["t"] == "break":
            yield from _unit(group)
            group = []
        else:
            group.append(one)
    yield from _unit(group)


def _unit(group: list[Segment]) -> Iterator[tuple[str, Item]]:
    group = _trimmed(group)
    if not group:
        return
    if len(group) == 1 and group[0]["t"] == "text":
        yield "paragraph", {"segments": group}
        return
    kinds = {one["t"] for one in group if one["t"] != "text" or one["c"].strip()}
    if kinds == {"image"} and len(group) == 1:
        one = group[0]
        content = {"url": one["url"], "alt": one["c"], "title": one.get("title"), "href": one.get("href")}
        yield "image", {name: value for name, value in content.items() if value}
    elif kinds == {"equation-inline"} and len(group) == 1:
        yield "equation-inline", {"math_content": group[0]["c"], "math_type": "latex"}
    else:
        yield "paragraph", {"segments": group}


def _trimmed(group: list[Segment]) -> list[Segment]:
    """Without breaks and white space at both ends."""
    start, end = 0, len(group)
    while start < end and _is_blank(group[start]):
        start += 1
    while end > start and _is_blank(group[end - 1]):
        end -= 1
    group = group[start:end]
    if group and group[0]["t"] == "text" and group[0]["c"][0] in " \n\u3000":
        group[0] = group[0] | {"c": group[0]["c"].lstrip(" \n\u3000")}
    if group and group[-1]["t"] == "text" and group[-1]["c"][-1] in " \n\u3000":
        group[-1] = group[-1] | {"c": group[-1]["c"].rstrip(" \n\u3000")}
    return group


def _is_blank(one: Segment) -> bool:
    return one["t"] == "break" or (one["t"] == "text" and not one["c"].strip())


def _style(one: Segment) -> tuple[Any, Any]:
    return one.get("marks"), one.get("href")


def _joined(segments: list[Segment]) -> list[Segment]:
    """With texts of one style joined over the line breaks between them: a formula may go over several lines."""
    out: list[Segment] = []
    texts: list[str] = []  # of the run that is being joined: the texts, with a line break for each break
    style: Any = None

    def close() -> None:
        breaks = 0
        while texts and texts[-1] == "\n":
            texts.pop()
            breaks += 1
        if texts:
            out.append(first | {"c": "".join(texts)})
        out.extend([BREAK] * breaks)
        texts.clear()

    first: Segment = {}
    for one in segments:
        if one["t"] == "text" and (not texts or _style(one) != style):
            close()
            first, style = one, _style(one)
            texts.append(one["c"])
        elif one["t"] == "text" or (one["t"] == "break" and texts):
            texts.append(one["c"])
        else:
            close()
            out.append(one)
    close()
    return out


def _split(one: Segment) -> list[Segment]:
    """Find the formulas that a text holds; line breaks in its other parts are breaks again."""
    if one["t"] != "text":
        return [one]
    text = one["c"]
    parts: list[str | math.Formula] = [text]
    if "$" in text or "\\" in text:
        parts = list(math.split(text))
    out: list[Segment] = []
    for part in parts:
        if isinstance(part, str):
            for number, line in enumerate(part.split("\n")):
                if number:
                    out.append(BREAK)
                if line:
                    out.append(one | {"c": line})
        elif part.display:
            out.append({"t": "equation-interline", "c": part.latex, "equation": equation(part)})
        else:
            out.append(one | {"t": "equation-inline", "c": part.latex})
    return out


def _has_images(item: Item) -> bool:
    return any(one["t"] == "image" for one in item["content"]["segments"])


def attach_captions(sink: list[Item], start: int, place: str) -> None:
    """Give the picture or table of a figure its caption and footnotes: the paragraphs beside it, in place.

    A figure of several pictures gives them to the last; any other figure keeps its paragraphs.
    """
    held = sink[start:]
    owners = [item for item in held if item["type"] in ("image", "simple_table", "complex_table", "video", "audio")]
    texts = [item for item in held if item["type"] == "paragraph" and not _has_images(item)]
    if not owners or not texts or len(owners) + len(texts) != len(held):
        return
    texts.sort(key=lambda item: "/figcaption[" not in item["xpath"])
    content = owners[-1]["content"]
    captions = [item["content"]["segments"] for item in texts if "/figcaption[" in item["xpath"]]
    others = [item["content"]["segments"] for item in texts if "/figcaption[" not in item["xpath"]]
    if not captions:
        captions, others = others, []
    content["caption"] = [*content.get("caption", []), *captions]
    if others:
        content["footnote"] = others
    sink[start:] = owners
