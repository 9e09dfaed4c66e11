"""Threads, signals, fork, the end of the process, and long lives."""
import concurrent.futures
import multiprocessing
import os
import threading

import numpy as np
import pytest
from conftest import run_python

import warpwave
from warpwave._calls import Token

pytestmark = pytest.mark.check

INTERRUPTED = """
import os, signal, threading, time, numpy as np, warpwave
c = warpwave.Collection(256, device="cpu", screen="none")
c.add(np.random.default_rng(1).standard_normal((20000, 256)))
queries = np.random.default_rng(2).standard_normal((40000, 256)).astype("f4")
class Timeout(Exception): pass
def alarm(*_): raise Timeout
signal.signal(signal.SIGALRM, alarm)
for sent, expected in ((signal.SIGINT, KeyboardInterrupt), (signal.SIGALRM, Timeout)):
    timer = threading.Timer(0.2, os.kill, (os.getpid(), sent))
    timer.start()
    begun = time.monotonic()
    try:
        c.search(queries)
        print("not interrupted")
    except expected:
        print("interrupted")
    timer.join()
    assert len(c.search(queries[:3], k=2)) == 3
rows = np.ones((400000, 256), "f4")
threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    for _ in range(50):
        c.add(rows[:, :])
        if len(c) > 20000 + 400000 * 4: c.clear()
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted", (len(c) - 20000) % 400000 == 0 or len(c) % 400000 == 0)
"""


def test_ctrl_c_and_other_signals_stop_a_long_call_and_leave_all_whole():
    assert run_python(INTERRUPTED).split("\n")[:3] == ["interrupted", "interrupted", "interrupted True"]


TOLD = """
import os, signal, threading
from warpwave._calls import interruptible

class Told:
    def __init__(self): self.asked = threading.Event()
    def ask(self): self.asked.set()

token = Told()
def call(_told):
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    return 0 if token.asked.wait(60) else 1

try:
    interruptible(call, token=token)
except KeyboardInterrupt:
    print("interrupted", token.asked.is_set())
"""


def test_ctrl_c_asks_the_token_of_a_call_that_tells_no_progress():
    assert run_python(TOLD).startswith("interrupted True")


def test_whatever_reads_all_rows_stops_when_its_token_is_asked(monkeypatch, tmp_path):
    """Loading the vectors of a store, too, which a first search of a single query does."""
    rows = np.random.default_rng(4).standard_normal((12_000, 8), dtype=np.float32)
    with warpwave.Store(tmp_path / "rows.db", device="cpu", synchronous="off") as store:
        store.create("rows", 8).add(rows, payloads=[{"n": i} for i in range(len(rows))])

    class Asked(Token):
        def __init__(self):
            super().__init__()
            self.ask()

    with warpwave.Store(tmp_path / "rows.db", device="cpu") as store, monkeypatch.context() as patched:
        c = store["rows"]
        patched.setattr(warpwave.vectors, "Token", Asked)
        for call in (lambda: c.search(rows[0]), lambda: c.get(), lambda: c.get(where={"n": {"$gt": 5}}), lambda: c.count({"n": {"$gt": 5}})):
            with pytest.raises(warpwave.Cancelled):
                call()
        patched.undo()
        assert c.search(rows[0], k=1).ids[0] == c.get(limit=1).ids[0] and c.count({"n": {"$gt": 5}}) == 11_994


def test_many_threads_search_one_collection(points):
    c = warpwave.Collection(20, device="cpu")
    c.add(points)
    wanted = c.search(points, k=3)

    def search(first):
        found = c.search(points[first:first + 10], k=3)
        return (found.rows == wanted.rows[first:first + 10]).all()

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(search, list(range(0, 290, 5)) * 5))


def test_readers_beside_a_writer_see_whole_batches():
    c = warpwave.Collection(4, device="cpu")
    stop = threading.Event()
    failures = []

    def read():
        while not stop.is_set():
            for row in c.search(np.ones(4), k=50, payloads=True):
                if row.payload != row.id:
                    failures.append(row)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for batch in range(60):
        ids = [f"{batch}-{i}" for i in range(20)]
        c.add(np.random.default_rng(batch).standard_normal((20, 4)), ids=ids, payloads=ids)
        if batch % 3 == 0:
            c.remove(ids[:10])
    stop.set()
    for reader in readers:
        reader.join()
    assert not failures


def test_closing_waits_for_calls_of_other_threads(points):
    for _ in range(20):
        c = warpwave.Collection(20, device="cpu")
        c.add(points)
        begun = threading.Event()

        def search():
            try:
                while True:
                    c.search(points)
                    begun.set()
            except ValueError:
                pass

        thread = threading.Thread(target=search)
        thread.start()
        begun.wait()
        c.close()
        thread.join()


def _use_parents(c):
    try:
        c.search(np.ones(20))
    except warpwave.OtherProcess as error:
        return str(error)
    return "no error"


def _open_own(_=None):
    with warpwave.Collection(3, device="cpu") as c:
        c.add(np.eye(3), ids=["x", "y", "z"])
        return c.search([0, 1, 0], k=1)


_collection = None


def _use_global(_):
    return _use_parents(_collection)


def test_a_forked_child_opens_its_own_and_is_told_why(points):
    global _collection
    _collection = warpwave.Collection(20, device="cpu")
    _collection.add(points)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert "open it again" in pool.map(_use_global, [0])[0] or "fork" in pool.map(_use_global, [0])[0]
        assert pool.map(_open_own, [0])[0].ids[0] == "y"
    assert len(_collection.search(points)) == 300


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_children_work(method, points):
    c = warpwave.Collection(20, device="cpu")
    c.add(points)
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as pool:
        assert pool.submit(_open_own).result().ids[0] == "y"
        with pytest.raises(TypeError, match="pickled"):
            pool.submit(_use_parents, c).result()


def test_everything_open_at_the_end_of_the_process_is_no_trouble():
    run_python("""
import numpy as np, warpwave, threading
c = warpwave.Collection(8, device="cpu"); c.add(np.ones((100, 8)))
t = warpwave.asarray(np.ones(5), device="cpu"); keep = np.from_dlpack(t); capsule = t.__dlpack__(); other = t.__dlpack__(max_version=(1, 0))
found = c.search(np.ones(8)); r = warpwave.from_dlpack(np.ones(3))
cycle = [c, t, found, r]; cycle.append(cycle)
def forever():
    while True: c.search(np.ones(8))
threading.Thread(target=forever, daemon=True).start()
""")


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.long
def test_a_hundred_thousand_calls_do_not_grow(points):
    c = warpwave.Collection(20, device="cpu")
    c.add(points[:50], payloads=list(range(50)))
    array = points[:5].copy()

    def round_of(count):
        for i in range(count):
            c.search(points[i % 50], k=3, payloads=True).ids
            warpwave.from_dlpack(array)
            np.from_dlpack(warpwave.from_dlpack(array))
            try:
                c.search([1.0])
            except ValueError:
                pass

    round_of(2000)
    before = resident()
    round_of(25_000)  # four calls each
    assert resident() - before < 4 << 20
