"""Options: one frozen dataclass a job, which is its whole command line."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path

import pytest

import spark_jobs
from spark_jobs import options, session
from spark_jobs.errors import RequestError
from spark_jobs.options import JOBS, ExtractOptions, parse

ROOT = Path(__file__).parent.parent
STAGES = ("sign", "cluster", "label", "induce", "propagate")


def test_the_defaults_of_the_command_line_are_those_of_the_dataclass() -> None:
    job, parsed = parse(["extract", "--input", "a.warc.gz", "--output", "out"])
    assert job == "extract"
    assert parsed == ExtractOptions(input=("a.warc.gz",), output="out")


def test_every_kind_of_option_is_parsed() -> None:
    text = "extract --input a b --input c --output o --statuses 404,200 --model-budget 0.05"
    text += " --overwrite --conf k=v=w"
    _, parsed = parse(text.split())
    assert parsed.input == ("a", "b", "c")
    assert parsed.statuses == (200, 404)
    assert parsed.model_budget == 0.05
    assert parsed.overwrite is True
    assert parsed.conf == ("k=v=w",)


def test_options_are_frozen() -> None:
    _, parsed = parse(["sign", "--input", "a", "--output", "o"])
    with pytest.raises(dataclasses.FrozenInstanceError):
        parsed.output = "p"


def test_options_come_from_a_file_too(tmp_path: Path) -> None:
    file = tmp_path / "saved.args"
    file.write_text("# the nightly run\n--input=a\n\n--output=o\n--store=s\n")
    assert parse(["extract", f"@{file}", "--output", "o"]) == parse(
        ["extract", "--input", "a", "--output", "o", "--store", "s"]
    )


def test_the_saved_options_of_conf_are_valid() -> None:
    for file in sorted((ROOT / "conf").glob("*.args")):
        assert parse(["extract", f"@{file}", "--output", "o"])[1].output


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "extrct",
        "extract --output o",
        "extract --input a",
        "extract --input a --output o --rounds 0",
        "extract --input a --output o --model-budget -1",
        "extract --input a --output o --format pdf",
        "extract --input a --output o --statuses ok",
        "extract --input a --output o --conf spark.ui.enabled",
        "template hide host --store s",
    ],
)
def test_a_bad_request_is_exit_code_2(arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(arguments.split())
    assert ended.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_help_lists_every_job(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    for job, kind in JOBS.items():
        assert f"    {job}" in text
        assert str(kind.__doc__).split()[0] in text


@pytest.mark.parametrize("job", JOBS)
def test_help_of_a_job_is_complete(job: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse([job, "--help"])
    assert ended.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for field in dataclasses.fields(JOBS[job]):
        flag = "--" + field.name.replace("_", "-")
        assert (field.metadata["help"] if "positional" in field.metadata else flag) in text
        assert len(field.metadata["help"]) > 5
        default = field.default
        if default not in (None, (), False, dataclasses.MISSING):
            shown = ",".join(map(str, default)) if isinstance(default, tuple) else default
            assert f"(default: {shown})" in text


def test_extract_takes_every_option_of_every_stage() -> None:
    own = {field.name: (field.type, field.default) for field in dataclasses.fields(ExtractOptions)}
    for job in STAGES:
        for field in dataclasses.fields(JOBS[job]):
            if (job, field.name) != ("label", "input"):  # with it, label is a job of its own
                assert own[field.name] == (field.type, field.default)


def test_two_parsers_share_nothing() -> None:
    required = ["extract", "--input", "a", "--output", "o"]
    parse([*required, "--conf", "a=b"])
    assert parse(required)[1].conf == ()
    assert options.parser() is not options.parser()


@pytest.mark.parametrize(
    ("master", "effective"),
    [
        ("local", "local[1,4]"),
        ("local[2]", "local[2,4]"),
        ("local[*]", "local[*,4]"),
        ("local[2,1]", "local[2,1]"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
        ("spark://host:7077", "spark://host:7077"),
        ("yarn", "yarn"),
    ],
)
def test_a_local_master_gets_retries(master: str, effective: str) -> None:
    assert session.with_retries(master) == effective


def test_under_spark_submit_the_session_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    with pytest.raises(RequestError, match="spark-submit"):
        session.start(ExtractOptions(input=("a",), output="o", master="local[2]"))


def test_the_local_session_is_that_of_the_conf_file() -> None:
    lines = (ROOT / "conf" / "local.conf").read_text().splitlines()
    conf = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    only_there = {"spark.master", "spark.driver.extraJavaOptions"}
    assert {key: value for key, value in conf.items() if key not in only_there} == session.LOCAL_PROPERTIES


def test_the_version_is_that_of_the_distribution() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == spark_jobs.__version__
