"""convert: print the Markdown, or the content list, of HTML that is taken as main content. Needs no Spark."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from spark_jobs.errors import RequestError
from spark_jobs.options import ConvertOptions
from templates.dom import PageError
from udfs.conversion.content import content_list, to_json
from udfs.conversion.markdown import markdown
from udfs.conversion.spans import Modes
from udfs.input.decoding import decode


def convert(
    html: str,
    *,
    url: str = "",
    links: Literal["none", "inline"] = "none",
    images: Literal["none", "alt", "inline"] = "none",
    as_content_list: bool = False,
) -> str:
    """Return the Markdown of HTML, a fragment or a page; with `as_content_list` its content list as JSON.

    url: of the page, to make addresses absolute. Raises PageError where it cannot be parsed.
    """
    items = content_list(html, url)
    return to_json(items) + "\n" if as_content_list else markdown(items, Modes(links, images))


def read(path: str) -> str:
    """Return the HTML of a file, or of the standard input (`-`), decoded as a page is.

    Raises RequestError where there is no such file.
    """
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror}") from error
    return decode(data, None)


def run(options: ConvertOptions) -> list[str]:
    """Return what `stencil convert` prints. Raises RequestError for a file that is missing or is no HTML."""
    try:
        text = convert(
            read(options.path),
            url=options.url,
            links=options.links,
            images=options.images,
            as_content_list=options.content_list,
        )
    except PageError as error:
        raise RequestError(f"{options.path} cannot be converted: {error.reason}") from error
    return [text.rstrip("\n")]
