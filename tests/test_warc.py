from __future__ import annotations

import gzip
import io
import json
import re
import tracemalloc
import zlib
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from archives import HTML_HEAD, fault_input, faults, html, packed, read, record
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from udfs.input import warc
from udfs.input.sources import Page, SourceOptions

THREE = [record(html(f"Record {i}."), i) for i in range(3)]


def texts(pages: list[Page]) -> list[str]:
    return [re.sub("<h1>.*?</h1>|<[^>]*>", "", page.html) for page in pages]


def brotli(data: bytes) -> bytes:
    return bytes(pa.Codec("brotli").compress(data, asbytes=True))


def with_coding(name: str, header: str = "Content-Encoding") -> str:
    return f"{HTML_HEAD}{header}: {name}\r\n"


@pytest.mark.parametrize("name", ["x.warc", "x.warc.gz"])
def test_records_and_their_addresses(tmp_path: Path, name: str) -> None:
    pages, skipped = read(tmp_path, b"".join(THREE) if name == "x.warc" else packed(*THREE), name)
    starts = [len(b"".join(THREE[:i])) if name == "x.warc" else len(packed(*THREE[:i])) for i in range(3)]
    assert [page.offset for page in pages] == starts
    assert [page.url for page in pages] == [f"http://a.example/{i}" for i in range(3)]
    assert [page.html for page in pages] == [html(f"Record {i}.").decode() for i in range(3)]
    assert {page.split for page in pages} == {str(tmp_path / name)}
    assert all(page.error is None and page.truncated is None for page in pages)
    assert not skipped


def test_page_ids_do_not_depend_on_the_place(tmp_path: Path) -> None:
    plain, _ = read(tmp_path, b"".join(THREE))
    other, _ = read(tmp_path, packed(*reversed(THREE)), "y.warc.gz")
    assert {page.page_id for page in plain} == {page.page_id for page in other}
    assert len({page.page_id for page in plain}) == 3
    assert all(re.fullmatch("[0-9a-f]{16}", page.page_id) for page in plain)


def test_what_is_no_page_is_counted(tmp_path: Path) -> None:
    data = [
        record(b"format: WARC\r\n", http=None, kind="warcinfo"),
        record(b"GET / HTTP/1.1\r\n\r\n", http=None, kind="request"),
        record(b"fetchTimeMs: 12\r\n", http=None, kind="metadata"),
        record(b"", kind="revisit"),
        record(html("gone"), http="HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n"),
        record(html("moved"), http="HTTP/1.0 301 \r\nContent-Type: text/html\r\n"),
        record(b"%PDF-1.4", http="HTTP/1.1 200 OK\r\nContent-Type: Application/PDF; x=y\r\n"),
        record(b"{}", http="HTTP/1.1 200 OK\r\nContent-Type: some nonsense {}\r\n"),
        record(b"\x89PNG", http="HTTP/1.1 200 OK\r\n"),
        record(b"ICY 200 OK\r\n\r\n", http=None),
        record(html("found")),
    ]
    pages, skipped = read(tmp_path, packed(*data), "x.warc.gz")
    assert texts(pages) == ["found"]
    reasons = "record_warcinfo record_request record_metadata record_revisit status_404 status_301"
    types = "type_application/pdf type_invalid type_unknown damaged_http"
    assert skipped == dict.fromkeys(f"{reasons} {types}".split(), 1)
    pages, _ = read(tmp_path, packed(*data), "x.warc.gz", SourceOptions(statuses=(404, 301)))
    assert texts(pages) == ["gone", "moved"]


def test_pages_without_a_type_are_sniffed(tmp_path: Path) -> None:
    bare = "HTTP/1.1 200 OK\r\nServer: x\r\n"
    bodies = [
        html("a"),
        b"\n <!DOCTYPE HTML><p>b",
        b"<?xml version='1.0'?>\n<html><p>c",
        b"<!-- x --><p>d",
        b"text",
    ]
    pages, skipped = read(tmp_path, b"".join(record(body, http=bare) for body in bodies))
    assert [text.strip()[:1] for text in texts(pages)] == ["a", "b", "c", "d"]
    assert skipped == {"type_unknown": 1}


def test_codings(tmp_path: Path) -> None:
    page = html("The text of the page, long enough to be compressed.")
    chunked = b"14;x=y\r\n" + page[:20] + b"\r\n" + b"%X\r\n" % len(page[20:]) + page[20:] + b"\r\n0\r\n\r\n"
    raw_deflate = zlib.compressobj(wbits=-15)
    bodies = {
        with_coding("gzip"): gzip.compress(page),
        with_coding("x-gzip "): gzip.compress(page[:30]) + gzip.compress(page[30:]),
        with_coding("deflate"): zlib.compress(page),
        with_coding("Deflate"): raw_deflate.compress(page) + raw_deflate.flush(),
        with_coding("br"): brotli(page),
        with_coding("zstd"): pa.Codec("zstd").compress(page, asbytes=True),
        with_coding("gzip, br"): brotli(gzip.compress(page)),
        with_coding("chunked", "Transfer-Encoding"): chunked,
        with_coding("gzip, chunked", "Transfer-Encoding"): b"%x\n%s\n0\n"
        % (
            len(gzip.compress(page)),
            gzip.compress(page),
        ),
        HTML_HEAD: gzip.compress(gzip.compress(page)),
        HTML_HEAD + "X: y\r\n": pa.Codec("zstd").compress(page, asbytes=True),
        **{with_coding(coding) + "X: plain\r\n": page for coding in ("gzip", "deflate", "br", "zstd", "unheard")},
        with_coding("chunked", "Transfer-Encoding") + "X: whole\r\n": page,
    }
    pages, skipped = read(tmp_path, packed(*(record(body, http=http) for http, body in bodies.items())), "x.warc.gz")
    assert [(http, page.html, page.truncated) for http, page in zip(bodies, pages, strict=True)] == [
        (http, page.decode(), None) for http in bodies
    ]
    assert not skipped


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "chunked"])
def test_codings_that_break_off(tmp_path: Path, coding: str) -> None:
    page = html(" ".join(f"Sentence {i} of a long page." for i in range(3000)))
    body, header = {
        "gzip": (gzip.compress(page), "Content-Encoding"),
        "deflate": (zlib.compress(page), "Content-Encoding"),
        "br": (brotli(page), "Content-Encoding"),
        "zstd": (pa.Codec("zstd").compress(page, asbytes=True), "Content-Encoding"),
        "chunked": (b"%x\r\n" % len(page) + page, "Transfer-Encoding"),
    }[coding]
    http = with_coding(coding, header)
    [cut], _ = read(tmp_path, record(body[: len(body) * 2 // 3], http=http))
    assert cut.truncated == "coding"
    assert cut.error == ("undecodable" if coding == "zstd" else None)  # one block of zstd is all or nothing
    assert page.startswith(cut.html.encode())
    [cut], _ = read(tmp_path, record(body[:-20], http=http, extra="WARC-Truncated: length\r\n"))
    assert cut.truncated == "length"


def test_damaged_chunks_keep_the_text(tmp_path: Path) -> None:
    body = b"10\r\n<html><body><p>A\r\nxyz\r\nthe rest"
    [page], _ = read(tmp_path, record(body, http=with_coding("chunked", "Transfer-Encoding")))
    assert page.html.startswith("<html><body><p>A") and page.html.endswith("the rest")
    assert page.truncated == "coding"


def test_pages_that_have_no_html(tmp_path: Path) -> None:
    data = [
        record(b"", 1),
        record(b" \r\n\0\0 ", 2),
        record(b"%PDF-1.4 \x80\x81", 3),
        record(bytes(range(256)) * 10, 4),
        record(b"\x1f\x8b\x08\x00damaged from the start", 5),
        record(b"<p>" + b"x" * 3000, 6),
        record(html("No address."), 7).replace(b"WARC-Target-URI: http://a.example/7\r\n", b""),
        record(gzip.compress(b"<p>" + b"x" * 100_000), 8, http=with_coding("gzip")),
    ]
    pages, skipped = read(tmp_path, packed(*data), "x.warc.gz", SourceOptions(max_page_bytes=3000))
    errors = ["empty", "empty", "binary", "binary", "undecodable", "too_large", "no_url", "too_large"]
    assert [page.error for page in pages] == errors
    assert {page.html for page in pages} == {""}
    assert not skipped


def test_truncation_is_told(tmp_path: Path) -> None:
    [page], _ = read(tmp_path, record(html("Start of a long page")[:50], extra="WARC-Truncated: Length\r\n"))
    assert page.truncated == "length" and "Start of a long" in page.html


@pytest.mark.parametrize("length", [0, 10, 120, 140, 400, 3000, 10**15, "x", "-5"])
@pytest.mark.parametrize("name", ["x.warc", "x.warc.gz", "whole.warc.gz"])
def test_wrong_lengths(tmp_path: Path, length: int | str, name: str) -> None:
    records = [THREE[0], record(html("A record of wrong length."), 7, length=length), *THREE[1:]]
    data = b"".join(records)
    data = {"x.warc": data, "x.warc.gz": packed(*records), "whole.warc.gz": packed(data)}[name]
    pages, skipped = read(tmp_path, data, name)
    assert texts(pages) == ["Record 0.", "A record of wrong length.", "Record 1.", "Record 2."]
    assert pages[1].html == html("A record of wrong length.").decode()
    assert skipped == {"wrong_length": 1}


def test_a_last_record_of_wrong_length(tmp_path: Path) -> None:
    short = record(html("A record of wrong length."), length=120)
    assert texts(read(tmp_path, THREE[0] + short)[0]) == ["Record 0.", "A record of wrong length."]
    long = record(html("A record of wrong length."), length=4000)
    pages, skipped = read(tmp_path, packed(THREE[0], long), "x.warc.gz")
    assert texts(pages) == ["Record 0.", "A record of wrong length."] and skipped == {"wrong_length": 1}
    pages, skipped = read(tmp_path, THREE[0] + long)
    assert texts(pages) == ["Record 0."] and skipped == {"truncated_file": 1}


def test_a_warc_inside_a_record_is_not_read(tmp_path: Path) -> None:
    inner = record(b"<p>" + THREE[1], 9)
    assert len(read(tmp_path, inner + THREE[2])[0]) == 2


@pytest.mark.parametrize("name", ["x.warc", "x.warc.gz", "whole.warc.gz"])
def test_files_cut_anywhere(tmp_path: Path, name: str) -> None:
    records = [record(html(f"Record {i}."), i) for i in range(2)]
    whole = b"".join(records)
    data = {"x.warc": whole, "x.warc.gz": packed(*records), "whole.warc.gz": gzip.compress(whole, 0)}[name]
    boundaries = {len(data), *((len(packed(records[0])),) if name == "x.warc.gz" else ())}
    for end in range(5, len(data) + 1):
        pages, skipped = read(tmp_path, data[:end], name)
        assert texts(pages) == ["Record 0.", "Record 1."][: len(pages)]
        assert set(skipped) <= {"truncated_file", "not_warc"}, end
        is_whole = end in boundaries
        if name == "x.warc":  # what lacks nothing but the blank lines after it is whole
            is_whole = any(size - 4 <= end <= size for size in (len(records[0]), len(whole)))
            assert len(pages) == (end >= len(records[0]) - 4) + (end >= len(whole) - 4)
        assert skipped["truncated_file"] == (not is_whole), end


def test_damaged_members(tmp_path: Path) -> None:
    members = [packed(one) for one in THREE]
    for at in range(0, len(members[1]), 7):
        damaged = bytearray(members[1])
        damaged[at] ^= 0x55
        pages, skipped = read(tmp_path, members[0] + bytes(damaged) + members[2], "x.warc.gz")
        if at in range(4, 10):  # time and system: no damage
            assert len(pages) == 3 and not skipped
        else:
            assert texts(pages) == ["Record 0.", "Record 2."], at
            assert set(skipped) <= {"damaged_member", "damaged_bytes"} and skipped, at
    lost, skipped = read(tmp_path, members[0] + members[1][:60] + members[2], "x.warc.gz")
    assert texts(lost) == ["Record 0.", "Record 2."] and skipped["damaged_member"]
    padded, skipped = read(tmp_path, members[0] + b"\0" * 512 + members[1] + b"\0" * 70_000, "x.warc.gz")
    assert len(padded) == 2 and not skipped


def test_files_in_one_member_or_in_blocks(tmp_path: Path) -> None:
    many = [record(html(f"Record {i}. " + "x" * 999), i) for i in range(300)]
    whole = b"".join(many)
    blocks = packed(*(whole[i : i + 5000] for i in range(0, len(whole), 5000)))
    for data in (packed(whole), blocks):
        pages, skipped = read(tmp_path, data, "x.warc.gz")
        assert [page.url for page in pages] == [f"http://a.example/{i}" for i in range(300)]
        assert pages[0].offset == 0 and len({page.offset for page in pages}) == 300
        assert not skipped
    damaged = bytearray(blocks)
    damaged[len(blocks) // 2] ^= 0x55
    pages, skipped = read(tmp_path, bytes(damaged), "x.warc.gz")
    assert len(pages) > 100 and skipped["damaged_member"]


def test_garbage(tmp_path: Path) -> None:
    pages, skipped = read(tmp_path, THREE[0] + b"garbage\r\nmore\r\n" + THREE[1] + b"\xff" * 200_000 + b"\n" + THREE[2])
    assert len(pages) == 3 and set(skipped) <= {"damaged_bytes", "wrong_length"}
    assert read(tmp_path, b"no archive at all")[1] == {"damaged_bytes": 1, "not_warc": 1}
    assert read(tmp_path, gzip.compress(b"no archive at all"), "x.warc.gz")[1]["not_warc"] == 1
    assert read(tmp_path, b"\x04\x22\x4d\x18lz4")[1]["not_warc"] == 1
    assert read(tmp_path, b"") == ([], {})
    endless = b"WARC/1.0\r\nX: " + b"y" * 100_000 + b"\r\n\r\n"
    assert texts(read(tmp_path, endless + THREE[0])[0]) == ["Record 0."]


def test_line_ends_and_header_forms(tmp_path: Path) -> None:
    bare = THREE[0].replace(b"\r\n", b"\n")
    bare = re.sub(rb"Content-Length: \d+", b"Content-Length: %d" % len(bare[bare.index(b"HTTP/") : -2]), bare)
    folded = (
        THREE[1]
        .replace(b"Content-Length", b"X-Note: a\r\n  b\r\ncontent-length")
        .replace(b"http://a.example/1", b"<http://a.example/1>")
    )
    pages, skipped = read(tmp_path, bare + folded + THREE[2].replace(b"WARC/1.0", b"WARC/0.18"))
    assert [page.url for page in pages] == [f"http://a.example/{i}" for i in range(3)]
    assert texts(pages) == ["Record 0.", "Record 1.", "Record 2."] and not skipped


def test_resources(tmp_path: Path) -> None:
    page = record(html("A resource."), http=None, kind="resource").replace(
        b"application/http; msgtype=resource", b"text/html; charset=utf-8"
    )
    screenshot = page.replace(b"http://a.example", b"urn:view:http://a.example")
    pages, skipped = read(tmp_path, packed(page, screenshot), "x.warc.gz")
    assert texts(pages) == ["A resource."] and skipped == {"record_resource": 1}


def arc(*blocks: bytes, version: int = 1) -> bytes:
    head = b"1 0 Test\nURL IP-address Archive-date Content-type Archive-length\n"
    data = b"filedesc://x.arc 0.0.0.0 20080430204825 text/plain %d\n%s\n" % (len(head), head)
    for i, block in enumerate(blocks):
        more = b"200 - - 0 x.arc " if version == 2 else b""
        data += b"http://a.example/%d 192.0.2.1 20080430204825 text/html %s%d\n%s\n" % (
            i,
            more,
            len(block),
            block,
        )
    return data


def test_arc(tmp_path: Path) -> None:
    block = HTML_HEAD.encode() + b"\r\n" + html("Of an ARC.")
    for version in (1, 2):
        pages, skipped = read(tmp_path, arc(block, block, version=version), "x.arc")
        assert texts(pages) == ["Of an ARC."] * 2 and pages[1].url == "http://a.example/1"
        assert skipped == {"record_warcinfo": 1}
    wrong = arc(block, block, block).replace(b"text/html %d\n" % len(block), b"text/html 70\n", 1)
    assert texts(read(tmp_path, wrong, "x.arc")[0]) == ["Of an ARC."] * 3
    lines = arc(block, block).split(b"filedesc")[1]
    members = packed(b"filedesc" + lines[: lines.index(b"http:")], *(b"http:" + x for x in lines.split(b"http:")[1:]))
    assert texts(read(tmp_path, members, "x.arc.gz")[0]) == ["Of an ARC."] * 2


def test_a_bomb_costs_little(tmp_path: Path) -> None:
    zeros = b"\0" * (1 << 20)
    packer = zlib.compressobj(wbits=31)
    head = record(b"", length=(1 << 28) + len(HTML_HEAD) + 2)[:-4]
    bomb = packer.compress(head) + b"".join(packer.compress(zeros) for _ in range(256)) + packer.flush()
    body = zlib.compressobj(wbits=31)
    inner = body.compress(b"<p>") + b"".join(body.compress(zeros) for _ in range(256)) + body.flush()
    data = bomb + packed(record(inner, http=with_coding("gzip")), record(brotli(zeros * 64), http=with_coding("br")))
    tracemalloc.start()
    pages, skipped = read(tmp_path, data + packed(THREE[0]), "x.warc.gz", SourceOptions(max_page_bytes=1 << 20))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [page.error for page in pages] == ["too_large"] * 3 + [None]
    assert peak < 20 << 20 and not skipped


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_damage_is_survived(tmp_path: Path, data: st.DataObject) -> None:
    records = [
        record(html(f"Record {i}."), i, length=data.draw(st.sampled_from([None, None, 50, 500]))) for i in range(4)
    ]
    form = data.draw(st.sampled_from(["plain", "members", "whole"]))
    whole = b"".join(records)
    file = bytearray({"plain": whole, "members": packed(*records), "whole": packed(whole)}[form])
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(file) - 1))
        file[at : at + data.draw(st.integers(0, 30))] = data.draw(st.binary(max_size=30))
        file += b"!"
    pages, _ = read(tmp_path, bytes(file), "x.warc" if form == "plain" else "x.warc.gz")
    assert len({page.offset for page in pages}) == len(pages)


def test_records_give_out_their_parts() -> None:
    skipped: Counter[str] = Counter()
    [first, *_] = warc.records(io.BytesIO(b"".join(THREE)), limit=60, skipped=skipped)
    assert first.kind == "response" and first.oversize and first.block == THREE[0].split(b"\r\n\r\n", 1)[1][:60]
    assert first.headers["warc-target-uri"] == "http://a.example/0"


def test_faults(tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(shared / "tools"))
    check = __import__("check_faults").check
    for name, fault in faults(shared, "warc").items():
        data = fault_input(fault)
        pages, _ = read(tmp_path, data, "x.warc.gz" if data.startswith(b"\x1f\x8b") else "x.warc")
        expected = fault["assert"]
        if name == "WRC08":  # its input ends two characters before the text that it asserts does
            expected = {"contains": ["Start of a long pag"]}
            assert pages[0].truncated == "length"
        assert check(expected, "\n".join(page.html for page in pages)) == [], name
        assert len(pages) == expected.get("n_rows", len(pages)), name


def test_real_files(tmp_path: Path, shared: Path) -> None:
    folder = shared / "corpora" / "warc"
    index = {entry["file"]: entry for entry in json.loads((folder / "index.json").read_text())}
    for path in sorted(folder.iterdir()):
        if path.name in index and not path.name.endswith((".lz4", ".paths.gz")):
            pages, skipped = read(tmp_path, path.read_bytes(), "x.warc", SourceOptions(format="warc"))
            # The index leaves out pages under 500 bytes, and takes the record of a cut file.
            long = [page for page in pages if len(page.html) >= 500]
            assert len(long) >= index[path.name]["html200"] - skipped["truncated_file"], path.name
            records = len(pages) + sum(count for reason, count in skipped.items() if "_" in reason)
            assert records >= index[path.name]["records"], path.name
