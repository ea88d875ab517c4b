"""GPUs of tasks and of stages. A cluster can be told of GPUs that it does not have: what is scheduled is the same."""

from __future__ import annotations

import json
import subprocess
import textwrap
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkConf
from test_submit import artefact, cluster_port, daemon, environment, wait_for  # noqa: F401

from spark_jobs import gpus
from spark_jobs.errors import RequestError
from udfs.classifiers import checkpoint

MODEL = "encoder:m?dtype=float16"


def session(master: str, **properties: str) -> Any:
    conf = SparkConf(loadDefaults=False)
    for name, value in properties.items():
        conf.set("spark." + name.replace("_", "."), value)
    return SimpleNamespace(sparkContext=SimpleNamespace(master=master, getConf=lambda: conf))


@pytest.mark.parametrize(
    ("resources", "spec", "placed"),
    [
        (["2"], MODEL, f"{MODEL}&device=cuda:2"),
        (["GPU-8a1f", "GPU-77b0"], MODEL, f"{MODEL}&device=cuda"),
        (["2"], "encoder:m?device=cpu", "encoder:m?device=cpu"),
        (["2"], "embedded", "embedded"),
        ([], MODEL, MODEL),
    ],
)
def test_a_model_goes_to_the_gpu_of_its_task(
    resources: list[str], spec: str, placed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"gpu": SimpleNamespace(addresses=resources)} if resources else {}
    context = SimpleNamespace(resources=lambda: found)
    monkeypatch.setattr(gpus, "TaskContext", SimpleNamespace(get=lambda: context))
    assert gpus.placed(spec) == placed
    monkeypatch.setattr(gpus, "TaskContext", SimpleNamespace(get=lambda: None))
    assert gpus.placed(spec) == spec


def test_a_device_that_is_not_there_is_an_error_that_says_so() -> None:
    pytest.importorskip("torch", reason="comes with the extra `models`")
    with pytest.raises(checkpoint.CheckpointError, match="no device 'cuda:99': torch sees"):
        checkpoint.device("cuda:99")
    assert checkpoint.device("cpu") == checkpoint.Device("cpu", "float32")
    with pytest.raises(checkpoint.CheckpointError, match="use bfloat16"):
        checkpoint.device("cpu", "int8")


def test_dynamic_allocation_brings_executors_of_one_gpu() -> None:
    assert gpus.profile(session("local[2]"), None) is None
    conf = {"dynamicAllocation_enabled": "true", "executor_resource_gpu_discoveryScript": "/opt/find-gpus"}
    profile = gpus.profile(session("yarn", **conf), 0.5)
    assert profile is not None
    assert profile.taskResources["gpu"].amount == 0.5 and profile.taskResources["cpus"].amount == 1
    assert profile.executorResources["cores"].amount == 2
    gpu = profile.executorResources["gpu"]
    assert (gpu.amount, gpu.discoveryScript) == (1, "/opt/find-gpus")


def test_without_it_the_executors_that_there_are_need_gpus() -> None:
    profile = gpus.profile(session("spark://host:7077", executor_resource_gpu_amount="1"), 1.0)
    assert profile is not None and profile.executorResources == {} and profile.taskResources["gpu"].amount == 1
    with pytest.raises(RequestError, match=r"spark\.executor\.resource\.gpu\.amount=1"):
        gpus.profile(session("spark://host:7077", executor_resource_gpu_amount="0"), 1.0)
    for master in ("local", "local[*]", "local[2,4]"):
        with pytest.raises(RequestError, match="needs a standalone, YARN or Kubernetes cluster"):
            gpus.profile(session(master), 1.0)


WORK = """
    from spark_jobs import gpus, passes

    def work(split, isolated):
        tally = passes.Tally()
        tally.counts[gpus.placed("encoder:m")] += 1
        return tally.summary(1)
"""
DRIVER = """
    import json, sys
    from pyspark.sql import SparkSession
    from spark_jobs import gpus, passes
    from spark_jobs.stages import Stage
    from udfs.input.sources import Split
    import gpu_work

    spark = SparkSession.builder.getOrCreate()
    splits = [Split(f"split-{number}") for number in range(4)]
    found = {}
    for name, share in (("plain", None), ("label", 1.0)):
        stage = Stage(name, f"{sys.argv[1]}/{name}", {})
        profile = gpus.profile(spark, share)
        found[name] = passes.totals(passes.run(spark, stage, splits, gpu_work.work, profile))["counts"]
    print("FOUND", json.dumps(found))
"""


@pytest.mark.spark
@pytest.mark.parametrize("dynamic", [False, True])
def test_the_label_stage_alone_gets_gpus(artefact: Path, dynamic: bool, tmp_path: Path) -> None:  # noqa: F811
    """Two workers that say they have GPU 0 and GPU 1; executors of the session have one only without allocation."""
    (tmp_path / "gpu_work.py").write_text(textwrap.dedent(WORK))
    (tmp_path / "driver.py").write_text(textwrap.dedent(DRIVER))
    port = cluster_port()
    master = f"spark://127.0.0.1:{port}"
    properties = {"resource.gpu.amount": "0" if dynamic else "1", "cores": "1", "memory": "600m"}
    command = [f"{environment(artefact)['SPARK_HOME']}/bin/spark-submit", "--properties-file", "conf/local.conf"]
    command += ["--master", master, "--py-files", f"stencil.zip,{tmp_path}/gpu_work.py"]
    for name, value in properties.items():
        command += ["--conf", f"spark.executor.{name}={value}"]
    if dynamic:
        for name in ("enabled", "shuffleTracking.enabled"):
            command += ["--conf", f"spark.dynamicAllocation.{name}=true"]
        command += ["--conf", "spark.dynamicAllocation.executorIdleTimeout=5s"]
    with ExitStack() as cluster:
        cluster.enter_context(daemon(artefact, "org.apache.spark.deploy.master.Master", "--port", str(port)))
        wait_for(port)
        for number in (0, 1):
            script = tmp_path / f"find-{number}"
            script.write_text(f"""#!/bin/sh\necho '{json.dumps({"name": "gpu", "addresses": [str(number)]})}'\n""")
            script.chmod(0o755)
            conf = tmp_path / f"worker-{number}.conf"
            found = f"spark.worker.resource.gpu.amount=1\nspark.worker.resource.gpu.discoveryScript={script}\n"
            conf.write_text(found)
            worker = ("-c", "2", "-m", "2g", "-d", str(tmp_path / f"work-{number}"), "--properties-file", str(conf))
            cluster.enter_context(daemon(artefact, "org.apache.spark.deploy.worker.Worker", *worker, master))
        done = subprocess.run(
            [*command, str(tmp_path / "driver.py"), str(tmp_path / "out")],
            cwd=artefact, env=environment(artefact), capture_output=True, text=True, timeout=300,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    counts = json.loads(done.stdout.split("FOUND ")[1].splitlines()[0])
    assert counts["plain"] == {"encoder:m": 4}
    assert counts["label"].keys() <= {"encoder:m?device=cuda:0", "encoder:m?device=cuda:1"}
    assert sum(counts["label"].values()) == 4
