"""Files of a run, on a local disk or in an object store: whole files, written atomically."""

from __future__ import annotations

import json
import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

TEMPORARY = ".tmp-"
"""Prefix of unfinished local files; Spark and pyarrow skip names that start with a dot."""


def is_local(path: str) -> bool:
    """Say whether a path names a local file (no scheme, or file://)."""
    return "://" not in path or path.startswith("file://")


def local_path(path: str) -> str:
    """Strip the scheme of a local path."""
    return path.removeprefix("file://")


def join(directory: str, *names: str) -> str:
    """Join a directory (path or URL) and names below it."""
    return "/".join((directory.rstrip("/") or directory, *names))


def qualified(path: str) -> str:
    """Make a path say its scheme, since Spark looks for a bare one in the cluster's file system."""
    return "file://" + os.path.abspath(local_path(path)) if is_local(path) else path


def exists(path: str) -> bool:
    """Say whether a file or a directory exists."""
    if is_local(path):
        return os.path.exists(local_path(path))
    system, inner = _remote(path)
    return bool(system.exists(inner))


def read_bytes(path: str) -> bytes:
    """Read a whole file; raises FileNotFoundError."""
    if is_local(path):
        with open(local_path(path), "rb") as file:
            return file.read()
    system, inner = _remote(path)
    return cast(bytes, system.cat_file(inner))


def read_json(path: str) -> Any:
    """Read a JSON file, or return None where it does not exist."""
    try:
        return json.loads(read_bytes(path))
    except FileNotFoundError:
        return None


def write_json(path: str, value: Any) -> None:
    """Write a JSON file atomically, keys sorted."""
    with publish(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1, sort_keys=True, ensure_ascii=False)
        file.write("\n")


@contextmanager
def publish(path: str) -> Iterator[str]:
    """Give a local file to write, which takes its place under `path` at once if the block ends without error.

    A rename on a local disk, one upload to an object store: a reader sees the whole file or none.
    """
    if is_local(path):
        directory, name = os.path.split(os.path.abspath(local_path(path)))
        os.makedirs(directory, exist_ok=True)
        temporary = os.path.join(directory, f"{TEMPORARY}{uuid.uuid4().hex}-{name}")
    else:
        directory = tempfile.mkdtemp(prefix="stencil-")
        temporary = os.path.join(directory, path.rsplit("/", 1)[-1])
    try:
        yield temporary
        if is_local(path):
            os.replace(temporary, local_path(path))
        else:
            system, inner = _remote(path)
            system.put_file(temporary, inner)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
        if not is_local(path):
            os.rmdir(directory)


@contextmanager
def fetched(path: str) -> Iterator[str]:
    """Give a local copy of a file: the file itself where it is local."""
    if is_local(path):
        yield local_path(path)
        return
    with tempfile.TemporaryDirectory(prefix="stencil-") as directory:
        system, inner = _remote(path)
        copy = os.path.join(directory, path.rsplit("/", 1)[-1])
        system.get_file(inner, copy)
        yield copy


def list_names(directory: str, suffix: str = "") -> list[str]:
    """List the names of a directory's finished files, sorted; none where it does not exist."""
    if is_local(directory):
        try:
            names = os.listdir(local_path(directory))
        except FileNotFoundError:
            return []
    else:
        system, inner = _remote(directory)
        system.invalidate_cache(inner)
        try:
            names = [entry.rstrip("/").rsplit("/", 1)[-1] for entry in system.ls(inner, detail=False)]
        except FileNotFoundError:
            return []
    return sorted(name for name in names if name.endswith(suffix) and not name.startswith("."))


def remove(path: str) -> None:
    """Remove a file or a directory with all it holds, where it exists."""
    system, inner = _remote(path)
    if system.exists(inner):
        system.rm(inner, recursive=True)


def remove_unfinished(directory: str) -> None:
    """Remove what killed tasks left in a local directory (an object store shows no unfinished file)."""
    if is_local(directory) and os.path.isdir(local_path(directory)):
        for name in os.listdir(local_path(directory)):
            if name.startswith(TEMPORARY):
                os.unlink(os.path.join(local_path(directory), name))


def _remote(path: str) -> tuple[Any, str]:
    import fsspec  # a slow import, which local runs need only to clean up

    system, inner = fsspec.core.url_to_fs(path)
    return system, str(inner)
