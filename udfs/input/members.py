"""The bytes of an archive file after decompression, in segments that begin where gzip members begin."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple, cast

from isal import isal_zlib  # twice as fast as zlib here, and inflating is most of the reading

LINE = 1 << 13
"""The longest first line of a record, in bytes; an ARC's holds the URL."""

_PIECE = 1 << 16  # bytes read at once: some members of usual size
_OUTPUT = 1 << 20  # bytes inflated at once: what a bomb costs before it is noticed
_GZIP = b"\x1f\x8b\x08"

INFLATE_ERROR = cast(type[Exception], isal_zlib.error)
"""What isal raises; its stubs call it an instance."""


def open_reader(file: BinaryIO, offset: int, begins: re.Pattern[bytes], skipped: Counter[str]) -> Reader:
    """Read a seekable file, gzip or plain, from an offset; `begins` matches how a record begins.

    Breaks are counted in `skipped`: `truncated_file`, and `damaged_member`, after which it goes on at the
    next member that begins a record.
    """
    size = file.seek(0, 2)
    file.seek(offset)
    packed = file.read(2) == _GZIP[:2]
    file.seek(offset)
    pieces = _members(file, offset, begins) if packed else _plain(file, offset)
    return Reader(pieces, None if packed else size, offset, skipped)


class _Piece(NamedTuple):
    data: bytes
    start: int | None = None  # the piece begins a segment, which begins there in the file
    broken: str = ""  # the segment ends here, by this reason
    suspect: bool = False  # a damage may be anywhere before the place where it is noticed


class Reader:
    """A buffer over pieces that never reads past the end of a segment."""

    def __init__(self, pieces: Iterator[_Piece], size: int | None, offset: int, skipped: Counter[str]) -> None:
        self.buffer = bytearray()
        self.size = size  # of an uncompressed file; None for a packed one
        self.position = 0 if size is None else offset  # of the buffer's begin in the decompressed file
        self.start = offset  # of the segment in the file
        self.fresh = True  # the record that follows begins where the segment does
        self.broken = False  # the segment ends before its time; known when its end is in the buffer
        self.suspect = False  # and what it gave last may be wrong
        self._pieces = pieces
        self._ahead: _Piece | None = None
        self._ended = True
        self._skipped = skipped

    def open_segment(self) -> bool:
        """Go to the next segment; False at the end of the file."""
        piece = self._ahead or self._next_piece()
        while piece is not None and piece.start is None:  # a member that broke before it said what it begins
            piece = self._next_piece()
        if piece is None or piece.start is None:
            return False
        self._ahead, self._ended, self.broken, self.suspect = None, False, False, False
        self.start, self.fresh = piece.start, True
        self.buffer += piece.data
        return True

    def _next_piece(self) -> _Piece | None:
        piece = next(self._pieces, None)
        if piece is not None and piece.broken:
            self._skipped[piece.broken] += 1
        return piece

    def fill(self, size: int) -> bool:
        """Have at least so many bytes in the buffer; False where the segment ends before."""
        while len(self.buffer) < size and not self._ended:
            piece = self._next_piece()
            if piece is not None and piece.start is None and not piece.broken:
                self.buffer += piece.data
                continue
            self._ended = True
            self._ahead = piece if piece is not None and piece.start is not None else None
            self.broken = piece is not None and bool(piece.broken)
            self.suspect = piece is not None and piece.suspect
        return len(self.buffer) >= size

    def drop(self, size: int) -> None:
        """Forget so many bytes, which may be more than the buffer holds."""
        while size > len(self.buffer):
            size -= len(self.buffer)
            self.position += len(self.buffer)
            self.buffer.clear()
            if not self.fill(1):
                return
        self.position += size
        del self.buffer[:size]

    def take(self, begin: int, end: int) -> bytes:
        with memoryview(self.buffer) as view:
            return bytes(view[begin:end])


def _plain(file: BinaryIO, offset: int) -> Iterator[_Piece]:
    """An uncompressed file is one segment."""
    yield _Piece(file.read(_PIECE), offset)
    while data := file.read(_PIECE):
        yield _Piece(data)


def _members(file: BinaryIO, offset: int, begins: re.Pattern[bytes]) -> Iterator[_Piece]:
    """A segment is a gzip member that begins a record, with the members after it that don't."""
    file.seek(offset)
    raw, is_first = b"", True
    while raw := raw or file.read(_PIECE):
        raw = raw.lstrip(b"\0")  # padding with zeros is no damage
        if not raw:
            continue
        member, head, reason = file.tell() - len(raw), b"", ""
        is_placed = False  # whether it is known if the member begins a record
        try:
            for data, rest in inflated(file, raw):
                raw = rest
                head += b"" if is_placed else data
                if is_placed:
                    yield _Piece(data)
                elif len(head) >= LINE:
                    yield _Piece(head, member if is_first or begins.match(head) else None)
                    is_placed = True
        except EOFError:
            reason = "truncated_file"
        except INFLATE_ERROR:
            reason = "damaged_member"
        if not is_placed and (head or not reason):
            yield _Piece(head, member if is_first or begins.match(head) else None)
        is_first = False
        if reason:
            following = _next_member(file, member + 1, begins)
            reason = reason if following is None else "damaged_member"
            yield _Piece(b"", None, reason, reason == "damaged_member" and bool(head))
            if following is None:
                return
            file.seek(following)
            raw, is_first = b"", True


def inflated(file: BinaryIO, raw: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Inflate the gzip member that `raw`, and what the file holds behind it, begin with.

    Gives pieces of at most 1 MiB, each with the input that is left over. Raises EOFError where the file ends
    inside the member, INFLATE_ERROR where it is damaged (what the last 64 KiB of input held is lost then).
    """
    inflater = isal_zlib.decompressobj(31)
    data = b""
    while not inflater.eof:
        if not raw and len(data) < _OUTPUT and not (raw := file.read(_PIECE)):
            raise EOFError
        data = inflater.decompress(raw, _OUTPUT)
        raw = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
        yield data, raw


def _next_member(file: BinaryIO, offset: int, begins: re.Pattern[bytes]) -> int | None:
    """Where the next gzip member is that inflates to the beginning of a record."""
    while True:
        file.seek(offset)
        window = file.read(1 << 20)
        for match in re.finditer(re.escape(_GZIP), window):
            file.seek(offset + match.start())
            try:
                head = isal_zlib.decompressobj(31).decompress(file.read(LINE), LINE)
            except INFLATE_ERROR:
                continue
            if begins.match(head):
                return offset + match.start()
        if len(window) < len(_GZIP):
            return None
        offset += len(window) - len(_GZIP) + 1
