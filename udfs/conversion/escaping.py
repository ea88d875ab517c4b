"""Escaping for Markdown: a backslash only where a character would be read as markup (CommonMark, GFM, TeX math)."""

from __future__ import annotations

import re

_SPECIAL = re.compile(r"[\\`*_\[\]<&$~]")
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
_TAG = re.compile(r"<[a-zA-Z/!?]")
_LINE_START = re.compile(
    r"(?P<mark>#{1,6}(?=\s|$)|>|[-+*](?=\s|$)|(?:[-_=*][ \t]*){2,}$|~~~|\|(?=.*\|)|\[[^\]]*\]:|:(?=\s)|\[[ xX]\](?=\s))"
    r"|(?P<number>\d{1,9})(?=[.)](?:\s|$))"
)
_FORMULA = re.compile(r"\$\$|(?<![\\$])\$(?!\s)[^$\n]+?(?<!\s)\$(?!\d)")


class Escape:
    """How the texts of one block are escaped; what all of them hold together decides what could be a pair."""

    __slots__ = ("dollars", "stars", "tildes", "underscores")

    def __init__(self, text: str, has_marks: bool, has_formulas: bool) -> None:
        self.stars = has_marks or text.count("*") > 1
        self.underscores = text.count("_") > 1
        self.tildes = has_marks or text.count("~") > 1
        self.dollars = "$" in text and (has_formulas or _FORMULA.search(text) is not None)

    def __call__(self, text: str, before: str = "", after: str = "", in_link: bool = False) -> str:
        """Escape a text that stands between two characters (none: the edge of a line)."""
        if _SPECIAL.search(text) is None:
            return text
        out: list[str] = []
        done = 0
        last = len(text) - 1
        for match in _SPECIAL.finditer(text):
            place = match.start()
            left = text[place - 1] if place else before
            right = text[place + 1] if place < last else after
            if self._is_markup(match[0], text, place, left, right, in_link):
                out += text[done:place], "\\"
                done = place
        out.append(text[done:])
        return "".join(out)

    def _is_markup(self, mark: str, text: str, place: int, left: str, right: str, in_link: bool) -> bool:
        if mark == "*":
            return self.stars and not ((not left or left.isspace()) and (not right or right.isspace()))
        if mark == "_":
            inside = left.isalnum() and right.isalnum()
            return self.underscores and not inside and not (_is_edge(left) and _is_edge(right))
        if mark == "\\":
            return right in _PUNCTUATION
        if mark == "&":
            return _ENTITY.match(text, place) is not None
        if mark == "<":
            return _TAG.match(text, place) is not None or (place + 1 == len(text) and not _is_edge(right))
        if mark == "$":
            return self.dollars
        if mark == "~":
            sides = (left, right)
            return self.tildes and ("~" in sides or "*" in sides or not (_is_edge(left) or _is_edge(right)))
        if mark == "`":
            return True
        if mark == "[":
            return in_link
        return in_link or right in ("(", "[") or (right == "" and after_is_link(text, place))


def after_is_link(text: str, place: int) -> bool:
    """Whether a bracket at the very end of a text closes one of the same text, so that what follows may complete it."""
    return "[" in text[:place]


def _is_edge(character: str) -> bool:
    return not character or character.isspace()


def line_start(line: str) -> str:
    """Escape what would begin a heading, a list, a quote or a rule at the start of a line."""
    match = _LINE_START.match(line)
    if match is None:
        return line
    if match["number"]:
        return f"{match['number']}\\{line[match.end() :]}"
    return "\\" + line


def code_span(text: str) -> str:
    """Return inline code with delimiters longer than any run of backticks in it."""
    text = text.replace("\n", " ")
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1 if longest else 1)
    pad = " " if text[:1] == "`" or text[-1:] == "`" or (text[:1] == text[-1:] == " " and text.strip()) else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def code_block(text: str, language: str) -> str:
    """Return a fenced code block whose fence is longer than any in it."""
    longest = max((len(run) for run in re.findall("^ *(`{3,})", text, re.MULTILINE)), default=0)
    fence = "`" * max(3, longest + 1)
    info = re.sub(r"[\s`]+", "", language)
    return f"{fence}{info}\n{text}\n{fence}"


_UNSAFE = re.compile(r"[\s\x00-\x1f\\]")


def destination(url: str) -> str:
    """Return a link's destination: blanks percent-encoded, parentheses that do not balance escaped."""
    url = _UNSAFE.sub(
        lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "replace")), url.strip()
    )
    depth = 0
    for character in url:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            break
    if depth:
        url = url.replace("(", "\\(").replace(")", "\\)")
    return "\\" + url if url.startswith("<") else url
