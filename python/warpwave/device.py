"""Devices: what there is to compute on."""
from __future__ import annotations

import os
from ctypes import byref, c_size_t, c_void_p, sizeof
from dataclasses import dataclass, fields
from typing import Any, Optional, Union

from . import _native as c
from ._calls import Handle, NotPicklable
from ._errors import check


@dataclass(frozen=True)
class DeviceInfo:
    """What a device is; the fields are those of the C struct ww_device_info."""

    id: str
    name: str
    vendor: str
    backend: str
    arch: str
    instruction_sets: str
    kernels: str
    driver_version: str
    pci_address: str
    index: int
    wave_size: int
    compute_units: int
    max_threads_per_block: int
    shared_bytes_per_block: int
    memory_total_bytes: int
    memory_free_bytes: int
    memory_used_bytes: int
    member_count: int
    members: str
    passed_over: str


@dataclass(frozen=True)
class MemoryInfo:
    """How a device's memory stands: `ours` is in use here, `pooled` held for reuse, `peak` the most that ours has been."""

    total_bytes: int
    free_bytes: int
    ours_bytes: int
    pooled_bytes: int
    peak_bytes: int


def made(kind: Any, **values: Any) -> Any:
    """A struct of the API; every default is zero."""
    return kind(struct_size=sizeof(kind), **values)


def from_struct(kind: Any, value: Any) -> Any:
    """A dataclass with the fields of a struct."""
    found = {field.name: getattr(value, field.name) for field in fields(kind)}
    return kind(**{name: item.decode("utf-8", "replace") if isinstance(item, bytes) else item for name, item in found.items()})


def devices() -> list[DeviceInfo]:
    """All devices of this machine.

    >>> "cpu" in [device.id for device in warpwave.devices()]
    True
    """
    count = c_size_t()
    check(c.ww_devices(None, 0, byref(count)))
    infos = (c.ww_device_info * count.value)(*(made(c.ww_device_info) for _ in range(count.value)))
    check(c.ww_devices(infos, count.value, byref(count)))
    return [from_struct(DeviceInfo, info) for info in list(infos)[: count.value]]


def backend_absence(backend: str) -> str:
    """Why a backend ("cuda", "rocm") offers no device, in words; "" if it does."""
    found: bytes = c.ww_backend_absence(backend.encode())
    return found.decode()


class Device(NotPicklable):
    """An open device, by its name: "auto", "cpu", "cuda:0", "rocm:1"; or a group of them: "cuda:0+cpu", "rocm:*", "all".

    >>> with warpwave.Device("cpu") as device:
    ...     device.id
    'cpu'
    """

    def __init__(self, name: str = "auto") -> None:
        pointer = c_void_p()
        check(c.ww_device_open(name.encode(), byref(pointer)))
        self._handle: Optional[Handle] = Handle(pointer.value or 0, c.ww_device_close)
        info = made(c.ww_device_info)
        check(c.ww_device_describe(pointer, byref(info)))
        self.id: str = info.id.decode()
        self.backend: str = info.backend.decode()
        self.index: int = info.index

    def _open(self) -> Handle:
        handle = self._handle
        if handle is None:
            raise ValueError(f"the device {self.id} is closed")
        return handle

    @property
    def info(self) -> DeviceInfo:
        """What it is and how much of its memory is free."""
        info = made(c.ww_device_info)
        handle = self._open()
        check(c.ww_device_describe(handle.pointer, byref(info)))
        return from_struct(DeviceInfo, info)  # type: ignore[no-any-return]

    @property
    def memory(self) -> MemoryInfo:
        """How its memory stands, as the library counts it."""
        memory = made(c.ww_memory_info)
        handle = self._open()
        check(c.ww_device_memory(handle.pointer, byref(memory)))
        return from_struct(MemoryInfo, memory)  # type: ignore[no-any-return]

    def drop(self, member: str) -> None:
        """Has a group go on without a member, which is lost. Collections that had rows there move to the same device again."""
        handle = self._open()
        check(c.ww_device_drop(handle.pointer, member.encode()))

    def trim(self) -> None:
        """Gives pooled memory back to the driver or the operating system."""
        handle = self._open()
        check(c.ww_device_trim(handle.pointer))

    def synchronize(self) -> None:
        """Waits until every operation on tensors that was queued is done."""
        handle = self._open()
        check(c.ww_device_synchronize(handle.pointer))

    def seed(self, seed: int) -> None:
        """Where random tensors begin: the same calls after the same seed give the same bits on every device."""
        handle = self._open()
        check(c.ww_device_seed(handle.pointer, seed))

    def close(self) -> None:
        """Gives the device back; collections and tensors on it hold it themselves. May be called twice."""
        self._handle = None

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __eq__(self, other: object) -> bool:
        return self.id == (other.id if isinstance(other, Device) else other)

    def __hash__(self) -> int:
        return hash(self.id)

    def __str__(self) -> str:
        return self.id

    def __repr__(self) -> str:
        if self._handle is None:
            return f"<warpwave.Device {self.id}, closed>"
        info = self.info
        return f"<warpwave.Device {self.id}: {info.name}, {info.memory_free_bytes / 2**30:.1f} of {info.memory_total_bytes / 2**30:.1f} GiB free>"


DeviceLike = Union[Device, str, None]
_opened: dict[str, Device] = {}


def resolve(device: DeviceLike) -> Device:
    """The device that is meant; one that is named by text stays open for the process."""
    if isinstance(device, Device):
        device._open()
        return device
    name = device or "auto"
    found = _opened.get(name)
    if found is None or found._handle is None:
        found = Device(name)
        same = _opened.get(found.id)
        if same is not None and same._handle is not None:
            found = same
        _opened[found.id] = found
        if name != "auto":  # the environment may say tomorrow what that is
            _opened[name] = found
    return found


os.register_at_fork(after_in_child=_opened.clear)
