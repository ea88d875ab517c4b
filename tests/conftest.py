from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The same examples on every run, so that a change is judged by what it changed; HYPOTHESIS_PROFILE=default explores.
settings.register_profile("same", derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

ROOT = Path(__file__).resolve().parent.parent
CONF = ROOT / "conf"
MASTER = "local[2,4]"  # two workers; 4 attempts a task, since a local master allows one by default


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that uses the session, so that `-m "not spark"` needs no JVM."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


def properties(path: Path) -> dict[str, str]:
    """The properties of a conf file as spark-submit reads them."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The only session of a pytest process, with the properties of conf/local.conf."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = str(ROOT / "tests")  # workers import functions of test modules by name
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ.pop("SPARK_HOME", None)
    builder = SparkSession.builder.appName("stencil tests")
    logging = (CONF / "log4j2.properties").as_uri()
    overrides = {
        "spark.master": MASTER,
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={logging}",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.ui.enabled": "false",
    }
    for name, value in (properties(CONF / "local.conf") | overrides).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of corpora and faults beside the repository."""
    path = ROOT.parent / "shared"
    if not path.is_dir():
        pytest.skip("no ../shared beside the repository: corpora and faults are not part of it")
    return path


@pytest.fixture(scope="session")
def corpora(shared: Path) -> Path:
    """Real sites and pages with ground truth."""
    path = shared / "corpora"
    if not path.is_dir():
        pytest.skip("no ../shared/corpora beside the repository")
    return path
