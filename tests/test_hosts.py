from __future__ import annotations

import socket
from pathlib import Path

import pytest
from archives import faults
from hypothesis import given
from hypothesis import strategies as st

from udfs.hosts import host, registered_domain


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://www.Example.COM/a?b#c", "www.example.com"),
        ("https://example.com.:443/", "example.com"),
        ("http://example.com:443/", "example.com:443"),
        ("http://user:secret@example.com:8080/a", "example.com:8080"),
        ("http://example.com:/", "example.com"),
        ("http://example.com:port/", "example.com"),
        ("http://example.com:99999/", "example.com"),
        ("http://bücher.example/", "xn--bcher-kva.example"),
        ("http://BÜCHER。example/", "xn--bcher-kva.example"),
        ("http://b%C3%BCcher.example/", "xn--bcher-kva.example"),
        ("http://i❤.example/", "xn--i-7iq.example"),
        ("http://xn--bcher-kva.example/", "xn--bcher-kva.example"),
        ("http://my_site.example.com/", "my_site.example.com"),
        ("http://-a-.example.com/", "-a-.example.com"),
        ("http://192.0.2.10:80/b", "192.0.2.10"),
        ("http://[2001:DB8:0:0::1]/d", "[2001:db8::1]"),
        ("http://[2001:db8::1]:8080/d", "[2001:db8::1]:8080"),
        ("http://[fe80::1%25eth0]/", "[fe80::1]"),
        ("  http://example.com/\n", "example.com"),
        ("http:\\\\example.com\\a", "example.com"),
        ("//example.com/a", "example.com"),
        ("http://[2001:db8::1/d", ""),
        ("example.com/a", ""),
        ("urn:uuid:1", ""),
        ("dns:example.com", ""),
        ("", ""),
    ],
)
def test_host(url: str, key: str) -> None:
    assert host(url) == key


@pytest.mark.parametrize(
    ("key", "domain"),
    [
        ("www.example.com", "example.com"),
        ("shop.alpha.co.uk", "alpha.co.uk"),
        ("a.gamma.uk.com", "gamma.uk.com"),
        ("anna.blogspot.com", "anna.blogspot.com"),
        ("a.b.example.com:8080", "example.com"),
        ("www.com", "www.com"),
        ("co.uk", "co.uk"),
        ("localhost", "localhost"),
        ("192.0.2.10", "192.0.2.10"),
        ("192.0.2.10:8080", "192.0.2.10"),
        ("[2001:db8::1]", "[2001:db8::1]"),
        ("[2001:db8::1]:8080", "[2001:db8::1]"),
        ("", ""),
    ],
)
def test_registered_domain(key: str, domain: str) -> None:
    assert registered_domain(key) == domain


def test_registered_domain_needs_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("network")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert registered_domain("no.network.example.co.uk") == "example.co.uk"


@given(st.text(), st.sampled_from(["", "http://", "https://[", "http://a:"]))
def test_any_text_has_a_key(text: str, before: str) -> None:
    key = host(before + text)
    assert key.isascii() and key == key.lower()
    assert not key or registered_domain(key)


def test_faults(shared: Path) -> None:
    for name, fault in faults(shared, "host").items():
        expected = fault["assert"]
        keys = [host(url) for url in fault["input"]]
        domains = [registered_domain(key) for key in keys]
        if "distinct_keys" in expected:
            assert len(set(keys)) == expected["distinct_keys"], name
        for group in expected.get("groups", []):
            assert len({domains[i] for i in group}) == 1, name
            assert not {domains[i] for i in group} & {d for i, d in enumerate(domains) if i not in group}, name
        assert expected.get("key", keys[0]) == keys[0], name
        assert not set(keys + domains) & set(expected.get("not_keys", [])), name
