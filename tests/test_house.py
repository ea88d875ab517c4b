from __future__ import annotations

import ast
import dataclasses
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import CONF, ROOT, properties

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

PACKAGES = ("spark_jobs", "udfs", "templates")
VERSIONS = ("3.5", "4.0", "4.3")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def pins(version: str) -> dict[str, str]:
    text = (CONF / f"constraints-{version}.txt").read_text(encoding="utf-8")
    return {
        name.lower().replace("_", "-"): value for name, value in re.findall(r"^([\w.-]+)==(\S+)$", text, re.MULTILINE)
    }


def modules(*packages: str) -> list[str]:
    names = []
    for package in packages:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return [name for name in names if not name.endswith("__main__")]


# --- layers


@pytest.mark.skipif(find_spec("importlinter") is None, reason="import-linter is a development tool")
def test_layers_never_point_back() -> None:
    done = run(sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()", "--no-cache")
    assert done.returncode == 0, done.stdout + done.stderr


TORCH = ("udfs.training.learning", "udfs.training.trainable")


@pytest.mark.parametrize("package", PACKAGES)
def test_modules_import_without_torch_and_below_the_jobs_without_spark(package: str) -> None:
    """A finder that refuses the package shows imports at module level, whether it is installed or not.

    Two modules of udfs.training are about torch: there, the others import them where they are called.
    """
    refused = ["torch", "transformers", "vllm"] + (["pyspark"] if package != "spark_jobs" else [])
    script = f"""
import importlib, sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {refused!r}:
            raise RuntimeError(f"{{name}} is imported at module level")
sys.meta_path.insert(0, Refuse())
for module in {[name for name in modules(package) if name not in TORCH]!r}:
    importlib.import_module(module)
"""
    done = run(sys.executable, "-c", script)
    assert done.returncode == 0, done.stderr


def test_no_test_package_shadows_the_project() -> None:
    assert not list((ROOT / "tests").rglob("__init__.py"))


# --- packaging


def test_every_spark_has_a_constraints_file_within_the_declared_ranges() -> None:
    from packaging.requirements import Requirement

    for version in VERSIONS:
        pinned = pins(version)
        extra = "spark35" if version == "3.5" else "spark"
        for line in PROJECT["dependencies"] + PROJECT["optional-dependencies"][extra]:
            wanted = Requirement(line)
            assert wanted.specifier.contains(pinned[wanted.name]), (
                f"Spark {version}: {wanted} but {pinned[wanted.name]}"
            )
        assert pinned["pyspark"].startswith(version)


def test_the_oldest_spark_runs_with_the_lowest_versions_that_are_declared() -> None:
    from packaging.requirements import Requirement

    for line in PROJECT["dependencies"]:
        wanted = Requirement(line)
        assert f">={pins('3.5')[wanted.name]}" in str(wanted.specifier)


def test_development_tools_are_pinned() -> None:
    names = PROJECT["optional-dependencies"]["dev"] + ["trafilatura"]
    assert set(names) <= set(pins("dev"))


def imported(*folders: str) -> set[str]:
    """Top-level names that the modules of some folders import and that are neither ours nor of Python."""
    found: set[str] = set()
    ours = set(PACKAGES)
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        ours.add(path.stem)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found.update(alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.split(".")[0])
    return found - ours - set(sys.stdlib_module_names)


def declared(lines: list[str]) -> set[str]:
    from packaging.requirements import Requirement

    return {Requirement(line).name.replace("-", "_").lower() for line in lines}


def test_dependencies_are_what_is_imported() -> None:
    optional = {"torch", "transformers", "selectolax", "vllm", "pyspark", "py4j"}
    # Spark's Arrow functions ask for pandas.
    assert (imported(*PACKAGES) - optional) | {"pandas"} == declared(PROJECT["dependencies"])


def test_tools_of_tests_are_installed_by_setup() -> None:
    known = declared(PROJECT["dependencies"] + PROJECT["optional-dependencies"]["dev"])
    tests = imported("tests") - imported("tests/bench")
    assert tests - known <= {"packaging", "pyspark"}  # pytest brings packaging


def test_torch_is_an_extra_only() -> None:
    assert not [
        line for line in PROJECT["dependencies"] if line.startswith(("torch", "transformers", "vllm", "pyspark"))
    ]


def test_build_commands_are_listed() -> None:
    done = run("bash", "build.sh", "help")
    assert done.returncode == 0
    for command in ("setup", "test", "check", "package", "demo", "bench", "matrix"):
        assert f"\n  {command} " in done.stdout
    wrong = run("bash", "build.sh", "nonsense")
    assert wrong.returncode == 2 and "unknown command: nonsense" in wrong.stderr


# --- conf


@pytest.fixture(params=["local", "dataproc", "emr"])
def conf(request: pytest.FixtureRequest) -> Iterator[Path]:
    yield CONF / f"{request.param}.conf"


@pytest.mark.parametrize("path", sorted(CONF.glob("*.conf")), ids=lambda path: path.name)
def test_conf_files_hold_properties_with_reasons(path: Path) -> None:
    reasoned = False
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            reasoned = True
        elif line:
            assert re.fullmatch(r"spark\.[\w.-]+=\S+", line), line
            assert reasoned, f"no reason above {line}"
        else:
            reasoned = False


def test_conf_files_are_complete(conf: Path) -> None:
    found = properties(conf)
    assert found["spark.sql.ansi.enabled"] == "true"
    assert found["spark.python.worker.reuse"] == "true"
    assert found["spark.speculation"] == "false"
    assert int(found["spark.sql.execution.arrow.maxRecordsPerBatch"]) <= 500
    assert found["spark.sql.session.timeZone"] == "UTC"


def test_a_session_without_a_conf_file_has_the_properties_of_local_conf() -> None:
    from spark_jobs.session import LOCAL_PROPERTIES

    found = properties(CONF / "local.conf")
    assert {name: found.get(name) for name in LOCAL_PROPERTIES} == LOCAL_PROPERTIES


@pytest.mark.parametrize("path", sorted(CONF.glob("*.args")), ids=lambda path: path.name)
def test_saved_options_are_options(path: Path) -> None:
    from spark_jobs.options import parse

    job, options = parse(["extract", f"@{path}", "--output", "elsewhere"])
    assert job == "extract" and options.output == "elsewhere" and options.store


# --- text


def test_no_path_of_a_developers_machine() -> None:
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard")
    if listed.returncode:
        pytest.skip("not a git checkout")
    pattern = re.compile(r"/(work|home|root|Users|tmp/lab)/[\w.]")
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix in {".py", ".md", ".sh", ".toml", ".conf", ".txt", ".args"} and path.is_file():
            assert not pattern.search(path.read_text(encoding="utf-8").replace(pattern.pattern, "")), name


def test_readme_names_build_commands_that_exist() -> None:
    usage = run("bash", "build.sh", "help").stdout
    for command in re.findall(r"\./build\.sh (\w+)", (ROOT / "README.md").read_text(encoding="utf-8")):
        assert f"\n  {command} " in usage, command


def readme_commands() -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = "".join(re.findall(r"```\n(.*?)```", text, re.DOTALL)).replace("\\\n", " ")
    found = blocks.splitlines() + re.findall(r"`(stencil [^`]+)`", text)
    return [line.split("#")[0].strip() for line in found if re.match(r"(stencil|spark-submit) ", line)]


@pytest.mark.parametrize("command", readme_commands())
def test_readme_commands_are_understood(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    from spark_jobs.options import parse

    arguments = shlex.split(command.split("spark_jobs/__main__.py")[-1].removeprefix("stencil "))
    if "--help" in arguments:
        with pytest.raises(SystemExit) as ended:
            parse(["extract" if word == "JOB" else word for word in arguments])
        assert ended.value.code == 0 and "usage: stencil" in capsys.readouterr().out
    else:
        parse([f"@{ROOT / word[1:]}" if word.startswith("@") else word for word in arguments])


def test_readme_names_every_column_and_only_options_that_exist() -> None:
    from spark_jobs.options import ExtractOptions
    from spark_jobs.tables import EXTRACTIONS

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    output = text.split("### Output")[1].split("##")[0]
    assert not [name for name in EXTRACTIONS.names if f"`{name}`" not in output]
    named = set(re.findall(r"`--([a-z-]+)", text.split("### Options")[1].split("###")[0])) - {"help"}
    assert named <= {field.name.replace("_", "-") for field in dataclasses.fields(ExtractOptions)}


# --- Spark


def _lengths(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for batch in batches:
        sizes = [len(value) for value in batch.column(0).to_pylist()]
        yield pa.RecordBatch.from_arrays([pa.array(sizes, pa.int64())], names=["size"])


@pytest.mark.smoke
def test_batches_of_pages_are_bounded(spark: SparkSession) -> None:
    rows = spark.createDataFrame([("x" * n,) for n in range(1000)], "html string")
    assert spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") == "128"
    sizes = rows.mapInArrow(_lengths, "size long").collect()
    assert sorted(row["size"] for row in sizes) == list(range(1000))
