"""udfs.conversion.tables: tables of pages (test_tables.py is of Spark's)."""

from __future__ import annotations

from typing import Any

import pytest

from spark_jobs.convert import convert
from udfs.conversion.content import content_list


def table(html: str) -> tuple[str, dict[str, Any]]:
    (item,) = content_list(html)
    return item["type"], item["content"]


def test_simple_table_is_a_grid_and_structure() -> None:
    kind, content = table(
        '<table class="x"><caption>Cap</caption><thead><tr><th align="right">A</th><th>B</th></tr></thead>'
        '<tbody><tr><td align="right">1</td><td style="x">2 <b>3</b></td></tr></tbody></table>'
    )
    assert kind == "simple_table"
    assert content["html"] == ("<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2 <b>3</b></td></tr></table>")
    assert content["header"] is True
    assert content["align"] == ["right", ""]
    assert content["caption"] == [[{"t": "text", "c": "Cap"}]]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<tr><th>A<th>B<tr><td>1|2<td><code>a|b</code>", "| A | B |\n| --- | --- |\n| 1\\|2 | `a\\|b` |\n"),
        ("<tr><td>a<td>b<tr><td>c<td>d", "| a | b |\n| --- | --- |\n| c | d |\n"),
        ("<tr><th>A<th>B<tr><td>1<p>2</p><td>3<br>4", "| A | B |\n| --- | --- |\n| 1<br>2 | 3<br>4 |\n"),
        ("<tr><th>k<tr><td>a<td>b<td>c", "| k |  |  |\n| --- | --- | --- |\n| a | b | c |\n"),
        ("<tr><th>A<th><th>B<tr><td>1<td><td>2<tr><td><td><td>", "| A | B |\n| --- | --- |\n| 1 | 2 |\n"),
        ("<tr><th align=center>A<th>B<tr><td align=center>1<td>2", "| A | B |\n| :---: | --- |\n| 1 | 2 |\n"),
        ("<tfoot><tr><td>f<td>g</tfoot><tbody><tr><th>A<th>B</tbody>", "| A | B |\n| --- | --- |\n| f | g |\n"),
        (
            "<tr><th colspan=2>A<tr><td>1<td>2",
            '<table><tr><th colspan="2">A</th></tr><tr><td>1</td><td>2</td></tr></table>\n',
        ),
        (
            "<tr><th>A<th>B<tr><td>1<td><ul><li>x<li>y</ul>",
            "<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td><ul><li>x</li><li>y</li></ul></td></tr></table>\n",
        ),
        (
            "<tr><th>A<th>B<tr><td>1<td><pre>a\n\nb</pre>",
            "<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td><pre>a&#10;&#10;b</pre></td></tr></table>\n",
        ),
        ("<tr><td>only", "only\n"),
        ("<tr><td><h1>T</h1><p>a</p><td>side", "# T\n\na\n\nside\n"),
        ("stray<tr><td>a<td>b", "stray\n\na\n\nb\n"),
        ("<tr><th>A<th>B<tr style='display:none'><td>1<td>2<tr><td>3<td>4", "| A | B |\n| --- | --- |\n| 3 | 4 |\n"),
    ],
)
def test_table_as_markdown(html: str, expected: str) -> None:
    assert convert(f"<table>{html}</table>") == expected


def test_layout_by_role_and_nested_data() -> None:
    inner = "<table><tr><th>A<th>B<tr><td>1<td>2</table>"
    found = content_list(f"<table role=presentation><tr><td>left<td>{inner}</table>")
    assert [item["type"] for item in found] == ["paragraph", "simple_table"]


def test_nested_tables_of_data_are_complex() -> None:
    inner = "<table><tr><th>A<th>B<tr><td>1<td>2</table>"
    kind, content = table(f"<table><tr><th>X<th>Y<tr><td>a<td>{inner}</table>")
    assert kind == "complex_table"
    assert content["table_nest_level"] == 2
    assert content["html"].count("<table>") == 2


def test_links_and_pictures_in_complex_tables_follow_the_modes() -> None:
    html = '<tr><td><a href="http://e.x/">l</a><td>p <img src="http://e.x/i.png" alt="i">'
    html = f"<table><tr><th colspan=2>A{html}</table>"
    assert "<td>l</td><td>p </td>" in convert(html)
    assert '<a href="http://e.x/">l</a>' in convert(html, links="inline")
    assert "<td>p i</td>" in convert(html, images="alt")


def test_absurd_spans_are_bounded() -> None:
    kind, content = table('<table><tr><td colspan="99999999999" rowspan="-3">a<td>b<tr><td>c<td>d</table>')
    assert kind == "complex_table"
    assert 'colspan="1000"' in content["html"]
