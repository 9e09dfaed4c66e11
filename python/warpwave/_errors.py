"""Exceptions for the statuses of the C library. Each is an Error and also the matching built-in exception."""
from __future__ import annotations

import enum
import os
import re
import sys
import warnings
from ctypes import byref, sizeof
from dataclasses import dataclass
from typing import Optional

from . import _native as c


class Status(enum.IntEnum):
    """The status that a call of the C library returned."""

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
    """What a vendor's library reported, if the error comes from one."""

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

    def __str__(self) -> str:  # KeyError would show the repr of the message
        return self.message


class InvalidArgument(Error, ValueError):
    """An invalid value, such as a number that is not finite or a text that is not JSON."""

    status = Status.INVALID_ARGUMENT


class DimensionMismatch(Error, ValueError):
    """Vectors of another length than expected."""

    status = Status.DIMENSION_MISMATCH


class OutOfMemory(Error, MemoryError):
    """There is not enough memory; the message says how much was requested and how much was free."""

    status = Status.OUT_OF_MEMORY


class NoDevice(Error, RuntimeError):
    """There is no such device; the message lists the available ones."""

    status = Status.NO_DEVICE


class DriverError(Error, RuntimeError):
    """A vendor's call failed; `detail` has its name and code."""

    status = Status.DRIVER_ERROR


class NotFound(Error, KeyError):
    """There is no such id, name or key."""

    status = Status.NOT_FOUND


class DuplicateId(Error, ValueError):
    """The id exists already, or occurs twice in one call."""

    status = Status.DUPLICATE_ID


class Unsupported(Error, ValueError, TypeError):
    """The library does not support this, for example a type or a format."""

    status = Status.UNSUPPORTED


class CorruptFile(Error, ValueError):
    """The file is damaged; the message names the file, the offset and the reason."""

    status = Status.CORRUPT_FILE


class IoError(Error, OSError):
    """The operating system could not read or write."""

    status = Status.IO_ERROR


class MissingFile(IoError, FileNotFoundError):
    """There is no such file."""


class Cancelled(Error, RuntimeError):
    """A progress callback asked to stop."""

    status = Status.CANCELLED


class OutOfRange(Error, IndexError, ValueError):
    """A number is too small or too large."""

    status = Status.OUT_OF_RANGE


class InternalError(Error, RuntimeError):
    """A bug in the library; please report it."""

    status = Status.INTERNAL


class OtherProcess(Error, RuntimeError):
    """The object was created before fork() and used in the child; open it again there."""

    status = Status.OTHER_PROCESS


class Busy(Error, TimeoutError):
    """Another process or connection held a lock for longer than the timeout; try again."""

    status = Status.BUSY


class CutText(UserWarning):
    """Texts were longer than the model's context, so that their ends are not in their vectors or scores."""


class MissingPrompt(UserWarning):
    """Texts were embedded without a prompt by a model that has prompts and no default."""


def warn(message: str, kind: type[Warning] = UserWarning) -> None:
    """Warn the caller outside of this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("warpwave", "contextlib"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, kind, stacklevel=level)


_KINDS: dict[int, type[Error]] = {
    int(kind.status): kind
    for kind in (InvalidArgument, DimensionMismatch, OutOfMemory, NoDevice, DriverError, NotFound, DuplicateId, Unsupported, CorruptFile, IoError,
                 Cancelled, OutOfRange, InternalError, OtherProcess, Busy)
}


# Names of C functions at the start of a message and after colons: a Python user did not call them.
_CALLS = re.compile(r"(^|: )(?:ww_[a-z0-9_]+: )+")


def error_of(status: int, path: Optional[str] = None) -> Error:
    """Return the exception for the calling thread's last status; `path` is the file that was requested."""
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
    """Raise an exception unless the status is OK."""
    if status:
        raise error_of(status, path)
