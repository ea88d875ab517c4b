"""The leaves of MathML (identifiers, numbers, operators, text, space) as LaTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from lxml.html import HtmlElement

from udfs.conversion import symbols


class Part(NamedTuple):
    """LaTeX of an element, and what it is for those around it.

    Kinds: atom, row, script, open, close, bar, table, operator, empty, none (`none`), pre (`mprescripts`).
    """

    tex: str
    kind: str


NOTHING = Part("", "empty")
OPEN = {
    "(": "(",
    "[": "[",
    "{": r"\{",
    "⟨": r"\langle",
    "〈": r"\langle",
    "\u2329": r"\langle",
    "⌊": r"\lfloor",
    "⌈": r"\lceil",
}
CLOSE = {
    ")": ")",
    "]": "]",
    "}": r"\}",
    "⟩": r"\rangle",
    "〉": r"\rangle",
    "\u232a": r"\rangle",
    "⌋": r"\rfloor",
    "⌉": r"\rceil",
}
BARS = {"|": "|", "∣": "|", "‖": r"\|", "∥": r"\|", "||": r"\|"}
COMMAND_END = re.compile(r"\\[A-Za-z]+\Z")
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
_TEXT_ESCAPES = str.maketrans(
    {
        **{c: "\\" + c for c in "#$%&_{}"},
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "\\": r"\textbackslash{}",
    }
)
_LENGTH = re.compile(r"\s*(-?[\d.]+)\s*(em|ex|px|pt|cm|mm|mu)?")
_SPACES = {
    "thickmathspace": 0.28,
    "mediummathspace": 0.22,
    "thinmathspace": 0.17,
    "verythickmathspace": 0.33,
    "veryverythickmathspace": 0.39,
}


def leaf(element: HtmlElement, kind: str, variant: str) -> Part:
    """Return the part of a leaf element of a MathML name, with the `mathvariant` that holds for it."""
    if kind == "mspace":
        return Part(_space(element.get("width") or ""), "atom")
    if kind in ("mprescripts", "none"):
        return Part("", "pre" if kind == "mprescripts" else "none")
    text = " ".join("".join(element.itertext()).replace("\xa0", "\u2002").split(" ")).strip(" \t\r\n")
    if kind == "mglyph":
        text = element.get("alt") or ""
    if kind == "ms":
        return Part(
            rf"\text{{{(element.get('lquote') or chr(34)) + text + (element.get('rquote') or chr(34))}}}".translate({}),
            "atom",
        )
    if kind == "mtext":
        return _of_text(text, element, variant)
    text = "".join(text.split())
    if not text:
        return NOTHING
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
    if (
        command == r"\text"
        and variant in ("fraktur", "double-struck", "script")
        and whole.isalpha()
        and whole.isascii()
    ):
        command = _VARIANTS[variant]
    return Part(f"{command}{{{whole.translate(_TEXT_ESCAPES)}}}", "atom")


def _space(width: str) -> str:
    match = _LENGTH.match(width)
    em = _SPACES.get(width.removeprefix("negative"), 0.0)
    if width.startswith("negative"):
        em = -em
    elif match:
        unit = {"em": 1.0, "ex": 0.43, "px": 0.0625, "pt": 0.083, "cm": 2.4, "mm": 0.24, "mu": 0.0556}.get(
            match[2] or "em", 1.0
        )
        try:
            em = float(match[1]) * unit
        except ValueError:
            return ""
    for least, command in (
        (1.8, r"\qquad"),
        (0.9, r"\quad"),
        (0.4, r"\enspace"),
        (0.26, r"\;"),
        (0.2, r"\:"),
        (0.1, r"\,"),
    ):
        if em >= least:
            return command
    return r"\!" if em <= -0.1 else ""


def identifier(text: str, variant: str, kind: str) -> Part:
    """The part of an `mi` or `mn`."""
    if text in symbols.FUNCTIONS:
        return Part("\\" + text, "operator" if "\\" + text in symbols.LIMITS else "atom")
    tex = join([symbols.of(char) for char in text])
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
    if text in OPEN:
        return Part(OPEN[text], "open")
    if text in CLOSE:
        return Part(CLOSE[text], "close")
    if text in BARS:
        return Part(BARS[text], "bar")
    if text in symbols.FUNCTIONS:
        return Part("\\" + text, "operator")
    if len(text) > 1 and text.isalpha() and text.isascii():
        return Part(rf"\operatorname{{{text}}}", "operator")
    tex = join([symbols.of(char) for char in text])
    if not tex:
        return NOTHING
    return Part(tex, "operator" if tex in symbols.LIMITS else "atom")


def join(pieces: Sequence[str]) -> str:
    """Return pieces one after the other, with a space where a command would run into a letter."""
    out: list[str] = []
    last = ""
    for piece in pieces:
        if not piece:
            continue
        if piece[0].isalpha() and COMMAND_END.search(last[-40:]):
            out.append(" ")
        elif piece[0] == "'" and last.endswith("}") and last[-2:] != "'}" and "^" in last:
            out.append("{}")
        out.append(piece)
        last = piece
    return "".join(out)
