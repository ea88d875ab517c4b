"""The template store: the templates of all runs, so that the next run pays only for new ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from templates import storage

SCHEMA = pa.schema(
    [
        ("template_id", pa.string()),
        ("host", pa.string()),
        ("cluster_id", pa.string()),
        ("sketch", pa.binary()),
        ("frame", pa.binary()),
        ("body", pa.string()),
        ("parameters", pa.string()),
        ("classifier", pa.string()),
        ("page_ids", pa.list_(pa.string())),
        ("created_run", pa.string()),
    ]
)
"""One row a template. sketch: of its representative; frame: paths that all of the host's pages had, left out when
pages are compared with it; body: the template as JSON; parameters: digest of what must agree between runs."""

_NAME = re.compile(r"[A-Za-z0-9._-]+")


class Store:
    """Templates in a directory or under a URL: one immutable Parquet file for each append, sorted by host."""

    def __init__(self, path: str) -> None:
        self.path = path

    def files(self) -> list[str]:
        """List the files, oldest name first; none where the store does not exist yet."""
        return [storage.join(self.path, name) for name in storage.list_names(self.path, ".parquet")]

    def read(self, hosts: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
        """Read the templates of some hosts, or of all, each template once, ordered by host and template_id."""
        chosen = None if hosts is None else pc.field("host").isin(pa.array(hosts, pa.string()))
        rows: dict[tuple[str, str], dict[str, Any]] = {}
        for path in self.files():
            with storage.fetched(path) as copy:
                for row in pq.read_table(copy, schema=SCHEMA, filters=chosen).to_pylist():
                    rows[row["host"], row["template_id"]] = row
        for key in sorted(rows):
            yield rows[key]

    def append(self, rows: Iterable[dict[str, Any]], run_id: str) -> None:
        """Add templates, all or none; an append that is repeated with the same run_id takes its own place.

        Raises ValueError where run_id is no plain name.
        """
        if not _NAME.fullmatch(run_id):
            raise ValueError(f"a run_id is made of letters, digits, '.', '_' and '-', not {run_id!r}")
        ordered = sorted(rows, key=lambda row: (row["host"], row["template_id"]))
        if ordered:
            with storage.publish(storage.join(self.path, f"{run_id}.parquet")) as temporary:
                pq.write_table(pa.Table.from_pylist(ordered, SCHEMA), temporary, compression="zstd")
