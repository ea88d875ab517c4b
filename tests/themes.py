"""Themes of synthetic hosts: each function writes one page, with what is main marked in it.

Marks (taken out by `sites.site`): the attribute MAIN on maximal main elements, the attribute OUT on boilerplate
inside them, the character TEXT at the start of a main text node that has no element of its own.
What is main: the title heading and the body; on listings the central list; in forums the posts; on product pages
name, price, description and attributes.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from prose import LANGUAGES, Prose

MAIN, OUT, TEXT = " data-gold-main", " data-gold-out", "\ue000"


@dataclass(frozen=True)
class Host:
    """What all pages of a host share: names for its menus and footer."""

    name: str
    language: str
    menu: tuple[str, ...]
    footer: str
    token: str


@dataclass(frozen=True)
class Sheet:
    """What a theme wrote: the page's template, its path and its marked HTML."""

    template: str
    path: str
    html: str


Theme = Callable[[Host, int, random.Random], Sheet]


def host(name: str, language: str, seed: int) -> Host:
    rng = random.Random(f"host/{seed}/{name}")
    prose = Prose(rng, language)
    menu = tuple(prose.phrase(1, 2) for _ in range(rng.randint(5, 9)))
    return Host(name, language, menu, prose.paragraph(1, 2), f"{rng.randrange(16**5):05x}")


def _links(labels: tuple[str, ...] | list[str], before: str = "<li>", after: str = "</li>") -> str:
    return "".join(f'{before}<a href="/x/{n}">{label}</a>{after}' for n, label in enumerate(labels))


def _phrases(prose: Prose, count: int, low: int = 2, high: int = 5) -> list[str]:
    return [prose.phrase(low, high) for _ in range(count)]


def _date(rng: random.Random) -> str:
    return f"{rng.randint(2009, 2025)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"


def _paragraphs(prose: Prose, low: int, high: int) -> str:
    return "\n".join(f"<p>{prose.paragraph()}</p>" for _ in range(prose.rng.randint(low, high)))


def _kind(index: int, home: str, listing: str, item: str, every: int = 8) -> str:
    """The first page is the home page, one in `every` a listing."""
    return home if index == 0 else listing if index % every == 3 else item


# --- blog: classes of the page's own id on body and article, comments, sharing buttons inside the content


def blog(site: Host, index: int, rng: random.Random) -> Sheet:
    prose = Prose(rng, site.language)
    kind = _kind(index, "home", "listing", "article")
    body = {"home": _blog_home, "listing": _blog_listing, "article": _blog_article}[kind](prose, index)
    classes = {"home": "home blog", "listing": f"archive category category-{index}"}.get(
        kind, f"single single-post postid-{1000 + index} single-format-standard"
    )
    path = {"home": "/", "listing": f"/category/{index}/"}.get(kind, f"/{rng.randint(2010, 2025)}/post-{index}/")
    html = f"""<!DOCTYPE html>
<html lang="{site.language}"><head><meta charset="utf-8"><title>{site.name} {index}</title>
<style>.site{{margin:0}}</style></head>
<body class="{classes} logged-out"><!-- page {index} -->
<div id="page" class="site">
<header id="masthead"><a class="logo" href="/">{site.name}</a>
<nav class="main-nav"><ul class="menu">{_links(site.menu)}</ul></nav></header>
<div id="content" class="site-content">{body}
<aside id="secondary" class="widget-area">
<section class="widget widget_recent"><h2>Recent</h2><ul>{_links(site.menu[:4])}</ul></section>
<section class="widget widget_tags">{_links(_phrases(prose, 6, 1, 1), "<span>", "</span> ")}</section></aside></div>
<footer id="colophon"><p>{site.footer}</p><p>© 2025 {site.name}</p></footer></div>
<script>var page={{"id":{index},"t":"<p>{prose.phrase()}</p>"}};</script></body></html>"""
    return Sheet(kind, path, html)


def _blog_article(prose: Prose, index: int) -> str:
    rng = prose.rng
    figure = f'<figure><img src="/i/{index}.jpg" alt="x"><figcaption>{prose.sentence()}</figcaption></figure>'
    comments = "".join(
        f'<li class="comment depth-{rng.randint(1, 3)}" id="comment-{index}{n}"><b>{prose.phrase(1, 1)}</b>'
        f"<p>{prose.paragraph(1, 3)}</p></li>"
        for n in range(rng.choice((0, 0, 1, 3, 12, 40)))
    )
    quote = f"<blockquote><p>{prose.sentence()}</p></blockquote>" if rng.random() < 0.4 else ""
    return f"""<main><article id="post-{1000 + index}" class="post-{1000 + index} post type-post hentry category-{index % 5}">
<header class="entry-header"><h1 class="entry-title"{MAIN}>{prose.phrase(4, 8)}</h1>
<div class="entry-meta">Posted on {_date(rng)} by <a href="/author/1">{prose.phrase(1, 2)}</a></div></header>
<div class="entry-content"{MAIN}>{_paragraphs(prose, 1, 4)}{figure if rng.random() < 0.5 else ""}
<h2>{prose.phrase()}</h2>{_paragraphs(prose, 1, 5)}{quote}
<ul>{"".join(f"<li>{prose.sentence()}</li>" for _ in range(rng.randint(0, 6)))}</ul>
<div class="sharedaddy"{OUT}><h3>Share this</h3><ul>{_links(["Mail", "Print", "Link"])}</ul></div></div>
<footer class="entry-footer">Tags: {_links(_phrases(prose, 3, 1, 1), "", " ")}</footer></article>
<div class="related"><h2>Related</h2><ul>{_links(_phrases(prose, 3))}</ul></div>
<div id="comments"><h2>Comments</h2><ol class="comment-list">{comments}</ol></div></main>"""


def _excerpts(prose: Prose, count: int, main: str = MAIN) -> str:
    return "".join(
        f'<div class="post-summary"{main}><h2><a href="/p/{n}">{prose.phrase(4, 8)}</a></h2>'
        f"<p>{prose.paragraph(1, 3)}</p><a class='more'{OUT} href='/p/{n}'>Continue reading</a></div>"
        for n in range(count)
    )


def _blog_listing(prose: Prose, index: int) -> str:
    return f"""<main class="archive-main"><h1 class="page-title"{MAIN}>{prose.phrase(1, 3)}</h1>
{_excerpts(prose, prose.rng.randint(2, 10))}<nav class="pagination">{_links(["1", "2", "3"], "", " ")}</nav></main>"""


def _blog_home(prose: Prose, index: int) -> str:
    return f"""<main class="front"><div class="hero"{MAIN}><h1>{prose.phrase(3, 6)}</h1><p>{prose.paragraph()}</p></div>
<div class="latest">{_excerpts(prose, 5)}</div></main>"""


# --- documentation: a long sidebar, nested sections, code, tables on some pages only


def docs(site: Host, index: int, rng: random.Random) -> Sheet:
    prose = Prose(rng, site.language)
    kind = _kind(index, "index", "api", "guide", every=4)
    sections = "".join(_docs_section(prose, kind, depth=1) for _ in range(rng.randint(1, 4)))
    if kind == "index":
        sections = f'<div class="toctree-wrapper"><ul>{_links(_phrases(prose, rng.randint(8, 25)))}</ul></div>'
    toc = f'<div class="contents topic"{OUT}><p>Contents</p><ul>{_links(_phrases(prose, 4))}</ul></div>'
    html = f"""<!DOCTYPE html>
<html lang="{site.language}" class="no-js"><head><meta charset="utf-8"><title>{index}</title></head>
<body class="wy-body-for-nav"><nav data-toggle="wy-nav-shift" class="wy-nav-side">
<div class="search"><form><input name="q"></form></div>
<ul class="toc">{_links(site.menu)}<li class="current"><a href="#">Here</a><ul>{_links(site.menu[:3])}</ul></li></ul></nav>
<section class="wy-nav-content-wrap"><div class="rst-content">
<div role="navigation" class="breadcrumbs"><ul>{_links(["Docs", prose.phrase(1, 2)])}</ul></div>
<div role="main" class="document"><div itemprop="articleBody" class="body"{MAIN}>
<h1>{prose.phrase(2, 5)}<a class="headerlink" href="#"{OUT}>¶</a></h1><p>{prose.paragraph()}</p>
{toc if kind == "guide" and rng.random() < 0.5 else ""}{sections}</div></div>
<footer><div class="rst-footer-buttons"><a href="/n">Next</a> <a href="/p">Previous</a></div><hr>
<p>© {site.name}. {site.footer}</p></footer></div></section></body></html>"""
    return Sheet(kind, "/" if index == 0 else f"/{kind}/{index}.html", html)


def _code(prose: Prose) -> str:
    rng = prose.rng
    lines = "\n".join(
        f'    <span class="n">{rng.choice("abcxyz")}{rng.randint(0, 99)}</span> <span class="o">=</span> '
        f'<span class="nf">call</span><span class="p">(</span><span class="mi">{rng.randint(0, 999)}</span>)'
        for _ in range(rng.randint(1, 8))
    )
    return f'<div class="highlight-python"><div class="highlight"><pre><span></span>def run():\n{lines}\n</pre></div></div>'


def _docs_section(prose: Prose, kind: str, depth: int) -> str:
    rng = prose.rng
    extra = _code(prose) if rng.random() < 0.6 else ""
    if rng.random() < 0.3:
        cells = "".join(
            f"<tr><td>{prose.phrase(1, 2)}</td><td>{prose.sentence()}</td></tr>" for _ in range(rng.randint(2, 9))
        )
        extra += f'<table class="docutils"><thead><tr><th>Name</th><th>Meaning</th></tr></thead><tbody>{cells}</tbody></table>'
    if rng.random() < 0.25:
        extra += f'<div class="admonition note"><p class="title">Note</p><p>{prose.sentence()}</p></div>'
    if kind == "api":
        extra += "".join(
            f'<dl class="function"><dt id="f{n}"><code>{rng.choice("fgh")}{n}(value, *, strict=False)</code></dt>'
            f"<dd><p>{prose.sentence()}</p></dd></dl>"
            for n in range(rng.randint(1, 6))
        )
    nested = _docs_section(prose, kind, depth + 1) if depth < 3 and rng.random() < 0.35 else ""
    head = f'<h{depth + 1}>{prose.phrase()}<a class="headerlink" href="#"{OUT}>¶</a></h{depth + 1}>'
    return f'<div class="section" id="s{rng.randrange(10**6)}">{head}{_paragraphs(prose, 1, 3)}{extra}{nested}</div>'


# --- forum: posts are main, the authors' panels and signatures inside each are not


def forum(site: Host, index: int, rng: random.Random) -> Sheet:
    prose = Prose(rng, site.language)
    kind = _kind(index, "board", "board", "thread", every=6)
    if kind == "board":
        rows = "".join(
            f'<tr class="row{n % 2}"><td class="icon"><img src="/t.gif"></td><td class="title"><a href="/t/{n}">'
            f'{prose.phrase(3, 8)}</a><br><span class="small">{prose.phrase(1, 1)}</span></td>'
            f'<td class="num">{rng.randint(0, 900)}</td></tr>'
            for n in range(rng.randint(5, 30))
        )
        body = f'<h1 class="forumtitle"{MAIN}>{prose.phrase(1, 3)}</h1><table class="topics"{MAIN}><tbody>{rows}</tbody></table>'
    else:
        posts = "".join(_post(prose, index, n) for n in range(rng.choice((1, 2, 3, 5, 12, 30))))
        body = f'<h1 class="topic-title"{MAIN}>{prose.phrase(3, 9)}</h1><div id="posts">{posts}</div>'
    html = f"""<!DOCTYPE html><html lang="{site.language}"><head><meta charset="utf-8"><title>{index}</title></head>
<body id="forum" class="section-view{kind}"><div id="wrap"><div class="headerbar"><b>{site.name}</b><p>{site.footer}</p></div>
<ul class="navbar">{_links(site.menu)}</ul><div id="page-body">{body}
<div class="pagination">Page 1 of 9 {_links(["2", "3"], "", " ")}</div>
<form class="jump"><select>{"".join(f"<option>{label}</option>" for label in site.menu)}</select></form></div>
<div class="online">In total there are {rng.randint(2, 99)} users online</div>
<div id="page-footer">Powered by nothing. {_links(["Privacy", "Terms"], "", " ")}</div></div></body></html>"""
    return Sheet(kind, f"/{kind}/{index}", html)


def _post(prose: Prose, index: int, number: int) -> str:
    rng = prose.rng
    quote = (
        f"<blockquote><cite>{prose.phrase(1, 1)} wrote:</cite>{prose.sentence()}</blockquote>"
        if rng.random() < 0.3
        else ""
    )
    signature = f'<div class="signature">{prose.phrase(3, 6)}</div>' if rng.random() < 0.5 else ""
    return f"""<div id="p{index}{number}" class="post bg{number % 2 + 1}"><dl class="postprofile"><dt><a href="/u">{prose.phrase(1, 1)}</a></dt>
<dd>Posts: {rng.randint(1, 9999)}</dd><dd>Joined: {_date(rng)}</dd></dl><div class="postbody"><p class="author">{_date(rng)}</p>
<div class="content"{MAIN}>{quote}{prose.paragraph(1, 5)}<br><br>{prose.paragraph(1, 3)}</div>{signature}</div></div>"""


# --- shop: a product page of many small blocks, listings of cards


def shop(site: Host, index: int, rng: random.Random) -> Sheet:
    prose = Prose(rng, site.language)
    kind = _kind(index, "listing", "listing", "product", every=5)
    cards = "".join(
        f'<li class="card" data-sku="{rng.randrange(10**6)}"><img src="/i.jpg" alt=""><a href="/p">{prose.phrase()}</a>'
        f'<span class="price">{rng.randint(1, 400)}.99</span><button{OUT}>Add to cart</button></li>'
        for _ in range(rng.randint(4, 24))
    )
    if kind == "listing":
        body = f"""<div class="facets"><h3>Filter</h3><ul>{_links(_phrases(prose, 8, 1, 1))}</ul></div>
<div class="results"><h1{MAIN}>{prose.phrase(1, 2)}</h1><div class="sort">Sort by <a href="#">price</a></div><ul class="grid"{MAIN}>{cards}</ul></div>"""
    else:
        rows = "".join(
            f"<tr><th>{prose.phrase(1, 1)}</th><td>{prose.phrase(1, 3)}</td></tr>" for _ in range(rng.randint(2, 10))
        )
        details = f'<div class="tab" id="features"{MAIN}><h2>Features</h2><ul><li>{prose.sentence()}</li></ul></div>'
        body = f"""<div class="gallery"><img src="/1.jpg"><ul>{_links(["1", "2", "3"])}</ul></div>
<div class="summary"><h1 itemprop="name"{MAIN}>{prose.phrase(2, 6)}</h1><div class="stock">In stock</div>
<div class="price-box"{MAIN}><span itemprop="price">{rng.randint(3, 900)}.50</span> EUR</div>
<form><input name="qty"><button>Add to cart</button></form></div>
<div class="description"{MAIN}>{_paragraphs(prose, 1, 3)}</div>{details if rng.random() < 0.3 else ""}
<table class="attributes"{MAIN}><tbody>{rows}</tbody></table>
<div class="upsell"><h2>You may also like</h2><ul>{_links(_phrases(prose, 4))}</ul></div>"""
    html = f"""<!DOCTYPE html><html lang="{site.language}"><head><meta charset="utf-8"><title>{index}</title></head>
<body class="catalog-{kind}-view {kind}-{index}-{site.token} page-layout"><div class="cookie">We use cookies <button>OK</button></div>
<header class="top"><a href="/">{site.name}</a><form><input name="s"></form><nav><ul class="mega">{_links(site.menu)}</ul></nav></header>
<div class="breadcrumbs">{_links(["Home", prose.phrase(1, 1)], "", " / ")}</div><div class="columns {kind}">{body}</div>
<footer><div class="col">{site.footer}</div><div class="col"><ul>{_links(["Returns", "Delivery", "Contact"])}</ul></div></footer></body></html>"""
    return Sheet(kind, "/" if index == 0 else f"/{kind}/{index}", html)


# --- old layouts: nested tables without a class, or text directly under body


def table_layout(site: Host, index: int, rng: random.Random) -> Sheet:
    prose = Prose(rng, site.language)
    kind = _kind(index, "listing", "listing", "article", every=7)
    if kind == "listing":
        inner = "".join(
            f'&#149; <a href="{n}.htm">{prose.phrase(3, 7)}</a> ({_date(rng)})<br>\n' for n in range(rng.randint(4, 30))
        )
    else:
        inner = "<br><br>\n".join(prose.paragraph() for _ in range(rng.randint(2, 7)))
        if rng.random() < 0.4:
            inner += f"<table border=1><tr><td>{prose.phrase()}<td>{rng.randint(1, 99)}</table>{prose.sentence()}"
    menu = "<br>\n".join(f'<a href="{n}.htm"><font size=2>{label}</font></a>' for n, label in enumerate(site.menu))
    html = f"""<HTML><HEAD><TITLE>{site.name}</TITLE></HEAD><BODY BGCOLOR="#FFFFFF">
<TABLE WIDTH="760" BORDER=0 CELLPADDING=0><TR><TD COLSPAN=3 BGCOLOR="#003366"><FONT COLOR=white><B>{site.name}</B></FONT></TD></TR>
<TR><TD WIDTH=140 VALIGN=top BGCOLOR="#EEEEEE">{menu}</TD><TD WIDTH=500 VALIGN=top{MAIN}>
<FONT SIZE="+2"><B>{prose.phrase(2, 6)}</B></FONT><P>{inner}</TD>
<TD WIDTH=120 VALIGN=top><FONT SIZE=1>{site.footer}</FONT></TD></TR>
<TR><TD COLSPAN=3 ALIGN=center><FONT SIZE=1>&copy; {site.name} | <A HREF="mailto:x">Mail</A></FONT></TD></TR></TABLE></BODY></HTML>"""
    return Sheet(kind, f"/{kind}{index}.htm", html)


def bare_text(site: Host, index: int, rng: random.Random) -> Sheet:
    prose = Prose(rng, site.language)
    lines = "".join(f"{TEXT}{prose.paragraph(1, 3)}<br>\n<br>" for _ in range(rng.randint(2, 6)))
    paragraphs = "".join(f"<p{MAIN}>{prose.paragraph()}\n" for _ in range(rng.randint(0, 4)))
    html = f"""<html><head><title>{site.name}</title></head><body>
<table width="100%"><tr><td>{" | ".join(f'<a href="/{label}">{label}</a>' for label in site.menu)}</td></tr></table>
<h2{MAIN}>{prose.phrase(2, 6)}</h2>{lines}{paragraphs}<hr>
<address>{site.footer} <a href="/">{site.name}</a></address></body></html>"""
    return Sheet("page", f"/page{index}.html", html)


# --- generated class names: a build hash that changes between deploys, and elements named by nothing else


def hashed(site: Host, index: int, rng: random.Random) -> Sheet:
    prose = Prose(rng, site.language)
    kind = _kind(index, "listing", "listing", "story", every=6)
    build = random.Random(f"{site.token}/{index % 3}")
    tokens = [f"sc-{build.randrange(16**6):06x} {''.join(build.choices('abcdefghijkXYZ', k=6))}" for _ in range(12)]

    def css(number: int, name: str) -> str:
        return f'class="{name}_{tokens[number].split()[0][3:]} {tokens[number]}"'

    if kind == "listing":
        items = "".join(
            f'<div {css(5, "Card")}><a href="/s/{n}"><h3>{prose.phrase(4, 8)}</h3></a><div {css(6, "Teaser")}>{prose.sentence()}</div></div>'
            for n in range(rng.randint(3, 15))
        )
        body = f"<div {css(3, 'Feed')}{MAIN}>{items}</div>"
    else:
        parts = "".join(f"<div {css(7, 'Text')}><p>{prose.paragraph()}</p></div>" for _ in range(rng.randint(2, 6)))
        promo = f'<div {css(8, "Promo")}{OUT}><a href="/subscribe">{site.menu[0]}</a><p>Subscribe for more</p></div>'
        body = f"""<div {css(3, "Story")}><h1 {css(4, "Headline")}{MAIN}>{prose.phrase(4, 9)}</h1><div {css(9, "Byline")}>{prose.phrase(1, 2)} · {_date(rng)}</div>
<div {css(10, "Body")}{MAIN}>{parts}{promo if rng.random() < 0.5 else ""}<div {css(7, "Text")}><p>{prose.paragraph()}</p></div></div></div>"""
    html = f"""<!DOCTYPE html><html lang="{site.language}" class="js build-{index % 3}"><head><meta charset="utf-8"><title>{index}</title></head>
<body><div id="__next"><div {css(0, "App")}><div {css(1, "Nav")}>{_links(site.menu, "<div>", "</div>")}</div>{body}
<div {css(11, "Rail")}><div>Popular</div>{_links(_phrases(prose, 4), "<div>", "</div>")}</div>
<div {css(2, "Footer")}><div>{site.footer}</div></div></div></div><script>window.__DATA__={{"i":{index}}}</script></body></html>"""
    return Sheet(kind, f"/{kind}/{index}-{rng.randrange(16**8):08x}", html)


# --- news: several languages; the content moves under another wrapper on some pages


def news(site: Host, index: int, rng: random.Random) -> Sheet:
    prose = Prose(rng, site.language)
    kind = _kind(index, "section", "section", "article")
    if kind == "article":
        body = _news_article(prose, index)
        if rng.random() < 0.2:
            body = f'<div class="campaign"><div class="ad">{site.menu[0]}</div>{body}</div>'
    else:
        teasers = "".join(
            f'<article class="teaser"><a href="/a/{n}"><h3>{prose.phrase(4, 9)}</h3></a><p>{prose.sentence()}</p></article>'
            for n in range(rng.randint(4, 20))
        )
        body = f'<div class="river {kind}"><h1{MAIN}>{prose.phrase(1, 2)}</h1><div class="stream"{MAIN}>{teasers}</div></div>'
    html = f"""<!DOCTYPE html>
<html lang="{site.language}" dir="{LANGUAGES[site.language].direction}"><head><meta charset="utf-8"><title>{index}</title></head>
<body class="{kind}"><header><div class="brand">{site.name}</div><nav><ul>{_links(site.menu)}</ul></nav></header>
<div class="layout">{body}<aside class="rail"><h4>{site.menu[1]}</h4><ol>{_links(_phrases(prose, 5))}</ol></aside></div>
<footer>{site.footer}<ul>{_links(site.menu[-3:])}</ul></footer></body></html>"""
    return Sheet(kind, "/" if index == 0 else f"/{kind}/{_date(rng)}/{index}", html)


def _news_article(prose: Prose, index: int) -> str:
    rng = prose.rng
    picture = f'<figure class="lead"{MAIN}><img src="/{index}.jpg" alt=""><figcaption>{prose.sentence()}</figcaption></figure>'
    box = (
        f'<aside class="inline-related"{OUT}><h4>{prose.phrase(1, 2)}</h4><a href="/r">{prose.phrase(3, 6)}</a></aside>'
    )
    return f"""<article class="story" data-id="{index}"><h1{MAIN}>{prose.phrase(5, 10)}</h1><p class="standfirst"{MAIN}>{prose.sentence()}</p>
<div class="byline"><span>{prose.phrase(1, 2)}</span><time datetime="{_date(rng)}">{_date(rng)}</time></div>
{picture if rng.random() < 0.7 else ""}<div class="text"{MAIN}>{_paragraphs(prose, 2, 5)}{box if rng.random() < 0.5 else ""}
<h2>{prose.phrase()}</h2>{_paragraphs(prose, 1, 5)}</div><div class="share">{_links(["A", "B"], "", " ")}</div></article>"""


def without_content(site: Host, index: int, rng: random.Random, theme: Theme) -> Sheet:
    """Another theme, with a page in 25 that has no main content at all: a login form in the host's frame."""
    if index % 25 != 7:
        return theme(site, index, rng)
    html = f"""<!DOCTYPE html><html lang="{site.language}"><head><meta charset="utf-8"><title>Sign in</title></head><body class="login">
<header><a href="/">{site.name}</a><ul>{_links(site.menu)}</ul></header><form class="signin"><label>Name <input name="u"></label>
<label>Password <input name="p" type="password"></label><button>Sign in</button></form><footer>{site.footer}</footer></body></html>"""
    return Sheet("login", f"/login?next={index}", html)


THEMES: dict[str, Theme] = {
    "blog": partial(without_content, theme=blog),
    "docs": docs,
    "forum": partial(without_content, theme=forum),
    "shop": partial(without_content, theme=shop),
    "table": table_layout,
    "bare": bare_text,
    "hashed": hashed,
    "news": news,
}
