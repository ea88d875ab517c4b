"""The jobs on small generated crawls: every page has its row, whatever happens on the way."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from hostile import hostile
from sites import Parts, SitePage, crawl, site
from test_guard import behave

from spark_jobs import cluster, extract, jobs, label, parts, passes, session, sidecars, stages, tables
from spark_jobs import template as template_job
from spark_jobs.errors import InputError, JobError, OutputError, RequestError
from spark_jobs.options import ClusterOptions, ExtractOptions, LabelOptions, TemplateOptions
from udfs.guard import Failure, Guard, Limits
from udfs.input.sources import Split

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ADDRESS = ("split", "offset")
pytestmark = pytest.mark.spark


def write_crawl(folder: Path, pages: Iterable[SitePage], files: int = 1, form: str = "warc") -> str:
    """Write a crawl with its truth; return the glob of its files."""
    found = list(pages)
    with Parts(folder, form, -(-len(found) // files)) as out:
        for page in found:
            out.add(page)
    return f"{folder}/part-*"


def read(directory: Path) -> list[dict[str, Any]]:
    """Read the product, by address."""
    rows = [row for path in sorted(directory.glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
    return sorted(rows, key=lambda row: (row["split"], row["offset"]))


def content(directory: Path) -> list[dict[str, Any]]:
    """Read the product without addresses, by page_id."""
    rows = [{name: row[name] for name in row if name not in ADDRESS} for row in read(directory)]
    return sorted(rows, key=lambda row: str(row["page_id"]))


def files(directory: Path) -> dict[str, bytes]:
    """Read the files of a directory."""
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


@pytest.fixture(scope="module")
def pages() -> list[SitePage]:
    return list(crawl(3, 14, themes=("blog", "shop", "docs")))


@pytest.fixture(scope="module")
def done(spark: SparkSession, pages: list[SitePage], tmp_path_factory: pytest.TempPathFactory) -> ExtractOptions:
    """A finished run with perfect labels, on three files."""
    folder = tmp_path_factory.mktemp("run")
    options = ExtractOptions(
        input=(write_crawl(folder / "crawl", pages, files=3),),
        output=str(folder / "out"),
        classifier=f"labels:{folder}/crawl/truth.jsonl.gz",
    )
    extract.run(spark, options)
    return options


@pytest.mark.smoke
def test_every_page_has_one_row_and_the_account_agrees(done: ExtractOptions, pages: list[SitePage]) -> None:
    out = Path(done.output)
    rows = read(out / "extractions")
    assert Counter(row["url"] for row in rows) == Counter(page.url for page in pages)
    assert pq.read_schema(next((out / "extractions").glob("*.parquet"))) == tables.EXTRACTIONS
    report = json.loads((out / "run.json").read_text())
    assert report["pages"] == len(pages)
    assert report["extracted_by"] == Counter(row["extracted_by"] for row in rows)
    assert report["labelled_pages"] == sum(row["extracted_by"] == "classifier" for row in rows)
    assert report["extracted_by"]["template"] > report["labelled_pages"] > 0
    assert report["versions"]["stencil"] and report["options"]["classifier"] == done.classifier
    assert (out / "extractions" / "_SUCCESS").exists()
    assert not list(out.rglob(".tmp-*"))


def test_the_terminal_shows_the_account(done: ExtractOptions) -> None:
    text = "\n".join(extract.table(json.loads((Path(done.output) / "run.json").read_text())))
    for part in (
        "42 pages in 3 splits",
        "extracted by",
        "template",
        "labelled pages",
        "round-1/propagate",
        "in all",
    ):
        assert part in text


def test_what_is_main_comes_out(done: ExtractOptions, pages: list[SitePage]) -> None:
    found = {row["url"]: row["text"] for row in read(Path(done.output) / "extractions")}
    shares = []
    for page in pages:
        gold, text = Counter(page.gold_text.split()), Counter((found[page.url] or "").split())
        both = (gold & text).total()
        shares.append(2 * both / (gold.total() + text.total()) if gold or text else 1.0)
    assert sum(shares) / len(shares) > 0.9


def test_a_finished_run_is_not_repeated(spark: SparkSession, done: ExtractOptions) -> None:
    before = {path: path.stat().st_mtime_ns for path in Path(done.output).rglob("*.parquet")}
    extract.run(spark, done)
    assert {path: path.stat().st_mtime_ns for path in Path(done.output).rglob("*.parquet")} == before


def test_the_partition_of_the_input_does_not_matter(
    spark: SparkSession, done: ExtractOptions, pages: list[SitePage], tmp_path: Path
) -> None:
    shuffled = random.Random(1).sample(pages, len(pages))
    options = ExtractOptions(
        input=(write_crawl(tmp_path / "crawl", shuffled),),
        output=str(tmp_path / "out"),
        classifier=done.classifier,
    )
    extract.run(spark, options)
    assert content(tmp_path / "out" / "extractions") == content(Path(done.output) / "extractions")


@pytest.mark.parametrize("killed_in", ["sign", "round-1/propagate"])
def test_a_run_that_was_killed_in_a_stage_ends_the_same(
    spark: SparkSession, done: ExtractOptions, tmp_path: Path, killed_in: str
) -> None:
    """What a kill leaves unwritten is taken away, and its debris added; the rest is not done again."""
    out = tmp_path / "out"
    shutil.copytree(done.output, out)
    work, product = out / "_work", out / "extractions"
    wanted = files(product)
    names = ["sign", *(f"round-1/{part}" for part in ("cluster", "label", "induce", "propagate"))]
    stage = names.index(killed_in)
    for later in (*names[stage + 1 :], "round-2"):
        shutil.rmtree(work / later, ignore_errors=True)
    (work / killed_in / "manifest.json").unlink()
    unfinished = sorted((work / killed_in / "done").iterdir())[0]
    unfinished.unlink()
    data = product if killed_in.endswith("propagate") else work / killed_in / "data"
    for path in sorted(data.glob(f"*{unfinished.stem}.parquet")):
        path.unlink()
        (data / f".tmp-0-{path.name}").write_bytes(b"PAR1 half a file")
    for path in product.iterdir():
        if data != product or path.name.startswith("round-2"):
            path.unlink()
    kept = {path: path.stat().st_mtime_ns for path in data.glob("[!.]*.parquet")}
    extract.run(spark, ExtractOptions(**vars(done) | {"output": str(out)}))
    assert files(product) == wanted
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert not list(out.rglob(".tmp-*"))


def test_another_request_for_the_same_output_is_refused(spark: SparkSession, done: ExtractOptions) -> None:
    changed = ExtractOptions(**vars(done) | {"classifier": "embedded"})
    with pytest.raises(OutputError, match=r"classifier was 'labels:.* and is 'embedded'.*--overwrite"):
        extract.run(spark, changed)
    fewer = ExtractOptions(**vars(done) | {"input": (done.input[0].replace("*", "00000*"),)})
    with pytest.raises(OutputError, match="3 splits there, 1 here"):
        extract.run(spark, fewer)


def test_a_lost_row_fails_the_job(spark: SparkSession, done: ExtractOptions, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(done.output, out)
    path = sorted((out / "extractions").glob("*.parquet"))[0]
    table = pq.read_table(path)
    pq.write_table(table.slice(1), path)
    with pytest.raises(JobError, match=r"\d+ pages signed, \d+ extracted"):
        extract.run(spark, ExtractOptions(**vars(done) | {"output": str(out)}))


def test_a_store_saves_labels_and_can_be_read(spark: SparkSession, tmp_path: Path) -> None:
    crawled = write_crawl(tmp_path / "crawl", crawl(1, 12, themes=("blog",)))
    store = str(tmp_path / "store")
    truth = f"labels:{tmp_path}/crawl/truth.jsonl.gz"
    reports = []
    for name in ("first", "second"):
        out = str(tmp_path / name)
        reports.append(extract.run(spark, ExtractOptions(input=(crawled,), output=out, store=store, classifier=truth)))
    first, second = reports
    assert second["labelled_pages"] < first["labelled_pages"]
    assert second["extracted_by"]["template"] > first["extracted_by"]["template"]
    assert first["store"]["stored_templates"] == first["store"]["pages"] == 0
    assert second["store"]["pages"] > 0
    assert second["store"]["drifted_hosts"] == 0

    asked = TemplateOptions(action="show", host="blog0.example.com", store=store)
    text = "\n".join(template_job.run(asked))
    assert "of blog0.example.com" in text
    assert "main" in text and "/html/body" in text
    as_json = template_job.run(TemplateOptions(**vars(asked) | {"json": True}))
    assert all(json.loads(line)["host"] == "blog0.example.com" for line in as_json)
    with pytest.raises(RequestError, match="no template of 'elsewhere'"):
        template_job.run(TemplateOptions(**vars(asked) | {"host": "elsewhere"}))


def test_a_redesigned_host_is_reported_as_drifted(spark: SparkSession, tmp_path: Path) -> None:
    """The same host with another theme: its stored templates explain little, so it is labelled anew."""
    reports = []
    for name, theme in (("before", "blog"), ("after", "table")):
        folder = tmp_path / name
        crawled = write_crawl(folder, [page for page in site(theme, 30, name="redesign.example") if page.gold_text])
        asked = ExtractOptions(
            input=(crawled,),
            output=str(tmp_path / f"out-{name}"),
            store=str(tmp_path / "store"),
            classifier=f"labels:{folder}/truth.jsonl.gz",
        )
        reports.append(extract.run(spark, asked))
    before, after = reports
    assert before["store"]["drifted_hosts"] == 0
    assert after["store"]["drifted"][0]["host"] == "redesign.example"
    assert after["labelled_pages"] > 0
    assert "known hosts have drifted" in "\n".join(extract.table(after))


def test_hostile_pages_and_copies_each_become_a_row(spark: SparkSession, tmp_path: Path) -> None:
    with Parts(tmp_path / "crawl", "warc", 20, truth=False) as out:
        for name, payload in hostile(size=20):
            out.payload(f"https://hostile.example.com/{name}", payload)
        for _ in range(3):
            out.payload("https://copy.example.com/", b"<html><body><p>The same page again.</p></body></html>")
        out.payload("no url at all", b"<p>Somewhere.</p>")
    options = ExtractOptions(input=(str(tmp_path / "crawl"),), output=str(tmp_path / "out"), rounds=1)
    report = extract.run(spark, options)
    rows = read(tmp_path / "out" / "extractions")
    assert report["pages"] == len(rows) == len(list(hostile(20))) + 4
    copies = [row for row in rows if row["host"] == "copy.example.com"]
    assert len(copies) == 3 and len({row["main_html"] for row in copies}) == 1
    for row in rows:
        assert (row["status"] == "error") == (row["error"] is not None) == (row["extracted_by"] == "none")


def test_no_page_at_all_is_a_run_too(spark: SparkSession, tmp_path: Path) -> None:
    with Parts(tmp_path / "crawl", "jsonl", truth=False) as out:
        out.payload("https://a.example.com/", b" ")
    report = extract.run(spark, ExtractOptions(input=(str(tmp_path / "crawl"),), output=str(tmp_path / "out")))
    assert (report["pages"], report["errors"]) == (1, {"empty": 1})


def test_no_input_is_a_bad_request(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        stages.begin(ExtractOptions(input=(str(tmp_path / "nothing-*"),), output=str(tmp_path / "out")))


def test_an_output_of_another_program_is_left_alone(tmp_path: Path) -> None:
    source = tmp_path / "a.jsonl"
    source.write_text("{}\n")
    (tmp_path / "out" / "extractions").mkdir(parents=True)
    (tmp_path / "out" / "extractions" / "theirs.parquet").touch()
    with pytest.raises(OutputError, match="choose another --output"):
        stages.begin(ExtractOptions(input=(str(source),), output=str(tmp_path / "out")))


def test_a_bad_classifier_is_a_bad_request() -> None:
    with pytest.raises(RequestError, match="no classifier 'gpt'"):
        jobs.check_spec("gpt")


# --- passes


def poisoned_split(split: Split, isolated: bool, limits: Limits) -> passes.Summary:
    """Work on the 'pages' of a split, of which some are poison; the first attempt dies of them."""
    counts: Counter[str] = Counter()
    with Guard(behave, limits, isolated) as guard:
        for page in ("a", *Path(split.path).read_text().split(), "b"):
            outcome = guard(page)
            counts[outcome.reason if isinstance(outcome, Failure) else "fine"] += 1
    return passes.Tally(counts).summary(counts.total())


def killed_split(split: Split, isolated: bool) -> passes.Summary:
    """Kill the worker on the first attempt, as a lost machine does."""
    if not isolated:
        os.kill(os.getpid(), signal.SIGKILL)
    return passes.Tally().summary(1)


def failing_split(split: Split, isolated: bool) -> passes.Summary:
    """Fail on one split for good."""
    if "2" in split.path:
        raise ValueError("the disk is on fire")
    return passes.Tally().summary(1)


def a_stage(tmp_path: Path, name: str = "pass") -> stages.Stage:
    return stages.Stage(name, str(tmp_path / name), {})


def test_poison_pages_cost_themselves(spark: SparkSession, tmp_path: Path) -> None:
    """Segfault, exit and two hangs: the task is retried with its pages isolated, and ends."""
    splits = []
    for number, poison in enumerate(["", "crash exit", "hang", "page sleep recurse"]):
        path = tmp_path / f"{number}.txt"
        path.write_text(poison)
        splits.append(Split(str(path)))
    work = partial(poisoned_split, limits=Limits(seconds=1.0))
    found = passes.totals(passes.run(spark, a_stage(tmp_path), splits, work))
    assert found["counts"] == {"fine": 8, "crash": 2, "timeout": 2, "too_deep": 1, "RecursionError": 1}


def test_a_killed_worker_costs_nothing(spark: SparkSession, tmp_path: Path) -> None:
    splits = [Split(str(tmp_path / str(number))) for number in range(3)]
    found = passes.run(spark, a_stage(tmp_path), splits, killed_split)
    assert [summary["split"] for summary in found] == [split.name for split in splits]


def test_a_failed_pass_says_why_and_keeps_what_is_done(spark: SparkSession, tmp_path: Path) -> None:
    stage = a_stage(tmp_path)
    splits = [Split(f"split-{number}") for number in range(4)]
    with pytest.raises(JobError, match=r"pass failed: ValueError: the disk is on fire.*to resume"):
        passes.run(spark, stage, splits, failing_split)
    kept = {path.name for path in (tmp_path / "pass" / "done").iterdir()}
    assert f"{passes.part_name(splits[0])}.json" in kept
    assert f"{passes.part_name(splits[2])}.json" not in kept


# --- small data


def signature(page_id: str, sketch: bytes, host: str = "h", chars: int = 10) -> parts.Row:
    return {
        "page_id": page_id,
        "url": page_id,
        "host": host,
        "split": "s",
        "offset": int(page_id, 36),
        "sketch": sketch,
        "text_chars": chars,
    }


def frame(spark: SparkSession, rows: list[parts.Row], schema: Any) -> Any:
    values = [tuple(row.get(name) for name in schema.names) for row in rows]
    return spark.createDataFrame(values, tables.spark_schema(schema))


def test_pages_of_one_sketch_are_one_group(spark: SparkSession) -> None:
    rows = [signature(page_id, b"same", chars=chars) for page_id, chars in (("a", 9), ("b", 0), ("c", 500))]
    rows += [signature("d", b"other"), signature("e", b"same", host="i")]
    signed = frame(spark, rows, tables.SIGNATURES).selectExpr("*", "string(null) AS failed")
    found = cluster.collapse(signed).orderBy("host", "page_id").collect()
    assert [(row["host"], row["page_id"], row["count"], row["rank"]) for row in found] == [
        ("h", "a", 3, 1),
        ("h", "d", 1, 2),
        ("i", "e", 1, 1),
    ]


def test_roles_are_chosen_by_page_id(spark: SparkSession) -> None:
    ids = [f"{number:03}" for number in range(150)]
    rows = [{"page_id": page_id, "cluster_id": "c", "split": "s", "offset": 0} for page_id in [*ids, "003"]]
    rows += [{"page_id": "k", "cluster_id": "known", "template_id": "t"}, {"page_id": "n"}]
    assigned = frame(spark, rows, tables.ASSIGNMENTS).drop("role")
    clusters = frame(
        spark,
        [{"cluster_id": "c", "page_id": "003"}, {"cluster_id": "known", "page_id": "k", "template_id": "t"}],
        tables.CLUSTERS,
    )
    options = ClusterOptions(output="o", audit_pages=2, audit_cluster_pages=100, witness_pages=3)
    found = cluster.choose_roles(assigned, clusters, options).collect()
    roles = {
        role: sorted(row["page_id"] for row in found if row["role"] == role) for role in {r["role"] for r in found}
    }
    assert roles["representative"] == ["003", "003"]
    assert roles["audit"] == ["000", "001"]
    assert roles["witness"] == ["002", "004", "005"]
    assert {"k", "n"} <= set(roles["sibling"])


def test_the_largest_clusters_come_first_under_a_budget(spark: SparkSession) -> None:
    rows = []
    for name, size in (("a", 1), ("b", 5), ("c", 3)):
        for number in range(size):
            role = ("representative", "audit", "witness", "sibling", "sibling")[number]
            page = {
                "page_id": f"{name}{number}",
                "cluster_id": name,
                "role": role,
                "split": "s",
                "offset": number,
            }
            rows += [page, page | {"split": "t"}]
    assignments = frame(spark, rows, tables.ASSIGNMENTS)

    def chosen(budget: int | None) -> list[tuple[str, str]]:
        return sorted((row["page_id"], row["split"]) for row in label.choose(assignments, budget).collect())

    everything = ["a0", "b0", "b1", "b2", "c0", "c1", "c2"]
    assert chosen(None) == [(page_id, "s") for page_id in everything]
    assert chosen(2) == [(page_id, "s") for page_id in ("b0", "b2", "c0", "c2")]
    assert chosen(0) == []


def test_the_budget_is_a_share_or_a_count(tmp_path: Path) -> None:
    def finished(name: str, **values: Any) -> None:
        path = tmp_path / "_work" / name
        path.mkdir(parents=True)
        (path / "manifest.json").write_text(json.dumps(values))

    plan = stages.Plan(str(tmp_path), None, (), "key")  # type: ignore[arg-type]
    finished("sign", rows=200)
    finished("round-1/label", rows=9, counts={"representative": 4, "no_label": 1, "witness": 4})
    assert label.left(plan, 1, None) is None
    assert label.left(plan, 1, 0.1) == 20
    assert label.left(plan, 2, 0.1) == 15
    assert label.left(plan, 2, 7) == 2
    assert label.left(plan, 2, 3) == 0


def test_a_large_host_is_clustered_on_a_sample(spark: SparkSession, done: ExtractOptions, tmp_path: Path) -> None:
    """All pages find their cluster although most of them were not in the sample."""
    options = ExtractOptions(**vars(done) | {"output": str(tmp_path / "out"), "max_host_signatures": 4})
    report = extract.run(spark, options)
    whole = json.loads((Path(done.output) / "run.json").read_text())
    assert report["pages"] == whole["pages"]
    counts = report["stages"]["round-1/cluster"]["counts"]
    assert counts["new clusters"] <= whole["stages"]["round-1/cluster"]["counts"]["new clusters"]
    assert counts["sibling"] + counts["witness"] > counts["new clusters"]


def test_sidecars_hold_each_split_in_order(spark: SparkSession, tmp_path: Path) -> None:
    splits = [Split(f"file-{number}") for number in range(5)]
    pages = [
        {"split": split.name, "kind": sidecars.PAGE, "offset": offset, "page_id": str(offset)}
        for split in splits[:4]
        for offset in random.Random(split.name).sample(range(300), 300)
    ]
    templates = [{"split": splits[1].name, "kind": sidecars.TEMPLATE, "template_id": "t", "body": "{}"}]
    parts_of_it = [frame(spark, rows, tables.SIDECARS) for rows in (pages, templates)]
    sidecars.write("test", parts_of_it, str(tmp_path / "side"))
    assert sidecars.splits(str(tmp_path / "side"), splits) == splits[:4]
    found = list(sidecars.read(str(tmp_path / "side"), splits[1]))
    assert found[0]["template_id"] == "t"
    assert [row["offset"] for row in found[1:]] == list(range(300))
    assert list(sidecars.read(str(tmp_path / "side"), splits[4])) == []


def test_a_stage_job_goes_on_where_the_run_is(
    spark: SparkSession, done: ExtractOptions, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """sign, cluster, label … one by one, as for a GPU cluster of its own; extract ends the run."""
    monkeypatch.setattr(session, "start", lambda _: spark)
    monkeypatch.setattr(type(spark), "stop", lambda _: None)
    options = ExtractOptions(**vars(done) | {"output": str(tmp_path / "out")})
    with pytest.raises(OutputError, match="begin one with"):
        jobs.run("label", options)
    lines = list(jobs.run("sign", options))
    assert lines[0].startswith("sign: 42 rows")
    with pytest.raises(OutputError, match=r"round-1/cluster .* is not done"):
        jobs.run("label", options)
    for job in ("cluster", "label"):
        assert next(iter(jobs.run(job, options))).startswith(f"round-1/{job}: ")
    wrong = LabelOptions(output=options.output)
    with pytest.raises(OutputError, match=r"round-1/(cluster|propagate)"):
        jobs.run("label", wrong)
    extract.run(spark, options)
    assert content(tmp_path / "out" / "extractions") == content(Path(done.output) / "extractions")
