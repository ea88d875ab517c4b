"""Jobs by name: each is run in a session, and tells what it did in lines of text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.sql import SparkSession

from spark_jobs import cluster, evaluate, extract, induce, label, label_pages, propagate, session, sign, stages
from spark_jobs.errors import RequestError
from spark_jobs.options import LabelJobOptions, LabelOptions
from spark_jobs.stages import Manifest
from udfs.classifiers import from_spec

_ROUND_STAGES = {"cluster": cluster.run, "label": label.run, "induce": induce.run, "propagate": propagate.run}


def run(job: str, options: Any) -> Iterable[str]:
    """Run a job; raises StencilError."""
    for name in ("classifier", "fallback"):
        check_spec(getattr(options, name, "none"))
    if isinstance(options, LabelOptions):
        try:
            label.spec_of(options)
        except ValueError as error:
            raise RequestError(str(error)) from error
    spark = session.start(options)
    try:
        return _run(spark, job, options)
    finally:
        spark.stop()


def _run(spark: SparkSession, job: str, options: Any) -> Iterable[str]:
    if job == "extract":
        return extract.table(extract.run(spark, options))
    if job == "label" and isinstance(options, LabelJobOptions) and options.input:
        return extract.table(label_pages.run(spark, options))
    if job == "evaluate":
        return evaluate.run(spark, options)
    if job == "sign":
        return _lines("sign", sign.run(spark, stages.begin(options), options))
    plan = stages.resume(options.output)
    number = plan.next_round(job)
    stage: Any = _ROUND_STAGES[job]
    return _lines(f"round-{number}/{job}", stage(spark, plan, number, options))


def check_spec(spec: str) -> None:
    """Raise RequestError where a classifier spec is none, before anything starts."""
    if spec == "none":
        return
    try:
        from_spec(spec)
    except (ValueError, OSError) as error:
        raise RequestError(str(error)) from error


def _lines(name: str, manifest: Manifest) -> list[str]:
    counts = [f"  {count:>12,}  {reason}" for reason, count in sorted(manifest["counts"].items())]
    skipped = [f"  {count:>12,}  skipped: {reason}" for reason, count in sorted(manifest["skipped"].items())]
    return [f"{name}: {manifest['rows']:,} rows in {manifest['seconds']:,.1f} s", *counts, *skipped]
