"""MathML as LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import lxml.etree
from lxml.html import HtmlElement

from udfs import symbols


class Part(NamedTuple):
    """LaTeX of an element, and what it is for those around it.

    Kinds: atom, row, script, open, close, bar, table, operator, empty, none (`none`), pre (`mprescripts`).
    """

    tex: str
    kind: str


_NOTHING = Part("", "empty")
_MAX_CHARS = 1_000_000
"""More text is no formula, and what nests deeply is copied at each level."""

_OPEN = {"(": "(", "[": "[", "{": r"\{", "⟨": r"\langle", "〈": r"\langle", "⌊": r"\lfloor", "⌈": r"\lceil"}
_CLOSE = {")": ")", "]": "]", "}": r"\}", "⟩": r"\rangle", "〉": r"\rangle", "⌋": r"\rfloor", "⌉": r"\rceil"}
_BARS = {"|": "|", "∣": "|", "‖": r"\|", "∥": r"\|", "||": r"\|"}
_ENVIRONMENTS = {("(", ")"): "pmatrix", ("[", "]"): "bmatrix", (r"\{", r"\}"): "Bmatrix", ("|", "|"): "vmatrix", (r"\|", r"\|"): "Vmatrix"}
_TALL = re.compile(r"\\(?:frac|binom|sum|prod|int|begin|sqrt|under|over|genfrac|left|big(?:cup|cap))")
_COMMAND_END = re.compile(r"\\[A-Za-z]+\Z")
_VARIANTS = {
    "bold": r"\mathbf",
    "italic": r"\mathit",
    "bold-italic": r"\boldsymbol",
    "double-struck": r"\mathbb",
    "script": r"\mathcal",
    "bold-script": r"\boldsymbol",
    "fraktur": r"\mathfrak",
    "bold-fraktur": r"\boldsymbol",
    "sans-serif": r"\mathsf",
    "bold-sans-serif": r"\mathsf",
    "monospace": r"\mathtt",
}
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
_UNDER = {"_": r"\underline", "¯": r"\underline", "‾": r"\underline", "\u0332": r"\underline", "⏟": r"\underbrace", "︸": r"\underbrace", "→": r"\underrightarrow"}
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
_PLAIN = re.compile(r"[A-Za-z0-9+\-*/=<>.,;:!?()\[\]|' ]*\Z")
_TEXT_ESCAPES = str.maketrans({**{c: "\\" + c for c in "#$%&_{}"}, "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"})
_LENGTH = re.compile(r"\s*(-?[\d.]+)\s*(em|ex|px|pt|cm|mm|mu)?")
_SPACES = {"thickmathspace": 0.28, "mediummathspace": 0.22, "thinmathspace": 0.17, "verythickmathspace": 0.33, "veryverythickmathspace": 0.39}


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
        part = _leaf(element, kind, variant) if kind in _LEAVES else _NOTHING if kind in _IGNORED else _branch(element, kind, parts)
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
    return Part(_join([symbols.of(char) for char in " ".join(text.split())]), "row")


# Leaves


def _leaf(element: HtmlElement, kind: str, variant: str) -> Part:
    if kind == "mspace":
        return Part(_space(element.get("width") or ""), "atom")
    if kind in ("mprescripts", "none"):
        return Part("", "pre" if kind == "mprescripts" else "none")
    text = " ".join("".join(element.itertext()).replace("\xa0", "\u2002").split(" ")).strip(" \t\r\n")
    if kind == "mglyph":
        text = element.get("alt") or ""
    if kind == "ms":
        return Part(rf"\text{{{(element.get('lquote') or chr(34)) + text + (element.get('rquote') or chr(34))}}}".translate({}), "atom")
    if kind == "mtext":
        return _of_text(text, element, variant)
    text = "".join(text.split())
    if not text:
        return _NOTHING
    if kind == "mo":
        return _operator(text)
    return identifier(text, variant, kind)


def _of_text(text: str, element: HtmlElement, variant: str) -> Part:
    whole = re.sub(r"[\s\u2002]+", " ", "".join(element.itertext()).replace("\xa0", " ")).replace("\u200b", "")
    if not whole.strip():
        return Part(r"\ " if whole else "", "atom" if whole else "empty")
    if len(whole.strip()) == 1 and whole.strip() in symbols.SYMBOLS:
        return Part(symbols.of(whole.strip()), "atom")
    command = {"bold": r"\textbf", "italic": r"\textit", "monospace": r"\texttt"}.get(variant, r"\text")
    return Part(f"{command}{{{whole.translate(_TEXT_ESCAPES)}}}", "atom")


def _space(width: str) -> str:
    match = _LENGTH.match(width)
    em = _SPACES.get(width.removeprefix("negative"), 0.0)
    if width.startswith("negative"):
        em = -em
    elif match:
        unit = {"em": 1.0, "ex": 0.43, "px": 0.0625, "pt": 0.083, "cm": 2.4, "mm": 0.24, "mu": 0.0556}.get(match[2] or "em", 1.0)
        try:
            em = float(match[1]) * unit
        except ValueError:
            return ""
    for least, command in ((1.8, r"\qquad"), (0.9, r"\quad"), (0.4, r"\enspace"), (0.26, r"\;"), (0.2, r"\:"), (0.1, r"\,")):
        if em >= least:
            return command
    return r"\!" if em <= -0.1 else ""


def identifier(text: str, variant: str, kind: str) -> Part:
    """The part of an `mi` or `mn`."""
    if text in symbols.FUNCTIONS:
        return Part("\\" + text, "operator" if "\\" + text in symbols.LIMITS else "atom")
    tex = _join([symbols.of(char) for char in text])
    command = _VARIANTS.get(variant)
    if command and tex:
        if variant in ("bold", "bold-italic") and "\\" in tex:
            command = r"\boldsymbol"
        if variant in ("bold-script", "bold-fraktur"):
            tex = rf"{_VARIANTS[variant[5:]]}{{{tex}}}"
        if tex.startswith((r"\math", r"\boldsymbol")) and variant not in ("bold-script", "bold-fraktur"):
            return Part(tex, "atom")
        if variant == "italic" and len(text) == 1:
            return Part(tex, "atom")
        return Part(f"{command}{{{tex}}}", "atom")
    if kind == "mi" and variant == "normal" and len(text) == 1 and text.isascii() and text.isalpha():
        return Part(rf"\mathrm{{{text}}}", "atom")
    if kind == "mi" and len(text) > 1 and text.isalpha() and text.isascii():
        return Part(rf"\mathrm{{{text}}}", "atom")
    if len(text) > 1 and not text.isascii() and text.isalpha() and tex == text:
        return Part(rf"\text{{{text}}}", "atom")
    return Part(tex, "atom" if tex else "empty")


def _operator(text: str) -> Part:
    if text in _OPEN:
        return Part(_OPEN[text], "open")
    if text in _CLOSE:
        return Part(_CLOSE[text], "close")
    if text in _BARS:
        return Part(_BARS[text], "bar")
    if text in symbols.FUNCTIONS:
        return Part("\\" + text, "operator")
    if len(text) > 1 and text.isalpha() and text.isascii():
        return Part(rf"\operatorname{{{text}}}", "operator")
    tex = _join([symbols.of(char) for char in text])
    if not tex:
        return _NOTHING
    return Part(tex, "operator" if tex in symbols.LIMITS else "atom")


# Rows


def _join(pieces: Sequence[str]) -> str:
    """Pieces one after the other, with a space where a command would run into a letter."""
    out: list[str] = []
    last = ""
    for piece in pieces:
        if not piece:
            continue
        if last and (piece[0].isalpha() and _COMMAND_END.search(last[-40:]) or last[-1] == "\\" and last[-2:] != "\\\\"):
            out.append(" ")
        elif piece[0] == "'" and last.endswith("}") and last[-2:] != "'}" and "^" in last:
            out.append("{}")
        out.append(piece)
        last = piece
    return "".join(out)


def row(parts: Sequence[Part], stretchy: bool = True) -> Part:
    """The part of an inferred row: parts in a line, with the fences around a table or around what is tall."""
    parts = [part for part in parts if part.tex or part.kind == "table"]
    if not parts:
        return _NOTHING
    parts = _fenced_tables(parts)
    if len(parts) == 1:
        return parts[0]
    first, last = parts[0], parts[-1]
    if first.kind in ("open", "bar") and last.kind in ("close", "bar"):
        inner = _join([part.tex for part in parts[1:-1]])
        depth = 0
        for part in parts[:-1]:
            depth += (part.kind == "open") - (part.kind == "close")
            if depth < 0 or (depth == 0 and first.kind == "open"):
                return Part(_join([part.tex for part in parts]), "row")
        if stretchy and _TALL.search(inner):
            return Part(_join([r"\left", first.tex, inner, r"\right", last.tex]).replace(r"\left ", r"\left"), "atom")
        return Part(_join([first.tex, inner, last.tex]), "atom")
    return Part(_join([part.tex for part in parts]), "row")


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
    return Part(_join([r"\left" + (opening or "."), table.tex, r"\right" + (closing or ".")]), "atom")


# Branches


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
    return parts + [_NOTHING] * (count - len(parts))


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
        return Part(f"{{{top}}}/{{{bottom}}}", "row")
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


def _over(base: Part, mark: Part, source: str) -> Part:
    command = _OVER.get(source)
    if command:
        single = len(base.tex) == 1 or _COMMAND_END.fullmatch(base.tex)
        if command == r"\overline" and single:
            command = r"\bar"
        elif not single:
            command = _WIDE.get(command, command)
        return Part(f"{command}{{{base.tex}}}", "atom")
    if base.tex in _ARROWS:
        return Part(f"{_ARROWS[base.tex]}{{{mark.tex}}}", "atom")
    if _takes_limits(base, r"\overbrace"):
        return scripts(base, _NOTHING, mark)
    return Part(rf"\overset{{{mark.tex}}}{{{base.tex}}}", "atom")


def _under(base: Part, mark: Part, source: str) -> Part:
    command = _UNDER.get(source)
    if command:
        return Part(f"{command}{{{base.tex}}}", "atom")
    if base.tex in _ARROWS:
        return Part(f"{_ARROWS[base.tex]}[{mark.tex}]{{}}", "atom")
    if _takes_limits(base, r"\underbrace"):
        return scripts(base, mark, _NOTHING)
    if base.tex.startswith((r"\operatorname{", r"\mathrm{")) and base.kind in ("atom", "operator"):
        named = re.sub(r"\A\\(?:operatorname|mathrm)\{", r"\\operatorname*{", base.tex)
        return scripts(Part(named, "operator"), mark, _NOTHING)
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
        return _NOTHING
    cut = next((index for index, part in enumerate(parts) if part.kind == "pre"), len(parts))
    after, before = parts[1:cut], parts[cut + 1 :]
    tex = ""
    for index in range(0, len(before), 2):
        tex += scripts(_NOTHING, *_arguments(before[index : index + 2], 2)).tex
    tex += _braced(parts[0]) if parts[0].tex else ""
    for index in range(0, len(after), 2):
        tex += ("{}" if index else "") + scripts(_NOTHING, *_arguments(after[index : index + 2], 2)).tex.removeprefix("{}")
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
    left, right = (_BARS.get(fence) or _OPEN.get(fence) or _CLOSE.get(fence) or _join([symbols.of(c) for c in fence]) for fence in (opening, closing))
    if len(pieces) == 1 and pieces[0].kind == "table" and (left or right):
        return table_in(pieces[0], left, right)
    inner = row(pieces).tex if len(pieces) != 1 else pieces[0].tex
    if len(pieces) == 1 and left == "(" and right == ")" and inner.startswith(r"\genfrac{}{}{0pt}{}{"):
        return Part(inner.replace(r"\genfrac{}{}{0pt}{}", r"\binom", 1), "atom")
    if (left or right) and (not left or not right or _TALL.search(inner)):
        return Part(_join([r"\left" + (left or "."), inner, r"\right" + (right or ".")]), "atom")
    return Part(_join([left, inner, right]), "atom" if left else "row")


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
    return Part(" & ".join(part.tex for part in parts[1:]) + (rf" \tag{{{label}}}" if label and "{" not in label else ""), "row")


def _enclosed(element: HtmlElement, parts: list[Part]) -> Part:
    part = row(parts)
    notation = (element.get("notation") or "longdiv").split()
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
    return Part(rf"\phantom{{{part.tex}}}", "atom") if part.tex else _NOTHING


def _first(element: HtmlElement, parts: list[Part]) -> Part:
    return parts[0] if parts else _NOTHING


def _action(element: HtmlElement, parts: list[Part]) -> Part:
    selection = element.get("selection") or "1"
    index = int(selection) - 1 if selection.isdigit() and len(selection) < 6 else 0
    return parts[index] if index < len(parts) else _first(element, parts)


_BUILDERS: dict[str, Callable[[HtmlElement, list[Part]], Part]] = {
    "mfrac": _fraction,
    "msqrt": lambda element, parts: Part(rf"\sqrt{{{row(parts).tex}}}", "atom"),
    "mroot": _root,
    "msub": lambda element, parts: scripts(*_arguments(parts, 2), _NOTHING),
    "msup": lambda element, parts: scripts(*_arguments(parts, 2)[:1], _NOTHING, _arguments(parts, 2)[1]),
    "msubsup": lambda element, parts: scripts(*_arguments(parts, 3)),
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


def of_rendering(container: HtmlElement) -> str:
    """Return the LaTeX of a MathJax 3 rendering without MathML, empty if it cannot be told."""
    return ""
