"""label --input: every page of the input labelled by itself."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from hostile import hostile
from sites import Parts, SitePage, crawl
from test_encoder import MODELS, checkpoint
from test_jobs import a_stage, content, files, read, write_crawl

from spark_jobs import extract, jobs, label_pages, passes, session, stages, tables
from spark_jobs.errors import OutputError, RequestError
from spark_jobs.options import ExtractOptions, LabelJobOptions
from udfs.extraction import Conversion
from udfs.guard import Limits
from udfs.input.sources import Split
from udfs.metrics import token_f1

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def pages() -> list[SitePage]:
    return list(crawl(2, 9, themes=("blog", "docs")))


@pytest.fixture(scope="module")
def done(spark: SparkSession, pages: list[SitePage], tmp_path_factory: pytest.TempPathFactory) -> LabelJobOptions:
    """A finished run with perfect labels, on three files."""
    folder = tmp_path_factory.mktemp("labelled")
    options = LabelJobOptions(
        input=(write_crawl(folder / "crawl", pages, files=3),),
        output=str(folder / "out"),
        classifier=f"labels:{folder}/crawl/truth.jsonl.gz",
    )
    label_pages.run(spark, options)
    return options


def test_every_page_is_labelled_by_itself(done: LabelJobOptions, pages: list[SitePage]) -> None:
    out = Path(done.output)
    rows = read(out / "extractions")
    assert Counter(row["url"] for row in rows) == Counter(page.url for page in pages)
    assert {row["extracted_by"] for row in rows} == {"classifier"}
    assert pq.read_schema(next((out / "extractions").glob("*.parquet"))) == tables.LABELLED
    gold = {page.url: page.gold_text for page in pages}
    assert fmean(token_f1(row["text"], gold[row["url"]]) for row in rows) > 0.95
    for row in rows:
        assert len(row["paths"]) == len(row["probabilities"]) and (row["markdown"] or not row["text"])
    report = json.loads((out / "run.json").read_text())
    assert report["pages"] == report["labelled_pages"] == len(pages)
    assert report["extracted_by"] == {"classifier": len(pages)}
    assert "model" not in report["stages"]["label"]
    assert (out / "extractions" / "_SUCCESS").exists()
    assert f"{len(pages)} pages in 3 splits" in "\n".join(extract.table(report))


def test_it_resumes_and_does_nothing_twice(spark: SparkSession, done: LabelJobOptions) -> None:
    out = Path(done.output)
    wanted = files(out / "extractions")
    (out / "_work" / "label" / "manifest.json").unlink()
    unfinished = sorted((out / "_work" / "label" / "done").iterdir())[0]
    unfinished.unlink()
    (out / "extractions" / f"{unfinished.stem}.parquet").unlink()
    (out / "extractions" / f".tmp-0-{unfinished.stem}.parquet").write_bytes(b"PAR1 half a file")
    kept = {path: path.stat().st_mtime_ns for path in (out / "extractions").glob("[!.]*.parquet")}
    label_pages.run(spark, done)
    assert files(out / "extractions") == wanted
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


def test_an_output_belongs_to_one_job(spark: SparkSession, done: LabelJobOptions, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"holds a run of label: choose another --output"):
        stages.begin(ExtractOptions(input=done.input, output=done.output))
    with pytest.raises(OutputError, match="holds a run of label"):
        stages.resume(done.output)
    asked = ExtractOptions(input=done.input, output=str(tmp_path / "out"))
    stages.begin(asked)
    with pytest.raises(OutputError, match="holds a run of extract"):
        label_pages.run(spark, LabelJobOptions(input=done.input, output=asked.output))
    with pytest.raises(OutputError, match=r"classifier was 'labels:.* and is 'embedded'"):
        label_pages.run(spark, LabelJobOptions(**vars(done) | {"classifier": "embedded"}))
    with pytest.raises(RequestError, match="labels every page"):
        label_pages.run(spark, LabelJobOptions(**vars(done) | {"model_budget": 3.0}))


def test_bad_pages_are_rows_and_columns_are_chosen(spark: SparkSession, tmp_path: Path) -> None:
    with Parts(tmp_path / "crawl", "warc", 20, truth=False) as out:
        for name, payload in hostile(size=20):
            out.payload(f"https://hostile.example.com/{name}", payload)
    options = LabelJobOptions(
        input=(str(tmp_path / "crawl"),), output=str(tmp_path / "out"), emit=("content_list",), max_page_bytes=1 << 20
    )
    report = label_pages.run(spark, options)
    rows = read(tmp_path / "out" / "extractions")
    assert report["pages"] == len(rows) == len(list(hostile(20)))
    assert not any(row["markdown"] for row in rows) and any(row["content_list"] for row in rows)
    for row in rows:
        assert (row["status"] == "error") == (row["error"] is not None) == (row["extracted_by"] == "none")
        assert (row["status"] == "error") == (row["paths"] is None)


def test_the_command_labels_pages_where_it_has_an_input(
    spark: SparkSession, done: LabelJobOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "start", lambda _: spark)
    monkeypatch.setattr(type(spark), "stop", lambda _: None)
    assert next(iter(jobs.run("label", done))) == "18 pages in 3 splits"
    with pytest.raises(OutputError, match="holds a run of label"):
        jobs.run("label", LabelJobOptions(output=done.output))


# --- with a tiny model


def killed_once(split: Split, isolated: bool, task: label_pages.Labelling) -> passes.Summary:
    """Do as a page that kills its worker: the retry is isolated."""
    if not isolated:
        os.kill(os.getpid(), signal.SIGKILL)
    return label_pages.label_pages_of_split(split, isolated, task)


def tiny(shared: Path) -> str:
    return f"encoder:{checkpoint(shared, MODELS[0])}?chunk_tokens=512"


def run_of(options: LabelJobOptions) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    return json.loads((Path(options.output) / "run.json").read_text()), content(Path(options.output) / "extractions")


def test_a_model_is_loaded_once_in_each_worker(
    spark: SparkSession, shared: Path, pages: list[SitePage], tmp_path: Path
) -> None:
    """Two workers, six splits; another device or batch size is the same run, another dtype is not."""
    options = LabelJobOptions(
        input=(write_crawl(tmp_path / "crawl", pages, files=6),),
        output=str(tmp_path / "out"),
        classifier=tiny(shared),
        device="cpu",
        max_batch_tokens=2048,
    )
    label_pages.run(spark, options)
    report, rows = run_of(options)
    used = report["stages"]["label"]["model"]
    assert report["input"]["splits"] == 6
    assert 1 <= used["loads"] == used["processes"] <= 2
    assert {row["extracted_by"] for row in rows} == {"classifier"}
    assert "the model was loaded" in "\n".join(extract.table(report))
    label_pages.run(spark, LabelJobOptions(**vars(options) | {"max_batch_tokens": 512, "device": None}))
    with pytest.raises(OutputError, match="dtype=bfloat16"):
        label_pages.run(spark, LabelJobOptions(**vars(options) | {"dtype": "bfloat16"}))
    other = LabelJobOptions(**vars(options) | {"output": str(tmp_path / "other"), "max_batch_tokens": 512})
    label_pages.run(spark, other)
    assert [row["text"] for row in run_of(other)[1]] == [row["text"] for row in rows]


def test_a_page_that_kills_the_model_s_worker_costs_a_retry(
    spark: SparkSession, shared: Path, pages: list[SitePage], tmp_path: Path
) -> None:
    crawled = write_crawl(tmp_path / "crawl", pages[:6])
    plan = stages.begin(LabelJobOptions(input=(crawled,), output=str(tmp_path / "out")), "label")
    limits = Limits(60.0, None)
    spec = f"{tiny(shared)}&device=cpu"
    task = label_pages.Labelling(plan.source, spec, limits, Limits(), Conversion(), plan.extractions)
    summaries = passes.run(spark, a_stage(tmp_path), plan.splits, partial(killed_once, task=task))
    (summary,) = summaries
    assert summary["counts"] == {"classifier": 6}
    assert summary["model"]["loads"] == len(summary["model"]["processes"]) == 1


def test_extract_counts_the_loads_of_its_model(
    spark: SparkSession, shared: Path, pages: list[SitePage], tmp_path: Path
) -> None:
    options = ExtractOptions(
        input=(write_crawl(tmp_path / "crawl", pages, files=4),),
        output=str(tmp_path / "out"),
        classifier=tiny(shared),
        device="cpu",
        rounds=1,
    )
    report = extract.run(spark, options)
    used = report["stages"]["round-1/label"]["model"]
    assert used["loads"] <= used["processes"] <= 2
    assert report["labelled_pages"] > 0
    for path in (tmp_path / "out" / "_work" / "round-1" / "label" / "data").glob("*.parquet"):
        assert set(pq.read_table(path)["classifier"].to_pylist()) <= {tiny(shared), None}
