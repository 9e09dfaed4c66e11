"""Estimators against scikit-learn's own checks and its own neighbours."""
import pickle

import numpy as np
import pytest
from sklearn import neighbors as theirs
from sklearn.base import clone
from sklearn.cluster import DBSCAN
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from warpwave.sklearn import KNeighborsClassifier, KNeighborsRegressor, KNeighborsTransformer, NearestNeighbors


@parametrize_with_checks([NearestNeighbors(device="cpu"), KNeighborsClassifier(device="cpu"), KNeighborsRegressor(device="cpu"),
                          KNeighborsTransformer(device="cpu")])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_finds_nothing_wrong(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


def test_neighbours_are_theirs(digits, random):
    X = random.standard_normal((400, 30))
    for metric in ("euclidean", "cosine"):
        ours, reference = NearestNeighbors(7, metric=metric, device="cpu").fit(X), theirs.NearestNeighbors(n_neighbors=7, metric=metric, algorithm="brute").fit(X)
        for queries in (X[:50] + 0.1, None):
            distances, rows = ours.kneighbors(queries)
            wanted, wanted_rows = reference.kneighbors(queries)
            np.testing.assert_array_equal(rows, wanted_rows)
            np.testing.assert_allclose(distances, wanted, rtol=1e-4, atol=1e-6)
        radius = 5.5 if metric == "euclidean" else 0.6
        for queries in (X[:50] + 0.1, None):
            distances, rows = ours.radius_neighbors(queries, radius)
            wanted, wanted_rows = reference.radius_neighbors(queries, radius, sort_results=True)
            for one, other in zip(rows, wanted_rows):
                assert sorted(one) == sorted(other)
        graph = ours.kneighbors_graph(X[:20] + 0.1, mode="distance")
        np.testing.assert_allclose(graph.toarray(), reference.kneighbors_graph(X[:20] + 0.1, mode="distance").toarray(), rtol=1e-4, atol=1e-6)
    X, _ = digits


def test_rows_that_are_equal_are_not_lost():
    X = np.zeros((6, 2))
    rows = NearestNeighbors(3, device="cpu").fit(X).kneighbors(return_distance=False)
    assert rows.shape == (6, 3) and all(i not in row for i, row in enumerate(rows[:4]))


def test_the_classifier_is_theirs(digits):
    X, y = digits
    for weights in ("uniform", "distance"):
        ours = KNeighborsClassifier(3, weights=weights, device="cpu").fit(X[:1200], y[:1200])
        reference = theirs.KNeighborsClassifier(3, weights=weights, algorithm="brute").fit(X[:1200], y[:1200])
        assert (ours.predict(X[1200:]) == reference.predict(X[1200:])).mean() > 0.99
        assert ours.score(X[1200:], y[1200:]) > 0.95
        assert ours.predict_proba(X[1200:]).shape == (597, 10)


def test_it_takes_part_in_pipelines_and_searches(digits):
    X, y = digits
    best = GridSearchCV(KNeighborsClassifier(device="cpu"), {"n_neighbors": [1, 3]}, cv=2).fit(X[:400], y[:400])
    assert best.best_score_ > 0.9
    labels = make_pipeline(KNeighborsTransformer(n_neighbors=10, device="cpu"), DBSCAN(eps=20, metric="precomputed", min_samples=3)).fit_predict(X[:400])
    assert len(set(labels)) > 2


def test_estimators_pickle_and_search_again(digits):
    X, y = digits
    fitted = KNeighborsClassifier(3, device="cpu").fit(X[:500], y[:500])
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.predict(X[500:600]) == fitted.predict(X[500:600])).all()
    assert clone(fitted).get_params() == fitted.get_params()


def test_what_cannot_be_is_refused(digits):
    X, y = digits
    for wrong in ({"metric": "manhattan"}, {"weights": "x"}):
        with pytest.raises(ValueError):
            KNeighborsClassifier(device="cpu", **wrong).fit(X, y)
    near = NearestNeighbors(device="cpu").fit(X[:10])
    for k in (0, 11, 1.5):
        with pytest.raises((ValueError, TypeError)):
            near.kneighbors(X[:2], k)


def test_the_regressor_is_theirs(random):
    X, y = random.standard_normal((300, 5)), random.standard_normal((300, 2))
    for weights in ("uniform", "distance"):
        for values in (y, y[:, 0]):
            ours = KNeighborsRegressor(4, weights=weights, device="cpu").fit(X[:250], values[:250])
            reference = theirs.KNeighborsRegressor(4, weights=weights, algorithm="brute").fit(X[:250], values[:250])
            np.testing.assert_allclose(ours.predict(X[250:]), reference.predict(X[250:]), rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(ours.predict(X[:10]), reference.predict(X[:10]), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="uniform or distance"):
        KNeighborsRegressor(weights="other").fit(X, y)


def test_a_recall_is_searched_by_an_index(random):
    centers = random.standard_normal((50, 16)) * 5
    X = centers[random.integers(0, 50, 12_000)] + random.standard_normal((12_000, 16))
    exact = NearestNeighbors(5, device="cpu").fit(X).kneighbors(X[:300], return_distance=False)
    near = NearestNeighbors(5, device="cpu", recall=0.8).fit(X)
    assert near._searched().ivf.calibration_k == 5 and NearestNeighbors(5, device="cpu", recall=0.8).fit(X[:500])._searched().ivf is None
    found = near.kneighbors(X[:300], return_distance=False)
    assert np.mean([len(set(a) & set(b)) >= 4 for a, b in zip(exact, found)]) > 0.97
    assert near.kneighbors(return_distance=False).shape == (12_000, 5)
    with pytest.raises(ValueError, match="recall"):
        NearestNeighbors(device="cpu", recall=2).fit(X)
