"""The library's names for the values of its enumerations, such as "cosine"."""
from __future__ import annotations

from typing import Callable, Optional

from . import _native as c


def _names(constants: tuple[str, ...], name_of: Callable[[int], Optional[bytes]]) -> dict[str, int]:
    values = [getattr(c, constant) for constant in constants]
    return {name.decode(): value for value in values for name in [name_of(value)] if name}


METRICS = _names(("WW_COSINE", "WW_L2", "WW_DOT"), c.ww_metric_name)
SCREENS = _names(("WW_SCREEN_INT8", "WW_SCREEN_NONE"), c.ww_screen_name)
PLACES = _names(("WW_ROWS_DEVICE", "WW_ROWS_HOST"), c.ww_row_place_name)
TYPES = _names(("WW_VECTOR_F32", "WW_VECTOR_F16", "WW_VECTOR_BF16", "WW_VECTOR_I8", "WW_VECTOR_U8"), c.ww_vector_type_name)
TYPE_NAMES = {value: name for name, value in TYPES.items()}
METRIC_NAMES = {value: name for name, value in METRICS.items()}


def chosen(names: dict[str, int], name: str, what: str) -> int:
    """Return the value with this name; the message of a refusal lists the names."""
    if not isinstance(name, str):
        raise TypeError(f"{what} is {name!r}; it must be one of {', '.join(map(repr, names))}")
    if name not in names:
        raise ValueError(f"{what} is {name!r}; it must be one of {', '.join(names)}")
    return names[name]
