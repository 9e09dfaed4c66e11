"""Frames of polars and columns of Arrow into collections, and collections and results as tables."""
from __future__ import annotations

import pathlib
import sqlite3
from typing import Any

import numpy as np
import pandas
import pytest

import warpwave

polars = pytest.importorskip("polars", reason="SKIP: no polars")
pyarrow = pytest.importorskip("pyarrow", reason="SKIP: no pyarrow")
pytestmark = pytest.mark.check
ROWS = [{"id": "a", "vector": [1, 0], "year": 1999, "lang": "en"}, {"id": "b", "vector": [0, 1], "year": 2020, "lang": None}]


def collection(rows: Any = None) -> warpwave.Collection:
    made = warpwave.Collection(2, metric="l2", device="cpu")
    if rows is not None:
        made.add(rows)
    return made


def test_frames_of_polars_are_rows_and_payloads() -> None:
    frame = polars.DataFrame(ROWS)
    c = collection()
    c.add(frame["vector"], ids=frame["id"], payloads=frame.drop("id", "vector"))
    assert c["a"].payload == {"year": 1999, "lang": "en"} and c["b"].payload["lang"] is None
    c.add(polars.Series([[3.0, 4.0]], dtype=polars.Array(polars.Float32, 2)), ids=["c"])
    assert list(c["c"].vector) == [3, 4]
    other = collection()
    assert other.add_table(frame) == 2 and other["a"].payload == {"year": 1999, "lang": "en"}
    assert other.add_table(pandas.DataFrame([{"id": "d", "vector": [1.0, 2.0]}])) == 1
    assert other.add_table([{"id": "e", "vector": [1.0, 2.0], "year": 7}]) == 1 and other["e"].payload == {"year": 7}


def test_columns_of_arrow_are_vectors() -> None:
    fixed = pyarrow.array([[1, 2], [3, 4]], pyarrow.list_(pyarrow.float32(), 2))
    for column in (fixed, pyarrow.chunked_array([fixed]), pyarrow.chunked_array([fixed]).combine_chunks(), pyarrow.array([[1.0, 2.0], [3.0, 4.0]]),
                   pyarrow.table({"v": fixed})["v"].combine_chunks(), pyarrow.array([[9, 9], [1, 2], [3, 4]], pyarrow.list_(pyarrow.float32(), 2))[1:]):
        c = collection()
        c.add(column)
        assert c.get().vectors.tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ValueError, match="row 1 of a batch has no vector"):
        collection().add(pyarrow.array([[1.0, 2.0], None]))


def test_columns_of_arrow_are_ids_and_payloads() -> None:
    table = pyarrow.table({"id": ["a", "b"], "year": [1999, None]})
    for ids, payloads in ((table["id"], table.select(["year"])), (table["id"].combine_chunks(), table.to_struct_array())):
        c = collection()
        c.add(np.eye(2, dtype=np.float32), ids=ids, payloads=payloads)
        assert c["a"].payload["year"] == 1999 and c["b"].payload["year"] is None


def test_a_table_is_added_in_large_commits(tmp_path: pathlib.Path) -> None:
    count = 70_000
    vectors = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(np.arange(2 * count, dtype=np.float32)), 2)
    with warpwave.Store(tmp_path / "large.db", device="cpu", synchronous="off") as store:
        assert store.create("docs", 2).add_table(pyarrow.table({"vector": vectors})) == count
        with sqlite3.connect(tmp_path / "large.db") as db:
            assert db.execute("SELECT sequence FROM warpwave_collections").fetchone() == (2,)


def test_collections_become_tables() -> None:
    c = collection(ROWS)
    assert c.to_polars()["lang"].to_list() == ["en", None] and polars.DataFrame(c).columns == ["id", "vector", "payload"]
    assert pyarrow.table(c)["id"].to_pylist() == ["a", "b"]


def test_results_become_tables() -> None:
    c = collection(ROWS)
    one, two = c.search([1, 0], payloads=True, vectors=True), c.search([[1, 0], [0, 1]], k=1)
    table = one.to_arrow()
    assert table.column_names == ["id", "score", "vector", "payload"] and table["vector"].type == pyarrow.list_(pyarrow.float32(), 2)
    assert pyarrow.table(two)["query"].to_pylist() == [0, 1]
    frame = one.to_polars()
    assert frame.columns == ["id", "score", "vector", "year", "lang"] and frame["year"].to_list() == [1999, 2020]
    assert polars.DataFrame(two)["id"].to_list() == ["a", "b"]


def test_an_empty_table_keeps_its_columns() -> None:
    assert list(collection().to_pandas().columns) == ["id", "vector"] and collection().to_arrow().column_names == ["id", "vector", "payload"]
    none = collection(ROWS).search([1, 0], where={"year": 5}, vectors=True)
    assert list(none.to_pandas().columns) == ["id", "score", "vector"] and none.to_list() == [] and none.to_polars().columns == ["id", "score", "vector"]
