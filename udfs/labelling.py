"""What happens to a batch of pages that a classifier labels: bounded in time, its model loaded once in a process."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from types import TracebackType
from typing import TypedDict

from templates.dom import PageError
from udfs.classifiers import Labels, Model, loaded_once, specs
from udfs.guard import Failure, Guard, Limits
from udfs.input.sources import Page

BATCH_PAGES = 32
BATCH_CHARS = 4 << 20
"""A classifier gets so much at once: enough to fill a model's batch, far less than a worker's memory."""


class Used(TypedDict):
    """How often a task has loaded a model, and the processes that it labelled in."""

    loads: int
    processes: list[str]


def model_of(spec: str | None) -> Model | None:
    """Return this process's classifier of a spec, if it has a model to load."""
    if spec is None or not specs.is_model(spec):
        return None
    classifier = loaded_once(spec)
    return classifier if isinstance(classifier, Model) else None


def load(spec: str) -> None:
    """Load the model of a spec. Raises CheckpointError or ValueError."""
    model = model_of(spec)
    if model is not None:
        model.load()


def label(pages: Sequence[Page], spec: str) -> list[Labels | PageError]:
    """Label pages by the classifier of a spec, which this process keeps."""
    return loaded_once(spec).label(pages)


class Bounded:
    """What a task needs around a Guard whose work may call a model: how to get ready, and an account of its use.

    On a task's retry (isolated) the work happens in another process, which loads the model; this one gives its
    own back, so that a GPU holds it once.
    """

    def __init__(self, spec: str | None, isolated: bool) -> None:
        self._model = model_of(spec)
        self.prepare = partial(load, spec) if self._model is not None and spec is not None else None
        if self._model is not None and isolated:
            self._model.unload()
        self._loads = self._model.loads if self._model is not None else 0

    def used(self, children: Sequence[int]) -> Used | None:
        """Return the use of the model by this process, or by children of its Guard; None where there is no model."""
        if self._model is None:
            return None
        here = self._model.loads - self._loads
        pids = children or ([os.getpid()] if here or self._model.loads else [])
        return {"loads": here + len(children), "processes": [f"{socket.gethostname()}:{pid}" for pid in pids]}


class Labeller:
    """Labels batches of pages, in the order of the pages; what can't be labelled is a Failure."""

    def __init__(self, spec: str, limits: Limits, isolated: bool) -> None:
        self._isolated = isolated
        self._bounded = Bounded(spec, isolated)
        self._guard = Guard(partial(label, spec=spec), limits, isolated, self._bounded.prepare)

    def __enter__(self) -> Labeller:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._guard.close()

    def __call__(self, pages: Sequence[Page]) -> list[Labels | Failure]:
        """Label pages. Raises RuntimeError where a model fails on each of several pages: no page's fault then."""
        if not pages:
            return []
        outcome = self._guard(pages, share=len(pages))
        if not isinstance(outcome, Failure):
            return [Failure(said.reason) if isinstance(said, PageError) else said for said in outcome]
        if len(pages) == 1:
            return [outcome]
        alone = [said for page in pages for said in self([page])]
        broken = [said for said in alone if isinstance(said, Failure) and said.detail]
        if self._bounded.prepare is not None and len(broken) == len(pages):
            raise RuntimeError(f"the model fails on every page: {broken[0].reason}: {broken[0].detail}")
        return alone

    def batches(self, pages: Iterable[Page]) -> Iterator[list[Page]]:
        """Group pages into what the classifier gets at once: on a retry one, whose death is its own."""
        most = 1 if self._isolated else BATCH_PAGES
        batch: list[Page] = []
        chars = 0
        for page in pages:
            if batch and (len(batch) >= most or chars + len(page.html) > BATCH_CHARS):
                yield batch
                batch, chars = [], 0
            batch.append(page)
            chars += len(page.html)
        if batch:
            yield batch

    def used(self) -> Used | None:
        """Return how the model was used; None for a classifier without one."""
        return self._bounded.used(self._guard.children)
