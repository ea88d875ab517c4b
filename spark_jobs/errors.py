"""The errors that a user sees, and the exit codes that a scheduler sees.

StencilError
├── RequestError    exit code 2: what was asked for cannot be done; nothing was started
│   ├── InputError      no input, or an input of the wrong kind
│   ├── OutputError     the output holds something else
│   └── TableError      a table lacks a column or has one of the wrong type
└── JobError        exit code 1: the job started and failed; run it again to resume
"""

from __future__ import annotations


class StencilError(Exception):
    """An error whose message says what to do."""

    exit_code = 1


class RequestError(StencilError):
    """What was asked for cannot be done."""

    exit_code = 2


class InputError(RequestError):
    """There is no input, or it is of the wrong kind."""


class OutputError(RequestError):
    """The output directory holds something else."""


class TableError(RequestError):
    """A table is not what its schema says."""


class JobError(StencilError):
    """The job started and failed."""
