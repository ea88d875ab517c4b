"""HTTP responses as archives hold them: status, type, and the body without its codings."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import pyarrow as pa
from isal import isal_zlib

from udfs.input.members import INFLATE_ERROR

_GZIP, _ZSTD = b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"
_STEP = 1 << 16  # bytes inflated at once: what a damaged place costs, since a codec that raises keeps them
_SMALL_STEP = 1 << 8
_HEAD_END = re.compile(rb"\r?\n\r?\n|\Z")
_STATUS = re.compile(rb"HTTP/\S*[ \t]+(\d{3})")
_CHUNK = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]{0,1000})?\r?\n")
_TOKEN = re.compile(r"[\w!#$&^.+\-]{1,60}/[\w!#$&^.+\-]{1,80}", re.ASCII)
_HTML_TYPES = {"text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"}
_UNKNOWN_TYPES = {
    "",
    "no-type",
    "unknown/unknown",
    "application/unknown",
    "*/*",
}  # MIME sniffing standard; ARC
_SNIFF = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*\?>\s*)?"
    rb"(?:<!--|<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p)[\s>])",
    re.I,
)
_BINARY = re.compile(rb"%PDF-|\x89PNG|GIF8|\xff\xd8\xff|PK\x03\x04|RIFF....|OggS|ID3|7z\xbc\xaf|Rar!|\x7fELF", re.S)
# NUL is left out, since UTF-16 is full of it and cleaning removes it; ESC is part of ISO-2022-JP.
_TEXT_BYTES = bytes({0, 9, 10, 12, 13, 27, *range(32, 256)})


class Head(NamedTuple):
    """The status line and headers of a response; `size` is where the body begins in the block."""

    status: int
    headers: dict[str, str]
    size: int


class Body(NamedTuple):
    """At most limit + 1 bytes of a body without codings. cut: its coding breaks off, or is damaged there."""

    data: bytes
    cut: bool


def head(block: bytes) -> Head | None:
    """The head of a response, None without a status line. Header names are in lower case."""
    status = _STATUS.match(block)
    if status is None:
        return None
    end = _HEAD_END.search(block)
    assert end is not None
    headers: dict[str, str] = {}
    name = ""
    for line in block[: end.start()].decode("latin-1").split("\n")[1:]:
        if line[:1] in (" ", "\t") and name:
            headers[name] += " " + line.strip()
        elif ":" in line:
            name, value = line.split(":", 1)
            name = name.strip().lower()
            joined = name in headers and name.endswith("-encoding")
            headers[name] = f"{headers[name]}, {value.strip()}" if joined else value.strip()
    return Head(int(status[1]), headers, end.end())


def other_type(content_type: str | None, data: bytes) -> str | None:
    """None for an HTML page, else the media type that it has instead. Without a type, the body is sniffed."""
    essence = re.split("[;,]", content_type or "", maxsplit=1)[0].strip().lower()
    if essence in _UNKNOWN_TYPES:
        return None if not data or _SNIFF.match(data) else "unknown"
    if essence in _HTML_TYPES:
        return None
    return essence if _TOKEN.fullmatch(essence) else "invalid"


def is_binary(data: bytes) -> bool:
    """Whether a body that claims to be HTML is something else: a known signature, or control bytes."""
    start = data[:1024]
    return _BINARY.match(start) is not None or len(start.translate(None, _TEXT_BYTES)) > len(start) // 10


def body(data: bytes, headers: dict[str, str], limit: int) -> Body:
    """Take off the codings that the headers name, where the bytes agree, and compressions that they don't."""
    cut = False
    if "chunked" in headers.get("transfer-encoding", "").lower():
        data, cut = _unchunked(data)
    codings = [headers.get(name, "") for name in ("content-encoding", "transfer-encoding")]
    for coding in reversed(",".join(codings).lower().split(",")[:4]):
        data, broken = _decoded(data, coding.strip(), limit)
        cut = cut or broken
    plain = unpacked(data, limit)
    return Body(plain.data, cut or plain.cut)


def unpacked(data: bytes, limit: int) -> Body:
    """Decompress bytes that begin with the signature of gzip or Zstandard, at most twice: servers do that."""
    cut = False
    for _ in range(2):
        if not data.startswith((_GZIP, _ZSTD)):
            break
        data, broken = _decoded(data, "gzip" if data.startswith(_GZIP) else "zstd", limit)
        cut = cut or broken
    return Body(data, cut)


def _unchunked(data: bytes) -> tuple[bytes, bool]:
    """The chunks' bytes. A body that begins with no chunk is whole already; the last chunk may be cut."""
    parts: list[bytes] = []
    position = 0
    while match := _CHUNK.match(data, position):
        size = int(match[1], 16)
        if size == 0:
            return b"".join(parts), False
        begin = match.end()
        parts.append(data[begin : begin + size])
        position = begin + size
        if position >= len(data):
            return b"".join(parts), position > len(data)
        position += 2 if data.startswith(b"\r\n", position) else data.startswith(b"\n", position)
    if not parts:
        return data, False
    parts.append(data[position:])  # a size lies: better all of the text with some noise than half of it
    return b"".join(parts), True


def _decoded(data: bytes, coding: str, limit: int) -> tuple[bytes, bool]:
    """Decompress up to limit + 1 bytes, or what precedes a damage; bytes not so coded stay as they are."""
    if coding in ("gzip", "x-gzip"):
        return _inflated(data, 31, limit) if data.startswith(_GZIP[:2]) else (data, False)
    if coding == "deflate":
        # zlib's framing by the standard, none in practice
        is_zlib = len(data) > 1 and data[0] & 15 == 8 and (data[0] * 256 + data[1]) % 31 == 0
        if not is_zlib and _is_plain(data):
            return data, False
        inflated, cut = _inflated(data, 15 if is_zlib else -15, limit)
        return (inflated, cut) if inflated else (data, False)
    if coding in ("br", "zstd"):
        return _streamed(data, "brotli" if coding == "br" else "zstd", limit)
    return data, False


def _inflated(data: bytes, bits: int, limit: int) -> tuple[bytes, bool]:
    output = bytearray()
    while data:
        inflater: Any = isal_zlib.decompressobj(bits)
        start = len(output)
        try:
            while not inflater.eof and len(output) <= limit:
                piece = inflater.decompress(data, min(_STEP, limit + 1 - len(output)))
                output += piece
                data = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
                if not piece and not data and not inflater.eof:
                    return bytes(output), True
        except INFLATE_ERROR:
            return bytes(output), start == 0 or len(output) > start  # junk after a whole member is no loss
        if len(output) > limit or bits != 31 or not data.startswith(_GZIP):
            break
    return bytes(output), False


def _streamed(data: bytes, codec: str, limit: int) -> tuple[bytes, bool]:
    output = bytearray()
    for step in (_STEP, _SMALL_STEP):  # small steps get out what comes before a damage
        output.clear()
        try:
            with pa.CompressedInputStream(pa.BufferReader(data), codec) as stream:
                while len(output) <= limit and (piece := stream.read(min(step, limit + 1 - len(output)))):
                    output += piece
            return bytes(output), False
        except OSError:
            continue
    if output:
        return bytes(output), True
    return (data, False) if _is_plain(data) else (b"", True)


def _is_plain(data: bytes) -> bool:
    return data.lstrip()[:1] == b"<" or data[:256].isascii()
