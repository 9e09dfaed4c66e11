"""Devices to compute on."""
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
    """Description of a device; the fields are those of the C struct ww_device_info."""

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
    """Memory usage of a device: `ours` is in use by this library, `pooled` is kept for reuse, `peak` is the maximum of `ours`."""

    total_bytes: int
    free_bytes: int
    ours_bytes: int
    pooled_bytes: int
    peak_bytes: int


def made(kind: Any, **values: Any) -> Any:
    """Create a struct of the API; every default is zero."""
    return kind(struct_size=sizeof(kind), **values)


def from_struct(kind: Any, value: Any) -> Any:
    """Create a dataclass from the fields of a struct."""
    found = {field.name: getattr(value, field.name) for field in fields(kind)}
    return kind(**{name: item.decode("utf-8", "replace") if isinstance(item, bytes) else item for name, item in found.items()})


def devices() -> list[DeviceInfo]:
    """List all devices of this machine.

    >>> "cpu" in [device.id for device in warpwave.devices()]
    True
    """
    count = c_size_t()
    check(c.ww_devices(None, 0, byref(count)))
    infos = (c.ww_device_info * count.value)(*(made(c.ww_device_info) for _ in range(count.value)))
    check(c.ww_devices(infos, count.value, byref(count)))
    return [from_struct(DeviceInfo, info) for info in list(infos)[: count.value]]


def backend_absence(backend: str) -> str:
    """Return the reason why a backend ("cuda", "rocm") has no device; "" if it has one."""
    found: bytes = c.ww_backend_absence(backend.encode())
    return found.decode()


class Device(NotPicklable):
    """An open device, by name: "auto", "cpu", "cuda:0", "rocm:1"; or a group: "cuda:0+cpu", "rocm:*", "all".

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
        """The description of the device, including its free memory."""
        info = made(c.ww_device_info)
        handle = self._open()
        check(c.ww_device_describe(handle.pointer, byref(info)))
        return from_struct(DeviceInfo, info)  # type: ignore[no-any-return]

    @property
    def memory(self) -> MemoryInfo:
        """The device's memory usage, as counted by the library."""
        memory = made(c.ww_memory_info)
        handle = self._open()
        check(c.ww_device_memory(handle.pointer, byref(memory)))
        return from_struct(MemoryInfo, memory)  # type: ignore[no-any-return]

    def drop(self, member: str) -> None:
        """Remove a lost member from a group. Then move collections that had rows there to the same device again."""
        handle = self._open()
        check(c.ww_device_drop(handle.pointer, member.encode()))

    def trim(self) -> None:
        """Return pooled memory to the driver or the operating system."""
        handle = self._open()
        check(c.ww_device_trim(handle.pointer))

    def synchronize(self) -> None:
        """Wait until all queued tensor operations are done."""
        handle = self._open()
        check(c.ww_device_synchronize(handle.pointer))

    def seed(self, seed: int) -> None:
        """Seed the random tensors: the same calls after the same seed give the same bits on every device."""
        handle = self._open()
        check(c.ww_device_seed(handle.pointer, seed))

    def close(self) -> None:
        """Release the device. Collections and tensors on it keep it open themselves. Closing twice is allowed."""
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
    """Return the device for a name or a `Device`; a device opened by name stays open for the life of the process."""
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
        if name != "auto":  # the environment may change what "auto" means
            _opened[name] = found
    return found


os.register_at_fork(after_in_child=_opened.clear)
