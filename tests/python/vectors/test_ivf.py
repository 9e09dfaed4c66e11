"""Indexes of collections, in memory and in stores: built, searched, calibrated; and the index with the calls of FAISS's IndexIVFFlat."""
import asyncio

import numpy as np
import pytest

import warpwave
import warpwave.aio


@pytest.fixture
def clustered():
    random = np.random.default_rng(5)
    centers = random.normal(size=(20, 24)) * 4
    return (centers[random.integers(0, 20, 3000)] + random.normal(size=(3000, 24))).astype(np.float32)


def test_an_index_is_built_searched_and_dropped(clustered):
    c = warpwave.Collection(24, metric="l2", device="cpu")
    c.add(clustered)
    assert c.ivf is None
    with pytest.raises(warpwave.InvalidArgument):
        c.search(clustered[0], nprobe=2)
    told = []
    info = c.build_ivf(nlist=30, iterations=5, progress=lambda done, total: told.append((done, total)))
    assert info.nlist >= 30 and info.rows == 3000 and info.rows_largest <= 4 * info.rows_mean and told
    exact = c.search(clustered[:50], k=5)
    few = c.search(clustered[:50], k=5, nprobe=3, stats=True)
    assert (exact.proven == 5).all()
    assert few.stats.lists_read >= 150 and 0 < few.stats.list_rows_read < 50 * 3000
    for q in range(50):
        assert few.rows[q, :few.proven[q]].tolist() == exact.rows[q, :few.proven[q]].tolist()
    assert few.proven.sum() > 0 and few[3].proven == few.proven[3]
    assert c.search(clustered[7], k=5, nprobe=3).proven == few.proven[7]
    all_lists = c.search(clustered[:50], k=5, nprobe=info.nlist)
    assert (all_lists.rows == exact.rows).all() and (all_lists.scores == exact.scores).all()
    c.add(clustered[:10] + 0.001)
    assert c.ivf.rows_added == 10
    c.drop_ivf()
    assert c.ivf is None
    with pytest.raises(warpwave.NotFound):
        c.drop_ivf()


def test_a_recall_is_kept_by_such_queries(clustered):
    c = warpwave.Collection(24, device="cpu")
    c.add(clustered)
    c.build_ivf(nlist=40)
    with pytest.raises(warpwave.InvalidArgument):
        c.search(clustered[0], recall=0.9)
    with pytest.raises(warpwave.OutOfRange):
        c.calibrate(clustered[:100])
    with pytest.raises(ValueError):
        c.calibrate(clustered[:400, :5])
    info = c.calibrate(seed=3)
    assert info.calibration_queries == 1000 and info.calibration_k == 10 and info.calibration_rows_added == 0
    queries = clustered + np.random.default_rng(6).normal(size=clustered.shape).astype(np.float32) * 0.05
    exact = c.search(queries, k=10).rows
    for wanted in (0.5, 0.9):
        found = c.search(queries, k=10, recall=wanted, stats=True)
        recalls = np.array([len(set(a) & set(b)) for a, b in zip(exact, found.rows)]) / 10
        assert (recalls < wanted).mean() < 0.03
        assert found.stats.list_rows_read < len(queries) * len(clustered)
    assert (c.search(queries, k=10, recall=1).rows == exact).all()
    with pytest.raises(warpwave.OutOfRange):
        c.calibrate(recall=2)
    c.calibrate(recall=0.95)
    found = c.search(queries, k=10, recall=0.95).rows
    assert (np.array([len(set(a) & set(b)) for a, b in zip(exact, found)]) < 9.5).mean() < 0.03
    c.calibrate(queries[:500], k=5)
    assert c.ivf.calibration_k == 5
    c.remove(["0", "1", "2"])
    assert c.ivf.calibration_rows_removed == 3 and c.ivf.calibration_time > 1_700_000_000


def test_the_calls_of_faiss(clustered):
    index = warpwave.IndexIVFFlat(None, 24, 25, device="cpu")
    with pytest.raises(ValueError):
        index.add(clustered)
    with pytest.raises(ValueError):
        index.train(clustered[:10])
    index.train(clustered)
    index.add(clustered[:20])
    assert index.is_trained and index.search(clustered[:2], 3)[1][1, 0] == 1  # exact while there are few
    index.add(clustered[20:])
    exact = warpwave.IndexFlat(24, device="cpu")
    exact.add(clustered)
    wanted = exact.search(clustered[:100], 10)
    index.nprobe = 25
    for ours, theirs in zip(index.search(clustered[:100], 10), wanted):
        assert (ours == theirs).all()
    index.nprobe = 4
    found = index.search(clustered[:100], 10)[1]
    assert np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found, wanted[1])]) > 0.8


def test_a_store_keeps_the_index(clustered, tmp_path):
    memory = warpwave.Collection(24, metric="l2", device="cpu")
    memory.add(clustered)
    memory.build_ivf(nlist=30, iterations=3)
    with warpwave.Store(tmp_path / "s.db", device="cpu") as store:
        docs = store.create("docs", 24, metric="l2")
        docs.add(clustered)
        told = []
        assert docs.build_ivf(nlist=30, iterations=3, progress=lambda done, total: told.append(done)).rows == 3000 and told
        docs.calibrate(seed=1)
        memory.calibrate(seed=1)
    with warpwave.Store(tmp_path / "s.db", device="cpu") as store:
        assert store.list()["docs"]["index"]["nlist"] == memory.ivf.nlist
        docs = store["docs"]
        for asked in ({"nprobe": 3}, {"recall": 0.9}, {"nprobe": 1000}):
            ours, theirs = docs.search(clustered[:40], k=5, **asked), memory.search(clustered[:40], k=5, **asked)
            assert (ours.rows == theirs.rows).all() and (ours.scores == theirs.scores).all() and (ours.proven == theirs.proven).all()
        docs.add(clustered[:10] + 0.5)
        assert docs.ivf.rows_added == 10
        store.check()
        docs.drop_ivf()
        assert docs.ivf is None and "index" not in store.list()["docs"]


def test_the_asynchronous_interface_has_the_index(clustered, tmp_path):
    async def work():
        async with await warpwave.aio.AsyncStore.open(tmp_path / "s.db", device="cpu") as store:
            docs = await store.create("docs", 24, metric="l2")
            await docs.add(clustered)
            assert (await docs.build_ivf(nlist=20, iterations=2)).nlist >= 20
            found = await docs.search(clustered[:4], k=3, nprobe=2)
            assert len(found.proven) == 4

    asyncio.run(work())
