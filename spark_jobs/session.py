"""The Spark session: the one that spark-submit started, or a local one."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from spark_jobs.errors import RequestError
from spark_jobs.options import SessionOptions

LOCAL_PROPERTIES = {
    "spark.driver.memory": "4g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.python.worker.reuse": "true",
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "128",
    "spark.speculation": "false",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "16",
    "spark.sql.parquet.compression.codec": "zstd",
}
"""The properties of conf/local.conf, which says why, for a session that no conf file describes."""


def start(options: SessionOptions) -> SparkSession:
    """Return the session under spark-submit, or start a local one from `master` and `conf`."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit's own mark
        if options.conf or options.master != type(options).master:
            raise RequestError("give --master and --conf to spark-submit, before the script, not to the job")
        return SparkSession.builder.appName("stencil").getOrCreate()
    # Workers import this package by name: they need the interpreter and the path that found it here.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    root = str(Path(__file__).resolve().parent.parent)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    builder = SparkSession.builder.appName("stencil").master(with_retries(options.master))
    given = dict(item.split("=", 1) for item in options.conf)
    for key, value in (LOCAL_PROPERTIES | given).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    return spark


def with_retries(master: str) -> str:
    """Give a local master four attempts a task: it has one, and a poison page is isolated on a retry."""
    match = re.fullmatch(r"local(?:\[([^,\]]+)\])?", master)
    return f"local[{match[1] or 1},4]" if match else master
