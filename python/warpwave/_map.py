"""The map of a collection: all rows as points in the plane; rows with similar vectors are close together."""
from __future__ import annotations

from ctypes import byref, c_float, c_int32, c_int64, c_void_p
from dataclasses import dataclass, field
from typing import Any, List, Optional

import numpy as np

from . import _native as c
from ._calls import Progress, interruptible
from ._checked import integer
from ._errors import check
from .device import made


@dataclass(frozen=True)
class Map:
    """The points of rows: `points[i]` is the x and y of the row with `ids[i]` and `handles[i]`.

    `np.asarray(map)` gives the points. `origin` is "made", "kept" or "grown"; `rows_placed` is the number of rows placed among their
    neighbours since the map was made.
    """

    points: Any = field(repr=False)
    handles: Any = field(repr=False)
    ids: List[str] = field(repr=False)
    rows: int
    rows_placed: int
    neighbours: int
    steps: int
    seed: int
    origin: str
    kept: bool

    def __len__(self) -> int:
        return self.rows

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        points = self.points if dtype is None else self.points.astype(dtype, copy=False)
        return points.copy() if copy else points


def _copied(address: int, count: int, kind: Any) -> Any:
    if count == 0:
        return np.zeros(0, kind)
    return np.ctypeslib.as_array((kind * count).from_address(address)).copy()


class Mapped:
    """Map methods of `Collection`."""

    _handle: Any
    _writing: Any
    _get: Any

    def map(self, *, neighbours: int = 0, steps: int = 0, seed: int = -1, remake: bool = False, nprobe: int = 0, progress: Progress = None) -> Map:
        """Return the map of all rows: make it if there is none, otherwise update it. The collection keeps it.

        The same rows and seed give the same bits on every device. Rows added since the map was made are placed among their neighbours;
        `remake=True` lays out all rows again. A kept map that was made with other settings is made again.

        >>> c = warpwave.Collection(4, device="cpu")
        >>> c.add(np.random.default_rng(1).normal(size=(50, 4)))
        >>> m = c.map(seed=7)
        >>> m.points.shape, m.origin, c.map().origin
        ((50, 2), 'made', 'kept')
        """
        config = made(c.ww_map_config, neighbours=integer(neighbours, "neighbours", c_int32), steps=integer(steps, "steps", c_int32),
                      seed=integer(seed, "seed"), remake=int(remake), nprobe=integer(nprobe, "nprobe"))
        found, info = c_void_p(), made(c.ww_map_info)
        with self._handle as pointer:
            def call(told: Any) -> int:
                config.progress = told
                return c.ww_collection_map(pointer, byref(config), byref(found))  # type: ignore[no-any-return]

            interruptible(call, progress, "map")
        try:
            check(c.ww_map_describe(found, byref(info)))
            points = _copied(c.ww_map_points(found), 2 * info.rows, c_float).reshape(-1, 2)
            handles = _copied(c.ww_map_handles(found), info.rows, c_int64)
        finally:
            c.ww_map_destroy(found)
        ids = self._get(handles=handles).ids if len(handles) else []
        return Map(points, handles, list(ids), info.rows, info.rows_placed, info.neighbours, info.steps, info.seed,
                   c.ww_map_origin_name(info.origin).decode(), bool(info.kept))

    def drop_map(self) -> None:
        """Drop the collection's map, if there is one."""
        with self._handle as pointer, self._writing:
            check(c.ww_collection_drop_map(pointer))
