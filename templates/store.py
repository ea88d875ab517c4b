"""The template store: the templates of all runs, so that the next run pays only for new ones."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
        ("agreement", pa.float64()),
        ("created_run", pa.string()),
        ("replaces", pa.string()),
    ]
)
"""One row a template, or one without a body, which only takes another away.

sketch: of the representative; frame: paths that all of the host's pages had, left out when pages are compared with it;
body: the template as JSON; parameters: digest of what must agree between runs; page_ids: the labelled pages; agreement:
with the labels of pages that it had not seen, null where there were none; replaces: the template_id whose place it
takes, as a person's edit does."""

_NAME = re.compile(r"[A-Za-z0-9._-]+")


USES = pa.schema([("template_id", pa.string()), ("pages", pa.int64())])
"""One row a template that a run extracted pages by."""


class Store:
    """Templates in a directory or under a URL: one immutable Parquet file for each append, read in order of names.

    `uses/` holds one file for each run that took templates from the store.
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def files(self) -> list[str]:
        """List the files of templates; none where the store does not exist yet."""
        return [storage.join(self.path, name) for name in storage.list_names(self.path, ".parquet")]

    def read(self, hosts: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
        """Read the templates of some hosts, or of all, each template once, ordered by host and template_id.

        What a later edit replaced, or a person had the store forget, is left out.
        """
        return (row for row in self._standing(hosts) if row["body"] is not None)

    def _standing(self, hosts: Sequence[str] | None) -> Iterator[dict[str, Any]]:
        """Read what stands: templates that nothing replaced, and the rows without a body that keep others away."""
        chosen = None if hosts is None else pc.field("host").isin(pa.array(hosts, pa.string()))
        rows: dict[tuple[str, str], dict[str, Any]] = {}
        for path in self.files():
            with storage.fetched(path) as copy:
                for row in pq.read_table(copy, schema=SCHEMA, filters=chosen).to_pylist():
                    rows[row["host"], row["template_id"]] = row
        gone = {(host, row["replaces"]) for (host, _), row in rows.items()}
        for key in sorted(rows.keys() - gone):
            yield rows[key]

    def append(self, rows: Iterable[dict[str, Any]], run_id: str) -> None:
        """Add templates, all or none; an append that is repeated with the same run_id takes its own place.

        Raises ValueError where run_id is no plain name.
        """
        ordered = sorted(rows, key=lambda row: (row["host"], row["template_id"]))
        self._write(storage.join(self.path, f"{_plain(run_id)}.parquet"), ordered, SCHEMA)

    def replace(self, old: dict[str, Any], body: str | None, template_id: str) -> None:
        """Let a person's template take the place of a row of `read`, or with no body, take that row away.

        The next run gives the new one the pages that the old one had.
        """
        row = old | {"template_id": template_id, "body": body, "replaces": old["template_id"], "classifier": "person"}
        self.append([row], f"{template_id}-for-{old['template_id']}")

    def compact(self) -> int:
        """Write what `read` gives to one file, remove the files that it came from, and return the number of rows.

        No run may append meanwhile. Killed in between, it leaves rows twice, which `read` gives once.
        """
        rows = list(self._standing(None))
        before = self.files()
        digest = hashlib.blake2b("".join(before).encode(), digest_size=8).hexdigest()
        name = storage.join(self.path, f"compacted-{digest}.parquet")
        self._write(name, rows, SCHEMA)
        for path in before:
            if path != name:
                storage.remove(path)
        return len(rows)

    def record_uses(self, pages: Mapping[str, int], run_id: str) -> None:
        """Keep how many pages a run extracted by each template, by template_id."""
        rows = [{"template_id": template_id, "pages": pages[template_id]} for template_id in sorted(pages)]
        self._write(storage.join(self.path, "uses", f"{_plain(run_id)}.parquet"), rows, USES)

    def uses(self) -> dict[str, tuple[int, int]]:
        """Return by template_id the runs that used it and the pages that they extracted by it."""
        found: dict[str, tuple[int, int]] = {}
        directory = storage.join(self.path, "uses")
        for name in storage.list_names(directory, ".parquet"):
            with storage.fetched(storage.join(directory, name)) as copy:
                for row in pq.read_table(copy, schema=USES).to_pylist():
                    runs, pages = found.get(row["template_id"], (0, 0))
                    found[row["template_id"]] = runs + 1, pages + row["pages"]
        return found

    def _write(self, path: str, rows: list[dict[str, Any]], schema: pa.Schema) -> None:
        if rows:
            with storage.publish(path) as temporary:
                pq.write_table(pa.Table.from_pylist(rows, schema), temporary, compression="zstd")


def _plain(run_id: str) -> str:
    if not _NAME.fullmatch(run_id):
        raise ValueError(f"a run_id is made of letters, digits, '.', '_' and '-', not {run_id!r}")
    return run_id
