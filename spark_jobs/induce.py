"""induce: make a template of each labelled cluster."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spark_jobs import parts, passes, tables
from spark_jobs.cluster import PARAMETERS
from spark_jobs.options import InduceOptions
from spark_jobs.sign import limits
from spark_jobs.stages import Manifest, Plan, digest
from templates import storage
from templates.store import Store
from udfs.extraction import induce_cluster
from udfs.guard import Failure, Guard, Limits


def run(spark: SparkSession, plan: Plan, number: int, options: InduceOptions) -> Manifest:
    """Induce the templates of a round, into `templates`, and append them to the store if there is one."""
    label = plan.finished(f"round-{number}/label")
    stage = plan.stage(f"round-{number}/induce", {"label": label["key"]}, {"store": options.store})

    def work(attempt: str) -> Manifest:
        labels = tables.read(spark, tables.LABELS, plan.work(f"round-{number}", "label", "data"))
        clusters = tables.read(spark, tables.CLUSTERS, plan.table(f"round-{number}/cluster", "clusters"))
        found = induce(labels, clusters, limits(options), stage.key)
        target = storage.join(attempt, "templates")
        passes.execute(stage.name, lambda: tables.write(found, tables.TEMPLATES, target))
        count = tables.read(spark, tables.TEMPLATES, target).count()
        labelled = labels.where("paths IS NOT NULL").select("cluster_id").distinct().count()
        if options.store is not None:
            names = storage.list_names(target, ".parquet")
            # The stage's key: an append that is repeated after a kill is the same one.
            Store(options.store).append(
                (row for name in names for row in parts.read(storage.join(target, name), tables.TEMPLATES)),
                stage.key,
            )
        counts = {"templates": count, "clusters without": labelled - count}
        return {"rows": count, "counts": counts, "skipped": {}, "cpu_seconds": 0.0}

    return stage.run(work)


def induce(labels: DataFrame, clusters: DataFrame, limits: Limits, run_id: str) -> DataFrame:
    """Make templates: labels and clusters → templates, one for each cluster that has a labelled page."""
    usable = labels.where("error IS NULL").repartition(passes.partitions(labels.sparkSession), "cluster_id")
    ordered = usable.sortWithinPartitions("cluster_id", "role", "page_id")
    task = partial(induce_batches, limits=limits, run_id=run_id)
    bare = ordered.mapInArrow(task, tables.spark_schema(tables.TEMPLATES)).drop("sketch", "frame")
    return bare.join(clusters.select("cluster_id", "sketch", "frame"), "cluster_id").select(tables.TEMPLATES.names)


def induce_batches(batches: Iterable[pa.RecordBatch], limits: Limits, run_id: str) -> Iterator[pa.RecordBatch]:
    """Induce the clusters of one partition, whose rows come cluster by cluster."""
    pages = (row for batch in batches for row in batch.to_pylist())

    parameters = digest(asdict(PARAMETERS))

    def templates() -> Iterator[parts.Row]:
        with Guard(induce_cluster, limits, passes.isolated()) as induced:
            for _, group in itertools.groupby(pages, key=lambda row: row["cluster_id"]):
                evidence = list(group)
                if all(row["paths"] is None for row in evidence):
                    continue  # witnesses alone say nothing
                row = induced(evidence, share=len(evidence))
                if row is not None and not isinstance(row, Failure):
                    yield row | {"parameters": parameters, "created_run": run_id}

    yield from parts.batches(templates(), tables.TEMPLATES)
