"""Stores, collections and models for programs with asyncio: each call runs on a thread, and the event loop goes on."""
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
    """The object of the package with its methods as coroutines. `sync` is the object itself; what computes nothing is as it is there."""

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
        """Makes the object, with the arguments of its class, on a thread."""
        return cls(await asyncio.to_thread(cls._kind, *arguments, **options))

    async def close(self) -> None:
        """Closes it; calls that are under way end first."""
        await asyncio.to_thread(self.sync.close)

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.sync!r}>"


class AsyncCollection(_Asynchronous):
    """A `Collection` whose methods are coroutines; iterating gives rows, a page on a thread at a time.

        found = await docs.search(query, k=10)
        async for row in docs.iterate({"lang": "en"}): ...
    """

    _kind = Collection

    def __len__(self) -> int:
        return len(self.sync)

    def iterate(self, *arguments: Any, **options: Any) -> AsyncIterator[Any]:
        """As Collection.iterate()."""
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
        """A collection by its name; `NotFound`, a KeyError, if it is not there."""
        return AsyncCollection(await asyncio.to_thread(self.sync.__getitem__, name))


class AsyncModel(_Asynchronous):
    """A `Model` whose methods are coroutines; `stream` is an asynchronous iterator, and ending it ends the computation.

        async for piece in model.stream("a prompt", max_tokens=64): ...
    """

    _kind = Model

    async def stream(self, prompt: Prompt, max_tokens: int = 128, *, stop: Stop = None, chat: bool = False, system: Optional[str] = None,
                     **sampling: Any) -> AsyncIterator[str]:
        """As Model.generate(..., stream=True)."""
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
    """Closes an iterator that a thread may still be in: until it is not, its session is cancelled."""
    while True:
        try:
            steps.close()
            return
        except ValueError:  # it is executing
            session.cancel()
            time.sleep(0.002)


async def _stepped(make: Callable[[], Iterator[Any]]) -> AsyncIterator[Any]:
    """An iterator whose steps are made on threads, some at once."""
    iterator = await asyncio.to_thread(make)
    while True:
        some = await asyncio.to_thread(lambda: [one for _, one in zip(range(_STEPS), iterator)])
        for one in some:
            yield one
        if len(some) < _STEPS:
            return


_STEPS = 256
