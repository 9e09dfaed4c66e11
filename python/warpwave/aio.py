"""Stores, collections and models for asyncio: each call runs on a thread while the event loop continues."""
from __future__ import annotations

import asyncio
import functools
import time
from typing import Any, AsyncIterator, Callable, Iterator, Optional

from .model import Model, Prompt, Session, Stop
from .store import Store
from .vectors import Collection

__all__ = ["AsyncCollection", "AsyncModel", "AsyncStore"]


class _Asynchronous:
    """An object of the package with its methods as coroutines.

    `sync` is the object itself. Methods that compute nothing stay synchronous.
    """

    _kind: type
    sync: Any

    def __init__(self, sync: Any) -> None:
        if not isinstance(sync, self._kind):
            raise TypeError(f"{type(self).__name__} takes a {self._kind.__name__}, and not a {type(sync).__name__}; make one with await {type(self).__name__}.open(...)")
        self.sync = sync

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "sync":
            raise AttributeError(name)
        kind = getattr(self._kind, name, None)
        if not callable(kind):
            return getattr(self.sync, name)
        method = getattr(self.sync, name)

        @functools.wraps(method)
        async def call(*arguments: Any, **options: Any) -> Any:
            return self._wrapped(await asyncio.to_thread(method, *arguments, **options))

        return call

    @staticmethod
    def _wrapped(result: Any) -> Any:
        return AsyncCollection(result) if isinstance(result, Collection) else result

    @classmethod
    async def open(cls, *arguments: Any, **options: Any) -> Any:
        """Create the object on a thread, with the arguments of its class."""
        return cls(await asyncio.to_thread(cls._kind, *arguments, **options))

    async def close(self) -> None:
        """Close the object; calls in progress still finish."""
        await asyncio.to_thread(self.sync.close)

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.sync!r}>"


class AsyncCollection(_Asynchronous):
    """A `Collection` whose methods are coroutines; iteration fetches one page at a time on a thread.

        found = await docs.search(query, k=10)
        async for row in docs.iterate({"lang": "en"}): ...
    """

    _kind = Collection

    def __len__(self) -> int:
        return len(self.sync)

    def iterate(self, *arguments: Any, **options: Any) -> AsyncIterator[Any]:
        """Iterate as Collection.iterate() does."""
        return _stepped(lambda: self.sync.iterate(*arguments, **options))

    items = iterate

    def __aiter__(self) -> AsyncIterator[str]:
        return _stepped(lambda: iter(self.sync))


class AsyncStore(_Asynchronous):
    """A `Store` whose methods are coroutines, and whose collections are `AsyncCollection`s.

        async with await warpwave.AsyncStore.open("library.db") as store:
            docs = await store.get_or_create("docs", dim=384)
            await docs.add(vectors, ids=ids)
    """

    _kind = Store

    async def collection(self, name: str) -> AsyncCollection:
        """Return a collection by name; raise `NotFound`, a KeyError, if there is none."""
        return AsyncCollection(await asyncio.to_thread(self.sync.__getitem__, name))


class AsyncModel(_Asynchronous):
    """A `Model` whose methods are coroutines; `stream` is an asynchronous iterator, and closing it stops the computation.

        async for piece in model.stream("a prompt", max_tokens=64): ...
    """

    _kind = Model

    async def stream(self, prompt: Prompt, max_tokens: int = 128, *, stop: Stop = None, chat: bool = False, system: Optional[str] = None,
                     **sampling: Any) -> AsyncIterator[str]:
        """Stream text as Model.generate(..., stream=True) does."""
        session = await asyncio.to_thread(self.sync.session)
        steps = self._steps(session, self.sync._prompt(prompt, chat, system), session.stream(max_tokens, stop=stop, **sampling))
        try:
            while (piece := await asyncio.to_thread(next, steps, None)) is not None:
                yield piece
        finally:
            await asyncio.shield(asyncio.to_thread(_end, session, steps))

    @staticmethod
    def _steps(session: Session, prompt: list[int], pieces: Iterator[str]) -> Iterator[str]:
        session.feed(prompt)
        yield from pieces


def _end(session: Session, steps: Any) -> None:
    """Close an iterator that a thread may still be running; cancel its session until the thread has left it."""
    while True:
        try:
            steps.close()
            return
        except ValueError:  # the thread is still running it
            session.cancel()
            time.sleep(0.002)


async def _stepped(make: Callable[[], Iterator[Any]]) -> AsyncIterator[Any]:
    """Iterate asynchronously, running several steps at a time on a thread."""
    iterator = await asyncio.to_thread(make)
    while True:
        some = await asyncio.to_thread(lambda: [one for _, one in zip(range(_STEPS), iterator)])
        for one in some:
            yield one
        if len(some) < _STEPS:
            return


_STEPS = 256
