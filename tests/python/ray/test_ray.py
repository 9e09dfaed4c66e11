"""Batches over Ray on a cluster of this machine: the answers of one collection, for any number of shards, also when actors die."""
import pathlib

import numpy as np
import pytest

import warpwave

ray = pytest.importorskip("ray", reason="Ray is not installed")
arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
parquet = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("ray.data")

from warpwave.ray import Shards  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own

ROWS, DIM, QUERIES, K = 3000, 16, 200, 7


@pytest.fixture(scope="module")
def cluster():
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def rows():
    """Clustered rows with many ties: every tenth row is a copy of an earlier one."""
    random = np.random.default_rng(1)
    vectors = random.normal(size=(8, DIM)).astype(np.float32)[random.integers(0, 8, ROWS)] + 0.3 * random.normal(size=(ROWS, DIM)).astype(np.float32)
    for i in range(10, ROWS, 10):
        vectors[i] = vectors[random.integers(0, i)]
    return vectors


@pytest.fixture(scope="module")
def folder(rows, tmp_path_factory):
    made = tmp_path_factory.mktemp("ray")
    for part in range(4):
        first, end = part * ROWS // 4, (part + 1) * ROWS // 4
        table = arrow.table({"id": [f"row{i}" for i in range(first, end)], "embedding": list(rows[first:end]), "year": [2000 + i % 5 for i in range(first, end)]})
        parquet.write_table(table, made / f"part{part}.parquet", row_group_size=311)
    return str(made)


def queries(rows):
    return ray.data.from_arrow(arrow.table({"number": range(QUERIES), "embedding": list(rows[:QUERIES] + np.float32(0.001))}))


def expected(rows, metric, where=None):
    with warpwave.Collection(DIM, metric, device="cpu") as whole:
        whole.add(rows, [f"row{i}" for i in range(ROWS)], [{"year": 2000 + i % 5} for i in range(ROWS)])
        found = whole.search(rows[:QUERIES] + np.float32(0.001), K, where=where)
        return found.ids, found.scores


def check(answer, ids, scores):
    taken = sorted(answer.take_all(), key=lambda row: row["number"])
    assert [list(row["hit_ids"]) for row in taken] == [list(line) for line in ids]
    assert b"".join(np.asarray(row["hit_scores"], np.float32).tobytes() for row in taken) == np.ascontiguousarray(scores, np.float32).tobytes()


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("metric", ["cosine", "l2"])
def test_any_number_of_shards_gives_the_bits_of_one_collection(cluster, folder, rows, shards, metric):
    with Shards.from_parquet(folder, vector="embedding", id="id", payload=["year"], shards=shards, device="cpu", metric=metric) as made:
        assert len(made) == ROWS
        check(made.search(queries(rows), K), *expected(rows, metric))
        check(made.search(queries(rows), K, where={"year": {"$gt": 2002}}), *expected(rows, metric, {"year": {"$gt": 2002}}))


def test_actors_that_die_change_no_answer(cluster, folder, rows):
    with Shards.from_parquet(folder, vector="embedding", id="id", shards=3, device="cpu", metric="l2") as made:
        lazy = made.search(queries(rows), K, batch_rows=10)
        answered = []
        for i, batch in enumerate(lazy.iter_batches(batch_size=10, batch_format="numpy")):
            if i in (2, 9):
                ray.kill(made._actors[i % 3], no_restart=False)
            answered += [(int(n), list(ids), np.asarray(s, np.float32).tobytes()) for n, ids, s in zip(batch["number"], batch["hit_ids"], batch["hit_scores"])]
        ids, scores = expected(rows, "l2")
        assert sorted(answered) == [(i, list(ids[i]), scores[i].tobytes()) for i in range(QUERIES)]


def test_dedup_names_the_first_equal_row(cluster, folder, rows):
    first = {}
    copies = [first.setdefault(row.tobytes(), i) for i, row in enumerate(rows)]
    data = ray.data.read_parquet(folder)
    with Shards.from_parquet(folder, vector="embedding", id="id", shards=3, device="cpu", metric="l2") as made:
        found = {row["id"]: row["duplicate_of"] for row in made.dedup(data, 0.0).take_all()}
    assert found == {f"row{i}": f"row{copy}" if copy != i else None for i, copy in enumerate(copies)}
    assert sum(of is not None for of in found.values()) >= ROWS // 10 - 2


def test_what_cannot_be_done_is_said(cluster, folder, rows):
    with pytest.raises(KeyError, match="no column 'vector'"):
        Shards.from_parquet(folder, vector="vector")
    with pytest.raises(ValueError, match="at least 1"):
        Shards.from_parquet(folder, vector="embedding", shards=0)
    with Shards.from_parquet(pathlib.Path(folder).as_posix(), vector="embedding", shards=1, device="cpu") as made:
        with pytest.raises(ValueError, match="dedup needs ids"):
            made.dedup(queries(rows), 0.9)
