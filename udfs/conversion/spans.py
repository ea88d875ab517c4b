"""Inline Markdown: segments of a text with their marks and links as one string."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Literal

from udfs.conversion.escaping import Escape, code_span, destination, line_start
from udfs.conversion.inline import Segment

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
    if len(segments) == 1 and segments[0]["t"] == "text" and len(segments[0]) == 2:  # most blocks: no marks, no link
        text = segments[0]["c"]
        text = Escape(text, False, False)(text)
        return line_start(text) if starts_line else text
    pieces = _pieces(segments, modes)
    texts = [piece.raw for piece in pieces if piece.kind == "text"]
    marked = any(piece.marks for piece in pieces)
    escape = Escape(texts[0] if len(texts) == 1 else "".join(texts), marked, any(one.kind == "math" for one in pieces))
    if marked:
        pieces = _trimmed(pieces)
        _drop_unwritable(pieces)
        _drop_ambiguous(pieces)
    pieces = _merged(pieces)
    ends = {(mark, start): end for mark, runs in _runs(pieces).items() for start, end in runs} if marked else {}
    out: list[str] = []
    is_start = starts_line
    stack: list[Mark] = []
    for number, piece in enumerate(pieces):
        if stack or piece.marks:
            _change(out, stack, piece.marks, ends, number)
        if piece.kind == "break":
            out.append(newline)
            is_start = starts_line and newline.endswith("\n")
            continue
        text = piece.text
        if piece.kind == "text":
            before, after = _beside(pieces, number, -1), _beside(pieces, number, 1)
            text = escape(piece.raw, before, after, any(mark[0] == "link" for mark in piece.marks))
            if text.endswith("!") and number + 1 < len(pieces) and _opens_link(pieces[number + 1]):
                text = text[:-1] + "\\!"
            if is_start and (not out or out[-1] == newline):
                text = line_start(text)
        out.append(text)
        is_start = False
    while stack:
        out.append(_closing(stack.pop()))
    return "".join(out)


def _beside(pieces: list[_Piece], number: int, step: int) -> str:
    """The character that a text stands beside: a delimiter where marks begin or end, none at the edge of the block."""
    beside = pieces[number + step] if 0 <= number + step < len(pieces) else None
    if (beside.marks if beside is not None else []) != pieces[number].marks:
        return "*"
    return "" if beside is None else beside.last if step < 0 else beside.first


def _opens_link(piece: _Piece) -> bool:
    return any(mark[0] == "link" for mark in piece.marks)


def cell(segments: list[Segment], modes: Modes) -> str:
    """Return the inline content of a cell of a pipe table."""
    text = render(segments, modes, "<br>", starts_line=False)
    return _PIPE.sub(r"\\|", text) if "|" in text else text


def _pieces(segments: list[Segment], modes: Modes) -> list[_Piece]:
    pieces: list[_Piece] = []
    dropped = False
    for one in segments:
        marks: list[Mark] = [(mark,) for mark in one.get("marks", ())]
        if modes.links == "inline" and one.get("href"):
            marks.insert(0, ("link", one["href"], one.get("link_title") or ""))
        kind, text = one["t"], one["c"]
        if kind == "text":
            if dropped and text.startswith(" ") and (not pieces or pieces[-1].last in ("", " ")):
                text = text[1:]  # of two blanks around a picture that is not shown
            dropped = False
            if not text:
                continue
            pieces.append(_Piece("text", text, "", marks))
        elif kind == "code-inline":
            pieces.append(_Piece("code", text, code_span(text), marks))
        elif kind == "break":
            pieces.append(_Piece("break", "", "", []))
        elif kind == "image":
            shown = image(one, modes)
            if shown and modes.images == "alt":
                pieces.append(_Piece("text", shown, "", marks))
            elif shown:
                pieces.append(_Piece("image", "", shown, marks))
            else:
                dropped = True
        else:
            pieces.append(_Piece("math" if kind.startswith("equation") else "other", "", _other(kind, text), marks))
    while dropped and pieces and pieces[-1].kind == "break":
        pieces.pop()  # it only parted the text from a picture that is not shown
    if dropped and pieces and pieces[-1].kind == "text" and pieces[-1].last == " ":
        pieces[-1] = _Piece("text", pieces[-1].raw[:-1], "", pieces[-1].marks)
    return pieces


def _other(kind: str, text: str) -> str:
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
                piece.marks = [one for one in held if one[0] != "link" and (order.step > 0 or one in piece.marks)]
            else:
                held = piece.marks
    return out


def _merged(pieces: list[_Piece]) -> list[_Piece]:
    """With texts side by side that have the same marks as one."""
    out: list[_Piece] = []
    for piece in pieces:
        if out and piece.kind in ("text", "code") and piece.kind == out[-1].kind and piece.marks == out[-1].marks:
            raw = out.pop().raw + piece.raw  # code spans side by side would be read as one, with other delimiters
            piece = _Piece(piece.kind, raw, code_span(raw) if piece.kind == "code" else "", piece.marks)
        out.append(piece)
    return out


Runs = dict[Mark, list[tuple[int, int]]]


def _runs(pieces: list[_Piece]) -> Runs:
    """Of each mark the ranges of pieces that have it, in order."""
    runs: Runs = {}
    for index, piece in enumerate(pieces):
        for mark in piece.marks:
            found = runs.setdefault(mark, [])
            if found and found[-1][1] == index:
                found[-1] = (found[-1][0], index + 1)
            else:
                found.append((index, index + 1))
    return runs


def _drop_unwritable(pieces: list[_Piece]) -> None:
    """Remove the marks whose delimiters would not be read as such: the text goes before its emphasis.

    CommonMark 6.2: a delimiter opens if no white space follows it, and no punctuation unless white space or
    punctuation precedes it; the reverse for closing.
    """
    runs = _runs(pieces)
    for name in _DELIMITERS:
        mark = (name,)
        for start, end in runs.get(mark, ()):
            first, last = pieces[start], pieces[end - 1]
            before = pieces[start - 1].last if start else ""
            after = pieces[end].first if end < len(pieces) else ""
            inner_opens = _is_punctuation(first.first) or _begins(pieces, start, -1, name)
            inner_closes = _is_punctuation(last.last) or _begins(pieces, end - 1, 1, name)
            for link_start, link_end in _links(runs, first, last, start, end):
                if link_start == start and link_end >= end:
                    before = "["
                elif link_start == start:
                    inner_opens = True
                if link_end == end and link_start <= start:
                    after = "]"
                elif link_end == end:
                    inner_closes = True
            opens = not inner_opens or not before or before.isspace() or _is_punctuation(before)
            closes = not inner_closes or not after or after.isspace() or _is_punctuation(after)
            if not opens or not closes:
                for piece in pieces[start:end]:
                    piece.marks = [one for one in piece.marks if one != mark]


_STARS = ("em", "strong")


def _drop_ambiguous(pieces: list[_Piece]) -> None:
    """Remove what has two readings: marks that cross others, `em` that meets `strong` in a word (`***a*b**`)."""
    for name in ("del", "em", "strong"):
        runs = _runs(pieces)
        if len(runs) < 2:
            return
        mark = (name,)
        for start, end in list(runs.get(mark, ())):
            beside = [
                one
                for other in {*pieces[start].marks, *pieces[end - 1].marks}
                for one in _around(runs, other, start, end)
            ]
            if name == "em":
                touching = [run for at in (start, end) for run in _around(runs, ("strong",), at - 1, at + 1)]
            else:
                touching = []
            if any(one[0] < start < one[1] < end or start < one[0] < end < one[1] for one in beside) or any(
                _meets(pieces, (start, end), one) for one in touching
            ):
                _remove(pieces, start, end, mark)


_LAST = 1 << 60


def _around(runs: Runs, mark: Mark, start: int, end: int) -> list[tuple[int, int]]:
    """The runs of a mark that hold the piece at a start or the one before an end."""
    found = runs.get(mark, [])
    places = {bisect_right(found, (at, _LAST)) - 1 for at in (start, end - 1)}
    return [found[place] for place in places if place >= 0 and found[place][1] > start]


def _meets(pieces: list[_Piece], one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two runs share an end, and one of the ends of both is within a word."""
    if one == other or not set(one) & set(other):
        return False
    ends = {*one, *other}
    return any(0 < i < len(pieces) and _is_shown(pieces[i - 1].last) and _is_shown(pieces[i].first) for i in ends)


def _links(runs: Runs, first: _Piece, last: _Piece, start: int, end: int) -> list[tuple[int, int]]:
    links = {mark for piece in (first, last) for mark in piece.marks if mark[0] == "link"}
    return [run for link in links for run in _around(runs, link, start, end)]


def _remove(pieces: list[_Piece], start: int, end: int, mark: Mark) -> None:
    for piece in pieces[start:end]:
        piece.marks = [one for one in piece.marks if one != mark]


def _is_shown(character: str) -> bool:
    return bool(character) and not character.isspace()


def _begins(pieces: list[_Piece], number: int, step: int, name: str) -> bool:
    """Whether a mark with another delimiter begins (step -1) or ends (1) at a piece: punctuation stands beside this."""
    beside = pieces[number + step].marks if 0 <= number + step < len(pieces) else []
    same = _STARS if name in _STARS else (name,)
    return any(mark[0] not in same and mark[0] != "link" and mark not in beside for mark in pieces[number].marks)


def _is_punctuation(character: str) -> bool:
    return (bool(character) and not character.isspace() and _WORD.match(character) is None) or character == "_"


def _change(
    out: list[str], stack: list[Mark], wanted: list[Mark], ends: dict[tuple[Mark, int], int], number: int
) -> None:
    """Close the marks that the next piece does not have and open those it has: what lasts longest the outermost."""
    keep = 0
    while keep < len(stack) and stack[keep] in wanted:
        keep += 1
    while len(stack) > keep:
        out.append(_closing(stack.pop()))
    new = [mark for mark in wanted if mark not in stack]
    if len(new) > 1:
        new.sort(key=lambda mark: -ends.get((mark, number), 0))
    for mark in new:
        stack.append(mark)
        out.append(_opening(mark))


def _opening(mark: Mark) -> str:
    if mark[0] == "link":
        return "["
    return _DELIMITERS.get(mark[0]) or _TAGS[mark[0]][0]


def _closing(mark: Mark) -> str:
    if mark[0] == "link":
        return f"]({_target(mark[1], mark[2])})"
    return _DELIMITERS.get(mark[0]) or _TAGS[mark[0]][1]
