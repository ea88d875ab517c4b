"""CPU time of `udfs.blocks.simplify` beside the published preprocessing, in one run.

    python tests/bench/simplify.py [--pages N] [--repeat N] [PAGES.jsonl.gz ...]

Needs mineru-html (PyPI) with selectolax<1, both importable. PAGES hold one JSON object a line with html; the default
are the golden pages of ../shared/oracles/simplify. Each page is taken through both in turn, so that a machine that
changes its speed changes it for both alike; outputs are compared.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from udfs.blocks import simplify

Simplify = Callable[[str], tuple[str, str]]
GOLDEN = Path(__file__).parents[3] / "shared" / "oracles" / "simplify" / "pages.jsonl.gz"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, default=[GOLDEN], metavar="PAGES.jsonl.gz")
    parser.add_argument("--pages", type=int, default=200, help="pages to measure (default: 200)")
    parser.add_argument("--repeat", type=int, default=2, help="rounds over all pages (default: 2)")
    arguments = parser.parse_args()
    try:
        published: Simplify = importlib.import_module("mineru_html.process.simplify_html").simplify_html
    except ImportError as error:
        parser.error(f"mineru-html with selectolax<1 must be importable: {error}")
    pages = [page for path in arguments.files for page in read(path)]
    chosen = random.Random(0).sample(pages, min(arguments.pages, len(pages)))
    ours, theirs, same = measure(chosen * arguments.repeat, simplify, published)
    size = sum(map(len, chosen)) / len(chosen)
    ratios = [their / our for our, their in zip(ours, theirs, strict=True)]
    print(f"{len(chosen)} pages of {size / 1000:.0f} thousand characters, {arguments.repeat} rounds")
    print(f"stencil      {1000 * statistics.mean(ours):6.2f} ms a page")
    print(f"mineru-html  {1000 * statistics.mean(theirs):6.2f} ms a page")
    print(f"ratio        {sum(theirs) / sum(ours):6.2f} in total, {statistics.median(ratios):.2f} in the median")
    print(f"same output  {100 * same:6.2f}%")


def read(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line)["html"] for line in lines]


def measure(pages: list[str], ours: Simplify, theirs: Simplify) -> tuple[list[float], list[float], float]:
    """CPU seconds of each page in both, and the share of pages with equal outputs. The first page warms up."""
    seconds: tuple[list[float], list[float]] = ([], [])
    same = 0
    ours(pages[0])
    theirs(pages[0])
    for page in pages:
        results: list[tuple[str, str] | str] = []
        for work, times in zip((ours, theirs), seconds, strict=True):
            start = time.process_time()
            try:
                result: tuple[str, str] | str = work(page)
            except Exception as error:  # noqa: BLE001 - a page that neither can read is equal
                result = type(error).__name__
            times.append(time.process_time() - start)
            results.append("error" if isinstance(result, str) else result)
        same += results[0] == results[1]
    return *seconds, same / len(pages)


if __name__ == "__main__":
    main()
