"""Hosts: the grouping key of a page, from its URL."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from urllib.parse import unquote, urlsplit

import idna
import tldextract

# The snapshot that the package ships, never fetched or cached: executors have no network, and two runs must
# agree. Private suffixes are in: blogspot.com and github.io hold millions of unrelated sites.
_SUFFIXES = tldextract.TLDExtract(cache_dir=None, suffix_list_urls=(), include_psl_private_domains=True)
_DEFAULT_PORTS = {"http": 80, "https": 443}
_DOTS = re.compile("[.\u3002\uff0e\uff61]")  # UTS 46: the ideographic full stops separate labels too


@lru_cache(maxsize=65536)  # pages of one split come from few hosts, compared with their number
def host(url: str) -> str:
    """The grouping key of a URL: its host, lower-cased, in punycode, without a trailing dot.

    A port stays only where it isn't the scheme's own (another port is another server: `example.com:8080`). An
    IP address is its own host, IPv6 compressed and in brackets. "" if the URL has no host. Never raises.
    """
    try:
        parts = urlsplit(url.strip().replace("\\", "/"))
        name = unquote(parts.hostname or "").strip()
    except ValueError:  # brackets that don't close, characters that normalise to separators
        return ""
    try:
        port = parts.port
    except ValueError:  # not a number: the host is still the host
        port = None
    key = _ipv6(name) if ":" in name else ".".join(_punycode(label) for label in _DOTS.split(name.rstrip(".")))
    if not key:
        return ""
    return key if port is None or port == _DEFAULT_PORTS.get(parts.scheme) else f"{key}:{port}"


def _ipv6(name: str) -> str:
    try:
        return f"[{ipaddress.IPv6Address(name.partition('%')[0]).compressed}]"
    except ValueError:
        return ""


def _punycode(label: str) -> str:
    if label.isascii():  # underscores and what else the DNS carries in practice stay as they are
        return label.lower()
    try:
        return idna.encode(label, uts46=True).decode("ascii").lower()
    except idna.IDNAError:  # a label that IDNA 2008 forbids (emoji, symbols) resolves all the same
        return "xn--" + label.lower().encode("punycode", "replace").decode("ascii")


@lru_cache(maxsize=65536)
def registered_domain(host: str) -> str:
    """The registrable domain of a host key, by the public suffix list with its private part.

    `www.alpha.co.uk` gives `alpha.co.uk`, `anna.blogspot.com` itself. The port is dropped. An IP address, a
    bare suffix and a name without a suffix stand for themselves.
    """
    name = host if host.endswith("]") else re.sub(r":\d+$", "", host)
    if name.startswith("["):
        return name
    return _SUFFIXES(name).top_domain_under_public_suffix or name
