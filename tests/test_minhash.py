from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from templates.dom import parse
from udfs.minhash import SKETCH_SIZE, pack, similarity, sketch, tag_paths, unpack

PATHS = st.sets(st.integers(0, 2**32 - 1), max_size=80)


def test_attributes_repetition_and_text_do_not_count() -> None:
    one = parse("<body class=a><ul><li>1</li></ul><p>x")
    other = parse("<body id=b><ul><li><li>2<li></ul><p class=y>z<p>")
    assert tag_paths(one) == tag_paths(other) != tag_paths(parse("<ul><li><b>1</b></ul><p>"))


def test_scripts_do_not_count() -> None:
    assert sketch(parse("<p>a<script>1</script><style></style>")) == sketch(parse("<head><title>t</title></head><p>a"))


@given(PATHS, PATHS)
def test_small_sets_are_compared_exactly(one: set[int], other: set[int]) -> None:
    exact = len(one & other) / len(one | other) if one | other else 1.0
    assert similarity(unpack(pack(one)), unpack(pack(other))) == exact


def test_large_sets_are_estimated_within_the_stated_error() -> None:
    values = random.Random(7).sample(range(2**32), 6000)
    one, other = set(values[:4000]), set(values[2000:])
    sketches = unpack(pack(one)), unpack(pack(other))
    assert len(sketches[0]) == SKETCH_SIZE
    assert abs(similarity(*sketches) - 1 / 3) < 4 / SKETCH_SIZE**0.5


@given(PATHS)
def test_a_sketch_is_sorted_and_keeps_the_smallest(paths: set[int]) -> None:
    assert len(pack(paths)) == 4 * len(unpack(pack(paths)))
    assert unpack(pack(paths)) <= unpack(pack(paths | {1, 2, 3})) or len(paths) + 3 > SKETCH_SIZE
