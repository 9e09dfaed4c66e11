"""Convert what callers pass into what the C library takes: f32 rows, pointers to ids and payloads, masks as bits.

There are no Python loops over long inputs: texts become one block of bytes, and NumPy computes the addresses.
"""
from __future__ import annotations

import datetime
import json
import math
import uuid
from typing import TYPE_CHECKING, Any, Optional, Sequence

import numpy as np

from . import _native as c
from ._numpy import IntArray, address
from ._records import arrow_matrix, is_arrow
from .tensor import Tensor, from_dlpack

F32 = np.dtype(np.float32)
_HOST_KINDS = (1, 3, 11)  # DLPack device types whose memory the host can read
if TYPE_CHECKING:  # old versions of NumPy have no numpy.typing
    import numpy.typing as npt


def _from_dlpack(value: Any) -> npt.NDArray[Any]:
    """Return another library's array as a NumPy array; GPU arrays are copied to the host."""
    tensor = from_dlpack(value)
    return (tensor if tensor.dtype == "f32" else tensor.astype("f32")).numpy()


def device_tensor(value: Any, types: tuple[str, ...]) -> Any:
    """Return a GPU array as a tensor on its device, or None if the value is on the host.

    The value is one of our tensors or another library's array with DLPack. It is cast to f32 unless its type is one of `types`.
    """
    if isinstance(value, (np.ndarray, list, tuple)) or not hasattr(value, "__dlpack_device__") or value.__dlpack_device__()[0] in _HOST_KINDS:
        return None
    tensor = value if isinstance(value, Tensor) else from_dlpack(value)
    return tensor if tensor.dtype in types else tensor.astype("f32")


def as_array(value: Any, what: str) -> npt.NDArray[Any]:
    """Return an array, list, DLPack object, pandas, polars or Arrow column as a NumPy array of numbers."""
    if isinstance(value, str):
        raise TypeError(f"{what} are the text {value!r:.60}; numbers are needed, and a text is given as text=")
    hint = "; add_table() takes a table" if hasattr(value, "columns") else ""
    if not isinstance(value, np.ndarray):
        if is_arrow(value):
            value = arrow_matrix(value)
        elif hasattr(value, "to_numpy"):  # pandas, polars: the elements of a column may be vectors
            value = value.to_numpy()
            if value.dtype == object and value.size and not np.isscalar(value.flat[0]):
                value = np.stack([np.asarray(element) for element in value.ravel()])
        elif hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
            value = _from_dlpack(value)
        else:
            try:
                value = np.asarray(value)
            except ValueError as error:  # ragged lists
                raise ValueError(f"{what}: {error}") from None
    kind = value.dtype.kind
    if kind in "fiub":
        return value  # type: ignore[no-any-return]
    if kind == "V" and value.dtype.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):  # ml_dtypes
        return value  # type: ignore[no-any-return]
    if kind == "O":
        missing = next((place for place, element in np.ndenumerate(value) if element is None), None)
        if missing is not None:
            raise ValueError(f"{what}{''.join(f'[{index}]' for index in missing)} is None; numbers are needed")
        try:
            return value.astype(np.float32)  # type: ignore[no-any-return]
        except (TypeError, ValueError):
            pass
    raise TypeError(f"{what} are of type {value.dtype}; numbers are needed{hint}")


def as_rows(value: Any, dim: int, what: str, native: Optional[str] = None) -> tuple[npt.NDArray[Any], int, bool]:
    """Return vectors as contiguous f32 rows, the row stride in elements, and whether the input was a single vector.

    Copies only what the C library cannot read in place: another type or byte order, elements that are not adjacent, negative strides.
    Arrays of the type named `native` keep their type.
    """
    array = value if type(value) is np.ndarray and value.dtype is F32 else as_array(value, what)
    single = array.ndim == 1
    if single:
        if array.shape[0] == 0 and dim != 0:  # [] means no vectors
            return np.empty((0, dim), np.float32), dim, False
        array = array[None, :]
    elif array.ndim != 2:
        raise ValueError(f"{what} have {array.ndim} dimensions; a vector or a matrix of them is needed")
    if array.dtype is not F32 and not (native is not None and array.dtype.name == native and array.dtype.isnative):  # isnative: not byte-swapped
        with np.errstate(over="ignore", invalid="ignore"):  # the library refuses infinite values and reports their position
            array = array.astype(F32)
    rows, columns = array.strides
    size = array.itemsize
    if (array.shape[1] > 1 and columns != size) or (array.shape[0] > 1 and (rows % size != 0 or rows < size * array.shape[1])) or not array.flags.aligned:
        array = np.ascontiguousarray(array)
        rows = array.strides[0]
    stride = rows // size if array.shape[0] > 1 else array.shape[1]
    return array, stride, single


class Texts:
    """Texts for C: `pointers` is the address of an array of addresses of NUL-terminated texts; 0 means no text."""

    __slots__ = ("pointers", "_block", "_array", "count")

    def __init__(self, block: bytes, starts: IntArray, missing: Optional[npt.NDArray[np.bool_]] = None) -> None:
        self._block = block
        self._array = starts + np.frombuffer(block, np.uint8).__array_interface__["data"][0]
        if missing is not None:
            self._array[missing] = 0
        self.pointers = address(self._array)
        self.count = len(starts)


def _block_of(texts: Sequence[str], what: str) -> tuple[bytes, IntArray]:
    try:
        block = ("\0".join(texts) + "\0").encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{what}: {error}") from None
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == 0)
    if len(ends) != len(texts):
        raise ValueError(f"{what}: a text holds a NUL character")
    starts = np.empty(len(texts), np.int64)
    starts[0] = 0
    starts[1:] = ends[:-1] + 1
    return block, starts


def is_one_id(value: Any) -> bool:
    """Return True if the value is a single id rather than a list of ids."""
    return isinstance(value, (str, int, np.integer, uuid.UUID))


def id_text(value: Any) -> str:
    """Return an id (a str, an int or a UUID) as text; an int becomes its decimal digits."""
    if isinstance(value, str):
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return str(int(value))
    if isinstance(value, uuid.UUID):
        return str(value)
    raise TypeError(f"an id is {value!r}; it must be a str, an int or a UUID")


def as_texts(values: Any, count: Optional[int] = None, what: str = "ids") -> Texts:
    """Convert ids: a single one, or a list, array or column of texts or integers."""
    if is_one_id(values):
        values = [values]
    if is_arrow(values):
        values = values.to_pylist()
    elif hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise ValueError(f"{what} have {values.ndim} dimensions; a list of them is needed")
        if values.dtype.kind in "iu":
            values = values.astype(np.str_).tolist()
        else:
            values = values.tolist()
    else:
        try:
            values = list(values)
        except TypeError:
            raise TypeError(f"{what} are {values!r}; they must be a list of str, int or UUID, or one of these") from None
    if count is not None and len(values) != count:
        raise ValueError(f"there are {len(values)} {what} for {count} vectors")
    if not values:
        return Texts(b"\0", np.empty(0, np.int64))
    if set(map(type, values)) != {str}:
        values = [id_text(value) for value in values]
    return Texts(*_block_of(values, what))


def as_row_texts(values: Any) -> Texts:
    """Convert the texts of rows; None means no text."""
    listed = list(values)
    if not listed:
        return Texts(b"\0", np.empty(0, np.int64))
    return Texts(*_block_of(["" if one is None else one for one in listed], "texts"), np.array([one is None for one in listed]))


def _without_nan(value: Any) -> Any:
    """Return None for the values that mark missing data in a data frame."""
    missing = isinstance(value, (float, np.floating)) and math.isnan(value) or type(value).__name__ in ("NaTType", "NAType")
    return None if missing else value


def _records(payloads: Any) -> Any:
    if hasattr(payloads, "to_dicts"):  # polars
        return payloads.to_dicts()
    if hasattr(payloads, "to_pylist"):  # pyarrow
        return payloads.to_pylist()
    if not (hasattr(payloads, "to_dict") and hasattr(payloads, "columns")):
        return payloads
    return [{str(name): _without_nan(value) for name, value in record.items()} for record in payloads.to_dict("records")]


def _not_finite(value: Any, place: str = "") -> Optional[str]:
    """Describe the first number in a payload that JSON cannot represent: where it is and what it is."""
    if isinstance(value, (float, np.floating)) and not math.isfinite(value):
        return f"{place or 'it'} is {'NaN' if math.isnan(value) else 'infinite'}"
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    return next((found for key, one in inside if (found := _not_finite(one, f"{place}.{key}" if place else str(key)))), None)


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=lambda value: _plain(value)).encode


def _encoded(value: Any, number: int) -> str:
    try:
        return _encode(value) if value is not None else ""
    except TypeError as error:
        raise TypeError(f"payload {number}: {error}") from None
    except ValueError as error:
        raise ValueError(f"payload {number}: {_not_finite(value) or error}; JSON holds finite numbers, and None for none") from None


def as_payloads(payloads: Any, count: int, per: str = "vectors") -> Texts:
    """Convert payloads: any JSON values, None for no payload.

    Each row of a data frame is one payload, with null for missing values. A dict is the payload of a single row.
    """
    if isinstance(payloads, dict):
        if count != 1:
            raise ValueError(f"payloads is a dict, which is one payload, for {count} {per}; give a list with a payload for each")
        payloads = [payloads]
    if isinstance(payloads, (str, bytes)):
        raise TypeError(f"payloads is the {type(payloads).__name__} {payloads!r:.60}; it must be a list of values for JSON, one for each row, or a dict for one")
    try:
        values = list(_records(payloads))
    except TypeError:
        raise TypeError(f"payloads are {payloads!r}; they must be a list of values for JSON, one for each row, or a data frame") from None
    if len(values) != count:
        raise ValueError(f"there are {len(values)} payloads for {count} {per}")
    texts = [_encoded(value, number) for number, value in enumerate(values)]
    if not texts:
        return Texts(b"\0", np.empty(0, np.int64))
    return Texts(*_block_of(texts, "payloads"), np.array([value is None for value in values]))


def _plain(value: Any) -> Any:
    """Convert NumPy numbers and arrays, dates and UUIDs to JSON values."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (datetime.date, datetime.time)):  # includes datetime
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def as_parameters(values: Any) -> Any:
    """Convert the parameters of a `where`: a dict by name or a list by position. A list inside a dict is for IN."""
    if values is not None and not isinstance(values, (dict, list, tuple)):
        raise TypeError(f"parameters are {values!r}; they must be a dict by name or a list by place")
    named = [(f":{name.lstrip(':@$')}".encode() if name[:1] not in "@$?" else name.encode(), value) for name, value in values.items()] if isinstance(
        values, dict) else [(None, value) for value in (values or ())]
    listed = (c.ww_parameter * max(len(named), 1))()
    for slot, (name, value) in zip(listed, named):
        slot.name = name
        value = value.item() if isinstance(value, np.generic) else value
        if value is None:
            slot.type = c.WW_VALUE_NULL
        elif isinstance(value, int):
            if not -2**63 <= value < 2**63:
                raise OverflowError(f"parameter {value} does not fit 64 bits")
            slot.type, slot.integer = c.WW_VALUE_INTEGER, value
        elif isinstance(value, float):
            slot.type, slot.real = c.WW_VALUE_REAL, value
        elif isinstance(value, (str, datetime.date, uuid.UUID)):
            text = value if isinstance(value, str) else _plain(value)
            if "\0" in text:
                raise ValueError("a parameter holds a NUL character")
            slot.type, slot.text = c.WW_VALUE_TEXT, text.encode()
        elif isinstance(value, (list, tuple, set, frozenset, np.ndarray)):
            slot.type, slot.text = c.WW_VALUE_LIST, as_json(list(value))
        else:
            raise TypeError(f"a parameter is {type(value).__name__}; it must be None, an int, a float, a str, a date, a UUID or, for IN, a list of these")
    return listed if named else (c.ww_parameter * 0)()


def as_json(value: Any, default: Any = _plain, what: str = "a parameter") -> bytes:
    """Encode a value as JSON; refuse NUL characters, which would end the text in C."""
    text = json.dumps(value, default=default, allow_nan=False)
    if "\\u0000" in text:
        raise ValueError(f"{what} holds a NUL character")
    return text.encode()


def as_filter(conditions: dict[str, Any]) -> bytes:
    """Encode a filter as JSON for the C library; a date becomes {"$date": ...}."""
    return as_json(conditions, _filter_value, "a filter")


def name_text(value: Any, what: str) -> bytes:
    """Encode a name or another text for C."""
    if not isinstance(value, str):
        raise TypeError(f"{what} is {value!r}; it must be a str")
    return value.encode()


def _filter_value(value: Any) -> Any:
    if isinstance(value, datetime.date):  # includes datetime
        return {"$date": value.isoformat()}
    if isinstance(value, (set, frozenset, tuple)):
        return sorted(value)
    return _plain(value)


def as_mask(mask: Any) -> tuple[npt.NDArray[np.uint64], int]:
    """Pack one boolean per row into bits; return the bits and the number of rows."""
    array = np.asarray(mask)
    if array.dtype != np.bool_:
        raise TypeError(f"the mask is of type {array.dtype}; it must be bool, one for each row")
    if array.ndim != 1:
        raise ValueError(f"the mask has {array.ndim} dimensions; it must have one")
    bits = np.packbits(array, bitorder="little")
    words = np.zeros((len(array) + 63) // 64 or 1, np.uint64)
    words.view(np.uint8)[: len(bits)] = bits
    return words if words.dtype.byteorder in "=<|" else words.byteswap(), len(array)
