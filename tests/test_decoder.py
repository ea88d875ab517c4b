from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from test_encoder import checkpoint, page

from templates.dom import PageError
from templates.labels import Labels
from udfs.classifiers import prompts
from udfs.classifiers.decoder import Decoder, Question
from udfs.classifiers.grammar import Grammar, State, plain_tokens
from udfs.simplification.simplify import main_html, simplify

MODELS = ("qwen3-tiny", "hunyuan-tiny", "qwen3-tiny-legacyconfig", "hunyuan-tiny-legacyconfig")


def decoder(shared: Path, name: str, **options: Any) -> Decoder:
    path = checkpoint(shared, name)
    try:
        prompts.read("short_compact")
    except ValueError as error:
        pytest.skip(str(error))
    made = Decoder("tiny", path, "cpu", "float32", **options)
    made.load()
    return made


def golden(shared: Path, name: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    folder = shared / "oracles" / "models"
    file = f"mineru_{name.removesuffix('-legacyconfig')}_golden.json.gz"
    with gzip.open(folder / file, "rt", encoding="utf-8") as stream:
        results = json.load(stream)["results"]
    with gzip.open(folder / "pages.jsonl.gz", "rt", encoding="utf-8") as lines:
        pages = {page["id"]: page for page in map(json.loads, lines)}
    return [(result, pages[result["id"]]) for result in results]


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# --- without a model


def test_grammar_accepts_answers_only() -> None:
    grammar = Grammar(["1", "2", "13"])
    whole = grammar.advance(State(), "<answer>1main2other13main</answer>")
    assert whole is not None and grammar.is_complete(whole)
    for text in ("1main", "<answer>2", "<answer>1maybe", "<answer>1main3", "<answer>1main2other13main</answer>x"):
        assert grammar.advance(State(), text) is None
    half = grammar.advance(State(), "<answer>1main2o")
    assert half is not None and not grammar.is_complete(half)
    assert grammar.begun(State(), "<answer>1main2o") == ["main", "other"]


def test_followers_are_the_tokens_that_fit() -> None:
    tokens = plain_tokens(
        {"<answer>": 0, "1": 1, "m": 2, "main": 3, "main2": 4, "o": 5, "x": 6, "12": 7, "<s>": 8}, [8]
    )
    grammar = Grammar(["1", "2"])
    assert grammar.followers(State(), tokens) == {0: "<answer>"}
    at_choice = grammar.advance(State(), "<answer>1")
    assert at_choice is not None
    assert grammar.followers(at_choice, tokens) == {2: "m", 3: "main", 4: "main2", 5: "o"}


def test_prompts_are_checked_by_their_hash(tmp_path: Path) -> None:
    file = tmp_path / "prompt.txt"
    with pytest.raises(ValueError, match="short_compact"):
        prompts.read(str(file))
    file.write_text("Say main or other.\n", encoding="utf-8")
    with pytest.raises(ValueError, match="not one that models were trained with"):
        prompts.read(str(file))


def test_prompts_come_from_the_installed_package_or_from_a_file(tmp_path: Path) -> None:
    try:
        found = {name: prompts.read(name) for name in prompts.SHA256}
    except ValueError as error:
        pytest.skip(str(error))
    for name, text in found.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert prompts.read(str(tmp_path / name)) == text


# --- with the tiny checkpoints


@pytest.mark.parametrize("name", MODELS)
def test_oracle_fast_mode(shared: Path, name: str) -> None:
    model = decoder(shared, name)
    results = golden(shared, name)
    texts = [source["simplified"] for _, source in results]
    answers = model.answer(texts)
    for (result, source), answer in zip(results, answers, strict=True):
        (question,) = model.questions(0, source["simplified"])
        assert sha256(model.prompt(source["simplified"])) == result["prompt_vllm_sha256"]
        assert sha256(json.dumps(question.tokens)) == result["prompt_vllm_ids_sha256"]
        assert not isinstance(answer, PageError)
        labels = {item: "main" if value >= 0.5 else "other" for item, value in answer.items()}
        assert labels == result["forced"]["labels"], result["id"]
        main = main_html(simplify(source["html"])[1], labels)
        assert sha256(main) == result["forced_main_html_sha256"]
    # All pages are asked together: as many steps as the longest batch members have items.
    assert model.steps < sum(result["n_items"] for result, _ in results)


@pytest.mark.parametrize("name", MODELS)
def test_oracle_exact_mode(shared: Path, name: str) -> None:
    model = decoder(shared, name, mode="exact")
    torch = pytest.importorskip("torch")
    for result, source in golden(shared, name):
        (question,) = model.questions(0, source["simplified"])
        with torch.inference_mode():
            margins, tokens = model.write(question)
        assert tokens == result["constrained_strict"]["ids"], result["id"]
        labels = ["main" if margin > 0 else "other" for margin in margins]
        assert dict(zip(question.items, labels, strict=True)) == result["constrained_strict"]["labels"]


def test_a_device_without_memory_halves_the_batch(shared: Path) -> None:
    model = decoder(shared, MODELS[0])
    torch = pytest.importorskip("torch")
    texts = [simplify(f"<p>{'word ' * size}</p>")[0] for size in (3, 4, 5)]
    wanted = model.answer(texts)
    fast = model.fast
    sizes: list[int] = []

    def small(batch: list[Question]) -> Any:
        sizes.append(len(batch))
        if len(batch) > 1 or len(batch[0].tokens) > longest:
            raise torch.OutOfMemoryError("too much")
        return fast(batch)

    longest = max(len(question.tokens) for text in texts for question in model.questions(0, text))
    model.fast = small  # type: ignore[method-assign]
    for one, other in zip(wanted, model.answer(texts), strict=True):
        assert not isinstance(one, PageError) and not isinstance(other, PageError)
        assert other == pytest.approx(one, abs=1e-4)
    assert sizes == [3, 1, 2, 1, 1]
    longest -= 1
    errors = [answer.reason for answer in model.answer(texts) if isinstance(answer, PageError)]
    assert errors == ["out_of_memory"]  # the page that does not fit alone


def test_each_wrapping_is_the_template_once_or_twice(shared: Path) -> None:
    single, twice = (decoder(shared, MODELS[0], wrapping=wrapping) for wrapping in ("single", "published"))
    simplified, _ = simplify("<p>a</p><p>b</p>")
    counts = [model.prompt(simplified).count("<|im_start|>") for model in (single, twice)]
    assert counts == [3, 4]  # system, user, assistant; and the user's once more inside


def test_generation_settings_of_the_checkpoint_change_nothing(shared: Path, tmp_path: Path) -> None:
    path = Path(checkpoint(shared, MODELS[0]))
    folder = tmp_path / "model"
    shutil.copytree(path, folder)
    settings = folder / "generation_config.json"
    settings.chmod(0o644)
    folder.chmod(0o755)
    settings.write_text('{"repetition_penalty": 1.5, "temperature": 2.0, "do_sample": true}', encoding="utf-8")
    simplified, _ = simplify("<p>x</p>" * 50)
    wanted = decoder(shared, MODELS[0]).answer([simplified])
    changed = Decoder("tiny", str(folder), "cpu", "float32")
    assert changed.answer([simplified]) == wanted


def test_long_pages_are_asked_in_parts(shared: Path) -> None:
    model = decoder(shared, MODELS[1], context_tokens=1500)
    html = "".join(f"<p>Block number {number} of a long page</p>" for number in range(200))
    simplified, _ = simplify(html)
    questions = model.questions(0, simplified)
    assert len(questions) > 1
    assert [item for question in questions for item in question.items] == [str(item) for item in range(1, 201)]
    assert max(len(question.tokens) for question in questions) <= 1500
    (answer,) = model.answer([simplified])
    assert not isinstance(answer, PageError) and len(answer) == 200


def test_pages_become_labels_and_those_without_blocks_cost_no_step(shared: Path) -> None:
    model = decoder(shared, MODELS[0])
    empty, full = page("<script>1</script>"), page("<div><p>One</p><p>Two</p></div>")
    results = model.label([empty])
    assert isinstance(results[0], PageError) and results[0].reason == "no_elements" and model.steps == 0
    results = model.label([full, empty])
    assert isinstance(results[0], Labels) and isinstance(results[1], PageError) and model.steps == 2
    assert model.loads == 1
