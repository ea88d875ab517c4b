"""Characters of mathematics and their LaTeX."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_TABLE = r"""
α \alpha β \beta γ \gamma δ \delta ε \varepsilon ϵ \epsilon ζ \zeta η \eta θ \theta ϑ \vartheta ι \iota κ
\kappa ϰ \varkappa λ \lambda μ \mu µ \mu ν \nu ξ \xi ο o π \pi ϖ \varpi ρ \rho ϱ \varrho σ \sigma ς
\varsigma τ \tau υ \upsilon φ \varphi ϕ \phi χ \chi ψ \psi ω \omega ϝ \digamma Γ \Gamma Δ \Delta Θ \Theta
ϴ \Theta Λ \Lambda Ξ \Xi Π \Pi Σ \Sigma Υ \Upsilon ϒ \Upsilon Φ \Phi Ψ \Psi Ω \Omega Ω \Omega Α A Β B Ε E
Ζ Z Η H Ι I Κ K Μ M Ν N Ο O Ρ P Τ T Χ X − - ‐ - ‑ - – - ∗ * ⁎ * × \times ÷ \div ± \pm ∓ \mp · \cdot ⋅
\cdot ∙ \cdot • \bullet ∘ \circ ° ^{\circ} ⊕ \oplus ⊖ \ominus ⊗ \otimes ⊘ \oslash ⊙ \odot ⨁ \bigoplus ⨂
\bigotimes ⨀ \bigodot ⊎ \uplus ⨄ \biguplus ⊓ \sqcap ⊔ \sqcup ⨆ \bigsqcup ∧ \wedge ∨ \vee ⋀ \bigwedge ⋁
\bigvee ∩ \cap ∪ \cup ⋂ \bigcap ⋃ \bigcup ∖ \setminus ⧵ \setminus ≀ \wr † \dagger ‡ \ddagger ⋆ \star ★
\bigstar ⋄ \diamond ◇ \diamond ◊ \lozenge ⧫ \blacklozenge △ \triangle ▵ \triangle ▽ \triangledown ▿
\triangledown ⊲ \lhd ⊳ \rhd ⊴ \unlhd ⊵ \unrhd ◃ \triangleleft ▹ \triangleright ◁ \triangleleft ▷
\triangleright ▲ \blacktriangle ▴ \blacktriangle ▼ \blacktriangledown □ \square ◻ \square ▢ \square ■
\blacksquare ◼ \blacksquare ∎ \blacksquare ∔ \dotplus ⋇ \divideontimes ⋉ \ltimes ⋊ \rtimes ⊞ \boxplus ⊟
\boxminus ⊠ \boxtimes ⊡ \boxdot ⨿ \amalg ∐ \coprod ∏ \prod ∑ \sum ∫ \int ∬ \iint ∭ \iiint ⨌ \iiiint ∮
\oint ∯ \oiint √ \surd ≤ \leq ≦ \leqq ⩽ \leqslant ≥ \geq ≧ \geqq ⩾ \geqslant ≠ \neq ≪ \ll ≫ \gg ⋘ \lll ⋙
\ggg ≺ \prec ≻ \succ ⪯ \preceq ⪰ \succeq ≼ \preccurlyeq ≽ \succcurlyeq ∼ \sim ∽ \backsim ≃ \simeq ≅ \cong
≈ \approx ≊ \approxeq ≡ \equiv ≢ \not\equiv ≐ \doteq ≑ \doteqdot ≔ := ≕ =: ≜ \triangleq ≝
\overset{\mathrm{def}}{=} ≍ \asymp ∝ \propto ⊨ \models ⊧ \models ⊢ \vdash ⊣ \dashv ⊩ \Vdash ⊥ \perp ⟂
\perp ∣ \mid ∤ \nmid ∥ \parallel ∦ \nparallel ⋈ \bowtie ⌢ \frown ⌣ \smile ⊂ \subset ⊃ \supset ⊆ \subseteq
⊇ \supseteq ⊊ \subsetneq ⊋ \supsetneq ⫅ \subseteqq ⫆ \supseteqq ⊄ \not\subset ⊅ \not\supset ⊈ \nsubseteq ⊉
\nsupseteq ⊏ \sqsubset ⊐ \sqsupset ⊑ \sqsubseteq ⊒ \sqsupseteq ∈ \in ∊ \in ∉ \notin ∋ \ni ∌ \not\ni ≮
\nless ≯ \ngtr ≰ \nleq ≱ \ngeq ≁ \nsim ≇ \ncong ≉ \not\approx ≲ \lesssim ≳ \gtrsim ⪅ \lessapprox ⪆
\gtrapprox ≶ \lessgtr ≷ \gtrless ⋖ \lessdot ⋗ \gtrdot ∶ : ∷ :: ≬ \between ⋔ \pitchfork ← \leftarrow →
\rightarrow ↔ \leftrightarrow ⟵ \longleftarrow ⟶ \longrightarrow ⟷ \longleftrightarrow ⇐ \Leftarrow ⇒
\Rightarrow ⇔ \Leftrightarrow ⟸ \Longleftarrow ⟹ \Longrightarrow ⟺ \Longleftrightarrow ↑ \uparrow ↓
\downarrow ↕ \updownarrow ⇑ \Uparrow ⇓ \Downarrow ⇕ \Updownarrow ↦ \mapsto ⟼ \longmapsto ↩ \hookleftarrow
↪ \hookrightarrow ↗ \nearrow ↘ \searrow ↙ \swarrow ↖ \nwarrow ↼ \leftharpoonup ↽ \leftharpoondown ⇀
\rightharpoonup ⇁ \rightharpoondown ⇌ \rightleftharpoons ⇋ \leftrightharpoons ⇄ \rightleftarrows ⇆
\leftrightarrows ↛ \nrightarrow ↚ \nleftarrow ⇏ \nRightarrow ⇍ \nLeftarrow ↝ \leadsto ⇝ \rightsquigarrow ↠
\twoheadrightarrow ↞ \twoheadleftarrow ↣ \rightarrowtail ↾ \upharpoonright ↺ \circlearrowleft ↻
\circlearrowright ⊸ \multimap ∀ \forall ∃ \exists ∄ \nexists ¬ \neg ∅ \emptyset ⌀ \varnothing ∞ \infty ∂
\partial ∇ \nabla ∆ \Delta ℏ \hbar ℎ h ℓ \ell ℘ \wp ℑ \Im ℜ \Re ℵ \aleph ℶ \beth ℷ \gimel ∠ \angle ∡
\measuredangle ∢ \sphericalangle ⊤ \top ı \imath ȷ \jmath ð \eth ∁ \complement ∴ \therefore ∵ \because ℧
\mho Å \mathring{A} ♭ \flat ♮ \natural ♯ \sharp ♠ \spadesuit ♣ \clubsuit ♥ \heartsuit ♡ \heartsuit ♦
\diamondsuit ♢ \diamondsuit ✓ \checkmark £ \pounds ¥ \yen § \S ¶ \P © \copyright ® \circledR … \ldots ⋯
\cdots ⋮ \vdots ⋱ \ddots ′ ' ″ '' ‴ ''' ⁗ '''' ‵ \backprime ⟨ \langle ⟩ \rangle 〈 \langle 〉 \rangle 〈
\langle 〉 \rangle ⌊ \lfloor ⌋ \rfloor ⌈ \lceil ⌉ \rceil ‖ \| ∥ \parallel ⟦ \llbracket ⟧ \rrbracket ⌜
\ulcorner ⌝ \urcorner ⌞ \llcorner ⌟ \lrcorner ⟮ \lgroup ⟯ \rgroup ⎰ \lmoustache ⎱ \rmoustache # \# $ \$ %
\% & \& _ \_ { \{ } \} ~ \sim ^ \wedge \ \backslash ½ \frac{1}{2} ¼ \frac{1}{4} ¾ \frac{3}{4} ⅓
\frac{1}{3} ⅔ \frac{2}{3} ² ^{2} ³ ^{3} ¹ ^{1} ⁰ ^{0} ⁿ ^{n}
"""
_fields = _TABLE.split()
SYMBOLS: dict[str, str] = dict(zip(_fields[::2], _fields[1::2], strict=True))
"""LaTeX of a character in math mode."""
for _char in "\u2061\u2062\u2063\u2064\u200b\u200c\u200d\u2060\ufeff\xad\ufe00\ufe0e\ufe0f":
    SYMBOLS[_char] = ""
for _char, _space in zip(
    "\xa0\u2003\u2002\u2004\u2005\u2009\u200a\u2006\u202f\u205f",
    r"~ \quad \enspace \; \: \, \, \, \, \:".split(),
    strict=True,
):
    SYMBOLS[_char] = _space

FUNCTIONS = frozenset(
    "arccos arcsin arctan arg cos cosh cot coth csc deg det dim exp gcd hom inf ker lg lim liminf limsup ln log max "
    "min Pr sec sin sinh sup tan tanh".split()
)
"""Names that have a command of their own."""

LIMITS = frozenset(
    r"\sum \prod \coprod \bigcap \bigcup \bigvee \bigwedge \bigoplus \bigotimes \bigodot \biguplus \bigsqcup "
    r"\int \iint \iiint \iiiint \oint \oiint \lim \liminf \limsup \max \min \sup \inf \det \gcd \Pr \argmax".split()
)
"""Operators that take what is above and below as superscript and subscript."""

_STYLES = (
    ("BOLD ITALIC", r"\boldsymbol"),
    ("BOLD SCRIPT", r"\boldsymbol{\mathcal"),
    ("BOLD FRAKTUR", r"\boldsymbol{\mathfrak"),
    ("SANS-SERIF", r"\mathsf"),
    ("DOUBLE-STRUCK", r"\mathbb"),
    ("SCRIPT", r"\mathcal"),
    ("FRAKTUR", r"\mathfrak"),
    ("BLACK-LETTER", r"\mathfrak"),
    ("MONOSPACE", r"\mathtt"),
    ("BOLD", r"\mathbf"),
    ("ITALIC", ""),
)


@lru_cache(maxsize=4096)
def of(char: str) -> str:
    """Return the LaTeX of one character in math mode; a letter of a mathematical alphabet with its font."""
    found = SYMBOLS.get(char)
    if found is not None or ord(char) < 0x2100:
        return char if found is None else found
    name = unicodedata.name(char, "")
    if name.startswith("MATHEMATICAL") or ord(char) < 0x2150:
        plain = unicodedata.normalize("NFKC", char)
        style = next((command for key, command in _STYLES if key in name), None)
        if style is not None and len(plain) == 1 and plain != char:
            inner = SYMBOLS.get(plain, plain)
            if style == r"\mathbf" and inner.startswith("\\"):
                style = r"\boldsymbol"
            return f"{style}{{{inner}}}{'}' * style.count('{')}" if style else inner
    return char


_COMMANDS = """
frac dfrac tfrac cfrac genfrac binom dbinom tbinom sqrt root over atop choose above overset underset
stackrel sideset substack left right middle big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr
bigm Bigm biggm limits nolimits displaystyle textstyle scriptstyle scriptscriptstyle text textrm textbf
textit texttt textsf textnormal textup mbox hbox mathrm mathbf mathit mathsf mathtt mathcal mathbb
mathfrak mathscr mathnormal boldsymbol bm pmb operatorname operatornamewithlimits rm bf it sf tt cal hat
widehat check tilde widetilde acute grave dot ddot dddot ddddot breve bar overline underline vec
overrightarrow overleftarrow overleftrightarrow underrightarrow underleftarrow overbrace underbrace
overbracket underbracket mathring begin end hline cline multicolumn quad qquad enspace thinspace hspace
vspace hskip mskip kern mkern mspace hfill phantom hphantom vphantom smash rlap llap mathrlap mathllap
mathclap raisebox rule strut mathstrut label tag notag nonumber ref eqref require mod bmod pmod pod not
cancel bcancel xcancel boxed fbox color textcolor colorbox mathop mathbin mathrel mathord mathopen
mathclose mathpunct mathinner mathchoice xrightarrow xleftarrow xRightarrow xLeftarrow xleftrightarrow
xrightleftharpoons xmapsto xhookrightarrow ce pu cf unit si SI num le ge ne to gets iff implies impliedby
land lor lnot ni owns colon dots dotsc dotsb dotsm dotsi dotso cdotp ldotp lvert rvert lVert rVert vert
Vert lbrace rbrace lbrack rbrack lang rang backslash prime lt gt And ast star bullet circ bigcirc
bigtriangleup bigtriangledown nabla hslash hbar imath jmath Bbbk Finv Game eth ell diagup diagdown sharp
flat natural surd degree copyright dag ddag dagger ddagger S P ss o O l L aa AA ae AE oe OE i j slash
colonequals coloneqq eqqcolon vcentcolon thicksim thickapprox approxeq varpropto varnothing emptyset
varepsilon vartheta varpi varrho varsigma varphi varkappa digamma varGamma varDelta varTheta varLambda
varXi varPi varSigma varUpsilon varPhi varPsi varOmega projlim injlim varlimsup varliminf varinjlim
varprojlim Tr argmax argmin subsetneqq supsetneqq nparallel nmid nshortmid nVdash nvdash nvDash vDash
Vvdash shortmid shortparallel smallsmile smallfrown smallsetminus complement eqcirc circeq bumpeq Bumpeq
leqslant geqslant eqslantless eqslantgtr lessapprox gtrapprox lesseqgtr gtreqless precsim succsim
precapprox succapprox trianglelefteq trianglerighteq vartriangleleft vartriangleright vartriangle
blacktriangleleft blacktriangleright curlyeqprec curlyeqsucc curlywedge curlyvee barwedge veebar
doublebarwedge doublecap doublecup Cap Cup intercal leftthreetimes rightthreetimes circledast circledcirc
circleddash centerdot dotplus divideontimes ltimes rtimes upharpoonleft upharpoonright downharpoonleft
downharpoonright rightleftarrows leftrightarrows twoheadrightarrow twoheadleftarrow rightarrowtail
leftarrowtail looparrowright looparrowleft curvearrowright curvearrowleft circlearrowright circlearrowleft
Lsh Rsh dashrightarrow dashleftarrow longmapsto hookrightarrow hookleftarrow rightsquigarrow leadsto
leftrightsquigarrow multimap nLeftarrow nRightarrow nLeftrightarrow nleftrightarrow Longleftarrow
Longrightarrow Longleftrightarrow longleftarrow longrightarrow longleftrightarrow Uparrow Downarrow
Updownarrow updownarrow rightharpoonup rightharpoondown leftharpoonup leftharpoondown rightleftharpoons
bigsqcup biguplus bigodot bigoplus bigotimes bigvee bigwedge bigcup bigcap coprod oint iint iiint iiiint
idotsint oiint intop smallint sum prod int lfloor rfloor lceil rceil langle rangle lgroup rgroup
lmoustache rmoustache ulcorner urcorner llcorner lrcorner llbracket rrbracket middle R N Z Q C hdots vdots
ddots ldots cdots relax allowbreak newline linebreak tiny small normalsize large Large LARGE huge Huge
scriptsize footnotesize class cssId style href htmlClass mathchar char symbol uparrow downarrow leftarrow
rightarrow leftrightarrow mapsto nearrow searrow swarrow nwarrow infty partial aleph beth gimel daleth
forall exists nexists neg lnot top bot angle measuredangle sphericalangle square Box blacksquare Diamond
lozenge blacklozenge bigstar therefore because clubsuit diamondsuit heartsuit spadesuit checkmark maltese
mho wp Re Im backprime pounds yen euro circledR circledS
""".split()
COMMANDS = (
    frozenset(_COMMANDS)
    | FUNCTIONS
    | frozenset(match for tex in SYMBOLS.values() for match in re.findall(r"\\([A-Za-z]+)", tex))
)
"""Commands of LaTeX, AMS, mhchem and those that MathJax and KaTeX know besides."""
