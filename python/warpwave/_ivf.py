"""The IVF index of a collection: build, describe, calibrate, drop."""
from __future__ import annotations

from ctypes import byref, c_int32, c_uint64
from dataclasses import dataclass
from typing import Any, Optional

from . import _native as c
from ._arrays import as_rows
from ._calls import Progress, interruptible
from ._checked import integer
from ._errors import NotFound, check
from ._numpy import address
from .device import from_struct, made


@dataclass(frozen=True)
class IvfInfo:
    """Description of an index; the fields are those of the C struct ww_ivf_info."""

    nlist: int
    rows: int
    rows_largest: int
    rows_mean: float
    loss: float
    bytes: int
    rows_trained: int
    rows_added: int
    lists_split: int
    calibration_queries: int
    calibration_k: int
    calibration_rows_added: int
    calibration_rows_removed: int
    calibration_time: int


class Indexed:
    """Index methods of `Collection`."""

    _handle: Any
    _writing: Any
    dim: int

    def build_ivf(self, nlist: int = 0, *, sample_rows: int = 0, iterations: int = 0, seed: int = 0, progress: Progress = None) -> IvfInfo:
        """Build an index of `nlist` lists (0: about 4 times the square root of the rows), replacing any existing index.

        A search with `nprobe=` then reads only the rows of that many lists; without it a search stays exact.

        >>> c = warpwave.Collection(2, device="cpu")
        >>> c.add(np.random.default_rng(1).normal(size=(500, 2)))
        >>> c.build_ivf(nlist=8).nlist
        8
        >>> found = c.search([0.1, 0.2], k=3, nprobe=2)
        >>> len(found), 0 <= found.proven <= 3
        (3, True)
        """
        config = made(c.ww_ivf_config, nlist=integer(nlist, "nlist"), sample_rows=integer(sample_rows, "sample_rows"),
                      iterations=integer(iterations, "iterations", c_int32), seed=integer(seed, "seed", c_uint64))
        with self._handle as pointer, self._writing:
            def call(told: Any) -> int:
                config.progress = told
                return c.ww_collection_build_ivf(pointer, byref(config))  # type: ignore[no-any-return]

            interruptible(call, progress, "build_ivf")
        found = self.ivf
        assert found is not None
        return found

    def calibrate(self, queries: Any = None, *, k: int = 10, query_count: int = 0, seed: int = 0, recall: float = 0.0, progress: Progress = None) -> IvfInfo:
        """Measure how many lists each recall needs, so that `search(..., recall=0.95)` works.

        `queries` should resemble the queries you will ask; at least 299 are needed. Without them, rows of the collection are sampled.
        Name the `recall` that you will ask for most, and its searches read the fewest lists; other recalls work as well.
        """
        config = made(c.ww_calibrate_config, k=integer(k, "k", c_int32), query_count=integer(query_count, "query_count"), seed=integer(seed, "seed", c_uint64), recall=recall)
        array = None
        if queries is not None:
            array, stride, _ = as_rows(queries, self.dim, "queries")
            if array.shape[1] != self.dim:
                raise ValueError(f"queries: the collection has dimension {self.dim}, the queries have {array.shape[1]}")
            config.queries, config.query_count, config.query_stride = address(array), array.shape[0], stride
        with self._handle as pointer, self._writing:
            def call(told: Any) -> int:
                config.progress = told
                return c.ww_collection_calibrate(pointer, byref(config))  # type: ignore[no-any-return]

            interruptible(call, progress, "calibrate")
        found = self.ivf
        assert found is not None
        return found

    def drop_ivf(self) -> None:
        """Remove the index; raise `NotFound` if there is none."""
        with self._handle as pointer, self._writing:
            check(c.ww_collection_drop_ivf(pointer))

    @property
    def ivf(self) -> Optional[IvfInfo]:
        """The description of the index, or None if there is no index."""
        info = made(c.ww_ivf_info)
        with self._handle as pointer:
            try:
                check(c.ww_collection_describe_ivf(pointer, byref(info)))
            except NotFound:
                return None
        found: IvfInfo = from_struct(IvfInfo, info)
        return found
