from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from templates.dom import parse
from udfs.classifiers.embedded import choose, network
from udfs.classifiers.features import GROUPS, NUMBERS, Features, features
from udfs.classifiers.network import Network

PAGES = [
    "<title>Floods</title><a class='menu' href='/'>Home</a><main><h1>Floods</h1><p>The river rose.</p></main>",
    "<p>Just one block.</p>",
    "<table><tr><td>1</td><td>2</td></tr></table>" * 3 + "<footer><p>Imprint</p></footer>",
]


def page_of(html: str) -> Features:
    page = features(parse(html))
    assert page is not None
    return page


def tensors(page: Features, rng: np.random.Generator) -> dict[str, npt.NDArray[np.generic]]:
    """Random weights that know the tokens of a page."""
    pytest.importorskip("torch", reason="torch is not installed: pip install 'webstencil[models]'")
    from udfs.training.trainable import Network as Trainable
    from udfs.training.trainable import Sizes

    known = {"marks": np.unique(page.marks.ids), "words": np.unique(page.words.ids)}
    made = Trainable(known, page.numbers.shape[1], Sizes(), dropout=0.1).tensors()
    return {
        name: rng.normal(size=tensor.shape).astype(np.float16) if tensor.dtype.kind == "f" else tensor
        for name, tensor in made.items()
    }


def test_numpy_and_torch_agree() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'webstencil[models]'")
    from udfs.training.examples import example
    from udfs.training.learning import Settings, _rows_of
    from udfs.training.trainable import Batch, Sizes
    from udfs.training.trainable import Network as Trainable

    rng = np.random.default_rng(5)
    pages = [page_of(html) for html in PAGES]
    stored = tensors(pages[0], rng) | {"scale": np.ones(pages[0].numbers.shape[1], np.float16)}
    known = {name: stored[f"{name}.known"].astype(np.uint32) for name in ("marks", "words")}
    trained = Trainable(known, pages[0].numbers.shape[1], Sizes(), Settings().dropout).eval()
    state = {name.replace("s.rows", "s.weight"): tensor for name, tensor in stored.items() if ".known" not in name}
    trained.load_state_dict({name: torch.from_numpy(tensor.astype(np.float32)) for name, tensor in state.items()})
    examples = [example({"html": html, "url": f"https://a.example/{html}", "gold_paths": ["/html"]}) for html in PAGES]
    with torch.no_grad():
        together = trained(Batch.of(_rows_of(trained, examples))).sigmoid().numpy()
    apart = np.concatenate([Network.of(stored).probabilities(page) for page in pages])
    np.testing.assert_allclose(together, apart, atol=1e-4)
    assert apart.std() > 0.05


def test_features_that_are_left_out_are_not_seen() -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'webstencil[models]'")
    import tiny

    from udfs.training.examples import example
    from udfs.training.learning import Settings, train

    seen = [example(tiny.row(site, 0)) for site in range(4)]
    settings = Settings(epochs=2, mark_domains=1, word_domains=1, without=("words", "place"))
    trained = Network.of(train(seen, settings)[0].tensors())
    page = page_of(tiny.row(1, 0)["html"])
    other = dataclasses.replace(page, words=page_of(tiny.row(2, 0)["html"]).words, numbers=page.numbers.copy())
    other.numbers[:, [NUMBERS.index(name) for name in GROUPS["place"]]] = 7.0
    assert (trained.probabilities(other) == trained.probabilities(page)).all()
    other.numbers[:, NUMBERS.index("link_share")] = 7.0
    assert (trained.probabilities(other) != trained.probabilities(page)).any()


def test_probabilities_do_not_depend_on_unknown_tokens() -> None:
    page = page_of(PAGES[0])
    before = network().probabilities(page)
    tokens = page.words
    ids = np.append(tokens.ids, np.uint32(1))
    assert 1 not in network().tensors["words.known"]
    offsets = np.append(tokens.offsets[:-1], len(ids))
    longer = dataclasses.replace(page, words=dataclasses.replace(tokens, ids=ids, offsets=offsets))
    assert (network().probabilities(longer) == before).all()


PROBABILITIES = st.lists(st.tuples(st.floats(0.001, 0.999), st.integers(1, 500)), min_size=1, max_size=12)


@given(PROBABILITIES)
def test_the_likeliest_are_chosen_and_all_that_are_likelier_than_not(blocks: list[tuple[float, int]]) -> None:
    found, chars = np.array([p for p, _ in blocks]), np.array([float(n) for _, n in blocks])
    main = choose(found, chars, np.arange(len(found)))
    if found.max() < 0.02:
        assert not main.any()
        return
    assert main.any()
    assert main[found >= 0.5].all()
    assert found[main].min() >= found[~main].max(initial=0)


@given(PROBABILITIES, st.floats(0, 1))
def test_no_threshold_has_a_better_expected_f1(blocks: list[tuple[float, int]], threshold: float) -> None:
    found, chars = np.array([p for p, _ in blocks]), np.array([float(n) for _, n in blocks])

    def expected(main: npt.NDArray[np.bool_]) -> float:
        return float(2 * (found * chars)[main].sum() / (chars[main].sum() + (found * chars).sum()))

    if found.max() >= 0.02:
        assert expected(choose(found, chars, np.arange(len(found)))) >= expected(found >= threshold) - 1e-9


def test_of_a_text_no_more_unsure_copies_are_chosen_than_it_is_expected_to_be_main() -> None:
    chars = np.array([100.0, 30.0, 100.0, 30.0, 100.0])
    same = np.array([0, 1, 0, 3, 0])
    either = choose(np.array([0.5, 0.9, 0.6, 0.9, 0.1]), chars, same)  # one of the first two it is: the likelier
    assert either.tolist() == [False, True, True, True, False]
    both = choose(np.array([0.75, 0.9, 0.79, 0.9, 0.1]), chars, same)
    assert both.tolist() == [True, True, True, True, False]
    alone = choose(np.array([0.3, 0.9, 0.1, 0.45, 0.01]), np.array([30.0, 30.0, 1.0, 30.0, 1.0]), same)
    assert alone[3]  # a text that stands there once is chosen as before


def test_cells_alike_and_sure_copies_leave_no_holes() -> None:
    same = np.zeros(10, np.int64)
    assert choose(np.full(10, 0.6), np.full(10, 3.0), same).all()
    assert choose(np.full(10, 0.9), np.full(10, 100.0), same).all()
    assert choose(np.full(10, 0.6), np.full(10, 100.0), same).sum() == 6


@given(PROBABILITIES, st.integers(1, 4))
def test_copies_only_ever_leave_blocks_out_and_never_a_text(blocks: list[tuple[float, int]], texts: int) -> None:
    found, chars = np.array([p for p, _ in blocks]), np.array([float(n) for _, n in blocks])
    same = np.arange(len(found)) % texts
    main, without = choose(found, chars, same), choose(found, chars, np.arange(len(found)))
    assert not (main & ~without).any()
    assert set(same[main]) == set(same[without])
