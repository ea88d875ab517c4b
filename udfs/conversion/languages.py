"""The programming language of a code block: what highlighters write into classes and data attributes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from lxml.html import HtmlElement

KNOWN = frozenset(
    """
    abap abnf actionscript actionscript3 ada agda antlr apache apacheconf apl applescript arduino arm
    armasm as3 asciidoc asm asp aspnet aspx autohotkey autoit awk ballerina bash basic bat batch bf bibtex
    bicep bnf brainfuck bsh c c# c++ cc cg clike clj clojure cmake cmd cobol coffee coffeescript
    coldfusion console cpp cql crystal cs csharp csh cshtml css csv cuda cxx cypher cython d dart delphi
    diff django docker dockerfile dos dot ebnf elisp elixir elm emacs-lisp erb erlang ex excel f# f90 fish
    forth fortran fsharp gams gap gcode gdscript gherkin git gitignore glsl gnuplot go golang gql gradle
    graphql groovy haml handlebars haskell haxe hbs hcl hlsl hs htm html html+erb html5 http idl ini
    ipython ipython2 ipython3 irb j java javafx javascript jinja jinja2 jl js jscript json json5 jsonc
    jsonld jsonnet jsp jsx julia jupyter kotlin ks ksh kt latex lean less liquid lisp llvm log lsl lua m
    makefile make markdown markup mathematica matlab maxima md mdx mermaid mips mkd ml mma mysql nasm
    nginx nim nix node nsis objc objective-c objectivec objectpascal obj-c ocaml octave opencl openscad
    org oracle pascal patch pcre perl pgsql php php5 pl plaintext plantuml plist plpgsql plsql po postgres
    postgresql postscript pov powershell prolog properties proto protobuf ps ps1 psql pug puppet
    purescript py py3 pycon pytb python python2 python3 pyrex q qml r racket rake raku rb rdoc reasonml
    regex rest restructuredtext rex rexx robot robotframework ron rs rst ruby rust s sas sass scala scheme
    scilab scm scss sed sh shell shellscript smali smalltalk sml solidity sparql sql sqlite squirrel stan
    stata stylus svelte svg swift systemverilog tcl tcsh terminal terraform tex tf toml trac ts tsql tsx
    turtle twig typescript typst typoscript v vala vb vb.net vba vbnet vbs vbscript verilog vhdl vim viml
    vue wasm wat wiki wolfram x86asm xhtml xml xpath xquery xsl xslt yaml yang yml zig zsh
    """.split()
)

NONE = frozenset(
    "none default text plain plaintext txt nohighlight no-highlight auto undefined unknown null false raw "
    "text-only ascii output other literal language lang code guess".split()
)

_SAME = {
    "ipython": "python",
    "ipython2": "python",
    "ipython3": "python",
    "python3": "python",
    "py3": "python",
    "jscript": "javascript",
    "text-html-basic": "html",
    "text-html-erb": "erb",
    "text-html-php": "php",
    "text-html-vue": "vue",
    "html-basic": "html",
    "html5": "html",
    "htm": "html",
    "text-xml": "xml",
    "text-xml-svg": "svg",
    "text-tex-latex": "latex",
    "viml": "vim",
    "shellscript": "shell",
    "objectivec": "objective-c",
    "php5": "php",
}

_ATTRIBUTES = (
    "data-lang",
    "data-language",
    "data-code-language",
    "data-enlighter-language",
    "data-canonical-lang",
    "data-code-lang",
    "data-syntax",
    "data-mode",
)
_PREFIXED = re.compile(
    r"(?:^|[\s_])(?:(?:mw-highlight-|code-|highlight-|src-)?lang(?:uage)?[-_:]|highlight-(?:source-)?|source-|src-|"
    r"brush:\s*|lang:\s*|syntax-|code-block-)(?!type\b|block|wrapp|code\b|header|contain|line|box|tool)"
    r"([A-Za-z0-9+#.][A-Za-z0-9+#.-]*)"
)
_MARKED = re.compile(
    r"(?<![\w-])(?:hljs|highlight|sourceCode|prettyprint|syntaxhighlighter|code|src|programlisting|chroma|"
    r"literal-block|codehilite|mw-geshi|geshi|listing|prism-code|wp_syntax|brush|rouge)(?![\w-])"
)
_PARAMETERS = re.compile(r"brush:\s*([\w+#.-]+)")


def known(name: str) -> str | None:
    """Return the name as it is written after a fence, None for a name that says no language."""
    name = name.strip().lower().rstrip(".;,:")
    name = _SAME.get(name, name)
    return None if not name or name in NONE or len(name) > 30 else name


@lru_cache(maxsize=4096)
def of_class(name: str, bare: bool) -> str | None:
    """Return the language that a class attribute names; with `bare`, also as a token without a prefix."""
    for match in _PREFIXED.finditer(name):
        found = known(match[1])
        if found is not None:
            return found
        if match[1].lower() in NONE:
            return None
    if bare or _MARKED.search(name):
        for token in name.split():
            if token.lower() in KNOWN:
                return known(token)
    return None


def of(elements: Iterable[HtmlElement]) -> str | None:
    """Return the language that the first of the elements names, nearest to the code first; None if none does."""
    for element in elements:
        for attribute, value in element.attrib.items():
            if attribute in _ATTRIBUTES and value:
                found = known(str(value).split()[0]) if value.strip() else None
                if found is not None:
                    return found
            elif attribute == "data-syntaxhighlighter-params":
                match = _PARAMETERS.search(str(value))
                if match and known(match[1]):
                    return known(match[1])
        name = element.get("class")
        found = of_class(name, element.tag in ("pre", "code")) if name else None
        if found is None and element.tag in ("pre", "code"):
            plain = (element.get("lang") or element.get("language") or "").lower()
            # lang is a human language by right: `lang="js"` is none, `lang="cs"` is Czech.
            found = (
                known(plain) if plain in KNOWN and (len(plain) > 2 or plain in ("js", "py", "ts", "sh", "go")) else None
            )
        if found is not None:
            return found
    return None
