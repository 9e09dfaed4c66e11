"""How C objects are held, and how long calls are made so that they can be interrupted."""
from __future__ import annotations

import threading
from typing import Any, Callable, Optional, Union

from . import _native as c
from ._errors import check

Progress = Union[None, bool, Callable[[int, int], object]]


class Handle:
    """A C object, ended when nobody holds it any more: who calls with it holds it until the call returns, whoever closes it meanwhile."""

    __slots__ = ("pointer", "_end")

    def __init__(self, pointer: int, end: Callable[[int], None]) -> None:
        self.pointer = pointer
        self._end = end

    def __del__(self) -> None:
        self._end(self.pointer)


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


def interruptible(call: Callable[[Any], int], progress: Progress = None, what: str = "") -> None:
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
            check(call(told))
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
