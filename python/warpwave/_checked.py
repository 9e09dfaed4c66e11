"""Checks at the boundary to C: ctypes silently truncates integers to a field's width and texts at their first NUL.

Every struct of the API is decorated with @struct, and every function goes through checked(); scripts/python-native.py generates both from
the headers. A value that does not fit raises ValueError, a value of another type TypeError; both name the field or parameter.
"""
from __future__ import annotations

import operator
from ctypes import (Array, Structure, c_char, c_char_p, c_int, c_int8, c_int16, c_int32, c_int64, c_size_t, c_uint8, c_uint16,
                    c_uint32, c_uint64, sizeof)
from typing import Any, Callable, Iterable, Optional, TypeVar

# The minimum and maximum of each integer type.
LIMITS: dict[Any, tuple[int, int]] = {
    **{kind: (-(1 << 8 * sizeof(kind) - 1), (1 << 8 * sizeof(kind) - 1) - 1) for kind in (c_int, c_int8, c_int16, c_int32, c_int64)},
    **{kind: (0, (1 << 8 * sizeof(kind)) - 1) for kind in (c_size_t, c_uint8, c_uint16, c_uint32, c_uint64)},
}


def integer(value: Any, name: str, kind: Any = c_int64, says: str = "is") -> int:
    """Return an int or a NumPy integer if it fits the C type. Refuse bools, and floats even if they have no fraction."""
    low, high = LIMITS[kind]
    if type(value) is not int:
        if isinstance(value, (bool, float)) or not hasattr(value, "__index__") or type(value).__name__ in ("bool", "bool_"):
            raise TypeError(f"{name} {says} {value!r}; it must be an integer")
        value = operator.index(value)
    if not low <= value <= high:
        raise ValueError(f"{name} {says} {value}; it must be from {low} to {high}")
    return int(value)


def integers(values: Iterable[Any], name: str, kind: Any = c_int64) -> Any:
    """Return a C array of checked integers. An empty one still has one element, so that it has an address."""
    listed = [integer(value, name, kind, "holds") for value in values]
    return (kind * max(len(listed), 1))(*listed)


def text(value: Optional[bytes], name: str) -> Optional[bytes]:
    """Return bytes for C if they contain no NUL. None becomes a NULL pointer."""
    if value is not None and not isinstance(value, bytes):
        raise TypeError(f"{name} is {value!r}; it must be a text")
    if value is not None and b"\0" in value:
        raise ValueError(f"{name} holds a NUL character")
    return value


def _check_of(kind: Any, name: str) -> Optional[Callable[[Any], Any]]:
    """Return the check for a field or parameter, or None if ctypes checks the type itself."""
    if kind in LIMITS:
        low, high = LIMITS[kind]

        def number(value: Any) -> int:
            return value if type(value) is int and low <= value <= high else integer(value, name, kind)

        return number
    if kind is c_char_p or (isinstance(kind, type) and issubclass(kind, Array) and getattr(kind, "_type_", None) is c_char):
        return lambda value: text(value, name)
    return None


def _field(field: Any, kind: Any, name: str) -> Optional[property]:
    """Return a struct field that checks assigned values; reading is left to ctypes."""
    put, check = field.__set__, _check_of(kind, name)
    if check is None:
        return None
    low, high = LIMITS.get(kind, (1, 0))  # the common case needs no call, for searches that take microseconds

    def put_checked(value_of: Any, value: Any) -> None:
        put(value_of, value if type(value) is int and low <= value <= high else check(value))

    return property(field.__get__, put_checked)


Kind = TypeVar("Kind", bound=Any)


def struct(kind: Kind) -> Kind:
    """Decorate a struct of the API so that it checks values assigned to fields or passed to the constructor."""
    for name, field_kind in kind._fields_:
        checked_field = _field(kind.__dict__[name], field_kind, name)
        if checked_field is not None:
            setattr(kind, name, checked_field)
    return kind


def checked(function: Any, arguments: Iterable[Any]) -> Any:
    """Wrap a function so that it checks the parameters given as (name, type)."""
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
