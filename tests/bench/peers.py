"""Other extractors as functions from a page to its main text, each in the setting that its authors recommend.

trafilatura: balanced (its default), once with comments (its default) and once without. resiliparse: main content,
without bullets and alternative texts, which no ground truth here has. readability-lxml: `summary`. jusText: the stop
words of the page's language, which the ground truth tells it, else of English. magic-html: its article extractor, as
it takes a page of unknown kind; the package on PyPI is that of its authors and asks for Python 3.12.
Where the result is HTML, its text is taken as Stencil takes it, outside of the time that is counted.
"""

from __future__ import annotations

import functools
import importlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from templates.dom import PageError, parse, visible_text


@dataclass(frozen=True)
class Peer:
    """An extractor. extract: HTML and language to what it finds; text: that as text, which is not timed."""

    name: str
    version: str
    extract: Callable[[str, str], Any]
    text: Callable[[Any], str]


STOPLISTS = {
    "ar": "Arabic", "bg": "Bulgarian", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek",
    "es": "Spanish", "et": "Estonian", "fa": "Persian", "fi": "Finnish", "fr": "French", "he": "Hebrew", "hi": "Hindi",
    "hu": "Hungarian", "id": "Indonesian", "it": "Italian", "ko": "Korean", "lt": "Lithuanian", "lv": "Latvian",
    "nl": "Dutch", "no": "Norwegian_Bokmal", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian",
    "sk": "Slovak", "sl": "Slovenian", "sr": "Serbian", "sv": "Swedish", "tr": "Turkish", "uk": "Ukrainian",
    "vi": "Vietnamese",
}  # fmt: skip


def _version(package: str) -> str:
    return f"{package} {metadata.version(package)}"


def from_html(html: str | None) -> str:
    """Return the visible text of HTML that an extractor made."""
    try:
        return visible_text(parse(html or ""))
    except PageError:
        return ""


def trafilatura() -> list[Peer]:
    module = importlib.import_module("trafilatura")

    def extract(comments: bool, html: str, lang: str) -> str | None:
        found: str | None = module.extract(html, include_comments=comments)
        return found

    return [
        Peer(name, _version("trafilatura"), functools.partial(extract, comments), lambda found: found or "")
        for name, comments in {"trafilatura": True, "traf. no comments": False}.items()
    ]


def resiliparse() -> list[Peer]:
    module = importlib.import_module("resiliparse.extract.html2text")

    def extract(html: str, lang: str) -> str:
        return str(module.extract_plain_text(html, main_content=True, list_bullets=False, alt_texts=False))

    return [Peer("resiliparse", _version("resiliparse"), extract, str)]


def readability() -> list[Peer]:
    document = importlib.import_module("readability").Document
    version = _version("readability-lxml")
    return [Peer("readability", version, lambda html, lang: document(html).summary(), from_html)]


def justext() -> list[Peer]:
    module = importlib.import_module("justext")

    @functools.cache
    def words(lang: str) -> frozenset[str]:
        found: frozenset[str] = module.get_stoplist(STOPLISTS.get(lang, "English"))
        return found

    def extract(html: str, lang: str) -> str:
        return "\n".join(part.text for part in module.justext(html, words(lang)) if not part.is_boilerplate)

    return [Peer("justext", _version("justext"), extract, str)]


def magic_html() -> list[Peer]:
    extractor = importlib.import_module("magic_html").GeneralExtractor()
    version = _version("magic-html")
    return [Peer("magic-html", version, lambda html, lang: extractor.extract(html).get("html"), from_html)]


PEERS: dict[str, Callable[[], list[Peer]]] = {
    "trafilatura": trafilatura,
    "resiliparse": resiliparse,
    "readability-lxml": readability,
    "justext": justext,
    "magic-html": magic_html,
}


def installed() -> tuple[list[Peer], list[str]]:
    """Return the peers that can be imported, and the names of packages that cannot."""
    found, missing = [], []
    for package, make in PEERS.items():
        try:
            found += make()
        except ImportError:
            missing.append(package)
    for name in ("trafilatura", "readability", "magic_html", "htmldate", "courlan"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return found, missing
