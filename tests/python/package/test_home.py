"""What people type first in a notebook: cells that run twice, slices, frames, copies, and messages for wrong types."""
import datetime
import gc
import os
import pathlib
import pickle
import sqlite3
import subprocess
import sys
import uuid

import numpy as np
import pytest

import warpwave

PAYLOADS = [{"year": 1990 + i, "lang": ["en", "de"][i % 2]} for i in range(6)]


@pytest.fixture(params=["memory", "store"])
def collection(request, tmp_path):
    if request.param == "memory":
        made = warpwave.Collection(2, metric="l2", device="cpu", name="docs")
    else:
        made = warpwave.Store(tmp_path / "s.db", device="cpu").create("docs", dim=2, metric="l2")
    made.add(np.arange(12, dtype=np.float32).reshape(6, 2), ids=[f"r{i}" for i in range(6)], payloads=PAYLOADS)
    return made


def test_a_cell_that_makes_a_collection_runs_twice(tmp_path):
    for _ in range(2):
        store = warpwave.Store(tmp_path / "docs.db", device="cpu")
        docs = store.create("docs", dim=2, exist_ok=True)
        docs.upsert([[1, 0], [0, 1]], ids=["east", "north"])
        assert store.get_or_create("docs", dim=2) is docs and len(docs) == 2
        assert store.get_or_create("more", dim=3, metric="l2").metric == "l2"
        with pytest.raises(ValueError, match="dim=2, metric='cosine', type='f32'; you asked for dim=3"):
            store.get_or_create("docs", dim=3)
        with pytest.raises(warpwave.InvalidArgument, match="already"):
            store.create("docs", dim=2)
        store.close()


def test_a_store_in_memory_leaves_nothing():
    store = warpwave.Store(":memory:", device="cpu")
    docs = store.create("docs", dim=2)
    docs.add([[1, 0], [0, 1]], payloads=[{"a": 1}, {"a": 2}])
    assert list(docs.search([1, 0], where="payload->>'$.a' = 2").ids) == ["1"] and store.path == ":memory:"
    with warpwave.Store(":memory:", device="cpu") as other:
        assert list(other) == []
    folder = pathlib.Path(store._folder.path)
    child = os.fork()
    if child == 0:
        store._folder.remove()  # as at the end of a child that runs its exit handlers
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0 and folder.exists()
    store.close()
    assert not folder.exists()
    forgotten = warpwave.Store(":memory:", device="cpu")
    folder = pathlib.Path(forgotten._folder.path)
    kept = forgotten.create("docs", dim=2)
    del forgotten
    gc.collect()
    kept.add([[1, 0]], ids=["a"])  # a collection keeps its store
    assert list(kept.search([1, 0]).ids) == ["a"] and folder.exists()
    del kept
    gc.collect()
    assert not folder.exists()


def test_a_collection_gets_another_name(tmp_path):
    with warpwave.Store(tmp_path / "s.db", device="cpu") as store:
        old = store.create("docs", dim=2)
        old.add([[1, 0]], ids=["a"])
        store.index("docs", "$.lang")
        new = store.rename("docs", "notes")
        assert list(store) == ["notes"] and list(new.search([1, 0]).ids) == ["a"] and new is store["notes"]
        assert new is old and len(old) == 1
        with pytest.raises(KeyError):
            store.rename("docs", "x")
        store.create("docs", dim=2)
        with pytest.raises(warpwave.InvalidArgument, match="already"):
            store.rename("docs", "notes")


def test_results_are_sliced(collection):
    found = collection.search([0, 1], k=4, payloads=True, vectors=True)
    assert list(found[:2].ids) == ["r0", "r1"] and list(found[::-1].ids) == ["r3", "r2", "r1", "r0"] and len(found[9:]) == 0
    assert found[1:3].payloads == found.payloads[1:3] and np.array_equal(found[1:3].vectors, found.vectors[1:3])
    assert [hit.id for hit in found[1:3]] == ["r1", "r2"] and found[-1].id == "r3"
    several = collection.search([[0, 1], [10, 11], [4, 5]], k=2, payloads=True)
    assert several[1:].ids.tolist() == several.ids[1:].tolist() and several[1:].payloads == several.payloads[1:]
    assert several[2].ids.tolist() == several.ids[2].tolist() and len(several[:0]) == 0
    ranges = collection.search([[0, 1], [10, 11]], radius=3.0)
    assert [list(ids) for ids in ranges[1:].ids] == [list(ranges.ids[1])] and list(ranges[1:].totals) == [ranges.totals[1]]
    assert pickle.loads(pickle.dumps(found[1:3])).ids.tolist() == ["r1", "r2"]
    with pytest.raises(TypeError, match="an int or a slice"):
        found["r0"]


def test_what_was_not_fetched_raises(collection):
    hit = collection.search([0, 1])[0]
    with pytest.raises(ValueError, match="payload was not fetched; ask for it with payloads=True"):
        hit.payload
    assert "not fetched" in repr(hit) and pickle.loads(pickle.dumps(hit)) == hit
    assert collection.search([0, 1], payloads=True)[0].payload == PAYLOADS[0]
    row = collection.get("r0", vectors=False)
    with pytest.raises(ValueError, match="vectors=True"):
        row.vector
    with pytest.raises(ValueError, match="payloads=True"):
        next(collection.iterate(payloads=False)).payload


@pytest.mark.check
def test_rows_as_a_data_frame(collection):
    pandas = pytest.importorskip("pandas", reason="SKIP: no pandas")
    frame = collection.to_pandas()
    assert list(frame.columns) == ["id", "vector", "year", "lang"] and list(frame["year"]) == [payload["year"] for payload in PAYLOADS]
    assert np.array_equal(np.stack(frame["vector"]), collection.get().vectors)
    assert list(collection.to_pandas({"lang": "de"}, vectors=False)["id"]) == ["r1", "r3", "r5"]
    hits = collection.search([[0, 1], [4, 5]], k=2, payloads=True).to_pandas()
    assert list(hits.columns) == ["query", "id", "score", "year", "lang"] and list(hits["query"]) == [0, 0, 1, 1]
    collection.add([[1, 1]], ids=["list"], payloads=[[1, 2]])
    assert collection.to_pandas()["payload"].iloc[-1] == [1, 2]
    copied = warpwave.Collection(2, metric="l2", device="cpu")
    pytest.importorskip("pyarrow", reason="SKIP: no pyarrow")
    assert copied.add_table(frame) == 6 and [row.payload for row in copied.iterate()] == PAYLOADS
    assert isinstance(frame, pandas.DataFrame)


@pytest.mark.check
def test_arrow_and_parquet_go_out_and_in(collection, tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="SKIP: no pyarrow")
    collection.add([[7, 7]], ids=["bare"])
    table = collection.to_arrow()
    assert table.schema.names == ["id", "vector", "payload"] + (["text"] if collection._stored else []) and table.num_rows == 7
    collection.to_parquet(tmp_path / "rows.parquet")
    for source in (table, tmp_path / "rows.parquet", str(tmp_path / "rows.parquet"), table.to_batches()[0]):
        copied = warpwave.Collection(2, metric="l2", device="cpu")
        assert copied.add_table(source) == 7
        assert list(copied) == list(collection) and [row.payload for row in copied.iterate()] == [*PAYLOADS, None]
        assert np.array_equal(copied.get().vectors, collection.get().vectors)
    assert copied.add_table(table, upsert=True) == 7 and len(copied) == 7
    assert collection.to_arrow({"lang": "de"}, vectors=False).column("id").to_pylist() == ["r1", "r3", "r5"]
    flat = pyarrow.table({"key": [1, 2], "embedding": [[1.0, 2.0], [3.0, 4.0]], "lang": ["en", None]})
    other = warpwave.Collection(2, device="cpu")
    other.add_table(flat, vector="embedding", id="key")
    assert other["2"].payload == {"lang": None} and other["1"].payload == {"lang": "en"}
    with pytest.raises(ValueError, match="no column 'vector'; it has key, embedding, lang"):
        other.add_table(flat)
    with pytest.raises(ValueError, match="length"):
        other.add_table(pyarrow.table({"vector": [[1.0], [1.0, 2.0]]}))
    with pytest.raises(TypeError, match="pyarrow.Table, a pandas.DataFrame, the path of a Parquet file"):
        other.add_table(5)


def test_a_collection_is_saved_as_a_store(collection, tmp_path):
    collection.save(tmp_path / "saved.db")
    collection.save(tmp_path / "saved.db", name="again")
    with warpwave.Store(tmp_path / "saved.db", device="cpu") as store:
        assert list(store) == ["again", "docs"] and store["docs"].metric == "l2"
        assert np.array_equal(store["docs"].get().vectors, collection.get().vectors)
        assert [row.payload for row in store["again"].iterate()] == PAYLOADS
    with pytest.raises(warpwave.InvalidArgument, match="already"):
        collection.save(tmp_path / "saved.db")
    with pytest.raises(ValueError, match="no name; give name="):
        warpwave.Collection(2, device="cpu").save(tmp_path / "x.db")


def test_nan_in_a_frame_is_null_and_elsewhere_is_named(collection):
    pandas = pytest.importorskip("pandas", reason="SKIP: no pandas")
    frame = pandas.DataFrame({"price": [1.5, float("nan")], "day": [pandas.Timestamp("2024-01-31"), pandas.NaT], "n": pandas.array([1, None], "Int64")})
    collection.add([[1, 1], [2, 2]], ids=["x", "y"], payloads=frame)
    assert collection["x"].payload == {"price": 1.5, "day": "2024-01-31T00:00:00", "n": 1}
    assert collection["y"].payload == {"price": None, "day": None, "n": None}
    with pytest.raises(ValueError, match=r"payload 1: a\.1\.b is NaN; JSON holds finite numbers"):
        collection.add([[1, 1], [2, 2]], payloads=[{"a": 1}, {"a": [1, {"b": float("nan")}]}])
    with pytest.raises(ValueError, match="payload 0: it is infinite"):
        collection.add([[1, 1]], payloads=[float("inf")])
    with pytest.raises(TypeError, match="payload 1: object has no form in JSON"):
        collection.add([[1, 1], [2, 2]], payloads=[None, object()])
    assert len(collection) == 8


def test_dates_and_uuids_are_payloads(collection):
    one = uuid.uuid4()
    collection.add([[1, 1]], ids=[one], payloads=[{"day": datetime.date(2024, 1, 31), "at": datetime.datetime(2024, 1, 31, 12), "key": one}])
    assert collection[one].payload == {"day": "2024-01-31", "at": "2024-01-31T12:00:00", "key": str(one)}
    assert collection.count({"at": {"$gt": datetime.datetime(2024, 1, 31, 11, 59)}}) == 1


@pytest.mark.parametrize("wrong, message", [
    (lambda store, docs: store[5], "the name of a collection is 5; it must be a str"),
    (lambda store, docs: store.create(5, dim=2), "the name is 5; it must be a str"),
    (lambda store, docs: store.drop(None), "it must be a str"),
    (lambda store, docs: store.rename("docs", 5), "the new name is 5; it must be a str"),
    (lambda store, docs: store.index("docs", 5), "the path is 5; it must be a str"),
    (lambda store, docs: store.create("x", dim="2"), "dim is '2'; it must be an integer"),
    (lambda store, docs: store.create("x", dim=2, metric=["l2"]), "the metric is .*; it must be one of 'cosine'"),
    (lambda store, docs: docs.search([1, 0], k="3"), "k is '3'; it must be an integer"),
    (lambda store, docs: docs.search("east"), "queries are the text 'east'; numbers are needed"),
    (lambda store, docs: docs.search([1, 0], where="1", parameters=5), "parameters are 5; they must be a dict by name or a list by place"),
    (lambda store, docs: docs.search([1, 0], where="?", parameters=[object()]), "a parameter is object; it must be None"),
    (lambda store, docs: docs.add([[1, 0]], ids=5.5), "ids are 5.5; they must be a list of str, int or UUID"),
    (lambda store, docs: docs.add([[1, 0]], ids=[5.5]), "an id is 5.5; it must be a str, an int or a UUID"),
    (lambda store, docs: docs.add([[1, 0]], payloads=5), "payloads are 5; they must be a list"),
    (lambda store, docs: docs.search([1, 0], mask=[1, 0]), "the mask is of type int64; it must be bool"),
    (lambda store, docs: docs.peek("3"), "rows is '3'; it must be an integer"),
    (lambda store, docs: warpwave.load(5), "it must be a sqlite3.Connection"),
])
def test_a_wrong_type_gets_a_message_that_says_what_is_accepted(tmp_path, wrong, message):
    with warpwave.Store(tmp_path / "s.db", device="cpu") as store:
        docs = store.create("docs", dim=2)
        with pytest.raises(TypeError, match=message):
            wrong(store, docs)


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(warpwave.MissingFile, match="nothing.db"):
        warpwave.Store(tmp_path / "nothing.db", device="cpu", must_exist=True)
    with pytest.raises(FileNotFoundError):
        warpwave.Store(tmp_path / "nothing.db", device="cpu", read_only=True)
    assert not (tmp_path / "nothing.db").exists()


_LOAD = """
import sqlite3, sys, warpwave
connection = sqlite3.connect(sys.argv[1])
warpwave.load(connection)
print(connection.execute("SELECT id FROM docs WHERE vector MATCH '[0.9, 0.1]' AND k = 1").fetchall())
try:
    connection.execute("SELECT load_extension('x')")
except sqlite3.OperationalError as error:
    print("not authorized" in str(error))
"""


def test_a_connection_of_sqlite3_gets_the_extension(tmp_path):
    with warpwave.Store(tmp_path / "s.db", device="cpu") as store:
        store.create("docs", dim=2).add([[1, 0], [0, 1]], ids=["east", "north"])
    # The system's Python takes this one's NumPy, if both are of one version.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(pathlib.Path(np.__file__).parents[1])])}
    for python in (sys.executable, "/usr/bin/python3"):
        probe = "import sqlite3, numpy, sys; sys.exit(not hasattr(sqlite3.Connection, 'enable_load_extension'))"
        if os.access(python, os.X_OK) and subprocess.run([python, "-c", probe], capture_output=True, check=False, env=environment).returncode == 0:
            done = subprocess.run([python, "-c", _LOAD, str(tmp_path / "s.db")], capture_output=True, text=True, check=False, env=environment)
            assert done.stdout.split("\n")[:2] == ["[('east',)]", "True"], done.stderr
            return
    with pytest.raises(warpwave.Unsupported, match="built without"):
        warpwave.load(sqlite3.connect(":memory:"))
    pytest.skip("SKIP: no Python here has both load_extension() and NumPy")
