"""evaluate: extractions beside ground truth, page by page, and what that is by set, page type, language and site."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs import floors, parts, passes, scoreboard, tables
from spark_jobs.errors import InputError, JobError, RequestError, TableError
from spark_jobs.options import EvaluateOptions
from spark_jobs.parts import Row
from templates import storage
from udfs.input import truth
from udfs.input.sources import SourceOptions, list_splits
from udfs.metrics import score, snippets_passed

_NEEDED = ("url", "text")
_WHY = {"extracted_by": "string", "status": "string", "error": "string", "confidence": "double", "coverage": "double"}
"""Columns that say why a page is as it is, with their types: null where a table lacks them."""

_FIGURES = ("f1", "precision", "recall", "rouge_f1", "rouge_precision", "rouge_recall", "snippets")
_DECIMALS = 6
"""Means are rounded: the order in which Spark adds up decides about digits behind."""


def run(spark: SparkSession, options: EvaluateOptions) -> Iterable[str]:
    """Evaluate, write the tables if asked to, and return lines to print.

    The lines end with a JobError if a figure fell below its floor. Raises RequestError where nothing can be compared.
    """
    if options.floors is None and (options.set_floors or options.lower_floors):
        raise RequestError("--set-floors and --lower-floors need --floors FILE, the file to write")
    told: Iterable[str] = passes.execute("evaluate", partial(_run, spark, options))
    return told


def _run(spark: SparkSession, options: EvaluateOptions) -> Iterator[str]:
    with ExitStack() as stack:

        def kept(frame: DataFrame) -> DataFrame:
            stack.callback(frame.persist().unpersist)
            return frame

        return _evaluated(spark, options, kept)


def _evaluated(spark: SparkSession, options: EvaluateOptions, kept: Callable[[DataFrame], DataFrame]) -> Iterator[str]:
    pinned = floors.read(options.floors) if options.floors else None
    pages = kept(read_truth(spark, options.truth, options.split))
    extractions = read_extractions(spark, options.extractions)
    known, left_out = _check(pages, options)
    ours = kept(first_of_url(extractions, _keys(pages)))
    scores = kept(evaluate(pages.where("problem IS NULL"), ours))
    if not scores.where("extracted_by != 'missing'").head(1):
        raise RequestError(_nothing_common(pages, extractions, options))
    rows = figures(scores).orderBy("dimension", "value")
    if options.output:
        tables.write(scores.orderBy("set", "url"), tables.SCORES, storage.join(options.output, "pages"))
        tables.write(rows, tables.FIGURES, storage.join(options.output, "figures"))
    found = [row.asDict() for row in rows.collect()]
    found += scoreboard.means_of_means(found)
    extra = extractions.join(_keys(pages), "url", "left_anti").count()
    lines = [
        *scoreboard.lines(found, _counts(scores, ours) | {"extra": extra, "left_out": left_out}),
        *scoreboard.worst(_worst(scores, options.worst)),
    ]
    fallen = [] if pinned is None else _pin(options, pinned, known, found, lines)
    return _told(lines, fallen, options.floors)


def read_truth(spark: SparkSession, paths: Sequence[str], split: str | None) -> DataFrame:
    """Read ground truth: rows of `truth.SCHEMA`, of one split if asked. Raises InputError where there is no file."""
    try:
        files = list_splits(paths, SourceOptions(format="jsonl"))
        places = [truth.place(file.path) for file in files]
    except (ValueError, OSError) as error:
        raise InputError(f"--truth: {error}") from error
    task = partial(_read, places=[dataclasses.astuple(place) for place in places])
    frame = spark.range(0, len(places), 1, len(places)).mapInArrow(task, tables.spark_schema(truth.SCHEMA))
    # What is no ground truth stays, to be told of.
    return frame if split is None else frame.where((F.col("split") == split) | (F.col("problem") == "damaged"))


def _read(batches: Iterable[pa.RecordBatch], places: list[tuple[Any, ...]]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from parts.batches(truth.read(truth.Place(*places[number])), truth.SCHEMA)


def read_extractions(spark: SparkSession, path: str) -> DataFrame:
    """Read extractions: url, text, what `_WHY` names, and `address`, which orders them.

    Raises InputError where there is no table, TableError where it lacks a column.
    """
    below = storage.join(path, "extractions")
    directory = below if storage.exists(below) else path
    try:
        frame = spark.read.parquet(storage.qualified(directory))
    except PySparkException as error:
        raise InputError(f"--extractions: {directory} is no Parquet table: {_first_line(error)}") from error
    names = frame.columns
    if missing := [name for name in _NEEDED if name not in names]:
        raise TableError(
            f"--extractions: {directory} has no column {' and no '.join(map(repr, missing))}; it has {', '.join(names)}"
        )
    why = [(F.col(name) if name in names else F.lit(None)).cast(kind).alias(name) for name, kind in _WHY.items()]
    order = [F.col(name) for name in ("split", "offset") if name in names] + [F.xxhash64("text")]
    texts = [F.col(name).cast("string").alias(name) for name in _NEEDED]
    return frame.select(*texts, *why, F.struct(*order).alias("address"))


def first_of_url(extractions: DataFrame, keys: DataFrame) -> DataFrame:
    """Keep one extraction of each URL among the keys, the first by address; `rows` says how many there were."""
    row = F.struct("text", *_WHY)
    wanted = extractions.join(keys, "url", "left_semi")
    chosen = wanted.groupBy("url").agg(F.min_by(row, "address").alias("row"), F.count("*").alias("rows"))
    return chosen.select("url", "row.*", "rows")


def _keys(pages: DataFrame) -> DataFrame:
    """Return the URLs and ids of ground truth: small beside the texts of a run, most of which it does not name."""
    known = pages.where("problem IS NULL")
    return known.select("url").union(known.select("id")).where("url IS NOT NULL").distinct()


def evaluate(pages: DataFrame, extractions: DataFrame) -> DataFrame:
    """Score pages: ground truth and extractions (one of a URL) → SCORES, one row for every page of ground truth.

    A page is found by its `id` where the extractions' URLs are ids, as in a run on WebMainBench with its track_id
    for a URL, else by its URL. A page without an extraction scores 0.
    """
    ids = extractions.select(F.col("url").alias("id"), F.lit(True).alias("by_id"))
    keyed = pages.join(ids, "id", "left").withColumn("key", F.when(F.col("by_id"), F.col("id")).otherwise(F.col("url")))
    ours = extractions.withColumnRenamed("url", "key").withColumn("is_found", F.lit(True)).drop("rows")
    joined = keyed.join(ours, "key", "left").drop("key", "by_id", "problem", "place", "split")
    return joined.mapInArrow(_score, tables.spark_schema(tables.SCORES))


def _score(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = (score_row(row) for batch in batches for row in batch.to_pylist())
    yield from parts.batches(rows, tables.SCORES)


def score_row(row: Row) -> Row:
    """Score a page: a row of ground truth beside its extraction → a row of SCORES."""
    scored = {name: row[name] for name in tables.SCORES.names if name in row}
    gold, present, absent = (row[name] for name in ("gold_text", "must_contain", "must_not_contain"))
    if row["is_found"]:
        scored["extracted_by"] = row["extracted_by"] or "unknown"
        scored["snippets"] = snippets_passed(row["text"] or "", present or (), absent or ())
    else:
        scored["extracted_by"] = "missing"
        scored["snippets"] = 0.0 if present or absent else None
    if gold is None:
        return scored
    result = score(row["text"] or "", gold)
    values = [value for one in (result.tokens, result.rouge) for value in dataclasses.astuple(one)]
    if not row["is_found"]:
        values = [0.0] * len(values)
    names = ("precision", "recall", "f1", "rouge_precision", "rouge_recall", "rouge_f1")
    return scored | dict(zip(names, values, strict=True)) | {"found": result.found, "wanted": result.wanted}


def figures(scores: DataFrame) -> DataFrame:
    """Average scores over all pages, and by set, page type, language, site, route and WebMainBench's level."""
    both = F.concat_ws(" ", "set", "page_type")
    groups = [
        _group("all", F.lit("all")),
        _group("set", F.col("set")),
        _group("page type", F.col("page_type")),
        _group("set and page type", F.when(F.col("page_type").isNotNull(), both)),
        _group("language", F.col("lang")),
        _group("site", F.col("site")),
        _group("route", F.col("extracted_by")),
        _group("WebMainBench", F.when(F.col("set") == truth.WEBMAINBENCH, F.lit("all"))),
        _group("WebMainBench", F.when(F.col("set") == truth.WEBMAINBENCH, F.col("level"))),
    ]
    long = scores.withColumn("group", F.explode(F.array(*groups))).where("group.value IS NOT NULL")
    has_content = (F.col("wanted") > 0) & (F.col("extracted_by") != "missing")
    means = [F.round(F.avg(name), _DECIMALS).alias(name) for name in _FIGURES]
    found = long.groupBy("group.dimension", "group.value").agg(
        F.count("*").alias("pages"),
        F.count_if(F.col("extracted_by") == "missing").alias("missing"),
        F.round(F.avg(F.when(has_content, (F.col("found") == 0).cast("double"))), _DECIMALS).alias("empty"),
        *means,
        F.round(F.percentile("f1", 0.05), _DECIMALS).alias("f1_p5"),
        F.round(F.avg((F.col("f1") < 0.5).cast("double")), _DECIMALS).alias("below_half"),
    )
    return found.select(tables.FIGURES.names)


def _group(dimension: str, value: Column) -> Column:
    return F.struct(F.lit(dimension).alias("dimension"), value.cast("string").alias("value"))


def _check(pages: DataFrame, options: EvaluateOptions) -> tuple[floors.Truth, int]:
    """Return what identifies the ground truth, and how many pages have none; raises InputError if it is no use."""
    digest = F.bit_xor(F.xxhash64("url", "gold_text", "must_contain", "must_not_contain"))
    counted = pages.groupBy("problem").agg(F.count("*"), digest, F.min("place")).collect()
    by_problem = {row[0]: tuple(row)[1:] for row in counted}
    if "damaged" in by_problem:
        number, _, first = by_problem["damaged"]
        raise InputError(f"--truth: {number:,} lines can't be read, of which {first}")
    if None not in by_problem:
        if "without" in by_problem:
            raise InputError(
                "--truth: no page has ground truth (gold_text, must_contain, must_not_contain; of WebMainBench "
                f"main_html, html with cc-select, groundtruth_content), not even {by_problem['without'][2]}"
            )
        raise InputError(f"--truth: no page is of the split {options.split!r}" if options.split else "--truth: no page")
    number, value, _ = by_problem[None]
    return floors.Truth(number, f"{value & (2**64 - 1):016x}"), by_problem.get("without", (0,))[0]


def _nothing_common(pages: DataFrame, extractions: DataFrame, options: EvaluateOptions) -> str:
    ours, theirs = extractions.select("url").head(), pages.where("problem IS NULL").select("url").head()
    if ours is None:
        return f"--extractions: {options.extractions} has no rows"
    return (
        "no URL of the ground truth is among the extractions' (nor is an id): the ground truth has for example "
        f"{theirs and theirs[0]!r}, the extractions {ours[0]!r}. Was the run on other input?"
    )


def _counts(scores: DataFrame, ours: DataFrame) -> dict[str, Any]:
    missing = scores.where("extracted_by = 'missing'").select("url").orderBy("url").limit(5).collect()
    repeated = ours.agg(F.sum(F.col("rows") - 1)).collect()[0][0]
    return {"repeated": repeated or 0, "missing": [row[0] for row in missing]}


def _worst(scores: DataFrame, count: int) -> list[Row]:
    order = (F.col("f1"), F.col("rouge_f1"), F.col("url"))
    return [row.asDict() for row in scores.where("f1 IS NOT NULL").orderBy(*order).limit(count).collect()]


def _pin(
    options: EvaluateOptions, pinned: floors.Floors, known: floors.Truth, found: list[Row], lines: list[str]
) -> list[str]:
    """Compare with the floors and write them if asked to; returns what fell, and adds to the lines what was done."""
    assert options.floors is not None
    reached = floors.reached(found, known)
    fallen = [] if options.lower_floors else floors.fallen(pinned, reached)
    if not fallen and (options.set_floors or options.lower_floors):
        kept = reached if options.lower_floors else floors.raised(pinned, reached)
        storage.write_json(options.floors, floors.to_json(kept))
        lines += ["", f"{len(kept.figures):,} groups of figures are pinned in {options.floors}"]
    elif not pinned.figures:
        raise RequestError(f"{options.floors} pins nothing yet: write it with --set-floors")
    elif not fallen:
        lines += ["", f"no figure fell below its floor in {options.floors}"]
    return fallen


def _told(lines: list[str], fallen: list[str], path: str | None) -> Iterator[str]:
    yield from lines
    if fallen:
        raise JobError(
            f"{len(fallen)} figures fell below their floors in {path}: {'; '.join(fallen)}. "
            "Where that is meant, --lower-floors writes what was reached"
        )


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]
