"""extract: the main job, all stages in order, and the account of the run."""

from __future__ import annotations

import platform
from dataclasses import asdict
from importlib import metadata
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs import __version__, cluster, induce, label, passes, propagate, refresh, sign, stages, tables
from spark_jobs.errors import JobError
from spark_jobs.options import ExtractOptions, SignOptions
from spark_jobs.stages import Manifest, Plan
from templates import storage

Report = dict[str, Any]
"""What run.json holds."""

_LIBRARIES = ("pyspark", "lxml", "pyarrow", "numpy", "tldextract", "torch", "transformers")
_OF_A_STAGE = ("rows", "counts", "examples", "model", "seconds", "cpu_seconds")
_NOT_OF_THE_RUN = ("master", "conf", "overwrite")


def run(spark: SparkSession, options: ExtractOptions) -> Report:
    """Run what is not done of a run, check that every page has one row, and write run.json.

    Raises RequestError where the output holds another run, JobError where a stage or the check fails.
    """
    plan = stages.begin(options)
    passes.log.info("input: %d splits", len(plan.splits))
    done = {"sign": sign.run(spark, plan, options)}
    for number in range(1, options.rounds + 1):
        name = f"round-{number}"
        done[f"{name}/cluster"] = cluster.run(spark, plan, number, options)
        done[f"{name}/label"] = label.run(spark, plan, number, options)
        done[f"{name}/induce"] = induce.run(spark, plan, number, options)
        done[f"{name}/propagate"] = propagate.run(spark, plan, number, options)
        if not done[f"{name}/propagate"]["counts"].get("unexplained"):
            break
    storage.remove_unfinished(plan.extractions)
    extractions = tables.read(spark, tables.EXTRACTIONS, plan.extractions)
    check(tables.read(spark, tables.SIGNATURES, plan.work("sign", "data")), extractions)
    report = account(spark, options, plan, done, extractions)
    if options.store is not None:
        known = tables.read(spark, tables.TEMPLATES, plan.table("round-1/cluster", "known"))
        report["store"] = refresh.account(known, extractions, options.store, done["round-1/cluster"]["key"])
    storage.write_json(storage.join(plan.output, "run.json"), report)
    with storage.publish(storage.join(plan.extractions, "_SUCCESS")) as path, open(path, "wb"):
        pass
    return report


def check(signatures: DataFrame, extractions: DataFrame) -> None:
    """Raise JobError unless the written extractions hold exactly the pages that were signed."""

    def census(table: DataFrame, name: str) -> DataFrame:
        pages = F.struct(F.count("*").alias("pages"), F.expr("bit_xor(xxhash64(offset, page_id))").alias("digest"))
        return table.groupBy("split").agg(pages.alias(name))

    both = census(signatures, "signed").join(census(extractions, "extracted"), "split", "full_outer")
    wrong = both.where(~F.col("signed").eqNullSafe(F.col("extracted"))).orderBy("split").limit(3).collect()
    if wrong:
        splits = ", ".join(
            f"{row['split']} ({row['signed'] and row['signed']['pages']} pages signed, "
            f"{row['extracted'] and row['extracted']['pages']} extracted)"
            for row in wrong
        )
        raise JobError(
            f"not every page has exactly one row: {splits}. Has something else written to the output? "
            "If not, please report it. Start anew with --overwrite"
        )


def account(
    spark: SparkSession,
    options: SignOptions,
    plan: Plan,
    done: dict[str, Manifest],
    extractions: DataFrame,
) -> Report:
    """Account for a run, from the tables that it wrote; the first of its stages has read the whole input."""
    counted = extractions.groupBy("extracted_by", "error").count().collect()
    routes: dict[str, int] = {}
    errors: dict[str, int] = {}
    for row in counted:
        routes[row["extracted_by"]] = routes.get(row["extracted_by"], 0) + row["count"]
        if row["error"] is not None:
            errors[row["error"]] = errors.get(row["error"], 0) + row["count"]
    pages = sum(routes.values())
    first = next(iter(done.values()))
    labelled = sum(
        manifest["rows"] - manifest["counts"].get("witness", 0)
        for name, manifest in done.items()
        if name.split("/")[-1] == "label"
    )
    return {
        "options": {name: value for name, value in asdict(options).items() if name not in _NOT_OF_THE_RUN},
        "versions": versions(spark),
        "input": {"splits": len(plan.splits), "key": plan.key, "skipped": first["skipped"]},
        "pages": pages,
        "extracted_by": dict(sorted(routes.items())),
        "errors": dict(sorted(errors.items())),
        "labelled_pages": labelled,
        "pages_per_labelled_page": round(pages / labelled, 2) if labelled else None,
        "stages": {
            name: {part: manifest[part] for part in _OF_A_STAGE if part in manifest} for name, manifest in done.items()
        },
        "seconds": round(sum(manifest["seconds"] for manifest in done.values()), 1),
    }


def versions(spark: SparkSession) -> dict[str, str]:
    """List the versions of what a result may depend on."""
    found = {"stencil": __version__, "python": platform.python_version(), "spark": spark.version}
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue  # models are an extra
    return found


def table(report: Report) -> list[str]:
    """Make the short table for the terminal."""
    pages = report["pages"]
    share = f"{report['labelled_pages'] / pages:.1%}" if pages else "-"
    reuse = report["pages_per_labelled_page"]
    lines = [f"{pages:,} pages in {report['input']['splits']:,} splits"]
    for title, counts in (("extracted by", report["extracted_by"]), ("errors", report["errors"])):
        if counts:
            lines.append(title)
            lines += [f"  {count:>12,}  {count / pages:>6.1%}  {name}" for name, count in counts.items()]
    if report["input"]["skipped"]:
        lines.append("records of the input that are no pages")
        lines += [f"  {count:>12,}          {name}" for name, count in sorted(report["input"]["skipped"].items())]
    lines.append(f"labelled pages: {report['labelled_pages']:,} ({share}); pages per labelled page: {reuse or '-'}")
    if stored := report.get("store"):
        lines.append(
            f"store: {stored['used_templates']:,} of {stored['stored_templates']:,} templates extracted "
            f"{stored['pages']:,} pages; {stored['drifted_hosts']:,} of {stored['hosts']:,} known hosts have drifted"
        )
        lines += [
            f"  {row['explained']:>6,} of {row['pages']:>6,} pages explained  {row['host']}"
            for row in stored["drifted"]
        ]
    for name, stage in report["stages"].items():
        if used := stage.get("model"):
            lines.append(f"{name}: the model was loaded {used['loads']:,} times, in {used['processes']:,} processes")
    lines.append("time")
    for name, stage in report["stages"].items():
        lines.append(f"  {stage['seconds']:>10,.1f} s  {name}")
    lines.append(f"  {report['seconds']:>10,.1f} s  in all")
    return lines
