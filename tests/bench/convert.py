"""The conversion beside other converters: share of pairs that match by kind, and CPU time per page in one run.

    ./build.sh bench convert [--pairs FILE] [--sites DIR] [--mineru PYTHON] [--kind KIND --show N]

Others are optional: html2text and markdownify where they are installed, the published mineru-webkit by the interpreter
of an environment that has it (`--mineru`; it needs selectolax<1). Pairs need markdown-it-py.

What matches: Markdown is rendered as CommonMark with GFM tables and strikethrough, and the trees are
compared, so bullets, fences, escapes, emphasis characters, tight and loose are gone. Folded further, on both
sides: white space; kinds of quotes; a mark within the same mark; `b` and `strong`, `i` and `em`; `sub` and
`sup` and none; header cells and others; an empty header row is none; a merged cell is one and empty ones; a
table of one cell is its text; what has no content is nothing; blanks at the ends of inline code are none,
those at the ends of marks stand outside. Markdown that differs only in escapes is the same, since some pairs
were made with escaping off. Links and pictures are written in full, addresses stay relative. `text-layout`
pairs compare words, `latex` pairs TeX without white space and needless braces, `clean-html` pairs grids of
cells, `code-*` pairs the code.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import importlib.util
import json
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lxml.etree
import lxml.html

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from spark_jobs.convert import convert
from templates.dom import parse
from templates.labels import Labels

CORPORA = ROOT.parent / "shared" / "corpora"
Converter = Callable[[str], str]

MINERU = """
import json, sys, time
sys.stdout, out = sys.stderr, sys.stdout
from loguru import logger
logger.remove()
from webpage_converter.convert import convert_html_to_structured_data
for line in sys.stdin:
    html = json.loads(line)
    start = time.process_time()
    try:
        found = convert_html_to_structured_data(main_html=html, url="", output_format="mm_md")
    except Exception as error:
        found = ""
    out.write(json.dumps([found or "", time.process_time() - start]) + chr(10))
    out.flush()
"""


def stencil(html: str) -> str:
    return convert(html, links="inline", images="inline")


def others() -> dict[str, Converter]:
    found: dict[str, Converter] = {}
    if importlib.util.find_spec("html2text"):
        html2text = importlib.import_module("html2text")

        def by_html2text(html: str) -> str:
            converter = html2text.HTML2Text(bodywidth=0)
            return str(converter.handle(html))

        found["html2text"] = by_html2text
    if importlib.util.find_spec("markdownify"):
        markdownify = importlib.import_module("markdownify")
        found["markdownify"] = lambda html: str(markdownify.markdownify(html))
    return found


class Published:
    """mineru-webkit in an interpreter of its own."""

    def __init__(self, python: str) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [python, "-c", MINERU], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
        )
        self.seconds = 0.0

    def __call__(self, html: str) -> str:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(html) + "\n")
        self.process.stdin.flush()
        found, seconds = json.loads(self.process.stdout.readline() or '["", 0]')
        self.seconds += seconds
        return str(found)


# --- what a pair means


_NAMES = {"b": "strong", "i": "em", "s": "del", "strike": "del", "th": "td"}
_KEPT = ("href", "src", "alt", "colspan", "rowspan", "start")
_BLOCK = frozenset(
    [
        "p",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "ul",
        "ol",
        "li",
        "dl",
        "dt",
        "dd",
        "blockquote",
        "pre",
        "table",
        "tr",
        "td",
        "hr",
        "div",
        "body",
        "br",
        "caption",
        "section",
        "figure",
    ]
)
_NAMES_OF_BLOCKS = "|".join(sorted(_BLOCK))
_UNWRAPPED = frozenset(
    ("thead", "tbody", "tfoot", "body", "div", "html", "span", "section", "u", "small", "ins", "mark", "sub", "sup")
)


def rendered(markdown: str) -> Any:
    import markdown_it

    renderer = markdown_it.MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    html = renderer.render(markdown)
    return lxml.html.fromstring(f"<div>{html}</div>") if html.strip() else lxml.html.fromstring("<div></div>")


def fold(text: str) -> str:
    text = re.sub(r"[\u200b\ufeff\xad\u2060]", "", text)
    text = re.sub('[“”„«»‘’"]', "'", text).replace("\xa0", " ")
    return re.sub(r"\s+", " ", text)


def tokens(root: Any) -> list[str]:
    """A tree as the tags and texts that count."""
    out: list[str] = []
    open_marks: list[str] = []

    def visit(element: Any) -> None:
        if not isinstance(element.tag, str):
            return
        name = _NAMES.get(element.tag, element.tag)
        loose = name == "p" and (parent := element.getparent()) is not None and parent.tag in ("li", "td", "dd")
        shown = name not in _UNWRAPPED and not loose and not (name in ("em", "strong") and name in open_marks)
        open_marks.append(name)
        if shown:
            attributes = "".join(
                f" {key}={element.get(key)}" for key in _KEPT if element.get(key) not in (None, "", "1")
            )
            out.append(f"<{name}{attributes}>")
        elif loose or name == "div":
            out.append("<>")
        verbatim = name == "pre"
        if name == "code" and len(element) == 0:
            element.text = (element.text or "").strip()
        if verbatim:
            code = "".join(element.itertext())
            out.append("\n".join(line.rstrip() for line in code.split("\n")).strip("\n"))
        else:
            out.append(fold(element.text or ""))
            for child in element:
                visit(child)
                out.append(fold(child.tail or ""))
        open_marks.pop()
        if shown and name not in ("hr", "br", "img"):
            out.append(f"</{name}>")

    visit(root)
    return out


def expand(table: Any) -> None:
    """Write a merged cell as itself and empty cells; a table of one cell as what is in that."""
    rows = list(table.iter("tr"))
    reach: dict[tuple[int, int], bool] = {}
    for y, row in enumerate(rows):
        cells = [cell for cell in row if cell.tag in ("td", "th")]
        x = 0
        for cell in cells:
            while reach.get((y, x)):
                cell.addprevious(lxml.html.Element("td"))
                x += 1
            wide, high = (int(cell.attrib.pop(name, 1) or 1) for name in ("colspan", "rowspan"))
            for down in range(1, high):
                reach.update({(y + down, x + right): True for right in range(wide)})
            for _ in range(wide - 1):
                cell.addnext(lxml.html.Element("td"))
            x += wide
    cells = list(table.iter("td", "th"))
    if len(cells) == 1:
        table.tag = "p"
        for element in table.iter("thead", "tbody", "tr", "td", "th"):
            element.tag = "span"


def canonical(markdown: str) -> str:
    root = rendered(markdown)
    for element in reversed(
        list(root.iter("h1", "h2", "h3", "h4", "h5", "h6", "li", "ul", "ol", "blockquote", "p", "a", "em", "strong"))
    ):
        if len(element) == 0 and not (element.text or "").strip():
            element.drop_tree()
    for table in root.iter("table"):
        expand(table)
        first = next(table.iter("tr"), None)
        if (first is not None and not "".join(first.itertext()).strip() and first.getnext() is not None) or (
            first is not None and first.getparent().tag == "thead" and not "".join(first.itertext()).strip()
        ):
            first.getparent().remove(first)
    text = "".join(tokens(root))
    text = re.sub(r"(<(?:a|em|strong|del)(?: [^<>]*)?>)\s+", r" \1", text)
    text = re.sub(r"\s+(</(?:a|em|strong|del)>)", r"\1 ", text)
    text = re.sub(rf"\s*(<>|</?(?:{_NAMES_OF_BLOCKS})(?: [^<>]*)?>)\s*", r"\1", text)
    text = re.sub(r"(<>)+", "<>", text)
    text = re.sub(r"<>(?=</?(?:li|td|dd|ul|ol))|(?<=<li>)<>|(?<=<td>)<>|(?<=</ul>)<>|(?<=</ol>)<>", "", text)
    return re.sub(r"\s+", " ", text).replace("<li> ", "<li>").strip("<> ")


def literal(markdown: str) -> str:
    """The Markdown itself without escapes: suites that switch escaping off expect no tree."""
    return fold(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", markdown)).strip()


def words(text: str) -> list[str]:
    text = re.sub(r"(?m)^[\s>]*(?:[-*+o]|\d+[.)])(?=\s)", " ", text)
    return re.findall(r"\w+", text)


def tex(text: str) -> str:
    text = re.sub(r"^\{\\displaystyle\s*(.*)\}$", r"\1", text.strip(), flags=re.S)
    text = re.sub(r"\\(?:left|right|displaystyle|textstyle|,|;|!|:|quad)(?![a-zA-Z])|~|\s+", "", text)
    text = text.replace("\\dfrac", "\\frac").replace("\\tfrac", "\\frac").replace("\\lt", "<").replace("\\gt", ">")
    before = None
    while before != text:
        before = text
        text = re.sub(r"\{(\\?[a-zA-Z]+|[^{}\\])\}", r"\1", text) if "\\begin" not in text else text.replace("{}", "")
        if "\\begin" in text:
            break
    return text


def formulas(markdown: str) -> list[str]:
    pattern = r"\$\$(.+?)\$\$|(?<![\\$])\$(?!\s)([^$\n]+?)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]"
    return [next(one for one in match.groups() if one) for match in re.finditer(pattern, markdown, re.S)]


def grid(root: Any) -> list[list[str | None]]:
    table = next(root.iter("table"), None)
    if table is None:
        return [["".join(re.sub(r"[\s`*_$\\~]+", "", root.text_content()))]]
    rows: list[list[str | None]] = []
    hanging: dict[tuple[int, int], None] = {}
    for y, row in enumerate(table.iter("tr")):
        out: list[str | None] = []
        for cell in row:
            if cell.tag not in ("td", "th"):
                continue
            while (y, len(out)) in hanging:
                out.append(None)
            for line_break in list(cell.iter("br")):
                line_break.text = " "
            text = re.sub(r"[\s`*_$\\~]+|<br>", "", cell.text_content())
            wide, high = (int(cell.get(name) or 1) for name in ("colspan", "rowspan"))
            for x in range(min(wide, 99)):
                for down in range(1, min(high, 99)):
                    hanging[y + down, len(out)] = None
                out.append(text if x == 0 else None)
        rows.append(out)
    width = max((len(row) for row in rows), default=0)
    rows = [row + [""] * (width - len(row)) for row in rows]
    cells: list[str | None] = [cell for row in rows for cell in row if cell]
    return [row for row in rows if any(row)] if len(cells) > 1 else [cells]


def same_grid(one: list[list[str | None]], two: list[list[str | None]]) -> bool:
    if len(one) != len(two) or any(len(a) != len(b) for a, b in zip(one, two, strict=True)):
        return False
    return all(
        a == b or a is None or b is None for x, y in zip(one, two, strict=True) for a, b in zip(x, y, strict=True)
    )


def codes(markdown: str) -> list[str]:
    root = rendered(markdown)
    found = ["".join(pre.itertext()) for pre in root.iter("pre")] or [
        "".join(one.itertext()) for one in root.iter("code")
    ]
    return ["\n".join(line.rstrip() for line in code.strip("\n").split("\n")).strip() for code in found]


def matches(pair: dict[str, Any], markdown: str) -> bool:
    form, expected = pair["format"], pair["expected"]
    if form == "markdown":
        return canonical(markdown) == canonical(expected) or literal(markdown) == literal(expected)
    if form == "text-layout":
        return words(rendered(markdown).text_content()) == words(expected)
    if form == "latex":
        return tex(expected) in [tex(one) for one in formulas(markdown)]
    if form.startswith("display-latex"):
        lines = [tex(line) for line in expected.split("\n") if line.strip()]
        found = [tex(one) for one in re.findall(r"\$\$(.+?)\$\$", markdown, re.S)]
        return lines == found
    if form == "clean-html":
        wanted_tree = lxml.html.fromstring(expected) if expected.strip() else lxml.html.Element("div")
        return same_grid(grid(wanted_tree), grid(rendered(markdown)))
    wanted = [
        "\n".join(line.rstrip() for line in one.strip("\n").split("\n")).strip() for one in expected.split("\x1e")
    ]
    found = codes(markdown)
    return found == wanted if "blocks" in form else [re.sub(r"\xa0", " ", one) for one in wanted] == found[:1]


def compare(pairs: list[dict[str, Any]], converters: dict[str, Converter], arguments: argparse.Namespace) -> None:
    right: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    total: dict[str, int] = defaultdict(int)
    shown = 0
    for pair in pairs:
        kind = pair["kind"] if not arguments.sets else f"{pair['kind']} {pair['set']}"
        total[kind] += 1
        for name, converter in converters.items():
            try:
                markdown = converter(pair["html"])
            except Exception as error:  # noqa: BLE001 - a converter's failure is a miss
                markdown = f"{type(error).__name__}: {error}"
            good = matches(pair, markdown)
            right[kind][name] += good
            if name == "stencil" and not good and pair["kind"] == arguments.kind and shown < arguments.show:
                shown += 1
                parts = (pair["id"], pair["html"], "expected", pair["expected"], "found", markdown)
                print("\n---\n".join(part[:600] for part in parts))
                if pair["format"] == "markdown":
                    print("---\n", canonical(pair["expected"])[:400], "\n", canonical(markdown)[:400])
    print(f"{'kind':40} {'pairs':>6} " + " ".join(f"{name:>12}" for name in converters))
    for kind in sorted(total):
        print(
            f"{kind:40} {total[kind]:6} " + " ".join(f"{right[kind][name] / total[kind]:12.3f}" for name in converters)
        )


def main_htmls(sites: Path, per_site: int) -> list[str]:
    from templates.application import apply_labels
    from udfs.extraction import Conversion, _content

    found = []
    for path in sorted(sites.glob("*/pages.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for _, line in zip(range(per_site), lines, strict=False):
                page = json.loads(line)
                paths = tuple(page["gold_paths"] + page["gold_excluded_paths"])
                labels = Labels(paths, (1.0,) * len(page["gold_paths"]) + (0.0,) * len(page["gold_excluded_paths"]))
                root = parse(page["html"])
                apply_labels(root, labels)
                html = _content(root, "", Conversion())["main_html"]
                if html:
                    found.append(html)
    return found


_PART = "<div><p>Text with <b>marks</b> and <a href='/x'>links</a>.</p><ul><li>one<li>two</ul></div>"


def speed(pages: list[str], converters: dict[str, Converter]) -> None:
    print(
        f"{len(pages)} main HTMLs, {sum(map(len, pages)) / len(pages) / 1000:.1f} kB on average; pages per CPU second"
    )
    seconds: dict[str, float] = dict.fromkeys(converters, 0.0)
    for page in pages:  # interleaved: what else the machine does hits all alike
        for name, converter in converters.items():
            start = time.process_time()
            converter(page)
            seconds[name] += time.process_time() - start
    for name, converter in converters.items():
        spent = converter.seconds if isinstance(converter, Published) else seconds[name]
        print(f"{name:12} {len(pages) / spent:8.0f}   {1000 * spent / len(pages):8.2f} ms a page")
    for times in (1, 10, 100):
        html = "<body>" + _PART * (1000 * times)
        start = time.process_time()
        convert(html)
        spent = time.process_time() - start
        print(f"{len(html) / 1e6:6.1f} MB: {spent:6.2f} CPU-s, {spent / len(html) * 1e6:5.2f} a MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, default=CORPORA / "pairs" / "pairs.jsonl.gz")
    parser.add_argument("--sites", type=Path, default=CORPORA / "sites")
    parser.add_argument("--per-site", type=int, default=6)
    parser.add_argument("--mineru", help="Python of an environment with mineru-webkit and selectolax<1")
    parser.add_argument("--only", choices=("pairs", "speed"))
    parser.add_argument("--alone", action="store_true", help="without the others")
    parser.add_argument("--sets", action="store_true", help="by kind and suite")
    parser.add_argument("--kind", help="only this kind")
    parser.add_argument("--show", type=int, default=0, help="misses of the kind to print")
    arguments = parser.parse_args()
    converters: dict[str, Converter] = {"stencil": stencil} | ({} if arguments.alone else others())
    if arguments.mineru:
        converters["mineru"] = Published(arguments.mineru)
    if arguments.only != "speed":
        with gzip.open(arguments.pairs, "rt", encoding="utf-8") as lines:
            pairs = [pair for line in lines if arguments.kind in (None, (pair := json.loads(line))["kind"])]
        compare(pairs, converters, arguments)
    if arguments.only != "pairs":
        if "mineru" in converters:
            converters["mineru"] = Published(arguments.mineru)
        speed(main_htmls(arguments.sites, arguments.per_site), converters | {"stencil": convert})


if __name__ == "__main__":
    main()
