"""cluster: group the pages of each host by layout, those of known templates first."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from functools import partial

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from spark_jobs import parts, passes, tables
from spark_jobs.options import ClusterOptions
from spark_jobs.stages import Manifest, Plan
from templates import storage
from templates.store import Store
from udfs.clusters import Assignment, Cluster, ClusterParameters, Signature, assign, cluster_host

PARAMETERS = ClusterParameters()

GROWN = pa.schema([*tables.CLUSTERS, ("similarity", pa.float64())])
"""What clustering a host gives: rows of CLUSTERS, and (sketch null) the cluster of each group of pages.

A group is the pages of a host that have one sketch: page_id, sketch, size and count as in `Signature`, and
rank, the group's number among those of its host by page_id, from 1.
"""

_DECIDING = ("store", "max_host_signatures", "audit_pages", "audit_cluster_pages", "witness_pages")

MEMBERS = pa.schema([("salt", pa.int64()), *tables.CLUSTERS, ("size", pa.int64()), ("count", pa.int64())])
"""What goes into a host's task: clusters (frame not null) and groups. salt: the part of a large host.

cluster_id of a group: the cluster whose template has not explained it in an earlier round.
"""


def run(spark: SparkSession, plan: Plan, number: int, options: ClusterOptions) -> Manifest:
    """Cluster the pages of a round, into the tables `clusters` and `assignments`.

    The first round takes all signed pages; a later one those that the round before left unexplained.
    """
    before = "sign" if number == 1 else f"round-{number - 1}/propagate"
    deciding = {name: value for name, value in asdict(options).items() if name in _DECIDING}
    stage = plan.stage(
        f"round-{number}/cluster",
        {before: plan.finished(before)["key"]},
        deciding | {"parameters": asdict(PARAMETERS)},
    )
    return stage.run(lambda attempt: passes.execute(stage.name, lambda: _work(spark, plan, attempt, number, options)))


def _work(spark: SparkSession, plan: Plan, attempt: str, number: int, options: ClusterOptions) -> Manifest:
    pages, candidates = _pages(spark, plan, number)
    known = _known(spark, plan, attempt, number, pages, options.store)
    most = options.max_host_signatures
    groups = collapse(candidates).persist(StorageLevel.DISK_ONLY)
    grown = grow(groups.where(F.col("rank") <= most), known).persist(StorageLevel.DISK_ONLY)
    tables.write(grown.where("sketch IS NOT NULL"), tables.CLUSTERS, storage.join(attempt, "clusters"))
    clusters = tables.read(spark, tables.CLUSTERS, storage.join(attempt, "clusters"))
    found = grown.where("sketch IS NULL")
    if groups.where(F.col("rank") > most).limit(1).count():
        found = found.union(fit(groups.where(F.col("rank") > most), clusters, most))
    assigned = assign_pages(pages, groups, found, clusters)
    tables.write(choose_roles(assigned, clusters, options), tables.ASSIGNMENTS, storage.join(attempt, "assignments"))
    groups.unpersist()
    grown.unpersist()
    return _manifest(spark, attempt)


def _pages(spark: SparkSession, plan: Plan, number: int) -> tuple[DataFrame, DataFrame]:
    """Return a round's pages, rows of SIGNATURES, and those of them that may stand for others."""
    pages = tables.read(spark, tables.SIGNATURES, plan.work("sign", "data")).where("error IS NULL")
    if number == 1:
        pages = pages.withColumn("failed", F.lit(None).cast("string"))
        return pages, pages
    before = plan.work(f"round-{number - 1}", "propagate", "unexplained")
    left = tables.read(spark, tables.UNEXPLAINED, before).select("split", "offset", F.col("cluster_id").alias("failed"))
    pages = pages.join(left, ["split", "offset"])
    candidates = pages
    for earlier in range(1, number):
        # Labelling such a page has failed already.
        labels = tables.read(spark, tables.LABELS, plan.work(f"round-{earlier}", "label", "data"))
        refused = labels.where("error IS NOT NULL").select("page_id")
        candidates = candidates.join(refused, "page_id", "left_anti")
    return pages, candidates


def collapse(pages: DataFrame) -> DataFrame:
    """Collapse pages of equal sketch: signatures → groups, ranked within their host by page_id.

    The page of median text stands for its group: neither an empty nor an endless one.
    """
    same = Window.partitionBy("host", "sketch")
    ordered = same.orderBy("text_chars", "page_id", "split", "offset")
    numbered = pages.withColumn("number", F.row_number().over(ordered)).withColumn("count", F.count("*").over(same))
    middle = numbered.where("number = floor((count + 1) / 2)")
    ranked = middle.withColumn("rank", F.row_number().over(Window.partitionBy("host").orderBy("page_id")).cast("long"))
    return ranked.select("host", "page_id", "sketch", "failed", F.col("text_chars").alias("size"), "count", "rank")


def grow(groups: DataFrame, known: DataFrame) -> DataFrame:
    """Cluster each host in one task: groups and known templates → rows of GROWN, clusters and assignments."""
    layouts = known.where("sketch IS NOT NULL AND frame IS NOT NULL")
    centre = F.element_at("page_ids", 1)
    members = _members(layouts, page_id=centre, salt=F.lit(0)).union(
        _members(groups, cluster_id=F.col("failed"), salt=F.lit(0))
    )
    return _by_host(members, ["host"], grow=True)


def fit(groups: DataFrame, clusters: DataFrame, bucket: int) -> DataFrame:
    """Assign what a large host's sample left over to its clusters, in parallel buckets: → rows of GROWN."""
    salted = _members(groups, cluster_id=F.col("failed"), salt=F.floor((F.col("rank") - 1) / bucket))
    layouts = clusters.join(salted.select("host", "salt").distinct(), "host")
    return _by_host(_members(layouts).union(salted), ["host", "salt"], grow=False)


def assign_pages(pages: DataFrame, groups: DataFrame, found: DataFrame, clusters: DataFrame) -> DataFrame:
    """Give each page the cluster of its group; of pages that no cluster fits, cluster_id is null."""
    templates = clusters.select("cluster_id", "template_id")
    hits = found.select("host", "page_id", "cluster_id", "similarity").join(templates, "cluster_id")
    # The digest instead of the sketch, which is 50 times as long, goes through the shuffle.
    keyed = groups.join(hits, ["host", "page_id"]).withColumn("key", F.md5("sketch"))
    keyed = keyed.select("host", "key", "cluster_id", "template_id", "similarity")
    light = pages.select("page_id", "host", "split", "offset", F.md5("sketch").alias("key"))
    return light.join(keyed, ["host", "key"], "left")


def choose_roles(assigned: DataFrame, clusters: DataFrame, options: ClusterOptions) -> DataFrame:
    """Choose who is labelled and who bears witness in a new cluster: → assignments.

    After the representative come audit and witness pages by page_id: it is a digest, so they are a sample.
    """
    centres = clusters.select("cluster_id", F.col("page_id").alias("centre"))
    joined = assigned.join(centres, "cluster_id", "left")
    layout = Window.partitionBy("cluster_id")
    # Copies of a page have one page_id and one rank. The representative has rank 1.
    order = layout.orderBy(F.desc(F.col("page_id") == F.col("centre")), "page_id")
    ranked = joined.withColumn("rank", F.dense_rank().over(order)).withColumn("pages", F.count("*").over(layout))
    large = F.col("pages") >= options.audit_cluster_pages
    audits = F.when(large, F.least(F.lit(options.audit_pages), F.floor(F.col("pages") / 50))).otherwise(0)
    new = F.col("cluster_id").isNotNull() & F.col("template_id").isNull()
    role = (
        F.when(~new, "sibling")
        .when(F.col("page_id") == F.col("centre"), "representative")
        .when(F.col("rank") <= 1 + audits, "audit")
        .when(F.col("rank") <= 1 + audits + options.witness_pages, "witness")
        .otherwise("sibling")
    )
    return ranked.withColumn("role", role).select(tables.ASSIGNMENTS.names)


def cluster_batches(batches: Iterable[pa.RecordBatch], grow: bool) -> Iterator[pa.RecordBatch]:
    """Cluster, or only assign, the hosts of one partition, whose rows come host by host, clusters first."""
    members = (row for batch in batches for row in batch.to_pylist())

    def found() -> Iterator[parts.Row]:
        for (host, _), group in itertools.groupby(members, key=lambda row: (row["host"], row["salt"])):
            layouts, signatures = _parse(group)
            if grow:
                layouts, assignments = cluster_host(host, signatures, layouts, PARAMETERS)
                yield from ({"host": host} | asdict(layout) for layout in layouts)
            else:
                assignments = assign(signatures, layouts, PARAMETERS)
            yield from (_assignment_row(host, assignment) for assignment in assignments)

    yield from parts.batches(found(), GROWN)


def _parse(group: Iterable[parts.Row]) -> tuple[list[Cluster], list[Signature]]:
    layouts, signatures = [], []
    for row in group:
        if row["frame"] is not None:
            layouts.append(Cluster(row["cluster_id"], row["page_id"], row["sketch"], row["frame"], row["template_id"]))
        else:
            signatures.append(Signature(row["page_id"], row["sketch"], row["size"], row["count"], row["cluster_id"]))
    return layouts, signatures


def _assignment_row(host: str, assignment: Assignment) -> parts.Row:
    return {
        "host": host,
        "page_id": assignment.page_id,
        "cluster_id": assignment.cluster_id,
        "similarity": assignment.similarity,
    }


def _members(frame: DataFrame, **columns: Column) -> DataFrame:
    """Bring clusters or groups into the form of MEMBERS; what they lack is null."""
    own = {name: F.col(name) for name in frame.columns} | columns
    wanted = tables.spark_schema(MEMBERS)
    return frame.select(*(own.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name) for field in wanted))


def _by_host(members: DataFrame, keys: list[str], grow: bool) -> DataFrame:
    order: list[str | Column] = [*keys, F.col("frame").isNull(), "cluster_id", "page_id"]
    ordered = members.repartition(passes.partitions(members.sparkSession), *keys).sortWithinPartitions(*order)
    return ordered.mapInArrow(partial(cluster_batches, grow=grow), tables.spark_schema(GROWN))


def _known(
    spark: SparkSession, plan: Plan, attempt: str, number: int, pages: DataFrame, store: str | None
) -> DataFrame:
    """Copy the store's templates of the input's hosts, so that the run does not depend on what it becomes.

    A later round takes the first one's copy: a page that one stored template has not explained may be another's.
    """
    found: Iterable[parts.Row] = ()
    if number > 1:
        found = parts.read(storage.join(plan.table("round-1/cluster", "known"), "part.parquet"), tables.TEMPLATES)
    elif store is not None and Store(store).files():
        found = Store(store).read([row["host"] for row in pages.select("host").distinct().collect()])
    with parts.writer(storage.join(attempt, "known", "part.parquet"), tables.TEMPLATES) as out:
        for row in found:
            out.add(row)
    return tables.read(spark, tables.TEMPLATES, storage.join(attempt, "known"))


def _manifest(spark: SparkSession, attempt: str) -> Manifest:
    assignments = tables.read(spark, tables.ASSIGNMENTS, storage.join(attempt, "assignments"))
    clusters = tables.read(spark, tables.CLUSTERS, storage.join(attempt, "clusters"))
    fitting = F.when(F.col("cluster_id").isNull(), "no cluster").otherwise(F.col("role")).alias("role")
    counts = {row["role"]: row["count"] for row in assignments.groupBy(fitting).count().collect()}
    rows = sum(counts.values())
    known = F.when(F.col("template_id").isNull(), "new clusters").otherwise("known clusters").alias("kind")
    counts |= {row["kind"]: row["count"] for row in clusters.groupBy(known).count().collect()}
    return {"rows": rows, "counts": counts, "skipped": {}, "cpu_seconds": 0.0}
