"""sign: read all pages, write one signature row each."""

from __future__ import annotations

from functools import partial

from pyspark.sql import SparkSession

from spark_jobs import parts, passes, tables
from spark_jobs.options import RunOptions
from spark_jobs.stages import Manifest, Plan
from templates import storage
from udfs.extraction import sign_page
from udfs.guard import Failure, Guard, Limits
from udfs.hosts import host
from udfs.input.sources import Page, SourceOptions, Split, read_split


def run(spark: SparkSession, plan: Plan, options: RunOptions) -> Manifest:
    """Sign every page of the run's input, into `sign/data`."""
    stage = plan.stage("sign", {"input": plan.key})
    work = partial(sign_split, source=plan.source, target=stage.path("data"), limits=limits(options))
    return stage.run(lambda _: passes.totals(passes.run(spark, stage, plan.splits, work)))


def sign_split(split: Split, isolated: bool, source: SourceOptions, target: str, limits: Limits) -> passes.Summary:
    """Write the signatures of one split, in its order; a page that cannot be signed has an error instead."""
    tally = passes.Tally()
    path = storage.join(target, f"{passes.part_name(split)}.parquet")
    with parts.writer(path, tables.SIGNATURES) as out, Guard(sign_page, limits, isolated) as sign:
        for page in read_split(split, source, tally.skipped):
            signature = sign(page) if page.error is None else Failure(page.error)
            if isinstance(signature, Failure):
                tally.failure(page, signature)
                signature = failed(page, signature.reason)
            tally.counts[signature.get("error") or "signed"] += 1
            out.add(signature)
    return tally.summary(out.rows)


def failed(page: Page, reason: str) -> parts.Row:
    """Make the row of a page that has no signature."""
    return {
        "page_id": page.page_id,
        "url": page.url,
        "host": host(page.url),
        "split": page.split,
        "offset": page.offset,
        "truncated": page.truncated,
        "error": reason,
    }


def limits(options: RunOptions) -> Limits:
    """Take a page's bounds from the options."""
    return Limits(options.page_seconds, options.page_memory_mb << 20)
