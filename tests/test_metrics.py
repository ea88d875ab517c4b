from __future__ import annotations

import pytest

from udfs.metrics import token_f1, words


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
