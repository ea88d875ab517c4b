"""The tables through which jobs meet: one schema each, checked on read."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from spark_jobs.errors import TableError
from templates import storage, store
from udfs.conversion.content import CONTENT_LIST

_STRINGS = pa.list_(pa.string())

SIGNATURES = pa.schema(
    [
        ("page_id", pa.string()),
        ("url", pa.string()),
        ("host", pa.string()),
        ("split", pa.string()),
        ("offset", pa.int64()),
        ("sketch", pa.binary()),
        ("text_chars", pa.int64()),
        ("truncated", pa.string()),
        ("error", pa.string()),
    ]
)
"""One row a page: its address and its signature, or why it has none."""

CLUSTERS = pa.schema(
    [
        ("host", pa.string()),
        ("cluster_id", pa.string()),
        ("page_id", pa.string()),
        ("sketch", pa.binary()),
        ("frame", pa.binary()),
        ("template_id", pa.string()),
    ]
)
"""One row a cluster: its representative page and, where the store knows the layout, its template."""

ASSIGNMENTS = pa.schema(
    [
        ("page_id", pa.string()),
        ("host", pa.string()),
        ("split", pa.string()),
        ("offset", pa.int64()),
        ("cluster_id", pa.string()),
        ("template_id", pa.string()),
        ("similarity", pa.float64()),
        ("role", pa.string()),
    ]
)
"""One row a page that has a signature. cluster_id is null where no cluster fits; role: representative, audit,
witness, sibling."""

LABELS = pa.schema(
    [
        ("page_id", pa.string()),
        ("url", pa.string()),
        ("host", pa.string()),
        ("cluster_id", pa.string()),
        ("role", pa.string()),
        ("html", pa.string()),
        ("paths", _STRINGS),
        ("probabilities", pa.list_(pa.float64())),
        ("classifier", pa.string()),
        ("error", pa.string()),
    ]
)
"""One row a labelled or witness page: what the classifier said of it, with the page itself (they are few)."""

TEMPLATES = store.SCHEMA
"""One row a template, as the store keeps it."""

SIDECARS = pa.schema(
    [
        ("split", pa.string()),
        ("kind", pa.int32()),
        ("offset", pa.int64()),
        ("page_id", pa.string()),
        ("host", pa.string()),
        ("role", pa.string()),
        ("cluster_id", pa.string()),
        ("similarity", pa.float64()),
        ("template_id", pa.string()),
        ("body", pa.string()),
        ("paths", _STRINGS),
        ("probabilities", pa.list_(pa.float64())),
        ("error", pa.string()),
    ]
)
"""What a pass needs to know of a split. kind 0: a template; 1: labels of a page; 2: a page by its offset."""

UNEXPLAINED = pa.schema(
    [("page_id", pa.string()), ("split", pa.string()), ("offset", pa.int64()), ("cluster_id", pa.string())]
)
"""One row a page that no template explained in a round: the next round's pages. cluster_id: whose template failed."""

EXTRACTIONS = pa.schema(
    [
        ("url", pa.string()),
        ("host", pa.string()),
        ("page_id", pa.string()),
        ("split", pa.string()),
        ("offset", pa.int64()),
        ("status", pa.string()),
        ("error", pa.string()),
        ("extracted_by", pa.string()),
        ("template_id", pa.string()),
        ("cluster_id", pa.string()),
        ("coverage", pa.float64()),
        ("confidence", pa.float64()),
        ("main_html", pa.string()),
        ("text", pa.string()),
        ("markdown", pa.string()),
        ("content_list", CONTENT_LIST),
        ("truncated", pa.string()),
    ]
)
"""The product: one row for every page. status: ok, empty, error;
extracted_by: template, classifier, fallback, none."""

LABELLED = pa.schema([*EXTRACTIONS, ("paths", _STRINGS), ("probabilities", pa.list_(pa.float64()))])
"""The product of `label --input`: EXTRACTIONS in which the classifier labelled each page, and what it said."""


SCORES = pa.schema(
    [
        ("url", pa.string()),
        ("id", pa.string()),
        ("set", pa.string()),
        ("site", pa.string()),
        ("lang", pa.string()),
        ("page_type", pa.string()),
        ("level", pa.string()),
        ("extracted_by", pa.string()),
        ("status", pa.string()),
        ("error", pa.string()),
        ("confidence", pa.float64()),
        ("coverage", pa.float64()),
        ("found", pa.int64()),
        ("wanted", pa.int64()),
        ("precision", pa.float64()),
        ("recall", pa.float64()),
        ("f1", pa.float64()),
        ("rouge_precision", pa.float64()),
        ("rouge_recall", pa.float64()),
        ("rouge_f1", pa.float64()),
        ("snippets", pa.float64()),
    ]
)
"""One row a page with ground truth. extracted_by: as in EXTRACTIONS, or `missing`. found, wanted: words. The figures
are those of udfs.metrics; null where the ground truth is snippets alone, or none."""

FIGURES = pa.schema(
    [
        ("dimension", pa.string()),
        ("value", pa.string()),
        ("pages", pa.int64()),
        ("missing", pa.int64()),
        ("empty", pa.float64()),
        ("f1", pa.float64()),
        ("precision", pa.float64()),
        ("recall", pa.float64()),
        ("rouge_f1", pa.float64()),
        ("rouge_precision", pa.float64()),
        ("rouge_recall", pa.float64()),
        ("f1_p5", pa.float64()),
        ("below_half", pa.float64()),
        ("snippets", pa.float64()),
    ]
)
"""One row a group of pages: means over them. dimension: what they are grouped by (`all`, `set`, `language` ...); empty:
share of the pages that have main content whose text is empty; below_half: share of pages with an F1 below 0.5."""


def spark_schema(schema: pa.Schema) -> StructType:
    """Derive the Spark schema of a table."""
    return from_arrow_schema(schema)


def check(schema: pa.Schema, found: pa.Schema, where: str) -> None:
    """Raise TableError, which names every column that is missing or of another type."""
    types = dict(zip(found.names, found.types, strict=True))
    wrong = [f"no column {field.name!r}" for field in schema if field.name not in types]
    wrong += [
        f"column {field.name!r} is {types[field.name]}, not {field.type}"
        for field in schema
        if field.name in types and not _same(types[field.name], field.type)
    ]
    if wrong:
        raise TableError(f"{where} is not a table of this version: {'; '.join(wrong)}")


def read(spark: SparkSession, schema: pa.Schema, directory: str) -> DataFrame:
    """Read a table that a stage wrote; an empty DataFrame where the stage wrote no file."""
    if not storage.list_names(directory, ".parquet"):
        return spark.createDataFrame([], spark_schema(schema))
    frame = spark.read.parquet(storage.qualified(directory))
    check(schema, to_arrow_schema(frame.schema), directory)
    return frame.select(schema.names)


def write(frame: DataFrame, schema: pa.Schema, directory: str) -> None:
    """Write a small table with Spark, in place of what is there."""
    check(schema, to_arrow_schema(frame.schema), f"what was to be written to {directory}")
    target = storage.qualified(directory)
    frame.select(schema.names).write.mode("overwrite").option("compression", "zstd").parquet(target)


def _same(one: pa.DataType, other: pa.DataType) -> bool:
    """Compare types; Spark and Parquet name the values of a list differently."""
    if pa.types.is_list(one) and pa.types.is_list(other):
        return _same(one.value_type, other.value_type)
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        pairs = zip(one, other, strict=False)
        return one.num_fields == other.num_fields and all(a.name == b.name and _same(a.type, b.type) for a, b in pairs)
    return bool(one == other)
