"""Formulas on a page, as LaTeX: of MathML, MathJax, KaTeX, images, data attributes, and of delimiters in text."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote_plus, urlsplit

import lxml.etree
import lxml.html
from lxml.html import HtmlElement

from udfs import asciimath, mathml


@dataclass(frozen=True)
class Formula:
    """One formula. Empty `latex`: a sibling has the formula and the element only shows it again, it is to be dropped.

    `source` says what it was read from: annotation, alttext, mathml, script, data, image, asciimath or text.
    """

    latex: str
    display: bool
    source: str


_TEX_ENCODINGS = frozenset(("application/x-tex", "application/x-latex", "tex", "latex", "text/x-tex", "text/x-latex"))
_RENDERED = re.compile(
    r"(?<![\w-])(katex|katex-display|katex-error|MathJax|MathJax_Display|MathJax_SVG|MathJax_SVG_Display|MathJax_CHTML|"
    r"MathJax_CHTML_Display|MathJax_MathML|MathJax_PHTML|MathJax_Preview|mjx-chtml|MJXc-display|mwe-math-element|"
    r"MJX_Assistive_MathML|MathRow|math|math-inline|math-display|arithmatex|tex|latex|asciimath|AM|tex2jax_process|"
    r"mathjax-latex|mathquill-embedded-latex|ql-formula)(?![\w-])"
)
_JAX = re.compile(
    r"(?<![\w-])(?:MathJax|MathJax_Display|MathJax_SVG|MathJax_SVG_Display|MathJax_CHTML|MathJax_CHTML_Display|"
    r"MathJax_MathML|MathJax_PHTML|mjx-chtml|MJXc-display)(?![\w-])"
)
_DISPLAY = re.compile(r"display|block", re.IGNORECASE)
_DATA = ("data-tex", "data-latex", "data-math", "data-formula", "data-katex", "data-equation", "data-mathml", "data-expr")
_COMMAND = re.compile(
    r"\\(?:frac|dfrac|tfrac|sqrt|sum|int|prod|lim|alpha|beta|gamma|delta|epsilon|varepsilon|zeta|eta|theta|iota|kappa|"
    r"lambda|mu|nu|xi|pi|rho|sigma|tau|upsilon|phi|varphi|chi|psi|omega|Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Phi|Psi|"
    r"Omega|infty|partial|nabla|cdot|cdots|ldots|dots|times|div|pm|mp|leq?|geq?|neq?|approx|equiv|sim|in|notin|subset|"
    r"subseteq|cup|cap|to|mapsto|rightarrow|leftarrow|Rightarrow|forall|exists|left|right|begin|text|textstyle|mathrm|mathbf|"
    r"mathbb|mathcal|operatorname|displaystyle|vec|hat|bar|tilde|overline|underline|binom|log|ln|exp|sin|cos|tan|max|"
    r"min|quad|langle|rangle|lfloor|lceil|ce|hbar|ell|Re|Im|mid|circ|angle|prime|boldsymbol|dot|ddot|det)(?![a-zA-Z])"
)
_FORMULA_CLASS = re.compile(
    r"(?<![\w-])(?:latex|tex|math|mathtex|mimetex|formula|equation|ee_img|tr_noresize|mwe-math-[\w-]+|texrender|"
    r"latex-image|math-image|inlineformula|wp-latex)(?![\w-])",
    re.IGNORECASE,
)
_RENDERER = re.compile(
    r"(?:latex\.php|codecogs\.com/\w+\.(?:latex|image|download)|mathtex\.cgi|mimetex\.cgi|/latex\.cgi|/render/math|"
    r"[?&]cht=tx|l\.wordpress\.com/latex|/tex\.php|equation\?tex=)",
    re.IGNORECASE,
)
_QUERY_KEY = re.compile(r"^(?:latex|tex|math|chl|formula|eq|from|f|formdata)=", re.IGNORECASE)
_SIZE = re.compile(r"^(?:\\(?:dpi|bg_|fn_|inline|large|huge|small|LARGE|Large|HUGE|normalsize)[^\\ ]*\s*)+")


def formula(element: HtmlElement) -> Formula | None:
    """Return the formula that an element is or renders, None if it is not exactly one.

    To be asked from the outside in: a rendering's wrapper answers for all that is in it.
    """
    tag = element.tag
    if tag == "math" or (isinstance(tag, str) and tag.endswith(":math")):
        return _of_mathml(element, False)
    if tag == "img":
        return _of_image(element)
    if tag == "script":
        return _of_script(element)
    attributes = element.attrib
    if not attributes and tag != "asciimath":
        return None
    if tag in ("mjx-container", "mjx-assistive-mml"):
        return _of_container(element)
    name = attributes.get("class")
    if name:
        match = _RENDERED.search(name)
        if match:
            found = _of_rendering(element, str(name))
            if found is not None:
                return found
    if tag == "asciimath":
        return Formula(asciimath.latex(_text(element)), False, "asciimath")
    for key in _DATA:
        value = attributes.get(key)
        if value:
            return _of_data(element, str(value), str(name or ""))
    if tag in ("code", "pre") and attributes.get("data-math-style"):
        return Formula(_clean(_text(element)), attributes.get("data-math-style") == "display", "data")
    return None


def _of_mathml(math: HtmlElement, display: bool) -> Formula:
    display = display or math.get("display") == "block" or math.get("mode") == "display"
    tex = _annotation(math)
    if tex:
        return Formula(tex, display, "annotation")
    alttext = math.get("alttext")
    if alttext and ("ltx_" in (math.get("class") or "") or _is_tex(alttext)):
        tex = _clean(alttext)
        if tex:
            return Formula(tex, display, "alttext")
    return Formula(_clean(mathml.latex(math)), display, "mathml")


def _annotation(math: HtmlElement) -> str:
    """The TeX of the whole formula; an annotation deeper in it is one of a part."""
    node = math
    for _ in range(6):
        children = [child for child in node if isinstance(child.tag, str)]
        if not children:
            return ""
        for child in children:
            if mathml.name(child) == "annotation" and (child.get("encoding") or "").lower() in _TEX_ENCODINGS:
                return _clean(_text(child))
        if mathml.name(children[0]) not in ("semantics", "mrow", "mstyle") or (
            len(children) > 1 and mathml.name(node) != "semantics"
        ):
            return ""
        node = children[0]
    return ""


def _is_tex(text: str) -> bool:
    """Whether a text for a formula is TeX and not words: alttext may hold how it is read aloud."""
    return "\\" in text or re.search(r"[A-Za-z]{2,}[ -][A-Za-z]{2,}", text) is None


def _of_script(script: HtmlElement) -> Formula | None:
    kind = (script.get("type") or "").lower()
    if not kind.startswith("math/"):
        return None
    display = "mode=display" in kind.replace(" ", "")
    source = script.text or ""
    if kind.startswith("math/mml"):
        return _of_source(source, display)
    if kind.startswith("math/asciimath"):
        return Formula(asciimath.latex(source), display, "asciimath")
    source = source.replace("% <![CDATA[", "").replace("%]]>", "").replace("<![CDATA[", "").replace("]]>", "")
    return Formula(_clean(html.unescape(source)), display, "script")


def _of_source(source: str, display: bool) -> Formula | None:
    """The formula of MathML in a string."""
    if "<" not in source or len(source) > 1_000_000:
        return None
    try:
        root = lxml.html.fragment_fromstring(source, create_parent="div")
    except (lxml.etree.LxmlError, ValueError, AssertionError):
        return None
    math = _first(root, "math")
    return _of_mathml(math, display) if math is not None else None


def _first(element: HtmlElement, name: str) -> HtmlElement | None:
    """The first element of a MathML name below an element, whatever its prefix."""
    found = next(element.iter(name), None)
    if found is None and any(":" in tag for tag in _tags(element)):
        return next((child for child in element.iter() if mathml.name(child) == name), None)
    return found


def _tags(element: HtmlElement) -> Iterator[str]:
    return (child.tag for child in element.iter() if isinstance(child.tag, str))


def _of_container(container: HtmlElement) -> Formula | None:
    """MathJax 3 and 4: the MathML for screen readers, the TeX in data-latex, or the rendering itself."""
    display = container.get("display") in ("true", "block")
    for child in container.iter():
        if child.tag == "math":
            return _of_mathml(child, display)
    for child in container.iter():
        tex = child.get("data-latex")
        if tex:
            return Formula(_clean(tex), display, "data")
    tex = mathml.of_rendering(container)
    return Formula(_clean(tex), display, "mathml") if tex else None


def _of_rendering(element: HtmlElement, name: str) -> Formula | None:
    tokens = name.split()
    if "MathJax_Preview" in tokens:
        return _of_preview(element)
    if _JAX.search(name):
        return _of_jax(element, name)
    if "katex" in tokens or "katex-display" in tokens or "mwe-math-element" in tokens or "MJX_Assistive_MathML" in tokens:
        return _of_copies(element, "katex-display" in tokens or "mwe-math-element-block" in tokens)
    if "katex-error" in tokens:
        tex = _clean(_text(element))
        return Formula(tex, False, "text") if tex else None
    if "asciimath" in tokens or "AM" in tokens:
        tex = asciimath.latex(_text(element).strip().strip("`")) if len(element) == 0 else ""
        return Formula(tex, False, "asciimath") if tex else None
    return _of_tex_text(element, tokens)


def _of_tex_text(element: HtmlElement, tokens: list[str]) -> Formula | None:
    """An element whose class says that its text is TeX."""
    if len(element) or element.tag in ("a", "li", "td", "th") or not (element.text or "").strip():
        return None
    text = str(element.text).strip()
    parts = [part for part in split(text) if not isinstance(part, str) or part.strip()]
    shown = "display" in tokens or "math-display" in tokens
    if len(parts) == 1 and isinstance(parts[0], Formula):
        return Formula(parts[0].latex, parts[0].display or shown, "text")
    marked = "math-inline" in tokens or "math-display" in tokens or ("math" in tokens and ("inline" in tokens or shown))
    if len(parts) == 1 and (marked or _COMMAND.search(text)):
        return Formula(_clean(text), shown, "text")
    return None


def _of_copies(element: HtmlElement, display: bool) -> Formula | None:
    """A wrapper of one formula in several forms: MathML and HTML of KaTeX, MathML and image of Wikipedia."""
    maths = [math for math in _some(element, "math", 2)]
    if len(maths) == 1:
        parent = maths[0].getparent()
        return _of_mathml(maths[0], display or "display" in (parent.get("class") or "") or _inside_display(element))
    if maths:
        return None
    for image in _some(element, "img", 1):
        found = _of_image(image)
        if found is not None:
            return Formula(found.latex, found.display or display, "image")
    for note in _some(element, "annotation", 1):
        return Formula(_clean(_text(note)), display or _inside_display(element), "annotation")
    return None


def _some(element: HtmlElement, tag: str, count: int) -> list[HtmlElement]:
    found = []
    for child in element.iter(tag):
        found.append(child)
        if len(found) == count:
            break
    return found


def _inside_display(element: HtmlElement) -> bool:
    parent = element.getparent()
    return parent is not None and "katex-display" in (parent.get("class") or "")


def _of_preview(preview: HtmlElement) -> Formula | None:
    """MathJax 2 shows a preview before a formula; it counts only where nothing follows."""
    following = preview.getnext()
    if following is not None and not (preview.tail or "").strip():
        if _is_script(following) or _JAX.search(following.get("class") or ""):
            return Formula("", False, "text")
    text = _text(preview).strip()
    if not text or len(split(text)) > 1:
        return None
    found = split(text)[0]
    if isinstance(found, Formula):
        return found
    return Formula(_clean(text), False, "text") if _COMMAND.search(text) else None


def _is_script(element: HtmlElement) -> bool:
    return element.tag == "script" and (element.get("type") or "").lower().startswith("math/")


def _of_jax(element: HtmlElement, name: str) -> Formula | None:
    """MathJax 2: the script after a rendering has the source; without it the MathML that goes with the rendering."""
    following = element.getnext()
    if following is not None and _is_script(following) and not (element.tail or "").strip():
        return Formula("", False, "script")
    display = _DISPLAY.search(name) is not None
    for child in element.iter():
        if _is_script(child):
            return _of_script(child)
        source = child.get("data-mathml")
        found = _of_source(source, display) if source else _of_mathml(child, display) if child.tag == "math" else None
        if found is not None:
            return found
    return None


def _of_image(image: HtmlElement) -> Formula | None:
    """An image of a formula: TeX in its alternative text, or in the query of a renderer's address."""
    name, alt = image.get("class") or "", (image.get("alt") or "").strip()
    source = image.get("src") or image.get("data-src") or ""
    renderer = _RENDERER.search(source) is not None
    marked = renderer or _FORMULA_CLASS.search(name) is not None
    display = "display" in name or "block" in name
    if alt:
        parts = split(alt)
        if len(parts) == 1 and isinstance(parts[0], Formula):
            return Formula(parts[0].latex, parts[0].display or display, "image")
        if _is_formula_text(alt, marked):
            return Formula(_clean(alt), display, "image")
    for key in ("data-tex", "data-latex", "data-formula", "data-equation", "data-math"):
        value = image.get(key)
        if value:
            return _of_data(image, value, name)
    if renderer:
        tex = _of_query(source)
        if tex:
            return Formula(tex, False, "image")
    return None


def _is_formula_text(text: str, marked: bool) -> bool:
    if _COMMAND.search(text) and (marked or "{" in text or "^" in text or "_" in text or "=" in text):
        return True
    return marked and not re.search(r"[^\W\d_]{3,}\W+[^\W\d_]{3,}", text) and not re.search(r"\.(?:png|gif|jpe?g|svg)\Z", text)


def _of_query(source: str) -> str:
    try:
        parts = urlsplit(source)
    except ValueError:
        return ""
    query = parts.query or parts.path.rpartition("/")[2]
    for field in query.split("&"):
        if _QUERY_KEY.match(field):
            query = field.partition("=")[2]
            break
    else:
        # mimetex.cgi?TeX: all of the query is the formula.
        query = query if not re.match(r"\w+=\w*\Z", query) else ""
    return _clean(_SIZE.sub("", unquote_plus(query.replace("+", "%2B")).strip()))


def _of_data(element: HtmlElement, value: str, name: str) -> Formula | None:
    value = value.strip()
    if value.startswith("<"):
        return _of_source(value, False)
    if not value or value.lower() in ("true", "false", "inline", "block", "display") or value.isdigit():
        return None
    if element.tag in ("body", "main", "article", "section", "table") or not _is_tex(value) or value[0] in "{[" and '"' in value:
        return None
    parts = split(value)
    if len(parts) == 1 and isinstance(parts[0], Formula):
        return Formula(parts[0].latex, parts[0].display, "data")
    display = _DISPLAY.search(name) is not None or element.get("data-display") in ("true", "block")
    return Formula(_clean(value), display, "data")


def _text(element: HtmlElement) -> str:
    return "".join(element.itertext())


_CONTROLS = str.maketrans({"\xa0": " ", "\u200b": None, "\ufeff": None, "\xad": None, "\r": None})
_BREAK = re.compile(r"%\n\s*")
_BLANK_LINES = re.compile(r"\n\s*\n")


def _clean(tex: str) -> str:
    """TeX on lines without blank ones, which would end a formula in Markdown, and without delimiters around it."""
    tex = _BLANK_LINES.sub("\n", _BREAK.sub("", tex.translate(_CONTROLS))).strip()
    for opening, closing in (("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"), ("$", "$")):
        if len(tex) > 2 * len(opening) and tex.startswith(opening) and tex.endswith(closing):
            inner = tex[len(opening) : -len(closing)]
            if opening[0] != "$" or "$" not in inner:
                return inner.strip()
    return tex


# Formulas in text

_ENVIRONMENTS = frozenset(
    "equation align gather multline eqnarray array matrix pmatrix bmatrix Bmatrix vmatrix Vmatrix smallmatrix cases dcases "
    "displaymath math split aligned alignedat gathered alignat flalign subequations CD".split()
)
_OPENING = re.compile(r"\\\\|\\\$|\\\(|\\\[|\\begin\{([A-Za-z]+\*?)\}|\$\$|\$|\[(i?tex|latex|i?math)\]", re.IGNORECASE)
_MAX_CHARS = 20_000
_WORDS = re.compile(r"[^\W\d_]{3,}[ ,.;:]+[^\W\d_]{3,}|[^\W\d_]{4,}")
_NAMED = re.compile(r"\\(?:text|mathrm|operatorname|mbox|textrm|textbf|mathbf|label|tag|ce)\*?\s*\{[^{}]*\}|\\[A-Za-z]+")
_FUNCTIONS = re.compile(r"(?<![a-z])(?:arcsin|arccos|arctan|sinh|cosh|tanh|sin|cos|tan|cot|log|exp|max|min|lim|mod|gcd|deg|det|dim|ker)(?![a-z])")
_MONEY = re.compile(r"[\d,.]+\s*(?:[-–/]\s*|[^\W\d_]{2,}|\(|[kKmM]\b)")
_STRONG = re.compile(r"\\[A-Za-z]+|\\[,;!{}|]|[\^_=]|[<>≤≥∈→]")
_CAPITALS = re.compile(r"[A-Z]{1,5}\Z")


def split(text: str) -> list[str | Formula]:
    r"""Split a text at its formulas: `$…$`, `$$…$$`, `\(…\)`, `\[…\]`, `\begin{align}…`, `[tex]…[/tex]`.

    Texts and formulas in their order; texts are unchanged. An amount of money, a shell variable are no formula.
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
        parts.append(found[0])
        done = position = found[1]
    if done < len(text) or not parts:
        parts.append(text[done:])
    return parts


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
    tex = _clean(text[start:end]) if 0 <= end - start <= _MAX_CHARS else ""
    if not tex:
        return None
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
    return Formula(_clean(content), False, "text"), end + 1


def _double(text: str, start: int, closers: dict[str, int]) -> tuple[Formula, int] | None:
    end = _find(text, "$$", start, closers)
    content = text[start:end] if 0 < end - start <= _MAX_CHARS else ""
    tex = _clean(content)
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
    return Formula(_clean(text[match.start() : end]), True, "text"), end


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
