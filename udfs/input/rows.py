"""Rows: payloads of Parquet and JSONL files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from udfs.input import responses
from udfs.input.members import INFLATE_ERROR, inflated
from udfs.input.pages import Payload, SourceError, SourceOptions

_BATCH_ROWS = 32  # of Parquet, in memory at once: they are whole pages
_GROWTH, _REST = (
    6,
    1 << 16,
)  # JSON may write a character as \u00e9: six bytes; beside the page a line holds other fields
_PIECE = 1 << 16
_URL_BYTES = 1 << 16  # a longer URL is cut


def parquet_payloads(
    file: Any, path: str, row_group: int | None, options: SourceOptions, wanted: Set[int] | None
) -> Iterator[tuple[int, Payload]]:
    """The payloads of a row group, or of the wanted rows of it, with their row numbers."""
    columns = [options.url_column, options.html_column]
    # Without pre-buffering a row group of a gigabyte passes through in pieces.
    with pq.ParquetFile(file, pre_buffer=False, buffer_size=1 << 20) as table:
        _check_columns(path, table.schema_arrow, columns)
        groups = range(table.num_row_groups) if row_group is None else [row_group]
        first = 0
        for batch in table.iter_batches(_BATCH_ROWS, row_groups=list(groups), columns=columns):
            urls, pages = (batch.column(name) for name in columns)
            for row in range(batch.num_rows):
                if wanted is None or first + row in wanted:
                    yield first + row, _cell_payload(urls[row], pages[row], options)
            first += batch.num_rows


def _check_columns(path: str, schema: pa.Schema, columns: Sequence[str]) -> None:
    for name in columns:
        if name not in schema.names:
            raise SourceError(
                f"{path} has no column {name!r}; its columns are: {', '.join(schema.names)}. "
                "Name those of the URL and of the HTML with url_column and html_column."
            )
        kind = schema.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not (_is_text(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
            raise SourceError(f"Column {name!r} of {path} is {kind}, neither a string nor a binary one.")


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _cell_payload(url: Any, html: Any, options: SourceOptions) -> Payload:
    url, html = (cell.value if isinstance(cell, pa.DictionaryScalar) else cell for cell in (url, html))
    address = _cell_bytes(url, _URL_BYTES).decode("utf-8", "replace")
    data = _cell_bytes(html, options.max_page_bytes)
    if _is_text(html.type):
        return Payload(address, data.decode("utf-8", "replace"))
    body = responses.unpacked(data, options.max_page_bytes)
    return Payload(
        address,
        body.data,
        truncated="coding" if body.cut else None,
        error="undecodable" if body.cut and not body.data else None,
    )


def _cell_bytes(cell: Any, limit: int) -> bytes:
    """At most limit + 1 bytes of a string or binary scalar; none of a null."""
    buffer = cell.as_buffer() if cell.is_valid else None
    return b"" if buffer is None else cast(bytes, buffer.slice(0, min(buffer.size, limit + 1)).to_pybytes())


def jsonl_payloads(
    file: BinaryIO, path: str, options: SourceOptions, skipped: Counter[str], wanted: Sequence[int] | None
) -> Iterator[tuple[int, Payload]]:
    """The payloads of a JSONL file with their addresses: the byte of the line, in a gzip file its number.

    Counted in `skipped`: `damaged_line`, `line_too_large`; `damaged_member` and `truncated_file` end the
    file.
    """
    is_packed = file.read(2) == b"\x1f\x8b"
    seen: set[str] = set()
    if wanted is not None and not is_packed:
        firsts = (next(_lines(file, place, False, options, skipped), None) for place in wanted)
        found = ((first[1], first[2]) for first in firsts if first)
    else:
        lines = _lines(file, 0, is_packed, options, skipped)
        found = ((number if is_packed else place, line) for number, place, line in lines)
    for offset, line in found:
        if wanted is None or offset in wanted:
            payload = _line_payload(line, options, skipped, seen)
            if payload is not None:
                yield offset, payload
    for name in (options.url_column, options.html_column) if seen else ():
        if name not in seen:
            raise SourceError(
                f"No line of {path} has the key {name!r}; the keys are: {', '.join(sorted(seen))}. "
                "Name those of the URL and of the HTML with url_column and html_column."
            )


def _lines(
    file: BinaryIO, place: int, is_packed: bool, options: SourceOptions, skipped: Counter[str]
) -> Iterator[tuple[int, int, bytes]]:
    """Lines that aren't too long, each with its number and the byte at which it begins."""
    longest = _GROWTH * options.max_page_bytes + _REST
    line, size, number = bytearray(), 0, 0
    file.seek(place)
    for piece in _unpacked(file, skipped) if is_packed else iter(lambda: file.read(_PIECE), b""):
        *ends, rest = piece.split(b"\n")
        for part, is_end in (*((end, True) for end in ends), (rest, False)):
            size += len(part)
            line += part if size <= longest else b""
            if is_end and size <= longest:
                yield number, place, bytes(line)
            elif is_end:
                skipped["line_too_large"] += 1
            if is_end:
                line.clear()
                number, place, size = number + 1, place + size + 1, 0
    if size > longest:
        skipped["line_too_large"] += 1
    elif size:
        yield number, place, bytes(line)


def _unpacked(file: BinaryIO, skipped: Counter[str]) -> Iterator[bytes]:
    raw = b""
    try:
        while raw := raw or file.read(_PIECE):
            raw = raw.lstrip(b"\0")
            for piece, rest in inflated(file, raw) if raw else ():
                raw = rest
                yield piece
    except EOFError:
        skipped["truncated_file"] += 1
    except INFLATE_ERROR:
        skipped["damaged_member"] += 1


def _line_payload(line: bytes, options: SourceOptions, skipped: Counter[str], seen: set[str]) -> Payload | None:
    if not line or line.isspace():
        return None
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    url, html = (row.get(options.url_column), row.get(options.html_column)) if isinstance(row, dict) else (0, 0)
    if not isinstance(url, str | None) or not isinstance(html, str | None):
        skipped["damaged_line"] += 1
        return None
    seen.update(row)
    return Payload(url or "", html or "")
