"""Tables: one schema each, checked on read, and rows written in bounded batches."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from spark_jobs import parts, tables
from spark_jobs.errors import TableError

TABLES = {name: value for name, value in vars(tables).items() if isinstance(value, pa.Schema)}


@pytest.mark.parametrize("name", TABLES)
def test_the_spark_schema_is_derived(name: str) -> None:
    schema = TABLES[name]
    derived = tables.spark_schema(schema)
    assert derived.names == schema.names
    tables.check(schema, to_arrow_schema(derived), name)


def test_a_check_names_all_that_is_wrong() -> None:
    found = tables.UNEXPLAINED.remove(0).set(1, pa.field("offset", pa.string()))
    with pytest.raises(TableError) as raised:
        tables.check(tables.UNEXPLAINED, found, "there/part.parquet")
    assert str(raised.value).startswith("there/part.parquet ")
    assert "no column 'page_id'" in str(raised.value)
    assert "column 'offset' is string, not int64" in str(raised.value)
    assert raised.value.exit_code == 2


def test_more_columns_and_other_names_of_list_values_are_fine() -> None:
    wanted = pa.schema([("values", pa.list_(pa.string()))])
    element = pa.list_(pa.field("element", pa.string(), nullable=False))
    tables.check(wanted, pa.schema([("more", pa.int8()), ("values", element)]), "")


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = str(tmp_path / "new" / "part.parquet")
    written = [{"page_id": str(number), "split": "s", "offset": number} for number in range(5)]
    with parts.writer(path, tables.UNEXPLAINED) as out:
        for row in written:
            out.add(row | {"cluster_id": "c"})
    assert out.rows == 5
    assert list(parts.read(path, tables.UNEXPLAINED)) == [row | {"cluster_id": "c"} for row in written]


def test_columns_that_a_row_lacks_are_null(tmp_path: Path) -> None:
    path = str(tmp_path / "part.parquet")
    with parts.writer(path, tables.UNEXPLAINED) as out:
        out.add({"page_id": "a"})
    assert list(parts.read(path, tables.UNEXPLAINED)) == [
        {"page_id": "a", "split": None, "offset": None, "cluster_id": None}
    ]


def test_a_file_of_another_table_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "part.parquet")
    with parts.writer(path, tables.UNEXPLAINED):
        pass
    with pytest.raises(TableError, match="no column 'sketch'"):
        list(parts.read(path, tables.SIGNATURES))


def test_batches_are_bounded_in_bytes(tmp_path: Path) -> None:
    path = str(tmp_path / "part.parquet")
    with parts.writer(path, tables.EXTRACTIONS) as out:
        for number in range(7):
            out.add({"page_id": str(number), "main_html": "x" * (parts.Writer.MAX_BYTES // 2)})
    assert pq.ParquetFile(path).num_row_groups == 4


def test_nothing_appears_before_the_end_or_after_an_error(tmp_path: Path) -> None:
    path = tmp_path / "part.parquet"
    with pytest.raises(RuntimeError), parts.writer(str(path), tables.UNEXPLAINED) as out:
        out.add({"page_id": "a"})
        assert not path.exists()
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_lone_surrogates_do_not_end_a_long_stage(tmp_path: Path) -> None:
    path = str(tmp_path / "part.parquet")
    with parts.writer(path, tables.EXTRACTIONS) as out:
        out.add({"page_id": "a", "text": "fine"})
        out.add({"page_id": "b", "text": "bad \ud800 one", "coverage": 0.5})
    assert [row["text"] for row in parts.read(path, tables.EXTRACTIONS)] == ["fine", "bad ? one"]


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    files = []
    for name in ("a", "b"):
        path = tmp_path / name
        with parts.writer(str(path), tables.UNEXPLAINED) as out:
            for number in range(5000):
                out.add({"page_id": str(number)})
        files.append(path.read_bytes())
    assert files[0] == files[1]
