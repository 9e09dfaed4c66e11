"""Files of rows into collections: `add_file`, and going on after a process that was killed."""
from __future__ import annotations

import json
import pathlib
import signal
import subprocess
import sys

import numpy as np
import pytest

import warpwave

ROWS = 70_000  # two batches
KILLED = """
import os, sys, warpwave
c = warpwave.Store(sys.argv[1], device="cpu").get_or_create("docs", dim=1, metric="l2")
c.add_file(sys.argv[2], ids=sys.argv[3], resume=True, progress=lambda done, total: os.kill(os.getpid(), 9))
"""


def collection(tmp_path: pathlib.Path, dim: int = 2) -> warpwave.Collection:
    return warpwave.Store(tmp_path / "s.db", device="cpu").get_or_create("docs", dim=dim, metric="l2")


def test_a_killed_process_is_gone_on_from(tmp_path: pathlib.Path) -> None:
    np.save(tmp_path / "v.npy", np.arange(ROWS, dtype=np.float32)[:, None])
    (tmp_path / "ids.txt").write_text("".join(f"r{i}\n" for i in range(ROWS)))
    command = [sys.executable, "-c", KILLED, str(tmp_path / "s.db"), str(tmp_path / "v.npy"), str(tmp_path / "ids.txt")]
    for _ in range(2):  # after the first batch, and after the last
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    c = collection(tmp_path, 1)
    assert len(c) == ROWS and c["r69999"].id == "r69999" and c.get("r69999", vectors=True).vector.tolist() == [69999]
    assert c.add_file(tmp_path / "v.npy", ids=tmp_path / "ids.txt", resume=True) == 0
    with pytest.raises(warpwave.DuplicateId):
        c.add_file(tmp_path / "v.npy", ids=tmp_path / "ids.txt")
    np.save(tmp_path / "v.npy", np.zeros((3, 1), np.float32))
    with pytest.raises(ValueError, match=f"has changed since {ROWS} of its rows"):
        c.add_file(tmp_path / "v.npy", resume=True)


def test_payloads_lie_beside_vectors(tmp_path: pathlib.Path) -> None:
    np.save(tmp_path / "v.npy", np.eye(2, dtype=np.float32))
    (tmp_path / "p.csv").write_text('name,year,x\n"n, 1\nsecond",2000,\n\nÄ,-1.5,007\n', encoding="utf-8")
    c = collection(tmp_path)
    assert c.add_file(tmp_path / "v.npy", payloads=tmp_path / "p.csv") == 2
    assert c.get().payloads == [{"name": "n, 1\nsecond", "year": 2000, "x": None}, {"name": "Ä", "year": -1.5, "x": "007"}]
    (tmp_path / "p.jsonl").write_text('{"a": 1}\n\n')
    other = warpwave.Collection(2, device="cpu")
    assert other.add_file(tmp_path / "v.npy", payloads=tmp_path / "p.jsonl") == 2 and other.get().payloads == [{"a": 1}, None]
    (tmp_path / "p.jsonl").write_text('{"a": 1}\n')
    with pytest.raises(ValueError, match="too few payloads"):
        other.add_file(tmp_path / "v.npy", payloads=tmp_path / "p.jsonl")
    (tmp_path / "p.csv").write_text("a,b\n1\n2,3\n")
    with pytest.raises(ValueError, match="line 2: the record has 1 values"):
        other.add_file(tmp_path / "v.npy", payloads=tmp_path / "p.csv")
    with pytest.raises(ValueError, match="one in memory ends with its process"):
        other.add_file(tmp_path / "v.npy", resume=True)
    with pytest.raises(ValueError, match="upsert needs ids"):
        other.add_file(tmp_path / "v.npy", upsert=True)


def test_lines_of_json_are_records(tmp_path: pathlib.Path) -> None:
    (tmp_path / "r.jsonl").write_text("\n".join(json.dumps({"id": f"r{i}", "vector": [i, 0], "year": i}) for i in range(9)))
    c = collection(tmp_path)
    assert c.add_file(tmp_path / "r.jsonl", upsert=True) == 9 and c["r8"].payload == {"year": 8}
    assert c.add_file(tmp_path / "r.jsonl", resume=True) == 0 and len(c) == 9
    with pytest.raises(ValueError, match="its own ids and payloads"):
        c.add_file(tmp_path / "r.jsonl", ids=tmp_path / "r.jsonl")


def test_sparse_vectors_of_exported_lines_come_back(tmp_path: pathlib.Path) -> None:
    rows = [{"id": "a", "vector": [1, 0], "sparse": {"indices": [9, 4294967295], "values": [0.5, -2]}, "payload": {"n": 1}}, {"id": "b", "vector": [0, 1]}]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, rows)))
    c = collection(tmp_path)
    assert c.add_file(tmp_path / "s.jsonl") == 2
    c.add([{"id": "c", "vector": [1, 1], "sparse": {9: 1.5}}])
    a, b, d = c.get(["a", "b", "c"], sparse=True)
    assert a.sparse.indices.tolist() == [9, 4294967295] and a.sparse.values.tolist() == [0.5, -2] and a.payload == {"n": 1}
    assert b.sparse is None and b.payload is None and d.sparse.values.tolist() == [1.5] and d.payload is None
    with pytest.raises(ValueError, match="their ids, payloads, texts and sparse vectors"):
        c.add([{"id": "e", "vector": [1, 1]}], sparse=[{1: 1.0}])


@pytest.mark.check
def test_tables_are_read_in_batches(tmp_path: pathlib.Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="SKIP: no pyarrow")
    import pyarrow.parquet

    numbers = pyarrow.array(np.arange(2 * ROWS, dtype=np.float32))
    table = pyarrow.table({"id": [f"r{i}" for i in range(ROWS)], "vector": pyarrow.FixedSizeListArray.from_arrays(numbers, 2), "year": np.arange(ROWS)})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet", row_group_size=1000)
    with pyarrow.ipc.new_file(tmp_path / "f.arrow", table.schema) as out:
        out.write_table(table, max_chunksize=5000)
    with pyarrow.ipc.new_stream(tmp_path / "s.arrow", table.schema) as out:
        out.write_table(table)
    for file in ("t.parquet", "f.arrow", "s.arrow"):
        c = warpwave.Store(tmp_path / (file + ".db"), device="cpu").create("docs", dim=2)
        seen: list[tuple[int, int]] = []

        def stop(done: int, total: int, seen: list[tuple[int, int]] = seen) -> None:
            seen.append((done, total))
            raise InterruptedError

        with pytest.raises(InterruptedError):
            c.add_file(tmp_path / file, progress=stop)
        assert 0 < seen[0][0] < ROWS and seen[0][1] in (ROWS, seen[0][0]) and len(c) == seen[0][0]
        assert c.add_file(tmp_path / file, resume=True) == ROWS - seen[0][0]
        assert len(c) == ROWS and c["r69999"].payload == {"year": 69999} and c.get("r3", vectors=True).vector.tolist() == [6, 7]
    with pytest.raises(ValueError, match="has no column 'v'; it has id, vector, year"):
        c.add_file(tmp_path / "t.parquet", vector="v")
