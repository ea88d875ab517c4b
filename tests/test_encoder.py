from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from templates.dom import PageError
from templates.labels import Labels
from udfs.classifiers import from_spec
from udfs.classifiers.checkpoint import CheckpointError
from udfs.classifiers.encoder import Chunk, Encoder, batched, pack, split_blocks
from udfs.input.pages import Page
from udfs.simplification.simplify import main_html, simplify

MODELS = ("eurobert-tiny", "eurobert-tiny-legacyconfig")


def page(html: str, error: str | None = None) -> Page:
    return Page("http://example.com/", "split", 0, html, "0" * 16, None, error)


def checkpoint(shared: Path, name: str) -> str:
    for module in ("torch", "transformers", "selectolax.parser"):
        pytest.importorskip(module, reason="comes with the extra `models`")
    path = shared / "oracles" / "models" / name
    if not path.is_dir():
        pytest.skip(f"no ../shared/oracles/models/{name}")
    return str(path)


def golden(shared: Path) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    folder = shared / "oracles" / "models"
    with gzip.open(folder / "pulpie_eurobert_golden.json.gz", "rt", encoding="utf-8") as stream:
        results = json.load(stream)["results"]
    with gzip.open(folder / "pages.jsonl.gz", "rt", encoding="utf-8") as lines:
        return results, {page["id"]: page for page in map(json.loads, lines)}


# --- without a model


def test_blocks_begin_with_their_tag() -> None:
    text = '<html><body><p class="a" _item_id="1">x <b>y</b></p> <ul _item_id="2"><li>z</li></ul></body></html>'
    assert split_blocks(text) == [
        '<p class="a" _item_id="1">x <b>y</b></p>',
        '<ul _item_id="2"><li>z</li></ul></body></html>',
    ]
    assert split_blocks("<html></html>") == []


def test_chunks_hold_whole_blocks_and_cut_only_those_too_long() -> None:
    blocks = [[10] * 3, [11] * 2, [12] * 9, [13], []]
    chunks = pack(7, blocks, 3, (0, 1), 8)
    assert [chunk.tokens for chunk in chunks] == [
        [0, 10, 10, 10, 3, 1],
        [0, 11, 11, 3, 1],
        [0, 12, 12, 12, 12, 12, 3, 1],
        [0, 13, 3, 3, 1],
    ]
    assert [chunk.blocks for chunk in chunks] == [[0], [1], [2], [3, 4]]
    assert all(chunk.page == 7 for chunk in chunks)
    assert all(chunk.tokens[place] == 3 for chunk in chunks for place in chunk.separators)
    assert pack(0, [], 3, (None, None), 8) == []
    assert pack(0, [[5]], 3, (None, None), 8)[0].tokens == [5, 3]


def test_batches_stay_within_the_budget_with_padding() -> None:
    chunks = [Chunk(0, [0] * size, [], []) for size in (5, 9, 1, 9, 4, 30)]
    batches = list(batched(chunks, 20))
    assert sorted(len(chunk.tokens) for batch in batches for chunk in batch) == [1, 4, 5, 9, 9, 30]
    assert all(len(batch) == 1 or len(batch) * len(batch[0].tokens) <= 20 for batch in batches)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("encoder:", "use 'embedded'"),
        ("encoder:x?speed=1", "no option speed=1 of encoder"),
        ("encoder:x?batch_tokens=none", "numbers above 0"),
        ("decoder:x?wrapping=triple", "published or single"),
        ("decoder:x?mode=slow", "fast or exact"),
    ],
)
def test_specs_that_are_refused(spec: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_spec(spec)


def test_specs() -> None:
    spec = "encoder:/models/a?device=cpu&dtype=float32&chunk_tokens=512&batch_tokens=1024"
    assert from_spec(spec).name == spec
    assert from_spec("decoder:owner/name?wrapping=single").name == "decoder:owner/name?wrapping=single"


# --- with the tiny checkpoints


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("size", [8192, 512])
def test_oracle_labels_and_logits(shared: Path, name: str, size: int) -> None:
    path = checkpoint(shared, name)
    torch = pytest.importorskip("torch")
    results, pages = golden(shared)
    encoder = Encoder("tiny", path, "cpu", "float32", size)
    results = [result for result in results if result["max_tokens"] == size]
    texts = [pages[result["id"]]["simplified"] for result in results]
    logits = encoder.logits(texts)
    for number, result in enumerate(results):
        items = [str(item) for item in range(1, result["n_blocks"] + 1)]
        labels = dict(
            zip(items, ["main" if main else "other" for main in logits[number].argmax(-1).tolist()], strict=True)
        )
        assert labels == result["labels"], result["id"]
        assert (logits[number] - torch.tensor(result["sep_logits"])).abs().max() < 1e-3
        chunks = encoder.chunks(0, split_blocks(texts[number]))
        digests = [hashlib.sha256(json.dumps(chunk.tokens).encode()).hexdigest() for chunk in chunks]
        assert digests == [chunk["sha256"] for chunk in result["chunks"]]
        main = main_html(simplify(pages[result["id"]]["html"])[1], labels)
        assert hashlib.sha256(main.encode()).hexdigest() == result["main_html_sha256"]
    (answer,) = encoder.answer(texts[:1])
    assert not isinstance(answer, PageError)
    assert {item: "main" if value >= 0.5 else "other" for item, value in answer.items()} == results[0]["labels"]
    assert encoder.loads == 1


def test_a_page_without_blocks_costs_no_call_and_a_bad_page_is_a_value(shared: Path) -> None:
    encoder = from_spec(f"encoder:{checkpoint(shared, MODELS[0])}?device=cpu")
    assert isinstance(encoder, Encoder)
    empty = "<html><body><script>1</script></body></html>"
    results = encoder.label([page(empty), page("", "too_large")])
    assert [result.reason for result in results if isinstance(result, PageError)] == ["no_elements", "too_large"]
    assert encoder.loads == encoder.batches == 0
    results = encoder.label([page("", "binary"), page("<div><p>One</p><p>Two</p></div>"), page(empty)])
    assert isinstance(results[1], Labels) and results[1].paths
    assert encoder.loads == 1 and encoder.batches == 1


def test_a_device_without_memory_halves_the_batch(shared: Path) -> None:
    encoder = Encoder("tiny", checkpoint(shared, MODELS[0]), "cpu", "float32")
    torch = pytest.importorskip("torch")
    texts = [simplify(f"<p>{'word ' * size}</p>")[0] for size in (3, 4, 5, 6)]
    wanted = encoder.answer(texts)
    forward = encoder.forward
    sizes: list[int] = []

    def small(batch: list[Chunk]) -> Any:
        sizes.append(len(batch))
        if len(batch) > 1:
            raise torch.OutOfMemoryError("too much")
        return forward(batch)

    encoder.forward = small  # type: ignore[method-assign]
    found = encoder.answer(texts)
    assert sizes == [4, 2, 1, 1, 2, 1, 1]
    for one, other in zip(wanted, found, strict=True):
        assert not isinstance(one, PageError) and not isinstance(other, PageError)
        assert other == pytest.approx(one, abs=1e-4)


def test_long_pages_are_labelled_completely(shared: Path) -> None:
    encoder = Encoder("tiny", checkpoint(shared, MODELS[0]), "cpu", "float32", 512)
    simplified, _ = simplify("".join(f"<p>Block {number}</p>" for number in range(1000)))
    (answer,) = encoder.answer([simplified])
    assert not isinstance(answer, PageError)
    assert list(answer) == [str(item) for item in range(1, 1001)]


def test_checkpoints_that_are_refused(shared: Path, tmp_path: Path) -> None:
    source = Path(checkpoint(shared, MODELS[0]))
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))

    def refused(**changes: Any) -> str:
        changed = {key: value for key, value in (config | changes).items() if value is not None}
        (tmp_path / "config.json").write_text(json.dumps(changed), encoding="utf-8")
        with pytest.raises(CheckpointError) as error:
            Encoder("tiny", str(tmp_path), "cpu").answer(['<p _item_id="1">x</p>'])
        return str(error.value)

    assert "never run" in refused(model_type="unheard_of", auto_map={"AutoModel": "code.Model"})
    assert "rope_theta" in refused(rope_parameters=None)
    assert "3 labels" in refused(id2label={"0": "a", "1": "b", "2": "c"}, label2id={"a": 0, "b": 1, "c": 2})
    (tmp_path / "pytorch_model.bin").write_bytes(b"a pickle")
    assert "can't be loaded" in refused()
    (tmp_path / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"config\.json"):
        Encoder("tiny", str(tmp_path), "cpu").answer(['<p _item_id="1">x</p>'])
