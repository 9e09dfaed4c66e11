"""Stores: durable collections on Python's own SQLite, beside Python's sqlite3 and other processes on the same file."""
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import threading

import numpy as np
import pytest
from conftest import DEVICES, HIDDEN_EXTENSIONS, run_python

import warpwave


@pytest.fixture
def path(tmp_path):
    return tmp_path / "library.db"


@pytest.fixture
def filled(path, points):
    with warpwave.Store(path, device="cpu") as store:
        docs = store.create("docs", dim=20, metric="l2")
        docs.add(points, ids=[f"d{i}" for i in range(300)], payloads=[{"year": 1900 + i, "lang": "de" if i % 2 else "en"} for i in range(300)])
    return path


def test_a_store_answers_as_memory_does_and_after_reopening(path, points):
    for name in DEVICES:
        memory = warpwave.Collection(20, metric="dot", device=name)
        memory.add(points)
        wanted = memory.search(points[:9], k=7)
        target = path.with_suffix(f".{name.replace(':', '')}")
        with warpwave.Store(target, device=name) as store:
            made = store.create("docs", dim=20, metric="dot")
            made.add(points)
            for collection in (made, store["docs"]):
                found = collection.search(points[:9], k=7)
                assert (found.ids == wanted.ids).all() and found.scores.tobytes() == wanted.scores.tobytes()
        with warpwave.Store(target, device=name, must_exist=True) as store:
            found = store["docs"].search(points[:9], k=7)
            assert (found.ids == wanted.ids).all() and found.scores.tobytes() == wanted.scores.tobytes()


def test_everything_a_collection_does(filled, points):
    with warpwave.Store(filled, device="cpu") as store:
        c = store["docs"]
        assert len(c) == 300 and c.dim == 20 and c.metric == "l2" and "d7" in c and list(c)[:2] == ["d0", "d1"] and "in a store" in repr(c)
        assert c["d7"].payload == {"year": 1907, "lang": "de"} and (c["d7"].vector == points[7]).all()
        c.upsert(points[:1], ids=["new"], payloads=[None])
        c.update("d1", payloads={"changed": True})
        c.update(["d2"], vectors=points[5:6])
        c.remove(["d3", "d4"])
        assert len(c) == 299 and c["d1"].payload == {"changed": True} and c["d2"].payload["year"] == 1902 and (c["d2"].vector == points[5]).all()
        assert c.search(points[7], radius=0.1).ids.tolist() == ["d7"]
        with pytest.raises(KeyError):
            c.remove("d3")
        with pytest.raises(warpwave.DuplicateId):
            c.add(points[:1], ids=["d7"])
        assert [row.id for row in c.items()][-1] == "d2" or len(list(c.items())) == 299
        c.compact()
    with warpwave.Store(filled, device="cpu") as store:
        assert len(store["docs"]) == 299 and "new" in store["docs"]


def test_where_filters(filled, points):
    with warpwave.Store(filled, device="cpu") as store:
        c = store["docs"]
        store.index("docs", "$.year")
        german = c.search(points[:4], k=300, where="payload->>'$.lang' = :lang", parameters={"lang": "de"})
        assert german.rows.shape == (4, 150) and all(int(name[1:]) % 2 for name in german.ids.ravel())
        few = c.search(points[0], k=300, where="payload->>'$.year' BETWEEN ? AND ?", parameters=[1910, np.int64(1915)], payloads=True)
        assert sorted(payload["year"] for payload in few.payloads) == list(range(1910, 1916))
        assert len(c.search(points[0], radius=1e6, where="id IN ('d1', 'd2')").ids) == 2
        assert len(c.search(points[0], where="payload->>'$.none' IS :x", parameters={"x": None}).ids) == 10
        for wrong, values, error in (("year >", None, ValueError), ("1; DROP TABLE docs_rows", None, ValueError), ("id = :a", {"a": object()}, TypeError),
                                     ("id = :a", {"a": "x\0y"}, ValueError), ("id = :a", {"a": 2**70}, OverflowError), (None, {"a": 1}, ValueError)):
            with pytest.raises(error):
                c.search(points[0], where=wrong, parameters=values)
        assert len(c) == 300


def test_names_and_refusals(path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        warpwave.Store(path, device="cpu", must_exist=True)
    assert not path.exists()
    with pytest.raises(ValueError, match="place of rows"):
        warpwave.Store(path, device="cpu", rows="disk")
    with warpwave.Store(path, device="cpu", synchronous="normal", rows="host") as store:
        assert len(store) == 0 and "no collections" in repr(store)
        store.create("a", dim=3)
        store.create("b", dim=4, metric="l2", type="f16")
        assert list(store) == ["a", "b"] and "a" in store and "c" not in store and len(store) == 2
        assert store.list()["b"] == {"dim": 4, "metric": "l2", "type": "f16", "rows": 0, "format": 3}
        assert store["a"] is store["a"] and "<td>b</td>" in store._repr_html_()
        with pytest.raises(KeyError):
            store["c"]
        with pytest.raises(ValueError):
            store.create("A", dim=3)
        with pytest.raises(ValueError):
            store.create("c", dim=3, metric="x")
        del store["a"]
        with pytest.raises(KeyError):
            store["a"]
        assert store.info.sqlite_version == sqlite3.sqlite_version  # Python's own, no second copy
        with pytest.raises(TypeError, match="pickled"):
            __import__("pickle").dumps(store)
    with pytest.raises(ValueError, match="closed"):
        store["b"]
    store.close()
    path.with_suffix(".txt").write_bytes(b"no database at all, but long enough to be looked at" * 100)
    with pytest.raises(warpwave.CorruptFile):
        warpwave.Store(path.with_suffix(".txt"), device="cpu")
    with pytest.raises(ValueError, match="full, normal, off"):
        warpwave.Store(path, device="cpu", synchronous="maybe")


def test_backup_and_check(filled, tmp_path, points):
    with warpwave.Store(filled, device="cpu") as store:
        store.check()
        told = []
        store.backup(tmp_path / "copy.db", progress=lambda done, total: told.append(done))
        assert told
    with warpwave.Store(tmp_path / "copy.db", device="cpu", read_only=True) as store:
        assert len(store["docs"]) == 300
        with pytest.raises(warpwave.Error):
            store["docs"].add(points[:1])


WRITER = """
import sys, numpy as np, warpwave
with warpwave.Store(sys.argv[1], device="cpu") as store:
    for i in range(20):
        store["docs"].add(np.full((1, 20), i), ids=[f"{sys.argv[2]}{i}"])
"""


def rows_of(path):
    with sqlite3.connect(path) as connection:
        count = connection.execute("SELECT count(*) FROM docs_rows").fetchone()[0]
    connection.close()
    return count


@pytest.mark.parametrize("first", ["store", "sqlite3"])
@pytest.mark.check
def test_python_and_the_store_share_a_file_with_a_writer_beside(filled, points, first):
    """Two copies of SQLite would drop each other's locks: rows that were committed would be gone."""
    if first == "sqlite3":
        connection = sqlite3.connect(filled, timeout=20)
        connection.execute("CREATE TABLE mine (n)")
        connection.commit()
        store = warpwave.Store(filled, device="cpu", busy_ms=20000)
    else:
        store = warpwave.Store(filled, device="cpu", busy_ms=20000)
        connection = sqlite3.connect(filled, timeout=20)
        connection.execute("CREATE TABLE mine (n)")
        connection.commit()
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(filled), "other"])
    for i in range(20):
        store["docs"].add(points[:1] + i, ids=[f"own{i}"])
        with connection:
            connection.execute("INSERT INTO mine VALUES (?)", (i,))
        extra = sqlite3.connect(filled, timeout=20)  # closing a connection is what drops the locks of another copy
        extra.execute("SELECT count(*) FROM docs_rows").fetchone()
        extra.close()
    assert writer.wait(60) == 0
    assert len(store["docs"]) == 340 and rows_of(filled) == 340
    assert connection.execute("SELECT count(*) FROM mine").fetchone()[0] == 20
    store.check()
    store.close()
    connection.close()


def test_pythons_sqlite_loads_the_same_library_as_its_extension(filled):
    """The virtual table, in the same process and on the same SQLite as the store."""
    connection = sqlite3.connect(filled)
    if not hasattr(connection, "enable_load_extension"):
        connection.close()
        pytest.skip("SKIP: this Python was built without load_extension()")
    library = os.environ["WARPWAVE_LIBRARY"]
    with warpwave.Store(filled, device="cpu") as store:
        connection.enable_load_extension(True)
        connection.execute("SELECT load_extension(?, 'sqlite3_warpwave_init')", (library,))
        assert connection.execute("SELECT count(*) FROM docs").fetchone()[0] == len(store["docs"]) == 300
    connection.close()


def test_a_lock_that_is_kept_is_busy(filled, points):
    holder = sqlite3.connect(filled)
    holder.execute("BEGIN IMMEDIATE")
    with warpwave.Store(filled, device="cpu", busy_ms=50) as store:
        with pytest.raises(warpwave.Busy):
            store["docs"].add(points[:1])
        with pytest.raises(TimeoutError):
            store["docs"].add(points[:1])
        assert len(store["docs"].search(points[:3])) == 3
    holder.rollback()
    holder.close()


def test_threads_share_a_store(filled, points):
    with warpwave.Store(filled, device="cpu", busy_ms=20000) as store:
        failures = []

        def work(number):
            try:
                for i in range(5):
                    store["docs"].add(points[:1], ids=[f"t{number}-{i}"])
                    assert len(store["docs"].search(points[:5], k=3).ids) == 5
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures and len(store["docs"]) == 320


_store = None


def _use_parents(_):
    try:
        return len(_store["docs"].search(np.ones(20)))
    except warpwave.OtherProcess as error:
        return str(error)


def _open_own(path):
    with warpwave.Store(path, device="cpu") as store:
        return len(store["docs"])


def test_a_forked_child_opens_its_own(filled):
    global _store
    _store = warpwave.Store(filled, device="cpu")
    _store["docs"].search(np.ones(20))
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert isinstance(pool.map(_use_parents, [0])[0], str)
        with pytest.raises(warpwave.OtherProcess, match="was open when this process was forked"):
            pool.map(_open_own, [filled])
    assert len(_store["docs"].search(np.ones(20))) == 10
    _store.close()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.map(_open_own, [filled]) == [300]


@pytest.mark.check
def test_an_exclusive_store_keeps_other_processes_out(filled):
    with multiprocessing.get_context("fork").Pool(1) as pool:  # forked before the file is opened
        pool.map(str, [0])
        with warpwave.Store(filled, device="cpu", exclusive=True) as store:
            assert len(store["docs"].search(np.ones(20))) == 10
            assert not os.path.exists(f"{filled}-shm")
            with pytest.raises(warpwave.Busy):
                pool.map(_open_own, [filled])
        assert pool.map(_open_own, [filled]) == [300]
    with pytest.raises(warpwave.InvalidArgument, match="exclusive and read_only"):
        warpwave.Store(filled, device="cpu", exclusive=True, read_only=True)


@pytest.mark.check
def test_a_python_without_load_extension_uses_its_sqlite_all_the_same(filled):
    """As pyenv builds it: the method is hidden, and the SQLite that Python uses is found among the process's libraries."""
    printed = run_python(HIDDEN_EXTENSIONS + f"""
store = warpwave.Store({str(filled)!r}, device="cpu")
print(len(store["docs"]), store.info.sqlite_version == sqlite3.sqlite_version)
""")
    assert printed == "300 True\n" or "part of the interpreter" in printed


@pytest.mark.check
def test_a_sqlite_that_cannot_be_found_is_told(filled):
    printed = run_python(HIDDEN_EXTENSIONS + f"""
import builtins, io
opened = builtins.open
builtins.open = lambda name, *a, **k: io.StringIO("") if name == "/proc/self/maps" else opened(name, *a, **k)
try:
    warpwave.Store({str(filled)!r}, device="cpu")
except ImportError as error:
    print(error)
""")
    assert "Python's own SQLite" in printed


@pytest.mark.check
def test_a_killed_writer_leaves_whole_batches(path):
    with warpwave.Store(path, device="cpu") as store:
        store.create("docs", dim=20)
    code = """
import sys, numpy as np, warpwave
store = warpwave.Store(sys.argv[1], device="cpu")
while True:
    store["docs"].add(np.random.default_rng().standard_normal((37, 20)))
    print("added", flush=True)
"""
    writer = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE)
    writer.stdout.readline()
    threading.Event().wait(0.3)
    writer.kill()
    writer.wait()
    writer.stdout.close()
    with warpwave.Store(path, device="cpu") as store:
        store.check()
        assert len(store["docs"]) > 0 and len(store["docs"]) % 37 == 0


def test_space_comes_back_in_steps(path):
    with warpwave.Store(path, device="cpu") as store:
        c = store.create("docs", dim=64)
        c.add(np.ones((4000, 64), np.float32), ids=range(4000))
        c.remove([str(i) for i in range(3000)])
        steps = 1
        while c.compact(step_bytes=1 << 16) > 0:
            steps += 1
        assert steps > 3 and len(c) == 1000 and store.info.bytes_unused == 0
        assert c.compact() == 0
    with pytest.raises(ValueError, match="collections of a store"):
        warpwave.Collection(2, device="cpu").compact(step_bytes=1)


def test_a_store_with_low_memory_searches_its_file_and_answers_the_same(tmp_path):
    rows = np.random.default_rng(4).standard_normal((3000, 64), dtype=np.float32)
    with warpwave.Store(tmp_path / "low.db", device="cpu", memory="low") as store:
        docs = store.create("docs", 64)
        docs.add(rows)
        low = docs.search(rows[:5], k=7)
        assert store.info.bytes_memory == 0
    with warpwave.Store(tmp_path / "low.db", device="cpu") as store:
        loaded = store["docs"].search(rows[:5], k=7)
        assert store.info.bytes_memory > 0
    assert (low.ids == loaded.ids).all() and (low.scores == loaded.scores).all()
