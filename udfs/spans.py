"""Inline Markdown: segments of a text with their marks and links as one string."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from udfs.escaping import Escape, code_span, destination, line_start
from udfs.inline import Segment

Mark = tuple[str, ...]
"""A mark (`("em",)`), or a link with its address and title."""


@dataclass(frozen=True)
class Modes:
    """What Markdown shows of links and pictures.

    A corpus wants what a reader reads: the text of a link without its address, and nothing of a picture, whose `alt`
    no reader sees. `inline` writes both as Markdown does, `alt` writes what stands for a picture as text.
    """

    links: Literal["none", "inline"] = "none"
    images: Literal["none", "alt", "inline"] = "none"


_TAGS = {"sub": ("<sub>", "</sub>"), "sup": ("<sup>", "</sup>")}
_DELIMITERS = {"strong": "**", "em": "*", "del": "~~"}
_PIPE = re.compile(r"(?<!\\)\|")
_WORD = re.compile(r"\w", re.UNICODE)


class _Piece:
    """A part of a line: as Markdown, with the characters at its edges and what encloses it."""

    __slots__ = ("first", "kind", "last", "marks", "raw", "text")

    def __init__(self, kind: str, raw: str, text: str, marks: list[Mark]) -> None:
        self.kind, self.raw, self.text, self.marks = kind, raw, text, marks
        self.first, self.last = (raw[:1], raw[-1:]) if kind == "text" else (text[:1], text[-1:])


def render(segments: list[Segment], modes: Modes, newline: str = "  \n", starts_line: bool = True) -> str:
    """Return segments as inline Markdown. newline: what a line break becomes; no other is in the result."""
    pieces = _pieces(segments, modes)
    texts = [piece.raw for piece in pieces if piece.kind == "text"]
    marked = any(piece.marks for piece in pieces)
    escape = Escape(texts[0] if len(texts) == 1 else "".join(texts), marked, any(one.kind == "math" for one in pieces))
    if marked:
        pieces = _trimmed(pieces)
        _drop_unwritable(pieces)
    out: list[str] = []
    is_start = starts_line
    stack: list[Mark] = []
    for number, piece in enumerate(pieces):
        if stack or piece.marks:
            _change(out, stack, pieces, number)
        if piece.kind == "break":
            out.append(newline)
            is_start = starts_line and newline.endswith("\n")
            continue
        text = piece.text
        if piece.kind == "text":
            before = pieces[number - 1].last if number else ""
            after = pieces[number + 1].first if number + 1 < len(pieces) else ""
            text = escape(piece.raw, before, after, any(mark[0] == "link" for mark in piece.marks))
            if text.endswith("!") and number + 1 < len(pieces) and _opens_link(pieces[number + 1]):
                text = text[:-1] + "\\!"
            if is_start and not piece.marks:
                text = line_start(text)
        out.append(text)
        is_start = False
    while stack:
        out.append(_closing(stack.pop()))
    return "".join(out)


def _opens_link(piece: _Piece) -> bool:
    return any(mark[0] == "link" for mark in piece.marks)


def cell(segments: list[Segment], modes: Modes) -> str:
    """Return the inline content of a cell of a pipe table."""
    text = render(segments, modes, "<br>", starts_line=False)
    return _PIPE.sub(r"\\|", text) if "|" in text else text


def _pieces(segments: list[Segment], modes: Modes) -> list[_Piece]:
    pieces: list[_Piece] = []
    for one in segments:
        marks: list[Mark] = [(mark,) for mark in one.get("marks", ())]
        if modes.links == "inline" and one.get("href"):
            marks.insert(0, ("link", one["href"], one.get("link_title") or ""))
        kind, text = one["t"], one["c"]
        if kind == "text":
            if pieces and pieces[-1].kind == "text" and pieces[-1].marks == marks:
                pieces[-1] = _Piece("text", pieces[-1].raw + text, "", marks)
            else:
                pieces.append(_Piece("text", text, "", marks))
        elif kind == "break":
            pieces.append(_Piece("break", "", "", []))
        elif kind == "image":
            shown = image(one, modes)
            if shown and modes.images == "alt":
                pieces.append(_Piece("text", shown, "", marks))
            elif shown:
                pieces.append(_Piece("image", "", shown, marks))
        else:
            pieces.append(_Piece("math" if kind.startswith("equation") else "other", "", _other(kind, text), marks))
    return pieces


def _other(kind: str, text: str) -> str:
    if kind == "code-inline":
        return code_span(text)
    if kind == "equation-interline":
        return f"$${_one_line(text)}$$"
    if kind == "equation-inline":
        return f"${_one_line(text)}$"
    if kind == "footnote":
        return f"[^{text}]"
    if kind == "footnote-definition":
        return f"[^{text}]: "
    return "---" if kind == "rule" else text


def _one_line(text: str) -> str:
    return " ".join(text.split())


def image(one: Segment, modes: Modes) -> str:
    """Return a picture as its mode says, "" if that shows nothing of it."""
    alt = " ".join(one["c"].split())
    if modes.images == "none":
        return ""
    if modes.images == "alt" or not one.get("url"):
        return alt if modes.images == "alt" else ""
    alt = Escape(alt, True, False)(alt, in_link=True)
    return f"![{alt}]({_target(one['url'], one.get('title') or '')})"


def _target(url: str, title: str) -> str:
    if not title:
        return destination(url)
    title = " ".join(title.split()).replace("\\", "\\\\").replace('"', '\\"')
    return f'{destination(url)} "{title}"'


def _trimmed(pieces: list[_Piece]) -> list[_Piece]:
    """With white space at the edges of marked texts in pieces of its own, and unmarked at the edges of marks."""
    out: list[_Piece] = []
    for piece in pieces:
        if piece.kind != "text" or not piece.marks or not (piece.first.isspace() or piece.last.isspace()):
            out.append(piece)
            continue
        core = piece.raw.strip()
        start = len(piece.raw) - len(piece.raw.lstrip()) if core else len(piece.raw)
        for text in (piece.raw[:start], core, piece.raw[start + len(core) :]):
            if text:
                out.append(_Piece("text", text, "", list(piece.marks)))
    for order in (range(len(out)), range(len(out) - 1, -1, -1)):
        held: list[Mark] = []  # marks that a text has opened
        for index in order:
            piece = out[index]
            if piece.kind == "text" and piece.raw.isspace():
                piece.marks = [mark for mark in piece.marks if mark in held]
            elif piece.kind == "break":
                held = []
            else:
                held = piece.marks
    return out


def _runs(pieces: list[_Piece], mark: Mark) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for index, piece in enumerate(pieces):
        if mark in piece.marks:
            if runs and runs[-1][1] == index:
                runs[-1] = (runs[-1][0], index + 1)
            else:
                runs.append((index, index + 1))
    return runs


def _drop_unwritable(pieces: list[_Piece]) -> None:
    """Remove the marks whose delimiters would not be read as such: the text goes before its emphasis.

    CommonMark 6.2: a delimiter opens if no white space follows it, and no punctuation unless white space or
    punctuation precedes it; the reverse for closing.
    """
    for name in _DELIMITERS:
        mark = (name,)
        for start, end in _runs(pieces, mark):
            first, last = pieces[start], pieces[end - 1]
            before = pieces[start - 1].last if start else ""
            after = pieces[end].first if end < len(pieces) else ""
            link = next((one for one in first.marks if one[0] == "link"), None)
            if link is not None and (start == 0 or link not in pieces[start - 1].marks):
                before = "["
            link = next((one for one in last.marks if one[0] == "link"), None)
            if link is not None and (end == len(pieces) or link not in pieces[end].marks):
                after = "]"
            touches = start and any(
                one[0] in ("em", "strong") and one not in first.marks for one in pieces[start - 1].marks
            )
            opens = _is_punctuation(first.first) <= (not before or before.isspace() or _is_punctuation(before))
            closes = _is_punctuation(last.last) <= (not after or after.isspace() or _is_punctuation(after))
            if not opens or not closes or (touches and name != "del"):
                for piece in pieces[start:end]:
                    piece.marks = [one for one in piece.marks if one != mark]


def _is_punctuation(character: str) -> bool:
    return bool(character) and not character.isspace() and _WORD.match(character) is None or character == "_"


def _change(out: list[str], stack: list[Mark], pieces: list[_Piece], number: int) -> None:
    """Close the marks that the next piece does not have and open those it has: what lasts longest the outermost."""
    wanted = pieces[number].marks
    keep = 0
    while keep < len(stack) and stack[keep] in wanted:
        keep += 1
    while len(stack) > keep:
        out.append(_closing(stack.pop()))
    new = [mark for mark in wanted if mark not in stack]
    if len(new) > 1:
        new.sort(key=lambda mark: -_length(pieces, number, mark))
    for mark in new:
        stack.append(mark)
        out.append(_opening(mark))


def _length(pieces: list[_Piece], number: int, mark: Mark) -> int:
    end = number
    while end < len(pieces) and mark in pieces[end].marks:
        end += 1
    return end - number


def _opening(mark: Mark) -> str:
    if mark[0] == "link":
        return "["
    return _DELIMITERS.get(mark[0]) or _TAGS[mark[0]][0]


def _closing(mark: Mark) -> str:
    if mark[0] == "link":
        return f"]({_target(mark[1], mark[2])})"
    return _DELIMITERS.get(mark[0]) or _TAGS[mark[0]][1]
