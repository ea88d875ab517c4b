"""Poison pages: what ends a page, and what it leaves alone."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from functools import partial
from pathlib import Path

import pytest

from templates.dom import PageError
from udfs.guard import Failure, Guard, Limits

QUICK = Limits(seconds=0.3, memory_bytes=256 << 20)


def behave(item: str) -> str:
    """Do what the item says."""
    if item == "crash":
        faulthandler.disable()  # pytest's would print a stack that looks like a failed test
        ctypes.string_at(0)
    elif item == "exit":
        os._exit(3)
    elif item == "hang":
        re.match(r"(a+)+$", "a" * 64 + "b")  # in C code, with the interpreter lock held
    elif item == "sleep":
        time.sleep(60)
    elif item == "memory":
        return "x" * (1 << 30)
    elif item == "recurse":
        return behave(item)
    elif item == "page":
        raise PageError("too_deep")
    return item.upper()


@pytest.mark.parametrize("isolated", [False, True])
def test_results_come_through_and_exceptions_become_failures(isolated: bool) -> None:
    with Guard(behave, Limits(), isolated) as guard:
        outcomes = [guard(item) for item in ("a", "page", "recurse", "b")]
    assert outcomes == ["A", Failure("too_deep"), Failure("RecursionError"), "B"]


@pytest.mark.parametrize(
    ("item", "reason"),
    [("crash", "crash"), ("exit", "crash"), ("hang", "timeout"), ("sleep", "timeout"), ("memory", "memory")],
)
def test_an_isolated_page_costs_itself_alone(item: str, reason: str) -> None:
    with Guard(behave, QUICK, isolated=True) as guard:
        assert [guard("a"), guard(item), guard("b")] == ["A", Failure(reason), "B"]


def test_the_child_lives_from_page_to_page_and_ends_with_the_guard() -> None:
    def parent_and_self(_: str) -> tuple[int, int]:
        return os.getppid(), os.getpid()

    with Guard(parent_and_self, QUICK, isolated=True) as guard:
        first, second = guard("a"), guard("b")
    assert first == second
    assert isinstance(first, tuple) and first[0] == os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(first[1], 0)


def test_large_pages_pass_both_ways() -> None:
    with Guard(behave, QUICK, isolated=True) as guard:
        assert guard("a" * 10_000_000) == "A" * 10_000_000


def test_time_is_given_by_the_share() -> None:
    def work(seconds: float) -> float:
        end = time.process_time() + seconds
        while time.process_time() < end:
            pass
        return seconds

    with Guard(work, Limits(seconds=0.2), isolated=True) as guard:
        assert guard(0.4, share=10) == 0.4
        assert guard(10.0) == Failure("timeout")


def test_a_hang_on_the_first_attempt_ends_the_process() -> None:
    """No Python handler could: the regular expression holds the interpreter lock."""
    program = textwrap.dedent("""
        from test_guard import QUICK, behave
        from udfs.guard import Guard
        with Guard(behave, QUICK, isolated=False) as guard:
            guard("a")
            print("before", flush=True)
            guard("hang")
        print("after", flush=True)
    """)
    here = Path(__file__).parent
    environment = os.environ | {"PYTHONPATH": f"{here}{os.pathsep}{here.parent}"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, env=environment, timeout=60)
    assert done.stdout == b"before\n"
    assert done.returncode != 0


def get_ready(folder: Path) -> None:
    """Say that this process is ready, as one that loads a model."""
    (folder / str(os.getpid())).touch()


def fail_to_get_ready() -> None:
    """Do as a model whose checkpoint is missing."""
    raise ValueError("no such checkpoint")


def which(item: str) -> tuple[str, int]:
    """Say who does the work."""
    return behave(item), os.getpid()


def test_what_is_prepared_is_prepared_once_in_a_new_process(tmp_path: Path) -> None:
    """A fork would share its parent's GPU and stand still in its parent's threads."""
    with Guard(which, QUICK, isolated=True, prepare=partial(get_ready, tmp_path)) as guard:
        outcomes = [guard(item) for item in ("a", "b", "crash", "c", "recurse", "page", "d")]
        assert [outcome for outcome in outcomes if isinstance(outcome, Failure)] == [
            Failure("crash"),
            Failure("RecursionError"),
            Failure("too_deep"),
        ]
        answers = [outcome for outcome in outcomes if not isinstance(outcome, Failure)]
        assert [said for said, _ in answers] == ["A", "B", "C", "D"]
        workers = [pid for _, pid in answers]
        assert workers[0] == workers[1] and len(set(workers)) == 3 and os.getpid() not in workers
        assert guard.children == list(dict.fromkeys(workers))  # a page's own fault costs no process
        assert {path.name for path in tmp_path.iterdir()} == set(map(str, guard.children))


def test_inline_what_is_prepared_is_prepared_before_the_first_item(tmp_path: Path) -> None:
    with Guard(which, QUICK, isolated=False, prepare=partial(get_ready, tmp_path)) as guard:
        assert not list(tmp_path.iterdir())
        assert guard("a") == ("A", os.getpid()) == guard("a")
        assert [path.name for path in tmp_path.iterdir()] == [str(os.getpid())]
        assert guard.children == []


@pytest.mark.parametrize(("isolated", "kind"), [(False, ValueError), (True, RuntimeError)])
def test_what_cannot_be_prepared_is_no_page_s_fault(isolated: bool, kind: type[Exception]) -> None:
    guard = Guard(which, QUICK, isolated, prepare=fail_to_get_ready)
    with guard, pytest.raises(kind, match="no such checkpoint"):
        guard("a")


def test_no_timer_is_left_behind() -> None:
    with Guard(behave, QUICK, isolated=False) as guard:
        guard("a")
        guard("page")
        for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
            assert signal.getitimer(timer) == (0.0, 0.0)
