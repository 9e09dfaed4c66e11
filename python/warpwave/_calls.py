"""How C objects are held, and how long calls are made so that they can be interrupted."""
from __future__ import annotations

import threading
from typing import Any, Callable, Optional, Union

from . import _native as c
from ._errors import check

Progress = Union[None, bool, Callable[[int, int], object]]


class Handle:
    """A C object that ends once, when it was closed and no call uses it any more. A call is made inside `with handle as pointer`.

    Only operations that Python does in one step change it, so there is no lock that a signal handler, the garbage collector or a fork could
    find taken: who enters counts itself first and then looks whether it was closed; who closes does both the other way round.
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
            return  # somebody else did
        end(self.pointer)

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Ends the object now, or when the last call that uses it returns. May be called twice."""
        self._closed = True
        if not self._users:
            self._finish()

    __del__ = close


class NotPicklable:
    """What lives in the C library and cannot be copied into another process."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        raise TypeError(f"a {type(self).__name__} cannot be pickled: it lives in this process and on its device; open or make it again in the other")

    def __copy__(self) -> Any:
        raise TypeError(f"a {type(self).__name__} cannot be copied")

    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError(f"a {type(self).__name__} cannot be copied")


def _bar(total_of: str) -> Optional[Callable[[int, int], None]]:
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
    """A function on a thread of its own, whose end is waited for.

    Not by Thread.join(): until Python 3.12 one that a signal handler interrupts takes the thread for ended, while it still works on memory
    of its caller.
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

        self._early: list[BaseException] = []  # what a signal handler raised while the thread was started
        try:
            threading.Thread(target=run, name=f"warpwave {name}").start()
        except RuntimeError:  # there can be no thread more
            raise
        except BaseException as error:
            self._early.append(error)

    def check(self) -> None:
        """Raises what a signal handler raised too early."""
        _raise_first(self._early)

    def wait(self, cancel: Callable[[], object]) -> None:
        """Waits for the end. What a signal handler raises meanwhile cancels the work, and is raised when it has ended."""
        try:
            self.check()
            self._done.wait()
        except BaseException:
            self.end(cancel)
            raise

    def end(self, cancel: Callable[[], object]) -> None:
        """Cancels until it has ended: a cancel that comes before the call has begun is lost."""
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
            del error  # no cycle through the traceback


def cancellable(call: Callable[[], int], cancel: Callable[[], object]) -> None:
    """Makes a call that another thread can cancel, so that what signal handlers raise (Ctrl-C) ends it: on the main thread it runs on another
    one, as below."""
    if threading.current_thread() is not threading.main_thread():
        check(call())
        return
    worker = Worker(lambda: check(call()), "call")
    worker.wait(cancel)
    _raise_first(worker.raised)


def interruptible(call: Callable[[Any], int], progress: Progress = None, what: str = "", path: Any = None) -> None:
    """Makes a call that takes long: `call` gets a ww_progress and returns a status.

    On the main thread the call runs on another one while this one waits, because only there Python runs signal handlers: whatever they
    raise (Ctrl-C) stops the call, which leaves everything as it was, and is raised when it has ended. What `progress` raises does the
    same.
    """
    tell = _bar(what) if progress is True else progress if callable(progress) else None
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
