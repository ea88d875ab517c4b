"""propagate: bring templates and labels to every split, and write one extraction row for every page."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs import gpus, parts, passes, sidecars, tables
from spark_jobs.label import bounds
from spark_jobs.options import PropagateOptions
from spark_jobs.sign import failed
from spark_jobs.stages import Manifest, Plan
from templates import storage
from templates.labels import Labels
from udfs.classifiers import loaded_once, specs
from udfs.conversion.spans import Modes
from udfs.extraction import Conversion, Decision, extract_page
from udfs.guard import Failure, Guard, Limits
from udfs.input.sources import Page, SourceOptions, Split, fetch, read_split
from udfs.labelling import Bounded


@dataclass(frozen=True)
class Propagation:
    """What a task needs: how to read, where the sidecars are, where to write.

    unexplained: where to list the pages that no template explains; None in the last round, which extracts
    them by the fallback, if it is not None. whole: all pages of the split, not only those in its sidecar.
    """

    source: SourceOptions
    side: str
    extractions: str
    prefix: str
    unexplained: str | None
    fallback: str | None
    whole: bool
    limits: Limits
    conversion: Conversion


def run(spark: SparkSession, plan: Plan, number: int, options: PropagateOptions) -> Manifest:
    """Extract the pages of a round into the run's `extractions/`.

    What no template explains goes to `propagate/unexplained`, or in the last round to the fallback.
    """
    name = f"round-{number}"
    inputs = {part: plan.finished(f"{name}/{part}")["key"] for part in ("cluster", "label", "induce")}
    last = number >= options.rounds
    fallback = options.fallback if last and options.fallback != "none" else None
    kept = specs.identity(fallback) if fallback else None
    conversion = Conversion(options.emit, Modes(options.links, options.images))
    stage = plan.stage(f"{name}/propagate", inputs, {"last": last, "fallback": kept} | asdict(conversion))

    def work(attempt: str) -> Manifest:
        side = storage.join(attempt, "side")
        sidecars.write(stage.name, beside(spark, plan, number), side)
        unexplained = None if last else stage.path("unexplained")
        task = Propagation(
            plan.source,
            side,
            plan.extractions,
            f"{name}-",
            unexplained,
            fallback,
            number == 1,
            bounds(options, fallback),
            conversion,
        )
        splits = plan.splits if number == 1 else sidecars.splits(side, plan.splits)
        return passes.totals(passes.run(spark, stage, splits, partial(propagate_split, task=task)))

    return stage.run(work)


def beside(spark: SparkSession, plan: Plan, number: int) -> list[DataFrame]:
    """Collect what the pages of a round need: rows of SIDECARS, of all kinds."""
    name = f"round-{number}"

    def clustered(table: str, schema: pa.Schema) -> DataFrame:
        return tables.read(spark, schema, plan.table(f"{name}/cluster", table))

    assignments = clustered("assignments", tables.ASSIGNMENTS)
    known = clustered("known", tables.TEMPLATES).select("template_id", "body")
    templates = tables.read(spark, tables.TEMPLATES, plan.table(f"{name}/induce", "templates"))
    templates = templates.select("cluster_id", "template_id", "body")
    stored = clustered("clusters", tables.CLUSTERS).where("template_id IS NOT NULL").join(known, "template_id")
    labels = tables.read(spark, tables.LABELS, plan.work(name, "label", "data"))
    found = [
        pages_beside(assignments),
        templates_beside(assignments, templates.union(stored.select(templates.columns))),
        labels_beside(assignments, labels.where("error IS NULL AND paths IS NOT NULL")),
    ]
    if number == 1:
        signatures = tables.read(spark, tables.SIGNATURES, plan.work("sign", "data"))
        kind = F.lit(sidecars.PAGE).alias("kind")
        errors = signatures.where("error IS NOT NULL")
        found.append(errors.select("split", kind, "offset", "page_id", "error"))
    return found


def pages_beside(assignments: DataFrame) -> DataFrame:
    """Make the page rows: assignments → split, offset, and the page's cluster."""
    kind = F.lit(sidecars.PAGE).alias("kind")
    return assignments.select("split", kind, "offset", "page_id", "role", "cluster_id", "similarity")


def templates_beside(assignments: DataFrame, templates: DataFrame) -> DataFrame:
    """Make the template rows: every template that a page of a split may need, once a split."""
    needed = assignments.select("split", "cluster_id").distinct().join(templates, "cluster_id")
    kind = F.lit(sidecars.TEMPLATE).alias("kind")
    return needed.select("split", kind, "cluster_id", "template_id", "body")


def labels_beside(assignments: DataFrame, labels: DataFrame) -> DataFrame:
    """Make the label rows: the labels of a page, in every split that holds a copy of it."""
    holders = assignments.where("role != 'sibling'").select("split", "page_id").distinct()
    kind = F.lit(sidecars.LABELS).alias("kind")
    found = holders.join(labels, "page_id")
    return found.select("split", kind, "page_id", "paths", "probabilities", "role")


@dataclass
class Sidecar:
    """What a split's pages need: by offset the page's row; templates (JSON) by cluster; labels by page_id."""

    pages: dict[int, parts.Row] = field(default_factory=dict)
    templates: dict[str, str] = field(default_factory=dict)
    labels: dict[str, Labels] = field(default_factory=dict)


def read_sidecar(directory: str, split: Split) -> Sidecar:
    """Read the sidecar of a split; empty where it has none."""
    side = Sidecar()
    for row in sidecars.read(directory, split):
        if row["kind"] == sidecars.TEMPLATE:
            side.templates[row["cluster_id"]] = row["body"]
        elif row["kind"] == sidecars.LABELS:
            side.labels[row["page_id"]] = Labels(tuple(row["paths"]), tuple(row["probabilities"]))
        else:
            side.pages[row["offset"]] = row
    return side


def propagate_split(split: Split, isolated: bool, task: Propagation) -> passes.Summary:
    """Write the extractions of one split, in its order, and list what is left to the next round.

    Raises RuntimeError where the split does not hold the pages that were signed.
    """
    side = read_sidecar(task.side, split)
    tally = passes.Tally()
    pages = (
        read_split(split, task.source, tally.skipped) if task.whole else fetch(split, sorted(side.pages), task.source)
    )
    name = f"{passes.part_name(split)}.parquet"
    fallback = gpus.placed(task.fallback) if task.fallback else None
    bounded = Bounded(fallback, isolated)
    work = partial(extract, side=side, fallback=fallback, conversion=task.conversion)
    seen = 0
    with ExitStack() as stack:
        out = stack.enter_context(parts.writer(storage.join(task.extractions, task.prefix + name), tables.EXTRACTIONS))
        if task.unexplained is not None:
            left = stack.enter_context(parts.writer(storage.join(task.unexplained, name), tables.UNEXPLAINED))
        guarded = stack.enter_context(Guard(work, task.limits, isolated, bounded.prepare))
        for page in pages:
            known = side.pages.get(page.offset)
            if known is None or known["page_id"] != page.page_id:
                raise RuntimeError(f"{split.name} has changed since it was signed: the page at {page.offset} is new")
            seen += 1
            outcome = guarded(page) if known["error"] is None else Failure(known["error"])
            if isinstance(outcome, Failure):
                tally.failure(page, outcome)
                outcome = failure(page, outcome.reason), True
            row, explained = outcome
            if explained or task.unexplained is None:
                out.add(row)
                tally.counts[row["extracted_by"]] += 1
            else:
                left.add(row)
                tally.counts["unexplained"] += 1
        tally.model = bounded.used(guarded.children)
    if seen != len(side.pages):
        raise RuntimeError(f"{split.name} has changed since it was signed: {len(side.pages)} pages then, now {seen}")
    return tally.summary(out.rows)


def extract(page: Page, side: Sidecar, fallback: str | None, conversion: Conversion) -> tuple[parts.Row, bool]:
    """Return a page's row and whether it was explained, by what the sidecar knows of it; raises PageError."""
    cluster_id = side.pages[page.offset]["cluster_id"]
    decision = Decision(cluster_id, side.templates.get(cluster_id), side.labels.get(page.page_id))
    return extract_page(page, decision, loaded_once(fallback) if fallback else None, conversion)


def failure(page: Page, reason: str) -> parts.Row:
    """Make the row of a page that cannot be extracted."""
    return failed(page, reason) | {"status": "error", "extracted_by": "none"}
