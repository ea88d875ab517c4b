"""Passes over the splits: one task a split, each ended by a small file that says what it did."""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.resource import ResourceProfile
from pyspark.sql import SparkSession

from spark_jobs.errors import JobError
from spark_jobs.stages import Stage
from templates import storage
from udfs.guard import Failure
from udfs.input.sources import Page, Split
from udfs.labelling import Used

log = logging.getLogger("stencil")

Summary = dict[str, Any]
"""What a task did: `rows` written, `counts` and `skipped` by reason, `examples` of unexpected exceptions by
name, and where a model worked its use in `model`; the pass adds split, key and cpu_seconds."""

Work = Callable[[Split, bool], Summary]
"""One split's work; the flag says whether to isolate pages. The file it writes replaces an earlier one."""

_LOG_EVERY_SECONDS = 10.0
_TASK = pa.schema([("split", pa.string())])


def part_name(split: Split) -> str:
    """Name the files of a split: equal on every attempt."""
    return f"part-{hashlib.blake2b(split.name.encode(), digest_size=8).hexdigest()}"


def run(
    spark: SparkSession, stage: Stage, splits: Sequence[Split], work: Work, profile: ResourceProfile | None = None
) -> list[Summary]:
    """Do the work of the splits that have not been done; returns the summaries of all, in the splits' order.

    profile: the resources of its tasks and of their executors, if not those of the session.
    Raises JobError when a task has failed as often as Spark allows.
    """
    for directory in (stage.path("data"), stage.path("done")):
        storage.remove_unfinished(directory)
    progress = _Progress(stage, splits)
    progress.poll()
    missing = [split.name for split in splits if split.name not in progress.done]
    if missing:
        if len(missing) < len(splits):
            log.info("%s: %d of %d splits are done already", stage.name, len(splits) - len(missing), len(splits))
        task = partial(_run_task, names=missing, work=work, done=stage.path("done"), key=stage.key)
        with progress:
            execute(stage.name, lambda: _launch(spark, len(missing), task, profile))
    progress.poll()
    return [progress.done[split.name] for split in splits]


@dataclass
class Tally:
    """Counts what happens to the pages of a split."""

    counts: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    model: Used | None = None

    def failure(self, page: Page, failure: Failure) -> None:
        """Keep the first page of each kind of exception that nobody expected: most likely a fault of ours."""
        if failure.detail:
            self.examples.setdefault(failure.reason, f"{page.url}: {failure.detail}")

    def summary(self, rows: int) -> Summary:
        """Make the summary of a task that has written so many rows."""
        counted = {"counts": dict(self.counts), "skipped": dict(self.skipped)}
        used = {"model": self.model} if self.model is not None else {}
        return {"rows": rows, "examples": self.examples} | counted | used


def totals(summaries: Iterable[Summary]) -> Summary:
    """Add up summaries for a manifest."""
    counts: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    examples: dict[str, str] = {}
    rows, cpu = 0, 0.0
    used: list[Used] = []
    for summary in summaries:
        used += [summary["model"]] if "model" in summary else []
        examples = summary["examples"] | examples
        counts.update(summary["counts"])
        skipped.update(summary["skipped"])
        rows += summary["rows"]
        cpu += summary["cpu_seconds"]
    found: Summary = {"rows": rows, "counts": dict(counts), "skipped": dict(skipped), "examples": examples}
    if used:
        processes = {name for use in used for name in use["processes"]}
        found["model"] = {"loads": sum(use["loads"] for use in used), "processes": len(processes)}
    return found | {"cpu_seconds": round(cpu, 1)}


def execute(name: str, action: Callable[[], Any]) -> Any:
    """Run a Spark action; its failure becomes a JobError of one line."""
    try:
        return action()
    except (PySparkException, Py4JError) as error:
        log.debug("%s failed", name, exc_info=True)
        raise JobError(
            f"{name} failed: {_cause(error)}. What is done is kept: run the same command to resume"
        ) from error


def partitions(spark: SparkSession) -> int:
    """Return the number of partitions for work in Python; left to Spark, few bytes mean few tasks."""
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 200)


def isolated() -> bool:
    """Say whether this task is a retry; those isolate pages, since one may have ended the first attempt."""
    context = TaskContext.get()
    return context is not None and context.attemptNumber() > 0


def _launch(spark: SparkSession, count: int, task: Callable[[int], str], profile: ResourceProfile | None) -> object:
    """Run a task for each number up to count, each in a partition of its own."""
    if profile is not None:  # DataFrames take one from Spark 4.0 on only
        numbers = spark.sparkContext.parallelize(range(count), count)
        return numbers.withResources(profile).map(task).collect()
    # A range puts exactly one split into each partition, which no repartition of a DataFrame promises.
    frame = spark.range(0, count, 1, count)
    return frame.mapInArrow(partial(_run_tasks, task=task), "split string").collect()


def _run_tasks(batches: Iterable[pa.RecordBatch], task: Callable[[int], str]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield pa.RecordBatch.from_pydict({"split": [task(number)]}, _TASK)


def _run_task(number: int, names: Sequence[str], work: Work, done: str, key: str) -> str:
    name = names[number]
    split = Split.parse(name)
    start = _cpu_seconds()
    summary: Summary = {"split": name, "key": key} | work(split, isolated())
    summary["cpu_seconds"] = round(_cpu_seconds() - start, 3)
    storage.write_json(storage.join(done, f"{part_name(split)}.json"), summary)
    return name


def _cpu_seconds() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


class _Progress:
    """The summaries written so far, read while the pass runs and logged now and then."""

    def __init__(self, stage: Stage, splits: Sequence[Split]) -> None:
        self._stage = stage
        self._names = {f"{part_name(split)}.json" for split in splits}
        self._seen: set[str] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.done: dict[str, Summary] = {}

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def poll(self) -> None:
        """Read the summaries that have appeared since the last call."""
        directory = self._stage.path("done")
        new = sorted((self._names & set(storage.list_names(directory, ".json"))) - self._seen)
        with ThreadPoolExecutor(16) as pool:  # an object store answers one small read in tens of milliseconds
            for summary in pool.map(lambda name: storage.read_json(storage.join(directory, name)), new):
                if summary["key"] == self._stage.key:
                    self.done[summary["split"]] = summary
        self._seen.update(new)

    def _watch(self) -> None:
        start = time.monotonic()
        before = self._rows()
        while not self._stop.wait(_LOG_EVERY_SECONDS):
            self.poll()
            rows = self._rows()
            log.info(
                "%s: %d/%d splits, %d pages, %.0f pages/s",
                self._stage.name,
                len(self.done),
                len(self._names),
                rows,
                (rows - before) / (time.monotonic() - start),
            )

    def _rows(self) -> int:
        return sum(summary["rows"] for summary in self.done.values())


def _cause(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if not line.startswith(("at ", "File ", "Traceback")) and "Error" in line]
    return (causes or lines or [type(error).__name__])[-1][:500]
