"""DLPack capsules: created with a destructor written in C, unpacked with Python's own functions. All of them hold the GIL.
"""
from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_int, c_void_p, py_object, pythonapi
from typing import Any

from . import _native as c
from ._errors import check

VERSIONED, PLAIN = b"dltensor_versioned", b"dltensor"
_USED_VERSIONED, _USED_PLAIN = b"used_dltensor_versioned", b"used_dltensor"
for _name in (VERSIONED, PLAIN, _USED_VERSIONED, _USED_PLAIN):
    pythonapi.Py_IncRef(py_object(_name))  # capsules point to these names and may outlive this module


def _python(name: str, result: Any, *arguments: Any) -> Any:
    found = ctypes.PYFUNCTYPE(result, *arguments)((name, pythonapi))
    return found


_new = _python("PyCapsule_New", py_object, c_void_p, c_char_p, c_void_p)
_is_valid = _python("PyCapsule_IsValid", c_int, py_object, c_char_p)
get_pointer = _python("PyCapsule_GetPointer", c_void_p, py_object, c_char_p)
_set_name = _python("PyCapsule_SetName", c_int, py_object, c_char_p)


def _address(function: Any) -> int:
    return ctypes.cast(function, c_void_p).value or 0


check(c.ww_dlpack_capsules(_address(pythonapi.PyCapsule_IsValid), _address(pythonapi.PyCapsule_GetPointer)))
_DESTRUCTOR = _address(c.ww_dlpack_capsule_destroy)


def give(tensor: Any, stream: int, versioned: bool) -> Any:
    """Return a capsule with an export of a tensor. If nobody consumes it, its destructor ends the export."""
    managed = c_void_p()
    export = c.ww_tensor_to_dlpack if versioned else c.ww_tensor_to_dlpack_unversioned
    check(export(tensor, stream, byref(managed)))
    return _new(managed, VERSIONED if versioned else PLAIN, _DESTRUCTOR)


def take(capsule: Any, device: int, stream: int) -> Any:
    """Return a tensor on the memory of a capsule, and take ownership of the capsule's contents."""
    tensor = c.ww_tensor()
    if _is_valid(capsule, VERSIONED):
        check(c.ww_tensor_from_dlpack(device, get_pointer(capsule, VERSIONED), stream, tensor))
        _set_name(capsule, _USED_VERSIONED)
    elif _is_valid(capsule, PLAIN):
        check(c.ww_tensor_from_dlpack_unversioned(device, get_pointer(capsule, PLAIN), stream, tensor))
        _set_name(capsule, _USED_PLAIN)
    else:
        raise ValueError("__dlpack__() gave no capsule with a tensor, or one that was taken before")
    return tensor
