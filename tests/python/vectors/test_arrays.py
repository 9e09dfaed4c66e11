"""Arrays of every kind that people hand in: the answer is that of a plain one."""
import gc

import ml_dtypes
import numpy as np
import pandas
import pytest

import warpwave


@pytest.fixture
def plain(points):
    return np.round(points * 8) / 8  # every type below holds these numbers


def forms(plain):
    """The same numbers in memory of every kind."""
    n, dim = plain.shape
    strided = np.zeros((2 * n, 3 * dim), np.float32)
    strided[::2, ::3] = plain
    wide = np.zeros((n, dim + 5), np.float32)
    wide[:, :dim] = plain
    read_only = plain.copy()
    read_only.flags.writeable = False
    return {
        "plain": plain,
        "fortran": np.asfortranarray(plain),
        "elements apart": strided[::2, ::3],
        "rows apart": wide[:, :dim],
        "upside down": plain[::-1].copy()[::-1],
        "mirrored": plain[:, ::-1].copy()[:, ::-1],
        "read-only": read_only,
        "big-endian": plain.astype(">f4"),
        "unaligned": np.ndarray(plain.shape, np.float32, bytearray(b"\0" + plain.tobytes()), 1),
        "f64": plain.astype(np.float64),
        "f16": plain.astype(np.float16),
        "bf16": plain.astype(ml_dtypes.bfloat16),
        "long double": plain.astype(np.longdouble),
        "objects": plain.astype(object),
        "lists": plain.tolist(),
        "tuple of arrays": tuple(plain),
        "data frame": pandas.DataFrame(plain),
        "column of arrays": pandas.Series(list(plain)),
        "column of lists": pandas.Series(plain.tolist()),
        "tensor": warpwave.asarray(plain, device="cpu"),
        "tensor on another device": warpwave.asarray(plain, device=warpwave.devices()[-1].id),
        "subclass": plain.view(np.matrix),
        "masked": np.ma.array(plain),
    }


def test_vectors_and_queries_of_every_kind_give_the_same_answer(plain):
    reference = warpwave.Collection(20, device="cpu")
    reference.add(plain)
    wanted = reference.search(plain[:30], k=5)
    for name, rows in forms(plain).items():
        c = warpwave.Collection(20, device="cpu")
        c.add(rows)
        assert (c.get().vectors == plain).all(), name
        found = c.search(rows, k=5)
        assert (found.rows[:30] == wanted.rows).all(), name
        assert found.scores[:30].tobytes() == wanted.scores.tobytes(), name


def test_integers_and_booleans_are_numbers(random):
    whole = random.integers(0, 2, (50, 20))
    for kind in (np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64, np.bool_, ">i4"):
        c = warpwave.Collection(20, metric="l2", device="cpu")
        c.add(whole.astype(kind))
        assert (c.get().vectors == whole).all()


def test_a_single_vector_is_one_row(plain):
    c = warpwave.Collection(20, device="cpu")
    c.add(plain[3], ids="me", payloads=[1])
    assert list(c) == ["me"]
    c.add(plain[::50][:, ::1][1])
    assert len(c) == 2
    assert c.search(np.repeat(plain[3], 2)[::2]).ids[0] == "me"


@pytest.mark.parametrize("wrong", [np.float32(1), 5.0, np.zeros((2, 2, 20)), np.zeros((3, 20), complex), np.array(["a"] * 20), [[1, 2], [3]],
                                   np.zeros((3, 20), "datetime64[s]"), [None] * 20, "text", np.zeros(20, [("a", "f4")])])
def test_what_are_no_vectors_is_refused(wrong):
    c = warpwave.Collection(20, device="cpu")
    for call in (c.add, c.search):
        with pytest.raises((TypeError, ValueError)):
            call(wrong)
    assert len(c) == 0


def test_a_table_where_vectors_are_meant_is_sent_to_add_table():
    with pytest.raises(TypeError, match=r"add_table\(\)"):
        warpwave.Collection(2, device="cpu").add(pandas.DataFrame({"id": ["a"], "vector": [[1.0, 2.0]]}))


def test_empty_arrays_add_nothing():
    c = warpwave.Collection(20, device="cpu")
    for empty in (np.empty((0, 20)), [], np.empty((0, 20), ">f8"), pandas.DataFrame(np.empty((0, 20)))):
        c.add(empty)
        c.add(empty, ids=[], payloads=[])
    assert len(c) == 0
    with pytest.raises(warpwave.DimensionMismatch):
        c.add(np.empty((3, 0)))


def test_ids_of_every_kind():
    forms_of_ids = (["1", "2", "3"], ("1", "2", "3"), [1, 2, 3], np.array([1, 2, 3]), np.array([1, 2, 3], np.uint8), np.array(["1", "2", "3"]),
                    np.array(["1", "2", "3"], object), pandas.Series([1, 2, 3]), pandas.Series(["1", "2", "3"]), (str(i) for i in (1, 2, 3)),
                    [np.int64(1), 2, "3"], pandas.Index([1, 2, 3]))
    for ids in forms_of_ids:
        c = warpwave.Collection(2, device="cpu")
        c.add(np.eye(3)[:, :2] + 1, ids=ids)
        assert list(c) == ["1", "2", "3"] and 2 in c and c[2].id == "2"
    for wrong in ([[1, 2, 3]], np.ones((3, 1), int), [1.0, 2.0, 3.0], [b"1", b"2", b"3"], [True, False, True], [None] * 3, "123"):
        with pytest.raises((TypeError, ValueError)):
            warpwave.Collection(2, device="cpu").add(np.eye(3)[:, :2] + 1, ids=wrong)


def test_payloads_from_pandas_and_numpy():
    c = warpwave.Collection(1, device="cpu")
    frame = pandas.DataFrame({"year": [1999, 2001], "title": ["a", "b"]})
    c.add([[1], [2]], ids=["x", "y"], payloads=frame)
    assert c["y"].payload == {"year": 2001, "title": "b"}
    c.add([[3], [4]], ids=["v", "w"], payloads=[np.float32(0.5), {"a": np.arange(3)}])
    assert c["v"].payload == 0.5 and c["w"].payload == {"a": [0, 1, 2]}


def test_an_array_may_be_changed_or_freed_after_the_call(points):
    c = warpwave.Collection(20, device="cpu")
    wanted = points.copy()
    c.add(points)
    points[:] = 0
    del points
    gc.collect()
    assert (c.get().vectors == wanted).all()


@pytest.mark.parametrize("name, kind", [("f16", np.float16), ("bf16", ml_dtypes.bfloat16), ("i8", np.int8), ("u8", np.uint8)])
def test_rows_of_other_types_are_stored_as_they_are(device, random, name, kind):
    whole = random.integers(0, 100, (60, 20))
    c = warpwave.Collection(20, metric="l2", type=name, device=device)
    assert c.type == name
    c.add(whole[:20].astype(kind))
    c.add(whole[20:40].astype(np.float32))
    wide = np.zeros((40, 40), kind)
    wide[::2, ::2] = whole[40:].astype(kind)
    c.add(wide[::2, ::2])
    assert (c.get().vectors == whole).all()
    plain = warpwave.Collection(20, metric="l2", device=device)
    plain.add(whole)
    found, wanted = c.search(whole[:9] + 0.25, k=7), plain.search(whole[:9] + 0.25, k=7)
    assert (found.rows == wanted.rows).all() and found.scores.tobytes() == wanted.scores.tobytes()
    if name in ("i8", "u8"):
        with pytest.raises(ValueError):
            c.add([[0.5] * 20])
        assert len(c) == 60
