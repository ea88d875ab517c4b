"""CPU time of a page's way through Stencil, beside bare lxml parsing and trafilatura, in one run.

    ./build.sh bench speed [--pages N] [PAGES.jsonl.gz ...]

PAGES hold one JSON object a line with url, html, gold_paths and gold_excluded_paths; the default is every real site
in ../shared/corpora/sites, or a generated crawl where that is missing. Each page is taken through all of them in
turn, so that a machine that changes its speed changes it for all alike.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lxml.etree
import lxml.html
import trafilatura

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from sites import crawl

from templates.application import CompiledTemplate, apply_template, compile_template
from templates.dom import parse
from templates.induction import LabelledPage, induce
from templates.labels import Labels
from udfs.classifiers import from_spec
from udfs.extraction import sign_page
from udfs.hosts import host
from udfs.input.pages import Page

WITNESSES = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--pages", dest="count", type=int, default=1000, help="pages to measure (default: 1000)")
    arguments = parser.parse_args()
    corpora = Path(__file__).parents[3] / "shared" / "corpora" / "sites"
    files = arguments.pages or sorted(corpora.glob("*/pages.jsonl.gz"))
    rows = list(read(files)) if files else [vars(page) for page in crawl(20, 60)]
    chosen = random.Random(0).sample(rows, min(arguments.count, len(rows)))
    seconds = measure(chosen, templates(rows))
    size = sum(len(row["html"]) for row in chosen) / len(chosen)
    print(f"{len(chosen)} pages of {size / 1000:.0f} thousand characters from {len(files) or 'generated'} files")
    print(f"{'':34s}{'pages/CPU-s':>12s}{'x bare parse':>14s}")
    for name, total in seconds.items():
        print(f"{name:34s}{len(chosen) / total:12.0f}{total / seconds['bare lxml parse']:14.2f}")


def read(files: list[Path]) -> Iterator[dict[str, Any]]:
    for path in files:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def templates(rows: list[dict[str, Any]]) -> dict[str, CompiledTemplate]:
    """A template for each host, of its first page with main content: what is measured is cost, not fit."""
    hosts: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        hosts[host(row["url"])].append(row)
    found = {}
    for name, pages in hosts.items():
        first = next((page for page in pages if page["gold_paths"]), pages[0])
        main, other = tuple(first["gold_paths"]), tuple(first["gold_excluded_paths"])
        labels = Labels(main + other, (1.0,) * len(main) + (0.0,) * len(other))
        witnesses = [parse(page["html"]) for page in itertools.islice(pages, WITNESSES)]
        found[name] = compile_template(induce(name, [LabelledPage(parse(first["html"]), labels)], witnesses))
    return found


def measure(rows: list[dict[str, Any]], compiled: dict[str, CompiledTemplate]) -> dict[str, float]:
    embedded = from_spec("embedded")

    def bare(page: Page) -> None:
        lxml.html.document_fromstring(page.html.encode(), parser=lxml.html.HTMLParser(encoding="utf-8"))

    def propagate(page: Page) -> None:
        root = parse(page.html)
        apply_template(root, compiled[host(page.url)])
        lxml.etree.tostring(root, encoding="unicode", method="html")

    works: dict[str, Callable[[Page], Any]] = {
        "bare lxml parse": bare,
        "sign": sign_page,
        "propagate to main HTML": propagate,
        "label by the embedded classifier": lambda page: embedded.label([page]),
        "trafilatura": lambda page: trafilatura.extract(page.html, include_comments=False),
    }
    seconds = dict.fromkeys(works, 0.0)
    for row in rows:
        page = Page(row["url"], "bench", 0, row["html"], "0" * 16, None, None)
        for name, work in works.items():
            start = time.process_time()
            work(page)
            seconds[name] += time.process_time() - start
    return seconds


if __name__ == "__main__":
    main()
