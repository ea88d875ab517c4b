"""Sidecars: what a pass needs to know of a split, in one small file beside it, since HTML never shuffles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs import parts, passes, tables
from templates import storage
from udfs.input.sources import Split

TEMPLATE, LABELS, PAGE = 0, 1, 2
"""Kinds of rows, in their order in the file: what pages refer to comes first."""

_WRITTEN = pa.schema([("split", pa.string())])


def write(stage: str, parts: Sequence[DataFrame], directory: str) -> None:
    """Shuffle rows of SIDECARS to their splits and write a file for each split, into a new directory.

    A part may lack columns. Rows of a split come by kind, and pages by offset.
    """
    frames = [_complete(part) for part in parts]
    frame = frames[0]
    for other in frames[1:]:
        frame = frame.union(other)
    ordered = frame.repartition("split").sortWithinPartitions("split", "kind", "offset", "page_id", "template_id")
    written = ordered.mapInArrow(partial(_write_files, directory=directory), "split string")
    passes.execute(f"{stage}: sidecars", written.collect)


def splits(directory: str, of: Iterable[Split]) -> list[Split]:
    """Return the splits that have a sidecar in the directory, in their order."""
    names = set(storage.list_names(directory, ".parquet"))
    return [split for split in of if f"{passes.part_name(split)}.parquet" in names]


def read(directory: str, split: Split) -> Iterator[parts.Row]:
    """Read a split's sidecar; no rows where it has none."""
    path = storage.join(directory, f"{passes.part_name(split)}.parquet")
    if storage.exists(path):
        yield from parts.read(path, tables.SIDECARS)


def _complete(part: DataFrame) -> DataFrame:
    wanted = tables.spark_schema(tables.SIDECARS)
    return part.select(
        *(
            (F.col(field.name) if field.name in part.columns else F.lit(None)).cast(field.dataType).alias(field.name)
            for field in wanted
        )
    )


def _write_files(batches: Iterable[pa.RecordBatch], directory: str) -> Iterator[pa.RecordBatch]:
    """Write the splits of one sorted partition, one after the other."""
    current: str | None = None
    with ExitStack() as stack:
        for batch in batches:
            for row in batch.to_pylist():
                if row["split"] != current:
                    stack.close()
                    current = row["split"]
                    path = storage.join(directory, f"{passes.part_name(Split.parse(current))}.parquet")
                    out = stack.enter_context(parts.writer(path, tables.SIDECARS))
                out.add(row)
    if current is not None:
        yield pa.RecordBatch.from_pydict({"split": [current]}, _WRITTEN)
