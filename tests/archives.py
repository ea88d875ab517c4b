"""Self-made WARC records and the faults of ../shared, for tests."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

from udfs.input.sources import Page, SourceOptions, Split, fetch, read_split

HTML_HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"


def html(text: str) -> bytes:
    return f"<html><body><h1>Title</h1><p>{text}</p></body></html>".encode()


def record(
    body: bytes,
    number: int = 1,
    http: str | None = HTML_HEAD,
    kind: str = "response",
    extra: str = "",
    length: int | str | None = None,
) -> bytes:
    """A WARC record; `http` None: the body is the whole block; `length`: what Content-Length says instead."""
    block = body if http is None else http.encode("latin-1") + b"\r\n" + body
    head = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{number:032}>\r\n"
        f"WARC-Date: 2025-01-01T00:00:00Z\r\nWARC-Target-URI: http://a.example/{number}\r\n"
        f"Content-Type: application/http; msgtype={kind}\r\n{extra}"
        f"Content-Length: {len(block) if length is None else length}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"


def packed(*records: bytes) -> bytes:
    """One gzip member a record."""
    return b"".join(gzip.compress(record, mtime=0) for record in records)


def read(
    folder: Path, data: bytes, name: str = "x.warc", options: SourceOptions | None = None
) -> tuple[list[Page], Counter[str]]:
    """The pages of a file with these bytes, and what was skipped; each is fetched again by its address."""
    path = folder / name
    path.write_bytes(data)
    options = options or SourceOptions()
    skipped: Counter[str] = Counter()
    pages = list(read_split(Split(str(path)), options, skipped))
    assert all(skipped.values())
    again = fetch(Split(str(path)), [page.offset for page in pages], options)
    assert sorted(pages, key=lambda page: page.offset) == list(again)
    for page in pages:
        page.html.encode("utf-8")  # no lone surrogates
    return pages, skipped


def faults(shared: Path, area: str) -> dict[str, dict[str, Any]]:
    """The faults of an area by id."""
    lines = (shared / "faults" / "faults.jsonl").read_text(encoding="utf-8").splitlines()
    return {fault["id"]: fault for fault in map(json.loads, lines) if fault["area"] == area}


def fault_input(fault: dict[str, Any]) -> Any:
    """The input of a fault: bytes, or what its generator makes."""
    if fault["input_type"] == "generator":
        names: dict[str, Any] = {}
        exec(fault["generator"], names)  # noqa: S102 - the generators are the corpus' own code
        return next(names[name] for name in ("warc", "warc_gz", "data") if name in names)
    return bytes.fromhex(fault["input"]) if fault["input_type"] == "bytes_hex" else fault["input"]
