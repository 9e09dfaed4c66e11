"""Ownership of C objects, and long calls that can be interrupted."""
from __future__ import annotations

import threading
from ctypes import byref, c_void_p
from typing import Any, Callable, Optional, Union

from . import _native as c
from ._errors import check

Progress = Union[None, bool, Callable[[int, int], object]]


class Handle:
    """A C object that is freed once, after it is closed and no call uses it. Make calls inside `with handle as pointer`.

    It uses only atomic operations of Python, so there is no lock that a signal handler, the garbage collector or a fork could find held. A
    call registers itself and then checks whether the handle is closed; close() marks the handle as closed and then checks for calls.
    """

    __slots__ = ("pointer", "_what", "_closed", "_users", "_ends")

    def __init__(self, pointer: int, end: Callable[[int], None], what: str = "the object") -> None:
        self.pointer = pointer
        self._what = what
        self._closed = False
        self._users: list[None] = []
        self._ends = [end]

    def __enter__(self) -> int:
        self._users.append(None)
        if self._closed:
            self.__exit__()
            raise ValueError(f"{self._what} is closed")
        return self.pointer

    def __exit__(self, *_: object) -> None:
        self._users.pop()
        if self._closed and not self._users:
            self._finish()

    def _finish(self) -> None:
        try:
            end = self._ends.pop()
        except IndexError:
            return  # another thread did it
        end(self.pointer)

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Free the object now, or when the last call that uses it returns. Closing twice is allowed."""
        self._closed = True
        if not self._users:
            self._finish()

    __del__ = close


class NotPicklable:
    """Base of objects that live in the C library and cannot be copied to another process."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        raise TypeError(f"a {type(self).__name__} cannot be pickled: it lives in this process and on its device; open or make it again in the other")

    def __copy__(self) -> Any:
        raise TypeError(f"a {type(self).__name__} cannot be copied")

    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError(f"a {type(self).__name__} cannot be copied")


def bar(total_of: str) -> Optional[Callable[[int, int], None]]:
    """Return a function that shows a progress bar; None without tqdm."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    bar = tqdm(desc=total_of, leave=False)

    def tell(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)
        if done >= total:
            bar.close()

    return tell


class Worker:
    """A function on its own thread, with a wait that signals can interrupt.

    It does not use Thread.join(): before Python 3.12, a join() that a signal handler interrupts marks the thread as ended while it still
    works on the caller's memory.
    """

    def __init__(self, work: Callable[[], object], name: str) -> None:
        self._done = threading.Event()
        self.raised: list[BaseException] = []

        def run() -> None:
            try:
                work()
            except BaseException as error:
                self.raised.append(error)
            finally:
                self._done.set()

        self._early: list[BaseException] = []  # raised by signal handlers while the thread was starting
        try:
            threading.Thread(target=run, name=f"warpwave {name}").start()
        except RuntimeError:  # no more threads can be started
            raise
        except BaseException as error:
            self._early.append(error)

    def check(self) -> None:
        """Raise what a signal handler raised while the thread was starting."""
        _raise_first(self._early)

    def wait(self, cancel: Callable[[], object]) -> None:
        """Wait for the thread. An exception from a signal handler cancels the work and is raised once the thread has ended."""
        try:
            self.check()
            self._done.wait()
        except BaseException:
            self.end(cancel)
            raise

    def end(self, cancel: Callable[[], object]) -> None:
        """Cancel until the thread has ended: a cancel that arrives before the call starts has no effect."""
        while not self._done.is_set():
            try:
                cancel()
                self._done.wait(0.01)
            except BaseException:  # one is enough
                continue


def _raise_first(raised: list[BaseException]) -> None:
    if raised:
        error = raised[0]
        raised.clear()
        try:
            raise error
        finally:
            del error  # break the cycle through the traceback


def cancellable(call: Callable[[], int], cancel: Callable[[], object]) -> None:
    """Make a call that another thread can cancel, so that Ctrl-C and other signal handlers can end it.

    From the main thread the call runs on another thread; see interruptible().
    """
    if threading.current_thread() is not threading.main_thread():
        check(call())
        return
    worker = Worker(lambda: check(call()), "call")
    worker.wait(cancel)
    _raise_first(worker.raised)


class Token:
    """By which another thread stops a call that has its address: also while it waits for rows to be loaded, when no progress is told."""

    __slots__ = ("pointer",)

    def __init__(self) -> None:
        made = c_void_p()
        check(c.ww_cancel_create(byref(made)))
        self.pointer = made.value

    def ask(self) -> None:
        c.ww_cancel_ask(self.pointer)

    def __del__(self) -> None:
        c.ww_cancel_destroy(self.pointer)


def interruptible(call: Callable[[Any], int], progress: Progress = None, what: str = "", path: Any = None, token: Optional[Token] = None) -> None:
    """Make a long call; `call` gets a ww_progress and returns a status.

    Python runs signal handlers only on the main thread. From there the call runs on another thread while the main thread waits. An
    exception from a signal handler (Ctrl-C) or from `progress` cancels the call, which then changes nothing; the exception is raised after
    the call has ended.
    """
    tell = bar(what) if progress is True else progress if callable(progress) else None
    stop = [False]
    raised: list[BaseException] = []

    def tell_or_stop(done: int, total: int, _user: Any) -> int:
        if tell is not None and not stop[0]:
            try:
                tell(done, total)
            except BaseException as error:
                raised.append(error)
                stop[0] = True
        return 1 if stop[0] else 0

    told = c.ww_progress(tell_or_stop)

    def cancel() -> None:
        stop[0] = True
        if token is not None:
            token.ask()

    if threading.current_thread() is threading.main_thread():
        worker = Worker(lambda: check(call(told), path), what)
        worker.wait(cancel)
        raised += worker.raised
    else:
        try:
            check(call(told), path)
        except BaseException as error:
            raised.append(error)
    _raise_first(raised)
