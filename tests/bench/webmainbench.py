"""The conversion scored by WebMainBench's metrics (PyPI: webmainbench) beside html2text and mineru-webkit.

    ./build.sh bench webmainbench --scorer PYTHON [--mineru PYTHON] [--sets SET ...] [--out FILE]

PYTHON of --scorer is an interpreter that has webmainbench, that of --mineru one with mineru-webkit and selectolax<1,
which also writes the content lists of webkit_bench as Markdown (without it that set is left out; its lists that lose
items so are left out too). The input of all converters is the same main HTML:
the page cut by its gold_paths, or the whole body where it has none (rows "uncut"). The reference is gold_markdown, or
source_markdown, or that content list.

Mean over the pages whose reference has any of what is scored, so that all converters have the same pages; a
converter that finds none there scores 0. TEDS as published compares two strings as if they were trees of one node,
so it is 1 - (at most 1) / nodes; "TEDS tree" is its own trees and costs, compared as trees. Both see the first
table only; tables above 400 nodes are left out of the latter. Code indented by four blanks (html2text) counts only
from two lines on, and so does TeX in a list: what WebMainBench takes for code.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from bench.convert import CORPORA, Converter, Published, others

from spark_jobs.convert import convert
from templates.application import apply_labels
from templates.dom import parse
from templates.labels import Labels
from udfs.extraction import Conversion, _content

SETS = ("webkit_bench", "wmb_sample", "docs_src", "defuddle")
METRICS = {"text": "text_edit", "code": "code_edit", "formula": "formula_edit", "table": "table_edit"}
COLUMNS = (*METRICS, "TEDS", "TEDS tree")

REFERENCE = """
import json, sys
sys.stdout, out = sys.stderr, sys.stdout
from loguru import logger
logger.remove()
from webpage_converter.schemas.datajson import ContentList

def current(value):
    # An older list as the published converter takes it: no nulls, undecided tables or pictures.
    if isinstance(value, list):
        return [current(one) for one in value if not (isinstance(one, dict) and one.get("type") == "image")]
    if isinstance(value, dict):
        value = {key: current(one) for key, one in value.items() if key != "raw_content"}
        if value.get("type") == "table":
            value["type"] = "complex_table" if value["content"]["is_complex"] else "simple_table"
    return "" if value is None else value

for line in sys.stdin:
    try:
        found = ContentList(current(json.loads(line))).to_mm_md()
    except Exception as error:
        found = ""
    out.write(json.dumps(found) + chr(10))
    out.flush()
"""

SCORER = """
import json, sys, types
sys.stdout, out = sys.stderr, sys.stdout
try:
    import openai
except ImportError:
    sys.modules["openai"] = types.ModuleType("openai")
    sys.modules["openai"].OpenAI = None
import importlib.util
package = types.ModuleType("webmainbench")  # the package itself imports torch
package.__path__ = list(importlib.util.find_spec("webmainbench").submodule_search_locations)
sys.modules["webmainbench"] = package
from webmainbench.config import LLM_CONFIG
LLM_CONFIG["use_llm"] = False
from apted import APTED
from webmainbench.metrics.base import BaseMetric
from webmainbench.metrics.calculator import MetricCalculator
from webmainbench.metrics.teds_metrics import TEDSMetric, TableConfig

class Node:
    def __init__(self, tree):
        self.tag, self.text = tree["tag"], tree["text"] if not tree["children"] else ""
        self.children = [Node(child) for child in tree["children"]]

class Costs(TableConfig):
    def rename(self, one, two):
        if one.tag != two.tag:
            return 1
        return min(1, self._levenshtein(one.text, two.text))

calculator, teds = MetricCalculator(), TEDSMetric("teds")
for line in sys.stdin:
    found, wanted = json.loads(line)
    parts = BaseMetric.split_content(wanted)
    has = BaseMetric.split_content(found)
    scores = {name: [one.score, one.success] for name, one in calculator.calculate_all(found, wanted).items()}
    one, two = (teds._parse_html_table(teds._normalize_to_html(each["table"])) for each in (has, parts))
    if two is not None and teds._count_nodes(two) <= 400:
        if one is None:
            scores["tree"] = [0.0, True]
        elif teds._count_nodes(one) <= 400:
            most = max(teds._count_nodes(one), teds._count_nodes(two))
            far = APTED(Node(one), Node(two), Costs()).compute_edit_distance()
            scores["tree"] = [max(0.0, 1 - far / most), True]
    sizes = [{name: len(part) for name, part in each.items()} for each in (parts, has)]
    out.write(json.dumps([scores, *sizes]) + chr(10))
    out.flush()
"""


class Piped:
    """What code of another interpreter makes of a value, line by line."""

    def __init__(self, python: str, code: str) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [python, "-c", code], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
        )

    def __call__(self, value: Any) -> Any:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(value) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def main_html(page: dict[str, Any]) -> str:
    root = parse(page["html"])
    if paths := tuple(page.get("gold_paths") or ()):
        apply_labels(root, Labels(paths, (1.0,) * len(paths)))
    return str(_content(root, "", Conversion())["main_html"])


def read(sets: list[str], reference: Piped | None, most: int) -> Iterator[tuple[str, str, str, str]]:
    """Yield set, id, main HTML and reference Markdown."""
    for name in sets:
        with gzip.open(CORPORA / "pages" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                page = json.loads(line)
                wanted = page.get("gold_markdown") or page.get("source_markdown") or ""
                if not wanted and page.get("content_list") and reference:
                    wanted = reference(page["content_list"])
                    if len(wanted) < 0.7 * len(page.get("gold_text", "")):  # older lists, whose items get lost
                        continue
                if not wanted.strip() or len(page["html"]) > most:
                    continue
                yield name + ("" if page.get("gold_paths") else " uncut"), page["id"], main_html(page), wanted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scorer", required=True, help="Python of an environment with webmainbench")
    parser.add_argument("--mineru", help="Python of an environment with mineru-webkit and selectolax<1")
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--most", type=int, default=2_000_000, help="leave out pages of more characters")
    parser.add_argument("--out", type=Path, help="file for one JSON line a page: scores and what each converter wrote")
    arguments = parser.parse_args()
    converters: dict[str, Converter] = {
        "stencil": convert,
        "stencil inline": lambda html: convert(html, links="inline", images="inline"),
    } | {name: one for name, one in others().items() if name == "html2text"}
    if arguments.mineru:
        converters["mineru"] = Published(arguments.mineru)
    scorer = Piped(arguments.scorer, SCORER)
    reference = Piped(arguments.mineru, REFERENCE) if arguments.mineru else None
    scores: dict[str, dict[str, dict[str, list[float]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    pages: dict[str, int] = defaultdict(int)
    out = arguments.out.open("w", encoding="utf-8") if arguments.out else None
    for name, page_id, html, wanted in read(arguments.sets, reference, arguments.most):
        pages[name] += 1
        row: dict[str, Any] = {"set": name, "id": page_id, "html": html, "wanted": wanted, "found": {}, "scores": {}}
        for converter_name, converter in converters.items():
            try:
                markdown = converter(html)
            except Exception as error:  # noqa: BLE001 - a converter's failure is a miss
                markdown = ""
                print(f"{converter_name} on {page_id}: {type(error).__name__}: {error}", file=sys.stderr)
            found, parts, has = scorer([markdown, wanted])
            row["found"][converter_name] = markdown
            row["scores"][converter_name] = {"published": found, "reference": parts, "has": has}
            for column, metric in METRICS.items():
                if parts[column]:
                    scores[name][column][converter_name].append(found[metric][0])
            if parts["table"]:
                scores[name]["TEDS"][converter_name].append(found["table_TEDS"][0])
            if "tree" in found:
                scores[name]["TEDS tree"][converter_name].append(found["tree"][0])
        if out:
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
    for name, columns in scores.items():
        print(f"\n{name}: {pages[name]} pages")
        print(f"{'':16}" + "".join(f"{column:>18}" for column in COLUMNS))
        for converter_name in converters:
            line = f"{converter_name:16}"
            for column in COLUMNS:
                one = columns[column][converter_name]
                line += f"{sum(one) / len(one):12.3f} ({len(one):3})" if one else f"{'-':>18}"
            print(line)


if __name__ == "__main__":
    main()
