"""Arrays that are on the collection's device: they are added and searched there, and leave and find what the host's numbers do."""
import numpy as np
import pytest
from conftest import DEVICES

import warpwave
from warpwave import _arrays

DIM = 20


@pytest.fixture(params=[name for name in ("cpu", "emulator:32", "emulator:64") if name in DEVICES])
def device(request):
    return request.param


def numbers(rows, seed=0):
    return np.random.default_rng(seed).integers(0, 50, (rows, DIM)).astype(np.float32)


def pair(device, type="f32"):
    return (warpwave.Collection(DIM, metric="l2", type=type, device=device), warpwave.Collection(DIM, metric="l2", type=type, device=device))


@pytest.mark.parametrize("type", ["f32", "f16", "bf16", "i8", "u8"])
def test_rows_on_the_device_are_those_of_the_host(device, type):
    rows = numbers(150)
    there, here = pair(device, type)
    for dtype in {"f32", type, "f64"}:
        there.add(warpwave.asarray(rows, dtype="f32", device=device).astype(dtype), ids=[f"{dtype}{i}" for i in range(150)])
        here.add(rows, ids=[f"{dtype}{i}" for i in range(150)])
    assert list(there) == list(here)
    assert (there.get().vectors == here.get().vectors).all()
    found, expected = there.search(rows[:9], 7), here.search(rows[:9], 7)
    assert (found.rows == expected.rows).all() and (found.scores == expected.scores).all()


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "i8", "u8", "f64", "i64"])
def test_queries_on_the_device_find_what_those_of_the_host_find(device, dtype):
    rows = numbers(150)
    there, _ = pair(device)
    there.add(rows, payloads=[{"n": i} for i in range(150)])
    queries = warpwave.asarray(rows[:30] + 1, dtype="f32", device=device).astype(dtype)
    for asked, expected in ((queries, rows[:30] + 1), (queries[3], rows[3] + 1), (queries[::2], rows[:30:2] + 1)):
        for options in ({"k": 4}, {"radius": 90.0}, {"k": 3, "payloads": True, "mask": np.arange(150) % 3 == 0}):
            a, b = there.search(asked, **options), there.search(expected, **options)
            assert np.array_equal(a._rows, b._rows) and np.array_equal(a._scores, b._scores)
            assert a.rows.shape == b.rows.shape if "radius" not in options else len(a.rows) == len(b.rows)


def test_what_is_on_a_gpu_does_not_come_to_the_host(monkeypatch):
    def never(*_):
        raise AssertionError("brought to the host")

    tensor = warpwave.asarray(numbers(40), device="emulator:32")
    there, _ = pair("emulator:32")
    monkeypatch.setattr(_arrays, "_from_dlpack", never)
    monkeypatch.setattr(warpwave.Tensor, "numpy", never)
    there.add(tensor)
    assert there.search(tensor[5], 1).rows.tolist() == [5]
    index = warpwave.IndexFlat(DIM, device="emulator:32")
    index.add(tensor)
    assert index.search(tensor, 1)[1].ravel().tolist() == list(range(40))
    assert index.search(tensor[7], 1)[1].tolist() == [[7]]
    assert index.range_search(tensor[7:8], 0.5)[2].tolist() == [7]


def test_other_libraries_arrays_are_taken_by_dlpack():
    class Foreign:
        """Another library's array, of which only DLPack is known."""

        def __init__(self, tensor):
            self.tensor, self.asked = tensor, []

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()

        def __dlpack__(self, **options):
            self.asked.append(options)
            return self.tensor.__dlpack__(**options)

    rows = numbers(30)
    there, _ = pair("cpu")
    array = Foreign(warpwave.asarray(rows, device="cpu"))
    there.add(array)
    assert there.search(array, 1).rows.ravel().tolist() == list(range(30))
    assert len(array.asked) == 2


def test_a_tensor_of_another_device_is_copied():
    rows = numbers(30)
    there, _ = pair("cpu")
    there.add(warpwave.asarray(rows, device="emulator:64"))
    other = warpwave.Collection(DIM, metric="l2", device="emulator:32")
    other.add(warpwave.asarray(rows, device="emulator:64"))
    for collection in (there, other):
        assert collection.search(warpwave.asarray(rows, device="emulator:64"), 1).rows.ravel().tolist() == list(range(30))


def test_refusals_are_those_of_the_host(device):
    there, _ = pair(device)
    rows = numbers(10)
    rows[4, 2] = np.nan
    bad = warpwave.asarray(rows, device=device)
    with pytest.raises(ValueError, match="row 4 .*column 2 is NaN"):
        there.add(bad)
    assert len(there) == 0
    there.add(numbers(10))
    with pytest.raises(ValueError, match="query 4: column 2 is NaN"):
        there.search(bad, 1)
    with pytest.raises(ValueError, match="ids for 10 vectors"):
        there.add(warpwave.asarray(numbers(10), device=device), ids=["a"])
    with pytest.raises(ValueError, match="dimension"):
        there.add(warpwave.asarray(np.zeros((3, DIM + 1), np.float32), device=device))
    with pytest.raises(ValueError):
        there.search(warpwave.asarray(np.zeros((1, 3, DIM), np.float32), device=device))
    assert len(there) == 10


def test_a_store_takes_arrays_of_its_device(tmp_path, device):
    rows = numbers(40)
    with warpwave.Store(tmp_path / "s.db", device=device) as store:
        docs = store.create("docs", dim=DIM, metric="l2")
        docs.add(warpwave.asarray(rows, device=device), payloads=[{"n": i} for i in range(40)])
        for options in ({"k": 2}, {"k": 2, "where": "payload->>'$.n' >= 20"}, {"radius": 80.0}):
            found, expected = docs.search(warpwave.asarray(rows, device=device), **options), docs.search(rows, **options)
            assert np.array_equal(found._rows, expected._rows) and np.array_equal(found._scores, expected._scores)
        assert docs.search(warpwave.asarray(rows[33], device=device), 1, payloads=True).payloads == [{"n": 33}]


@pytest.mark.long
def test_many_calls_do_not_grow(device):
    there, _ = pair(device)
    tensor = warpwave.asarray(numbers(8), device=device)
    there.add(tensor)
    opened = warpwave.Device(device)
    for _ in range(20):
        there.search(tensor, 2)
    before = opened.memory.ours_bytes
    for _ in range(200):
        there.search(tensor, 2)
        there.upsert(tensor, [str(i) for i in range(8)])
        there.compact()
    assert opened.memory.ours_bytes <= before + 1_000_000
