"""Selection of rows for a C call: conditions as a dict or as SQL, and a page of the result."""
from __future__ import annotations

import re
from contextlib import contextmanager
from ctypes import addressof, byref, c_void_p, sizeof
from typing import Any, Iterator, Optional, Union

from . import _native as c
from ._arrays import as_filter, as_parameters
from ._checked import integer
from ._errors import check, warn

Where = Union[str, dict[str, Any]]


_ORDERS = ("$gt", "$gte", "$lt", "$lte")


def _warn_of_texts(conditions: Any, field: str = "") -> None:
    """Warn if a field is ordered against a text that looks like a number: numbers of payloads never match it."""
    for name, value in conditions.items() if isinstance(conditions, dict) else ((field, one) for one in conditions) if isinstance(conditions, list) else ():
        if name in _ORDERS and isinstance(value, str) and _NUMBER.fullmatch(value):
            warn(f"where: {field!r} is compared with the text {value!r}, which no number matches; for numbers give {value}")
        elif isinstance(value, (dict, list)):
            _warn_of_texts(value, field if name.startswith("$") else name)


_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")


@contextmanager
def selected(where: Optional[Where], parameters: Any = None, limit: Optional[int] = None, after: Optional[int] = None) -> Iterator[Any]:
    """Yield a ww_selection that is valid inside the block. `after` is a handle."""
    if where is not None and not isinstance(where, (str, dict)):
        raise TypeError(f"where is {type(where).__name__}; it must be a dict of conditions, as in {{'year': {{'$gt': 2000}}}}, or, for the collections of "
                        "a Store, a str with SQL")
    if parameters is not None and not isinstance(where, str):
        raise ValueError("parameters are for a where in SQL; a dict has its values in it" if where is not None else "there are parameters, but no where")
    if limit is not None and integer(limit, "limit") < 1:
        raise ValueError(f"limit is {limit}; it must be 1 or more, or None for all")
    selection = c.ww_selection(sizeof(c.ww_selection), limit=limit or 0, first_handle=0 if after is None else integer(after, "after") + 1)
    values = as_parameters(parameters)
    conditions = c_void_p()
    if isinstance(where, dict):
        _warn_of_texts(where)
        check(c.ww_filter_read(as_filter(where), byref(conditions)))
        selection.filter = conditions
    elif where is not None:
        selection.where, selection.parameters, selection.parameter_count = where.encode(), addressof(values), len(values)
    try:
        yield selection
    finally:
        c.ww_filter_destroy(conditions)
