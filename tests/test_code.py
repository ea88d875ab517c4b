# ruff: noqa: E501 - lines of markup
from __future__ import annotations

import lxml.html
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from templates import dom
from udfs.conversion import code


def first(html: str) -> code.Code | None:
    """The first code block from the outside in, as the conversion asks."""
    body = dom.parse(f"<body>{html}</body>").find("body")
    return next((found for element in body.iterdescendants() if (found := code.block(element))), None)


def blocks(html: str) -> list[str]:
    """All code blocks, none inside another."""
    found: list[str] = []
    stack = [dom.parse(f"<body>{html}</body>").find("body")]
    while stack:
        element = stack.pop()
        block = code.block(element)
        if block is None:
            stack.extend(reversed(element))
        elif block.code:
            found.append(block.code)
    return found


LINE_NUMBERS = {
    "pygments table": '<table class="highlighttable"><tr><td class="linenos"><div class="linenodiv"><pre>1\n2\n3</pre></div>'
    '</td><td class="code"><div class="highlight"><pre><span></span><span class="k">if</span> x:\n\n    y\n</pre></div>'
    "</td></tr></table>",
    "sphinx inline": '<div class="highlight-python notranslate"><div class="highlight"><pre><span></span>'
    '<span class="linenos">1</span><span class="k">if</span> x:\n<span class="linenos">2</span>\n'
    '<span class="linenos">3</span>    y\n</pre></div></div>',
    "rouge": '<div class="language-python highlighter-rouge"><div class="highlight"><pre class="highlight"><code>'
    '<table class="rouge-table"><tbody><tr><td class="rouge-gutter gl"><pre class="lineno">1\n2\n3\n</pre></td>'
    '<td class="rouge-code"><pre><span class="k">if</span> x:\n\n    y\n</pre></td></tr></tbody></table></code></pre>'
    "</div></div>",
    "hexo": '<figure class="highlight python"><table><tr><td class="gutter"><pre><span class="line">1</span><br>'
    '<span class="line">2</span><br><span class="line">3</span><br></pre></td><td class="code"><pre>'
    '<span class="line">if x:</span><br><span class="line"></span><br><span class="line">    y</span><br></pre></td>'
    "</tr></table></figure>",
    "github": '<table class="highlight js-file-line-container"><tr><td class="blob-num" data-line-number="1"></td>'
    '<td class="blob-code">if x:</td></tr>\n<tr><td class="blob-num"></td><td class="blob-code">\n</td></tr>\n'
    '<tr><td class="blob-num"></td><td class="blob-code">    y</td></tr></table>',
    "chroma table": '<div class="chroma"><table class="lntable"><tr><td class="lntd"><pre class="chroma"><code>'
    '<span class="lnt">1\n</span><span class="lnt">2\n</span><span class="lnt">3\n</span></code></pre></td>'
    '<td class="lntd"><pre class="chroma"><code class="language-python"><span class="line"><span class="cl">if x:\n</span>'
    '</span><span class="line"><span class="cl">\n</span></span><span class="line"><span class="cl">    y\n</span></span>'
    "</code></pre></td></tr></table></div>",
    "syntaxhighlighter": '<div class="syntaxhighlighter python"><div class="toolbar"><span>?</span></div><table><tr>'
    '<td class="gutter"><div class="line number1">1</div><div class="line number2">2</div><div class="line number3">3</div>'
    '</td><td class="code"><div class="container"><div class="line number1"><code class="python keyword">if</code> '
    '<code class="python plain">x:</code></div><div class="line number2">&nbsp;</div><div class="line number3">'
    '<code class="python spaces">&nbsp;&nbsp;&nbsp;&nbsp;</code><code class="python plain">y</code></div></div></td>'
    "</tr></table></div>",
    "crayon": '<div class="crayon-syntax"><div class="crayon-toolbar"><span class="crayon-language">Python</span></div>'
    '<div class="crayon-plain-wrap"><textarea class="crayon-plain">if x:</textarea></div><div class="crayon-main">'
    '<table class="crayon-table"><tr class="crayon-row"><td class="crayon-nums"><div class="crayon-num">1</div></td>'
    '<td class="crayon-code"><div class="crayon-pre"><div class="crayon-line"><span class="crayon-st">if</span>'
    '<span class="crayon-h"> </span>x:</div><div class="crayon-line">&nbsp;</div><div class="crayon-line">'
    '<span class="crayon-h">    </span>y</div></div></td></tr></table></div></div>',
    "doxygen": '<div class="fragment"><div class="line"><span class="lineno">    1</span>if x:</div>\n'
    '<div class="line"><span class="lineno">    2</span> </div>\n<div class="line"><span class="lineno">    3</span>'
    "    y</div>\n</div>",
    "prettify": '<pre class="prettyprint linenums lang-python"><ol class="linenums"><li class="L0">if x:</li>'
    '<li class="L1"></li><li class="L2">    y</li></ol></pre>',
    "prism": '<pre class="line-numbers language-python"><code class="language-python">if x:\n\n    y'
    '<span aria-hidden="true" class="line-numbers-rows"><span></span><span></span></span></code></pre>',
    "docusaurus": '<div class="language-python codeBlockContainer"><div class="codeBlockContent"><pre class="prism-code '
    'language-python"><code><span class="token-line" style="color:#000">if x:<br></span><span class="token-line">'
    '<span style="display:inline-block"></span><br></span><span class="token-line">    y<br></span></code></pre>'
    '<div><button aria-label="Copy code">Copy</button></div></div></div>',
    "gitea": '<div class="file-view code-view"><table><tbody>\n<tr>\n<td class="lines-num"><span></span></td>\n'
    '<td class="lines-code chroma"><code class="code-inner">if x:\n</code></td>\n</tr><tr><td class="lines-num"></td>'
    '<td class="lines-code chroma"><code class="code-inner">\n</code></td></tr><tr><td class="lines-num"></td>'
    '<td class="lines-code chroma"><code class="code-inner">    y\n</code></td></tr></tbody></table></div>',
    "chroma inline": '<div class="highlight"><pre class="chroma"><code class="language-python"><span class="ln">1</span>'
    '<span class="cl">if x:\n</span><span class="ln">2</span><span class="cl">\n</span><span class="ln">3</span>'
    '<span class="cl">    y\n</span></code></pre></div>',
    "unselectable": '<pre><code><span style="user-select:none">1 </span>if x:\n<span style="user-select: none">2 </span>\n'
    '<span style="-webkit-user-select: none">3 </span>    y</code></pre>',
    "codemirror": '<div class="CodeMirror-code"><div><div class="CodeMirror-gutter-wrapper"><div class="CodeMirror-linenumber">'
    '1</div></div><pre class=" CodeMirror-line "><span>if x:</span></pre></div><div><pre class=" CodeMirror-line "><span>'
    '\u200b</span></pre></div><div><pre class=" CodeMirror-line "><span>    y</span></pre></div></div>',
    "code a line": "<pre><code>if x:</code>\n<code></code>\n<code>    y</code></pre>",
    "discuz": '<div class="blockcode"><div><ol><li>if x:<br></li><li><br></li><li>    y<br></li></ol></div>'
    "<em>\u590d\u5236\u4ee3\u7801</em></div>",
    "br": "<p><code>if x:<br><br>&nbsp;&nbsp;&nbsp;&nbsp;y</code></p>",
    "br and line feeds": "<pre>if x:<br />\n<br />\n    y<br />\n</pre>",
    "bulletin board": '<dl class="codebox"><dt>Code: <a href="#">Select all</a></dt><dd><code>if x:<br><br>'
    "&nbsp; &nbsp; y</code></dd></dl>",
}


@pytest.mark.parametrize("name", LINE_NUMBERS)
def test_code_is_intact_without_line_numbers_and_buttons(name: str) -> None:
    assert blocks(LINE_NUMBERS[name]) == ["if x:\n\n    y"]


def test_wrapper_is_the_block() -> None:
    body = dom.parse(f"<body>{LINE_NUMBERS['sphinx inline']}</body>").find("body")
    assert code.block(body) is None
    assert code.block(body[0]) == code.Code("if x:\n\n    y", "python")


@pytest.mark.parametrize(
    ("html", "language"),
    [
        ('<pre><code class="language-js">x</code></pre>', "js"),
        ('<pre><code class="lang-c++">x</code></pre>', "c++"),
        ('<pre><code class="hljs javascript">x</code></pre>', "javascript"),
        ('<pre class="prettyprint lang-rb">x</pre>', "rb"),
        ('<div class="highlight-ipython3 notranslate"><div class="highlight"><pre>x</pre></div></div>', "python"),
        ('<div class="highlight-default notranslate"><div class="highlight"><pre>x</pre></div></div>', None),
        ('<div class="language-ruby highlighter-rouge"><div class="highlight"><pre class="highlight"><code>x</code></pre></div></div>', "ruby"),
        ('<figure class="highlight"><pre><code class="language-ruby" data-lang="ruby">x</code></pre></figure>', "ruby"),
        ('<figure class="highlight plain"><table><tr><td class="code"><pre>x</pre></td></tr></table></figure>', None),
        ('<div class="highlight highlight-source-shell"><pre>x</pre></div>', "shell"),
        ('<div class="highlight highlight-text-html-basic"><pre>x</pre></div>', "html"),
        ('<pre class="brush: java; gutter: true">x</pre>', "java"),
        ('<pre class="lang:python decode:true">x</pre>', "python"),
        ('<pre class="sourceCode haskell"><code class="sourceCode haskell">x</code></pre>', "haskell"),
        ('<pre class="EnlighterJSRAW" data-enlighter-language="css">x</pre>', "css"),
        ('<pre data-language="yaml">x</pre>', "yaml"),
        ('<pre class="src src-python">x</pre>', "python"),
        ('<div class="mw-highlight mw-highlight-lang-lua mw-content-ltr"><pre>x</pre></div>', "lua"),
        ('<pre class="code python literal-block">x</pre>', "python"),
        ('<pre class="code highlight" lang="ruby">x</pre>', "ruby"),
        ('<pre lang="cs">x</pre>', None),
        ('<pre><code class="language-plaintext">x</code></pre>', None),
        ('<pre><code class="nohighlight">x</code></pre>', None),
        ('<pre class="wp-block-code"><code>x</code></pre>', None),
        ('<div class="highlight"><span class="lang">Bash</span><button>Copy</button><pre>x</pre></div>', "bash"),
        ('<div class="tabbed-set"><input type="radio"><label>C</label><div class="tabbed-content"><div class="tabbed-block">'
         '<div class="language-c highlight"><pre><code>x</code></pre></div></div></div></div>', "c"),
    ],
)  # fmt: skip
def test_language_of_the_highlighters(html: str, language: str | None) -> None:
    assert first(html) == code.Code("x", language)


def test_prompts_of_a_shell_go_where_no_output_needs_them() -> None:
    prompt = '<pre><span class="gp">$ </span>ls\n<span class="gp">$ </span>pwd</pre>'
    assert blocks(prompt) == ["ls\npwd"]
    assert blocks(prompt.replace("pwd", 'pwd\n<span class="go">/home</span>')) == ["$ ls\n$ pwd\n/home"]
    assert blocks('<pre><span class="gp">&gt;&gt;&gt; </span>1</pre>') == [">>> 1"]


def test_two_blocks_stay_two() -> None:
    both = '<div class="highlight"><pre>a</pre><pre>b</pre></div>'
    assert blocks(both) == ["a", "b"]
    assert blocks('<div class="code-sample"><p>Text.</p><pre>a</pre></div>') == ["a"]
    assert blocks('<figure class="highlight"><figcaption>main.c</figcaption><pre>a</pre></figure>') == ["a"]


def test_a_gutter_alone_shows_nothing() -> None:
    pre = dom.parse('<td class="gutter"><pre>1\n2</pre></td>').find(".//pre")
    assert code.block(pre) == code.Code("", None)


@pytest.mark.parametrize(
    "html",
    [
        "<p>Call <code>f\n(x)</code> now</p>",
        "<p><code>one line</code></p>",
        "<p><code>a</code> <code>b</code></p>",
        '<div class="source">A paragraph.</div>',
        '<div class="code">SAVE10</div>',
        "<table><tr><td>1</td><td><code>x</code></td></tr></table>",
        '<pre>text <img src="x.png"> text</pre>',
    ],
)
def test_no_code_block(html: str) -> None:
    assert blocks(html) == []


def test_inline_code() -> None:
    element = lxml.html.fromstring("<code> a\n <b>b</b>\xa0c </code>")
    assert code.inline(element) == "a b c"
    assert [code.inline(lxml.html.Element(tag)) for tag in ("kbd", "samp", "tt", "var", "b")] == [
        "",
        "",
        "",
        None,
        None,
    ]


NAMES = [
    "highlight",
    "gutter",
    "code",
    "line",
    "hljs",
    "lineno",
    "copy",
    "gp",
    "blob-code",
    "codeblock",
    "fragment",
]
TREES = st.recursive(
    st.text(alphabet="ab1 \n\xa0\u200b$", max_size=8),
    lambda inner: st.builds(
        lambda tag, name, parts: f'<{tag} class="{name}">{"".join(parts)}</{tag}>',
        st.sampled_from(["div", "pre", "code", "span", "table", "tr", "td", "br", "p", "ol", "li", "figure"]),
        st.sampled_from(NAMES),
        st.lists(inner, max_size=4),
    ),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(TREES)
def test_never_raises_and_changes_nothing(html: str) -> None:
    root = dom.parse(f"<body>x{html}</body>")
    before = lxml.html.tostring(root)
    for element in root.iter():
        found = code.block(element)
        assert found is None or found.code == found.code.rstrip()
        code.inline(element)
    assert lxml.html.tostring(root) == before


def test_nesting_and_width_cost_no_more_than_their_size() -> None:
    deep = '<div class="highlight">' * 1500 + "<pre>x</pre>" + "</div>" * 1500
    wide = '<div class="highlight">' + "<pre>1 2</pre>" * 20_000 + "</div>"
    assert blocks(deep) == ["x"]
    assert len(blocks(wide)) == 20_000
