from __future__ import annotations

import contextlib
import json
import random
import zlib
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sites import site

from templates.dom import PageError, parse
from udfs.clusters import ClusterParameters, Signature, assign, cluster_host
from udfs.hosts import host
from udfs.minhash import pack, similarity, sketch, unpack

SETS = st.lists(st.sets(st.integers(0, 30), max_size=12), min_size=1, max_size=25)


def signatures(pages: list[str]) -> list[Signature]:
    return [Signature(f"{n:04d}", sketch(parse(html)), len(html)) for n, html in enumerate(pages)]


def groups(found: list[Signature]) -> list[set[str]]:
    members = defaultdict(set)
    for assignment in cluster_host("h.example", found)[1]:
        members[assignment.cluster_id].add(assignment.page_id)
    return list(members.values())


@given(SETS)
@settings(deadline=None)
def test_every_page_is_assigned_to_a_cluster_that_it_is_like(sets: list[set[int]]) -> None:
    pages = [Signature(f"{n:04d}", pack(paths), n) for n, paths in enumerate(sets)]
    clusters, assignments = cluster_host("h.example", pages)
    by_id = {cluster.cluster_id: cluster for cluster in clusters}
    assert [assignment.page_id for assignment in assignments] == [page.page_id for page in pages]
    for page, assignment in zip(pages, assignments, strict=True):
        cluster = by_id[assignment.cluster_id]
        frame = unpack(cluster.frame)
        likeness = similarity(unpack(page.sketch) - frame, unpack(cluster.sketch) - frame)
        assert assignment.similarity == likeness >= ClusterParameters().join


@given(SETS, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_of_pages_does_not_matter(sets: list[set[int]], rng: random.Random) -> None:
    pages = [Signature(f"{n:04d}", pack(paths), n) for n, paths in enumerate(sets)]
    shuffled = pages[:]
    rng.shuffle(shuffled)
    assert cluster_host("h.example", pages) == cluster_host("h.example", shuffled)


@given(SETS)
@settings(deadline=None)
def test_clustering_again_with_the_clusters_known_finds_no_new_one(sets: list[set[int]]) -> None:
    pages = [Signature(f"{n:04d}", pack(paths), n) for n, paths in enumerate(sets)]
    clusters, assignments = cluster_host("h.example", pages)
    again, same = cluster_host("h.example", pages, clusters)
    assert sorted(again, key=str) == sorted(clusters, key=str)
    assert same == assignments == assign(pages, clusters)


def test_equal_sketches_may_stand_for_each_other() -> None:
    pages = signatures([page.html for page in site("blog", 40, name="b.example")])
    counts: dict[bytes, list[Signature]] = defaultdict(list)
    for page in pages:
        counts[page.sketch].append(page)
    collapsed = [Signature(same[0].page_id, s, same[0].size, len(same)) for s, same in counts.items()]
    assert len(collapsed) < len(pages)
    assert len(cluster_host("b.example", collapsed)[0]) == len(cluster_host("b.example", pages)[0])


@pytest.mark.parametrize("theme", ["blog", "forum", "shop"])
def test_a_cluster_holds_pages_of_one_template(theme: str) -> None:
    pages = list(site(theme, 60, name=f"{theme}.example"))
    found = groups(signatures([page.html for page in pages]))
    for group in found:
        assert len({pages[int(page_id)].template for page_id in group}) == 1
    assert len(found) <= 2 * len({page.template for page in pages})


def cluster_faults() -> list[Any]:
    path = Path(__file__).parents[2] / "shared" / "faults" / "faults.jsonl"
    if not path.is_file():
        return [pytest.param(None, marks=pytest.mark.skip(reason="no ../shared/faults beside the repository"))]
    faults = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [pytest.param(fault, id=fault["id"]) for fault in faults if fault["area"] == "cluster"]


@pytest.mark.parametrize("fault", cluster_faults())
def test_public_faults(fault: dict[str, Any]) -> None:
    space: dict[str, Any] = {}
    exec(fault["generator"], space)  # noqa: S102 - the corpus states its larger inputs as code
    hosts: dict[str, list[Signature]] = defaultdict(list)
    for number, (url, html, _) in enumerate(space.get("pages", [])):
        with contextlib.suppress(PageError):  # such a page has an error row and is in no cluster
            hosts[host(url)].append(Signature(f"{number:04d}", sketch(parse(html or "")), len(html)))
    for number, paths in enumerate(space.get("feats", [])):
        hosts["h.example"].append(Signature(f"{number:04d}", pack({zlib.crc32(path.encode()) for path in paths}), 1))
    found = [group for pages in hosts.values() for group in groups(pages)]
    assert sum(map(len, found)) == sum(map(len, hosts.values())) > 0
    wanted = fault["assert"]
    if "max_clusters" in wanted:
        assert len(found) <= wanted["max_clusters"]
    if "clusters" in wanted:
        assert len(found) == wanted["clusters"]
    if "purity" in wanted:
        assert all(len({space["pages"][int(page_id)][2] for page_id in group}) == 1 for group in found)
    if "max_chain" in wanted:
        ends = {"0000", f"{len(space['pages']) - 1:04d}"}
        assert not any(ends <= group for group in found)


def test_a_page_does_not_join_the_cluster_that_failed_to_explain_it() -> None:
    pages = signatures([page.html for page in site("blog", 12, name="b.example")])
    clusters, assignments = cluster_host("b.example", pages)
    mine = {assignment.page_id: assignment.cluster_id for assignment in assignments}
    again = [replace(page, failed=mine[page.page_id]) for page in pages]
    others = cluster_host("b.example", again, clusters)[1]
    assert len(others) == len(pages)
    assert all(assignment.cluster_id != mine[assignment.page_id] for assignment in others)
