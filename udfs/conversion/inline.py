"""A line of inline content: white space by the rules of CSS, cut into segments of one style."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

Segment = dict[str, Any]
"""See `udfs.conversion.content.SEGMENT`."""


class Style(NamedTuple):
    """What encloses a text: marks, outermost first, and the link."""

    marks: tuple[str, ...] = ()
    href: str | None = None
    title: str | None = None


PLAIN = Style()

_BLANKS = re.compile(r"[ \t\n\r\f\v\x1c-\x1f\x85\xa0\u2028\u2029]+")
_INVISIBLE = re.compile(r"[\xad\u200b\u2060\ufeff\ufff9-\ufffb\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff]")
"""Soft hyphens, zero-width spaces, annotation anchors, controls. Joiners and direction marks carry meaning: kept."""
_WIDE = r"\u2e80-\u3130\u3190-\ua4cf\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U0001b000-\U0001b2ff\U00020000-\U0003fffd"
_WIDE_BREAK = re.compile(rf"(?<=[{_WIDE}])[ \t\r\f]*\n\s*(?=[{_WIDE}])")
_IS_WIDE = re.compile(f"[{_WIDE}]")
_INDENT = re.compile(r"^ +| {2,}")

BREAK: Segment = {"t": "break", "c": "\n"}


def is_wide(character: str) -> bool:
    """Whether a line break beside a character is no blank (CSS Text 3, segment breaks): East Asian, not Hangul."""
    return _IS_WIDE.match(character) is not None


class Line:
    """The inline content of one block while it is read; `take` returns it and begins the next."""

    __slots__ = ("_blank", "_blank_style", "_last", "_parts", "_segments", "_style")

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._segments: list[Segment] = []
        self._parts: list[str] = []
        self._style = PLAIN
        self._blank = ""  # white space seen and not yet written: a blank, or a line break
        self._blank_style = PLAIN
        self._last = ""  # the last character of the line, nothing at its start

    def __bool__(self) -> bool:
        return bool(self._parts or self._segments)

    def text(self, text: str, style: Style) -> None:
        """Add a text node, its white space collapsed with what stands around it."""
        if text.isascii():
            words = " ".join(text.split())
            if not words.isprintable():
                words = _INVISIBLE.sub("", words)
        else:
            text = _INVISIBLE.sub("", text)
            if "\n" in text:
                text = _WIDE_BREAK.sub("", text)
            words = _BLANKS.sub(" ", text).strip(" ")
        if not words:
            if text:
                self._blanks("\n" if "\n" in text else " ", style)
            return
        if text[0] != words[0]:
            before = text[: len(text) - len(text.lstrip())] if words[0] > "\x7f" else ""
            self._blanks("\n" if "\n" in before else " ", style)
        if self._blank == " " or (self._blank and not (self._last and is_wide(self._last) and is_wide(words[0]))):
            self._blank_before(style)
        self._blank = ""
        self._append(words, style)
        if text[-1] != words[-1]:
            after = text[len(text.rstrip()) :] if words[-1] > "\x7f" else ""
            self._blanks("\n" if "\n" in after else " ", style)

    def literal(self, text: str, style: Style) -> None:
        """Add a text whose line breaks and blanks are shown as they are (`white-space: pre`)."""
        text = _INVISIBLE.sub("", text).expandtabs(4)
        for number, line in enumerate(text.split("\n")):
            if number:
                self.line_break()
            line = _INDENT.sub(lambda blanks: "\xa0" * len(blanks[0]), line.rstrip("\r"))
            if line:
                self._blank_before(style)
                self._append(line, style)

    def segment(self, segment: Segment, style: Style) -> None:
        """Add a segment that is no text: a formula, code, an image, a footnote's mark."""
        if self._blank and self._last:
            self._blank_before(style)
        self._blank = ""
        self._close()
        self._segments.append(_styled(segment, style))
        self._last = "x"

    def line_break(self) -> None:
        """Begin a new line within the block."""
        self._blank = self._last = ""
        self._close()
        self._segments.append(BREAK)

    def blank(self) -> None:
        """Separate what follows from what is before, as a blank does."""
        self._blanks(" ", PLAIN)

    def take(self) -> list[Segment]:
        """Return the segments without leading and trailing white space, and begin the next line."""
        self._close()
        segments = self._segments
        self._begin()
        while segments and segments[-1]["t"] == "break":
            segments.pop()
        start = 0
        while start < len(segments) and segments[start]["t"] == "break":
            start += 1
        return segments[start:] if start else segments

    def _blanks(self, kind: str, style: Style) -> None:
        if not self._blank:
            self._blank_style = style
        if self._blank != "\n":
            self._blank = kind

    def _blank_before(self, style: Style) -> None:
        """Write the pending blank: into the text before or after it where that has its style."""
        if not self._blank or not self._last:
            return
        self._blank = ""
        self._append(" ", self._blank_style)

    def _append(self, text: str, style: Style) -> None:
        if style is not self._style and style != self._style:
            self._close()
            self._style = style
        self._parts.append(text)
        self._last = text[-1]

    def _close(self) -> None:
        if self._parts:
            text = "".join(self._parts)
            self._parts = []
            self._segments.append(_styled({"t": "text", "c": text}, self._style))


def _styled(segment: Segment, style: Style) -> Segment:
    if style is not PLAIN:
        if style.marks:
            segment["marks"] = list(style.marks)
        if style.href is not None:
            segment["href"] = style.href
            if style.title:
                segment["link_title"] = style.title
    return segment


def plain(segments: list[Segment]) -> str:
    """The text of segments without any markup; a line break is a blank, an image nothing."""
    return "".join(" " if one["t"] == "break" else one["c"] for one in segments if one["t"] != "image").strip()
