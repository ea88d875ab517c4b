"""label: let the classifier read the representative pages of clusters that have no template."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs import gpus, parts, passes, sidecars, tables
from spark_jobs.options import LabelOptions, ModelOptions
from spark_jobs.sign import limits
from spark_jobs.stages import Manifest, Plan
from templates import storage
from templates.labels import Labels
from udfs.classifiers import specs
from udfs.guard import Failure, Limits
from udfs.input.sources import Page, SourceOptions, Split, fetch
from udfs.labelling import Labeller


def run(spark: SparkSession, plan: Plan, number: int, options: LabelOptions) -> Manifest:
    """Label the representative and audit pages of a round, into `label/data`, within the model budget."""
    cluster = plan.finished(f"round-{number}/cluster")
    spec = spec_of(options)
    stage = plan.stage(
        f"round-{number}/label",
        {"cluster": cluster["key"]},
        {"classifier": specs.identity(spec), "model_budget": options.model_budget},
    )

    def work(attempt: str) -> Manifest:
        assignments = tables.read(spark, tables.ASSIGNMENTS, plan.table(f"round-{number}/cluster", "assignments"))
        pages = choose(assignments, left(plan, number, options.model_budget))
        side = storage.join(attempt, "side")
        sidecars.write(stage.name, [pages], side)
        task = partial(
            label_split,
            source=plan.source,
            side=side,
            target=stage.path("data"),
            spec=spec,
            limits=bounds(options, spec),
        )
        profile = gpus.profile(spark, options.label_gpus)
        return passes.totals(passes.run(spark, stage, sidecars.splits(side, plan.splits), task, profile))

    return stage.run(work)


def choose(assignments: DataFrame, budget: int | None) -> DataFrame:
    """Choose the pages to read: assignments → rows of SIDECARS, one for each page_id.

    Of clusters without a template; under a budget, the largest clusters first. Witnesses cost no label.
    """
    address = F.min(F.struct("split", "offset")).alias("address")
    new = assignments.where((F.col("role") != "sibling") & F.col("template_id").isNull())
    pages = new.groupBy("page_id", "host", "cluster_id", "role").agg(address)
    witnesses = pages.where("role = 'witness'")
    labelled = pages.where("role != 'witness'")
    if budget is not None:
        sizes = assignments.groupBy("cluster_id").agg(F.count("*").alias("pages"))
        # All representatives come before any audit page.
        order = (F.desc("role"), F.desc("pages"), "cluster_id", "page_id")
        labelled = labelled.join(sizes, "cluster_id").orderBy(*order).limit(budget).select(pages.columns)
        witnesses = witnesses.join(labelled.select("cluster_id"), "cluster_id", "left_semi").select(pages.columns)
    return labelled.union(witnesses).select(
        "address.split",
        F.lit(sidecars.PAGE).alias("kind"),
        "address.offset",
        "page_id",
        "host",
        "role",
        "cluster_id",
    )


def label_split(
    split: Split, isolated: bool, source: SourceOptions, side: str, target: str, spec: str, limits: Limits
) -> passes.Summary:
    """Fetch the chosen pages of one split and write their labels, or an error instead."""
    wanted = {row["offset"]: row for row in sidecars.read(side, split)}
    tally = passes.Tally()
    path = storage.join(target, f"{passes.part_name(split)}.parquet")
    pages = fetch(split, sorted(wanted), source)
    with parts.writer(path, tables.LABELS) as out, Labeller(gpus.placed(spec), limits, isolated) as label:
        for batch in label.batches(pages):
            unlabelled = [page for page in batch if wanted[page.offset]["role"] != "witness"]
            outcomes = dict(zip((page.offset for page in unlabelled), label(unlabelled), strict=True))
            for page in batch:
                outcome = outcomes.get(page.offset)
                if isinstance(outcome, Failure):
                    tally.failure(page, outcome)
                row = _row(page, wanted[page.offset]) | _outcome(outcome, specs.identity(spec))
                tally.counts[row.get("error") or row["role"]] += 1
                out.add(row)
        tally.model = label.used()
    return tally.summary(out.rows)


def _row(page: Page, wanted: parts.Row) -> parts.Row:
    return {
        "page_id": page.page_id,
        "url": page.url,
        "host": wanted["host"],
        "cluster_id": wanted["cluster_id"],
        "role": wanted["role"],
        "html": page.html,
    }


def _outcome(outcome: Labels | Failure | None, classifier: str) -> parts.Row:
    if outcome is None:
        return {}
    if isinstance(outcome, Failure):
        return {"classifier": classifier, "error": outcome.reason}
    return {
        "classifier": classifier,
        "paths": list(outcome.paths),
        "probabilities": list(outcome.probabilities),
    }


def spec_of(options: LabelOptions) -> str:
    """Return the classifier's spec with the options of its model filled in.

    Raises ValueError where it is no model, or says something else.
    """
    if options.label_gpus is not None and not specs.is_model(options.classifier):
        raise ValueError(f"{options.classifier!r} is not a model: --label-gpus is for encoder:PATH and decoder:PATH")
    given = {"device": options.device, "dtype": options.dtype, "batch_tokens": options.max_batch_tokens}
    return specs.filled(options.classifier, **given)


def bounds(options: ModelOptions, spec: str | None) -> Limits:
    """Take the bounds of a page that the classifier of a spec labels from the options."""
    if spec is None or not specs.is_model(spec):
        return limits(options)
    return Limits(options.label_seconds, None)


def left(plan: Plan, number: int, budget: float | None) -> int | None:
    """Count the pages that this round may label: the budget less what earlier rounds have labelled."""
    if budget is None:
        return None
    allowed = int(budget * plan.finished("sign")["rows"]) if budget <= 1 else int(budget)
    earlier = [plan.finished(f"round-{before}/label") for before in range(1, number)]
    used: int = sum(label["rows"] - label["counts"].get("witness", 0) for label in earlier)
    return max(0, allowed - used)
