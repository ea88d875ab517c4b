"""Decoding: the bytes of a page to text, by the WHATWG order with a validity check."""

from __future__ import annotations

import codecs
import re

import chardetng_py
from webencodings.labels import LABELS  # type: ignore[import-untyped]

# Python codecs for the encodings whose Python name differs, or means less than browsers read under that
# label.
_CODECS = {
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc-kr": "cp949",
    "euc-jp": "euc_jis_2004",
    "windows-874": "cp874",
    "macintosh": "mac_roman",
    "x-mac-cyrillic": "mac_cyrillic",
    "iso-8859-8-i": "iso8859_8",
    "x-user-defined": "cp1252",
}
_MULTI_BYTE = {"gb18030", "big5hkscs", "cp932", "cp949", "euc_jis_2004", "iso-2022-jp"}
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))

# WHATWG prescans 1,024 bytes, but browsers parse again at a meta that comes later, behind scripts.
_PRESCAN_BYTES = 4096
# The detector is fed only this much: its verdict is stable long before, and a page may have 16 MiB.
_DETECT_BYTES = 1 << 18
# Continuation bytes of valid UTF-8 from which it is believed against a declared legacy encoding. In
# single-byte text they would be nothing but pairs such as "Ã©". Of the pairs of GBK or Big5 text one in
# twelve is valid UTF-8 by chance; eight and no other are not.
_SINGLE_BYTE_EVIDENCE = 2
_MULTI_BYTE_EVIDENCE = 8
# So many broken sequences never take a page away from its declared UTF-8, however little else it has.
_TOLERATED_ERRORS = 3

_CHARSET = re.compile(r"""charset\s*=\s*["']?\s*([^\s"';,>]+)""", re.I)
_COMMENT = re.compile(rb"<!--.*?(?:-->|$)", re.S)
_META = re.compile(rb"<meta[\s/]([^>]*)", re.I)
_ATTRIBUTE = re.compile(rb"""([^\s=/"'>]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_XML = re.compile(rb"""\s*<\?xml[^>]*?\sencoding\s*=\s*["']([^"']+)["']""", re.I)
_NARROW_MARKUP = re.compile(rb"<[/!A-Za-z][A-Za-z]")  # not to be found in UTF-16
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f\ufffd]")


def decode(payload: bytes, content_type: str | None = None) -> str:
    """The text of an HTML page: by BOM, HTTP header or meta, each checked against the bytes, or by detection.

    `content_type` is the header's value. One bad byte never changes the encoding of a page, it becomes
    U+FFFD. NUL characters and byte order marks are removed; the result has no lone surrogates. Never raises.
    Source: https://html.spec.whatwg.org/multipage/parsing.html#determining-the-character-encoding
    """
    for mark, codec in _BOMS:
        if payload.startswith(mark):
            return _unmarked(payload.decode(codec, "replace"))
    wide = _utf16(payload)
    if wide:
        return _unmarked(payload.decode(wide, "replace"))
    header = _header_codec(payload, content_type)
    try:
        text = payload.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data":  # that is a page cut inside a character
            return _unmarked(payload.decode(_codec_of_invalid(payload, header), "replace"))
        text = payload.decode("utf-8", "replace")
    if text.isascii() and b"\x1b" not in payload:  # an escape may be ISO-2022-JP, which is all ASCII bytes
        return _unmarked(text)
    declared = header or _meta_codec(payload)
    if declared is None and text.isascii():
        declared = _codec(chardetng_py.detect(payload[:_DETECT_BYTES]))
    if declared in (None, "utf-8") or (not text.isascii() and _utf8_wins(len(payload) - len(text), 0, declared)):
        return _unmarked(text)
    return _unmarked(payload.decode(declared or "utf-8", "replace"))


def clean(text: str) -> str:
    """The text without NUL, U+FEFF and lone surrogates (what a JSON string or an old file can hold)."""
    try:
        text.isascii() or text.encode("utf-8")
    except UnicodeEncodeError:
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _unmarked(text)


def _unmarked(text: str) -> str:
    if "\0" in text:
        text = text.replace("\0", "")
    return text.replace("\ufeff", "") if "\ufeff" in text else text


def _codec_of_invalid(payload: bytes, header: str | None) -> str:
    """The codec for bytes that aren't valid UTF-8: a declared one that fits, UTF-8, or a detected one."""
    text = payload.decode("utf-8", "replace")
    errors = text.count("\ufffd") - payload.count(b"\xef\xbf\xbd")
    beyond = len(_BEYOND_ASCII.findall(text))
    nearly = beyond > 3 * errors  # legacy text is mostly errors as UTF-8; cut or spliced UTF-8 hardly has any
    for declared in (header, _meta_codec(payload)):
        if declared is None:
            continue
        if declared == "utf-8":
            if nearly or beyond >= errors or errors <= _TOLERATED_ERRORS:
                return declared
        elif nearly and _utf8_wins(beyond, errors, declared):
            return "utf-8"
        elif _fits(payload, declared, errors):
            return declared
    if nearly:
        return "utf-8"
    return _codec(chardetng_py.detect(payload[:_DETECT_BYTES], allow_utf8=False)) or "cp1252"


def _utf8_wins(evidence: int, errors: int, declared: str | None) -> bool:
    needed = _MULTI_BYTE_EVIDENCE if declared in _MULTI_BYTE else _SINGLE_BYTE_EVIDENCE
    return evidence >= needed + 20 * errors


def _fits(payload: bytes, codec: str, utf8_errors: int) -> bool:
    text = payload.decode(codec, "replace")
    # A multi-byte encoding gives itself away by its errors; single-byte ones have few holes, and are
    # believed.
    return codec not in _MULTI_BYTE or text.count("\ufffd") <= min(utf8_errors, _TOLERATED_ERRORS + len(text) // 100)


def _utf16(payload: bytes) -> str | None:
    """UTF-16 without a mark: Latin markup has a NUL in every other byte."""
    head = payload[:256]
    half = len(head) // 2
    low, high = head[1::2].count(0), head[0::2].count(0)
    if half < 2 or max(low, high) < 0.4 * half:
        return None
    if low > 4 * high:
        return "utf-16-le"
    return "utf-16-be" if high > 4 * low else None


def _header_codec(payload: bytes, content_type: str | None) -> str | None:
    codec = _codec(_header_label(content_type))
    is_wide = codec is not None and codec.startswith("utf-16")
    return None if is_wide and _NARROW_MARKUP.search(payload, 0, _PRESCAN_BYTES) else codec


def _header_label(content_type: str | None) -> str | None:
    match = _CHARSET.search(content_type) if content_type else None
    return match.group(1) if match else None


def _meta_codec(payload: bytes) -> str | None:
    """The codec that a meta element or XML declaration names; UTF-16 can't be true there and means UTF-8."""
    head = _COMMENT.sub(b"", payload[:_PRESCAN_BYTES])
    for tag in _META.findall(head):
        attributes: dict[bytes, bytes] = {}
        for name, *values in _ATTRIBUTE.findall(tag):
            attributes.setdefault(name.lower(), b"".join(values))
        label = attributes.get(b"charset", b"").decode("latin-1")
        if not label and attributes.get(b"http-equiv", b"").strip().lower() == b"content-type":
            label = _header_label(attributes.get(b"content", b"").decode("latin-1")) or ""
        codec = _codec(label)
        if codec:
            return "utf-8" if codec.startswith("utf-16") else codec
    match = _XML.match(head)
    codec = _codec(match.group(1).decode("latin-1")) if match else None
    return "utf-8" if codec and codec.startswith("utf-16") else codec


def _codec(label: str | None) -> str | None:
    """The Python codec for what browsers read under a label; None for a label that they don't know."""
    name = LABELS.get(label.strip().lower(), "replacement") if label else "replacement"
    return None if name == "replacement" else _CODECS.get(name, name)
