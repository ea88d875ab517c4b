"""The stages of a run: where each keeps its data, what it was made from, and whether it is done."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from spark_jobs import __version__
from spark_jobs.errors import InputError, OutputError
from spark_jobs.options import SignOptions
from templates import storage
from udfs.input.sources import SourceOptions, Split, list_splits

log = logging.getLogger("stencil")

Manifest = dict[str, Any]


def digest(value: Any) -> str:
    """Digest a JSON value: 16 hexadecimal digits, equal for equal values."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


@dataclass(frozen=True)
class Stage:
    """One stage of one run.

    inputs: stage names and their keys. options: those that decide what the stage writes. The key is a digest
    of both and of the version. The manifest is written last: a stage that has one is done.
    """

    name: str
    directory: str
    inputs: Mapping[str, str]
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Digest of everything that decides what this stage writes."""
        return digest(self._identity())

    def path(self, *names: str) -> str:
        """Return a path below the stage's directory."""
        return storage.join(self.directory, *names)

    def run(self, work: Callable[[str], Manifest]) -> Manifest:
        """Do the work unless it is done, and publish what it counted; returns the manifest.

        The work gets a directory of its own: the executors of a killed driver may go on for a while, and what
        Spark's committer moves into place late must not meet the tables of the next attempt.
        Raises OutputError where the directory holds this stage of other options, inputs or version.
        """
        self._check(storage.read_json(self.path("begun.json")))
        manifest: Manifest | None = storage.read_json(self.path("manifest.json"))
        if manifest is not None:
            log.info("%s: done before", self.name)
            return manifest
        storage.write_json(self.path("begun.json"), self._identity())
        start = time.monotonic()
        attempt = f"attempt-{uuid.uuid4().hex[:8]}"
        manifest = self._identity() | {"key": self.key, "attempt": attempt} | work(self.path(attempt))
        manifest["seconds"] = round(time.monotonic() - start, 1)
        storage.write_json(self.path("manifest.json"), manifest)
        log.info("%s: %d rows in %.1f s", self.name, manifest["rows"], manifest["seconds"])
        for name, example in manifest.get("examples", {}).items():
            log.warning("%s: %s, please report it; the first one: %s", self.name, name, example)
        for name in storage.list_names(self.directory):
            if name.startswith("attempt-") and name != attempt:
                storage.remove(self.path(name))
        return manifest

    def _identity(self) -> Manifest:
        return {
            "stage": self.name,
            "inputs": dict(self.inputs),
            "options": json.loads(json.dumps(self.options)),
            "version": __version__,
        }

    def _check(self, begun: Manifest | None) -> None:
        if begun is None or begun == self._identity():
            return
        there, here = ({"version": x["version"], **x["options"], **x["inputs"]} for x in (begun, self._identity()))
        differing = [
            f"{name} was {there.get(name)!r} and is {here.get(name)!r}"
            for name in sorted(there.keys() | here.keys())
            if there.get(name) != here.get(name)
        ]
        raise OutputError(
            f"{self.directory} holds the stage {self.name} of another run: {'; '.join(differing)}. "
            "Give the same options to resume it, choose another --output, or start anew with --overwrite"
        )


@dataclass(frozen=True)
class Plan:
    """A run's input and the places of its data.

    splits: sorted by name. key: digest of the input, that is of the splits, their sizes where they are local
    files, and the options that say how to read them.
    """

    output: str
    source: SourceOptions
    splits: tuple[Split, ...]
    key: str

    def work(self, *names: str) -> str:
        """Return a path below the run's working directory."""
        return storage.join(self.output, "_work", *names)

    @property
    def extractions(self) -> str:
        """Return the directory of the product."""
        return storage.join(self.output, "extractions")

    def stage(self, name: str, inputs: Mapping[str, str], options: Mapping[str, Any] | None = None) -> Stage:
        """Describe a stage of this run, such as `sign` or `round-1/cluster`."""
        return Stage(name, self.work(*name.split("/")), inputs, options or {})

    def manifest(self, name: str) -> Manifest | None:
        """Read the manifest of a stage, or return None where it is not done."""
        found: Manifest | None = storage.read_json(self.work(*name.split("/"), "manifest.json"))
        return found

    def finished(self, name: str) -> Manifest:
        """Read the manifest of a stage that must be done; raises OutputError where it is not."""
        found = self.manifest(name)
        if found is None:
            raise OutputError(f"the stage {name} of {self.output} is not done: run it first, or run extract")
        return found

    def table(self, stage: str, name: str) -> str:
        """Return the directory of a table of a finished stage; raises OutputError where it is not done."""
        return self.work(*stage.split("/"), self.finished(stage)["attempt"], name)

    def next_round(self, part: str) -> int:
        """Return the first round that has not done a stage such as `cluster`.

        Raises OutputError where no page is left to another round.
        """
        number = 1
        while self.manifest(f"round-{number}/{part}") is not None:
            number += 1
        if number > 1 and not self.finished(f"round-{number - 1}/propagate")["counts"].get("unexplained"):
            raise OutputError(f"the stage {part} of {self.output} is done in round {number - 1}, which left nothing")
        return number


def begin(options: SignOptions, job: str = "extract") -> Plan:
    """Find the input's splits and bind the output to them, and to the job; raises InputError, OutputError."""
    if options.overwrite:
        for name in ("extractions", "run.json", "_work"):
            storage.remove(storage.join(options.output, name))
    source = SourceOptions(
        format=options.format,
        url_column=options.url_column,
        html_column=options.html_column,
        statuses=options.statuses,
        max_page_bytes=options.max_page_bytes,
    )
    try:
        splits = tuple(list_splits(options.input, source))
    except (ValueError, OSError) as error:
        raise InputError(str(error)) from error
    plan = {
        "job": job,
        "source": json.loads(json.dumps(asdict(source))),
        "splits": [split.name for split in splits],
        "bytes": {path: _size(path) for path in sorted({split.path for split in splits})},
    }
    path = storage.join(options.output, "_work", "splits.json")
    there = storage.read_json(path)
    if there is None:
        if storage.list_names(storage.join(options.output, "extractions")):
            raise OutputError(f"{options.output}/extractions exists and is no run of ours: choose another --output")
        storage.write_json(path, plan)
    elif there.get("job") != job:
        raise OutputError(_of_another_job(options.output, there.get("job")))
    elif there != plan:
        raise OutputError(
            f"{options.output} holds a run on other input or of other input options: {len(there['splits'])} "
            f"splits there, {len(splits)} here. Choose another --output, or start anew with --overwrite"
        )
    return Plan(options.output, source, splits, digest(plan))


def resume(output: str) -> Plan:
    """Open the run that an earlier job has begun; raises OutputError."""
    plan = storage.read_json(storage.join(output, "_work", "splits.json"))
    if plan is None:
        raise OutputError(f"{output} holds no run: begin one with `stencil sign --input … --output {output}`")
    if plan.get("job") != "extract":
        raise OutputError(_of_another_job(output, plan.get("job")))
    source = SourceOptions(**plan["source"] | {"statuses": tuple(plan["source"]["statuses"])})
    return Plan(output, source, tuple(Split.parse(name) for name in plan["splits"]), digest(plan))


def _of_another_job(output: str, job: str | None) -> str:
    return (
        f"{output} holds a run of {job or 'an older version'}: choose another --output, or start anew with --overwrite"
    )


def _size(path: str) -> int | None:
    return os.path.getsize(storage.local_path(path)) if storage.is_local(path) else None
