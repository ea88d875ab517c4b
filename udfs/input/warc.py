"""WARC and ARC files as they really are: records with their addresses, whatever is damaged around them.

The framing is our own. A page must be found again by its address and a file be read past its damages, and a
reader that hides the gzip members can do neither: it ends quietly at a cut, and takes two records for one at
a wrong length.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from udfs.input.members import LINE, Reader, open_reader

_HEADER = 1 << 16  # longest record header; real ones have under 2 kB
_WARC_LINE = rb"WARC/\d\.\d+[ \t]*\r*\n"
_ARC_LINE = rb"[A-Za-z][A-Za-z0-9+.\-]*:[^\r\n]* \d{12,18} [^\r\n]*?\d+[ \t]*\r*\n"
_ARC_FIELDS = re.compile(rb"(?P<url>.*?)(?: \S+)? (?P<date>\d{12,18}) (?P<type>\S*)(?: .*?)?\b(?P<length>\d+)\s*$")
_BEGIN = re.compile(rb"\s*(?:%s|%s)" % (_WARC_LINE, _ARC_LINE))
_BLANK = re.compile(rb"\s*")
_TAIL = re.compile(rb"(?:\r?\n){1,2}\Z")  # what stands between a block and the next record


@dataclass(frozen=True)
class Record:
    """One record.

    offset: the byte in the file at which the record, or the gzip member that begins with it, begins. A record
    further inside a member has minus its place in the decompressed file (to find it again, the file is read
    from its start). kind: WARC-Type; "response" for ARC. headers: names in lower case. block: its bytes, at
    most as many as the limit; oversize: it has more.
    """

    offset: int
    kind: str
    headers: dict[str, str]
    block: bytes
    oversize: bool


def records(file: BinaryIO, offset: int = 0, *, limit: int, skipped: Counter[str]) -> Iterator[Record]:
    """The records of a seekable WARC or ARC file, gzip or plain, from the address of one, in file order.

    What can't be read is counted in `skipped`: `damaged_member` (a gzip member that breaks; goes on at the
    next one that begins a record), `damaged_bytes` (a stretch that is no record), `truncated_file` (its last
    record is not given out), `not_warc` (there is no record). `wrong_length` counts records that are given
    out although their Content-Length is untrue: their block ends where the next record begins.
    """
    reader = open_reader(file, offset, _BEGIN, skipped)
    framer = _Framer(reader, limit, skipped)
    while reader.open_segment():
        while reader.fill(1):
            record = framer.next_record()
            if record is not None:
                yield record
    if not framer.has_begun and offset == 0 and file.seek(0, 2):
        skipped["not_warc"] += 1


class _Syntax(NamedTuple):
    start: re.Pattern[bytes]  # a record's first line
    following: re.Pattern[bytes]  # the line end before one
    header: re.Pattern[bytes]  # ends where the header ends
    parse: Callable[[bytes], dict[str, str]]


def _warc_headers(head: bytes) -> dict[str, str]:
    headers: dict[str, str] = {}
    name = ""
    for line in head.decode("utf-8", "replace").split("\n")[1:]:
        if line[:1] in (" ", "\t") and name:
            headers[name] += " " + line.strip()
        elif ":" in line:
            name, value = line.split(":", 1)
            name = name.strip().lower()
            headers[name] = value.strip()
    return headers


def _arc_headers(line: bytes) -> dict[str, str]:
    match = _ARC_FIELDS.match(line)
    if match is None:
        return {}
    url, kind, length = (match[k].decode("utf-8", "replace") for k in ("url", "type", "length"))
    warc_type = "warcinfo" if url.startswith("filedesc:") else "response"
    return {"warc-type": warc_type, "warc-target-uri": url, "content-type": kind, "content-length": length}


_WARC = _Syntax(
    re.compile(_WARC_LINE), re.compile(rb"\n(?=%s)" % _WARC_LINE), re.compile(rb"\r*\n\r*\n"), _warc_headers
)
_ARC = _Syntax(re.compile(_ARC_LINE), re.compile(rb"\n(?=%s)" % _ARC_LINE), re.compile(rb"\n"), _arc_headers)


class _Framer:
    """Cuts a reader's segments into records. It takes the file for ARC or for WARC by its first record."""

    def __init__(self, reader: Reader, limit: int, skipped: Counter[str]) -> None:
        self._reader = reader
        self._limit = limit
        self._skipped = skipped
        self._syntaxes: tuple[_Syntax, ...] = (_WARC, _ARC)
        self.has_begun = False

    def next_record(self) -> Record | None:
        """Read one record; None where there is none to read at this place (what was there is dropped)."""
        reader = self._reader
        syntax = self._to_start()
        if syntax is None:
            return None
        offset = reader.position
        if reader.size is None:
            offset = reader.start if reader.fresh else -reader.position
        reader.fresh, self._syntaxes, self.has_begun = False, (syntax,), True
        has_room = reader.fill(_HEADER)
        match = syntax.header.search(reader.buffer, 0, _HEADER)
        if match is None:
            self._count_end("damaged_bytes" if has_room else "truncated_file")
            reader.drop(len(b"WARC/") if has_room else len(reader.buffer))
            return None
        begin = match.end()
        headers = syntax.parse(reader.take(0, begin))
        length = headers.get("content-length", "")
        end, is_true = self._block_end(begin, int(length) if length.isdecimal() else None)
        is_suspect = reader.suspect and not syntax.following.search(reader.buffer, begin)
        if end is None or is_suspect:
            self._count_end("truncated_file")
            reader.drop(len(reader.buffer))
            return None
        if not is_true:
            self._skipped["wrong_length"] += 1
        block = reader.take(begin, min(end, begin + self._limit))
        reader.drop(end)
        return Record(offset, headers.get("warc-type", "").lower(), headers, block, end - begin > self._limit)

    def _count_end(self, reason: str) -> None:
        if not self._reader.broken:  # the break is counted
            self._skipped[reason] += 1

    def _to_start(self) -> _Syntax | None:
        """Drop what lies before the next record; None where the segment has no further one."""
        reader = self._reader
        is_counted = False
        while True:
            reader.fill(_HEADER)
            blank = _BLANK.match(reader.buffer)
            reader.drop(blank.end() if blank else 0)
            if not reader.fill(1):
                return None
            for syntax in self._syntaxes:
                if syntax.start.match(reader.buffer):
                    return syntax
            if not reader.fill(16) and b"WARC/".startswith(reader.take(0, 5)):  # cut inside a first line
                self._count_end("truncated_file")
                reader.drop(len(reader.buffer))
                return None
            if not is_counted:
                self._skipped["damaged_bytes"] += 1
            is_counted, reader.fresh = True, False
            found = self._search(0, None)
            reader.drop(len(reader.buffer) if found is None else found)

    def _search(self, begin: int, limit: int | None) -> int | None:
        """Where the next record begins in the buffer, filled up to the limit, or without one dropped."""
        reader = self._reader
        while True:
            matches = (syntax.following.search(reader.buffer, begin) for syntax in self._syntaxes)
            found = [match.end() for match in matches if match]
            if found:
                return min(found)
            begin = max(begin, len(reader.buffer) - LINE)  # a first line may be there in part
            if limit is None:
                reader.drop(begin)
                begin = 0
            elif len(reader.buffer) >= limit:
                return None
            if not reader.fill(len(reader.buffer) + 1):
                return None

    def _block_end(self, begin: int, length: int | None) -> tuple[int | None, bool]:
        """Where the block ends in the buffer (beyond it, if it is oversize), and whether its length says so.

        None if the file ends, or its gzip member breaks, inside the block.
        """
        reader, limit = self._reader, self._limit
        is_whole = False
        if length is not None and length > limit:
            has_room = reader.fill(begin + limit)
            if has_room and (reader.size is None or reader.position + begin + length <= reader.size):
                return begin + length, True
        elif length is not None:
            is_whole = reader.fill(begin + length)
            if is_whole and self._is_boundary(begin + length):
                return begin + length, True
        found = self._search(begin - 1, begin + limit)
        if found is None and reader.fill(begin + limit + 1):  # no end in sight
            return begin + limit + 1, False
        if found is None and (reader.broken or (reader.size is not None and length is not None and not is_whole)):
            return (begin + (length or 0), True) if is_whole else (None, True)
        end = len(reader.buffer) if found is None else found  # a member holds the rest of its record
        tail = _TAIL.search(reader.take(max(begin, end - 4), end))
        return end - (len(tail[0]) if tail else 0), False

    def _is_boundary(self, end: int) -> bool:
        """Whether a record, the end or nothing but blanks follow."""
        reader = self._reader
        reader.fill(end + LINE)
        blank = _BLANK.match(reader.buffer, end)
        following = blank.end() if blank else end
        if self._syntaxes[0].start.match(reader.buffer, following):
            return True
        return len(reader.buffer) < following + 16 and b"WARC/".startswith(reader.take(following, following + 5))
