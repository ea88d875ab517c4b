"""Sources: pages of WARC, Parquet and JSONL files, split by split, each with an address to find it again."""

from __future__ import annotations

import glob
import gzip
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import fsspec
import pyarrow.parquet as pq

from templates import storage
from udfs.input import rows, warc
from udfs.input.pages import Page, Payload, SourceError, SourceOptions, page, payload_of_record

__all__ = [
    "Page",
    "SourceError",
    "SourceOptions",
    "Split",
    "fetch",
    "file_format",
    "list_splits",
    "read_split",
]

_FORMATS = {
    **dict.fromkeys((".warc", ".arc", ".wet", ".wat", ".warc.gz", ".arc.gz", ".wet.gz", ".wat.gz"), "warc"),
    **dict.fromkeys((".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz"), "jsonl"),
    ".parquet": "parquet",
}
_UNREADABLE = (".warc.zst", ".warc.lz4", ".warc.bz2", ".warc.xz", ".jsonl.zst", ".jsonl.bz2", ".jsonl.xz")
_LISTS = (".txt", ".paths", ".list", ".txt.gz", ".paths.gz", ".list.gz")
_DRIVERS = {
    "s3": "s3fs",
    "s3a": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "abfs": "adlfs",
    "abfss": "adlfs",
    "az": "adlfs",
}
_DOWNLOADS = 3  # tries, before the task itself is tried again
_HEAD_ROOM = 1 << 16  # HTTP headers stand before the page in a record's block


@dataclass(frozen=True)
class Split:
    """What one task reads: a file, or one row group of a Parquet file."""

    path: str
    row_group: int | None = None

    @property
    def name(self) -> str:
        """`path`, or `path#3` for row group 3."""
        return self.path if self.row_group is None else f"{self.path}#{self.row_group}"

    @staticmethod
    def parse(name: str) -> Split:
        """The split of a name."""
        path, mark, group = name.rpartition("#")
        return Split(path, int(group)) if mark and group.isdecimal() else Split(name)


def list_splits(inputs: Sequence[str], options: SourceOptions) -> list[Split]:
    """The splits of files, globs, folders and lists (`@FILE`, .txt, .paths.gz), local or by fsspec.

    Sorted by path, each once; local paths are absolute. In folders, names that begin with `.` or `_` and
    other formats are left out. Raises SourceError where there is nothing to read, or what is named can't be
    read.
    """
    paths = {path for name in inputs for path in _expanded(name, options)}
    splits: list[Split] = []
    for path in sorted(paths):
        if file_format(path, options) == "parquet":
            with _opened(path) as file, pq.ParquetFile(file) as table:
                splits += (Split(path, group) for group in range(table.num_row_groups))
        else:
            splits.append(Split(path))
    if not splits:
        raise SourceError(f"There is nothing to read in the input {', '.join(inputs)!r}.")
    return splits


def file_format(path: str, options: SourceOptions) -> str:
    """`warc`, `parquet` or `jsonl`: the option, or by the file's name; raises SourceError if that is mute."""
    if options.format != "auto":
        return options.format
    name = path.lower()
    for suffix, kind in _FORMATS.items():
        if name.endswith(suffix):
            return kind
    if name.endswith(_UNREADABLE):
        raise SourceError(f"{path} is compressed in a way that isn't read; only gzip is. Compress it again.")
    known = ", ".join(sorted(_FORMATS))
    raise SourceError(f"The name of {path} doesn't say its format ({known}); say it with the option format.")


def read_split(split: Split, options: SourceOptions, skipped: Counter[str]) -> Iterator[Page]:
    """All pages of a split, in file order. What is no page, or damaged, is counted in `skipped` by reason.

    Remote archives are copied to the local disk first. Raises SourceError where the file can't be read as
    asked, and OSError where the storage fails.
    """
    kind = file_format(split.path, options)
    if kind == "parquet":
        with _opened(split.path) as file:
            yield from _pages(rows.parquet_payloads(file, split.path, split.row_group, options, None), split, options)
        return
    with ExitStack() as stack:
        file = stack.enter_context(open(_downloaded(split.path, stack), "rb"))
        if kind == "jsonl":
            payloads = rows.jsonl_payloads(file, split.path, options, skipped, None)
        else:
            payloads = _archive_payloads(file, options, skipped)
        yield from _pages(payloads, split, options)


def fetch(split: Split, offsets: Sequence[int], options: SourceOptions) -> Iterator[Page]:
    """The pages at these addresses, as `read_split` gives them, each once, by ascending offset.

    Raises SourceError if there is no page at one of them: the file isn't the one that was read before.
    """
    kind = file_format(split.path, options)
    wanted = sorted(set(offsets))
    ignored: Counter[str] = Counter()
    with _opened(split.path) as file:
        if kind == "parquet":
            payloads = rows.parquet_payloads(file, split.path, split.row_group, options, set(wanted))
        elif kind == "jsonl":
            payloads = rows.jsonl_payloads(file, split.path, options, ignored, wanted)
        else:
            payloads = _archive_payloads_at(file, wanted, options)
        count = 0
        for found in _pages(payloads, split, options):
            if count < len(wanted) and found.offset == wanted[count]:
                count += 1
                yield found
    if count < len(wanted):
        raise SourceError(f"{split.name} has no page at {wanted[count]}: has the file changed since it was read?")


def _pages(payloads: Iterable[tuple[int, Payload]], split: Split, options: SourceOptions) -> Iterator[Page]:
    name = split.name
    return (page(payload, name, offset, options) for offset, payload in payloads)


def _archive_payloads(
    file: BinaryIO, options: SourceOptions, skipped: Counter[str], offset: int = 0
) -> Iterator[tuple[int, Payload]]:
    limit = options.max_page_bytes + _HEAD_ROOM
    for record in warc.records(file, offset, limit=limit, skipped=skipped):
        payload = payload_of_record(record, options, skipped)
        if payload is not None:
            yield record.offset, payload


def _archive_payloads_at(
    file: BinaryIO, wanted: Sequence[int], options: SourceOptions
) -> Iterator[tuple[int, Payload]]:
    """By ascending address: those inside gzip members (negative) first, reading from the start."""
    ignored: Counter[str] = Counter()
    inside = {offset for offset in wanted if offset < 0}
    if inside:
        found = [entry for entry in _archive_payloads(file, options, ignored) if entry[0] in inside]
        yield from sorted(found, key=lambda entry: entry[0])
    for offset in wanted:
        if offset >= 0:
            yield from _first(_archive_payloads(file, options, ignored, offset))


def _first(payloads: Iterator[tuple[int, Payload]]) -> Iterator[tuple[int, Payload]]:
    for entry in payloads:
        yield entry
        return


def _expanded(name: str, options: SourceOptions) -> Iterator[str]:
    """The files that an input names."""
    if name.startswith("@") or name.lower().endswith(_LISTS):
        with _opened(name.removeprefix("@")) as file:
            lines = (gzip.decompress(file.read()) if name.endswith(".gz") else file.read()).decode("utf-8")
        for line in (line.strip() for line in lines.splitlines()):
            if line and not line.startswith("#"):
                whole = line if "://" in line or line.startswith("/") else options.list_prefix + line
                yield from _expanded(whole, options)
    elif storage.is_local(name):
        yield from _expanded_locally(storage.local_path(name), options)
    else:
        yield from _expanded_remotely(name, options)


def _expanded_locally(name: str, options: SourceOptions) -> Iterator[str]:
    found = [name] if os.path.exists(name) else sorted(glob.glob(name, recursive=True))
    if not found:
        raise SourceError(f"There is no file {name!r}, nor does it match any.")
    for path in map(os.path.abspath, found):
        if os.path.isdir(path):
            below = (os.path.join(top, file) for top, _, files in os.walk(path) for file in files)
            yield from _readable(below, path, options)
        else:
            yield path


def _expanded_remotely(name: str, options: SourceOptions) -> Iterator[str]:
    system, inner = _system(name)
    # What stands before the path in its file system: a scheme, and for HDFS the name node, which listings
    # drop.
    before = name[: -len(inner)] if inner and name.endswith(inner) else f"{name.split('://')[0]}://"
    found = system.glob(inner) if glob.has_magic(inner) else [inner] if system.exists(inner) else []
    if not found:
        raise SourceError(f"There is no file {name!r}, nor does it match any.")
    for path in found:
        if system.isdir(path):
            yield from _readable((before + file for file in system.find(path)), before + path, options)
        else:
            yield before + path


def _readable(paths: Iterable[str], folder: str, options: SourceOptions) -> Iterator[str]:
    """The files of a folder that are input: no hidden ones (`_SUCCESS`, `.crc`), none of another format."""
    for path in paths:
        names = path.removeprefix(folder).strip("/").split("/")
        is_hidden = any(part.startswith((".", "_")) for part in names)
        if not is_hidden and path.lower().endswith((*_FORMATS, *_UNREADABLE)):
            kind = file_format(path, SourceOptions())
            if options.format in ("auto", kind):
                yield path


def _system(path: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it; raises SourceError that names what is missing."""
    protocol = path.split("://")[0]
    try:
        system, inner = fsspec.core.url_to_fs(path)
    except ImportError as error:
        package = _DRIVERS.get(protocol)
        how = f"pip install {package}, for the executors too" if package else str(error)
        raise SourceError(f"{protocol}:// paths need a package that isn't installed: {how}.") from error
    except ValueError as error:
        raise SourceError(f"{path}: {error}") from error
    except OSError as error:
        raise SourceError(f"{path} can't be reached ({error}); hdfs:// needs libhdfs and a JVM on the node.") from error
    return system, str(inner)


def _opened(path: str) -> AbstractContextManager[BinaryIO]:
    if storage.is_local(path):
        return open(storage.local_path(path), "rb")
    system, inner = _system(path)
    return cast(AbstractContextManager[BinaryIO], system.open(inner, "rb"))


def _downloaded(path: str, stack: ExitStack) -> str:
    """A local copy of a file for as long as the stack is open; a download that breaks is done again."""
    if not storage.is_local(path):
        _system(path)
    for left in reversed(range(_DOWNLOADS)):
        try:
            return stack.enter_context(storage.fetched(path))
        except (FileNotFoundError, PermissionError):
            raise
        except OSError:
            if not left:
                raise
            time.sleep(1)
    raise AssertionError("unreachable")
