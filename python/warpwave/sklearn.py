"""Estimators for scikit-learn: exact nearest neighbours on any device.

They behave like scikit-learn's own with algorithm="brute", in f32: `NearestNeighbors`, `KNeighborsClassifier`, `KNeighborsRegressor`, and
`KNeighborsTransformer`, which passes the graph of neighbours to another estimator. They support pickling, cloning and parameter search.
With `recall=0.95` and at least 10,000 rows they use an index calibrated for that recall: faster on a CPU, but it may miss some neighbours.
"""
from __future__ import annotations

from typing import Any, Optional

import numpy as np
from ._optional import installed

installed("sklearn", "warpwave.sklearn", "sklearn")
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from ._numpy import FloatArray, IntArray
from .vectors import Collection

__all__ = ["KNeighborsClassifier", "KNeighborsRegressor", "KNeighborsTransformer", "NearestNeighbors"]

_METRICS = {"euclidean": "l2", "l2": "l2", "minkowski": "l2", "cosine": "cosine"}
_INDEXED_ROWS = 10_000  # smaller collections are always searched exactly
_CALIBRATED_MAX = 1024
_F32_MAX = float(np.finfo(np.float32).max)


class _Neighbors(BaseEstimator):
    """Common base: the fitted rows, and a collection of them that each process creates on first use."""

    n_neighbors: int
    radius: float
    weights: str
    metric: str
    device: str
    recall: Optional[float]

    def _fit_rows(self, X: Any) -> None:
        if self.metric not in _METRICS:
            raise ValueError(f"metric is {self.metric!r}; it must be one of {', '.join(_METRICS)}")
        if self.recall is not None and not 0 < self.recall <= 1:
            raise ValueError(f"recall is {self.recall!r}; it must be None, or above 0 and at most 1")
        self._fit_X: FloatArray = np.ascontiguousarray(X, np.float32)
        self.n_samples_fit_ = len(X)
        self.effective_metric_ = "euclidean" if _METRICS[self.metric] == "l2" else "cosine"
        self._collection: Optional[Collection] = None
        self._searched()

    def _searched(self) -> Collection:
        found = self.__dict__.get("_collection")
        if found is None:
            found = Collection(self._fit_X.shape[1], metric=_METRICS[self.metric], device=self.device)
            found.add(self._fit_X)
            if self.recall is not None and self.recall < 1 and len(self._fit_X) >= _INDEXED_ROWS:
                found.build_ivf()
                found.calibrate(k=min(int(self.n_neighbors), _CALIBRATED_MAX), recall=self.recall)
            self._collection = found
        return found

    def _found(self, queries: Any, k: int) -> Any:
        """Return the k nearest rows: exact, or with the requested recall if there are many rows."""
        searched = self._searched()
        recall = self.recall if self.recall is not None and searched.ivf is not None else 0.0
        return searched.search(queries, k, ids=False, recall=recall)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_collection", None)
        return state

    def _queries(self, X: Any) -> tuple[Any, bool]:
        """Return the queries, and whether they are the fitted rows, which are not their own neighbours."""
        check_is_fitted(self)
        if X is None:
            return self._fit_X, True
        return validate_data(self, X, reset=False), False

    def _distances(self, scores: Any) -> Any:
        distances = scores.astype(np.float64)
        return distances if self.effective_metric_ == "euclidean" else np.maximum(1.0 - distances, 0.0)

    def kneighbors(self, X: Any = None, n_neighbors: Optional[int] = None, return_distance: bool = True) -> Any:
        """Return distances and positions of the fitted rows nearest to each row of X.

        Without X, the queries are the fitted rows, and no row is its own neighbour.
        """
        queries, own = self._queries(X)
        k = self.n_neighbors if n_neighbors is None else n_neighbors
        if not isinstance(k, (int, np.integer)):
            raise TypeError(f"n_neighbors does not take {type(k)} value, enter integer value")
        if k <= 0:
            raise ValueError(f"Expected n_neighbors > 0. Got {k}")
        if k + own > self.n_samples_fit_:
            raise ValueError(f"Expected n_neighbors <= n_samples_fit, but n_neighbors = {k}, n_samples_fit = {self.n_samples_fit_}, n_samples = {len(queries)}")
        found = self._found(queries, int(k) + own)
        rows, distances = found.rows, self._distances(found.scores)
        if own:
            keep = rows != np.arange(len(rows))[:, None]
            keep[keep.all(axis=1), -1] = False  # the row itself is missing: more than k equal rows come before it
            rows, distances = rows[keep].reshape(len(rows), k), distances[keep].reshape(len(rows), k)
        return (distances, rows) if return_distance else rows

    def _nearest(self, X: Any) -> tuple[Any, Any]:
        """Return the neighbours, fewer than `n_neighbors` if there are not enough rows."""
        return self.kneighbors(X, n_neighbors=min(self.n_neighbors, self.n_samples_fit_) if hasattr(self, "n_samples_fit_") else None)  # type: ignore[no-any-return]

    def _check_weights(self) -> None:
        if self.weights not in ("uniform", "distance"):
            raise ValueError(f"weights is {self.weights!r}; it must be uniform or distance")

    def _votes(self, distances: Any) -> Any:
        """Return the weight of each neighbour; if any distance is 0, only those neighbours count."""
        if self.weights == "uniform":
            return np.ones_like(distances)
        exact = (distances == 0).any(axis=1)
        with np.errstate(divide="ignore"):
            votes = 1.0 / distances
        votes[exact] = distances[exact] == 0
        return votes

    def kneighbors_graph(self, X: Any = None, n_neighbors: Optional[int] = None, mode: str = "connectivity") -> csr_matrix:
        """Return the neighbours as a sparse matrix of ones or distances."""
        if mode not in ("connectivity", "distance"):
            raise ValueError(f"mode is {mode!r}; it must be connectivity or distance")
        distances, rows = self.kneighbors(X, n_neighbors)
        count, k = rows.shape
        values = np.ones(count * k) if mode == "connectivity" else distances.ravel()
        return csr_matrix((values, rows.ravel(), np.arange(0, count * k + 1, k)), shape=(count, self.n_samples_fit_))


class NearestNeighbors(_Neighbors):
    """Unsupervised neighbours, like sklearn.neighbors.NearestNeighbors.

    >>> from warpwave.sklearn import NearestNeighbors
    >>> near = NearestNeighbors(n_neighbors=2, device="cpu").fit([[0, 0], [1, 0], [5, 5]])
    >>> near.kneighbors([[0.9, 0]], return_distance=False)
    array([[1, 0]])
    """

    def __init__(self, n_neighbors: int = 5, radius: float = 1.0, metric: str = "euclidean", device: str = "auto", recall: Optional[float] = None) -> None:
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.metric = metric
        self.device = device
        self.recall = recall

    def fit(self, X: Any, y: Any = None) -> NearestNeighbors:
        """Store the rows."""
        self._fit_rows(validate_data(self, X))
        return self

    def radius_neighbors(self, X: Any = None, radius: Optional[float] = None, return_distance: bool = True) -> Any:
        """Return all fitted rows within a radius of each row of X, nearest first, one array per row."""
        queries, own = self._queries(X)
        bound = self.radius if radius is None else radius
        found = self._searched().search(queries, radius=min(float(bound), _F32_MAX) if self.effective_metric_ == "euclidean" else 1.0 - bound, ids=False)
        rows: list[IntArray] = list(found.rows)
        distances = [self._distances(scores) for scores in found.scores]
        if own:
            keeps = [one != i for i, one in enumerate(rows)]
            rows, distances = [one[keep] for one, keep in zip(rows, keeps)], [one[keep] for one, keep in zip(distances, keeps)]
        return (_listed(distances), _listed(rows)) if return_distance else _listed(rows)


def _listed(arrays: list[Any]) -> Any:
    """Return arrays of different lengths as one array of objects, as scikit-learn does."""
    out = np.empty(len(arrays), object)
    out[:] = arrays
    return out


class KNeighborsClassifier(ClassifierMixin, _Neighbors):
    """Classification by a vote of the nearest rows, like sklearn.neighbors.KNeighborsClassifier.

    >>> from warpwave.sklearn import KNeighborsClassifier
    >>> KNeighborsClassifier(1, device="cpu").fit([[0.0], [1.0]], ["no", "yes"]).predict([[0.8]])
    array(['yes'], dtype='<U3')
    """

    def __init__(self, n_neighbors: int = 5, weights: str = "uniform", metric: str = "euclidean", device: str = "auto", recall: Optional[float] = None) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.metric = metric
        self.device = device
        self.recall = recall

    def fit(self, X: Any, y: Any) -> KNeighborsClassifier:
        """Store the rows and their classes."""
        self._check_weights()
        X, y = validate_data(self, X, y, multi_output=True)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        self.classes_, self._y = np.unique(y, return_inverse=True)
        self._fit_rows(X)
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return the share of each class among the nearest rows."""
        distances, rows = self._nearest(X)
        votes = self._votes(distances)
        shares = np.zeros((len(rows), len(self.classes_)))
        np.add.at(shares, (np.arange(len(rows))[:, None], self._y[rows]), votes)
        return shares / shares.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> Any:
        """Return the most frequent class among the nearest rows; on a tie, the first."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)] if hasattr(self, "classes_") else self._queries(X)


class KNeighborsRegressor(RegressorMixin, _Neighbors):
    """Regression by the mean of the nearest rows, like sklearn.neighbors.KNeighborsRegressor.

    With weights="distance" nearer rows count more.

    >>> from warpwave.sklearn import KNeighborsRegressor
    >>> KNeighborsRegressor(2, device="cpu").fit([[0.0], [1.0], [9.0]], [1.0, 3.0, 7.0]).predict([[0.4]])
    array([2.])
    """

    def __init__(self, n_neighbors: int = 5, weights: str = "uniform", metric: str = "euclidean", device: str = "auto", recall: Optional[float] = None) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.metric = metric
        self.device = device
        self.recall = recall

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any) -> KNeighborsRegressor:
        """Store the rows and their values, one or several per row."""
        self._check_weights()
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=True)
        self._y = np.asarray(y, np.float64)
        self._fit_rows(X)
        return self

    def predict(self, X: Any) -> Any:
        """Return the mean of the values of the nearest rows."""
        distances, rows = self._nearest(X)
        votes, values = self._votes(distances), self._y[rows]
        if values.ndim == 3:
            votes = votes[:, :, None]
        return (values * votes).sum(axis=1) / votes.sum(axis=1)


class KNeighborsTransformer(TransformerMixin, _Neighbors):
    """Transformation of rows to the sparse graph of their neighbours, like sklearn.neighbors.KNeighborsTransformer.

    Use it before estimators with metric="precomputed".
    """

    def __init__(self, mode: str = "distance", n_neighbors: int = 5, metric: str = "euclidean", device: str = "auto", recall: Optional[float] = None) -> None:
        self.mode = mode
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.device = device
        self.recall = recall

    def fit(self, X: Any, y: Any = None) -> KNeighborsTransformer:
        """Store the rows."""
        self._fit_rows(validate_data(self, X))
        return self

    def transform(self, X: Any) -> csr_matrix:
        """Return the graph of each row's neighbours; with distances one more, since a fitted row is its own nearest."""
        check_is_fitted(self)
        return self.kneighbors_graph(X, self.n_neighbors + (self.mode == "distance"), self.mode)

    def fit_transform(self, X: Any, y: Any = None) -> csr_matrix:
        """Fit and transform in one call."""
        return self.fit(X).transform(X)
