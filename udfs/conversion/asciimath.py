"""AsciiMath as LaTeX (the grammar of asciimath.org, without colours)."""

from __future__ import annotations

import re

_MAX_CHARS = 20_000
_MAX_DEPTH = 60

_TABLE = r"""
* \cdot ** * *** \star // / \\ \backslash xx \times -: \div @ \circ o+ \oplus ox \otimes o. \odot ^^
\wedge ^^^ \bigwedge vv \vee vvv \bigvee nn \cap nnn \bigcap uu \cup uuu \bigcup != \ne <= \le >= \ge lt <
gt > -< \prec >- \succ !in \notin sub \subset sup \supset sube \subseteq supe \supseteq -= \equiv ~= \cong
~~ \approx ~ \sim prop \propto not \neg => \Rightarrow <=> \Leftrightarrow AA \forall EE \exists _|_ \bot
TT \top |-- \vdash |== \models del \partial grad \nabla +- \pm -+ \mp O/ \emptyset oo \infty ... \ldots :.
\therefore :' \because /_ \angle CC \mathbb{C} NN \mathbb{N} QQ \mathbb{Q} RR \mathbb{R} ZZ \mathbb{Z}
uarr \uparrow darr \downarrow rarr \rightarrow -> \to larr \leftarrow harr \leftrightarrow rArr
\Rightarrow lArr \Leftarrow hArr \Leftrightarrow |-> \mapsto mod \bmod lcm \operatorname{lcm} dx dx dy dy
dz dz dt dt
"""
_NAMED = """
setminus sum prod le ge ne in int oint aleph cdots ldots vdots ddots quad diamond square % # & $ alpha
beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi pi rho sigma tau
upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega sin cos tan sec csc
cot arcsin arccos arctan sinh cosh tanh coth log ln det dim gcd lim min max exp
"""
_fields = _TABLE.split()
_SYMBOLS = {
    **dict(zip(_fields[::2], _fields[1::2], strict=True)),
    **{name: "\\" + name for name in _NAMED.split()},
    **{word: rf"\text{{ {word} }}" for word in ("and", "or", "if")},
}
_UNARY = {
    "sqrt": r"\sqrt",
    "hat": r"\hat",
    "bar": r"\overline",
    "overline": r"\overline",
    "ul": r"\underline",
    "underline": r"\underline",
    "vec": r"\vec",
    "dot": r"\dot",
    "ddot": r"\ddot",
    "tilde": r"\tilde",
    "bb": r"\mathbf",
    "mathbf": r"\mathbf",
    "bbb": r"\mathbb",
    "mathbb": r"\mathbb",
    "cc": r"\mathcal",
    "mathcal": r"\mathcal",
    "tt": r"\mathtt",
    "fr": r"\mathfrak",
    "sf": r"\mathsf",
    "cancel": r"\cancel",
    "ubrace": r"\underbrace",
    "obrace": r"\overbrace",
}
_FUNCTIONS = frozenset(
    "sin cos tan sec csc cot arcsin arccos arctan sinh cosh tanh coth log ln det dim gcd exp".split()
)
_AROUND = {
    "abs": ("|", "|"),
    "norm": (r"\|", r"\|"),
    "floor": (r"\lfloor", r"\rfloor"),
    "ceil": (r"\lceil", r"\rceil"),
}
_BINARY = {
    "frac": r"\frac",
    "stackrel": r"\overset",
    "overset": r"\overset",
    "underset": r"\underset",
    "root": r"\sqrt",
}
_LEFT = {
    "(": "(",
    "[": "[",
    "{": r"\{",
    "(:": r"\langle",
    "{:": ".",
    "<<": r"\langle",
    "|__": r"\lfloor",
    "|~": r"\lceil",
}
_RIGHT = {
    ")": ")",
    "]": "]",
    "}": r"\}",
    ":)": r"\rangle",
    ":}": ".",
    ">>": r"\rangle",
    "__|": r"\rfloor",
    "~|": r"\rceil",
}
_NAMES = sorted(
    {*_SYMBOLS, *_UNARY, *_AROUND, *_BINARY, *_LEFT, *_RIGHT, "^", "_", "/", ","}, key=lambda s: (-len(s), s)
)
_TOKEN = re.compile(
    r'\s+|"([^"]*)"|(?:text|mbox)\(([^()]*)\)|(?:text|mbox)\{([^{}]*)\}|(\d+(?:\.\d+)?)|'
    + "|".join(map(re.escape, _NAMES))
    + "|.",
    re.DOTALL,
)


def latex(source: str) -> str:
    """Return the LaTeX of an AsciiMath formula; what nests too deeply comes back as it is."""
    source = source.strip().strip("`").strip()
    if len(source) > _MAX_CHARS:
        return source
    tokens: list[str] = []
    for match in _TOKEN.finditer(source):
        text = match[1] or match[2] or match[3]
        if text is not None:
            tokens.append(rf"\text{{{text}}}")
        elif not match[0].isspace():
            tokens.append(match[0])
    try:
        return _Parser(tokens).expression(0)[0]
    except RecursionError:
        return source


class _Parser:
    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.position = 0

    def peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def next(self) -> str:
        token = self.peek()
        self.position += 1
        return token

    def expression(self, depth: int, inside: bool = False) -> tuple[str, list[list[str]] | None]:
        """The terms up to a right bracket; beside it the rows if they are those of a matrix."""
        if depth > _MAX_DEPTH:
            raise RecursionError
        terms: list[str] = []
        rows: list[list[str]] = []
        while token := self.peek():
            if inside and token in _RIGHT:
                break
            start = self.position
            term = self.intermediate(depth)
            if self.peek() == "/":
                self.next()
                term = rf"\frac{{{_bare(term)}}}{{{_bare(self.intermediate(depth))}}}"
            if inside and token in ("[", "("):
                cells = self.cells(start)
                if cells:
                    rows.append(cells)
            terms.append(term)
        commas = sum(term == "," for term in terms)
        if (
            rows
            and len(rows) == commas + 1
            and len(terms) == 2 * len(rows) - 1
            and len({len(row) for row in rows}) == 1
            and (len(rows) > 1 or len(rows[0]) > 1)
        ):
            return _spaced(terms), rows
        return _spaced(terms), None

    def cells(self, start: int) -> list[str]:
        """The cells of the bracket that has just been read."""
        end = self.position
        if end > len(self.tokens) or self.tokens[end - 1] not in _RIGHT or end - start > 400:
            return []
        cells: list[list[str]] = [[]]
        level = 0
        for token in self.tokens[start + 1 : end - 1]:
            level += (token in _LEFT) - (token in _RIGHT)
            if level < 0:
                return []
            if token == "," and level == 0:
                cells.append([])
            else:
                cells[-1].append(token)
        if level or any(token in _LEFT and token != "(" for cell in cells for token in cell):
            return []
        return [_Parser(cell).expression(_MAX_DEPTH // 2)[0] for cell in cells]

    def intermediate(self, depth: int) -> str:
        term = self.simple(depth)
        scripts = ""
        for mark in ("_", "^"):
            if self.peek() == mark:
                self.next()
                scripts += f"{mark}{{{_bare(self.simple(depth))}}}"
        return term + scripts

    def simple(self, depth: int) -> str:
        if depth > _MAX_DEPTH:
            raise RecursionError
        token = self.next()
        if token in _LEFT:
            return self.bracket(token, depth)
        if token == "|":
            return "|"
        if token in _AROUND:
            left, right = _AROUND[token]
            return _spaced([rf"\left{left}", _bare(self.simple(depth + 1)), rf"\right{right}"])
        if token in _UNARY:
            return f"{_UNARY[token]}{{{_bare(self.simple(depth + 1))}}}"
        if token in _BINARY:
            first, second = _bare(self.simple(depth + 1)), _bare(self.simple(depth + 1))
            return rf"\sqrt[{first}]{{{second}}}" if token == "root" else f"{_BINARY[token]}{{{first}}}{{{second}}}"
        if token in _FUNCTIONS and self.peek() in ("(", "["):
            return _spaced([_SYMBOLS[token], self.simple(depth + 1)])
        if token in ("^", "_"):
            return ""
        return _SYMBOLS.get(token) or (token if token not in _RIGHT else _RIGHT[token].removeprefix("."))

    def bracket(self, token: str, depth: int) -> str:
        inner, rows = self.expression(depth + 1, inside=True)
        right = _RIGHT.get(self.next(), ".")
        left = _LEFT[token]
        if rows is not None:
            inner = r"\begin{matrix} " + r" \\ ".join(" & ".join(row) for row in rows) + r" \end{matrix}"
        if left == "." and right == ".":
            return f"{{{inner}}}"
        tall = rows is not None or "\\frac" in inner or "." in (left, right)
        return _spaced([rf"\left{left}", inner, rf"\right{right}"] if tall else [left, inner, right])


def _bare(term: str) -> str:
    """An argument without the brackets that only hold it together."""
    for left, right in (("(", ")"), (r"\left(", r"\right)"), ("[", "]"), (r"\{", r"\}"), ("{", "}")):
        if term.startswith(left) and term.endswith(right) and len(term) >= len(left) + len(right):
            inner = term[len(left) : -len(right)]
            if _balanced(inner, left[-1], right[-1]):
                return inner.strip()
    return term


def _balanced(text: str, left: str, right: str) -> bool:
    level = 0
    for char in text:
        level += (char == left) - (char == right)
        if level < 0:
            return False
    return level == 0


def _spaced(terms: list[str]) -> str:
    out = ""
    for term in terms:
        if out and term and term[0].isalpha() and re.search(r"\\[A-Za-z]+\Z", out[-30:]):
            out += " "
        out += term
    return out
