"""Scoreboard: figures of an evaluation as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spark_jobs.parts import Row

_COLUMNS = {
    "f1": "F1",
    "precision": "prec.",
    "recall": "recall",
    "rouge_f1": "ROUGE-5",
    "rouge_precision": "prec.",
    "rouge_recall": "recall",
    "f1_p5": "F1 p5",
    "below_half": "F1<0.5",
    "empty": "empty",
    "snippets": "snippets",
}
_BENCHMARK = {"rouge_f1": "ROUGE-5", "rouge_precision": "prec.", "rouge_recall": "recall"} | {
    "f1": "F1",
    "precision": "prec.",
    "recall": "recall",
    "empty": "empty",
}
_LEVELS = ("all", "simple", "mid", "hard")
_SECTIONS = ("set", "set and page type", "language", "route")
_SITE_PAGES, _SITES = 5, 20
"""Sites are listed from so many pages on, the worst ones first, up to so many: a set of single pages has no sites."""


def means_of_means(rows: Sequence[Row]) -> list[Row]:
    """Return rows of the dimension `means`: the mean over sets and over sites, each of which counts alike.

    Only where there are several of them, and of sites with enough pages each.
    """
    found = []
    for dimension in ("set", "site"):
        of = [row for row in rows if row["dimension"] == dimension and row["f1"] is not None]
        if dimension == "site":
            of = [row for row in of if row["pages"] >= _SITE_PAGES]
        if len(of) > 1:
            means: Row = dict.fromkeys(_COLUMNS)
            for name in _COLUMNS:
                values = [row[name] for row in of if row[name] is not None]
                means[name] = round(sum(values) / len(values), 6) if values else None
            counts = {name: sum(row[name] for row in of) for name in ("pages", "missing")}
            found.append(means | counts | {"dimension": "means", "value": f"mean over {len(of)} {dimension}s"})
    return found


def lines(rows: Sequence[Row], counts: Mapping[str, Any]) -> Iterator[str]:
    """Yield the tables of figures: overall, by set, page type, language, route and site, and WebMainBench's."""
    (total,) = (row for row in rows if row["dimension"] == "all")
    yield (
        f"{total['pages']:,} pages with ground truth; {total['missing']:,} of them have no extraction (F1 0); "
        f"{counts['extra']:,} extracted URLs have no ground truth"
    )
    if counts["missing"]:
        yield f"  without extraction: {', '.join(counts['missing'])}{' ...' if total['missing'] > 5 else ''}"
    if counts["repeated"]:
        yield f"  {counts['repeated']:,} extractions of a URL that has an earlier one (by split and offset) don't count"
    if counts["left_out"]:
        yield f"  {counts['left_out']:,} pages of the files have no ground truth, and are left out"
    yield from _table("", [total, *(row for row in rows if row["dimension"] == "means")], _COLUMNS)
    for dimension in _SECTIONS:
        of = [row for row in rows if row["dimension"] == dimension]
        yield from _table(dimension, of, _COLUMNS) if of else ()
    yield from _sites(rows)
    benchmark = {row["value"]: row for row in rows if row["dimension"] == "WebMainBench"}
    if benchmark:
        levels = [*_LEVELS, *sorted(benchmark.keys() - set(_LEVELS))]
        shown = [benchmark[level] | {"value": level.title()} for level in levels if level in benchmark]
        yield from _table("WebMainBench (words, not jieba)", shown, _BENCHMARK)


def _sites(rows: Sequence[Row]) -> Iterator[str]:
    sites = [row for row in rows if row["dimension"] == "site" and row["pages"] >= _SITE_PAGES]
    sites.sort(key=lambda row: (row["f1"] is not None, row["f1"] or 0.0, row["value"]))
    if len(sites) > 1:
        yield from _table("site, the worst first", sites[:_SITES], _COLUMNS)
        if len(sites) > _SITES:
            yield f"  {len(sites) - _SITES:,} more sites: --output DIR writes all"


def _table(title: str, rows: Sequence[Row], columns: Mapping[str, str]) -> Iterator[str]:
    yield ""
    yield f"{title:36}{'pages':>8}{'missing':>8}" + "".join(f"{name:>9}" for name in columns.values())
    for row in rows:
        cells = "".join(f"{'-' if row[name] is None else f'{row[name]:.4f}':>9}" for name in columns)
        yield f"{row['value']:36.36}{row['pages']:8,}{row['missing']:8,}{cells}"


def worst(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a line for each of the worst pages, with what may say why: route, confidence, coverage, error."""
    if not rows:
        return
    names = f"{'worst pages: F1':>15}{'ROUGE-5':>9}{'found':>8}{'wanted':>8}  {'route':12}"
    yield from ("", f"{names}{'confid.':>8}{'coverage':>9}  url")
    for row in rows:
        why = [f"{'-' if row[name] is None else f'{row[name]:.3f}'}" for name in ("confidence", "coverage")]
        error = f" ({row['error']})" if row["error"] else ""
        yield (
            f"{row['f1']:15.4f}{row['rouge_f1']:9.4f}{row['found']:8,}{row['wanted']:8,}  {row['extracted_by']:12}"
            f"{why[0]:>8}{why[1]:>9}  {row['url']}{error}"
        )
