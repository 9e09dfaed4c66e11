"""Indexes of collections: built, searched, calibrated; and the index with the calls of FAISS's IndexIVFFlat."""
import numpy as np
import pytest

import warpwave


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
    c.calibrate(queries[:500], k=5)
    assert c.ivf.calibration_k == 5


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
