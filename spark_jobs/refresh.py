"""What a run owed to the store that it started from: which templates still serve, and which hosts have drifted."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from templates.store import Store

DRIFTED = 0.5
"""A host has drifted when its stored templates explain less than this share of its pages: its design has changed."""

_SHOWN = 20


def account(known: DataFrame, extractions: DataFrame, store: str, run_id: str) -> dict[str, Any]:
    """Count the pages that stored templates extracted, record that in the store, and name hosts that have drifted.

    known: templates of the store when the run began. Recording again for one run_id changes nothing.
    """
    templates = known.select("host", "template_id").distinct()
    served = extractions.where("extracted_by = 'template'").join(templates.drop("host"), "template_id")
    uses = {row["template_id"]: row["count"] for row in served.groupBy("template_id").count().collect()}
    Store(store).record_uses(uses, run_id)
    hosts = drift(templates, extractions).cache()
    drifted = hosts.where(F.col("explained") < DRIFTED * F.col("pages"))
    first = drifted.orderBy(F.desc("pages"), "host").limit(_SHOWN).collect()
    return {
        "stored_templates": templates.count(),
        "used_templates": len(uses),
        "pages": sum(uses.values()),
        "hosts": hosts.count(),
        "drifted_hosts": drifted.count(),
        "drifted": [row.asDict() for row in first],
    }


def drift(templates: DataFrame, extractions: DataFrame) -> DataFrame:
    """Count the pages of each host that has stored templates, and those that such a template explained."""
    by_stored = templates.select("template_id", F.lit(1).alias("stored"))
    pages = extractions.join(templates.select("host").distinct(), "host").join(by_stored, "template_id", "left")
    return pages.groupBy("host").agg(F.count("*").alias("pages"), F.count("stored").alias("explained"))
