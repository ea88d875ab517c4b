"""Corpora: files of pages with ground truth, and which of their pages may be trained on, held out by domain."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import fsspec

from udfs.hosts import host, registered_domain

Row = dict[str, Any]

SPLITS = ("train", "dev", "test")
"""Parts of a corpus, the one that binds a domain most last."""

_SHARE_STEPS = 1000


@dataclass(frozen=True)
class CorpusFile:
    """A file of JSON lines. name: folder and file, wherever they lie; digest: SHA-256 of its bytes."""

    path: str
    digest: str

    @property
    def name(self) -> str:
        return "/".join(self.path.split("/")[-2:])

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0].rpartition("/")[2]


class Given(NamedTuple):
    """A page of a corpus. key: SHA-256 of its line; site: the folder that `splits` names; split: train or dev."""

    key: bytes
    row: Row
    site: str | None
    split: str


@dataclass(frozen=True)
class Corpora:
    """Files that have been looked through once: the split of each line that may be used, and why others may not.

    splits: of sites, by the name of a file's folder. used: by the SHA-256 of lines. read: number of lines.
    """

    files: tuple[CorpusFile, ...]
    splits: Mapping[str, str]
    used: Mapping[bytes, str]
    read: int
    left_out: Counter[str]

    def pages(self) -> Iterator[Given]:
        """Read the pages that may be used, each once, in the order of the files."""
        done: set[bytes] = set()
        for file in self.files:
            site = file.folder if file.folder in self.splits else None
            for key, _, line in _lines(file):
                if key in self.used and key not in done:
                    done.add(key)
                    yield Given(key, json.loads(line), site, self.used[key])


class _Line(NamedTuple):
    key: bytes
    domain: str
    split: str | None
    has_truth: bool


def survey(paths: Iterable[str], splits: Mapping[str, str], dev_share: float = 0.0) -> Corpora:
    """Look through corpora: digests, and the split of every page, by its registered domain over all of them.

    A domain with a page in `test` is in no other part, one with a page in `dev` not in `train`. Of the domains whose
    pages name no split, a share goes to `dev`, chosen by a hash. Raises ValueError, which names the line, where a line
    is no JSON object with `html` or names an unknown split; OSError where a file can't be read.
    """
    files = sorted((CorpusFile(path, _digest(path)) for path in set(paths)), key=lambda file: (file.digest, file.path))
    lines = [line for file in files for line in _survey(file, splits)]
    bound: dict[str, int] = {}
    for line in lines:
        if line.split:
            bound[line.domain] = max(bound.get(line.domain, 0), SPLITS.index(line.split))
    used: dict[bytes, str] = {}
    left_out: Counter[str] = Counter()
    for line in lines:
        most = SPLITS[bound[line.domain]] if line.domain in bound else _drawn(line.domain, dev_share)
        split = line.split or most
        reason = (
            "test" if split == "test"
            else f"domain_in_{most}" if split != most
            else "no_truth" if not line.has_truth
            else "repeated" if line.key in used
            else None
        )  # fmt: skip
        if reason:
            left_out[reason] += 1
        else:
            used[line.key] = split
    return Corpora(tuple(files), splits, used, len(lines), left_out)


def _drawn(domain: str, dev_share: float) -> str:
    number = int.from_bytes(hashlib.sha256(domain.encode()).digest()[:4], "big") % _SHARE_STEPS
    return "dev" if number < dev_share * _SHARE_STEPS else "train"


def _survey(file: CorpusFile, splits: Mapping[str, str]) -> Iterator[_Line]:
    for key, number, text in _lines(file):
        try:
            row = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{file.path}, line {number} is not JSON: {error}") from error
        if not isinstance(row, dict) or not isinstance(row.get("html"), str):
            raise ValueError(f"{file.path}, line {number} is no JSON object with the text `html`")
        split = splits.get(file.folder) or row.get("split")
        if split is not None and split not in SPLITS:
            raise ValueError(f"{file.path}, line {number} is of the split {split!r}: use {', '.join(SPLITS)}")
        domain = registered_domain(host(str(row.get("url") or ""))) or str(row.get("domain") or key.hex())
        has_truth = row.get("gold_paths") is not None or row.get("gold_text") is not None
        yield _Line(key, domain, split, has_truth)


def _lines(file: CorpusFile) -> Iterator[tuple[bytes, int, bytes]]:
    with fsspec.open(file.path, "rb") as stream:
        lines: Iterable[bytes] = gzip.GzipFile(fileobj=stream) if file.path.endswith(".gz") else stream
        for number, line in enumerate(lines, 1):
            if text := line.strip():
                yield hashlib.sha256(text).digest(), number, text


def _digest(path: str) -> str:
    digest = hashlib.sha256()
    with fsspec.open(path, "rb") as stream:
        while part := stream.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def check_splits(splits: Any) -> dict[str, str]:
    """Return splits by folder name. Raises ValueError where a value is anything else."""
    if not isinstance(splits, dict) or not all(value in SPLITS for value in splits.values()):
        raise ValueError(f"no JSON object of folder names, each with one of {', '.join(SPLITS)}")
    return splits
