"""Formulas on a page, as LaTeX: of MathML, MathJax, KaTeX, images, data attributes, and of delimiters in text."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from urllib.parse import unquote_plus, urlsplit

import lxml.etree
import lxml.html
from lxml.html import HtmlElement

from udfs.conversion import asciimath, mathml, symbols
from udfs.conversion.delimiters import COMMAND, clean
from udfs.conversion.delimiters import Formula as Formula
from udfs.conversion.delimiters import split as split  # part of this module's interface

_MAX_ELEMENTS = 300
"""A rendering is searched so far: wrappers of one in another would otherwise be searched as often as they nest."""

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
_DATA = frozenset(
    (
        "data-tex",
        "data-latex",
        "data-math",
        "data-formula",
        "data-katex",
        "data-equation",
        "data-mathml",
        "data-expr",
    )
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
_SIGNS = re.compile(r"[\\^_=+<>]")
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
    keys = element.keys()
    if not keys and tag != "asciimath":
        return None
    if tag in ("mjx-container", "mjx-assistive-mml"):
        return _of_container(element)
    name = str(element.get("class") or "")
    if name and _is_rendered(name):
        found = _of_rendering(element, name)
        if found is not None:
            return found
    if tag == "asciimath":
        return Formula(asciimath.latex(_text(element)), False, "asciimath")
    for key in keys:
        if key in _DATA and element.get(key):
            return _of_data(element, str(element.get(key)), name)
    if tag in ("code", "pre") and element.get("data-math-style"):
        return Formula(clean(_text(element)), element.get("data-math-style") == "display", "data")
    return None


@lru_cache(maxsize=8192)
def _is_rendered(name: str) -> bool:
    return _RENDERED.search(name) is not None


def _of_mathml(math: HtmlElement, display: bool) -> Formula:
    display = display or math.get("display") == "block" or math.get("mode") == "display"
    tex, source = _annotation(math), "annotation"
    alttext = math.get("alttext")
    if not tex and alttext and ("ltx_" in (math.get("class") or "") or _is_tex(alttext)):
        tex, source = clean(alttext), "alttext"
    if tex and not _has_macros(tex):
        return Formula(tex, display, source)
    # Macros are defined elsewhere, if at all; the MathML says what they stand for.
    converted = clean(mathml.latex(math))
    if tex and (not converted or _first(math, "merror") is not None):
        return Formula(tex, display, source)
    return Formula(converted, display, "mathml")


_MACRO = re.compile(r"\\([A-Za-z]+)")


def _has_macros(tex: str) -> bool:
    return any(name not in symbols.COMMANDS for name in _MACRO.findall(tex))


def _annotation(math: HtmlElement) -> str:
    """The TeX of the whole formula; an annotation deeper in it is one of a part."""
    node = math
    for _ in range(6):
        children = [child for child in node if isinstance(child.tag, str)]
        if not children:
            return ""
        for child in children:
            if mathml.name(child) == "annotation" and (child.get("encoding") or "").lower() in _TEX_ENCODINGS:
                return clean(_text(child))
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
    return Formula(clean(html.unescape(source)), display, "script")


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
    math = next(container.iter("math"), None)
    if math is not None:
        return _of_mathml(math, display)
    for child in islice(container.iter(), _MAX_ELEMENTS):
        tex = child.get("data-latex")
        if tex:
            return Formula(clean(tex), display, "data")
    text = _text(container)
    return Formula(clean(text), display, "text") if COMMAND.search(text) else None


def _of_rendering(element: HtmlElement, name: str) -> Formula | None:
    tokens = name.split()
    if "MathJax_Preview" in tokens:
        return _of_preview(element)
    if _JAX.search(name):
        return _of_jax(element, name)
    if (
        "katex" in tokens
        or "katex-display" in tokens
        or "mwe-math-element" in tokens
        or "MJX_Assistive_MathML" in tokens
    ):
        return _of_copies(element, "katex-display" in tokens or "mwe-math-element-block" in tokens)
    if "katex-error" in tokens:
        tex = clean(_text(element))
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
    if len(parts) == 1 and (marked or COMMAND.search(text)):
        return Formula(clean(text), shown, "text")
    return None


def _of_copies(element: HtmlElement, display: bool) -> Formula | None:
    """A wrapper of one formula in several forms: MathML and HTML of KaTeX, MathML and image of Wikipedia."""
    maths = _some(element, "math", 2)
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
        return Formula(clean(_text(note)), display or _inside_display(element), "annotation")
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
    shown = following is not None and (_is_script(following) or _JAX.search(following.get("class") or ""))
    if shown and not (preview.tail or "").strip():
        return Formula("", False, "text")
    text = _text(preview).strip()
    if not text or len(split(text)) > 1:
        return None
    found = split(text)[0]
    if isinstance(found, Formula):
        return found
    return Formula(clean(text), False, "text") if COMMAND.search(text) else None


def _is_script(element: HtmlElement) -> bool:
    return element.tag == "script" and (element.get("type") or "").lower().startswith("math/")


def _of_jax(element: HtmlElement, name: str) -> Formula | None:
    """MathJax 2: the script after a rendering has the source; without it the MathML that goes with the rendering."""
    following = element.getnext()
    if following is not None and _is_script(following) and not (element.tail or "").strip():
        return Formula("", False, "script")
    display = _DISPLAY.search(name) is not None
    for child in islice(element.iter(), _MAX_ELEMENTS):
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
            return Formula(clean(alt), display, "image")
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
    if COMMAND.search(text) and (marked or "{" in text or "^" in text or "_" in text or "=" in text):
        return True
    return (
        marked
        and not re.search(r"[^\W\d_]{3,}\W+[^\W\d_]{3,}", text)
        and not re.search(r"\.(?:png|gif|jpe?g|svg)\Z", text)
    )


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
    return clean(_SIZE.sub("", unquote_plus(query.replace("+", "%2B")).strip()))


def _of_data(element: HtmlElement, value: str, name: str) -> Formula | None:
    value = value.strip()
    if value.startswith("<"):
        return _of_source(value, False)
    if not value or value.lower() in ("true", "false", "inline", "block", "display") or value.isdigit():
        return None
    if element.tag in ("body", "main", "article", "section", "table") or not _is_tex(value):
        return None
    if (value[0] in "{[" and '"' in value) or (_SIGNS.search(value) is None and _text(element).strip()):
        return None
    parts = split(value)
    if len(parts) == 1 and isinstance(parts[0], Formula):
        return Formula(parts[0].latex, parts[0].display, "data")
    display = _DISPLAY.search(name) is not None or element.get("data-display") in ("true", "block")
    return Formula(clean(value), display, "data")


def _text(element: HtmlElement) -> str:
    return "".join(element.itertext())
