"""Hostile pages: each breaks code that does not expect it."""

from __future__ import annotations

import random
from collections.abc import Iterator


def hostile(size: int = 1) -> Iterator[tuple[str, bytes]]:
    """(name, payload) of pages that break naive code; `size` divides the large ones."""
    frame = b"<html><head><title>t</title></head><body>%s</body></html>"
    yield "empty", b""
    yield "spaces", b" \n\t " * 10
    yield "nul_bytes", frame % b'<p title="a\0b">Before the null\0 byte.</p>\0<p>After it.</p>'
    yield "binary", random.Random("binary").randbytes(200_000 // size)
    yield "image_as_html", b"\x89PNG\r\n\x1a\n" + random.Random("png").randbytes(50_000 // size)
    yield "long_text", frame % (b"<p>" + b"word " * (2_000_000 // size) + b"</p><p>tail</p>")
    yield "deep_divs", frame % (b"<div>" * (100_000 // size) + b"inner")
    yield "deep_inline", frame % (b"<b><i>" * (50_000 // size) + b"inner")
    yield "many_cells", frame % (b"<table>" + b"<tr><td>1<td>2<td>3<td>4" * (50_000 // size) + b"</table>")
    yield (
        "many_attributes",
        frame % (b"<p " + b" ".join(b"a%d=x" % n for n in range(300_000 // size)) + b">text</p>"),
    )
    yield "long_attribute", frame % (b'<p title="' + b"x" * (10_000_000 // size) + b'">text</p>')
    yield "endless_attribute", b'<html><body><p>text</p><p title="' + b"x" * (10_000_000 // size)
    yield "endless_tag", b"<html><body><p>text</p><p " + b"a=1 " * (500_000 // size)
    yield "endless_comment", b"<html><body><p>text</p><!-- " + b"- " * (2_000_000 // size)
    yield "open_brackets", frame % (b"<" * (1_000_000 // size))
    yield "unclosed_paragraphs", frame % (b"<p>a few words" * (100_000 // size))
    yield "entities", frame % (b"<p>" + b"&amp;&#x110000;&#0;&bogus;&lt" * (100_000 // size) + b"</p>")
    yield (
        "wrong_encoding",
        b'<html><head><meta charset="utf-16"></head><body><p>na\xefve caf\xe9 \xff\xfe</p></body></html>',
    )
    yield "lone_surrogates", "<html><body><p>a\ud800b</p></body></html>".encode("utf-8", "surrogatepass")
    yield "frameset", b'<html><frameset cols="1,2"><frame src="a"><frame src="b"></frameset></html>'
    yield "no_markup", b"only words, no element at all"
