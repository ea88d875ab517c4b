"""Synthetic hosts with known main blocks: for tests, benchmarks and the demo.

    python tests/sites.py OUT [--hosts N] [--pages N] [--format warc|parquet|jsonl] [--themes blog,news] ...

Page i of a host depends on the seed, the host and i alone, so a longer crawl starts with the shorter one.
Everything streams: one host of 100,000 pages needs no more memory than one of ten.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Protocol

import lxml.html
from hostile import hostile
from themes import MAIN, OUT, TEXT, THEMES, host

LANGUAGE_ORDER = ("en", "ja", "de", "ar", "zh", "ru", "ko", "he")
_MARKS = re.compile(f"{MAIN}|{OUT}|{TEXT}")


@dataclass(frozen=True)
class SitePage:
    """One page and what is main in it; paths as in the `labels:` classifier's table."""

    url: str
    html: str
    template: str
    gold_text: str = ""
    gold_paths: tuple[str, ...] = ()
    gold_excluded_paths: tuple[str, ...] = ()


def site(
    theme: str, pages: int, *, name: str, language: str = "en", seed: int = 0, gold: bool = True
) -> Iterator[SitePage]:
    """All pages of one host, the home page first; without `gold` nothing is parsed, which is faster."""
    shared = host(name, language, seed)
    for index in range(pages):
        sheet = THEMES[theme](shared, index, random.Random(f"page/{seed}/{name}/{theme}/{index}"))
        found = _gold(sheet.html) if gold else ("", (), ())
        yield SitePage(f"https://{name}{sheet.path}", _MARKS.sub("", sheet.html), f"{theme}-{sheet.template}", *found)


def crawl(
    hosts: int, pages: int, *, themes: Iterable[str] = tuple(THEMES), seed: int = 0, gold: bool = True
) -> Iterator[SitePage]:
    """Pages of many hosts in turn, as a crawl has them; themes alternate, each round in other languages."""
    names = list(themes)
    made = []
    for number in range(hosts):
        theme, turn = names[number % len(names)], number // len(names)
        language = LANGUAGE_ORDER[(turn + (number if theme == "news" else 0)) % len(LANGUAGE_ORDER)]
        made.append(site(theme, pages, name=f"{theme}{turn}.example.com", language=language, seed=seed, gold=gold))
    for round_ in itertools.zip_longest(*made):
        yield from (page for page in round_ if page is not None)


def _gold(marked: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    root: Any = lxml.html.document_fromstring(marked)
    tree = root.getroottree()
    main: list[str] = []
    for node in root.xpath(f"//*[@{MAIN.strip()}] | //text()[starts-with(., '{TEXT}')]"):
        main.append(_text_path(tree, node) if isinstance(node, str) else tree.getpath(node))
    excluded = [tree.getpath(element) for element in root.xpath(f"//*[@{OUT.strip()}]")]
    pieces: list[str] = []
    for text in root.xpath("//text()"):
        parent = text.getparent() if text.is_text else text.getparent().getparent()
        mark = next((m for a in _upwards(parent) for m in (OUT, MAIN) if m.strip() in a.attrib), None)
        if text.startswith(TEXT) or mark == MAIN:
            pieces.append(text.replace(TEXT, ""))
    return " ".join(" ".join(pieces).split()), tuple(main), tuple(excluded)


def _upwards(element: Any) -> Iterator[Any]:
    yield element
    yield from element.iterancestors()


def _text_path(tree: Any, text: Any) -> str:
    parent = text.getparent() if text.is_text else text.getparent().getparent()
    siblings = parent.xpath("text()")
    return f"{tree.getpath(parent)}/text()[{siblings.index(text) + 1}]"


# --- writers: each takes (url, payload) one by one


class Writer(Protocol):
    """Takes pages one by one into one file."""

    def add(self, url: str, payload: bytes) -> None:
        """Write one page."""

    def close(self) -> None:
        """Finish the file."""


def warc_record(kind: str, url: str | None, content_type: str, block: bytes) -> bytes:
    head = [
        "WARC/1.0",
        f"WARC-Type: {kind}",
        f"WARC-Record-ID: <urn:uuid:{random.Random(f'{kind}{url}').randbytes(16).hex()}>",
        "WARC-Date: 2026-01-01T00:00:00Z",
        *([f"WARC-Target-URI: {url}"] if url else []),
        f"Content-Type: {content_type}",
        f"Content-Length: {len(block)}",
    ]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


def http_response(payload: bytes, content_type: str = "text/html; charset=utf-8", status: str = "200 OK") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(payload)}\r\n\r\n"
    return head.encode() + payload


class WarcWriter:
    """A .warc or .warc.gz file (one gzip member a record), warcinfo first."""

    def __init__(self, path: Path) -> None:
        self.file: BinaryIO = path.open("wb")
        self.packed = path.suffix == ".gz"
        self.record(
            "warcinfo",
            None,
            "application/warc-fields",
            b"software: synthetic\r\nformat: WARC File Format 1.0\r\n",
        )

    def record(self, kind: str, url: str | None, content_type: str, block: bytes) -> None:
        """Write any record."""
        data = warc_record(kind, url, content_type, block)
        self.file.write(gzip.compress(data, compresslevel=3, mtime=0) if self.packed else data)

    def add(self, url: str, payload: bytes) -> None:
        self.record("response", url, "application/http; msgtype=response", http_response(payload))

    def close(self) -> None:
        self.file.close()


class JsonlWriter:
    """A .jsonl or .jsonl.gz file of url and html."""

    def __init__(self, path: Path) -> None:
        raw = path.open("wb")
        self.raw, self.file = raw, gzip.GzipFile("", "wb", 3, raw, mtime=0) if path.suffix == ".gz" else raw

    def add(self, url: str, payload: bytes) -> None:
        self.row({"url": url, "html": payload.decode("utf-8", "replace")})

    def row(self, value: dict[str, Any]) -> None:
        """Write any object as one line."""
        self.file.write(json.dumps(value, ensure_ascii=False).encode() + b"\n")

    def close(self) -> None:
        self.file.close()
        self.raw.close()


class ParquetWriter:
    """A .parquet file of url (string) and html (binary), 200 rows a group."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.schema = pa.schema([("url", pa.string()), ("html", pa.binary())])
        self.file = pq.ParquetWriter(path, self.schema, compression="zstd")
        self.rows: list[dict[str, Any]] = []

    def add(self, url: str, payload: bytes) -> None:
        self.rows.append({"url": url, "html": payload})
        if len(self.rows) == 200:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        if self.rows:
            self.file.write_table(pa.Table.from_pylist(self.rows, schema=self.schema))
        self.rows = []

    def close(self) -> None:
        self._flush()
        self.file.close()


WRITERS: dict[str, tuple[str, Callable[[Path], Writer]]] = {
    "warc": (".warc.gz", WarcWriter),
    "parquet": (".parquet", ParquetWriter),
    "jsonl": (".jsonl.gz", JsonlWriter),
}


class Parts:
    """Writes pages into OUT/part-00000, part-00001 …, and what is main in them into OUT/truth.jsonl.gz."""

    def __init__(self, out: Path, form: str = "warc", pages_per_file: int = 1000, truth: bool = True) -> None:
        out.mkdir(parents=True, exist_ok=True)
        self.out, self.pages_per_file, self.count = out, pages_per_file, 0
        self.suffix, self.make = WRITERS[form]
        self.part: Writer | None = None
        self.truth = JsonlWriter(out / "truth.jsonl.gz") if truth else None

    def add(self, page: SitePage) -> None:
        self.payload(page.url, page.html.encode())
        if self.truth:
            names = ("url", "template", "gold_text", "gold_paths", "gold_excluded_paths")
            self.truth.row({name: getattr(page, name) for name in names})

    def payload(self, url: str, payload: bytes) -> None:
        """Write a page of which nothing is known."""
        if self.count % self.pages_per_file == 0:
            self._close_part()
            self.part = self.make(self.out / f"part-{self.count // self.pages_per_file:05d}{self.suffix}")
        assert self.part is not None
        self.part.add(url, payload)
        self.count += 1

    def noise(self) -> None:
        """Records that are no pages, as crawls have them (WARC only)."""
        if isinstance(self.part, WarcWriter):
            kind = "application/http; msgtype=response"
            self.part.record(
                "request",
                "https://blog0.example.com/",
                "application/http; msgtype=request",
                b"GET / HTTP/1.1\r\n\r\n",
            )
            self.part.record(
                "response",
                "https://blog0.example.com/x.pdf",
                kind,
                http_response(b"%PDF-1.4", "application/pdf"),
            )
            self.part.record(
                "response",
                "https://blog0.example.com/gone",
                kind,
                http_response(b"<p>Gone", status="404 Not Found"),
            )
            self.part.record("metadata", "https://blog0.example.com/", "application/warc-fields", b"fetchTimeMs: 5\r\n")

    def _close_part(self) -> None:
        if self.part:
            self.part.close()
            self.part = None

    def __enter__(self) -> Parts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close_part()
        if self.truth:
            self.truth.close()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder to write part-* and truth.jsonl.gz into")
    parser.add_argument("--hosts", type=int, default=8, help="number of hosts (default: %(default)s)")
    parser.add_argument("--pages", type=int, default=50, help="pages of each host (default: %(default)s)")
    parser.add_argument("--themes", default=",".join(THEMES), help="themes to alternate (default: %(default)s)")
    parser.add_argument("--format", choices=tuple(WRITERS), default="warc", help="default: %(default)s")
    parser.add_argument("--pages-per-file", type=int, default=1000, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other words (default: %(default)s)")
    parser.add_argument("--no-truth", action="store_true", help="pages only, which is several times faster")
    parser.add_argument("--noise", action="store_true", help="add records that are no pages (WARC)")
    parser.add_argument("--hostile", action="store_true", help="add hostile pages (host hostile.example.com)")
    options = parser.parse_args(arguments)
    themes = options.themes.split(",")
    if unknown := set(themes) - set(THEMES):
        parser.error(f"no theme {', '.join(sorted(unknown))}; there are {', '.join(THEMES)}")
    with Parts(options.out, options.format, options.pages_per_file, truth=not options.no_truth) as parts:
        for page in crawl(options.hosts, options.pages, themes=themes, seed=options.seed, gold=not options.no_truth):
            parts.add(page)
        for name, payload in hostile() if options.hostile else ():
            parts.payload(f"https://hostile.example.com/{name}", payload)
        if options.noise:
            parts.noise()
        print(f"{parts.count} pages of {options.hosts} hosts in {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
