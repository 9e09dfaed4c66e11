"""Stores, collections and models for asyncio: the event loop goes on while they compute."""
from __future__ import annotations

import asyncio
import pathlib
import time

import numpy as np
import pytest
from small_models import write_decoder

import warpwave


def test_a_store_and_its_collections_are_awaited(tmp_path: pathlib.Path) -> None:
    async def work() -> None:
        async with await warpwave.AsyncStore.open(tmp_path / "s.db", device="cpu") as store:
            docs = await store.get_or_create("docs", dim=2)
            assert isinstance(docs, warpwave.AsyncCollection) and docs.dim == 2 and docs.name == "docs"
            await docs.add(np.eye(2), ids=["x", "y"], payloads=[{"a": 1}, {"a": 2}])
            found = await asyncio.gather(*[docs.search([1, 0], k=1) for _ in range(8)])
            assert all(list(one.ids) == ["x"] for one in found) and len(docs) == 2
            assert [row.id async for row in docs.iterate({"a": 2})] == ["y"] and [one async for one in docs] == ["x", "y"]
            again = await store.collection("docs")
            assert await again.count({"a": 1}) == 1
            with pytest.raises(KeyError):
                await store.collection("none")
            assert list(await store.list()) == ["docs"]
        with pytest.raises(ValueError, match="closed"):
            await docs.search([1, 0])

    asyncio.run(work())
    with pytest.raises(TypeError, match="AsyncStore takes a Store, and not a str; make one with await AsyncStore.open"):
        warpwave.AsyncStore("s.db")


def test_the_event_loop_goes_on_while_a_collection_computes() -> None:
    async def work() -> tuple[int, float]:
        c = warpwave.AsyncCollection(warpwave.Collection(64, device="cpu"))
        await c.add(np.random.default_rng(1).standard_normal((20000, 64)))
        ticks, start = 0, time.perf_counter()
        search = asyncio.ensure_future(c.search(np.random.default_rng(2).standard_normal((2000, 64))))
        while not search.done():
            await asyncio.sleep(0.001)
            ticks += 1
        return ticks, time.perf_counter() - start

    ticks, seconds = asyncio.run(work())
    assert ticks >= 2 or seconds < 0.005


def test_a_model_streams_and_ends_with_its_reader(tmp_path: pathlib.Path) -> None:
    try:
        write_decoder(tmp_path / "decoder.gguf", 32768)
        model = warpwave.Model(tmp_path / "decoder.gguf", device="cpu")
    except ImportError as error:
        pytest.skip(f"SKIP: no models in this build: {error}")

    async def work() -> None:
        async with warpwave.AsyncModel(model) as asynchronous:
            whole = await asynchronous.generate("a fox", 12)
            assert "".join([piece async for piece in asynchronous.stream("a fox", 12)]) == whole
            start = time.perf_counter()
            stream = asynchronous.stream("a fox", 30000)
            async for _ in stream:
                break
            await stream.aclose()
            assert time.perf_counter() - start < 5

            async def read(prompt: str) -> None:
                async for _ in asynchronous.stream(prompt, 30000, ignore_eos=True):
                    pass

            for prompt in ("a fox", "a fox " * 5000):  # while it generates, and while the prompt is fed
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(read(prompt), 0.3)
                before = time.process_time()
                await asyncio.sleep(0.3)
                assert time.process_time() - before < 0.15  # nothing computes any more

    asyncio.run(work())
    with pytest.raises(ValueError, match="closed"):
        model.tokenize("x")
