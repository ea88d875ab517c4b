"""Metrics: laws over any texts, and figures worked out by hand."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from udfs.metrics import Overlap, grams, overlap, score, snippets_passed, token_f1, words

# Few different words, so that texts have some in common.
TEXTS = st.lists(st.sampled_from("a b c A. 漢字 d-e ,".split()), max_size=20).map(" ".join) | st.text(max_size=20)


@pytest.mark.parametrize(
    ("one", "other", "f1"),
    [
        ("", "", 1.0),
        ("a", "", 0.0),
        ("a b", "B a", 1.0),
        ("a a b", "a b", 0.8),
        ("漢字", "漢語", 0.5),
        ("_a_", "a", 1.0),
    ],
)
def test_token_f1(one: str, other: str, f1: float) -> None:
    assert token_f1(one, other) == token_f1(other, one) == pytest.approx(f1)


def test_words() -> None:
    assert words("Ümläut, 2nd かな-x") == ["ümläut", "2nd", "か", "な", "x"]


@given(TEXTS, TEXTS)
def test_a_score_is_symmetric_and_bounded(one: str, other: str) -> None:
    ours, theirs = score(one, other), score(other, one)
    for mine, yours in ((ours.tokens, theirs.tokens), (ours.rouge, theirs.rouge)):
        assert (mine.precision, mine.recall, mine.f1) == (yours.recall, yours.precision, yours.f1)
        assert 0.0 <= min(mine.precision, mine.recall) <= mine.f1 + 1e-12
        assert mine.f1 <= max(mine.precision, mine.recall) + 1e-12 <= 1.0 + 2e-12
    assert (ours.found, ours.wanted) == (len(words(one)), len(words(other)))
    assert ours.tokens.f1 == token_f1(one, other)


@given(TEXTS)
def test_equal_texts_agree_wholly(text: str) -> None:
    found = score(text, f" {text}\n")
    assert found.tokens == found.rouge == Overlap(1.0, 1.0, 1.0)


@given(TEXTS, TEXTS)
def test_rouge_asks_for_order_too(one: str, other: str) -> None:
    found = score(one, other)
    if found.rouge.f1 == 1.0:
        assert found.tokens.f1 == 1.0
    if found.tokens.f1 == 0.0:
        assert found.rouge.f1 == 0.0


@given(TEXTS, TEXTS)
def test_more_text_never_costs_recall(text: str, more: str) -> None:
    if words(text):
        assert score(f"{text} {more}", text).tokens.recall == 1.0
        assert score(text, f"{text} {more}").tokens.precision == 1.0


def test_rouge_counts_runs_of_five_words() -> None:
    assert grams("a b c d e f".split()) == Counter({tuple("abcde"): 1, tuple("bcdef"): 1})
    assert grams(["a", "b"]) == Counter({("a", "b"): 1})
    assert grams([]) == Counter()
    found = score("a b c d e f", "x a b c d e").rouge
    assert (found.precision, found.recall, found.f1) == (0.5, 0.5, 0.5)
    assert score("f e d c b a", "a b c d e f").rouge.f1 == 0.0


def test_precision_and_recall_have_their_own_sides() -> None:
    found = score("a b c d", "a b")
    assert (found.tokens.precision, found.tokens.recall) == (0.5, 1.0)
    assert score("", "a").tokens == Overlap(0.0, 0.0, 0.0)
    assert overlap(Counter("aab"), Counter("ab")) == Overlap(2 / 3, 1.0, 0.8)


def test_snippets_are_compared_as_words() -> None:
    text = "It's a — fine\nday, today."
    assert snippets_passed(text, ["a fine day"], ["night"]) == 1.0
    assert snippets_passed(text, ["Fine Day", "night"], ["TODAY", "rain"]) == 0.5
    assert snippets_passed(text, [], []) is None


@pytest.fixture(scope="module")
def scorer(shared: Path) -> Any:
    """The scorer that shares no code with the project."""
    spec = importlib.util.spec_from_file_location("score", shared / "tools" / "score.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@given(TEXTS, TEXTS)
def test_scores_are_those_of_the_independent_scorer(scorer: Any, one: str, other: str) -> None:
    a, b = scorer.tokens(one), scorer.tokens(other)
    found = score(one, other)
    assert found.tokens.f1 == pytest.approx(scorer.overlap(Counter(a), Counter(b)))
    assert found.rouge.f1 == pytest.approx(scorer.overlap(scorer.grams(a), scorer.grams(b)))
