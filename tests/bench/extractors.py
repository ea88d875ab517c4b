"""Per-page extraction by Stencil's classifier beside other extractors, on the same pages in one process.

    ./build.sh bench extractors [PATH ...] [--split dev] [--json FILE] [--reuse FILE ...] [--without NAME ...]

PATH: files of pages (the format of ../shared/corpora, JSON lines with html and gold_text); the default is every set
of ../shared/corpora/pages that was made to compare extractors. `--sites N` adds N pages of each real site. A page
has the split of its file, or its site's; sets without one count as test. Extractors that aren't installed are left
out, and named: `.venv/bin/pip install resiliparse readability-lxml justext magic-html` (the last one from Python 3.12).

Each page goes through all extractors in turn, timed in CPU seconds, parsing included. Stencil's turn is the product's:
label the page, cut it by its labels, take main HTML and text. Texts are compared as udfs.metrics says: token F1 (the
multisets of words) and ROUGE-5 (of runs of five words). A page that makes an extractor fail has an empty text.

`--json` keeps the scores of every page and extractor. `--reuse` takes those of the others from such files, where they
have all pages, and runs Stencil alone; speeds are then of two runs and marked with a star.
`--title neutral` prints figures also with the title taken out of both texts, for pages whose title is not in the
ground truth (`title_in_gold` false): sets differ in whether a title belongs to it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from bench.figures import Scores, report
from bench.peers import Peer, installed

from spark_jobs import __version__
from templates.dom import PageError, parse
from udfs.blocks import segment
from udfs.classifiers import from_spec
from udfs.extraction import Decision, extract_page
from udfs.input.pages import Page
from udfs.metrics import score, snippets_passed, words

CORPORA = ROOT.parent / "shared" / "corpora"
SETS = "wcxb fundus harvest aeb dragnet l3s_gn1 waddle_daniel cleanportaleval trafilatura_eval".split()
"""Sets with main content by hand or by the publisher; the others hold conversions, in part made by other tools."""

OURS = "stencil"


@dataclass(frozen=True)
class Case:
    """A page with its ground truth. title: its words where the ground truth leaves it out, else none."""

    key: str
    html: str
    gold: str | None
    title: tuple[str, ...]
    row: dict[str, Any]


def read(paths: list[Path], sites: int, split: str) -> Iterator[Case]:
    """Yield the pages of a split, set by set."""
    for path in paths:
        yield from (case for case in _file(path, path.name.split(".")[0]) if _in(case, split))
    splits = json.loads((CORPORA / "sites" / "splits.json").read_text("utf-8")) if sites else {}
    for slug in sorted(splits):
        if split in ("all", splits[slug]):
            site = json.loads((CORPORA / "sites" / slug / "site.json").read_text("utf-8"))
            cases = list(_file(CORPORA / "sites" / slug / "pages.jsonl.gz", "sites", lang=site["language"]))
            yield from random.Random(slug).sample(cases, min(sites, len(cases)))


def _in(case: Case, split: str) -> bool:
    return split in ("all", case.row.get("split") or "test")


def _file(path: Path, name: str, **given: str) -> Iterator[Case]:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            row = given | json.loads(line) | {"set": name}
            html, gold = row.pop("html"), row.pop("gold_text", None)
            if gold is None and not row.get("must_contain"):
                continue
            key = f"{name}/{number}/{row.get('url') or row.get('id')}"
            yield Case(key, html, gold, _title(html, row) if row.get("title_in_gold") is False else (), row)


def _title(html: str, row: dict[str, Any]) -> tuple[str, ...]:
    if not row.get("title_path"):
        return ()
    try:
        found = parse(html).xpath(row["title_path"])
    except PageError:
        return ()
    return tuple(words(" ".join(found[0].itertext()))) if isinstance(found, list) and found else ()


def without(text: str, title: tuple[str, ...]) -> str:
    """Return the words of a text without the first run of them that is the title."""
    found = words(text)
    size = len(title)
    for start in range(len(found) - size + 1) if size else ():
        if tuple(found[start : start + size]) == title:
            return " ".join(found[:start] + found[start + size :])
    return " ".join(found)


def stencil(spec: str) -> Peer:
    classifier = from_spec(spec)

    def extract(html: str, lang: str) -> str:
        page = Page("http://example.com/", "bench", 0, html, "0" * 16, None, None)
        (labels,) = classifier.label([page])
        if isinstance(labels, PageError):
            raise labels
        row, _ = extract_page(page, Decision(labels=labels))
        return str(row["text"])

    return Peer(OURS, f"webstencil {__version__}", extract, str)


def measure(case: Case, peer: Peer) -> dict[str, Any]:
    """Run an extractor on a page: its figures, CPU seconds and error."""
    error = None
    start = time.process_time()
    try:
        found = peer.extract(case.html, case.row.get("lang") or "en")
    except Exception as raised:  # noqa: BLE001 - what an extractor can't do is an empty text
        found, error = None, f"{type(raised).__name__}: {raised}"[:200]
    seconds = time.process_time() - start
    text = "" if error else peer.text(found)
    figures: dict[str, Any] = {"cpu": round(seconds, 5), "found": len(words(text))}
    if error:
        figures["error"] = error
    passed = snippets_passed(text, case.row.get("must_contain") or (), case.row.get("must_not_contain") or ())
    if passed is not None:
        figures["snippets"] = passed
    if case.gold is not None:
        result = score(text, case.gold)
        figures |= {"wanted": result.wanted, "f1": result.tokens.f1, "rouge": result.rouge.f1}
        figures |= {"precision": result.tokens.precision, "recall": result.tokens.recall}
        if case.title:
            neutral = score(without(text, case.title), without(case.gold, case.title))
            figures |= {"neutral_f1": neutral.tokens.f1, "neutral_rouge": neutral.rouge.f1}
    return figures


def run(cases: Iterator[Case], peers: list[Peer], reused: Scores, log: Callable[[str], None]) -> Scores:
    """Take every page through all extractors; `reused` are scores of other ones, by extractor and page."""
    scores: Scores = {"pages": {}, "extractors": dict(reused.get("extractors", {})), "scores": {}}
    scores["extractors"] = {peer.name: {"version": peer.version} for peer in peers} | scores["extractors"]
    scores["scores"] = {name: {} for name in scores["extractors"]}
    for number, case in enumerate(cases, 1):
        kept = ("set", "url", "id", "lang", "page_type", "split", "title_in_gold", "template")
        scores["pages"][case.key] = {name: case.row[name] for name in kept if case.row.get(name) is not None}
        scores["pages"][case.key] |= bare(case.html)
        for name in reused.get("extractors", {}):
            if case.key not in reused["scores"][name]:
                sys.exit(f"--reuse has no scores of {name} for {case.key}: run without it, on the same pages")
            scores["scores"][name][case.key] = reused["scores"][name][case.key]
            scores["pages"][case.key]["reused_cpu"] = reused["pages"][case.key]["cpu"]
        for peer in peers:
            scores["scores"][peer.name][case.key] = measure(case, peer)
        if number % 100 == 0:
            log(f"{number} pages")
    return scores


def bare(html: str) -> dict[str, Any]:
    """Tell what a page is to a machine: its characters, CPU seconds to parse it, and how many blocks it has."""
    start = time.process_time()
    try:
        root = parse(html)
    except PageError:
        return {"chars": len(html), "cpu": time.process_time() - start, "blocks": 0}
    seconds = time.process_time() - start
    return {"chars": len(html), "cpu": round(seconds, 5), "blocks": sum(1 for _ in segment(root))}


def chosen(arguments: argparse.Namespace) -> tuple[list[Peer], Scores]:
    """Return the extractors to run, and what is known of others."""
    peers, missing = installed()
    ours = [] if OURS in arguments.without else [stencil(arguments.classifier)]
    if arguments.reuse:
        return ours, kept(arguments.reuse, arguments.without)
    if missing:
        print(f"not installed, so left out: {', '.join(missing)}", file=sys.stderr)
    return ours + [peer for peer in peers if peer.name not in arguments.without], {}


def kept(files: Iterable[Path], without: Collection[str] = ()) -> Scores:
    """Read what `--json` kept of the other extractors, together."""
    reused: Scores = {"pages": {}, "extractors": {}, "scores": {}}
    for file in files:
        scores = json.loads(file.read_text("utf-8"))
        reused["pages"] |= scores["pages"]
        for name, about in scores["extractors"].items():
            if name != OURS and name not in without:
                reused["extractors"][name] = about | {"reused": True}
                reused["scores"].setdefault(name, {}).update(scores["scores"][name])
    return reused


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH")
    parser.add_argument("--split", choices=("train", "dev", "test", "all"), default="dev")
    parser.add_argument("--sites", type=int, default=0, metavar="N", help="pages of each real site (default: 0)")
    parser.add_argument("--classifier", default="embedded", metavar="SPEC", help="Stencil's (default: embedded)")
    parser.add_argument("--without", nargs="*", default=[], metavar="NAME", help=f"leave out, {OURS} or any other")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the scores of all pages")
    parser.add_argument("--reuse", type=Path, nargs="*", metavar="FILE", help="the others' scores, by --json")
    parser.add_argument("--title", choices=("kept", "neutral"), default="kept")
    parser.add_argument("--worst", type=int, default=10, metavar="N", help="list Stencil's worst pages (default: 10)")
    arguments = parser.parse_args()
    paths = arguments.paths or [CORPORA / "pages" / f"{name}.jsonl.gz" for name in SETS]
    peers, reused = chosen(arguments)
    cases = read(paths, arguments.sites, arguments.split)
    scores = run(cases, peers, reused, lambda text: print(text, file=sys.stderr))
    if arguments.json:
        arguments.json.write_text(json.dumps(scores, ensure_ascii=False), "utf-8")
    if not scores["pages"] or not scores["scores"]:
        sys.exit(f"no page of the split {arguments.split}, or no extractor")
    print("\n".join(report(scores, neutral=arguments.title == "neutral", worst=arguments.worst, ours=OURS)))


if __name__ == "__main__":
    main()
