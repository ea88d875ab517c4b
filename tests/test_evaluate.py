"""evaluate: no page of the ground truth is lost, figures are those of the independent scorer, errors are sentences."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs import evaluate
from spark_jobs.errors import InputError, JobError, RequestError, TableError
from spark_jobs.options import EvaluateOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GOLD = "the quick brown fox jumps over the lazy dog"
TRUTH = [
    {"url": "http://a.org/1", "gold_text": GOLD, "page_type": "article", "lang": "en", "split": "test"},
    {"url": "http://a.org/2", "gold_text": GOLD, "page_type": "forum", "lang": "en", "split": "test"},
    {"url": "http://a.org/3", "gold_text": "", "page_type": "forum", "lang": "de", "split": "dev"},
    {"url": "http://a.org/lost", "gold_text": "", "lang": "de", "split": "dev"},
    {"url": "http://a.org/4", "must_contain": ["the fox", "dog"], "must_not_contain": ["menu"], "split": "dev"},
    {"url": "http://a.org/without"},
]
TEXTS = {
    "http://a.org/1": GOLD,
    "http://a.org/2": "",
    "http://a.org/3": "",
    "http://a.org/4": "the fox, menu",
    "http://a.org/extra": "x",
}

Written = Callable[..., EvaluateOptions]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Write ground truth and extractions; returns options that read them."""

    def write(truth: list[dict[str, Any]], texts: dict[str, str], **options: Any) -> EvaluateOptions:
        folder = tmp_path / "out" / "extractions"
        folder.mkdir(parents=True, exist_ok=True)
        rows = [extraction(url, text, number) for number, (url, text) in enumerate(texts.items())]
        pq.write_table(pa.Table.from_pylist(rows), folder / "part.parquet")
        path = tmp_path / "mine.jsonl.gz"
        path.write_bytes(gzip.compress("\n".join(map(json.dumps, truth)).encode()))
        return EvaluateOptions(extractions=str(tmp_path / "out"), truth=(str(path),), **options)

    return write


def extraction(url: str, text: str, number: int) -> dict[str, Any]:
    row = {"url": url, "text": text, "main_html": f"<body><p>{text}</p></body>", "split": "s", "offset": number}
    return row | {"extracted_by": "template" if number else "classifier", "status": "ok", "confidence": 0.5 + number}


def figures(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["dimension"], row["value"]): row for row in pq.read_table(path / "figures").to_pylist()}


def test_no_page_is_lost(spark: SparkSession, written: Written, tmp_path: Path) -> None:
    lines = list(evaluate.run(spark, written(TRUTH, TEXTS, output=str(tmp_path / "scores"))))
    found = figures(tmp_path / "scores")
    every = found["all", "all"]
    assert (every["pages"], every["missing"]) == (5, 1)
    assert every["f1"] == every["rouge_f1"] == pytest.approx((1 + 0 + 1 + 0) / 4)
    assert every["empty"] == 0.5  # of the pages that have content and an extraction
    assert every["snippets"] == pytest.approx(1 / 3, abs=1e-6)
    assert found["page type", "forum"]["f1"] == 0.5
    assert found["set and page type", "mine article"]["f1"] == 1.0
    assert found["language", "de"]["missing"] == found["route", "missing"]["pages"] == 1
    assert found["route", "classifier"]["pages"] == 1 and found["site", "a.org"]["pages"] == 5
    pages = {row["url"]: row for row in pq.read_table(tmp_path / "scores" / "pages").to_pylist()}
    assert len(pages) == 5 and pages["http://a.org/lost"]["extracted_by"] == "missing"
    assert pages["http://a.org/2"]["confidence"] == 1.5 and pages["http://a.org/2"]["wanted"] == 9
    text = "\n".join(lines)
    assert "5 pages with ground truth; 1 of them have no extraction (F1 0); 1 extracted URLs have no" in text
    assert "without extraction: http://a.org/lost" in text
    assert "1 pages of the files have no ground truth" in text


def test_a_split_is_only_its_pages(spark: SparkSession, written: Written) -> None:
    (first, *_) = evaluate.run(spark, written(TRUTH, TEXTS, split="test"))
    assert first.startswith("2 pages with ground truth; 0 of them")
    with pytest.raises(InputError, match="no page is of the split 'train'"):
        evaluate.run(spark, written(TRUTH, TEXTS, split="train"))


def test_the_first_of_several_extractions_counts(spark: SparkSession, written: Written, tmp_path: Path) -> None:
    options = written(TRUTH[:1], {"http://a.org/1": GOLD}, output=str(tmp_path / "scores"))
    later = [extraction("http://a.org/1", "later", 7), extraction("http://a.org/1", "latest", 9)]
    pq.write_table(pa.Table.from_pylist(later), tmp_path / "out" / "extractions" / "a.parquet")
    assert "2 extractions of a URL that has an earlier one" in "\n".join(evaluate.run(spark, options))
    assert figures(tmp_path / "scores")["all", "all"]["f1"] == 1.0


def test_webmainbench_is_found_by_its_ids_too(spark: SparkSession, written: Written, tmp_path: Path) -> None:
    pages = [
        {
            "track_id": str(number),
            "url": "http://b.org/",
            "html": "",
            "main_html": f"<p>{GOLD}",
            "meta": {"level": level},
        }
        for number, level in enumerate(["simple", "mid", "hard"])
    ]
    options = written(pages, {"0": GOLD, "1": "the quick brown fox jumps", "2": ""}, output=str(tmp_path / "scores"))
    lines = list(evaluate.run(spark, options))
    found = figures(tmp_path / "scores")
    assert found["WebMainBench", "simple"]["rouge_f1"] == 1.0 and found["WebMainBench", "hard"]["rouge_f1"] == 0.0
    assert (
        found["WebMainBench", "mid"]["rouge_precision"] == 1.0 and found["WebMainBench", "mid"]["rouge_recall"] == 0.2
    )
    start = next(number for number, line in enumerate(lines) if line.startswith("WebMainBench"))
    assert [line.split()[0] for line in lines[start + 1 : start + 5]] == ["All", "Simple", "Mid", "Hard"]


def test_floors_are_set_kept_and_lowered_only_when_asked(spark: SparkSession, written: Written, tmp_path: Path) -> None:
    floors = str(tmp_path / "floors.json")
    with pytest.raises(RequestError, match="--set-floors"):
        evaluate.run(spark, written(TRUTH, TEXTS, floors=floors))
    assert list(evaluate.run(spark, written(TRUTH, TEXTS, floors=floors, set_floors=True)))
    pinned = Path(floors).read_text()
    assert "no figure fell" in "\n".join(evaluate.run(spark, written(TRUTH, TEXTS, floors=floors)))
    worse = TEXTS | {"http://a.org/1": "the quick dog"}
    told = iter(evaluate.run(spark, written(TRUTH, worse, floors=floors, set_floors=True)))
    with pytest.raises(JobError, match=r"set: mine, f1: 0\.375, floor 0\.5") as raised:
        assert len(list(told))
    assert raised.value.exit_code == 1 and Path(floors).read_text() == pinned
    assert list(evaluate.run(spark, written(TRUTH, worse, floors=floors, lower_floors=True)))
    assert Path(floors).read_text() != pinned
    with pytest.raises(RequestError, match="need --floors"):
        evaluate.run(spark, written(TRUTH, TEXTS, lower_floors=True))


def test_errors_are_sentences(spark: SparkSession, written: Written, tmp_path: Path) -> None:
    with pytest.raises(
        RequestError, match=r"no URL of the ground truth .* 'http://a.org/\d', the extractions 'http://b"
    ):
        evaluate.run(spark, written(TRUTH[:3], {"http://b.org/": "x"}))
    with pytest.raises(InputError, match=r"no page has ground truth .*its fields are url"):
        evaluate.run(spark, written(TRUTH[-1:], TEXTS))
    good = written(TRUTH, TEXTS)
    (tmp_path / "bad.jsonl").write_text('{"url": "u", "gold_text": "x"}\n{"url"\n')
    with pytest.raises(InputError, match=r"1 lines can't be read, of which .*bad.jsonl, line 2 is not JSON"):
        evaluate.run(spark, EvaluateOptions(extractions=good.extractions, truth=(str(tmp_path / "bad.jsonl"),)))
    with pytest.raises(InputError, match="There is no file"):
        evaluate.run(spark, EvaluateOptions(extractions=good.extractions, truth=(str(tmp_path / "none.jsonl"),)))
    with pytest.raises(InputError, match="is no Parquet table"):
        evaluate.run(spark, EvaluateOptions(extractions=str(tmp_path / "none"), truth=good.truth))
    other = tmp_path / "other"
    other.mkdir()
    pq.write_table(pa.table({"url": ["u"], "body": ["x"]}), other / "part.parquet")
    with pytest.raises(TableError, match="has no column 'text'; it has url, body"):
        evaluate.run(spark, EvaluateOptions(extractions=str(other), truth=good.truth))


def test_other_extractors_need_two_columns(spark: SparkSession, written: Written, tmp_path: Path) -> None:
    options = written(TRUTH, TEXTS)
    pq.write_table(pa.table({"url": ["http://a.org/1"], "text": [GOLD]}), tmp_path / "theirs.parquet")
    theirs = EvaluateOptions(extractions=str(tmp_path / "theirs.parquet"), truth=options.truth)
    assert any(line.startswith("unknown") for line in evaluate.run(spark, theirs))


def test_figures_are_those_of_the_independent_scorer(
    spark: SparkSession, written: Written, tmp_path: Path, shared: Path
) -> None:
    options = written(TRUTH[:4], TEXTS | {"http://a.org/2": "The lazy fox jumps over the dog!"})
    evaluate.run(spark, EvaluateOptions(**vars(options) | {"output": str(tmp_path / "scores")}))
    command = [sys.executable, str(shared / "tools" / "score.py"), f"{options.extractions}/extractions", *options.truth]
    subprocess.run([*command, "--json", str(tmp_path / "theirs.json")], check=True, capture_output=True)
    theirs = json.loads((tmp_path / "theirs.json").read_text())["TOTAL"]
    ours = figures(tmp_path / "scores")["all", "all"]
    assert (ours["pages"], ours["missing"]) == (theirs["pages"], theirs["lost"])
    assert ours["f1"] == pytest.approx(theirs["f1"], abs=1e-6)
    assert ours["rouge_f1"] == pytest.approx(theirs["r5"], abs=1e-6)
