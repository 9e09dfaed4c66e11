"""Collections: writing, searching and reading, on every device."""
import pickle

import numpy as np
import pytest

import warpwave


def brute_force(rows, queries, metric):
    """The order that exact search must find, in f64."""
    a, b = queries.astype(np.float64), rows.astype(np.float64)
    if metric == "l2":
        return np.argsort(((a[:, None, :] - b[None, :, :]) ** 2).sum(-1), axis=1, kind="stable")
    dots = a @ b.T
    if metric == "cosine":
        dots = dots / np.linalg.norm(a, axis=1)[:, None] / np.linalg.norm(b, axis=1)[None, :]
    return np.argsort(-dots, axis=1, kind="stable")


@pytest.mark.parametrize("metric", ["cosine", "l2", "dot"])
def test_search_finds_what_brute_force_finds(device, points, metric):
    c = warpwave.Collection(20, metric=metric, device=device)
    c.add(points[:250])
    found = c.search(points[250:], k=7)
    assert found.rows.shape == found.scores.shape == found.ids.shape == (50, 7)
    np.testing.assert_array_equal(found.rows, brute_force(points[:250], points[250:], metric)[:, :7])
    assert found.ids[3, 2] == str(found.rows[3, 2])
    one = c.search(points[250], k=7)
    np.testing.assert_array_equal(one.scores, found.scores[0])
    assert one.scores[0] == np.float32(warpwave.score(metric, points[250], points[one.rows[0]]))


def test_all_devices_give_the_same_bits(points):
    answers = []
    for info in warpwave.devices():
        with warpwave.Collection(20, device=info.id) as c:
            c.add(points[:250])
            found = c.search(points[250:], k=20)
            answers.append((found.rows.tobytes(), found.scores.tobytes()))
    assert len(answers) >= 1
    assert all(answer == answers[0] for answer in answers)


def test_ids_and_payloads_come_back(device):
    c = warpwave.Collection(2, metric="l2", device=device)
    payloads = [{"n": 1, "t": "ä\n\"x\""}, None, [1, 2.5, None], "text"]
    c.add([[0, 0], [1, 0], [2, 0], [3, 0]], ids=["a", "bär", "c d", 7], payloads=payloads)
    found = c.search([[0, 0], [3, 0]], k=4, payloads=True, vectors=True)
    assert found.ids.tolist() == [["a", "bär", "c d", "7"], ["7", "c d", "bär", "a"]]
    assert found.payloads == [payloads, payloads[::-1]]
    assert found.vectors.shape == (2, 4, 2)
    np.testing.assert_array_equal(found.vectors[1, :, 0], [3, 2, 1, 0])
    assert found[1][0] == warpwave.Hit("7", 0.0, 3, "text")
    assert [hit.id for hit in found[0]] == ["a", "bär", "c d", "7"]
    assert type(found.ids[0, 0]) is str
    with pytest.raises(ValueError, match="payloads=True"):
        c.search([0, 0]).payloads
    with pytest.raises(ValueError, match="vectors=True"):
        c.search([0, 0]).vectors


def test_many_ids_come_back_as_few_do(points):
    """More hits than are taken one by one."""
    c = warpwave.Collection(20, device="cpu")
    names = [f"näme {i}" * (i % 5 + 1) for i in range(300)]
    c.add(points, ids=names, payloads=[None if i % 3 else {"i": i} for i in range(300)])
    found = c.search(points[:40], k=11, payloads=True)
    assert [[names[row] for row in rows] for rows in found.rows] == found.ids.tolist()
    assert [[None if row % 3 else {"i": row} for row in rows] for rows in found.rows.tolist()] == found.payloads


def test_radius_finds_all_within(device, points):
    c = warpwave.Collection(20, metric="l2", device=device)
    c.add(points[:250])
    distances = np.sqrt(((points[250:, None].astype(np.float64) - points[None, :250]) ** 2).sum(-1))
    found = c.search(points[250:], radius=4.5)
    assert isinstance(found.rows, list) and len(found.rows) == 50
    for rows, scores, wanted in zip(found.rows, found.scores, distances):
        assert sorted(rows) == np.flatnonzero(wanted <= 4.5).tolist()
        assert (np.diff(scores) >= 0).all()
    assert found.counts.tolist() == (distances <= 4.5).sum(1).tolist()
    best = c.search(points[250:], k=1, radius=4.5)
    assert (best.totals == found.counts).all() and (best.counts <= 1).all()
    np.testing.assert_array_equal(found.starts, np.concatenate([[0], np.cumsum(found.counts)]))


def test_mask_says_what_may_be_found(device, points):
    c = warpwave.Collection(20, device=device)
    c.add(points)
    mask = np.arange(300) % 7 == 3
    assert c.mask_rows == 300
    found = c.search(points[:5], k=50, mask=mask)
    assert found.rows.shape == (5, mask.sum())
    assert set(found.rows.ravel()) == set(np.flatnonzero(mask))
    with pytest.raises(TypeError, match="bool"):
        c.search(points[:5], mask=np.arange(300))
    with pytest.raises(ValueError, match="dimensions"):
        c.search(points[:5], mask=mask.reshape(3, 100))
    assert c.search(points[0], mask=np.zeros(300, bool)).ids.size == 0


def test_where_without_a_store_says_so(points):
    c = warpwave.Collection(20, device="cpu")
    with pytest.raises(ValueError, match="Store"):
        c.search(points[0], where="year > 2000")


def test_upsert_update_and_remove(device):
    c = warpwave.Collection(2, metric="l2", device=device)
    c.add(np.eye(2), ids=["a", "b"], payloads=[1, 2])
    c.upsert([[5, 5], [6, 6]], ids=["b", "c"], payloads=[20, 30])
    assert len(c) == 3 and c["b"].payload == 20 and c["c"].vector.tolist() == [6, 6]
    c.update("a", payloads={"new": True})
    assert c["a"].payload == {"new": True} and c["a"].vector.tolist() == [1, 0]
    c.update(["a"], vectors=[[9, 9]])
    assert c["a"].payload == {"new": True} and c["a"].vector.tolist() == [9, 9]
    c.update(["a", "c"], vectors=[[1, 1], [2, 2]], payloads=[None, "x"])
    assert c["a"].payload is None and c["c"].payload == "x"
    before = [tuple(row.vector) + (row.id, str(row.payload)) for row in c.items()]
    with pytest.raises(KeyError, match="nobody"):
        c.update(["a", "nobody"], vectors=np.zeros((2, 2)))
    with pytest.raises(KeyError):
        c.remove(["a", "nobody"])
    with pytest.raises(ValueError, match="neither"):
        c.update("a")
    assert before == [tuple(row.vector) + (row.id, str(row.payload)) for row in c.items()]
    c.remove(["a", "b"])
    assert c.discard(["c", "nobody"]) == 1 and len(c) == 0
    assert c.info.rows_removed > 0
    c.compact()
    assert c.info.rows_removed == 0


def test_reading(device):
    c = warpwave.Collection(3, device=device)
    ids = [f"id{i}" for i in range(2500)]
    c.add(np.arange(7500).reshape(2500, 3) + 1, ids=ids)
    c.remove(["id3"])
    assert list(c) == [i for i in ids if i != "id3"]
    assert "id4" in c and "id3" not in c and 4 not in c and None not in c and "" not in c and "x" * 1000 not in c
    assert [row.id for row in c.items(vectors=False)] == list(c)
    assert c["id1":"id5"].ids.tolist() == ["id1", "id2", "id4", "id5"]
    assert c[:"id1"].ids.tolist() == ["id0", "id1"]
    assert c["id2498":].ids.tolist() == ["id2498", "id2499"]
    assert len(c[:]) == 2499
    assert c[["id9", "id2"]].vectors.tolist() == [[28, 29, 30], [7, 8, 9]]
    assert c.get(["id9"], vectors=False, payloads=False).ids.tolist() == ["id9"]
    assert len(c.get()) == 2499
    for missing in ("id3", ["id1", "id3"], slice("id3", None)):
        with pytest.raises(KeyError, match="id3"):
            c[missing]
    with pytest.raises(ValueError, match="step"):
        c["id1":"id2":2]


def _in_memory(_):
    return warpwave.Collection(1, device="cpu")


def _in_a_store(folder):
    return warpwave.Store(folder / "s.db", device="cpu").create("docs", 1)


@pytest.mark.parametrize("make", [_in_memory, _in_a_store])
@pytest.mark.parametrize("where", [None, {"round": 0}])
def test_iteration_is_over_the_rows_of_one_moment(tmp_path, make, where):
    ids = [f"r{i}" for i in range(3000)]
    changes = [lambda c: c.remove(ids[2000:]), lambda c: c.clear(), lambda c: c.update(ids, vectors=np.full((3000, 1), 7)),
               lambda c: c.upsert(np.full((3000, 1), 7), ids=ids, payloads=[{"round": 1}] * 3000)]
    for i, change in enumerate(changes):
        (tmp_path / str(i)).mkdir()
        c = make(tmp_path / str(i))
        c.add(np.ones((3000, 1)), ids=ids, payloads=[{"round": 0}] * 3000)
        rows = c.iterate(where)
        first = next(rows)
        change(c)
        seen = [first, *rows]
        assert [row.id for row in seen] == ids
        assert all(row.vector[0] == 1 and row.payload == {"round": 0} for row in seen)
        left = c.items()
        next(left, None)
        c.close()  # before the iterator ends
        del left


def test_nothing_changes_when_a_call_is_refused(device):
    c = warpwave.Collection(2, device=device)
    c.add([[1, 2]], ids=["a"])
    for vectors, ids, payloads, error in (([[1, 2], [3, 4]], ["b", "a"], None, warpwave.DuplicateId), ([[1, 2, 3]], ["b"], None, warpwave.DimensionMismatch),
                                          ([[1, np.nan]], ["b"], None, warpwave.InvalidArgument), ([[1, 1e300]], ["b"], None, warpwave.InvalidArgument),
                                          ([[1, 2]], ["b", "c"], None, ValueError), ([[1, 2]], ["b"], [{1: object()}], TypeError),
                                          ([[1, 2]], ["b"], [float("nan")], ValueError), ([[1, 2]], ["b\0c"], None, ValueError),
                                          ([[1, 2]], [""], None, ValueError), ([[1, 2]], [1.5], None, TypeError), ([[1, 2]], ["\ud800"], None, ValueError)):
        with pytest.raises(error):
            c.add(vectors, ids=ids, payloads=payloads)
    assert list(c) == ["a"]


@pytest.mark.parametrize("metric", ["cosine", "l2", "dot"])
def test_more_hits_than_a_kernel_keeps_are_those_of_a_sort(tmp_path, metric):
    vectors = np.random.default_rng(3).integers(-3, 4, (5000, 4)).astype(np.float32)  # many equal scores
    vectors[(vectors == 0).all(axis=1)] = 1
    queries = vectors[[7, 11]] + 0.5
    memory = warpwave.Collection(4, metric=metric, device="cpu")
    stored = warpwave.Store(tmp_path / "s.db", device="cpu").create("docs", 4, metric=metric)
    for c in (memory, stored):
        c.add(vectors)
        few, all_rows = c.search(queries, k=2048), c.search(queries, k=16384)
        for q in range(2):
            scores = np.array([warpwave.score(metric, queries[q], v) for v in vectors], np.float32)
            order = np.argsort(scores if metric == "l2" else -scores, kind="stable")
            assert (all_rows[q].rows == order).all() and (all_rows[q].scores == scores[order]).all()
            assert (few[q].rows == order[:2048]).all()
            assert len(c.search(queries[q], k=3000)) == 3000
    c.build_ivf(nlist=16)
    found = c.search(queries, k=4000, nprobe=2)
    assert (found[0].rows == all_rows[0].rows[:4000]).all() and (np.asarray(found.proven) == 4000).all()


def test_limits_are_told(points):
    c = warpwave.Collection(20, device="cpu")
    c.add(points)
    with pytest.raises(warpwave.OutOfRange, match="16384"):
        c.search(points[0], k=16385)
    with pytest.raises(ValueError):
        c.search(points[0], k=-1)
    assert c.search(points[0], k=0).ids.size == 0
    assert c.search(points[:3], k=0).ids.shape == (3, 0)
    assert c.search(np.empty((0, 20)), k=4).ids.shape == (0, 4)
    assert c.search([], k=4).rows.shape == (0, 4)
    assert warpwave.Collection(20, device="cpu").search(points[:3]).ids.shape == (3, 0)


@pytest.mark.parametrize("options", [{"dim": 0}, {"dim": 2, "metric": "manhattan"}, {"dim": 2, "screen": "x"}, {"dim": 2, "type": "f12"}, {"dim": 70000}])
def test_a_collection_that_cannot_be_is_refused(options):
    with pytest.raises(ValueError):
        warpwave.Collection(device="cpu", **options)


def test_a_closed_collection_says_so(points):
    with warpwave.Collection(20, device="cpu", name="docs") as c:
        c.add(points)
    c.close()
    assert repr(c) == "<warpwave.Collection 'docs', closed>"
    for call in (lambda: c.add(points), lambda: c.search(points[0]), lambda: len(c), lambda: "1" in c, lambda: list(c), lambda: c.info, c.compact):
        with pytest.raises(ValueError, match="closed"):
            call()
    assert "closed" in c._repr_html_()


def test_moving_keeps_the_bits(points):
    c = warpwave.Collection(20, device="cpu")
    c.add(points)
    before = c.search(points[:9], k=9)
    for info in warpwave.devices():
        c.move(info.id)
        assert c.device == info.id
        after = c.search(points[:9], k=9)
        assert after.scores.tobytes() == before.scores.tobytes() and (after.rows == before.rows).all()


def test_stats_prove_the_search(device, points):
    c = warpwave.Collection(20, device=device)
    c.add(points)
    assert c.search(points[:2]).stats is None
    stats = c.search(points[:2], stats=True).stats
    assert stats.rows_scored >= 20 and stats.certificate >= 0


def test_texts_for_people(points):
    c = warpwave.Collection(20, device="cpu", name="docs")
    c.add(points, payloads=[{"tag": "<b>"}] * 300)
    assert repr(c) == "<warpwave.Collection 'docs': 300 rows of 20, cosine, on cpu>"
    found = c.search(points[:2], payloads=True)
    assert repr(found) == "<warpwave.Results of 2 queries, 20 hits>"
    assert repr(found[0]).startswith("<warpwave.Results of one query, 10 hits: 0: 1, ")
    for table in (c._repr_html_(), found._repr_html_(), found[1]._repr_html_()):
        assert table.startswith("<table>") and "&lt;b&gt;" in table and "<b>" not in table
    assert c._repr_html_().count("<tr>") == 6 and found._repr_html_().count("<tr>") == 21


def test_results_pickle_and_stay(points):
    c = warpwave.Collection(20, device="cpu")
    c.add(points, payloads=list(range(300)))
    found = c.search(points[:4], k=3, payloads=True, vectors=True, stats=True)
    copy = pickle.loads(pickle.dumps(found))
    c.close()
    assert (copy.ids == found.ids).all() and copy.payloads == found.payloads and (copy.vectors == found.vectors).all()
    assert copy.stats == found.stats and copy.scores.tobytes() == found.scores.tobytes()
    assert (copy[2].ids == found[2].ids).all() and pickle.loads(pickle.dumps(found[2])).payloads == found.payloads[2]


def test_results_of_ten_thousand_queries_are_whole_arrays(random):
    c = warpwave.Collection(8, device="cpu")
    c.add(random.standard_normal((500, 8)))
    found = c.search(random.standard_normal((10_000, 8)), k=10)
    assert found.ids.shape == (10_000, 10)
    assert (found.ids.astype(np.int64) == found.rows).all()
    found.scores[:] = 0  # it is the caller's own


def test_progress_is_told_and_may_be_a_bar(points):
    c = warpwave.Collection(20, device="cpu")
    told = []
    c.add(points, progress=lambda done, total: told.append((done, total)))
    assert told and told[-1] == (300, 300)
    told.clear()
    c.search(points, progress=lambda done, total: told.append((done, total)))
    assert told and told[-1] == (300, 300)
    c.search(points, progress=True)
    c.compact(progress=True)


def test_what_progress_raises_stops_the_call_and_comes_out(points):
    c = warpwave.Collection(20, device="cpu")

    def fail(done, total):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        c.add(points, progress=fail)
    assert len(c) == 0
    c.add(points)
    with pytest.raises(LookupError, match="enough"):
        c.search(points, progress=fail)
    assert len(c.search(points)) == 300


def test_a_group_of_devices_answers_as_one_does():
    rows = np.random.default_rng(3).normal(size=(500, 12)).astype(np.float32)
    with warpwave.Device("cpu+cpu") as group:
        assert group.info.member_count == 2 and group.info.members.startswith("cpu ")
        spread, alone = warpwave.Collection(12, device=group), warpwave.Collection(12, device="cpu")
        for collection in (spread, alone):
            collection.add(rows)
        found, expected = spread.search(rows[:20], k=7), alone.search(rows[:20], k=7)
        assert (found.rows == expected.rows).all() and (found.scores == expected.scores).all()
        with pytest.raises(warpwave.Error):
            group.drop("cuda:9")


def test_rows_can_be_on_the_host():
    collection = warpwave.Collection(3, device="cpu", rows="host")
    collection.add([[1, 0, 0], [0, 1, 0]], ids=["a", "b"])
    assert collection.search([0, 1, 0.5], k=1).ids[0] == "b"
    with pytest.raises(ValueError):
        warpwave.Collection(3, device="cpu", rows="moon")
