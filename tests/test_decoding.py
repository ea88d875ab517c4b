from __future__ import annotations

import sys
from pathlib import Path

import pytest
from archives import fault_input, faults
from hypothesis import given
from hypothesis import strategies as st

from udfs.input.decoding import clean, decode

RUSSIAN = "Расписание паромов на зиму. Билеты продаются на борту, дети до семи лет едут бесплатно. " * 3
CHINESE = "市政府今日公布新的公园计划，记者朱镕从北京报道。读者可以在图书馆查阅全部文件。" * 3
TRADITIONAL = "市政府今日公布新的公園計畫，預計明年完工。讀者可以在圖書館查閱全部文件。" * 3
JAPANESE = "冬の時刻表が発表されました。切符は船内で販売しています。お子様は無料です。" * 3
KOREAN = "겨울 시간표가 발표되었습니다. 표는 배에서 판매합니다. 어린이는 무료입니다. " * 3
GERMAN = "Zubehör für Fährräder und Züge, dazu günstige Preise für Schüler. " * 3
GREEK = "Τα δρομολόγια των πλοίων για τον χειμώνα ανακοινώθηκαν σήμερα το πρωί. " * 3


def page(text: str, charset: str | None = None) -> str:
    meta = f'<meta charset="{charset}">' if charset else ""
    return f"<html><head>{meta}<title>t</title></head><body><p>{text}</p></body></html>"


@pytest.mark.parametrize(
    ("text", "codec", "label"),
    [
        (RUSSIAN, "cp1251", "windows-1251"),
        (RUSSIAN, "koi8-r", "KOI8-R"),
        (CHINESE, "gb18030", "gb2312"),
        (TRADITIONAL, "big5", "Big5"),
        (JAPANESE, "cp932", "x-sjis"),
        (JAPANESE + "①", "euc_jis_2004", "euc-jp"),
        (JAPANESE, "iso-2022-jp", "iso-2022-jp"),
        (KOREAN, "cp949", "ks_c_5601-1987"),
        (GERMAN + "“€”", "cp1252", "ISO-8859-1"),
        (GREEK, "iso8859-7", "iso-8859-7"),
    ],
)
def test_legacy_encodings(text: str, codec: str, label: str) -> None:
    expected = page(text, label)
    assert decode(expected.encode(codec)) == expected  # meta
    assert decode(page(text).encode(codec), f"text/html; charset={label}") == page(text)  # header
    assert decode(page(text).encode(codec)) == page(text)  # detection


def test_order_is_mark_then_header_then_meta() -> None:
    text = page("Café à la crème", "iso-8859-1")
    assert decode(b"\xef\xbb\xbf" + text.encode(), "text/html; charset=iso-8859-1") == text
    assert decode(b"\xff\xfe" + text.encode("utf-16-le"), "text/html; charset=utf-8") == text
    assert decode(b"\xfe\xff" + text.encode("utf-16-be")) == text
    russian = page(RUSSIAN, "koi8-r")
    assert decode(russian.encode("cp1251"), 'text/html; Charset="Windows-1251"') == russian
    assert decode(russian.encode("koi8-r"), "text/html; charset=unheard-of") == russian


def test_meta_elements() -> None:
    for meta in (
        '<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">',
        "<META CONTENT='text/html;charset=windows-1251' HTTP-EQUIV=content-type />",
        "<meta charset = windows-1251>",
        '<?xml version="1.0" encoding="windows-1251"?>',
    ):
        text = meta + "<p>по"  # too short to be detected
        assert decode(text.encode("cp1251")) == text
        late = (" " * 2000 if not meta.startswith("<?") else "") + text
        assert decode(late.encode("cp1251")) == late
    for decoy in ("<!-- <meta charset=koi8-r> -->", '<meta name=description content="charset=koi8-r">'):
        text = decoy + "<meta charset=windows-1251><p>по"
        assert decode(text.encode("cp1251")) == text


def test_utf16_in_a_meta_or_a_wrong_header_is_not_believed() -> None:
    text = page("Plain paragraph about bridges, naïve.", "utf-16")
    assert decode(text.encode()) == text
    assert decode(text.encode(), "text/html; charset=utf-16") == text
    assert decode(text.encode("utf-16-le")) == text
    assert decode(text.encode("utf-16-be"), "text/html") == text


@pytest.mark.parametrize("content_type", ["text/html; charset=utf-8", "text/html", None])
def test_one_bad_byte_never_flips_a_page(content_type: str | None) -> None:
    body = page(GERMAN * 20).encode()
    for broken in (b"\xe9", b"\xe2\x82", b"\xff"):
        text = decode(body[:900] + broken + b" " + body[900:], content_type)
        assert "Zubehör für Fährräder" in text and "Ã" not in text
        assert text.count("\ufffd") == 1
    declared = "text/html; charset=utf-8"
    assert decode(b"<p>caf\xe9 and nothing else", declared) == "<p>caf\ufffd and nothing else"


def test_a_page_cut_inside_a_character() -> None:
    body = page(RUSSIAN).encode()
    cut = body[: body.index("Б".encode()) + 1]
    assert decode(cut).endswith(" \ufffd")
    assert decode(cut)[:-1] == cut[:-1].decode()


def test_false_declarations() -> None:
    utf8 = page(GERMAN, "iso-8859-1").encode()
    assert GERMAN in decode(utf8) and GERMAN in decode(utf8, "text/html; charset=windows-1252")
    assert CHINESE in decode(page(CHINESE).encode(), "text/html; charset=gbk")
    assert GERMAN in decode(page(GERMAN, "utf-8").encode("cp1252"))
    assert RUSSIAN in decode(page(RUSSIAN, "utf-8").encode("cp1251"), "text/html; charset=utf-8")
    # Two characters that happen to be valid UTF-8 are not enough.
    assert "联通" in decode(page("联通", "gbk").encode("gbk"))


def test_what_never_comes_out() -> None:
    assert decode(b"") == ""
    assert decode(b"<p>a\0b" + "\ufeffc".encode()) == "<p>abc"
    assert decode(b"\0" * 5000) == ""
    assert clean("a\ud800b\ud83d\ude00\0") == "a\ufffdb😀"


@given(st.binary(), st.sampled_from([None, "text/html; charset=gbk", "text/html; charset=utf-16le", "x"]))
def test_any_bytes_decode(payload: bytes, content_type: str | None) -> None:
    for prefix in (b"", b"<meta charset=shift_jis>", b"<meta charset=iso-2022-jp>\x1b$B"):
        text = decode(prefix + payload, content_type)
        assert "\0" not in text and "\ufeff" not in text
        text.encode("utf-8")


@given(st.text())
def test_utf8_is_read_as_it_is(text: str) -> None:
    text = "<p>" + "".join(c for c in text if c not in "\0\ufeff\x1b" and not "\ud800" <= c <= "\udfff")
    assert decode(text.encode(), "text/html; charset=UTF-8") == text


def test_faults(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(shared / "tools"))
    check = __import__("check_faults").check
    for name, fault in faults(shared, "encoding").items():
        if fault["stage"] == "decode":
            text = decode(fault_input(fault), fault["http_content_type"])
            assert check(fault["assert"], text) == [], name
    assert "check_faults" in sys.modules
