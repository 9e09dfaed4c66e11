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


def cancellable(call: Callable[[], int], cancel: Callable[[], object]) -> None:
    """Makes a call that another thread can cancel, so that what signal handlers raise (Ctrl-C) ends it: on the main thread it runs on another
    one, as below."""
    if threading.current_thread() is not threading.main_thread():
        check(call())
        return
    raised: list[BaseException] = []

    def run() -> None:
        try:
            check(call())
        except BaseException as error:
            raised.append(error)

    worker = threading.Thread(target=run, name="warpwave")
    worker.start()
    try:
        worker.join()
    except BaseException:
        end_worker(worker, cancel)
        raise
    if raised:
        try:
            raise raised[0]
        finally:
            del raised  # no cycle through the traceback


def end_worker(worker: threading.Thread, cancel: Callable[[], object]) -> None:
    """Cancels until the thread has ended: a cancel that comes before the call has begun is lost."""
    while worker.is_alive():
        try:
            cancel()
            worker.join(0.01)
        except BaseException:  # one is enough
            continue


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

    def run() -> None:
        try:
            check(call(told), path)
        except BaseException as error:
            raised.append(error)

    if threading.current_thread() is threading.main_thread():
        worker = threading.Thread(target=run, name=f"warpwave {what}")
        worker.start()
        try:
            worker.join()
        except BaseException:
            stop[0] = True
            while worker.is_alive():
                try:
                    worker.join()
                except BaseException:  # one is enough
                    continue
            raise
    else:
        run()
    if raised:
        try:
            raise raised[0]
        finally:
            del raised  # no cycle through the traceback
