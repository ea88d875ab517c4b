"""Pictures, sound and films: the address that an element means, whatever its loader hides it in."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import takewhile
from typing import Any

from lxml.html import HtmlElement

Address = Callable[[str], str]
"""Makes an address absolute."""

_SOURCES = (
    "data-src",
    "data-original",
    "data-lazy-src",
    "data-original-src",
    "data-lazy",
    "data-url",
    "data-hi-res-src",
)
_SETS = ("data-srcset", "data-lazy-srcset", "srcset")
_PLACEHOLDER = re.compile(
    r"^(?:data:|about:|javascript:|#|$)|(?:placeholder|spacer|blank|transparent|pixel|loading|lazy|1x1)[^/]*\.(?:gif|png|svg|jpe?g|webp)",
    re.IGNORECASE,
)
_CANDIDATE = re.compile(r"(\S+?),?(?:\s+([\d.]+)[wx])?(?:\s*,|\s*$)")
_SMILEY = re.compile(r"\b(?:wp-)?(?:emoji|emoticon|smiley|smilie)", re.IGNORECASE)
_PICTOGRAM = re.compile(r"[\u203c-\u3299\U0001f000-\U0001faff]")
_WORDS = re.compile(r"\w{2}")
_PICTURE_FILE = re.compile(r"\.(?:png|jpe?g|gif|svg|webp|avif|bmp)(?:[?#]|$)", re.IGNORECASE)


def emoji(image: HtmlElement) -> str | None:
    """Return the text of a picture that stands for a character: its `alt`, if that is a pictogram or a smiley."""
    alt = (image.get("alt") or "").strip()
    if not alt or len(alt) > 24:
        return None
    if _SMILEY.search(image.get("class") or "") or (_PICTOGRAM.search(alt) and not _WORDS.search(alt)):
        return alt
    return None


def image(element: HtmlElement, address: Address) -> dict[str, Any] | None:
    """Return `url`, `alt` and `title` of an `img`; None if it shows nothing that can be named."""
    found = _real(element)
    if found is None:
        # libxml2 takes what follows a `source` for its content
        sources = takewhile(lambda one: one.tag in ("source", "picture"), element.iterancestors())
        found = next((one for source in sources if (one := _real(source))), None)
    if found is None:
        following = element.getnext()  # the copy for readers without scripts
        copy = following.find(".//img") if following is not None and following.tag == "noscript" else None
        found = _real(copy) if copy is not None else None
    src = (element.get("src") or "").strip()
    if found is None and src and not src.startswith(("data:", "javascript:", "about:")):
        found = src
    alt = " ".join((element.get("alt") or "").split())
    if found is None and not alt:
        return None
    return {"url": address(found) if found else None, "alt": alt, "title": element.get("title") or None}


def media(element: HtmlElement, address: Address) -> dict[str, Any] | None:
    """Return `url`, `alt` and `title` of an `audio`, `video`, `embed` or `object`; None without an address."""
    found = element.get("src") or element.get("data")
    if not found:
        found = next((src for source in element.iter("source") if (src := source.get("src"))), None)
    if not found or found.startswith(("data:", "blob:", "javascript:")):
        return None
    label = element.get("aria-label") or element.get("alt") or ""
    return {"url": address(found.strip()), "alt": label, "title": element.get("title") or None}


def is_picture(element: HtmlElement) -> bool:
    """Whether an `embed` or `object` shows a picture."""
    kind = element.get("type") or ""
    return kind.startswith("image/") or bool(_PICTURE_FILE.search(element.get("src") or element.get("data") or ""))


def _real(element: HtmlElement) -> str | None:
    """The address that the attributes of an `img` or `source` give, the placeholders of lazy loaders aside."""
    for name in _SOURCES:
        value = (element.get(name) or "").strip()
        if value and not _PLACEHOLDER.search(value):
            return value
    src = (element.get("src") or "").strip()
    if src and not _PLACEHOLDER.search(src):
        return src
    for name in _SETS:
        value = element.get(name)
        if value:
            best = _largest(value)
            if best:
                return best
    return None


def _largest(value: str) -> str | None:
    best, size = None, -1.0
    for match in _CANDIDATE.finditer(value):
        try:
            here = float(match[2] or 1)
        except ValueError:
            here = 1.0
        if here > size and not _PLACEHOLDER.search(match[1]):
            best, size = match[1], here
    return best
