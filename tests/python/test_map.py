"""Maps of collections, in memory and in stores."""
import numpy as np
import pytest

import warpwave


@pytest.fixture
def rows():
    random = np.random.default_rng(3)
    return (random.normal(size=(5, 16))[random.integers(0, 5, 200)] * 4 + random.normal(size=(200, 16))).astype(np.float32)


def test_a_map_has_a_point_for_each_row(rows):
    c = warpwave.Collection(16, metric="l2", device="cpu")
    c.add(rows, ids=[f"row{i}" for i in range(200)])
    told = []
    m = c.map(seed=5, steps=100, progress=lambda done, total: told.append((done, total)))
    assert m.points.shape == (200, 2) and m.points.dtype == np.float32 and np.isfinite(m.points).all()
    assert m.ids[7] == "row7" and m.handles.tolist() == list(range(200)) and len(m) == 200
    assert (m.origin, m.seed, m.steps, m.neighbours, m.kept) == ("made", 5, 100, 15, True) and told
    assert np.asarray(m) is m.points and np.asarray(m, dtype=np.float64).dtype == np.float64
    again = c.map()
    assert again.origin == "kept" and (again.points == m.points).all()
    c.add(rows[:1] + 0.01, ids=["new"])
    c.remove("row3")
    grown = c.map()
    assert grown.origin == "grown" and grown.rows_placed == 1 and grown.ids[-1] == "new" and "row3" not in grown.ids
    assert (grown.points[:3] == m.points[:3]).all() and (grown.points[3:-1] == m.points[4:]).all()
    remade = c.map(remake=True)
    assert remade.origin == "made" and remade.rows_placed == 0 and not (remade.points[:3] == m.points[:3]).all()
    c.drop_map()
    assert c.map(seed=5, steps=100).origin == "made"


def test_a_store_keeps_its_map(rows, tmp_path):
    with warpwave.Store(tmp_path / "maps.db", device="cpu") as store:
        c = store.create("docs", 16, metric="l2")
        c.add(rows)
        made = c.map(steps=50)
    with warpwave.Store(tmp_path / "maps.db", device="cpu") as store:
        kept = store["docs"].map()
        assert kept.origin == "kept" and (kept.points == made.points).all()
    memory = warpwave.Collection(16, metric="l2", device="cpu")
    memory.add(rows)
    assert (memory.map(steps=50).points == made.points).all()


def test_a_map_of_nothing_and_what_is_refused():
    c = warpwave.Collection(4, device="cpu")
    assert c.map().points.shape == (0, 2)
    for wrong in ({"neighbours": 1}, {"neighbours": 1000}, {"steps": -1}, {"seed": -2}):
        with pytest.raises(warpwave.OutOfRange):
            c.map(**wrong)
    c.add(np.eye(4))
    with pytest.raises(warpwave.InvalidArgument):
        c.map(nprobe=1)
    with pytest.raises(KeyboardInterrupt):
        def stop(done, total):
            raise KeyboardInterrupt
        c.map(progress=stop)
