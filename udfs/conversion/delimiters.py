"""Formulas in text: TeX between dollars, brackets and in environments."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Formula:
    """One formula. Empty `latex`: a sibling has the formula and the element only shows it again, it is to be dropped.

    `source` says what it was read from: annotation, alttext, mathml, script, data, image, asciimath or text.
    """

    latex: str
    display: bool
    source: str


COMMAND = re.compile(
    r"\\(?:frac|dfrac|tfrac|sqrt|sum|int|prod|lim|alpha|beta|gamma|delta|epsilon|varepsilon|zeta|eta|theta|iota|kappa|"
    r"lambda|mu|nu|xi|pi|rho|sigma|tau|upsilon|phi|varphi|chi|psi|omega|Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Phi|Psi|"
    r"Omega|infty|partial|nabla|cdot|cdots|ldots|dots|times|div|pm|mp|leq?|geq?|neq?|approx|equiv|sim|in|notin|subset|"
    r"subseteq|cup|cap|to|mapsto|rightarrow|leftarrow|Rightarrow|forall|exists|left|right|begin|text|textstyle|mathrm|mathbf|"
    r"mathbb|mathcal|operatorname|displaystyle|vec|hat|bar|tilde|overline|underline|binom|log|ln|exp|sin|cos|tan|max|"
    r"min|quad|langle|rangle|lfloor|lceil|ce|hbar|ell|Re|Im|mid|circ|angle|prime|boldsymbol|dot|ddot|det)(?![a-zA-Z])"
)
_CONTROLS = str.maketrans({"\xa0": " ", "\u200b": None, "\ufeff": None, "\xad": None, "\r": None})
_BREAK = re.compile(r"(?<!\\)%[^\n]*\n\s*|<br ?/?>")  # a comment ends with its line
_LAST_BREAK = re.compile(r"(?<!\\)(?:\\\\\s*)+\Z")
_BLANK_LINES = re.compile(r"\n\s*\n")


def clean(tex: str) -> str:
    """TeX on lines without blank ones, which would end a formula in Markdown, and without delimiters around it."""
    tex = _BLANK_LINES.sub("\n", _BREAK.sub("", tex.translate(_CONTROLS))).strip()
    tex = _LAST_BREAK.sub("", tex).rstrip()  # it breaks no line, and would escape the dollar that follows
    for opening, closing in (("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"), ("$", "$")):
        if len(tex) > 2 * len(opening) and tex.startswith(opening) and tex.endswith(closing):
            inner = tex[len(opening) : -len(closing)]
            if opening[0] != "$" or "$" not in inner:
                return inner.strip()
    return tex


_ENVIRONMENTS = frozenset(
    "equation align gather multline eqnarray array matrix pmatrix bmatrix Bmatrix vmatrix Vmatrix smallmatrix cases "
    "dcases displaymath math split aligned alignedat gathered alignat flalign subequations CD".split()
)
_OPENING = re.compile(r"\\\\|\\\$|\\\(|\\\[|\\begin\{([A-Za-z]+\*?)\}|\$\$|\$|\[(i?tex|latex|i?math)\]", re.IGNORECASE)
_MAX_CHARS = 20_000
_WORDS = re.compile(r"[^\W\d_]{3,}[ ,.;:]+[^\W\d_]{3,}|[^\W\d_]{4,}")
_NAMED = re.compile(
    r"\\(?:begin|end)\{[^{}]*\}|\\(?:text|mathrm|operatorname|mbox|textrm|textbf|mathbf|label|tag|ce)\*?\s*\{[^{}]*\}|\\[A-Za-z]+"
)
_FUNCTIONS = re.compile(
    r"(?<![a-z])(?:arcsin|arccos|arctan|sinh|cosh|tanh|sin|cos|tan|cot|log|exp|max|min|lim|mod|gcd|deg|det|dim|ker)(?![a-z])"
)
_MONEY = re.compile(r"[\d,.]+\s*(?:[-–/]\s*|[^\W\d_]{2,}|\(|[kKmM]\b)")
_STRONG = re.compile(r"\\[A-Za-z]+|\\[,;!{}|]|[\^_=]|[<>≤≥∈→]")
_DEFINITIONS = re.compile(
    r"(?:\\(?:re)?newcommand\*?\s*\{?\\\w+\}?\s*(?:\[\d\])*\s*\{(?:[^{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})*\}\s*)+\Z"
)
_BEGIN = re.compile(r"\\begin\{([^{}]*)\}")
_ANY_WORD = re.compile(r"[^\W\d_]{3,}|[^\W\d_]{2,} [^\W\d_]{2,}")
_CAPITALS = re.compile(r"[A-Z]{1,5}\Z")


def split(text: str) -> list[str | Formula]:
    r"""Split a text at its formulas: `$…$`, `$$…$$`, `\(…\)`, `\[…\]`, `\begin{align}…`, `[tex]…[/tex]`.

    Texts and formulas in their order; texts are unchanged. An amount of money, a shell variable are no formula.
    Definitions of macros between delimiters show nothing and are dropped.
    """
    if "$" not in text and "\\" not in text and "[" not in text:
        return [text]
    parts: list[str | Formula] = []
    closers: dict[str, int] = {}
    done = position = 0
    while (match := _OPENING.search(text, position)) is not None:
        position = match.end()
        found = _delimited(text, match, closers)
        if found is None:
            continue
        if match.start() > done:
            parts.append(text[done : match.start()])
        if found[0].latex:
            parts.append(found[0])
        done = position = found[1]
    if (
        _is_bare(text)
        and all(match[0][:6] == "\\begin" or match[0] == "\\\\" for match in _OPENING.finditer(text))
        and len(parts) != 1
    ):
        return [Formula(clean(text), len(parts) > 1, "text")]
    if done < len(text):
        parts.append(text[done:])
    return parts or [""]


def _is_bare(text: str) -> bool:
    """Whether a whole text is TeX that lost its delimiters: commands and no words."""
    if len(text) > _MAX_CHARS or COMMAND.search(text) is None or not any(mark in text for mark in "{^_"):
        return False
    if any(name.rstrip("*") not in _ENVIRONMENTS for name in _BEGIN.findall(text)):
        return False
    return _ANY_WORD.search(_FUNCTIONS.sub("", _NAMED.sub(" ", text))) is None


def _delimited(text: str, match: re.Match[str], closers: dict[str, int]) -> tuple[Formula, int] | None:
    """The formula that an opening delimiter begins, and where it ends."""
    opening, start = match[0], match.end()
    if opening in ("\\\\", "\\$"):
        return None
    if opening == "$":
        return _single(text, start, closers)
    if opening == "$$":
        return _double(text, start, closers)
    if match[1]:
        return _environment(text, match, closers)
    closing = {"\\(": "\\)", "\\[": "\\]"}.get(opening) or f"[/{opening[1:]}"
    end = _find(text, closing, start, closers)
    tex = clean(text[start:end]) if 0 <= end - start <= _MAX_CHARS else ""
    if not tex:
        return None
    if _DEFINITIONS.match(tex):
        return Formula("", False, "text"), end + len(closing)
    display = opening == "\\[" or opening.lower() in ("[tex]", "[math]")
    return Formula(tex, display, "text"), end + len(closing)


def _find(text: str, closing: str, start: int, closers: dict[str, int]) -> int:
    """Where a closing delimiter next is, -1 if nowhere; remembered, since each opening of many may ask."""
    end = closers.get(closing, 0)
    if 0 <= end < start:
        end = closers[closing] = text.find(closing, start)
    return end


def _single(text: str, start: int, closers: dict[str, int]) -> tuple[Formula, int] | None:
    end = _find(text, "$", start, closers)
    while end > start and text[end - 1] == "\\" and end - start < _MAX_CHARS:
        end = _find(text, "$", end + 1, closers)
    if end <= start or end - start > _MAX_CHARS:
        return None
    content = text[start:end]
    before, after = text[start - 2 : start - 1] if start > 1 else "", text[end + 1 : end + 2]
    if content.startswith("latex "):
        content = content[6:].strip()
    if "\n\n" in content or before == "$" or after == "$" or after.isdigit() or not _is_math(content):
        return None
    if (before.isalnum() or content[0].isspace() or content[-1].isspace()) and not _STRONG.search(content):
        return None
    return Formula(clean(content), False, "text"), end + 1


def _double(text: str, start: int, closers: dict[str, int]) -> tuple[Formula, int] | None:
    end = _find(text, "$$", start, closers)
    content = text[start:end] if 0 < end - start <= _MAX_CHARS else ""
    tex = clean(content)
    if not tex or tex[0] == "$" or text[start - 3 : start - 2] == "$" or text[end + 2 : end + 3] == "$":
        return None
    if not _STRONG.search(tex) and (not any(map(str.isalnum, tex)) or not _is_math(tex)):
        return None
    return Formula(tex, True, "text"), end + 2


def _environment(text: str, match: re.Match[str], closers: dict[str, int]) -> tuple[Formula, int] | None:
    name = match[1]
    if name.rstrip("*") not in _ENVIRONMENTS:
        return None
    closing = f"\\end{{{name}}}"
    end = _find(text, closing, match.end(), closers)
    if not 0 <= end - match.end() <= _MAX_CHARS:
        return None
    end += len(closing)
    return Formula(clean(text[match.start() : end]), True, "text"), end


def _is_math(content: str) -> bool:
    """Whether what stands between two dollars is a formula: no amount, no words, no variable of a shell."""
    if not content.strip():
        return False
    plain = _FUNCTIONS.sub("", _NAMED.sub(" ", content))
    if _MONEY.match(content) and re.search(r"[^\W\d_]{2,}", plain):
        return False
    if _CAPITALS.match(content):
        return True
    words = _WORDS.search(plain)
    if words is None:
        return any(map(str.isalnum, content)) or "\\" in content
    # A word or two are names in a formula that is one by its signs; a sentence is none.
    return _STRONG.search(content) is not None and len(_WORDS.findall(plain)) <= max(2, len(_STRONG.findall(content)))
