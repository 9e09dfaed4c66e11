"""The boundary to C: ctypes cuts integers to the width of a field and texts at their first NUL without a word, so both are checked here.

Every struct of the API is decorated with @struct, and every function goes through checked(); scripts/python-native.py writes both from the headers. Values that do
not fit raise a ValueError, values of another type a TypeError, and both name the field or parameter.
"""
from __future__ import annotations

import operator
from ctypes import (Array, Structure, c_char, c_char_p, c_int, c_int8, c_int16, c_int32, c_int64, c_longlong, c_size_t, c_uint8, c_uint16,
                    c_uint32, c_uint64, sizeof)
from typing import Any, Callable, Iterable, Optional, TypeVar

# The smallest and the largest number of each integer type.
LIMITS: dict[Any, tuple[int, int]] = {
    **{kind: (-(1 << 8 * sizeof(kind) - 1), (1 << 8 * sizeof(kind) - 1) - 1) for kind in (c_int, c_int8, c_int16, c_int32, c_int64, c_longlong)},
    **{kind: (0, (1 << 8 * sizeof(kind)) - 1) for kind in (c_size_t, c_uint8, c_uint16, c_uint32, c_uint64)},
}


def integer(value: Any, name: str, kind: Any = c_int64, says: str = "is") -> int:
    """An int, or a NumPy integer, that fits the C type. A bool is no number, and a float is no integer even where it has no fraction."""
    low, high = LIMITS[kind]
    if type(value) is not int:
        if isinstance(value, (bool, float)) or not hasattr(value, "__index__") or type(value).__name__ in ("bool", "bool_"):
            raise TypeError(f"{name} {says} {value!r}; it must be an integer")
        value = operator.index(value)
    if not low <= value <= high:
        raise ValueError(f"{name} {says} {value}; it must be from {low} to {high}")
    return int(value)


def integers(values: Iterable[Any], name: str, kind: Any = c_int64) -> Any:
    """A C array of integers that fit; of none it still has one element, so that it has an address."""
    listed = [integer(value, name, kind, "holds") for value in values]
    return (kind * max(len(listed), 1))(*listed)


def text(value: Optional[bytes], name: str) -> Optional[bytes]:
    """Bytes that C reads up to a NUL: there must be none before the end. None is a NULL pointer."""
    if value is not None and not isinstance(value, bytes):
        raise TypeError(f"{name} is {value!r}; it must be a text")
    if value is not None and b"\0" in value:
        raise ValueError(f"{name} holds a NUL character")
    return value


def _check_of(kind: Any, name: str) -> Optional[Callable[[Any], Any]]:
    """The check of a field or parameter, or None for types that ctypes checks itself."""
    if kind in LIMITS:
        low, high = LIMITS[kind]

        def number(value: Any) -> int:
            return value if type(value) is int and low <= value <= high else integer(value, name, kind)

        return number
    if kind is c_char_p or (isinstance(kind, type) and issubclass(kind, Array) and getattr(kind, "_type_", None) is c_char):
        return lambda value: text(value, name)
    return None


def _field(field: Any, kind: Any, name: str) -> Optional[property]:
    """A field of a struct that checks what it is given; reading it is ctypes' own."""
    put, check = field.__set__, _check_of(kind, name)
    if check is None:
        return None
    low, high = LIMITS.get(kind, (1, 0))  # without a call in the common case, for searches of microseconds

    def put_checked(value_of: Any, value: Any) -> None:
        put(value_of, value if type(value) is int and low <= value <= high else check(value))

    return property(field.__get__, put_checked)


Kind = TypeVar("Kind", bound=Any)


def struct(kind: Kind) -> Kind:
    """Decorates a struct of the API: what is assigned to a field, or given to the constructor, is checked."""
    for name, field_kind in kind._fields_:
        checked_field = _field(kind.__dict__[name], field_kind, name)
        if checked_field is not None:
            setattr(kind, name, checked_field)
    return kind


def checked(function: Any, arguments: Iterable[Any]) -> Any:
    """The function with checks of the parameters that are given as (name, type)."""
    checks = []
    for place, argument in enumerate(arguments):
        if isinstance(argument, tuple):
            check = _check_of(argument[1], argument[0])
            assert check is not None, argument
            checks.append((place, check))
    if not checks:
        return function

    def call(*values: Any) -> Any:
        passed = list(values)
        for place, check in checks:
            passed[place] = check(passed[place])
        return function(*passed)

    return call
