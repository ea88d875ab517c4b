"""MathML as LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import lxml.etree
from lxml.html import HtmlElement

from udfs.conversion import symbols
from udfs.conversion.mathtokens import BARS, CLOSE, COMMAND_END, NOTHING, OPEN, Part, join, leaf

_MAX_CHARS = 1_000_000
"""More text is no formula, and what nests deeply is copied at each level."""
_ENVIRONMENTS = {
    ("(", ")"): "pmatrix",
    ("[", "]"): "bmatrix",
    (r"\{", r"\}"): "Bmatrix",
    ("|", "|"): "vmatrix",
    (r"\|", r"\|"): "Vmatrix",
}
_TALL = re.compile(r"\\(?:frac|binom|sum|prod|int|begin|sqrt|under|over|genfrac|left|big(?:cup|cap))")
_FONT = re.compile(r"(\\math(?:rm|bf|sf|tt))\{([A-Za-z]+)\}\Z")
_OVER = {
    "¯": r"\overline",
    "‾": r"\overline",
    "_": r"\overline",
    "\u0304": r"\overline",
    "\u0305": r"\overline",
    "―": r"\overline",
    "^": r"\hat",
    "ˆ": r"\hat",
    "\u0302": r"\hat",
    "~": r"\tilde",
    "˜": r"\tilde",
    "∼": r"\tilde",
    "\u0303": r"\tilde",
    "→": r"\vec",
    "⃗": r"\vec",
    "⇀": r"\vec",
    "←": r"\overleftarrow",
    "↔": r"\overleftrightarrow",
    "˙": r"\dot",
    "\u0307": r"\dot",
    ".": r"\dot",
    "¨": r"\ddot",
    "\u0308": r"\ddot",
    "⃛": r"\dddot",
    "˘": r"\breve",
    "ˇ": r"\check",
    "´": r"\acute",
    "`": r"\grave",
    "˚": r"\mathring",
    "⏞": r"\overbrace",
    "︷": r"\overbrace",
    "⏜": r"\overparen",
}
_UNDER = {
    "_": r"\underline",
    "¯": r"\underline",
    "‾": r"\underline",
    "\u0332": r"\underline",
    "⏟": r"\underbrace",
    "︸": r"\underbrace",
    "→": r"\underrightarrow",
}
_WIDE = {r"\hat": r"\widehat", r"\tilde": r"\widetilde", r"\vec": r"\overrightarrow"}
_ARROWS = {
    r"\rightarrow": r"\xrightarrow",
    r"\longrightarrow": r"\xrightarrow",
    r"\leftarrow": r"\xleftarrow",
    r"\longleftarrow": r"\xleftarrow",
    r"\rightleftharpoons": r"\xrightleftharpoons",
    r"\Rightarrow": r"\xRightarrow",
    r"\leftrightarrow": r"\xleftrightarrow",
}
_LEAVES = frozenset(("mi", "mn", "mo", "mtext", "ms", "mspace", "mglyph", "mprescripts", "none", "cn", "ci"))
_IGNORED = frozenset(("annotation", "annotation-xml", "maligngroup", "malignmark", "script", "style"))


def name(element: HtmlElement) -> str:
    """Return the MathML name of an element, without a prefix."""
    tag = element.tag
    return tag.rpartition(":")[2].lower() if isinstance(tag, str) else ""


def latex(math: HtmlElement) -> str:
    """Return the LaTeX of a MathML element (MathML 3, presentation), of any depth."""
    stack: list[list[Part]] = [[]]
    variants: list[str] = [""]
    walker = lxml.etree.iterwalk(math, events=("start", "end"))
    size = 0
    for event, element in walker:
        kind = name(element)
        if event == "start":
            if kind in _IGNORED or kind in _LEAVES or not kind:
                walker.skip_subtree()
            stack.append([])
            variants.append(element.get("mathvariant") or variants[-1])
            if kind not in _IGNORED and kind not in _LEAVES and element.text and not element.text.isspace():
                stack[-1].append(_stray(element.text))
            continue
        parts, variant = stack.pop(), variants.pop()
        part = (
            leaf(element, kind, variant)
            if kind in _LEAVES
            else NOTHING
            if kind in _IGNORED
            else _branch(element, kind, parts)
        )
        size += len(part.tex) if kind in _LEAVES else 0
        if size > _MAX_CHARS:
            return " ".join("".join(math.itertext()).split())
        if kind not in _IGNORED:
            stack[-1].append(part)
        if element is not math and element.tail and not element.tail.isspace():
            stack[-1].append(_stray(element.tail))
    return row(stack[0]).tex.strip()


def _stray(text: str) -> Part:
    """Text between elements, where MathML has none."""
    return Part(join([symbols.of(char) for char in " ".join(text.split())]), "row")


def row(parts: Sequence[Part], stretchy: bool = True) -> Part:
    """The part of an inferred row: parts in a line, with the fences around a table or around what is tall."""
    parts = [part for part in parts if part.tex or part.kind == "table"]
    if not parts:
        return NOTHING
    parts = _merged(_fenced_tables(parts))
    if len(parts) == 1:
        return parts[0]
    first, last = parts[0], parts[-1]
    if first.kind in ("open", "bar") and last.kind in ("close", "bar"):
        inner = join([part.tex for part in parts[1:-1]])
        depth = 0
        for part in parts[:-1]:
            depth += (part.kind == "open") - (part.kind == "close")
            if depth < 0 or (depth == 0 and first.kind == "open"):
                return Part(join([part.tex for part in parts]), "row")
        if stretchy and _TALL.search(inner):
            return Part(join([r"\left", first.tex, inner, r"\right", last.tex]).replace(r"\left ", r"\left"), "atom")
        return Part(join([first.tex, inner, last.tex]), "atom")
    return Part(join([part.tex for part in parts]), "row")


def _merged(parts: list[Part]) -> list[Part]:
    """Letters of one font one after the other in one command: a name that was set letter by letter."""
    out: list[Part] = []
    for part in parts:
        match = _FONT.match(part.tex)
        if match and out and part.kind == "atom":
            before = _FONT.match(out[-1].tex)
            if before and before[1] == match[1] and (len(before[2]) == 1 or len(match[2]) == 1):
                out[-1] = Part(rf"{match[1]}{{{before[2]}{match[2]}}}", "atom")
                continue
        out.append(part)
    return out


def _fenced_tables(parts: list[Part]) -> list[Part]:
    if not any(part.kind == "table" for part in parts):
        return parts
    out: list[Part] = []
    skip = False
    for index, part in enumerate(parts):
        if skip:
            skip = False
            continue
        if part.kind != "table":
            out.append(part)
            continue
        before = out[-1] if out and out[-1].kind in ("open", "bar") else None
        after = parts[index + 1] if index + 1 < len(parts) and parts[index + 1].kind in ("close", "bar") else None
        if before and after:
            out.pop()
            out.append(table_in(part, before.tex, after.tex))
            skip = True
        elif before and before.tex == r"\{":
            out.pop()
            out.append(table_in(part, r"\{", ""))
        else:
            out.append(part)
    return out


def table_in(table: Part, opening: str, closing: str) -> Part:
    """A table between two fences."""
    body = re.sub(r"\A\\begin\{(?:matrix|aligned)\}|\\end\{(?:matrix|aligned)\}\Z", "", table.tex)
    environment = _ENVIRONMENTS.get((opening, closing))
    if opening == r"\{" and not closing:
        environment = "cases"
    if environment and body is not table.tex:
        return Part(rf"\begin{{{environment}}}{body}\end{{{environment}}}", "atom")
    return Part(join([r"\left" + (opening or "."), table.tex, r"\right" + (closing or ".")]), "atom")


def _branch(element: HtmlElement, kind: str, parts: list[Part]) -> Part:
    build = _BUILDERS.get(kind)
    if build is not None:
        return build(element, parts)
    stretchy = not (len(element) > 1 and element[0].get("stretchy") == "false")
    return row(parts, stretchy)


def _arguments(parts: list[Part], count: int) -> list[Part]:
    """Exactly `count` parts: MathML with fewer gets empty ones, what is too much goes to the last."""
    if len(parts) > count:
        parts = [*parts[: count - 1], row(parts[count - 1 :])]
    return parts + [NOTHING] * (count - len(parts))


def _braced(part: Part) -> str:
    """A part as the base of a script."""
    if not part.tex:
        return "{}"
    return part.tex if part.kind in ("atom", "open", "close", "bar", "operator") else f"{{{part.tex}}}"


def _fraction(element: HtmlElement, parts: list[Part]) -> Part:
    top, bottom = (part.tex for part in _arguments(parts, 2))
    thickness = (element.get("linethickness") or "").strip()
    if re.fullmatch(r"0+(?:\.0*)?\s*\w*", thickness):
        return Part(rf"\genfrac{{}}{{}}{{0pt}}{{}}{{{top}}}{{{bottom}}}", "atom")
    if element.get("bevelled") == "true":
        upper, lower = (part.tex if part.kind != "row" else f"({part.tex})" for part in _arguments(parts, 2))
        return Part(f"{upper}/{lower}", "row")
    return Part(rf"\frac{{{top}}}{{{bottom}}}", "atom")


def _root(element: HtmlElement, parts: list[Part]) -> Part:
    base, index = _arguments(parts, 2)
    degree = index.tex if "]" not in index.tex else f"{{{index.tex}}}"
    return Part(rf"\sqrt[{degree}]{{{base.tex}}}" if degree else rf"\sqrt{{{base.tex}}}", "atom")


def scripts(base: Part, below: Part, above: Part) -> Part:
    """A base with a subscript and a superscript; primes without a caret."""
    tex = _braced(base)
    if base.kind == "script" and (not below.tex or not above.tex) and base.tex.startswith(tuple(symbols.LIMITS)):
        tex = base.tex
    if below.tex:
        tex += f"_{{{below.tex}}}"
    if above.tex:
        superscript = above.tex.replace(r"^{\circ}", r"\circ") if above.tex == r"^{\circ}" else above.tex
        tex += superscript if not superscript.strip("'") else f"^{{{superscript}}}"
    return Part(tex, "script" if below.tex or above.tex else base.kind)


def _subscript(element: HtmlElement, parts: list[Part]) -> Part:
    base, below = _arguments(parts, 2)
    return scripts(base, below, NOTHING)


def _superscript(element: HtmlElement, parts: list[Part]) -> Part:
    base, above = _arguments(parts, 2)
    return scripts(base, NOTHING, above)


def _both(element: HtmlElement, parts: list[Part]) -> Part:
    base, below, above = _arguments(parts, 3)
    return scripts(base, below, above)


def _over(base: Part, mark: Part, source: str) -> Part:
    command = _OVER.get(source)
    if command:
        single = len(base.tex) == 1 or COMMAND_END.fullmatch(base.tex)
        if command == r"\overline" and single:
            command = r"\bar"
        elif not single:
            command = _WIDE.get(command, command)
        return Part(f"{command}{{{base.tex}}}", "atom")
    if base.tex in _ARROWS:
        return Part(f"{_ARROWS[base.tex]}{{{mark.tex}}}", "atom")
    if _takes_limits(base, r"\overbrace"):
        return scripts(base, NOTHING, mark)
    return Part(rf"\overset{{{mark.tex}}}{{{base.tex}}}", "atom")


def _under(base: Part, mark: Part, source: str) -> Part:
    command = _UNDER.get(source)
    if command:
        return Part(f"{command}{{{base.tex}}}", "atom")
    if base.tex in _ARROWS:
        return Part(f"{_ARROWS[base.tex]}[{mark.tex}]{{}}", "atom")
    if _takes_limits(base, r"\underbrace"):
        return scripts(base, mark, NOTHING)
    if base.tex.startswith((r"\operatorname{", r"\mathrm{")) and base.kind in ("atom", "operator"):
        named = re.sub(r"\A\\(?:operatorname|mathrm)\{", r"\\operatorname*{", base.tex)
        return scripts(Part(named, "operator"), mark, NOTHING)
    return Part(rf"\underset{{{mark.tex}}}{{{base.tex}}}", "atom")


def _takes_limits(base: Part, brace: str) -> bool:
    if base.kind == "operator" or base.tex.startswith(brace):
        return True
    return base.kind == "script" and base.tex.startswith(tuple(symbols.LIMITS))


def _mark(element: HtmlElement, index: int) -> str:
    """The text of a mark above or below, if it is one character."""
    children = [child for child in element if isinstance(child.tag, str)]
    if index >= len(children):
        return ""
    child = children[index]
    for _ in range(3):
        if name(child) in ("mrow", "mstyle") and len(child) == 1:
            child = child[0]
    text = (child.text or "").strip() if len(child) == 0 else ""
    return text if len(text) == 1 and name(child) in ("mo", "mi", "mtext") else ""


def _mover(element: HtmlElement, parts: list[Part]) -> Part:
    base, mark = _arguments(parts, 2)
    return _over(base, mark, _mark(element, 1))


def _munder(element: HtmlElement, parts: list[Part]) -> Part:
    base, mark = _arguments(parts, 2)
    return _under(base, mark, _mark(element, 1))


def _munderover(element: HtmlElement, parts: list[Part]) -> Part:
    base, below, above = _arguments(parts, 3)
    if base.tex in _ARROWS:
        return Part(f"{_ARROWS[base.tex]}[{below.tex}]{{{above.tex}}}", "atom")
    if base.kind == "operator":
        return scripts(base, below, above)
    return _over(_under(base, below, _mark(element, 1)), above, _mark(element, 2))


def _multiscripts(element: HtmlElement, parts: list[Part]) -> Part:
    if not parts:
        return NOTHING
    cut = next((index for index, part in enumerate(parts) if part.kind == "pre"), len(parts))
    after, before = parts[1:cut], parts[cut + 1 :]
    tex = ""
    for index in range(0, len(before), 2):
        tex += scripts(NOTHING, *_arguments(before[index : index + 2], 2)).tex
    tex += _braced(parts[0]) if parts[0].tex else ""
    for index in range(0, len(after), 2):
        tex += ("{}" if index else "") + scripts(NOTHING, *_arguments(after[index : index + 2], 2)).tex.removeprefix(
            "{}"
        )
    return Part(tex, "script")


def _fenced(element: HtmlElement, parts: list[Part]) -> Part:
    opening = element.get("open", "(").strip()
    closing = element.get("close", ")").strip()
    separators = "".join(element.get("separators", ",").split())
    parts = [part for part in parts if part.tex or part.kind == "table"]
    pieces: list[Part] = []
    for index, part in enumerate(parts):
        if index and separators:
            pieces.append(Part(symbols.of(separators[min(index, len(separators)) - 1]), "atom"))
        pieces.append(part)
    left, right = (
        BARS.get(fence) or OPEN.get(fence) or CLOSE.get(fence) or join([symbols.of(c) for c in fence])
        for fence in (opening, closing)
    )
    if len(pieces) == 1 and pieces[0].kind == "table" and (left or right):
        return table_in(pieces[0], left, right)
    inner = row(pieces).tex if len(pieces) != 1 else pieces[0].tex
    if len(pieces) == 1 and left == "(" and right == ")" and inner.startswith(r"\genfrac{}{}{0pt}{}{"):
        return Part(inner.replace(r"\genfrac{}{}{0pt}{}", r"\binom", 1), "atom")
    if (left or right) and (not left or not right or _TALL.search(inner)):
        return Part(join([r"\left" + (left or "."), inner, r"\right" + (right or ".")]), "atom")
    return Part(join([left, inner, right]), "atom" if left else "row")


def _table(element: HtmlElement, parts: list[Part]) -> Part:
    rows = [part.tex for part in parts]
    aligns = (element.get("columnalign") or "").split()
    aligned = aligns[:2] == ["right", "left"] or (element.get("class") or "").startswith("aligned")
    if len(rows) == 1 and r"\tag{" in rows[0]:
        return Part(rows[0].replace("&", ""), "row")
    environment = "aligned" if aligned else "matrix"
    body = r" \\ ".join(re.sub(r"\\tag\{[^{}]*\}", "", text) for text in rows)
    return Part(rf"\begin{{{environment}}} {body} \end{{{environment}}}", "table")


def _cells(element: HtmlElement, parts: list[Part]) -> Part:
    return Part(" & ".join(part.tex for part in parts), "row")


def _labelled(element: HtmlElement, parts: list[Part]) -> Part:
    label = re.sub(r"\A\\text\{\s*\(?|\)?\s*\}\Z|[()]", "", parts[0].tex) if parts else ""
    return Part(
        " & ".join(part.tex for part in parts[1:]) + (rf" \tag{{{label}}}" if label and "{" not in label else ""),
        "row",
    )


def _enclosed(element: HtmlElement, parts: list[Part]) -> Part:
    part = row(parts)
    notation = (element.get("notation") or "longdiv").split()
    if "longdiv" in notation:
        return Part(rf"\overline{{\left){part.tex}\right.}}", "atom")
    if "phasorangle" in notation:
        return Part(rf"\angle\underline{{{part.tex}}}", "atom")
    for key, command in (
        ("box", r"\boxed"),
        ("roundedbox", r"\boxed"),
        ("radical", r"\sqrt"),
        ("top", r"\overline"),
        ("actuarial", r"\overline"),
        ("bottom", r"\underline"),
        ("updiagonalstrike", r"\cancel"),
        ("downdiagonalstrike", r"\bcancel"),
        ("horizontalstrike", r"\cancel"),
    ):
        if key in notation:
            return Part(f"{command}{{{part.tex}}}", "atom")
    return part


def _phantom(element: HtmlElement, parts: list[Part]) -> Part:
    part = row(parts)
    return Part(rf"\phantom{{{part.tex}}}", "atom") if part.tex else NOTHING


def _first(element: HtmlElement, parts: list[Part]) -> Part:
    return parts[0] if parts else NOTHING


def _action(element: HtmlElement, parts: list[Part]) -> Part:
    selection = element.get("selection") or "1"
    index = int(selection) - 1 if selection.isdigit() and len(selection) < 6 else 0
    return parts[index] if index < len(parts) else _first(element, parts)


_BUILDERS: dict[str, Callable[[HtmlElement, list[Part]], Part]] = {
    "mfrac": _fraction,
    "msqrt": lambda element, parts: Part(rf"\sqrt{{{row(parts).tex}}}", "atom"),
    "mroot": _root,
    "msub": _subscript,
    "msup": _superscript,
    "msubsup": _both,
    "mover": _mover,
    "munder": _munder,
    "munderover": _munderover,
    "mmultiscripts": _multiscripts,
    "mfenced": _fenced,
    "mtable": _table,
    "mtr": _cells,
    "mlabeledtr": _labelled,
    "menclose": _enclosed,
    "mphantom": _phantom,
    "semantics": _first,
    "maction": _action,
}
