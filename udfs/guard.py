"""Poison pages: one page's work within bounds, so that a bad page costs itself and not its task."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Generic, NoReturn, TypeVar

from templates.dom import PageError

Item = TypeVar("Item")
Result = TypeVar("Result")

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_WALL = 5.0


@dataclass(frozen=True)
class Limits:
    """What one page may cost.

    seconds: CPU time, so that a page's fate does not depend on its neighbours; five times as much wall time, for
    one that waits. memory_bytes: address space beyond what the worker has already (isolated only);
    None for work that maps more than it uses, as a GPU library does.
    """

    seconds: float = 30.0
    memory_bytes: int | None = 1 << 30


@dataclass(frozen=True)
class Failure:
    """Why an item has no result: a PageError's reason, `timeout`, `crash`, `memory`, an exception's name."""

    reason: str
    detail: str = field(default="", compare=False)
    """What an unexpected exception said, and where it was raised; for a person."""


class Guard(Generic[Item, Result]):
    """Calls a function on one item after the other and returns its result or a Failure, never an exception.

    Inline (a task's first attempt), timers of the kernel end the whole process once an item exceeds its
    time: no Python handler runs while C code holds the interpreter. Spark then retries the task, and a retry
    is isolated: the function runs in a child that lives on from item to item, whose death is that item's Failure.

    The child is a fork. With `prepare`, which is called once before the first item in the process that works, in
    no item's time, it is a new interpreter: a fork can use neither a GPU nor the threads that its parent has used.
    Then `function` and `prepare` must pickle, and any unexpected exception ends the child, for a GPU may not come
    back from one; what `prepare` raises comes out of the first call. children: process ids of all it had.
    """

    def __init__(
        self,
        function: Callable[[Item], Result],
        limits: Limits,
        isolated: bool,
        prepare: Callable[[], object] | None = None,
    ) -> None:
        self._function = function
        self._limits = limits
        self._isolated = isolated
        self._prepare = prepare
        self._is_prepared = prepare is None
        self._child: int | None = None
        self._pipe: Connection | None = None
        self.children: list[int] = []

    def __enter__(self) -> Guard[Item, Result]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __call__(self, item: Item, share: float = 1.0) -> Result | Failure:
        """Run the function on an item; `share` multiplies the time (the pages of a batch)."""
        seconds = self._limits.seconds * share
        if self._isolated:
            return self._in_child(item, seconds)
        if self._prepare is not None and not self._is_prepared:
            self._prepare()
            self._is_prepared = True
        return _timed(self._function, item, seconds)

    def close(self) -> None:
        """End the child, if there is one."""
        self._end()

    def _in_child(self, item: Item, seconds: float) -> Result | Failure:
        pipe = self._pipe or self._start()
        try:
            pipe.send((item, seconds))
            # The child's own timers should end it first.
            outcome: Result | Failure = pipe.recv() if pipe.poll(_WALL * seconds + 1) else Failure("timeout")
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return Failure("timeout" if self._end() in (signal.SIGPROF, signal.SIGALRM) else "crash")
        if isinstance(outcome, Failure) and (
            outcome.reason in ("timeout", "memory") or (outcome.detail and self._prepare is not None)
        ):
            self._end()
        return outcome

    def _end(self) -> int:
        """End the child and return the signal that ended it, which may have been another one than ours."""
        status = 0
        if self._child is not None:
            os.kill(self._child, signal.SIGKILL)
            status = os.waitpid(self._child, 0)[1]
            self._child = None
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
        return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0

    def _start(self) -> Connection:
        pid, pipe = self._fork() if self._prepare is None else self._spawn()
        self._child, self._pipe = pid, pipe
        self.children.append(pid)
        if self._prepare is None:
            return pipe
        pipe.send((self._function, self._prepare, self._limits.memory_bytes))
        try:
            failure: Failure | None = pipe.recv()
        except EOFError:
            failure = Failure("crash")
        if failure is not None:
            self._end()
            raise RuntimeError(f"an isolated process could not start: {failure.reason}: {failure.detail}")
        return pipe

    def _fork(self) -> tuple[int, Connection]:
        ours, theirs = multiprocessing.Pipe()
        pid = os.fork()
        if pid == 0:
            ours.close()
            _serve(theirs, self._function, self._limits.memory_bytes)
        theirs.close()
        return pid, ours

    def _spawn(self) -> tuple[int, Connection]:
        ours, theirs = multiprocessing.Pipe()
        os.set_inheritable(theirs.fileno(), True)
        program = f"from udfs import guard; guard.serve({theirs.fileno()})"
        path = os.pathsep.join(filter(None, sys.path))
        pid = os.posix_spawn(sys.executable, [sys.executable, "-c", program], os.environ | {"PYTHONPATH": path})
        theirs.close()
        return pid, ours


def _timed(function: Callable[[Item], Result], item: Item, seconds: float) -> Result | Failure:
    """Run the function under timers whose signals, by their default action, end this process."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, _WALL * seconds)
    try:
        return _attempt(function, item)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _attempt(function: Callable[[Item], Result], item: Item) -> Result | Failure:
    try:
        return function(item)
    except PageError as error:
        return Failure(error.reason)
    except MemoryError:
        return Failure("memory")
    except Exception as error:  # noqa: BLE001  # the one broad except: a page is a row, whatever it does
        last = traceback.extract_tb(error.__traceback__)[-1]
        return Failure(type(error).__name__, f"{error} ({os.path.basename(last.filename)}:{last.lineno})")


def serve(descriptor: int) -> NoReturn:
    """Be the new interpreter of an isolated Guard: get ready, say so, answer items."""
    pipe = Connection(descriptor)
    _end_with_parent()
    function, prepare, memory_bytes = pipe.recv()
    # The weights of a model are none of a page's memory: the limit starts after them.
    outcome = _attempt(lambda _: prepare(), None)
    pipe.send(outcome if isinstance(outcome, Failure) else None)
    _serve(pipe, function, memory_bytes)


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _serve(pipe: Connection, function: Callable[[Item], Result], memory_bytes: int | None) -> NoReturn:
    """Answer items until the pipe ends; this process never returns into the code that it was forked from."""
    try:
        _end_with_parent()
        if memory_bytes is not None:
            allowed = _address_space() + memory_bytes
            resource.setrlimit(resource.RLIMIT_AS, (allowed, allowed))
        while True:
            item, seconds = pipe.recv()
            outcome = _timed(function, item, seconds)
            try:
                pipe.send(outcome)
            except MemoryError:
                pipe.send(Failure("memory"))
    finally:
        os._exit(0)


def _address_space() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
