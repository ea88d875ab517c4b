"""Tables of what extractors scored, for tests/bench/extractors.py."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

Scores = dict[str, Any]
"""pages: key → what a page is. extractors: name → version. scores: name → key → figures of the page."""

Groups = dict[str, list[str]]

LEAST = 20
"""Pages of a language that make a figure."""


def mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def group(scores: Scores, name: Callable[[dict[str, Any]], str | None], least: int = 1) -> Groups:
    """Group the keys of pages by what `name` says of them."""
    groups: Groups = defaultdict(list)
    for key, page in scores["pages"].items():
        if (found := name(page)) is not None:
            groups[found].append(key)
    return {key: groups[key] for key in sorted(groups) if len(groups[key]) >= least}


def table(title: str, scores: Scores, groups: Groups, figure: str, overall: str | None = None) -> Iterator[str]:
    """Yield lines: the mean of a figure, over the pages that have it, by group and extractor."""
    names = list(scores["scores"])
    means: dict[str, list[float]] = defaultdict(list)
    rows = []
    for label, keys in groups.items():
        values = {name: _values(scores, name, keys, figure) for name in names}
        pages = max(map(len, values.values()), default=0)
        if pages:
            rows.append(_row(label, pages, [mean(values[name]) for name in names]))
        for name in names:
            if values[name]:
                means[name].append(sum(values[name]) / len(values[name]))
    if rows:
        yield from ("", f"{title:32}{'pages':>7}" + "".join(f"{name:>18}" for name in names), *rows)
        if overall and len(rows) > 1:
            yield _row(overall, 0, [mean(means[name]) for name in names])


def margins(title: str, scores: Scores, groups: Groups, ours: str) -> Iterator[str]:
    """Yield lines: how far our token F1 is ahead of the best other's mean, page by page, with its standard error."""
    if ours not in scores["scores"] or len(scores["scores"]) < 2:
        return
    yield from ("", f"{title:32}{'pages':>7}{'ahead by':>10}{'error':>8}  of")
    for label, keys in groups.items():
        means = {name: mean(_values(scores, name, keys, "f1")) for name in scores["scores"] if name != ours}
        best, _ = max(means.items(), key=lambda item: item[1] or 0.0)
        pairs = zip(_values(scores, ours, keys, "f1"), _values(scores, best, keys, "f1"), strict=True)
        ahead = [own - other for own, other in pairs]
        if len(ahead) > 1:
            error = statistics.stdev(ahead) / len(ahead) ** 0.5
            yield f"{label:32}{len(ahead):7}{statistics.fmean(ahead):+10.3f}{error:8.3f}  {best}"


def _values(scores: Scores, name: str, keys: list[str], figure: str) -> list[float]:
    found = (scores["scores"][name][key] for key in keys)
    if figure == "empty":
        return [float(not page["found"]) for page in found if page.get("wanted")]
    if figure.startswith("neutral_"):
        return [page.get(figure, page.get(figure.removeprefix("neutral_"))) for page in found if "f1" in page]
    return [page[figure] for page in found if figure in page]


def _row(label: str, pages: int, values: list[float | None]) -> str:
    cells = "".join(f"{'-' if value is None else f'{value:.3f}':>18}" for value in values)
    return f"{label:32}{pages or '':>7}{cells}"


def speed(scores: Scores) -> Iterator[str]:
    """Yield lines: pages per CPU-second, beside what a bare parse took in the same run."""
    sizes = [page["chars"] for page in scores["pages"].values()]
    size = f"pages of {sum(sizes) / len(sizes) / 1000:.0f} thousand characters"
    yield from ("", f"{size:32}{'pages/CPU-s':>14}{'x bare parse':>14}{'slowest page':>16}")
    for name, pages in {"bare parse": scores["pages"], **scores["scores"]}.items():
        seconds = [page["cpu"] for page in pages.values()]
        reused = scores["extractors"].get(name, {}).get("reused")
        star, kept = (" *of another run", "reused_cpu") if reused else ("", "cpu")
        parse = sum(page[kept] for page in scores["pages"].values())
        rate, times = len(seconds) / max(sum(seconds), 1e-9), sum(seconds) / max(parse, 1e-9)
        yield f"{name + star:32}{rate:14.1f}{times:14.1f}{max(seconds):14.2f} s"


def worst_pages(scores: Scores, ours: str, count: int) -> Iterator[str]:
    """Yield lines: our worst pages, beside the best of the others on each."""
    scored = {key: page for key, page in scores["scores"].get(ours, {}).items() if "f1" in page}
    if not scored or not count:
        return
    header = f"{'F1':>6}{'prec.':>7}{'recall':>7}{'words':>7}{'wanted':>7}{'blocks':>7}  best other          page"
    yield from ("", f"worst pages of {ours}", header)
    for key in sorted(scored, key=lambda key: (scored[key]["f1"], key))[:count]:
        page, about = scored[key], scores["pages"][key]
        others = [(pages[key]["f1"], name) for name, pages in scores["scores"].items() if name != ours]
        best = "{:.3f} {}".format(*max(others)) if others else "-"
        kind = " ".join(str(about[name]) for name in ("set", "page_type", "template", "lang") if name in about)
        yield (
            f"{page['f1']:6.3f}{page['precision']:7.3f}{page['recall']:7.3f}{page['found']:7}{page['wanted']:7}"
            f"{about.get('blocks', 0):7}  {best:18}  {about.get('url')} ({kind}{_error(page)})"
        )


def _error(page: dict[str, Any]) -> str:
    return f"; {page['error']}" if "error" in page else ""


def report(scores: Scores, *, neutral: bool, worst: int, ours: str) -> Iterator[str]:
    """Yield the lines of all tables."""
    sets = group(scores, lambda page: page["set"])
    kinds = group(scores, lambda page: f"{page['set']} {page['page_type']}" if "page_type" in page else None)
    languages = group(scores, lambda page: page.get("lang"), LEAST)
    versions = ", ".join(f"{name} ({about['version']})" for name, about in scores["extractors"].items())
    yield f"{len(scores['pages'])} pages; {versions}"
    figures = {"token F1": "f1", "ROUGE-5 F1": "rouge"}
    for title, figure in figures.items():
        yield from table(f"{title} by set", scores, sets, figure, "mean over sets")
    for title, figure in figures.items():
        yield from table(f"{title} by page type", scores, kinds, figure)
    yield from margins("token F1 by page type", scores, kinds, ours)
    for title, figure in figures.items():
        yield from table(f"{title} by language", scores, languages, figure)
    yield from table("precision by set", scores, sets, "precision", "mean over sets")
    yield from table("recall by set", scores, sets, "recall", "mean over sets")
    yield from table("share of empty texts by set", scores, sets, "empty")
    yield from table("snippets passed by set", scores, sets, "snippets")
    if neutral:
        for title, figure in figures.items():
            yield from table(f"{title}, TITLE NEUTRAL", scores, sets, f"neutral_{figure}", "mean over sets")
            yield from table(f"{title}, TITLE NEUTRAL", scores, kinds, f"neutral_{figure}")
    failed = {name: sum("error" in page for page in pages.values()) for name, pages in scores["scores"].items()}
    if any(failed.values()):
        yield from ("", "pages that made it fail: " + ", ".join(f"{name} {n}" for name, n in failed.items() if n))
    yield from speed(scores)
    yield from worst_pages(scores, ours, worst)
