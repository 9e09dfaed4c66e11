"""Multivectors: from what callers pass to the structs of the C library, and from its results to arrays."""
from __future__ import annotations

from ctypes import byref, c_float, sizeof
from typing import Any, Optional

import numpy as np

from . import _native as c
from ._numpy import FloatArray, IntArray, address

_STRUCT = np.dtype([("count", np.int32), ("dim", np.int32), ("vectors", np.int64)])  # ww_multivector
assert _STRUCT.itemsize == sizeof(c.ww_multivector)


class Multi:
    """Multivectors for C: `pointer` is the address of `count` structs, and `single` says whether the caller passed one."""

    __slots__ = ("pointer", "count", "entries", "single", "_structs", "_matrices")

    def __init__(self, matrices: list[Optional[FloatArray]], single: bool) -> None:
        self._matrices, self.count, self.single = matrices, len(matrices), single
        self._structs = np.zeros(max(self.count, 1), _STRUCT)
        self.entries = 0
        for number, matrix in enumerate(matrices):
            if matrix is not None and len(matrix):
                self._structs[number] = (*matrix.shape, address(matrix))
                self.entries += matrix.size
        self.pointer = address(self._structs)


def as_multi(value: Any, what: str = "multi") -> Multi:
    """Convert a matrix, which is one multivector, or several: a list of matrices and of None for none, or an array of three dimensions."""
    if isinstance(value, (list, tuple)) and (not value or any(one is None or np.ndim(one) != 1 for one in value)):
        return Multi([None if one is None else _matrix(one, f"{what}[{number}]") for number, one in enumerate(value)], False)
    array = np.asarray(value)
    if array.ndim == 3:
        return Multi([_matrix(one, f"{what}[{number}]") for number, one in enumerate(array)], False)
    return Multi([_matrix(array, what)], True)


def _matrix(value: Any, what: str) -> FloatArray:
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"{what}: the vectors have different lengths; they must have one dimension") from None
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise TypeError(f"{what} has {array.ndim} dimensions of type {array.dtype}; a multivector is a matrix of numbers, with a vector in each row")
    if len(array) > c.WW_MULTI_MAX or not 1 <= array.shape[1] <= c.WW_DIM_MAX:
        raise ValueError(f"{what} has shape {array.shape}; at most {c.WW_MULTI_MAX} vectors of 1 to {c.WW_DIM_MAX} numbers are allowed")
    with np.errstate(over="ignore", invalid="ignore"):  # the library refuses infinite values and reports their position
        return np.ascontiguousarray(array, np.float32)


def multi_query(multi: Multi) -> Any:
    """Return the ww_multi_query, which must live as long as the multivectors."""
    return c.ww_multi_query(sizeof(c.ww_multi_query), multi.pointer)


def multi_of(found: int, starts: IntArray) -> list[Optional[FloatArray]]:
    """Return copies of the multivectors of all hits, None for rows without one."""
    vector = c.ww_multivector()
    all_of_them: list[Optional[FloatArray]] = []
    for query, hits in enumerate(np.diff(starts).tolist()):
        for hit in range(hits):
            there = c.ww_results_multi(found, query, hit, byref(vector))
            numbers = (c_float * (vector.count * vector.dim)).from_address(vector.vectors) if there else None
            all_of_them.append(None if numbers is None else np.array(numbers, np.float32).reshape(vector.count, vector.dim))
    return all_of_them
