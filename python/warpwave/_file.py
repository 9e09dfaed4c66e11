"""A store's file for C: open it, and create a collection in it."""
from __future__ import annotations

import os
from ctypes import byref, c_void_p
from typing import Any, Optional

from . import _native as c
from ._arrays import name_text
from ._calls import Handle
from ._errors import check
from .device import Device, made


def opened_file(path: Any, device: Device, called: Optional[str] = None, **options: int) -> Handle:
    """Open a file; `called` is its name for messages, `options` are fields of ww_store_config."""
    config, pointer = made(c.ww_store_config), c_void_p()
    check(c.ww_store_config_init(byref(config), config.struct_size))
    for field, value in options.items():
        setattr(config, field, value)
    shown = called or os.fspath(path)
    check(c.ww_store_open(os.fsencode(path), device._open().pointer, byref(config), byref(pointer)), str(shown))
    return Handle(pointer.value or 0, c.ww_store_close, f"the store {shown}")


def created(store: int, name: str, dim: int, metric: int, type: int, **options: int) -> c_void_p:
    """Create an empty collection; `options` are fields of ww_collection_config."""
    config, pointer = made(c.ww_collection_config, name=name_text(name, "the name"), dim=dim, metric=metric, type=type, **options), c_void_p()
    check(c.ww_store_create(store, byref(config), byref(pointer)))
    return pointer
