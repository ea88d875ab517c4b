from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import safetensors.numpy
import tiny

from spark_jobs import train
from spark_jobs.__main__ import main
from spark_jobs.errors import InputError, OutputError, RequestError
from spark_jobs.options import TrainOptions
from templates.dom import PageError, parse
from udfs.classifiers import Labels, from_spec
from udfs.classifiers.features import features
from udfs.classifiers.network import Network
from udfs.input.pages import Page


def options(paths: list[Path], output: Path, **given: Any) -> TrainOptions:
    return TrainOptions(corpora=tuple(map(str, paths)), output=str(output), **given)


def record(folder: Path, name: str = "embedded.json") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / name).read_text(encoding="utf-8"))
    return found


# --- embedded


def test_the_embedded_network_is_trained_to_the_same_bytes(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="comes with the extra `models`")
    paths = tiny.corpus(tmp_path / "toy")
    out = [tmp_path / name for name in ("one", "turned", "cut", "other")]
    lines = train.run(options(paths, out[0], epochs=6))
    train.run(options(paths[::-1], out[1], epochs=6))
    rows = [json.loads(line) for path in reversed(paths) for line in path.read_text().splitlines()]
    train.run(options([tiny.write(tmp_path / "all.jsonl.gz", rows)], out[2], epochs=6))
    train.run(options(paths, out[3], epochs=6, seed=1))
    weights = [(folder / "embedded.safetensors").read_bytes() for folder in out]
    assert weights[0] == weights[1] == weights[2] != weights[3]
    assert (out[0] / "embedded.json").read_bytes() == (out[1] / "embedded.json").read_bytes()
    made = record(out[0])
    assert made["pages"] == {
        "read": 24, "used": 24, "left_out": {}, "by_kind": {"toy": {"train": 18, "dev": 6}},
    }  # fmt: skip
    assert {file["sha256"] for file in made["files"]} == {hashlib.sha256(p.read_bytes()).hexdigest() for p in paths}
    assert made["settings"]["epochs"] == 6 and made["settings"]["seed"] == 0 and len(made["curve"]) == 6
    assert made["curve"][-1]["loss"] < made["curve"][0]["loss"]
    assert made["scores"] == made["curve"][-1]["scores"] and made["scores"]["toy"] > 0.9
    assert {"python", "torch", "numpy", "lxml"} <= set(made["versions"])
    assert made["command"].startswith("stencil train --corpora ") and made["command"].endswith(" --epochs 6")
    assert any("0.9" in line or "1.0" in line for line in lines)


def test_pages_of_the_test_part_and_of_domains_in_it_are_not_used(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="comes with the extra `models`")
    paths = tiny.corpus(tmp_path / "toy")
    train.run(options(paths, tmp_path / "without", epochs=1))
    held_out = [tiny.row(20, 0, split="test", html=""), tiny.row(20, 1), tiny.row(7, 9), tiny.row(0, 7, html="<p></p>")]
    paths.append(tiny.write(tmp_path / "more.jsonl", held_out))
    train.run(options(paths, tmp_path / "with", epochs=1))
    made = record(tmp_path / "with")["pages"]
    assert made["left_out"] == {"test": 1, "domain_in_test": 1, "domain_in_dev": 1, "no_text": 1}
    assert made["read"] == 28 and made["used"] == 24
    weights = [(tmp_path / name / "embedded.safetensors").read_bytes() for name in ("without", "with")]
    assert weights[0] == weights[1]


def test_a_teacher_changes_what_the_embedded_network_learns(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="comes with the extra `models`")
    paths = tiny.corpus(tmp_path / "toy")
    rows = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    # A teacher that takes the footer for the main content: the truth has 0.3 of a say.
    said = [{"url": row["url"], "gold_paths": ["/html/body/footer"]} for row in rows[1:]]
    labels = tiny.write(tmp_path / "labels.jsonl", said)
    train.run(options(paths, tmp_path / "taught", epochs=8, teacher=f"labels:{labels}"))
    made = record(tmp_path / "taught")
    page = features(parse(tiny.row(30, 0)["html"]))
    assert page is not None
    network = Network.of(safetensors.numpy.load((tmp_path / "taught" / "embedded.safetensors").read_bytes()))
    found = dict(zip([block.element.tag for block in page.blocks], network.probabilities(page).tolist(), strict=True))
    assert found["footer"] > 0.5 > max(found["p"], found["h1"]) > found["div"]
    assert made["pages"]["left_out"] == {"teacher: no_label": 1}
    assert "--teacher" in made["command"]


# --- an encoder


def test_an_encoder_is_fine_tuned_by_a_teacher_and_loaded_by_its_spec(tmp_path: Path) -> None:
    tiny.need_models()
    paths = tiny.corpus(tmp_path / "toy")
    teacher = tiny.checkpoint(tmp_path / "teacher", seed=1)
    tuned, student = tmp_path / "tuned", tmp_path / "student"
    train.run(
        options(
            paths,
            tuned,
            model=f"encoder:{teacher}?device=cpu&chunk_tokens=512",
            epochs=8,
            learning_rate=3e-3,
            batch_pages=2,
        )
    )
    made = record(tuned, "training.json")
    assert made["scores"]["toy"] > 0.9 and made["chunk_tokens"] == 512 and made["dtype"] == "float32"
    assert len(made["class_weights"]) == 2 and made["curve"][-1]["agreement"] is None
    small = tiny.checkpoint(tmp_path / "small", seed=2, hidden=24)
    train.run(
        options(
            paths,
            student,
            model=f"encoder:{small}",
            teacher=f"encoder:{tuned}?device=cpu",
            epochs=12,
            learning_rate=3e-3,
            batch_pages=2,
        )
    )
    assert record(student, "training.json")["curve"][-1]["agreement"] > 0.9
    html = tiny.row(30, 0)["html"]
    (labels,) = from_spec(f"encoder:{student}?device=cpu").label([Page("u", "s", 0, html, "", None, None)])
    assert not isinstance(labels, PageError)
    main = [path for path, value in zip(labels.paths, labels.probabilities, strict=True) if value >= 0.5]
    assert main and all(path.startswith("/html/body/main") for path in main)
    assert isinstance(labels, Labels)


# --- requests that can't be met


def test_requests_that_are_refused(tmp_path: Path) -> None:
    paths = tiny.corpus(tmp_path / "toy", 2, 1)

    def refused(kind: type[RequestError] = RequestError, **given: Any) -> str:
        with pytest.raises(kind) as error:
            train.run(options(given.pop("paths", paths), tmp_path / "out", **given))
        return str(error.value)

    assert "'embedded' or 'encoder:PATH'" in refused(model="decoder:x")
    assert "'embedded' or 'encoder:PATH'" in refused(model="nothing")
    assert "can't teach an encoder" in refused(model="encoder:x", teacher="embedded")
    assert "no classifier" in refused(teacher="nobody")
    assert "another directory" in refused(model=f"encoder:{tmp_path}/toy/../out")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "embedded.json").write_text("{}")
    assert "--overwrite" in refused(OutputError)
    pytest.importorskip("torch", reason="comes with the extra `models`")
    assert "There is no file" in refused(InputError, paths=[tmp_path / "*.jsonl"], overwrite=True)
    assert "folder names" in refused(InputError, splits=str(tmp_path / "none.json"), overwrite=True)
    bad = tiny.write(tmp_path / "bad.jsonl", [tiny.row(0, 0, gold_paths=["main"])])
    assert "site0.example/0" in refused(InputError, paths=[bad], overwrite=True)
    held_out = [tiny.write(tmp_path / "dev.jsonl", [tiny.row(0, 0, split="dev")])]
    assert "split 'train'" in refused(paths=held_out, overwrite=True)


def test_without_torch_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    paths = tiny.corpus(tmp_path / "toy", 2, 1)
    assert main(["train", "--corpora", *map(str, paths), "--output", str(tmp_path / "out")]) == 2
    assert "pip install 'webstencil[models]'" in capsys.readouterr().err
