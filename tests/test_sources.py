from __future__ import annotations

import gzip
import json
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from archives import HTML_HEAD, fault_input, faults, html, packed, read, record

from templates import storage
from udfs.input.sources import Page, SourceError, SourceOptions, Split, fetch, file_format, list_splits, read_split

OPTIONS = SourceOptions()


def write_parquet(path: Path, url: Any, pages: Any, names: tuple[str, str] = ("url", "html"), rows: int = 2) -> None:
    table = pa.table({names[0]: url, "other": pa.nulls(len(pages)), names[1]: pages})
    pq.write_table(table, path, row_group_size=rows)


def read_all(paths: list[str], options: SourceOptions = OPTIONS) -> tuple[list[Page], Counter[str]]:
    """All pages of the inputs; each split's pages are fetched again."""
    skipped: Counter[str] = Counter()
    pages: list[Page] = []
    for split in list_splits(paths, options):
        found = list(read_split(split, options, skipped))
        assert list(fetch(split, [page.offset for page in found], options)) == found
        pages += found
    return pages, skipped


def test_split_names() -> None:
    for split in (Split("a/b.warc.gz"), Split("s3://a/b#c.parquet", 12), Split("a#b.warc")):
        assert Split.parse(split.name) == split
    assert Split("a.parquet", 3).name == "a.parquet#3"


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
def test_parquet(tmp_path: Path, kind: pa.DataType) -> None:
    texts = ["<p>Grüße</p>", None, "", "<p>two", "<p>three"]
    is_text = kind in (pa.string(), pa.large_string())
    data = [text if text is None or is_text else text.encode() for text in texts]
    urls = ["http://a.example/0", "http://a.example/1", "http://a.example/2", None, "http://a.example/4"]
    write_parquet(tmp_path / "x.parquet", urls, pa.array(data, kind), rows=3)
    pages, skipped = read_all([str(tmp_path / "x.parquet")])
    assert [(Split.parse(page.split).row_group, page.offset) for page in pages] == [
        (0, 0),
        (0, 1),
        (0, 2),
        (1, 0),
        (1, 1),
    ]
    assert [page.html for page in pages] == ["<p>Grüße</p>", "", "", "", "<p>three"]
    assert [page.error for page in pages] == [None, "empty", "empty", "no_url", None]
    assert [page.url for page in pages] == [url or "" for url in urls]
    assert not skipped


def test_parquet_bytes_are_decoded_and_unpacked(tmp_path: Path) -> None:
    russian = "<meta charset=windows-1251><p>Расписание паромов"
    data = [
        russian.encode("cp1251"),
        gzip.compress(html("Packed.")),
        gzip.compress(b"x")[:9],
        b"%PDF-",
        b"y" * 3000,
    ]
    write_parquet(tmp_path / "x.parquet", [f"http://a.example/{i}" for i in range(5)], pa.array(data), rows=9)
    pages, _ = read_all([str(tmp_path)], SourceOptions(max_page_bytes=2999))
    assert [page.html for page in pages] == [russian, html("Packed.").decode(), "", "", ""]
    assert [page.error for page in pages] == [None, None, "undecodable", "binary", "too_large"]


def test_parquet_columns(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    write_parquet(path, pa.array(["http://a.example/"]).dictionary_encode(), ["<p>text"], ("link", "body"))
    options = SourceOptions(url_column="link", html_column="body")
    [page], _ = read_all([str(path)], options)
    assert page.url == "http://a.example/" and page.html == "<p>text"
    with pytest.raises(SourceError, match=r"no column 'url'; its columns are: link, other, body.*url_column"):
        read_all([str(path)])
    write_parquet(path, [1], ["<p>text"])
    with pytest.raises(SourceError, match="int64"):
        read_all([str(path)])


def test_the_same_page_has_the_same_id_in_every_format(tmp_path: Path) -> None:
    url, page = "http://a.example/1", html("Grüße.")
    write_parquet(tmp_path / "a.parquet", [url], [page.decode()])
    write_parquet(tmp_path / "b.parquet", [url], [page])
    (tmp_path / "c.jsonl").write_text(json.dumps({"url": url, "html": page.decode()}))
    (tmp_path / "d.warc.gz").write_bytes(packed(record(page)))
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(page), page)
    (tmp_path / "e.warc").write_bytes(record(chunked, http=HTML_HEAD + "Transfer-Encoding: chunked\r\n"))
    pages, _ = read_all([str(tmp_path)])
    assert len(pages) == 5 and len({(p.page_id, p.url, p.html) for p in pages}) == 1


LINES = [
    json.dumps({"url": "http://a.example/0", "html": "<p>Grüße \ud83d\ude00"}),
    "",
    '{"url": "http://a.example/1", "html": "<p>cut',
    "[1, 2]",
    json.dumps({"url": "http://a.example/2", "html": 7}),
    json.dumps({"url": "http://a.example/3", "html": "<p>lone \ud800", "more": [1]}),
    json.dumps({"url": "http://a.example/4", "html": None}),
    json.dumps({"html": "<p>No address."}),
]


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz"])
def test_jsonl(tmp_path: Path, name: str) -> None:
    data = "\n".join(LINES).encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    pages, skipped = read_all([str(tmp_path / name)])
    assert [page.html for page in pages] == ["<p>Grüße 😀", "<p>lone \ufffd", "", ""]
    assert [page.error for page in pages] == [None, None, "empty", "no_url"]
    assert skipped == {"damaged_line": 3}
    places = [0, 5, 6, 7]
    starts = [len("\n".join([*LINES[:i], ""]).encode()) for i in places]
    assert [page.offset for page in pages] == (places if name.endswith(".gz") else starts)


def test_jsonl_damages(tmp_path: Path) -> None:
    data = gzip.compress("\n".join(LINES[:1] * 50).encode(), 0)
    pages, skipped = read(tmp_path, data[: len(data) // 2], "x.jsonl.gz")
    assert pages and skipped["truncated_file"] == 1
    damaged = bytearray(data)
    damaged[len(data) // 2] ^= 0xFF
    assert read(tmp_path, bytes(damaged), "x.jsonl.gz")[1].keys() & {"damaged_member", "damaged_line"}
    long = json.dumps({"url": "http://a.example/5", "html": "x" * 200_000})
    pages, skipped = read(tmp_path, f"{long}\n{LINES[0]}\n".encode(), "x.jsonl", SourceOptions(max_page_bytes=1000))
    assert [page.url for page in pages] == ["http://a.example/0"] and skipped == {"line_too_large": 1}
    large = json.dumps({"url": "http://a.example/5", "html": "x" * 2000})
    [page], _ = read(tmp_path, large.encode(), "x.jsonl", SourceOptions(max_page_bytes=1000))
    assert page.error == "too_large"


def test_jsonl_keys(tmp_path: Path) -> None:
    (tmp_path / "x.ndjson").write_text('{"link": "http://a.example/", "body": "<p>text"}\n')
    with pytest.raises(SourceError, match="key 'url'; the keys are: body, link"):
        read_all([str(tmp_path)])
    [page], _ = read_all([str(tmp_path)], SourceOptions(url_column="link", html_column="body"))
    assert page.html == "<p>text"


def test_fetch_refuses_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "x.warc").write_bytes(record(html("a")) + record(b"", kind="revisit"))
    split = Split(str(tmp_path / "x.warc"))
    for offset in (5, len(record(html("a"))), -7, 10**6):
        with pytest.raises(SourceError, match=f"no page at {offset}"):
            list(fetch(split, [0, offset], OPTIONS))
    assert list(fetch(split, [], OPTIONS)) == []
    assert len(list(fetch(split, [0, 0], OPTIONS))) == 1


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (
        "b.warc.gz",
        "a.warc",
        "deep/c.jsonl",
        "_temporary/d.warc",
        ".hidden.warc",
        "_SUCCESS",
        "notes.md",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    write_parquet(tmp_path / "t.parquet", ["u"] * 3, ["h"] * 3)
    return tmp_path


def names(splits: list[Split], folder: Path) -> list[str]:
    return [split.name.removeprefix(f"{folder}/") for split in splits]


def test_inputs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    every = ["a.warc", "b.warc.gz", "deep/c.jsonl", "t.parquet#0", "t.parquet#1"]
    assert names(list_splits([str(folder)], OPTIONS), folder) == every
    assert names(list_splits([f"{folder}/*.warc*", f"file://{folder}/a.warc"], OPTIONS), folder) == every[:2]
    assert names(list_splits([f"{folder}/**/*.jsonl"], OPTIONS), folder) == every[2:3]
    assert names(list_splits([str(folder)], SourceOptions(format="warc")), folder) == every[:2]
    monkeypatch.chdir(folder)
    assert names(list_splits(["a.warc"], OPTIONS), folder) == every[:1]


def test_input_lists(folder: Path) -> None:
    (folder / "some").write_text(f"# a comment\n\n{folder}/a.warc\n{folder}/t.parquet\n")
    assert names(list_splits([f"@{folder}/some"], OPTIONS), folder) == [
        "a.warc",
        "t.parquet#0",
        "t.parquet#1",
    ]
    (folder / "crawl.paths.gz").write_bytes(gzip.compress(b"a.warc\nb.warc.gz\n"))
    options = SourceOptions(list_prefix=f"{folder}/")
    assert names(list_splits([f"{folder}/crawl.paths.gz"], options), folder) == ["a.warc", "b.warc.gz"]


def test_inputs_that_cannot_be_read(folder: Path) -> None:
    with pytest.raises(SourceError, match="no file"):
        list_splits([f"{folder}/*.arc"], OPTIONS)
    (folder / "nothing").mkdir()
    with pytest.raises(SourceError, match="nothing to read"):
        list_splits([f"{folder}/nothing"], OPTIONS)
    with pytest.raises(SourceError, match=r"notes\.md doesn't say its format"):
        list_splits([f"{folder}/notes.md"], OPTIONS)
    (folder / "z.warc.zst").touch()
    with pytest.raises(SourceError, match="only gzip"):
        list_splits([str(folder)], OPTIONS)
    assert file_format(f"{folder}/notes.md", SourceOptions(format="jsonl")) == "jsonl"


def test_missing_drivers_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any, **__: Any) -> None:
        raise ImportError("no driver")

    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    for url, package in (("s3://bucket/a.warc", "s3fs"), ("gs://bucket/a.warc", "gcsfs")):
        with pytest.raises(SourceError, match=f"pip install {package}"):
            list_splits([url], OPTIONS)
        with pytest.raises(SourceError, match=f"pip install {package}"):
            list(read_split(Split(url), OPTIONS, Counter()))
    monkeypatch.undo()
    with pytest.raises(SourceError, match="gopherx"):
        list_splits(["gopherx://host/a.warc"], OPTIONS)


@pytest.fixture
def remote(tmp_path: Path) -> Any:
    system = fsspec.filesystem("memory")
    write_parquet(tmp_path / "t.parquet", ["http://a.example/t"], ["<p>t"])
    system.pipe("/crawl/a.warc.gz", packed(*(record(html(f"Record {i}."), i) for i in range(3))))
    system.pipe("/crawl/deep/b.jsonl", b'{"url": "http://a.example/b", "html": "<p>b"}\n')
    system.pipe("/crawl/deep/t.parquet", (tmp_path / "t.parquet").read_bytes())
    system.pipe("/crawl/_SUCCESS", b"")
    system.pipe("/lists/x.paths", b"crawl/a.warc.gz\n")
    yield system
    system.rm("/crawl", recursive=True)
    system.rm("/lists", recursive=True)


def test_remote_inputs(remote: Any) -> None:
    every = ["memory://crawl/a.warc.gz", "memory://crawl/deep/b.jsonl", "memory://crawl/deep/t.parquet#0"]
    assert [split.name for split in list_splits(["memory://crawl"], OPTIONS)] == every
    assert [split.name for split in list_splits(["memory://crawl/**/*.jsonl"], OPTIONS)] == every[1:2]
    listed = list_splits(["memory://lists/x.paths"], SourceOptions(list_prefix="memory://"))
    assert [split.name for split in listed] == every[:1]
    pages, skipped = read_all(["memory://crawl"])
    assert [page.url[-1] for page in pages] == ["0", "1", "2", "b", "t"] and not skipped
    with pytest.raises(SourceError, match="no file"):
        list_splits(["memory://crawl/absent.warc"], OPTIONS)


def test_downloads_are_tried_again(remote: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    original, tries = storage.fetched, []

    def failing(path: str) -> Any:
        tries.append(path)
        if len(tries) < 3:
            raise OSError("connection reset")
        return original(path)

    monkeypatch.setattr(storage, "fetched", failing)
    monkeypatch.setattr("time.sleep", lambda _: None)
    assert len(list(read_split(Split("memory://crawl/a.warc.gz"), OPTIONS, Counter()))) == 3
    tries.clear()
    monkeypatch.setattr(storage, "fetched", lambda path: failing(path) if len(tries) < 1 else failing(tries.pop()))
    with pytest.raises(OSError, match="reset"):
        list(read_split(Split("memory://crawl/a.warc.gz"), OPTIONS, Counter()))


def test_pages_stream(tmp_path: Path) -> None:
    big = html("x" * 1_000_000)
    (tmp_path / "x.warc.gz").write_bytes(packed(*(record(big, i) for i in range(40))))
    write_parquet(tmp_path / "x.parquet", [f"http://a.example/{i}" for i in range(40)], [big] * 40, rows=40)
    for split in list_splits([str(tmp_path)], OPTIONS):
        tracemalloc.start()
        assert sum(len(page.html) for page in read_split(split, OPTIONS, Counter())) == 40 * len(big)
        assert tracemalloc.get_traced_memory()[1] < 15_000_000
        tracemalloc.stop()


def test_faults(tmp_path: Path, shared: Path) -> None:
    data = fault_input(faults(shared, "malformed")["PAR24"])
    write_parquet(tmp_path / "x.parquet", ["http://a.example/"], [data])
    (tmp_path / "x.warc").write_bytes(record(data))
    pages, _ = read_all([str(tmp_path)])
    assert len(pages) == 2 and all("Compressed article text" in page.html for page in pages)
