"""GPUs: the one that Spark assigned to a task, and executors that have one for a single stage."""

from __future__ import annotations

import math
import re

from pyspark import TaskContext
from pyspark.resource import ExecutorResourceRequests, ResourceProfile, ResourceProfileBuilder, TaskResourceRequests
from pyspark.sql import SparkSession

from spark_jobs.errors import RequestError
from udfs.classifiers import specs

_DISCOVERY = "spark.executor.resource.gpu.discoveryScript"


def placed(spec: str) -> str:
    """Return a model's spec with the GPU of this task as its device, unless it names one or the task has none."""
    model = specs.parse(spec)
    context = TaskContext.get()
    found = context.resources().get("gpu") if context is not None else None
    if model is None or found is None or "device" in model.options:
        return spec
    # An address is an index, but for clusters that name GPUs otherwise and show a task no other one.
    address = found.addresses[0]
    return specs.filled(spec, device=f"cuda:{address}" if address.isdecimal() else "cuda")


def profile(spark: SparkSession, share: float | None) -> ResourceProfile | None:
    """Make the resources of a stage whose tasks take so much of a GPU each; None without a share.

    With dynamic allocation the cluster starts executors of one GPU for the stage; else the stage runs on the
    executors that there are, which must have GPUs. Raises RequestError where the master can't do either.
    """
    if share is None:
        return None
    master = spark.sparkContext.master or ""
    if re.match(r"local(\[|$)", master):
        raise RequestError(
            f"--label-gpus needs a standalone, YARN or Kubernetes cluster, and the master is {master}: leave it out "
            "(--device chooses the GPU)"
        )
    conf = spark.sparkContext.getConf()
    task = TaskResourceRequests().cpus(1).resource("gpu", share)
    if conf.get("spark.dynamicAllocation.enabled", "false") != "true":
        if float(conf.get("spark.executor.resource.gpu.amount", "0") or 0) < 1:
            raise RequestError(
                "--label-gpus needs spark.dynamicAllocation.enabled=true, or executors that have GPUs: "
                "spark.executor.resource.gpu.amount=1"
            )
        return ResourceProfileBuilder().require(task).build
    script, vendor = conf.get(_DISCOVERY, ""), conf.get("spark.executor.resource.gpu.vendor", "")
    executor = ExecutorResourceRequests().cores(math.floor(1 / share)).resource("gpu", 1, script or "", vendor or "")
    return ResourceProfileBuilder().require(executor).require(task).build
