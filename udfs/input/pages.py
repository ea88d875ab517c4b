"""Pages: what a record or a row of an input says, as one value that later stages work on."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from typing import Literal

from udfs.input import decoding, responses, warc


class SourceError(ValueError):
    """An input that can't be read as asked; the message says what to do."""


@dataclass(frozen=True)
class SourceOptions:
    """How inputs are read.

    statuses: the HTTP statuses of pages. max_page_bytes: a page above this (decompressed) comes as an error,
    and is never held whole. list_prefix: stands before the relative lines of input lists, such as Common
    Crawl's `*.paths.gz`.
    """

    format: Literal["auto", "warc", "parquet", "jsonl"] = "auto"
    url_column: str = "url"
    html_column: str = "html"
    statuses: tuple[int, ...] = (200,)
    max_page_bytes: int = 16 << 20  # three times what Common Crawl keeps of a page
    list_prefix: str = ""


@dataclass(frozen=True)
class Page:
    """One page.

    page_id: 16 hex digits over url and payload, the same wherever the page lies. split, offset: its address;
    offset is that of `warc.Record`, the row in the row group (Parquet), the byte of the line, or in .gz its
    number (JSONL). truncated: why it isn't whole (WARC-Truncated; `coding` where its compression breaks off).
    error: why it has no html: `empty`, `too_large`, `binary`, `undecodable`, `no_url`.
    """

    url: str
    split: str
    offset: int
    html: str
    page_id: str
    truncated: str | None
    error: str | None


@dataclass(frozen=True)
class Payload:
    """What a source holds of a page: bytes without codings, or text where it holds text."""

    url: str
    data: bytes | str
    content_type: str | None = None
    truncated: str | None = None
    error: str | None = None


def page(payload: Payload, split: str, offset: int, options: SourceOptions) -> Page:
    """Decode a payload. Never raises."""
    text = payload.data if isinstance(payload.data, str) else None
    data = payload.data if isinstance(payload.data, bytes) else payload.data.encode("utf-8", "replace")
    url = decoding.clean(payload.url)
    digest = hashlib.blake2b(url.encode("utf-8") + b"\0", digest_size=8)
    digest.update(data)
    error, html = payload.error, ""
    if error is None and not url:
        error = "no_url"
    elif error is None and len(data) > options.max_page_bytes:
        error = "too_large"
    elif error is None and text is None and responses.is_binary(data):
        error = "binary"
    elif error is None:
        html = decoding.decode(data, payload.content_type) if text is None else decoding.clean(text)
        if not html or html.isspace():
            html, error = "", "empty"
    return Page(url, split, offset, html, digest.hexdigest(), payload.truncated, error)


def payload_of_record(record: warc.Record, options: SourceOptions, skipped: Counter[str]) -> Payload | None:
    """The payload of an archive's record. What is no page gives None and is counted.

    The reasons are `record_TYPE`, `status_CODE`, `type_MEDIA/TYPE` and `damaged_http` (a response without a
    status line).
    """
    if record.kind not in ("response", "resource"):
        skipped[f"record_{record.kind}" if record.kind.isalpha() else "record_invalid"] += 1
        return None
    url = record.headers.get("warc-target-uri", "").strip("<>")  # angle brackets: an early reading of the standard
    head = responses.head(record.block) if record.kind == "response" else None
    if head is None:
        reason = _reason_without_http(record, url)
        content_type, coded, headers = record.headers.get("content-type"), record.block, {}
    else:
        reason = "" if head.status in options.statuses else f"status_{head.status}"
        content_type, coded, headers = (
            head.headers.get("content-type"),
            record.block[head.size :],
            head.headers,
        )
    if not reason and responses.other_type(content_type, b""):  # before the work of taking off the codings
        reason = f"type_{responses.other_type(content_type, b'')}"
    body = responses.body(coded, headers, options.max_page_bytes) if not reason else responses.Body(b"", False)
    if not reason and responses.other_type(content_type, body.data):
        reason = f"type_{responses.other_type(content_type, body.data)}"
    if reason:
        skipped[reason] += 1
        return None
    error = "too_large" if record.oversize else "undecodable" if body.cut and not body.data else None
    truncated = record.headers.get("warc-truncated", "").lower()[:32] or ("coding" if body.cut else None)
    return Payload(url, body.data, content_type, truncated, error)


def _reason_without_http(record: warc.Record, url: str) -> str:
    """Why a record without an HTTP head is no page; "" for a resource that has a web address."""
    if record.kind == "resource":  # browsers' crawlers add screenshots and extracted text as urn: resources
        return "" if url.startswith(("http://", "https://")) else "record_resource"
    other = responses.other_type(record.headers.get("content-type"), b"")
    return "damaged_http" if other in (None, "application/http") else f"type_{other}"
