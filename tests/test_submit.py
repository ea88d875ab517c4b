"""The built artefact alone, submitted: to a local master, and to a standalone cluster on loopback."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import CONF, ROOT
from sites import Parts, crawl
from test_encoder import MODELS, checkpoint

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def artefact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the zip, the submitted file, conf/, a crawl, and a Python that does not know the checkout."""
    folder = tmp_path_factory.mktemp("artefact")
    with zipfile.ZipFile(folder / "stencil.zip", "w") as out:
        for package in ("spark_jobs", "udfs", "templates"):
            for path in sorted((ROOT / package).rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:  # as ./build.sh package does
                    out.write(path, path.relative_to(ROOT).as_posix())
    shutil.copy(ROOT / "spark_jobs" / "__main__.py", folder / "job.py")
    shutil.copytree(CONF, folder / "conf")
    with Parts(folder / "crawl", "warc", 40) as out:
        for page in crawl(4, 30, themes=("blog", "docs")):
            out.add(page)
    libraries = folder / "libraries"
    libraries.mkdir()
    import pyspark

    packages = Path(pyspark.__file__).parents[1]
    for path in packages.iterdir():
        if path.suffix != ".pth" and not path.name.startswith(("__editable__", "webstencil")):
            (libraries / path.name).symlink_to(path)
    python = folder / "python"  # -S: no .pth file, and so no editable install, is read
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{libraries}:$PYTHONPATH" exec "{sys.executable}" -S "$@"\n')
    python.chmod(0o755)
    return folder


def environment(folder: Path) -> dict[str, str]:
    import pyspark

    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "SPARK", "PYTHON"))}
    python = str(folder / "python")
    return kept | {
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
    }


EXECUTORS = ("--conf", "spark.executor.memory=800m", "--conf", "spark.executor.cores=1")


def submit(
    folder: Path, output: str, *spark: str, classifier: str = "embedded", options: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    command = [f"{environment(folder)['SPARK_HOME']}/bin/spark-submit", "--properties-file", "conf/local.conf", *spark]
    command += ["--py-files", "stencil.zip", "job.py", "extract", "--input", f"{folder}/crawl/part-*"]
    command += ["--output", str(folder / output), "--classifier", classifier, *options]
    return subprocess.run(command, cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=600)


def report(folder: Path, output: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / output / "run.json").read_text(encoding="utf-8"))
    return found


@contextmanager
def daemon(folder: Path, name: str, *arguments: str) -> Iterator[None]:
    spark = environment(folder)["SPARK_HOME"]
    log = (folder / f"{name.rsplit('.', 1)[-1]}-{arguments[-1].rsplit('/', 1)[-1]}.log").open("wb")
    command = [f"{spark}/bin/spark-class", name, "--host", "127.0.0.1", "--webui-port", "0", *arguments]
    process = subprocess.Popen(command, cwd=folder, env=environment(folder), stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait()
        log.close()


def cluster_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def wait_for(port: int) -> None:
    for _ in range(240):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.25)
    pytest.fail(f"nothing listens on port {port}")


@contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """A cluster of two workers of one core: its master."""
    port = cluster_port()
    master = f"spark://127.0.0.1:{port}"
    with ExitStack() as cluster:
        cluster.enter_context(daemon(folder, "org.apache.spark.deploy.master.Master", "--port", str(port)))
        wait_for(port)
        for number in (1, 2):
            worker = ("-c", "1", "-m", "1g", "-d", str(folder / f"worker{number}"), master)
            cluster.enter_context(daemon(folder, "org.apache.spark.deploy.worker.Worker", *worker))
        yield master


@pytest.mark.smoke
def test_spark_submit_with_the_artefact_alone(artefact: Path) -> None:
    done = submit(artefact, "local", "--master", "local[2,4]", classifier=f"labels:{artefact}/crawl/truth.jsonl.gz")
    assert done.returncode == 0, done.stderr[-2000:]
    account = report(artefact, "local")
    assert account["pages"] == 120
    assert account["extracted_by"]["template"] > 60
    assert account["errors"] == {}
    assert "pages per labelled page" in done.stdout


def test_a_bad_request_ends_with_its_exit_code(artefact: Path) -> None:
    done = submit(artefact, "bad", "--master", "local[1]", classifier="labels:/does/not/exist")
    assert done.returncode == 2
    assert "There is no file '/does/not/exist'" in done.stdout + done.stderr  # spark-submit mixes them


def test_a_standalone_cluster_of_two_workers(artefact: Path) -> None:
    truth = f"labels:{artefact}/crawl/truth.jsonl.gz"
    if not (artefact / "local").exists():
        assert submit(artefact, "local", "--master", "local[2,4]", classifier=truth).returncode == 0
    with standalone(artefact) as master:
        done = submit(artefact, "cluster", "--master", master, *EXECUTORS, classifier=truth)
    assert done.returncode == 0, done.stderr[-2000:]
    assert report(artefact, "cluster")["extracted_by"] == report(artefact, "local")["extracted_by"]
    for path in (artefact / "local" / "extractions").glob("*.parquet"):
        assert (artefact / "cluster" / "extractions" / path.name).read_bytes() == path.read_bytes()
    assert all(any((artefact / f"worker{number}").glob("app-*")) for number in (1, 2))


def test_a_model_on_a_standalone_cluster_is_loaded_once_a_worker(artefact: Path, shared: Path) -> None:
    spec = f"encoder:{checkpoint(shared, MODELS[0])}?chunk_tokens=512"
    options = ("--device", "cpu", "--rounds", "1")
    assert submit(artefact, "model", "--master", "local[2,4]", classifier=spec, options=options).returncode == 0
    with standalone(artefact) as master:
        done = submit(artefact, "models", "--master", master, *EXECUTORS, classifier=spec, options=options)
    assert done.returncode == 0, done.stderr[-2000:]
    here, there = report(artefact, "model"), report(artefact, "models")
    for found in (here, there):
        used = found["stages"]["round-1/label"]["model"]
        assert 1 <= used["loads"] == used["processes"] <= 2
    assert here["labelled_pages"] == there["labelled_pages"] > 0
    assert here["extracted_by"] == there["extracted_by"]
