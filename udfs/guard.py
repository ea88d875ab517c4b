"""Poison pages: one page's work within bounds, so that a bad page costs itself and not its task."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import resource
import signal
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Generic, NoReturn, TypeVar

from templates.dom import PageError

Item = TypeVar("Item")
Result = TypeVar("Result")

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


@dataclass(frozen=True)
class Limits:
    """What one page may cost.

    seconds: wall time. memory_bytes: address space beyond what the worker has already (isolated only);
    None for work that maps more than it uses, as a GPU library does.
    """

    seconds: float = 30.0
    memory_bytes: int | None = 1 << 30


@dataclass(frozen=True)
class Failure:
    """Why an item has no result: a PageError's reason, `timeout`, `crash`, `memory`, an exception's name."""

    reason: str


class Guard(Generic[Item, Result]):
    """Calls a function on one item after the other and returns its result or a Failure, never an exception.

    Inline (a task's first attempt), a timer of the kernel ends the whole process once an item exceeds its
    time: no Python handler runs while C code holds the interpreter. Spark then retries the task, and a retry
    is isolated: the function runs in a forked child that lives on from item to item, whose death is that
    item's Failure.
    """

    def __init__(self, function: Callable[[Item], Result], limits: Limits, isolated: bool) -> None:
        self._function = function
        self._limits = limits
        self._isolated = isolated
        self._child: int | None = None
        self._pipe: Connection | None = None

    def __enter__(self) -> Guard[Item, Result]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __call__(self, item: Item, share: float = 1.0) -> Result | Failure:
        """Run the function on an item; `share` multiplies the time (the pages of a batch)."""
        seconds = self._limits.seconds * share
        return self._in_child(item, seconds) if self._isolated else self._inline(item, seconds)

    def close(self) -> None:
        """End the child, if there is one."""
        if self._child is not None:
            os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)
            self._child = None
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None

    def _inline(self, item: Item, seconds: float) -> Result | Failure:
        signal.setitimer(signal.ITIMER_REAL, seconds)  # SIGALRM's default action ends the process
        try:
            return _attempt(self._function, item)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _in_child(self, item: Item, seconds: float) -> Result | Failure:
        pipe = self._pipe or self._fork()
        outcome: Result | Failure
        try:
            pipe.send(item)
            outcome = pipe.recv() if pipe.poll(seconds) else Failure("timeout")
        except (EOFError, BrokenPipeError, ConnectionResetError):
            outcome = Failure("crash")
        if isinstance(outcome, Failure) and outcome.reason in ("timeout", "crash", "memory"):
            self.close()
        return outcome

    def _fork(self) -> Connection:
        ours, theirs = multiprocessing.Pipe()
        self._child = os.fork()
        if self._child == 0:
            ours.close()
            _serve(theirs, self._function, self._limits.memory_bytes)
        theirs.close()
        self._pipe = ours
        return ours


def _attempt(function: Callable[[Item], Result], item: Item) -> Result | Failure:
    try:
        return function(item)
    except PageError as error:
        return Failure(error.reason)
    except MemoryError:
        return Failure("memory")
    except Exception as error:  # noqa: BLE001  # the one broad except: a page is a row, whatever it does
        return Failure(type(error).__name__)


def _serve(pipe: Connection, function: Callable[[Item], Result], memory_bytes: int | None) -> NoReturn:
    """Answer items until the pipe ends; this process never returns into the code that it was forked from."""
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if memory_bytes is not None:
            allowed = _address_space() + memory_bytes
            resource.setrlimit(resource.RLIMIT_AS, (allowed, allowed))
        while True:
            outcome = _attempt(function, pipe.recv())
            try:
                pipe.send(outcome)
            except MemoryError:
                pipe.send(Failure("memory"))
    finally:
        os._exit(0)


def _address_space() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
