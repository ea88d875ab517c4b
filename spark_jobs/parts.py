"""Rows of a table as Python dictionaries: written to one file, batched for Spark, and read back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs import tables
from templates import storage

Row = dict[str, Any]


class Writer:
    """Writes rows to one Parquet file in batches that are bounded in rows and in bytes.

    The bytes written depend on the rows and their order alone, so a retried or speculative task writes the
    same file again.
    """

    MAX_ROWS = 2000
    MAX_BYTES = 8 << 20
    """A batch exists several times (rows, Arrow, Parquet pages): 8 MiB stays far under a worker's share."""

    def __init__(self, path: str, schema: pa.Schema) -> None:
        self._schema = schema
        self._file = pq.ParquetWriter(path, schema, compression="zstd")
        self._rows: list[Row] = []
        self._bytes = 0
        self.rows = 0

    def add(self, row: Row) -> None:
        """Add one row; columns that it lacks are null."""
        self._rows.append(row)
        self._bytes += sum(len(value) for value in row.values() if isinstance(value, str | bytes))
        self.rows += 1
        if len(self._rows) >= self.MAX_ROWS or self._bytes >= self.MAX_BYTES:
            self._flush()

    def close(self) -> None:
        """Write what is left, and the footer."""
        self._flush()
        self._file.close()

    def _flush(self) -> None:
        if self._rows:
            self._file.write_table(table(self._rows, self._schema))
        self._rows, self._bytes = [], 0


@contextmanager
def writer(path: str, schema: pa.Schema) -> Iterator[Writer]:
    """Open a Writer whose file appears under `path` only once the block has ended without error."""
    with storage.publish(path) as temporary:
        out = Writer(temporary, schema)
        try:
            yield out
        finally:
            out.close()


def table(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    """Make an Arrow table of rows; lone surrogates, which UTF-8 cannot hold, become question marks."""
    try:
        return pa.Table.from_pylist(list(rows), schema)
    except UnicodeEncodeError:
        return pa.Table.from_pylist([{name: _encodable(value) for name, value in row.items()} for row in rows], schema)


def batches(rows: Iterable[Row], schema: pa.Schema, size: int = 500) -> Iterator[pa.RecordBatch]:
    """Batch rows for Spark."""
    pending: list[Row] = []
    for row in rows:
        pending.append(row)
        if len(pending) >= size:
            yield from table(pending, schema).combine_chunks().to_batches()
            pending = []
    if pending:
        yield from table(pending, schema).combine_chunks().to_batches()


def read(path: str, schema: pa.Schema) -> Iterator[Row]:
    """Read the rows of one Parquet file in order, batch by batch."""
    with storage.fetched(path) as copy, pq.ParquetFile(copy) as file:
        tables.check(schema, file.schema_arrow, path)
        for batch in file.iter_batches(batch_size=1000, columns=schema.names):
            yield from batch.to_pylist()


def _encodable(value: Any) -> Any:
    return value.encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else value
