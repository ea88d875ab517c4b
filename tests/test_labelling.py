"""Batches of pages and their classifier: what a fault costs, and how often a model is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from test_encoder import MODELS, checkpoint, page

from templates.dom import PageError
from templates.labels import Labels
from udfs import labelling
from udfs.classifiers import loaded_once
from udfs.extraction import Conversion, Decision, extract_page
from udfs.guard import Failure, Limits
from udfs.input.pages import Page
from udfs.labelling import Labeller

LABELS = Labels(("/html/body",), (1.0,))


class Model:
    """A model that does what its pages say."""

    name = "encoder:m"

    def __init__(self) -> None:
        self.loads = 0
        self.is_loaded = False
        self.asked: list[int] = []

    def load(self) -> None:
        self.loads += not self.is_loaded
        self.is_loaded = True

    def unload(self) -> None:
        self.is_loaded = False

    def label(self, pages: Sequence[Page]) -> list[Labels | PageError]:
        assert self.is_loaded
        self.asked.append(len(pages))
        if any(page.html == "break" for page in pages):
            raise ValueError("broken")
        return [PageError("no_elements") if page.html == "empty" else LABELS for page in pages]


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Model:
    made = Model()
    monkeypatch.setattr(labelling, "loaded_once", lambda spec: made)
    return made


def test_a_page_that_breaks_the_model_costs_itself(model: Model) -> None:
    with Labeller("encoder:m", Limits(), isolated=False) as label:
        assert label([]) == [] and model.loads == 0
        found = label([page("a"), page("break"), page("empty"), page("b")])
        assert found == [LABELS, Failure("ValueError"), Failure("no_elements"), LABELS]
        assert model.asked == [4, 1, 1, 1, 1]
        used = label.used()
    assert used is not None and used["loads"] == 1 and len(used["processes"]) == 1


def test_a_model_that_fails_on_every_page_is_no_fault_of_pages(model: Model) -> None:
    """As a GPU does after an error that it does not come back from: the task must fail, not its pages."""
    with Labeller("encoder:m", Limits(), isolated=False) as label:
        with pytest.raises(RuntimeError, match=r"fails on every page: ValueError: broken \(test_labelling"):
            label([page("break"), page("break")])
        assert label([page("break")]) == [Failure("ValueError")]


def test_the_next_split_of_a_process_finds_the_model_loaded(model: Model) -> None:
    uses = []
    for _ in range(3):
        with Labeller("encoder:m", Limits(), isolated=False) as label:
            label([page("a")])
            uses.append(label.used())
    assert [use and use["loads"] for use in uses] == [1, 0, 0]
    assert len({name for use in uses if use for name in use["processes"]}) == 1


def test_a_classifier_without_a_model_has_no_use() -> None:
    with Labeller("embedded", Limits(), isolated=False) as label:
        (labels, error) = label([page("<p>One long sentence, and another one.</p>"), page("", "binary")])
        assert isinstance(labels, Labels) and error == Failure("binary")
        assert label.used() is None


@pytest.mark.parametrize(("isolated", "sizes"), [(False, [32, 8]), (True, [1] * 40)])
def test_batches_are_of_one_page_where_a_page_may_kill(isolated: bool, sizes: list[int]) -> None:
    label = Labeller("embedded", Limits(), isolated)
    assert [len(batch) for batch in label.batches(page("x") for _ in range(40))] == sizes
    large = [page("x" * (3 << 20)) for _ in range(3)]
    assert [len(batch) for batch in label.batches(large)] == [1, 1, 1]


def test_a_block_within_a_main_block_comes_out_once() -> None:
    """Report INF06, from labels on: a table of labels may name both."""
    found = page("<div><p>Only once please.</p></div>")
    for paths in (("/html/body/div", "/html/body/div/p"), ("/html/body/div/p", "/html/body/div", "/html/body")):
        labels = Labels(paths, (1.0,) * len(paths))
        row, _ = extract_page(found, Decision(labels=labels), None, Conversion(("markdown",)))
        assert row["text"] == row["markdown"].strip() == "Only once please."
        assert row["main_html"].count("Only once") == 1


def test_isolated_a_model_lives_in_a_process_of_its_own(shared: Path) -> None:
    """It gives the same labels, is loaded there once, and what this process had loaded is given back."""
    spec = f"encoder:{checkpoint(shared, MODELS[0])}?device=cpu&chunk_tokens=512"
    pages = [page(f"<div><h1>Title {number}</h1><p>Some text</p></div>") for number in range(3)]
    limits = Limits(seconds=60, memory_bytes=None)
    found = []
    for isolated in (False, True):
        with Labeller(spec, limits, isolated) as label:
            found.append([labels for batch in label.batches(pages) for labels in label(batch)])
            used = label.used()
            assert used is not None and (used["loads"], len(used["processes"])) == (1, 1)
    assert all(isinstance(labels, Labels) for labels in found[0]) and found[0] == found[1]
    assert getattr(loaded_once(spec), "_model", 1) is None
    missing = Labeller("encoder:/nowhere?device=cpu", limits, isolated=True)
    with missing, pytest.raises(RuntimeError, match=r"CheckpointError: /nowhere has no config.json"):
        missing(pages[:1])
