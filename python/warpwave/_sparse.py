"""Sparse vectors: from what callers pass to the structs of the C library, and from its results to arrays."""
from __future__ import annotations

from ctypes import byref, c_float, c_uint32, sizeof
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

import numpy as np

from . import _native as c
from ._names import chosen
from ._numpy import FloatArray, IntArray, address

if TYPE_CHECKING:  # old versions of NumPy have no numpy.typing
    import numpy.typing as npt

    IndexArray = npt.NDArray[np.uint32]
else:
    IndexArray = np.ndarray
_MODIFIERS = {"idf": c.WW_SPARSE_IDF}
_INDEX_MAX = 2**32 - 1
_STRUCT = np.dtype([("count", np.int64), ("indices", np.int64), ("values", np.int64)])  # ww_sparse_vector
assert _STRUCT.itemsize == sizeof(c.ww_sparse_vector)


class SparseVector(NamedTuple):
    """The sparse vector of a row: its indices, which ascend, and a value for each."""

    indices: IndexArray
    values: FloatArray


class Sparse:
    """Sparse vectors for C: `pointer` is the address of `count` structs, and `single` says whether the caller passed one vector."""

    __slots__ = ("pointer", "count", "entries", "single", "_structs", "_indices", "_values")

    def __init__(self, indices: Any, values: Any, starts: IntArray, single: bool, what: str) -> None:
        self._indices, self._values = _checked_indices(indices, what), _as_values(values, what)
        self.count, self.single, self.entries = len(starts) - 1, single, len(self._indices)
        self._structs = np.zeros(max(self.count, 1), _STRUCT)
        structs = self._structs[: self.count]
        structs["count"] = np.diff(starts)
        structs["indices"] = address(self._indices) + starts[:-1] * self._indices.itemsize
        structs["values"] = address(self._values) + starts[:-1] * self._values.itemsize
        self.pointer = address(self._structs)


def as_sparse(value: Any, what: str = "sparse") -> Sparse:
    """Convert a dict or a pair, which are one vector, a list of these, or a matrix of scipy.sparse with a vector in each row."""
    if hasattr(value, "tocsr"):
        return _of_matrix(value.tocsr(), what)
    if isinstance(value, (dict, tuple)):
        return _of_vectors([value], True, what)
    if isinstance(value, list):
        return _of_vectors(value, False, what)
    raise TypeError(f"{what} is {type(value).__name__}; it must be a dict of indices and values, a pair (indices, values), a list of these, or a "
                    "matrix of scipy.sparse")


def _of_vectors(vectors: list[Any], single: bool, what: str) -> Sparse:
    indices: list[Any] = []
    values: list[Any] = []
    for number, vector in enumerate(vectors):
        name = what if single else f"{what}[{number}]"
        if vector is None:
            vector = {}
        if isinstance(vector, dict):
            vector = list(vector), list(vector.values())
        elif not isinstance(vector, tuple) or len(vector) != 2:
            raise TypeError(f"{name} is {vector!r:.60}; it must be a dict of indices and values, a pair (indices, values), or None for none")
        indices.append(_checked_indices(vector[0], name))
        values.append(_as_values(vector[1], name))
        if len(indices[-1]) != len(values[-1]):
            raise ValueError(f"{name} has {len(indices[-1])} indices and {len(values[-1])} values; it must have a value for each index")
    starts = np.zeros(len(vectors) + 1, np.int64)
    np.cumsum([len(one) for one in indices], out=starts[1:])
    return Sparse(np.concatenate([np.empty(0, np.uint32), *indices]), np.concatenate([np.empty(0, np.float32), *values]), starts, single, what)


def _of_matrix(matrix: Any, what: str) -> Sparse:
    starts = np.ascontiguousarray(matrix.indptr, np.int64)
    if len(starts) == 0 or starts[0] != 0 or (np.diff(starts) < 0).any() or starts[-1] > min(len(matrix.indices), len(matrix.data)):
        raise ValueError(f"{what}: indptr must begin with 0, must not fall, and must end within indices and data")
    return Sparse(matrix.indices[: starts[-1]], matrix.data[: starts[-1]], starts, len(matrix.shape) == 1, what)


def _checked_indices(value: Any, what: str) -> IndexArray:
    array = np.asarray(value)
    if array.ndim != 1:
        raise ValueError(f"{what}: the indices have {array.ndim} dimensions; a list of them is needed")
    if array.dtype == np.uint32 and array.dtype.isnative:
        return np.ascontiguousarray(array)
    if array.dtype.kind not in "iu" and len(array):
        raise TypeError(f"{what}: the indices are of type {array.dtype}; integers from 0 to {_INDEX_MAX} are needed")
    outside = (array < 0) | (array > _INDEX_MAX)
    if outside.any():
        raise ValueError(f"{what}: an index is {array[outside][0]}; it must be from 0 to {_INDEX_MAX}")
    return np.ascontiguousarray(array, np.uint32)


def _as_values(value: Any, what: str) -> FloatArray:
    array = np.asarray(value)
    if array.ndim != 1:
        raise ValueError(f"{what}: the values have {array.ndim} dimensions; a list of them is needed")
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{what}: the values are of type {array.dtype}; numbers are needed")
    with np.errstate(over="ignore", invalid="ignore"):  # the library refuses infinite values and reports their position
        return np.ascontiguousarray(array, np.float32)


def sparse_query(sparse: Sparse, modifier: Optional[str]) -> Any:
    """Return the ww_sparse_query, which must live as long as the vectors."""
    return c.ww_sparse_query(sizeof(c.ww_sparse_query), sparse.pointer, c.WW_SPARSE_PLAIN if modifier is None else chosen(_MODIFIERS, modifier, "modifier"))


def sparse_of(found: int, starts: IntArray) -> list[Optional[SparseVector]]:
    """Return copies of the sparse vectors of all hits, None for rows without one."""
    vector = c.ww_sparse_vector()
    vectors: list[Optional[SparseVector]] = []
    for query, hits in enumerate(np.diff(starts).tolist()):
        for hit in range(hits):
            if c.ww_results_sparse(found, query, hit, byref(vector)):
                count = vector.count
                vectors.append(SparseVector(np.array((c_uint32 * count).from_address(vector.indices), np.uint32),
                                            np.array((c_float * count).from_address(vector.values), np.float32)))
            else:
                vectors.append(None)
    return vectors
