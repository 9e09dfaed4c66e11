"""Multivectors of a store's rows: written, searched, reranked, fetched and saved; compared to the bit with a loop over NumPy's numbers."""
import pickle

import numpy as np
import pytest

import warpwave

DIM = 5


def random_rows(random, count):
    """Small integers: products and sums are exact, in any order."""
    return [None if number % 7 == 6 else random.integers(-9, 10, (random.integers(1, 9), DIM)).astype(np.float32) for number in range(count)]


def max_sim(query, row):
    return (query @ row.T).max(1).sum()


def nearest(query, rows, k):
    scores = [(max_sim(query, row), number) for number, row in enumerate(rows) if row is not None]
    return sorted(scores, key=lambda one: (-one[0], one[1]))[:k]


@pytest.fixture
def rows():
    return random_rows(np.random.default_rng(4), 60)


@pytest.fixture
def docs(tmp_path, rows):
    with warpwave.Store(tmp_path / "multi.db", device="cpu") as store:
        docs = store.create("docs", dim=2, metric="dot")
        docs.add(np.arange(120).reshape(60, 2), ids=[f"r{number}" for number in range(60)], payloads=[{"n": number % 3} for number in range(60)], multi=rows)
        yield docs


def check(found, expected):
    assert list(found.rows) == [number for _, number in expected]
    assert list(found.scores) == [score for score, _ in expected]


def test_searches_find_the_greatest_sums(docs, rows):
    random = np.random.default_rng(5)
    queries = [random.integers(-9, 10, (length, DIM)) for length in (1, 3, 32)]
    for query in queries:
        check(docs.search(multi=query, k=7), nearest(query, rows, 7))
        check(docs.search(multi=query.tolist(), k=100), nearest(query, rows, 100))
    several = docs.search(multi=queries, k=4)
    for found, query in zip(several, queries):
        check(found, nearest(query, rows, 4))
    three = np.stack([random.integers(-9, 10, (4, DIM)) for _ in range(2)])
    for found, query in zip(docs.search(multi=three, k=3), three):
        check(found, nearest(query, rows, 3))


def test_filters_masks_radius_and_groups(docs, rows):
    query = np.ones((2, DIM), np.float32)
    everything = nearest(query, rows, 60)
    check(docs.search(multi=query, k=60, where={"n": 1}), [one for one in everything if one[1] % 3 == 1])
    bound = everything[5][0]
    check(docs.search(multi=query, radius=bound), [one for one in everything if one[0] >= bound])
    groups = docs.search(multi=query, group_by="n", groups=3, group_size=1, payloads=True)
    assert sorted(payload["n"] for payload in groups.payloads) == [0, 1, 2] and groups.scores[0] == everything[0][0]


def test_a_first_search_is_reranked(docs, rows):
    query = np.ones((2, DIM), np.float32)
    first = docs.search([1, 1], k=10)
    mask = np.zeros(docs.mask_rows, bool)
    mask[first.rows] = True
    there = set(first.rows.tolist())
    check(docs.search(multi=query, k=5, mask=mask), [one for one in nearest(query, rows, 60) if one[1] in there][:5])


def test_multivectors_are_fetched(docs, rows):
    for found in (docs.get(["r3", "r6"], multi=True), pickle.loads(pickle.dumps(docs.get(["r3", "r6"], multi=True)))):
        assert found.multi[0].dtype == np.float32 and (found.multi[0] == rows[3]).all() and found.multi[1] is None
        assert (found[0].multi == rows[3]).all()
    assert (docs.get("r3", multi=True).multi == rows[3]).all() and "multi=" in repr(docs.get("r3", multi=True))
    with pytest.raises(ValueError, match="multi=True"):
        docs.get("r3").multi
    with pytest.raises(ValueError, match="multi=True"):
        docs.search([1, 1]).multi
    assert [row.id for row in docs.iterate(multi=True) if row.multi is None] == [f"r{number}" for number in range(6, 60, 7)]
    hit = docs.search(multi=rows[0], k=1)[0]
    assert docs.search([1, 1], k=1, multi=True)[0].multi is not None and hit.score == nearest(rows[0], rows, 1)[0][0]


def test_rows_change(docs, rows, tmp_path):
    docs.update("r3", [0, 1], multi=rows[4])
    assert (docs.get("r3", multi=True).multi == rows[4]).all()
    docs.update("r3", [0, 2])
    assert (docs.get("r3", multi=True).multi == rows[4]).all()
    docs.update("r3", [0, 2], multi=[None])
    assert docs.get("r3", multi=True).multi is None
    docs.upsert([[1, 1]], ids=["r4"])
    assert docs.get("r4", multi=True).multi is None
    docs.remove(["r5"])
    gone = [None if number in (3, 4, 5) else row for number, row in enumerate(rows)]
    query = np.ones((2, DIM), np.float32)
    found = docs.search(multi=query, k=60)
    assert list(found.ids) == [f"r{number}" for _, number in nearest(query, gone, 60)]
    docs.save(tmp_path / "copy.db")
    with warpwave.Store(tmp_path / "copy.db", device="cpu") as copy:
        again = copy["docs"].search(multi=query, k=60)
        assert list(again.ids) == list(found.ids) and (again.scores == found.scores).all()


def test_what_is_no_multivector_is_refused(docs, rows):
    for wrong, kind in (([[1, 2], [3]], ValueError), ("text", TypeError), ([1.0] * DIM, TypeError), (np.zeros((1025, DIM)), ValueError), (np.zeros((2, 0)), ValueError),
                        ([["a"] * DIM], (TypeError, ValueError)), ([[np.nan] * DIM], warpwave.Error), (np.ones((2, DIM + 1)), warpwave.Error)):
        with pytest.raises(kind):
            docs.search(multi=wrong)
        with pytest.raises((kind, ValueError) if isinstance(kind, type) else kind):
            docs.add([[1, 2]], multi=wrong)
    assert len(docs) == 60
    with pytest.raises(ValueError, match="1 multivector for 2 vectors"):
        docs.add([[1, 2], [3, 4]], multi=rows[0])
    with pytest.raises(ValueError, match="only one of them"):
        docs.search([1, 2], multi=rows[0])
    with pytest.raises(ValueError, match="only one of them"):
        docs.search(multi=rows[0], sparse={1: 1.0})
    with pytest.raises(ValueError, match="mmr"):
        docs.search(multi=rows[0], mmr=0.5)
    with pytest.raises(ValueError, match="give both"):
        docs.update("r3", multi=rows[0])
    with pytest.raises(warpwave.Error, match="in memory"):
        warpwave.Collection(2, device="cpu").add([[1, 2]], multi=rows[0])
