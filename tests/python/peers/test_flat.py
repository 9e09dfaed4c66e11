"""The index with FAISS's calls; beside FAISS itself every night."""
import numpy as np
import pytest

import warpwave


@pytest.mark.parametrize("metric", [0, 1])
def test_search_and_range_search(points, metric):
    index = warpwave.IndexFlat(20, metric, device="cpu")
    assert index.is_trained and index.ntotal == 0
    index.train(points)
    index.add(points[:250])
    exact = points[250:].astype(np.float64) @ points[:250].T if metric == 0 else ((points[250:, None].astype(np.float64) - points[None, :250]) ** 2).sum(-1)
    order = np.argsort(-exact if metric == 0 else exact, axis=1)
    distances, positions = index.search(points[250:], 9)
    np.testing.assert_array_equal(positions, order[:, :9])
    np.testing.assert_allclose(distances, np.take_along_axis(exact, order[:, :9], 1), rtol=1e-4)
    threshold = 5.0 if metric == 0 else 20.0
    limits, distances, positions = index.range_search(points[250:], threshold)
    wanted = exact > threshold if metric == 0 else exact < threshold
    assert limits.tolist() == [0, *np.cumsum(wanted.sum(1))]
    for q in range(50):
        assert sorted(positions[limits[q]:limits[q + 1]]) == np.flatnonzero(wanted[q]).tolist()
    distances, positions = index.search(points[:1], 260)
    assert (positions[0, 250:] == -1).all() and distances.shape == (1, 260)


@pytest.mark.parametrize("largest", [3, 300, 1000])
def test_squared_distances_of_whole_numbers_are_exact(largest):
    """FAISS gives the sums themselves, which f32 has up to 2^24; the largest here are above 2^22, where roots of neighbours are equal."""
    numbers = np.random.default_rng(7).integers(-largest, largest, (200, 4))
    index = warpwave.IndexFlatL2(4, device="cpu")
    index.add(numbers[:150].astype(np.float32))
    exact = ((numbers[150:, None] - numbers[None, :150]) ** 2).sum(-1)
    assert exact.max() < 2**24 and (largest < 1000 or (exact > 2**22).any())
    distances, positions = index.search(numbers[150:].astype(np.float32), 150)
    np.testing.assert_array_equal(distances, np.take_along_axis(exact, positions, 1))
    threshold = float(np.median(exact))
    limits, distances, positions = index.range_search(numbers[150:].astype(np.float32), threshold)
    assert np.diff(limits).tolist() == (exact < threshold).sum(1).tolist()
    np.testing.assert_array_equal(distances, exact[np.repeat(np.arange(50), np.diff(limits)), positions])


def test_reconstruct_remove_and_reset(points):
    index = warpwave.IndexFlatL2(20, device="cpu")
    index.add(points)
    np.testing.assert_array_equal(index.reconstruct(7), points[7])
    np.testing.assert_array_equal(index.reconstruct_n(5, 3), points[5:8])
    assert index.remove_ids(np.array([0, 7, 999])) == 2 and index.ntotal == 298
    np.testing.assert_array_equal(index.reconstruct_n(), np.delete(points, [0, 7], axis=0))
    assert index.search(points[8:9], 1)[1] == [[6]]
    with pytest.raises(IndexError):
        index.reconstruct(298)
    assert repr(index) == "<warpwave.IndexFlatL2: 298 vectors of 20, on cpu>"
    index.reset()
    assert index.ntotal == 0 and index.reconstruct_n().shape == (0, 20)
    assert warpwave.IndexFlatIP(4, device="cpu").metric_type == 0
    with pytest.raises(ValueError):
        warpwave.IndexFlat(4, 7, device="cpu")


@pytest.mark.nightly
def test_it_answers_as_faiss_does(points):
    faiss = pytest.importorskip("faiss")
    for ours, theirs in ((warpwave.IndexFlatL2(20, device="cpu"), faiss.IndexFlatL2(20)), (warpwave.IndexFlatIP(20, device="cpu"), faiss.IndexFlatIP(20))):
        ours.add(points[:250])
        theirs.add(points[:250])
        np.testing.assert_array_equal(ours.search(points[250:], 9)[1], theirs.search(points[250:], 9)[1])
        np.testing.assert_allclose(ours.search(points[250:], 9)[0], theirs.search(points[250:], 9)[0], rtol=1e-4, atol=1e-4)
        limits, _, positions = ours.range_search(points[250:], 18.0)
        their_limits, _, their_positions = theirs.range_search(points[250:], 18.0)
        np.testing.assert_array_equal(limits, their_limits)
        assert sorted(positions) == sorted(their_positions)
