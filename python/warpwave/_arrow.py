"""Texts of Arrow's columns, which the C library makes in one call: ids, texts, and payloads in JSON."""
from __future__ import annotations

import json
from ctypes import byref, c_void_p
from typing import Any, Optional

from . import _native as c
from ._arrays import Texts, as_payloads, as_row_texts, as_texts, id_text
from ._calls import Handle
from ._capsule import get_pointer
from ._errors import Unsupported, check


class ArrowTexts:
    """Texts for C like `_arrays.Texts`: `pointers` is the address of an array of addresses; 0 means no text."""

    __slots__ = ("pointers", "count", "_handle")

    def __init__(self, column: Any, form: int) -> None:
        schema, array = column.__arrow_c_array__()
        texts, pointers = c_void_p(), c_void_p()
        check(c.ww_arrow_texts_create(get_pointer(schema, b"arrow_schema"), get_pointer(array, b"arrow_array"), form, byref(texts)))
        self._handle = Handle(texts.value or 0, c.ww_arrow_texts_destroy)
        self.count = c.ww_arrow_texts_list(texts, byref(pointers))
        self.pointers = pointers.value or 0


def _texts_of(column: Any, form: int) -> Optional[ArrowTexts]:
    """Return the texts of a column or a batch; None if the library has no form for its type, or pyarrow is from before version 14."""
    if not hasattr(column, "__arrow_c_array__"):
        return None
    try:
        return ArrowTexts(column, form)
    except Unsupported:
        return None


def ids_of(column: Any) -> Any:
    """Return the ids in a column of texts, integers or UUIDs."""
    return _texts_of(column, c.WW_ARROW_PLAIN) or as_texts([id_text(value) for value in column.to_pylist()])


def row_texts_of(column: Any) -> Any:
    """Return the texts in a column, or None if it has none."""
    if column.null_count == len(column):
        return None
    return _texts_of(column, c.WW_ARROW_PLAIN) or as_row_texts(column.to_pylist())


def payloads_of(column: Any) -> Any:
    """Return the payloads in a column: texts in JSON, or values of any other type. Of a batch, each row is a payload."""
    is_text = hasattr(column, "type") and str(column.type) in ("string", "large_string", "string_view")
    made = _texts_of(column, c.WW_ARROW_PLAIN if is_text else c.WW_ARROW_JSON)
    return made or _from_objects(column.to_pylist(), len(column) if hasattr(column, "type") else column.num_rows)


def _from_objects(values: list[Any], count: int) -> Texts:
    return as_payloads([json.loads(value) if isinstance(value, str) else value for value in values], count)
