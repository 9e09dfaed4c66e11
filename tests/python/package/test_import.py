"""`python -m warpwave import`: collections of other stores, moved and compared. The packages of the others come with the nightly tests."""
import os
import shlex
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT, run_python
from test_guide import blocks

import warpwave
from warpwave import _import

sys.path.insert(0, str(ROOT / "tests/server/clients"))
from served import Served  # noqa: E402

COMMAND = os.environ["WARPWAVE_COMMAND"]


def moved(*arguments):
    """The exit code, and what was printed to both streams."""
    done = subprocess.run([sys.executable, "-m", "warpwave", "import", *map(str, arguments)], capture_output=True, text=True, timeout=600, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def source(monkeypatch):
    """A function that puts batches in the place of what the source "faiss" reads."""
    def put(*batches, rows, metric="l2", note=""):
        monkeypatch.setitem(_import.SOURCES, "faiss", _import.Source(lambda asked: _import.Found("docs", rows, metric, iter(batches), note), "FILE", "a test"))
    return put


def batch(first, count, **more):
    vectors = np.random.default_rng(first).standard_normal((count, 3)).astype(np.float32)
    return _import.Batch(vectors, [f"r{i}" for i in range(first, first + count)], **more)


def test_rows_arrive_to_the_bit(source, tmp_path, capsys):
    one, two = batch(0, 3, payloads=[{"b": 1, "a": [None, 0.1]}, None, {"ü": 2**60}], texts=["", None, "a text"]), batch(3, 2)
    source(one, two, rows=5, metric="ip", note="a remark")
    assert _import.main(["faiss", "x", "--store", str(tmp_path / "d.db")]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == ["note: a remark", f"{tmp_path}/d.db: collection 'docs', 5 rows x 3, dot"]
    read, stored = said[2].split(": ")[1].split(", ")
    assert read.removesuffix(" read") == stored.removesuffix(" stored")
    docs = warpwave.Store(tmp_path / "d.db", device="cpu")["docs"]
    assert docs.metric == "dot" and list(docs) == ["r0", "r1", "r2", "r3", "r4"] and docs["r1"].payload is None
    assert docs["r0"].payload == {"b": 1, "a": [None, 0.1]} and docs["r2"].payload == {"ü": 2**60}
    assert np.array_equal(np.concatenate([one.vectors, two.vectors]).view("i4"), docs.get().vectors.view("i4"))
    assert [row["text"] for row in docs.to_list()] == ["", None, "a text", None, None]


def test_a_checksum_sees_every_part_of_a_row():
    rows = [("a", [1, 2], {"x": 1}, None), ("b", [1, 2], {"x": 1}, None), ("a", [1, np.nextafter(np.float32(2), np.float32(3))], {"x": 1}, None),
            ("a", [1, 2], {"x": 1.5}, None), ("a", [1, 2], {"x": 1}, ""), ("a", [-0.0, 2], {"x": 1}, None), ("a", [0.0, 2], {"x": 1}, None)]
    sums = set()
    for identifier, vector, payload, text in rows:
        made = _import.Checksum()
        made.add(identifier, np.array(vector, np.float32), payload, text)
        sums.add(made.text)
    assert len(sums) == len(rows)


@pytest.mark.parametrize("batches, rows, why", [
    ([batch(0, 3), batch(2, 3)], 6, "r2"),  # an id twice
    ([batch(0, 3)], 4, "4 rows announced, 3 came"),
    ([_import.Batch(np.array([[1, np.nan]], np.float32))], 1, "a vector has a value that is not finite"),
    ([batch(0, 1, payloads=[{"x": float("nan")}])], 1, "a payload among rows 0 to 0 cannot be JSON"),
    ([], 0, "there are no rows to import"),
])
def test_what_fails_leaves_the_store_as_it_was(source, tmp_path, capsys, batches, rows, why):
    path = tmp_path / "d.db"
    with warpwave.Store(path, device="cpu") as store:
        store.create("other", dim=2).add([[1, 2]])
    source(*batches, rows=rows)
    assert _import.main(["faiss", "x", "--store", str(path)]) == 3
    assert why in capsys.readouterr().err
    assert list(warpwave.Store(path, device="cpu")) == ["other"]


def test_rows_that_changed_on_the_way_are_noticed(source, tmp_path, capsys, monkeypatch):
    source(batch(0, 3), rows=3)
    add = warpwave.Collection.add
    monkeypatch.setattr(warpwave.Collection, "add", lambda self, vectors, **more: add(self, np.where(vectors == vectors[1, 1], 0, vectors), **more))
    assert _import.main(["faiss", "x", "--store", str(tmp_path / "d.db")]) == 3
    assert "nothing was imported" in capsys.readouterr().err and list(warpwave.Store(tmp_path / "d.db", device="cpu")) == []


def test_a_name_that_is_taken_is_refused_and_what_a_killed_process_left_is_not(source, tmp_path, capsys):
    path = str(tmp_path / "d.db")
    with warpwave.Store(path, device="cpu") as store:
        store.create("docs" + _import._MOVING, dim=9)
    source(batch(0, 2), rows=2)
    assert _import.main(["faiss", "x", "--store", path]) == 0
    source(batch(0, 2), rows=2)
    assert _import.main(["faiss", "x", "--store", path]) == 3
    assert "already has a collection 'docs'; choose another name with --as" in capsys.readouterr().err
    source(batch(0, 2), rows=2, metric="Manhattan")
    assert _import.main(["faiss", "x", "--store", path, "--as", "more"]) == 3
    assert "the metric Manhattan has no counterpart here" in capsys.readouterr().err
    source(batch(0, 2), rows=2, metric="Manhattan")
    assert _import.main(["faiss", "x", "--store", path, "--as", "more", "--metric", "l2"]) == 0
    assert list(warpwave.Store(path, device="cpu")) == ["docs", "more"]


@pytest.mark.parametrize("arguments, code, why", [
    (["chroma", "none"], 3, "none/chroma.sqlite3 does not exist"), (["lancedb", "none"], 3, "none is not a folder"), (["faiss", "none"], 3, "none is not a file"),
    (["qdrant", "localhost", "docs"], 3, "localhost is no URL of a server"), (["qdrant", "http://127.0.0.1:9", "docs"], 3, "refused"),
    (["pgvector", "host=/none"], 3, "name the table"),
])
def test_what_cannot_be_read_is_said_in_a_sentence(arguments, code, why, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert _import.main([*arguments, "--store", "d.db"]) == code
    assert why in capsys.readouterr().err and not (tmp_path / "d.db").exists()


def test_the_command_in_c_says_where_importing_is_and_python_has_it():
    done = subprocess.run([COMMAND, "import", "faiss", "x"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "python3 -m warpwave import" in done.stderr
    code, said = moved("milvus", "x")
    assert code == 2 and "invalid choice: 'milvus'" in said


@pytest.mark.check
def test_points_come_from_a_server_with_qdrants_interface(tmp_path):
    """Our own server, whose interface is compared with Qdrant's client every night."""
    vectors = np.random.default_rng(7).standard_normal((2500, 4)).astype(np.float32)
    points = [{"id": i, "vector": vectors[i].tolist(), "payload": {"year": 1990 + i % 30} if i else {}} for i in range(2500)]
    with Served(COMMAND, tmp_path / "theirs.db") as server:
        url = f"http://127.0.0.1:{server.port}"
        assert moved("qdrant", url, "--store", tmp_path / "d.db")[1].strip().endswith("name the collection; it has no collection")
        assert server.ask("PUT", "/collections/points", {"vectors": {"size": 4, "distance": "Dot"}})[0] == 200
        assert server.ask("PUT", "/collections/points/points?wait=true", {"points": points})[0] == 200
        code, said = moved("qdrant", url, "--store", tmp_path / "d.db")
        assert code == 0 and "collection 'points', 2500 rows x 4, dot" in said, said
        code, said = moved("qdrant", url, "other", "--store", tmp_path / "d.db")
        assert code == 3 and "there is no collection 'other'; it has points" in said
        code, said = moved("qdrant", url, "points", "--store", tmp_path / "d.db", "--as", "p", "--vector", "image")
        assert code == 3 and "leave --vector out" in said
    ours = warpwave.Store(tmp_path / "d.db", device="cpu")["points"]
    assert np.array_equal(ours.get([str(i) for i in range(2500)]).vectors, vectors)
    assert ours["0"].payload is None and ours["7"].payload == {"year": 1997}


# What the commands of coming-from.md move: 250 vectors with ids and a year.
OTHER_STORES = """
import numpy as np
V, years = np.random.default_rng(3).standard_normal((250, 8)).astype(np.float32), [1990 + i % 30 for i in range(250)]
ids = [f"r{i}" for i in range(250)]
import chromadb
chroma = chromadb.PersistentClient(path="chroma").create_collection("docs", metadata={"hnsw:space": "cosine"})
chroma.add(ids=ids, embeddings=V.tolist(), metadatas=[{"year": year} for year in years], documents=[f"text {i}" for i in range(250)])
import lancedb
rows = [{"id": id, "vector": vector.tolist(), "year": year} for id, vector, year in zip(ids, V, years)]
lancedb.connect("lance").create_table("docs", data=rows)
import faiss
index = faiss.IndexFlatIP(8)
index.add(V)
faiss.write_index(index, "index.faiss")
named = faiss.IndexIDMap(faiss.IndexIVFFlat(faiss.IndexFlatL2(8), 8, 4))
named.train(V)
named.add_with_ids(V, np.arange(250) * 3 + 1000)
faiss.write_index(named, "named.faiss")
coded = faiss.index_factory(8, "SQ8")
coded.train(V)
coded.add(V)
faiss.write_index(coded, "coded.faiss")
from qdrant_client import QdrantClient, models
import sys
qdrant = QdrantClient(url=sys.argv[1], check_compatibility=False)
qdrant.create_collection("docs", vectors_config=models.VectorParams(size=8, distance=models.Distance.COSINE))
qdrant.upsert("docs", [models.PointStruct(id=n, vector=V[n].tolist(), payload={"year": years[n]}) for n in range(250)])
"""
POSTGRES = """
import numpy as np
import psycopg
import sys
V = np.random.default_rng(3).standard_normal((250, 8)).astype(np.float32)
with psycopg.connect(sys.argv[1]) as pg:
    pg.execute("CREATE EXTENSION vector")
    pg.execute("CREATE TABLE docs (id text PRIMARY KEY, embedding vector(8), year int, made date)")
    for i, vector in enumerate(V.tolist()):
        pg.execute("INSERT INTO docs VALUES (%s, %s, %s, '2026-01-02')", [f"r{i}", str(vector), 1990 + i % 30])
    pg.execute("INSERT INTO docs VALUES ('none', NULL, 1)")
    pg.execute("CREATE INDEX ON docs USING hnsw (embedding vector_ip_ops)")
"""


COMMANDS = [line for block in blocks("docs/guide/coming-from.md", "sh") for line in block.splitlines() if "warpwave import" in line]


def test_the_guide_has_a_command_for_each_source():
    assert [shlex.split(line)[4] for line in COMMANDS] == ["chroma", "lancedb", "qdrant", "pgvector", "faiss"] == list(_import.SOURCES)


def move_as_the_guide_says(source, **replaced):
    (line,) = [line for line in COMMANDS if f"import {source} " in line]
    for old, new in replaced.values():
        assert old in line
        line = line.replace(old, new)
    code, said = moved(*shlex.split(line)[4:])
    assert code == 0 and "250 rows x 8" in said, said


@pytest.mark.nightly
def test_the_commands_of_the_guide_move_all_of_a_collection(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Served(COMMAND, tmp_path / "theirs.db") as server:
        address = f"http://127.0.0.1:{server.port}"
        subprocess.run([sys.executable, "-c", OTHER_STORES, address], check=True, timeout=900)
        for source in ("chroma", "lancedb", "faiss"):
            move_as_the_guide_says(source)
        move_as_the_guide_says("qdrant", url=("http://localhost:6333", address))
    for file, metric, note in (("named", "l2", ""), ("coded", "l2", "note: IndexScalarQuantizer gives approximations")):
        code, said = moved("faiss", f"{file}.faiss", "--store", "docs.db")
        assert code == 0 and said.startswith(note) and f"250 rows x 8, {metric}" in said, said
    assert run_python("""
import numpy as np, warpwave
V = np.random.default_rng(3).standard_normal((250, 8)).astype(np.float32)
store = warpwave.Store("docs.db")
print([np.array_equal(store[name][of].vector, V[7]) for name, of in (("lance", "r7"), ("index", "7"), ("named", "1021"))])
print(np.allclose(store["chroma"]["r7"].vector, V[7], atol=1e-6), np.allclose(store["points"]["7"].vector, V[7] / np.linalg.norm(V[7]), atol=1e-6))
for name in ("chroma", "lance", "points", "index", "named"):
    print(name, store[name].metric, store[name].get(limit=8)[7].payload)
print(store["chroma"].to_list()[7]["text"])
""") == """[True, True, True]
True True
chroma cosine {'year': 1997}
lance l2 {'year': 1997}
points cosine {'year': 1997}
index dot None
named l2 None
text 7
"""


@pytest.mark.nightly
def test_the_command_of_the_guide_moves_a_table_of_pgvector(tmp_path, monkeypatch):
    (tmp_path / "runtime").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
    pgserver = pytest.importorskip("pgserver", reason="SKIP: there is no package pgserver, PostgreSQL with pgvector, for this machine")
    monkeypatch.chdir(tmp_path)
    postgres = pgserver.get_server(tmp_path / "postgres")
    subprocess.run([sys.executable, "-c", POSTGRES, postgres.get_uri()], check=True, timeout=300)
    move_as_the_guide_says("pgvector", dsn=("postgresql://localhost/shop", f"'{postgres.get_uri()}'"))
    code, said = moved("pgvector", postgres.get_uri(), "docs", "--store", "docs.db")
    assert code == 0 and said.startswith("note: left out without a vector: 1 row\n"), said
    postgres.cleanup()
    assert run_python("""
import numpy as np, warpwave
V = np.random.default_rng(3).standard_normal((250, 8)).astype(np.float32)
pg = warpwave.Store("docs.db")["pg"]
print(np.array_equal(pg.get([f"r{i}" for i in range(250)]).vectors, V), pg.metric, pg["r7"].payload)
""") == "True dot {'made': '2026-01-02', 'year': 1997}\n"
