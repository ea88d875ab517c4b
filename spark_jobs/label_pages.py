"""label --input: let the classifier read every page, alone, as a comparison for templates or in their place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from typing import NamedTuple

from pyspark.sql import SparkSession

from spark_jobs import extract, gpus, parts, passes, stages, tables
from spark_jobs.errors import JobError, RequestError
from spark_jobs.label import bounds, spec_of
from spark_jobs.options import LabelJobOptions
from spark_jobs.propagate import failure
from spark_jobs.sign import limits
from spark_jobs.stages import Manifest
from templates import storage
from templates.labels import Labels
from udfs.classifiers import specs
from udfs.conversion.spans import Modes
from udfs.extraction import Conversion, Decision, extract_page
from udfs.guard import Failure, Guard, Limits
from udfs.input.sources import Page, SourceOptions, Split, read_split
from udfs.labelling import Labeller


class Labelling(NamedTuple):
    """What a task needs: how to read, who labels within which limits, what is made of it, where to write."""

    source: SourceOptions
    spec: str
    label_limits: Limits
    page_limits: Limits
    conversion: Conversion
    target: str


def run(spark: SparkSession, options: LabelJobOptions) -> extract.Report:
    """Label what is not labelled of a run's pages into `extractions/`, and write run.json.

    Raises RequestError where the output holds another run, JobError where the pass or the check fails.
    """
    if options.model_budget is not None:
        raise RequestError("--model-budget is for representatives: label --input labels every page")
    spec = spec_of(options)
    profile = gpus.profile(spark, options.label_gpus)
    plan = stages.begin(options, "label")
    passes.log.info("input: %d splits", len(plan.splits))
    conversion = Conversion(options.emit, Modes(options.links, options.images))
    stage = plan.stage("label", {"input": plan.key}, {"classifier": specs.identity(spec)} | asdict(conversion))
    task = Labelling(plan.source, spec, bounds(options, spec), limits(options), conversion, plan.extractions)

    def work(_: str) -> Manifest:
        return passes.totals(passes.run(spark, stage, plan.splits, partial(label_pages_of_split, task=task), profile))

    done = stage.run(work)
    storage.remove_unfinished(plan.extractions)
    extractions = tables.read(spark, tables.LABELLED, plan.extractions)
    if (found := extractions.count()) != done["rows"]:
        raise JobError(f"{plan.extractions} has {found} rows, not {done['rows']}: start anew with --overwrite")
    report = extract.account(spark, options, plan, {"label": done}, extractions)
    storage.write_json(storage.join(plan.output, "run.json"), report)
    with storage.publish(storage.join(plan.extractions, "_SUCCESS")) as path, open(path, "wb"):
        pass
    return report


def label_pages_of_split(split: Split, isolated: bool, task: Labelling) -> passes.Summary:
    """Read, label and extract all pages of one split, and write a row for each in its order."""
    tally = passes.Tally()
    path = storage.join(task.target, f"{passes.part_name(split)}.parquet")
    with ExitStack() as stack:
        out = stack.enter_context(parts.writer(path, tables.LABELLED))
        label = stack.enter_context(Labeller(gpus.placed(task.spec), task.label_limits, isolated))
        cut = stack.enter_context(
            Guard(partial(extract_labelled, conversion=task.conversion), task.page_limits, isolated)
        )
        for page, labels in _labelled(read_split(split, task.source, tally.skipped), label):
            row = cut((page, labels)) if isinstance(labels, Labels) else labels
            if isinstance(row, Failure):
                tally.failure(page, row)
                row = failure(page, row.reason)
            out.add(row)
            tally.counts[row.get("error") or row["extracted_by"]] += 1
        tally.model = label.used()
    return tally.summary(out.rows)


def extract_labelled(found: tuple[Page, Labels], conversion: Conversion) -> parts.Row:
    """Return the row of a page, by its labels. Raises PageError where it cannot be parsed."""
    page, labels = found
    row, _ = extract_page(page, Decision(labels=labels), None, conversion)
    return row | {"paths": list(labels.paths), "probabilities": list(labels.probabilities)}


def _labelled(pages: Iterable[Page], label: Labeller) -> Iterator[tuple[Page, Labels | Failure]]:
    for batch in label.batches(pages):
        outcomes = iter(label([page for page in batch if page.error is None]))
        for page in batch:
            yield page, next(outcomes) if page.error is None else Failure(page.error)
