"""Clustering of one host's pages by the similarity of their tag paths."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from datasketch import MinHash, MinHashLSH

from udfs.minhash import similarity, unpack

_BANDS = 32
"""LSH bands of one row: pages of similarity 0.1 share a band with probability 1 - 0.9^32 = 0.97, of 0.2 with 0.9992.
More rows would filter better and miss more; what LSH proposes is verified anyway."""

_SAMPLE = 50
"""Members that a candidate for representative is compared with."""


@dataclass(frozen=True)
class ClusterParameters:
    """What must agree between runs that share a store.

    join: similarity to the representative, frame aside, from which a page belongs to its cluster. frame: share of a
    host's pages from which a tag path is frame (header, menus, footer) and says nothing of the layout; it is taken
    out on hosts of at least `frame_pages` pages.
    """

    join: float = 0.1
    frame: float = 0.9
    frame_pages: int = 8


@dataclass(frozen=True)
class Signature:
    """A page, or `count` pages of equal sketch, to be clustered. size: characters of text.

    failed: a cluster whose template has not explained it, and which it does not join again.
    """

    page_id: str
    sketch: bytes
    size: int
    count: int = 1
    failed: str | None = None


@dataclass(frozen=True)
class Cluster:
    """Pages of one layout: `page_id` is the representative; template_id is set where the store knows the layout."""

    cluster_id: str
    page_id: str
    sketch: bytes
    frame: bytes
    template_id: str | None = None


@dataclass(frozen=True)
class Assignment:
    """The cluster that a page is in, with the similarity to its representative."""

    page_id: str
    cluster_id: str
    similarity: float


@dataclass(frozen=True)
class _Layout:
    cluster: Cluster
    frame: frozenset[int]
    paths: frozenset[int]

    @classmethod
    def of(cls, cluster: Cluster) -> _Layout:
        frame = unpack(cluster.frame)
        return cls(cluster, frame, unpack(cluster.sketch) - frame)


@dataclass
class _Index:
    """The layouts of a host, found by LSH."""

    layouts: list[_Layout] = field(default_factory=list)
    lsh: MinHashLSH = field(default_factory=lambda: MinHashLSH(num_perm=_BANDS, params=(_BANDS, 1)))

    def add(self, layout: _Layout) -> None:
        self.lsh.insert(len(self.layouts), _minhash(layout.paths))
        self.layouts.append(layout)

    def nearest(self, paths: frozenset[int], failed: str | None) -> tuple[float, str]:
        """Return (similarity, cluster_id) of the most similar layout but one, (0.0, "") without any; ties by id."""
        best = (0.0, "")
        for frame in {layout.frame for layout in self.layouts}:
            rest = paths - frame
            for number in self.lsh.query(_minhash(rest)):
                layout = self.layouts[number]
                if layout.frame == frame and layout.cluster.cluster_id != failed:
                    likeness = similarity(rest, layout.paths)
                    if (-likeness, layout.cluster.cluster_id) < (-best[0], best[1]):
                        best = (likeness, layout.cluster.cluster_id)
        return best


def cluster_host(
    host: str,
    signatures: Sequence[Signature],
    known: Sequence[Cluster] = (),
    parameters: ClusterParameters = ClusterParameters(),
) -> tuple[list[Cluster], list[Assignment]]:
    """Cluster the pages of one host; known layouts (of the store) take their pages first.

    Returns the known clusters and the new ones, and one assignment for each signature, sorted by page_id. The order
    of the signatures does not matter: pages are taken most central first, each joins the most similar representative
    if that is similar enough, or becomes one; nothing joins through a third page.
    """
    index = _Index()
    for cluster in sorted(known, key=lambda cluster: cluster.cluster_id):
        index.add(_Layout.of(cluster))
    paths = {signature.page_id: unpack(signature.sketch) for signature in signatures}
    rest = _unlike(signatures, paths, index, parameters)
    frame = _frame(rest, paths, parameters)
    bare = {signature.page_id: paths[signature.page_id] - frame for signature in rest}
    packed_frame = np.array(sorted(frame), dtype="<u4").tobytes()
    while rest:
        for group in _grow(rest, bare, parameters):
            centre = _representative(group, bare)
            name = f"{host}\0{centre.page_id}\0{centre.failed or ''}"  # never that of the cluster that failed
            cluster_id = hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
            index.add(_Layout.of(Cluster(cluster_id, centre.page_id, centre.sketch, packed_frame)))
        # The most central page of a group is not the one that it grew around, so some pages may be left.
        rest = _unlike(rest, paths, index, parameters)
    return [layout.cluster for layout in index.layouts], _assign(signatures, paths, index, parameters)


def assign(
    signatures: Sequence[Signature],
    clusters: Sequence[Cluster],
    parameters: ClusterParameters = ClusterParameters(),
) -> list[Assignment]:
    """Assign pages to given clusters of their host, sorted by page_id; those that are like none are left out."""
    index = _Index()
    for cluster in clusters:
        index.add(_Layout.of(cluster))
    return _assign(signatures, {s.page_id: unpack(s.sketch) for s in signatures}, index, parameters)


def _assign(
    signatures: Sequence[Signature],
    paths: dict[str, frozenset[int]],
    index: _Index,
    parameters: ClusterParameters,
) -> list[Assignment]:
    found = []
    for signature in sorted(signatures, key=lambda signature: signature.page_id):
        best, cluster_id = index.nearest(paths[signature.page_id], signature.failed)
        if best >= parameters.join:
            found.append(Assignment(signature.page_id, cluster_id, best))
    return found


def _unlike(
    signatures: Sequence[Signature],
    paths: dict[str, frozenset[int]],
    index: _Index,
    parameters: ClusterParameters,
) -> list[Signature]:
    taken = {assignment.page_id for assignment in _assign(signatures, paths, index, parameters)}
    return [signature for signature in signatures if signature.page_id not in taken]


def _frame(
    signatures: Sequence[Signature], paths: dict[str, frozenset[int]], parameters: ClusterParameters
) -> frozenset[int]:
    pages = sum(signature.count for signature in signatures)
    if pages < parameters.frame_pages:
        return frozenset()
    frequency: Counter[int] = Counter()
    for signature in signatures:
        for path in paths[signature.page_id]:
            frequency[path] += signature.count
    return frozenset(path for path, count in frequency.items() if count > parameters.frame * pages)


def _grow(
    signatures: Sequence[Signature], bare: dict[str, frozenset[int]], parameters: ClusterParameters
) -> list[list[Signature]]:
    """Group pages around seeds, most central first: those whose paths are the most common ones of the host."""
    frequency: Counter[int] = Counter()
    for signature in signatures:
        for path in bare[signature.page_id]:
            frequency[path] += signature.count

    def centrality(signature: Signature) -> float:
        paths = bare[signature.page_id]
        return sum(frequency[path] for path in paths) / math.sqrt(len(paths)) if paths else 0.0

    lsh = MinHashLSH(num_perm=_BANDS, params=(_BANDS, 1))
    groups: dict[str, list[Signature]] = {}
    for signature in sorted(signatures, key=lambda s: (-centrality(s), s.page_id)):
        paths = bare[signature.page_id]
        minhash = _minhash(paths)
        likest = max(((similarity(paths, bare[seed]), seed) for seed in lsh.query(minhash)), default=(0.0, ""))
        if likest[0] >= parameters.join:
            groups[likest[1]].append(signature)
        else:
            lsh.insert(signature.page_id, minhash)
            groups[signature.page_id] = [signature]
    return list(groups.values())


def _representative(group: Sequence[Signature], bare: dict[str, frozenset[int]]) -> Signature:
    """Return the page most similar to its group's most frequent sketches; ties go to the larger page, then by id."""
    ordered = sorted(group, key=lambda signature: signature.page_id)
    sample = sorted(ordered, key=lambda signature: -signature.count)[:_SAMPLE]

    def centrality(signature: Signature) -> tuple[float, int]:
        paths = bare[signature.page_id]
        return sum(other.count * similarity(paths, bare[other.page_id]) for other in sample), signature.size

    return max(ordered, key=centrality)


def _identity(value: int) -> int:
    return value


_EMPTY = MinHash(num_perm=_BANDS, hashfunc=_identity)
"""Copied for each page: to draw the permutations anew takes four times as long as to use them."""


def _minhash(paths: frozenset[int]) -> MinHash:
    minhash = _EMPTY.copy()
    minhash.update_batch(sorted(paths))
    return minhash
