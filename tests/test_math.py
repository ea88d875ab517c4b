# ruff: noqa: E501 - lines of markup
from __future__ import annotations

import lxml.html
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from templates import dom
from udfs.conversion import asciimath, math, mathml
from udfs.conversion.delimiters import clean
from udfs.conversion.math import Formula


def formulas(html: str) -> list[Formula]:
    """The formulas of elements, from the outside in, as the conversion asks."""
    found: list[Formula] = []
    stack = [dom.parse(f"<body>{html}</body>").find("body")]
    while stack:
        element = stack.pop()
        formula = math.formula(element)
        if formula is None:
            stack.extend(reversed(element))
        elif formula.latex:
            found.append(formula)
    return found


def converted(inner: str) -> str:
    return mathml.latex(dom.parse(f"<body><math>{inner}</math></body>").find(".//math"))


MML = "<math><msup><mi>x</mi><mn>2</mn></msup></math>"
TEX = '<annotation encoding="application/x-tex">x^2</annotation>'
ANNOTATED = f"<math><semantics><msup><mi>x</mi><mn>2</mn></msup>{TEX}</semantics></math>"
ESCAPED = MML.replace("<", "&lt;").replace(">", "&gt;")


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (MML, Formula("x^{2}", False, "mathml")),
        (MML.replace("<math", '<math display="block"'), Formula("x^{2}", True, "mathml")),
        (MML.replace("<", "<m:").replace("<m:/", "</m:"), Formula("x^{2}", False, "mathml")),
        (ANNOTATED, Formula("x^2", False, "annotation")),
        (r'<math class="ltx_Math" alttext="\alpha_{1}"><mi>y</mi></math>', Formula(r"\alpha_{1}", False, "alttext")),
        ('<math alttext="x squared plus one"><mi>y</mi></math>', Formula("y", False, "mathml")),
        (ANNOTATED.replace("x^2</ann", r"\mymacro{x}</ann"), Formula("x^{2}", False, "mathml")),
        ('<script type="math/tex">x^2</script>', Formula("x^2", False, "script")),
        ('<script type="math/tex; mode=display">a &lt; b</script>', Formula("a < b", True, "script")),
        (f'<script type="math/mml">{MML}</script>', Formula("x^{2}", False, "mathml")),
        ('<script type="math/asciimath">x/2</script>', Formula(r"\frac{x}{2}", False, "asciimath")),
        (f'<mjx-container display="true"><mjx-math aria-hidden="true"><mjx-mi></mjx-mi></mjx-math><mjx-assistive-mml>{MML}'
         "</mjx-assistive-mml></mjx-container>", Formula("x^{2}", True, "mathml")),
        ('<mjx-container><svg><g data-latex="x^2"></g></svg></mjx-container>', Formula("x^2", False, "data")),
        (f'<span class="katex"><span class="katex-mathml">{ANNOTATED}</span><span class="katex-html">x2</span></span>',
         Formula("x^2", False, "annotation")),
        (f'<span class="katex-display"><span class="katex"><span class="katex-mathml">{ANNOTATED}</span><span>x2</span>'
         "</span></span>", Formula("x^2", True, "annotation")),
        (f'<span class="mwe-math-element"><span style="display:none">{ANNOTATED}</span><img alt="x^2"></span>',
         Formula("x^2", False, "annotation")),
        ('<span class="mwe-math-element"><img class="mwe-math-fallback-image-display" alt="{\\displaystyle x}"></span>',
         Formula(r"{\displaystyle x}", True, "image")),
        (r'<img class="latex" src="a.png" alt="\frac{1}{2}">', Formula(r"\frac{1}{2}", False, "image")),
        (r'<img src="//latex.codecogs.com/gif.latex?%5Cinline%20%5Cfrac%7B1%7D%7B2%7D+x">', Formula(r"\frac{1}{2}+x", False, "image")),
        ('<img src="/cgi-bin/mimetex.cgi?f(x)=x^2">', Formula("f(x)=x^2", False, "image")),
        ('<img src="https://s0.wp.com/latex.php?latex=%5Calpha&amp;bg=fff" alt="">', Formula(r"\alpha", False, "image")),
        (r'<img alt="$a+b$" src="a.gif">', Formula("a+b", False, "image")),
        (r'<span data-math="p\mid q"></span>', Formula(r"p\mid q", False, "data")),
        (r'<span class="math inline">x_1</span>', Formula("x_1", False, "text")),
        (r'<span class="math display">\[x_1\]</span>', Formula("x_1", True, "text")),
        (r'<span class="arithmatex">\(x_1\)</span>', Formula("x_1", False, "text")),
        ('<span class="asciimath">sum_(i=1)^n i</span>', Formula(r"\sum_{i=1}^{n}i", False, "asciimath")),
    ],
)  # fmt: skip
def test_formula_of_an_element(html: str, expected: Formula) -> None:
    assert formulas(html) == [expected]


MATHJAX = f'<span class="MathJax_Preview">x2</span><span class="MathJax" data-mathml="{ESCAPED}"><nobr>x2</nobr></span>'
DISPLAY = (
    '<div class="MathJax_Preview"></div><div class="MathJax_Display"><span class="MathJax"><nobr>x2</nobr>'
    f'<span class="MJX_Assistive_MathML">{MML}</span></span></div>'
)


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (MATHJAX, Formula("x^{2}", False, "mathml")),
        (MATHJAX + '<script type="math/tex">x^2</script>', Formula("x^2", False, "script")),
        (DISPLAY, Formula("x^{2}", True, "mathml")),
        (DISPLAY + '<script type="math/tex; mode=display">x^2</script>', Formula("x^2", True, "script")),
        (r'<span class="MathJax_Preview">\(x\)</span>', Formula("x", False, "text")),
    ],
)
def test_mathjax_2_shows_a_formula_once(html: str, expected: Formula) -> None:
    assert formulas(html) == [expected]


@pytest.mark.parametrize(
    "html",
    [
        "<p>x</p>",
        '<img alt="A photo of the Alps" src="latex-paint.jpg">',
        '<img alt="C:\\Users\\me_too" src="a.png">',
        '<div class="math">A chapter of the book</div>',
        '<div data-math="true">text</div>',
        '<a class="tex" href="a.tex">article.tex</a>',
        "<script>var x = 1</script>",
    ],
)
def test_no_formula(html: str) -> None:
    assert formulas(html) == []


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ("<mfrac><mi>a</mi><mi>b</mi></mfrac>", r"\frac{a}{b}"),
        ("<mroot><mi>x</mi><mn>3</mn></mroot><msqrt><mi>a</mi><mi>b</mi></msqrt>", r"\sqrt[3]{x}\sqrt{ab}"),
        ("<mi>sin</mi><mo>\u2061</mo><mi>x</mi>", r"\sin x"),
        ("<mi>\u03b1</mi><mi>x</mi><mo>\u2264</mo><mn>1.5</mn>", r"\alpha x\leq1.5"),
        ("<munderover><mo>\u2211</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi></munderover>", r"\sum_{i=1}^{n}"),
        ("<munder><mi>lim</mi><mi>x</mi></munder>", r"\lim_{x}"),
        ("<msubsup><mi>x</mi><mn>1</mn><mo>\u2032</mo></msubsup>", "x_{1}'"),
        ("<msup><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mn>2</mn></msup>", "{a+b}^{2}"),
        ("<mover><mi>x</mi><mo>\u00af</mo></mover><mover><mi>v</mi><mo>\u2192</mo></mover>", r"\bar{x}\vec{v}"),
        ("<mi mathvariant='double-struck'>R</mi><mi>\U0001d49c</mi><mi mathvariant='bold'>v</mi>", r"\mathbb{R}\mathcal{A}\mathbf{v}"),
        ("<mstyle mathvariant='normal'><mi>d</mi><mi>e</mi><mi>f</mi></mstyle>", r"\mathrm{def}"),
        ("<mfenced><mi>a</mi><mi>b</mi></mfenced>", "(a,b)"),
        ("<mrow><mo>(</mo><mfrac><mi>a</mi><mi>b</mi></mfrac><mo>)</mo></mrow>", r"\left(\frac{a}{b}\right)"),
        ("<mo>[</mo><mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>0</mn></mtd></mtr></mtable><mo>]</mo>", r"\begin{bmatrix} 1 & 0 \end{bmatrix}"),
        ("<mo>{</mo><mtable><mtr><mtd><mi>a</mi></mtd></mtr><mtr><mtd><mi>b</mi></mtd></mtr></mtable>", r"\begin{cases} a \\ b \end{cases}"),
        ("<mtable columnalign='right left'><mtr><mtd><mi>a</mi></mtd><mtd><mo>=</mo><mi>b</mi></mtd></mtr></mtable>", r"\begin{aligned} a & =b \end{aligned}"),
        ("<mfenced><mfrac linethickness='0'><mi>n</mi><mi>k</mi></mfrac></mfenced>", r"\binom{n}{k}"),
        ("<mmultiscripts><mi>C</mi><mprescripts></mprescripts><mn>6</mn><mn>14</mn></mmultiscripts>", "{}_{6}^{14}C"),
        ("<mtext>if\u00a0x_1 </mtext><mo>&amp;</mo>", r"\text{if x\_1 }\&"),
        ("<mi>a</mi>stray<mi>b</mi>", "astrayb"),
        ("<msup><mi>x</mi></msup><mfrac></mfrac>", r"x\frac{}{}"),
    ],
)  # fmt: skip
def test_mathml(inner: str, expected: str) -> None:
    assert converted(inner) == expected


def test_mathml_of_any_depth() -> None:
    deep = "<mrow>" * 1500 + "<mi>x</mi>" + "</mrow>" * 1500
    assert converted(deep) == "x"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a $x$ b", ["a ", Formula("x", False, "text"), " b"]),
        ("$$x^2$$", [Formula("x^2", True, "text")]),
        (r"\(x\), \[y\]", [Formula("x", False, "text"), ", ", Formula("y", True, "text")]),
        (r"\(\ce{2H2 + O2 -> 2H2O}\)", [Formula(r"\ce{2H2 + O2 -> 2H2O}", False, "text")]),
        ("$n$th", [Formula("n", False, "text"), "th"]),
        (r"$ \alpha $", [Formula(r"\alpha", False, "text")]),
        ("[tex]x^2[/tex]", [Formula("x^2", True, "text")]),
        ("[itex]x[/itex]", [Formula("x", False, "text")]),
        ("$latex x^2$", [Formula("x^2", False, "text")]),
        (r"It costs $5, and $x$ is free", ["It costs $5, and ", Formula("x", False, "text"), " is free"]),
        ("\\begin{align}a&=b\\end{align} c", [Formula("\\begin{align}a&=b\\end{align}", True, "text"), " c"]),
        (r"\mathbf{y}=\mathbf{u}D_{z}", [Formula(r"\mathbf{y}=\mathbf{u}D_{z}", False, "text")]),
        (r"\(\newcommand{\R}{\mathbb{R}}\)", [""]),
        ("$a\n\n\nb_1$$", ["$a\n\n\nb_1$$"]),
        ("$$a\n\nb^2$$", [Formula("a\nb^2", True, "text")]),
    ],
)
def test_delimiters(text: str, expected: list[str | Formula]) -> None:
    assert math.split(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "from $5 to $10",
        "US$5-$10 or A$6/$7",
        "$100 (or 90$) a month",
        "$20/mo vs 30$",
        "we paid $1,000 then, $2,000 now",
        "export $HOME/bin:$PATH",
        "Pizza $$ - $$$, Sushi $$$$",
        r"escaped \$x\$",
        "$name$ and $other value$",
        r"C:\alpha\beta",
        r"an open \( and a closed \]",
        "a [math] without end",
        r"\begin{itemize}\item a\end{itemize}",
        "",
    ],
)
def test_money_and_other_text_is_no_formula(text: str) -> None:
    assert math.split(text) == [text]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(["$", "$$", "\\(", "\\)", "\\[", "\\]", "\\", "a", "x^2", " ", "\n", "5", "[tex]", "[/tex]"])
    )
)
def test_split_loses_no_text(pieces: list[str]) -> None:
    text = "".join(pieces)
    position = 0
    for part in math.split(text):
        inner = part if isinstance(part, str) else part.latex.split("\n")[0]
        found = text.find(inner, position)
        assert found >= 0
        position = found + len(inner)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet='x12()[]{}^_/,|:;"sqrtfacintum +-*<>&\\`', max_size=60))
def test_asciimath_never_raises(source: str) -> None:
    assert isinstance(asciimath.latex(source), str)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("((n(n+1))/2)^2", r"\left(\frac{n(n+1)}{2}\right)^{2}"),
        ("[[a,b],[c,d]]", r"\left[\begin{matrix} a & b \\ c & d \end{matrix}\right]"),
        ("sin(x)/x", r"\frac{\sin(x)}{x}"),
        ("root(3)(x) <= sqrt 2", r"\sqrt[3]{x}\le\sqrt{2}"),
        ("text(if ) x in RR", r"\text{if }x\in\mathbb{R}"),
        ("(" * 500, "(" * 500),
    ],
)
def test_asciimath(source: str, expected: str) -> None:
    assert asciimath.latex(source) == expected


TAGS = [
    "math",
    "mi",
    "mo",
    "mn",
    "mrow",
    "mfrac",
    "msup",
    "msubsup",
    "munderover",
    "mover",
    "msqrt",
    "mroot",
    "mtable",
    "mtr",
    "mtd",
    "mfenced",
    "mmultiscripts",
    "none",
    "span",
]
TREES = st.recursive(
    st.sampled_from(["x", "2", "\u2211", "\u2192", "(", "|", "{", "\u00af", "\u2032", " ", "&lt;", "\\", "%\n"]),
    lambda inner: st.builds(
        lambda tag, name, parts: f'<{tag} class="{name}">{"".join(parts)}</{tag}>',
        st.sampled_from(TAGS),
        st.sampled_from(["", "katex", "MathJax", "math inline", "MathJax_Preview", "tex", "mwe-math-element"]),
        st.lists(inner, max_size=4),
    ),
    max_leaves=25,
)


@settings(max_examples=200, deadline=None)
@given(TREES)
def test_never_raises_and_changes_nothing(html: str) -> None:
    root = dom.parse(f"<body>x{html}</body>")
    before = lxml.html.tostring(root)
    for element in root.iter():
        math.formula(element)
        mathml.latex(element)
    assert lxml.html.tostring(root) == before


def test_open_delimiters_cost_no_more_than_their_size() -> None:
    for piece in ("$a ", "\\(", "\\begin{align}", "[tex]", "$x = aaa bbb "):
        assert "".join(part for part in math.split(piece * 50_000) if isinstance(part, str))


def test_a_line_break_at_the_end_and_comments_are_no_part_of_a_formula() -> None:
    assert clean("a+b \\\\ ") == "a+b"
    assert clean("a \\\\\\\\\n") == "a"
    assert clean("a \\\\ b") == "a \\\\ b"
    assert clean("50\\% of a\nb") == "50\\% of a\nb"
    assert clean("a % the first\n + b") == "a + b"
