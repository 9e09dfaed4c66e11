"""Indexes with the interface of FAISS's IndexFlat and IndexIVFFlat: results by position, squared L2 distances."""
from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import device_tensor
from ._numpy import FloatArray, IntArray
from .device import DeviceLike
from .results import FETCH_IDS, FETCH_VECTORS
from .vectors import Collection

__all__ = ["IndexFlat", "IndexFlatIP", "IndexFlatL2", "IndexIVFFlat"]

METRIC_INNER_PRODUCT, METRIC_L2 = 0, 1
_LARGEST = np.finfo(np.float32).max
_ROOTS_UNIQUE = 2.0 ** 22  # consecutive integers below this have different f32 roots
_PIECE = 8192  # vectors to fetch per call


class IndexFlat:
    """Vectors by position, with exact search.

    >>> index = warpwave.IndexFlat(2, device="cpu")
    >>> index.add(np.float32([[0, 0], [3, 4]]))
    >>> distances, positions = index.search(np.float32([[0, 1]]), 2)
    >>> positions
    array([[0, 1]])
    >>> distances.round()
    array([[ 1., 18.]], dtype=float32)
    """

    is_trained = True

    def __init__(self, d: int, metric: int = METRIC_L2, *, device: DeviceLike = "auto") -> None:
        if metric not in (METRIC_INNER_PRODUCT, METRIC_L2):
            raise ValueError(f"the metric is {metric!r}; it must be METRIC_L2 (1) or METRIC_INNER_PRODUCT (0)")
        self.d = d
        self.metric_type = metric
        self.collection = Collection(d, metric="l2" if metric == METRIC_L2 else "dot", device=device)

    @property
    def ntotal(self) -> int:
        """The number of vectors."""
        return len(self.collection)

    def train(self, x: Any) -> None:
        """Do nothing: exact search needs no training."""

    def add(self, x: Any) -> None:
        """Append vectors."""
        self.collection.add(x)

    def reset(self) -> None:
        """Remove all vectors."""
        self.collection.clear()

    def _given(self, queries: Any, found: Any) -> FloatArray:
        """Return the scores as FAISS does, in one flat array: squared distances.

        A distance is the f32 nearest to the root of the sum that FAISS returns. Below 2^22 no two integers have the same root. If all
        numbers are integers, the integer with that root is the sum; otherwise it is as close to the sum as the square is. Larger sums are
        computed again.
        """
        scores: FloatArray = found._scores
        if self.metric_type != METRIC_L2:
            return scores
        squares = scores.astype(np.float64) ** 2
        whole = np.rint(squares)
        sums = np.where(np.sqrt(whole).astype(np.float32) == scores, whole, squares).astype(np.float32)
        large = np.flatnonzero(sums >= _ROOTS_UNIQUE)
        if len(large):
            asked = queries if isinstance(queries, np.ndarray) else queries.numpy().astype(np.float32)
            of_query = np.repeat(np.arange(len(found.starts) - 1), np.diff(found.starts))
            for first in range(0, len(large), _PIECE):
                piece = large[first:first + _PIECE]
                vectors = self.collection._get(None, FETCH_VECTORS, handles=np.ascontiguousarray(found._handles[piece])).vectors
                sums[piece] = ((vectors - asked[of_query[piece]]) ** 2).sum(axis=1)
        return sums

    def _asked(self, x: Any) -> Any:
        """Return the queries as a matrix, on the GPU if they are there."""
        tensor = device_tensor(x, ("f32", "f16", "bf16"))
        if tensor is None:
            return np.atleast_2d(np.asarray(x, np.float32))
        return tensor if tensor.ndim == 2 else tensor.reshape((1, -1))

    def _found(self, queries: Any, k: int) -> Any:
        return self.collection.search(queries, k, ids=False)

    def search(self, x: Any, k: int) -> tuple[FloatArray, IntArray]:
        """Return distances and positions of the k nearest vectors of each query; position -1 if there are fewer."""
        queries = self._asked(x)
        found = self._found(queries, k)
        count, width = found.rows.shape
        distances = np.full((count, k), _LARGEST if self.metric_type == METRIC_L2 else -_LARGEST, np.float32)
        positions = np.full((count, k), -1, np.int64)
        distances[:, :width] = self._given(queries, found).reshape(count, width)
        positions[:, :width] = found.rows
        return distances, positions

    def range_search(self, x: Any, thresh: float) -> tuple[IntArray, FloatArray, IntArray]:
        """Return limits, distances and positions of all matches: squared distances below the threshold, or products above it."""
        is_l2 = self.metric_type == METRIC_L2
        bound = np.nextafter(np.sqrt(np.float32(max(thresh, 0))), np.float32(np.inf)) if is_l2 else np.float32(thresh)
        queries = self._asked(x)
        found = self.collection.search(queries, radius=float(bound), ids=False)
        distances = self._given(queries, found)
        kept = distances < thresh if is_l2 else distances > thresh
        before = np.concatenate([[0], np.cumsum(kept)])
        return before[found.starts], distances[kept], found._rows[kept]

    def reconstruct(self, key: int) -> FloatArray:
        """Return the vector at a position."""
        found: FloatArray = self.reconstruct_n(key, 1)[0]
        return found

    def reconstruct_n(self, n0: int = 0, ni: int = -1) -> FloatArray:
        """Return `ni` vectors starting at position `n0`; -1 means all that follow."""
        end = self.ntotal if ni < 0 else n0 + ni
        if not 0 <= n0 <= end <= self.ntotal:
            raise IndexError(f"positions {n0} to {end} of {self.ntotal}")
        handles = self.collection._get(None, 0)._handles[n0:end]
        found: FloatArray = self.collection._get(None, 4, handles=np.ascontiguousarray(handles)).vectors
        return found if len(handles) else np.empty((0, self.d), np.float32)

    def remove_ids(self, positions: Any) -> int:
        """Remove vectors by position; later ones move up, as in FAISS. Return how many were removed."""
        there = np.unique(np.asarray(positions, np.int64))
        there = there[(there >= 0) & (there < self.ntotal)]
        self.collection.remove(self.collection._get(None, FETCH_IDS)._all_ids()[there])
        self.collection.compact()
        return len(there)

    def __repr__(self) -> str:
        return f"<warpwave.{type(self).__name__}: {self.ntotal:,} vectors of {self.d}, on {self.collection.device}>"


class IndexFlatL2(IndexFlat):
    """`IndexFlat` with squared distances."""

    def __init__(self, d: int, *, device: DeviceLike = "auto") -> None:
        super().__init__(d, METRIC_L2, device=device)


class IndexFlatIP(IndexFlat):
    """`IndexFlat` with inner products."""

    def __init__(self, d: int, *, device: DeviceLike = "auto") -> None:
        super().__init__(d, METRIC_INNER_PRODUCT, device=device)


class IndexIVFFlat(IndexFlat):
    """Vectors in `nlist` lists; a search reads the `nprobe` nearest lists.

    The first search builds the lists from the vectors that were added; `train` only checks that there are enough vectors. With fewer
    vectors than lists a search is exact.

    >>> index = warpwave.IndexIVFFlat(None, 2, 4, device="cpu")
    >>> index.train(np.random.default_rng(1).normal(size=(100, 2)))
    >>> index.add(np.random.default_rng(1).normal(size=(100, 2)))
    >>> index.nprobe = 2
    >>> index.search(np.float32([[0, 1]]), 3)[1].shape
    (1, 3)
    """

    is_trained = False

    def __init__(self, quantizer: Any, d: int, nlist: int, metric: int = METRIC_L2, *, device: DeviceLike = "auto", seed: int = 0) -> None:
        super().__init__(d, metric, device=device)
        self.quantizer = quantizer  # FAISS keeps its centroids here; ours are in the collection
        self.nlist = nlist
        self.nprobe = 1
        self.seed = seed

    def train(self, x: Any) -> None:
        """Check that there is at least one vector per list."""
        if len(x) < self.nlist:
            raise ValueError(f"train: {len(x)} vectors cannot make {self.nlist} lists")
        self.is_trained = True

    def add(self, x: Any) -> None:
        """Append vectors; call `train` first."""
        if not self.is_trained:
            raise ValueError("add: the index is not trained; call train() first")
        super().add(x)

    def _found(self, queries: Any, k: int) -> Any:
        if self.ntotal < self.nlist:
            return super()._found(queries, k)
        if self.collection.ivf is None:
            self.collection.build_ivf(self.nlist, seed=self.seed)
        return self.collection.search(queries, k, ids=False, nprobe=self.nprobe)
