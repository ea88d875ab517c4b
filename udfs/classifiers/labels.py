"""The classifier `labels:PATH`: a table of pages that a person or another system has labelled."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, BinaryIO, NamedTuple

import fsspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from templates.dom import PageError, parse
from templates.labels import Labels, check_path, resolve
from udfs.input.pages import Page, SourceError, SourceOptions
from udfs.input.sources import file_format, list_splits

_STRING = pa.large_string()
_SCHEMA = pa.schema(
    [
        ("url", _STRING),
        ("gold_paths", pa.large_list(_STRING)),
        ("gold_excluded_paths", pa.large_list(_STRING)),
    ]
)
_BATCH_ROWS = 10_000


class LabelTable:
    """Labels from a file, folder or glob of Parquet or JSONL(.gz), loaded once a process with the first page.

    Rows: `url`; `gold_paths`, positional XPaths of main elements (an empty list: nothing is main;
    null: no labels); `gold_excluded_paths` (may be absent), what is not main inside them.
    Raises ValueError where there is no such file, and on the first use where the table can't be understood.
    """

    def __init__(self, path: str) -> None:
        self.name = f"labels:{path}"
        self._files = tuple(_table_files(path))

    def label(self, pages: Sequence[Page]) -> list[Labels | PageError]:
        """Look pages up by URL and drop stale paths. PageError: `no_label`, or as `dom.parse` has it."""
        table = _load(self._files)
        results: list[Labels | PageError] = []
        for page in pages:
            try:
                results.append(_label(page, table))
            except PageError as error:
                results.append(error)
        return results


class _Row(NamedTuple):
    """A line of the table; place says where it is, for messages."""

    place: str
    url: str
    main: list[str] | None
    excluded: list[str] | None


@dataclass(frozen=True)
class _Table:
    """Rows in Arrow's memory, found through the sorted digests of their URLs."""

    rows: pa.Table
    digests: npt.NDArray[np.uint64]
    order: npt.NDArray[np.int64]

    def find(self, url: str) -> dict[str, Any] | None:
        at = int(np.searchsorted(self.digests, _digest(url)))
        while at < len(self.digests) and self.digests[at] == _digest(url):
            row: dict[str, Any] = self.rows.slice(int(self.order[at]), 1).to_pylist()[0]
            if row["url"] == url:
                return row
            at += 1
        return None


def _label(page: Page, table: _Table) -> Labels:
    if page.error is not None:
        raise PageError(page.error)
    row = table.find(page.url)
    if row is None:
        raise PageError("no_label")
    excluded: list[str] = row["gold_excluded_paths"] or []
    said = dict.fromkeys(row["gold_paths"], 1.0) | dict.fromkeys(excluded, 0.0)
    labels = Labels(tuple(said), tuple(said.values()))
    dropped = set(resolve(parse(page.html), labels).dropped)
    kept = {path: probability for path, probability in said.items() if path not in dropped}
    return Labels(tuple(kept), tuple(kept.values()))


def _table_files(path: str) -> Iterator[str]:
    try:
        splits = list_splits([path], SourceOptions())
    except (SourceError, OSError) as error:
        raise ValueError(f"labels:{path} can't be read: {error}") from error
    files = sorted({split.path for split in splits})
    tables = [file for file in files if _kind(file) != "warc"]
    if not tables:
        raise ValueError(f"labels:{path} has no Parquet or JSONL file")
    yield from tables


def _kind(file: str) -> str:
    return file_format(file, SourceOptions())


@lru_cache(maxsize=2)
def _load(files: tuple[str, ...]) -> _Table:
    batches: list[pa.RecordBatch] = []
    digests: list[npt.NDArray[np.uint64]] = []
    rows = (row for file in files for row in _rows(file) if row.main is not None)
    while batch := list(islice(rows, _BATCH_ROWS)):
        columns = [[row.url for row in batch], [row.main for row in batch], [row.excluded for row in batch]]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)]
        batches.append(pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA))
        digests.append(np.array([_digest(row.url) for row in batch], np.uint64))
    table = pa.Table.from_batches(batches, _SCHEMA).combine_chunks()
    keys = np.concatenate(digests) if digests else np.empty(0, np.uint64)
    order = np.argsort(keys, kind="stable")
    _refuse_contradictions(table, keys[order], order)
    return _Table(table, keys[order], order)


def _refuse_contradictions(table: pa.Table, digests: npt.NDArray[np.uint64], order: npt.NDArray[np.int64]) -> None:
    for at in np.flatnonzero(digests[1:] == digests[:-1]).tolist():
        first, second = (table.slice(int(order[number]), 1).to_pylist()[0] for number in (at, at + 1))
        if first["url"] == second["url"] and first != second:
            raise ValueError(f"the labels hold {first['url']} twice, with different paths: keep one row")


def _digest(url: str) -> np.uint64:
    digest = hashlib.blake2b(url.encode("utf-8", "replace"), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "big"))


def _rows(file: str) -> Iterator[_Row]:
    with fsspec.open(file, "rb") as stream:
        records = _parquet_records(stream, file) if _kind(file) == "parquet" else _json_records(stream, file)
        for place, record in records:
            url = record.get("url")
            if not isinstance(url, str) or not url:
                raise ValueError(f"{place} has no url")
            main, excluded = record.get("gold_paths"), record.get("gold_excluded_paths")
            for path in [*_listed(main, place), *_listed(excluded, place)]:
                try:
                    check_path(path)
                except ValueError as error:
                    raise ValueError(f"{place}: {error}") from None
            yield _Row(place, url, main, excluded)


def _listed(paths: Any, place: str) -> list[str]:
    if paths is None:
        return []
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise ValueError(f"{place}: gold_paths and gold_excluded_paths are lists, not {paths!r:.80}")
    return paths


def _parquet_records(stream: BinaryIO, file: str) -> Iterator[tuple[str, dict[str, Any]]]:
    table = pq.ParquetFile(stream)
    names = table.schema_arrow.names
    missing = [name for name in ("url", "gold_paths") if name not in names]
    if missing:
        raise ValueError(f"{file} has no column {' and no '.join(missing)}; it has {', '.join(names)}")
    number = 0
    columns = [name for name in _SCHEMA.names if name in names]
    for batch in table.iter_batches(_BATCH_ROWS, columns=columns):
        for record in batch.to_pylist():
            number += 1
            yield f"{file}, row {number}", record


def _json_records(stream: BinaryIO, file: str) -> Iterator[tuple[str, dict[str, Any]]]:
    lines: Iterable[bytes] = gzip.GzipFile(fileobj=stream) if file.endswith(".gz") else stream
    known = False
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        place = f"{file}, line {number}"
        try:
            record = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{place} is not JSON: {error}") from None
        if not isinstance(record, dict):
            raise ValueError(f"{place} is not a JSON object")
        known = known or "gold_paths" in record
        yield place, record
    if not known:
        raise ValueError(f"{file} has no gold_paths in any line")
