"""Statuses of the C library as exceptions: each is an Error, and what people catch for it elsewhere."""
from __future__ import annotations

import enum
import os
import re
from ctypes import byref, sizeof
from dataclasses import dataclass
from typing import Optional

from . import _native as c


class Status(enum.IntEnum):
    """What a call of the C library returned."""

    OK = c.WW_OK
    INVALID_ARGUMENT = c.WW_INVALID_ARGUMENT
    DIMENSION_MISMATCH = c.WW_DIMENSION_MISMATCH
    OUT_OF_MEMORY = c.WW_OUT_OF_MEMORY
    NO_DEVICE = c.WW_NO_DEVICE
    DRIVER_ERROR = c.WW_DRIVER_ERROR
    NOT_FOUND = c.WW_NOT_FOUND
    DUPLICATE_ID = c.WW_DUPLICATE_ID
    UNSUPPORTED = c.WW_UNSUPPORTED
    CORRUPT_FILE = c.WW_CORRUPT_FILE
    IO_ERROR = c.WW_IO_ERROR
    CANCELLED = c.WW_CANCELLED
    OUT_OF_RANGE = c.WW_OUT_OF_RANGE
    INTERNAL = c.WW_INTERNAL
    OTHER_PROCESS = c.WW_OTHER_PROCESS
    BUSY = c.WW_BUSY


@dataclass(frozen=True)
class ErrorDetail:
    """What a vendor's library said, where its failure is what the message tells of."""

    backend: str
    library: str
    call: str
    name: str
    code: int


class Error(Exception):
    """A call of the library failed. Catch it, or the usual exception that each kind also is.

    >>> import warpwave
    >>> try:
    ...     warpwave.Device("cuda:99")
    ... except warpwave.Error as error:
    ...     print(error.status.name)
    NO_DEVICE
    """

    status: Status = Status.INTERNAL
    detail: Optional[ErrorDetail] = None
    message: str = ""

    def __init__(self, message: str = "", status: Optional[Status] = None, detail: Optional[ErrorDetail] = None) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        if status is not None:
            self.status = status

    def __str__(self) -> str:  # KeyError would show the message as a literal
        return self.message


class InvalidArgument(Error, ValueError):
    """A value that is not finite, a text that is not JSON, ..."""

    status = Status.INVALID_ARGUMENT


class DimensionMismatch(Error, ValueError):
    """Vectors of one length where another was promised."""

    status = Status.DIMENSION_MISMATCH


class OutOfMemory(Error, MemoryError):
    """The message says how much was asked and how much was free."""

    status = Status.OUT_OF_MEMORY


class NoDevice(Error, RuntimeError):
    """The message lists the devices that are there."""

    status = Status.NO_DEVICE


class DriverError(Error, RuntimeError):
    """A vendor call failed; `detail` has its name and code."""

    status = Status.DRIVER_ERROR


class NotFound(Error, KeyError):
    """An id, a name or a key that is not there."""

    status = Status.NOT_FOUND


class DuplicateId(Error, ValueError):
    """An id that is there already, or twice in one call."""

    status = Status.DUPLICATE_ID


class Unsupported(Error, ValueError, TypeError):
    """What the library does not have: a type, a format, ..."""

    status = Status.UNSUPPORTED


class CorruptFile(Error, ValueError):
    """The message names the file, the offset and the reason."""

    status = Status.CORRUPT_FILE


class IoError(Error, OSError):
    """The operating system refused to read or write."""

    status = Status.IO_ERROR


class MissingFile(IoError, FileNotFoundError):
    """There is no such file."""


class Cancelled(Error, RuntimeError):
    """A progress callback asked to stop."""

    status = Status.CANCELLED


class OutOfRange(Error, IndexError, ValueError):
    """A number that is too small or too large."""

    status = Status.OUT_OF_RANGE


class InternalError(Error, RuntimeError):
    """A defect of the library; please report it."""

    status = Status.INTERNAL


class OtherProcess(Error, RuntimeError):
    """Made before fork(), used in the child: open it again there."""

    status = Status.OTHER_PROCESS


class Busy(Error, TimeoutError):
    """Another process or connection kept a lock for longer than was to be waited; try again."""

    status = Status.BUSY


_KINDS: dict[int, type[Error]] = {
    int(kind.status): kind
    for kind in (InvalidArgument, DimensionMismatch, OutOfMemory, NoDevice, DriverError, NotFound, DuplicateId, Unsupported, CorruptFile, IoError,
                 Cancelled, OutOfRange, InternalError, OtherProcess, Busy)
}


# Names of C functions at the beginning of a message and behind colons: whoever reads it in Python did not call them.
_CALLS = re.compile(r"(^|: )(?:ww_[a-z0-9_]+: )+")


def error_of(status: int, path: Optional[str] = None) -> Error:
    """The exception for a status that the calling thread has just got; `path` is the file that was asked for."""
    message = _CALLS.sub(r"\1", c.ww_error_message().decode("utf-8", "replace"))
    info = c.ww_error_info(struct_size=sizeof(c.ww_error_info))
    detail = None
    if c.ww_error_detail(byref(info)) == c.WW_OK and info.library:
        detail = ErrorDetail(info.backend.decode(), info.library.decode(), info.call.decode(), info.name.decode(), info.code)
    kind = _KINDS.get(status, InternalError)
    if kind in (IoError, NotFound) and path is not None and not os.path.exists(path):
        kind = MissingFile
    return kind(message, Status(status) if status in _KINDS else Status.INTERNAL, detail)


def check(status: int, path: Optional[str] = None) -> None:
    """Raises what a status that is not OK means."""
    if status:
        raise error_of(status, path)
