from __future__ import annotations

import sys

import pytest

from spark_jobs import jobs, label
from spark_jobs.errors import RequestError
from spark_jobs.options import LabelJobOptions, LabelOptions, parse
from udfs.classifiers import from_spec, specs
from udfs.classifiers.checkpoint import CheckpointError


def test_a_spec_is_taken_apart_and_put_together() -> None:
    text = "decoder:/models/a?device=cuda:1&prompt=/texts/a%26b.txt&batch_tokens=10"
    model = specs.parse(text)
    assert model is not None
    assert (model.kind, model.path) == ("decoder", "/models/a")
    assert model.arguments() == {"device": "cuda:1", "prompt": "/texts/a&b.txt", "batch_tokens": 10}
    assert specs.parse(str(model)) == model and str(model) == text
    assert str(specs.parse("encoder:owner/name")) == "encoder:owner/name"
    for other in ("embedded", "labels:table.jsonl", "encoder:", "none"):
        assert specs.parse(other) is None and not specs.is_model(other)


def test_where_and_how_fast_a_model_computes_is_not_its_identity() -> None:
    plain = specs.identity("encoder:m?dtype=bfloat16&chunk_tokens=512")
    for spec in ("encoder:m?chunk_tokens=512&device=cuda:3&dtype=bfloat16&batch_tokens=7", plain):
        assert specs.identity(spec) == plain
    assert specs.identity("encoder:m?dtype=float32") != specs.identity("encoder:m")
    assert specs.identity("labels:a?device=x") == "labels:a?device=x"


def test_flags_fill_in_the_options_of_the_model() -> None:
    text = "extract --input a --output o --classifier encoder:m?chunk_tokens=512 --device cuda:1 --dtype float16"
    _, options = parse([*text.split(), "--max-batch-tokens", "4096"])
    filled = "encoder:m?chunk_tokens=512&device=cuda:1&dtype=float16&batch_tokens=4096"
    assert label.spec_of(options) == filled
    assert label.spec_of(LabelOptions(output="o", classifier="embedded")) == "embedded"
    assert label.spec_of(LabelOptions(output="o", classifier="encoder:m?device=cpu", device="cpu")).count("cpu") == 1


@pytest.mark.parametrize(
    ("classifier", "flags", "message"),
    [
        ("embedded", {"device": "cuda"}, "'embedded' is not a model, so it has no device"),
        ("embedded", {"max_batch_tokens": 9}, "not a model, so it has no batch_tokens"),
        ("encoder:m?device=cpu", {"device": "cuda"}, "give it once"),
        ("embedded", {"label_gpus": 1.0}, "'embedded' is not a model: --label-gpus"),
        ("gpt", {}, "no classifier 'gpt'"),
        ("encoder:m?speed=1", {"dtype": "float16"}, "no option speed=1 of encoder"),
    ],
)
def test_flags_that_do_not_fit_are_a_bad_request(classifier: str, flags: dict[str, object], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        jobs.run("label", LabelJobOptions(output="o", classifier=classifier, **flags))  # type: ignore[arg-type]


@pytest.mark.parametrize("missing", ["torch", "selectolax.parser"])
def test_without_the_extra_a_model_says_what_to_install(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(CheckpointError, match=r"pip install 'webstencil\[models\]'"):
        from_spec("encoder:m").load()  # type: ignore[attr-defined]


def test_a_model_has_limits_of_its_own() -> None:
    options = LabelJobOptions(output="o", page_seconds=7, label_seconds=99)
    assert label.bounds(options, "embedded").seconds == 7
    assert label.bounds(options, None).memory_bytes == 768 << 20
    of_a_model = label.bounds(options, "encoder:m")
    assert (of_a_model.seconds, of_a_model.memory_bytes) == (99, None)
