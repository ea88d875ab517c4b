from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny

from templates.dom import PageError, parse
from templates.labels import Labels, resolve
from udfs.classifiers.checkpoint import CheckpointError
from udfs.classifiers.encoder import Encoder
from udfs.classifiers.items import item_shares
from udfs.metrics import words
from udfs.simplification.simplify import simplify
from udfs.training import finetuning
from udfs.training.distillation import softened
from udfs.training.examples import example
from udfs.training.finetuning import Settings, finetune, losses
from udfs.training.lessons import Lesson, class_weights, lesson

FAST = Settings(epochs=8, learning_rate=3e-3, batch_chunks=2, batch_tokens=2048)


def lessons(sites: int = 8) -> list[Lesson]:
    rows = [tiny.row(site, page, split="dev" if site >= 6 else "train") for site in range(sites) for page in range(3)]
    return [lesson(row, example(row)) for row in rows]


def encoder(path: str, tokens: int = 512) -> Encoder:
    return Encoder(f"encoder:{path}", path, "cpu", "float32", tokens)


# --- what is learned from


def test_gold_paths_become_targets_of_blocks() -> None:
    pytest.importorskip("selectolax.parser")
    row = tiny.row(1, 1)
    made = lesson(row, example(row))
    main = {"".join(sorted(text.elements())) for text, target in zip(made.texts, made.targets, strict=True) if target}
    wanted = [part.split("<")[0] for part in row["html"].split("<main>")[1].split("</main>")[0].split(">") if part]
    assert main == {"".join(sorted(words(part))) for part in wanted if part}
    assert 0 in made.targets
    assert made.f1(made.targets) == 1.0 and made.f1([0] * len(made.targets)) == 0.0


def test_excluded_paths_text_nodes_and_titles() -> None:
    pytest.importorskip("selectolax.parser")
    html = "<body><h1>A title</h1><div>Loose words<p>Main text</p><p class=x>Not main</p></div><p>Foot</p></body>"
    row = {
        "html": html, "gold_text": "Loose words Main text", "gold_paths": ["/html/body/div"], "url": "http://a.example/",
        "gold_excluded_paths": ["/html/body/div/p[2]"], "title_path": "/html/body/h1", "title_in_gold": False,
    }  # fmt: skip
    made = lesson(row, example(row))
    found = {" ".join(text): target for text, target in zip(made.texts, made.targets, strict=True)}
    assert found == {"a title": -1, "loose words": 1, "main text": 1, "not main": 0, "foot": 0}
    assert lesson(row | {"title_in_gold": True}, example(row)).targets[0] == 0
    loose = row | {"gold_paths": ["/html/body/div/text()"], "gold_excluded_paths": [], "gold_text": "Loose words"}
    assert lesson(loose, example(loose)).targets == (-1, 1, 0, 0, 0)


def test_text_alone_gives_the_same_targets() -> None:
    pytest.importorskip("selectolax.parser")
    row = tiny.row(2, 1)
    by_text = {key: value for key, value in row.items() if key != "gold_paths"}
    assert lesson(by_text, example(by_text)).targets == lesson(row, example(row)).targets
    with pytest.raises(PageError, match="truth_not_found"):
        example(by_text | {"gold_text": "Something else that the page never says anywhere"})


def test_items_get_back_what_labels_say() -> None:
    pytest.importorskip("selectolax.parser")
    html = (
        "<body><div>One<br>two <img src=a.png><p>Three four</p></div><p>Five</p><figure><img src=b.png></figure></body>"
    )
    root = parse(html)
    labels = Labels(("/html/body/div", "/html/body/div/p", "/html/body/p"), (0.75, 0.25, 1.0))
    items = item_shares(root, simplify(html)[1], resolve(root, labels))
    assert {item.text: item.share for item in items.values() if item.text} == {
        "One": 0.75,
        "two": 0.75,
        "Three four": 0.25,
        "Five": 1.0,
    }


def test_class_weights_make_a_block_weigh_one() -> None:
    one = Lesson("toy", "train", "", (1, 0, 0, 0, -1), (), Counter())
    assert class_weights([one]) == (4 / 6, 4 / 2)
    assert class_weights([]) == (0.0, 0.0)


# --- training


def test_losses_are_the_published_ones() -> None:
    torch = pytest.importorskip("torch")
    logits = torch.tensor([[1.0, 3.0], [0.0, 0.0], [2.0, -1.0]])
    teacher = torch.tensor([[0.0, 4.0], [1.0, 0.0], [2.0, -1.0]])
    entropy, divergence = losses(logits, torch.tensor([1, 0, -1]), torch.tensor([0.5, 2.0]), teacher, 2.0)
    assert entropy.item() == pytest.approx(2.0 * math.log(1 + math.exp(-2)) + 0.5 * math.log(2))

    def kl(said: float, wanted: float) -> float:
        p, q = 1 / (1 + math.exp(-wanted / 2)), 1 / (1 + math.exp(-said / 2))
        return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))

    assert divergence.item() == pytest.approx(4 * (kl(2, 4) + kl(0, -1)), abs=1e-5)
    assert losses(logits, torch.tensor([1, 0, -1]), torch.ones(2), None, 2.0)[1].item() == 0.0


def test_training_learns_is_repeatable_and_the_saved_checkpoint_says_the_same(tmp_path: Path) -> None:
    tiny.need_models()
    path = tiny.checkpoint(tmp_path / "base")
    given = lessons()
    held_out = [one for one in given if one.split == "dev"]
    before = finetuning.scores(encoder(path), held_out)[0]["toy"]
    weights = []
    for name in ("one", "same"):
        student = encoder(path)
        curve = finetune(student, given, FAST)
        assert curve[-1].loss < curve[0].loss / 2
        assert curve[-1].scores["toy"] > max(0.9, before) and curve[-1].agreement is None
        finetuning.save(student, str(tmp_path / name))
        weights.append((tmp_path / name / "model.safetensors").read_bytes())
    assert weights[0] == weights[1]
    finetune(other := encoder(path), given, replace(FAST, seed=1))
    finetuning.save(other, str(tmp_path / "other"))
    assert (tmp_path / "other" / "model.safetensors").read_bytes() != weights[0]
    texts = [one.simplified for one in held_out]
    for said, loaded in zip(student.logits(texts), encoder(str(tmp_path / "one")).logits(texts), strict=True):
        assert (said == loaded).all()


def test_gradients_add_up_over_batches(tmp_path: Path) -> None:
    tiny.need_models()
    path = tiny.checkpoint(tmp_path / "base")
    given = lessons(3)
    settings = replace(FAST, epochs=1, batch_chunks=100, batch_tokens=8192)
    at_once, one_by_one = encoder(path, 128), encoder(path, 128)  # a page is several chunks
    torch = pytest.importorskip("torch")
    wanted = torch.nn.functional.cross_entropy(
        torch.cat(at_once.logits([one.simplified for one in given])),
        torch.tensor([target for one in given for target in one.targets]),
        torch.tensor(class_weights(given)),
        ignore_index=-1,
    )
    at_once.batches = 0
    (whole,) = finetune(at_once, given, settings)
    (parts,) = finetune(one_by_one, given, replace(settings, batch_tokens=1))
    assert parts.loss == pytest.approx(whole.loss, rel=1e-4)
    assert whole.loss == pytest.approx(wanted.item(), rel=1e-4)
    assert one_by_one.batches > 9 and at_once.batches == 1
    for one, other in zip(at_once.parts()[0].parameters(), one_by_one.parts()[0].parameters(), strict=True):
        # The first step of Adam is the rate times the gradient's sign, whatever rounding makes of tiny ones.
        assert (one - other).abs().median() < 1e-4


def test_half_precision_computes_and_full_precision_keeps(tmp_path: Path) -> None:
    tiny.need_models()
    path = tiny.checkpoint(tmp_path / "base")
    full, half = encoder(path), encoder(path)
    wanted, found = finetune(full, lessons(), FAST), finetune(half, lessons(), FAST, autocast=True)
    assert {str(values.dtype) for values in half.parts()[0].parameters()} == {"torch.float32"}
    assert found[0].loss == pytest.approx(wanted[0].loss, rel=0.05) and found[0].loss != wanted[0].loss
    assert found[-1].loss < found[0].loss / 2


def test_a_head_that_the_checkpoint_lacks_is_drawn_from_the_seed(tmp_path: Path) -> None:
    tiny.need_models()
    path = tiny.checkpoint(tmp_path / "base", has_head=False)
    given = lessons(1)
    heads = []
    for seed in (0, 0, 1):
        student = encoder(path)
        finetune(student, given, replace(FAST, seed=seed, epochs=1, learning_rate=1e-9))
        heads.append(student.parts()[0].classifier.weight)
    assert (heads[0] == heads[1]).all() and (heads[0] != heads[2]).any()


def test_a_student_comes_to_agree_with_its_teacher(tmp_path: Path) -> None:
    tiny.need_models()
    teacher = encoder(tiny.checkpoint(tmp_path / "teacher", seed=1))
    given = lessons()
    finetune(teacher, [inverted(one) for one in given], FAST)  # so that agreement is not what the truth teaches
    student = encoder(tiny.checkpoint(tmp_path / "student", seed=2, hidden=24))
    taught = finetuning.with_teacher([one for one in given if one.split == "dev"], student, teacher)
    _, before = finetuning.scores(student, taught)
    curve = finetune(student, given, FAST, teacher=teacher)
    _, after = finetuning.scores(student, taught)
    assert before is not None and after is not None
    assert after > max(0.9, before) and curve[-1].agreement == after
    assert curve[-1].scores["toy"] < 0.5  # 0.7 of the loss is the teacher's


def inverted(one: Lesson) -> Lesson:
    return replace(one, targets=tuple(1 - target for target in one.targets))


def test_teachers_need_the_same_tokenizer(tmp_path: Path) -> None:
    tiny.need_models()
    teacher = encoder(tiny.checkpoint(tmp_path / "teacher", vocabulary=320))
    student = encoder(tiny.checkpoint(tmp_path / "student"))
    with pytest.raises(CheckpointError, match="tokenizers differ"):
        finetune(student, lessons(1), FAST, teacher=teacher)


def test_nothing_to_learn_from_is_an_error(tmp_path: Path) -> None:
    tiny.need_models()
    student = encoder(tiny.checkpoint(tmp_path / "student"))
    with pytest.raises(ValueError, match="split 'train'"):
        finetune(student, [one for one in lessons() if one.split == "dev"], FAST)


# --- distillation into the embedded classifier


def test_labels_of_a_teacher_soften_the_targets() -> None:
    html = "<body><p>Main text</p><div>Loose <b>bold</b><p>Inner</p></div><p>Foot</p></body>"
    row: dict[str, Any] = {"html": html, "gold_text": "Main text", "gold_paths": ["/html/body/p[1]"]}
    made = example(row)
    assert made.target.tolist() == [1, 0, 0, 0]
    labels = Labels(("/html/body/p[1]", "/html/body/div/text()", "/html/body/div/p"), (0.5, 1.0, 0.9))
    target = softened(made, html, labels).target
    loose = 5 / 9  # of "Loose" and "bold"
    assert target == pytest.approx(np.array([0.3 + 0.7 * 0.5, 0.7 * loose, 0.7 * 0.9, 0]), abs=1e-6)
