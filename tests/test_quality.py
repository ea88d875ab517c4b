"""What the embedded classifier reached on the development part of the corpora, page by page, must not fall."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_jobs import evaluate, label_pages
from spark_jobs.options import EvaluateOptions, LabelJobOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parent
CORPORA = ROOT.parent.parent / "shared" / "corpora" / "pages"
SETS = ("wcxb", "fundus", "harvest")


def test_the_embedded_classifier_is_not_below_its_floors(spark: SparkSession, tmp_path: Path) -> None:
    """Floors are raised by `stencil evaluate --set-floors`; tests/floors.json is of these pages."""
    if not CORPORA.is_dir():
        pytest.skip("the corpora are not here: ../shared/corpora/pages")
    truth = [str(CORPORA / f"{name}.jsonl.gz") for name in SETS]
    pages = tmp_path / "pages.jsonl"
    with pages.open("w", encoding="utf-8") as out:
        for path in truth:
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                rows = (json.loads(line) for line in lines)
                out.writelines(json.dumps(row) + "\n" for row in rows if row["split"] == "dev")
    labelled = LabelJobOptions(input=(str(pages),), output=str(tmp_path / "out"), emit=())
    label_pages.run(spark, labelled)
    options = EvaluateOptions(
        extractions=str(tmp_path / "out"), truth=tuple(truth), split="dev", floors=str(ROOT / "floors.json")
    )
    assert any("wcxb" in line for line in evaluate.run(spark, options))  # the last line is an error where one fell
