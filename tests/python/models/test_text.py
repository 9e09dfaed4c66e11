"""Collections of text: a store and a model together."""
from __future__ import annotations

import pathlib
from typing import Any, Iterator

import numpy as np
import pytest
from small_models import write_encoder

import warpwave

TEXTS = ["a fox", "dogs dogs a dog", "a fox and a dog"]


@pytest.fixture
def model(tmp_path: pathlib.Path) -> str:
    write_encoder(tmp_path / "words.gguf")
    return str(tmp_path / "words.gguf")


@pytest.fixture
def store(tmp_path: pathlib.Path) -> Iterator[warpwave.Store]:
    with warpwave.Store(tmp_path / "text.db", device="cpu", synchronous="off") as opened:
        yield opened


def filled(store: warpwave.Store, model: str) -> Any:
    notes = store.create("notes", model=model)
    notes.add(texts=TEXTS, ids=["fox", "dogs", "both"], payloads=[{"n": 1}, {"n": 2}, None])
    return notes


def test_texts_are_found_by_texts(store: warpwave.Store, model: str, tmp_path: pathlib.Path) -> None:
    notes = filled(store, model)
    assert isinstance(notes, warpwave.TextCollection)
    found = notes.search(text="a fox", k=1)
    assert list(found.ids) == ["fox"] and list(found.texts) == ["a fox"] and found[0].text == "a fox"
    assert notes.get("fox").payload == {"n": 1} and notes.texts(["both", "fox"]) == ["a fox and a dog", "a fox"]
    assert store.list()["notes"]["model"]["pooling"] == "mean" and notes.model["path"] == model
    store.close()
    with warpwave.Store(tmp_path / "text.db", device="cpu") as again:
        notes = again["notes"]
        assert list(notes.search(text=["a fox", "dogs"], k=2).ids[0])[0] == "fox"
        notes.upsert(texts="a dog", ids="fox")
        assert notes.search(text="a dog", k=1)[0].id == "fox"
        assert len(notes.search(notes.get("fox").vector, k=1)) == 1  # vectors as ever


def test_words_and_vectors_together(store: warpwave.Store, model: str) -> None:
    notes = filled(store, model)
    words = notes.search(text="fox", mode="text")
    assert list(words.ids) == ["fox", "both"] and list(words.text_ranks) == [1, 2] and list(words.vector_ranks) == [0, 0]
    both = notes.search(text="a fox", mode="hybrid", where={"n": {"$exists": True}}, payloads=True)
    assert both.ids[0] == "fox" and both.vector_ranks[0] == 1 and both.text_ranks[0] == 1
    assert set(both.ids) <= {"fox", "dogs"} and both.payloads[0] == {"n": 1}
    assert notes.search(text="dog", mode="hybrid", fusion="scores", weights=(0, 1), k=1).ids[0] in ("dogs", "both")
    assert [hit.text for hit in notes.search(text='NEAR( "fox', mode="text")] == ["a fox", "a fox and a dog"]
    with pytest.raises(ValueError, match="mode"):
        notes.search(text="x", mode="magic")
    with pytest.raises(ValueError, match="by vectors only"):
        notes.search(text="x").text_ranks


def test_another_model_is_refused(store: warpwave.Store, model: str, tmp_path: pathlib.Path) -> None:
    filled(store, model)
    write_encoder(tmp_path / "other.gguf", seed=9)
    with pytest.raises(warpwave.InvalidArgument, match="cannot be compared"):
        store.create("notes", model=str(tmp_path / "other.gguf"), exist_ok=True)
    with pytest.raises(warpwave.InvalidArgument, match="already"):
        store.create("notes", model=model)
    assert len(store.create("notes", model=model, exist_ok=True)) == 3
    opened = warpwave.Model(model, device="cpu")
    assert store.get_or_create("notes", model=opened).search(text="a fox", k=1)[0].id == "fox"


def test_documents_and_the_text_around_a_hit(store: warpwave.Store, model: str) -> None:
    text = "A fox is here. A dog is there. The fox runs away. Dogs are dogs. A fox sleeps."
    notes = store.create("docs", model=model)
    notes.add(documents={"a.txt": text, "b.txt": "A dog."}, payloads=[{"lang": "en"}, None], chunk=9, overlap=4)
    hit = notes.search(text="runs", mode="text", payloads=True)[0]
    assert hit.payload["source"] == "a.txt" and hit.payload["lang"] == "en" and text[hit.payload["start"]:hit.payload["end"]] == hit.text
    assert hit.id == f"a.txt#{hit.payload['chunk']}"
    around = notes.search(text="runs", mode="text", expand=1)[0].text
    assert around in text and len(around) > len(hit.text)
    assert notes.search(text="runs", mode="text", expand=50)[0].text == text
    grouped = notes.search(text="a dog", mode="hybrid", group_by="source", payloads=True)
    assert sorted(payload["source"] for payload in grouped.payloads) == ["a.txt", "b.txt"]
    notes.upsert(documents=["A fox."], ids=["a.txt"])
    assert len(notes) == 2
    with pytest.raises(ValueError, match="sources"):
        notes.add(documents=["x"])


def test_a_function_ranks_again(store: warpwave.Store, model: str) -> None:
    notes = filled(store, model)
    seen: list[Any] = []

    def longest(query: str, texts: list[str]) -> list[float]:
        seen.append((query, len(texts)))
        return [float(len(text)) for text in texts]

    found = notes.search(text="a fox", k=2, rerank=longest, candidates=3)
    assert list(found.ids) == ["both", "dogs"] and seen == [("a fox", 3)]  # of the same length, so as they came
    assert list(found.scores) == [15.0, 15.0]
    with pytest.raises(ValueError, match="one for each"):
        notes.search(text="a fox", rerank=lambda query, texts: [1.0])


def test_a_model_ranks_again(store: warpwave.Store, model: str, tmp_path: pathlib.Path) -> None:
    notes = filled(store, model)
    write_encoder(tmp_path / "ranker.gguf", ranks=True)
    ranker = warpwave.Model(tmp_path / "ranker.gguf", device="cpu")
    scores = ranker.rerank("a fox", TEXTS)
    best = [["fox", "dogs", "both"][i] for i in np.argsort(-scores)]
    found = notes.search(text="a fox", k=2, rerank=ranker, candidates=3)
    assert list(found.ids) == best[:2] and list(found.scores) == sorted(scores, reverse=True)[:2]
    with pytest.raises(warpwave.Unsupported, match="does not rerank"):
        notes.search(text="a fox", rerank=warpwave.Model(model, device="cpu"))


def test_hits_that_differ_and_groups_in_memory() -> None:
    rows = warpwave.Collection(2, device="cpu")
    rows.add([[1, 0], [1, 0.01], [0, 1]], ids=["a", "b", "c"], payloads=[{"s": "x"}, {"s": "x"}, {"s": "y"}])
    assert list(rows.search([1, 0], k=2, mmr=0.3).ids) == ["a", "c"]
    assert list(rows.search([1, 0], k=2, mmr=1).ids) == ["a", "b"]
    assert list(rows.search([1, 0], group_by="s").ids) == ["a", "c"]
    assert [list(found.ids) for found in rows.search([[1, 0], [0, 1]], group_by="s", group_size=2)] == [["a", "b", "c"], ["c", "b", "a"]]
    with pytest.raises(ValueError, match="one of them"):
        rows.search([1, 0], mmr=0.5, group_by="s")
    assert np.array_equal(rows.search([[1, 0], [0, 1]], k=2, mmr=1).ids, rows.search([[1, 0], [0, 1]], k=2).ids)


def test_a_copy_has_texts_and_model(store: warpwave.Store, model: str, tmp_path: pathlib.Path) -> None:
    notes = filled(store, model)
    notes.save(tmp_path / "copy.db", name="kept")
    with warpwave.Store(tmp_path / "copy.db", device="cpu") as other:
        kept = other["kept"]
        assert isinstance(kept, warpwave.TextCollection) and kept.model == notes.model
        assert list(kept.search(text="fox", mode="text").ids) == ["fox", "both"] and kept.search(text="a fox", k=1)[0].text == "a fox"
        assert kept.get("dogs").payload == {"n": 2}


def test_a_cell_that_makes_a_collection_of_texts_runs_twice(store: warpwave.Store, model: str) -> None:
    first = store.get_or_create("notes", model=model)
    assert store.get_or_create("notes", model=model) is first and store.create("notes", model=model, exist_ok=True) is first
    first.upsert(texts=TEXTS, ids=["fox", "dogs", "both"])
    assert len(store.get_or_create("notes", model=model)) == 3


@pytest.mark.check
def test_tables_have_the_texts(store: warpwave.Store, model: str, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("pyarrow", reason="SKIP: no pyarrow")
    notes = filled(store, model)
    assert list(notes.to_pandas()["text"]) == TEXTS and notes.to_arrow().column("text").to_pylist() == TEXTS
    notes.to_parquet(tmp_path / "notes.parquet")
    copied = store.create("copy", dim=notes.dim)
    assert copied.add_table(tmp_path / "notes.parquet") == 3 and copied.to_arrow().equals(notes.to_arrow())
    with pytest.raises(warpwave.Error, match="text"):
        warpwave.Collection(notes.dim, device="cpu").add_table(tmp_path / "notes.parquet")


def test_a_new_collection_takes_the_prompts_of_its_model(store: warpwave.Store, tmp_path: pathlib.Path) -> None:
    write_encoder(tmp_path / "words.gguf", prompts={"query": "fox ", "passage": "dog "})
    model = warpwave.Model(tmp_path / "words.gguf", device="cpu")
    notes = store.create("notes", model=tmp_path / "words.gguf")
    assert notes.model["query_prefix"] == "fox " and notes.model["document_prefix"] == "dog "
    notes.add(texts=["a"], ids=["a"])
    assert (notes.get("a").vector == model.embed("dog a", prompt="")).all()
    plain = store.create("plain", model=tmp_path / "words.gguf", query_prefix="", document_prefix="")
    assert plain.model["document_prefix"] == ""


def test_texts_that_are_cut_give_a_warning(store: warpwave.Store, model: str) -> None:
    notes = store.create("notes", model=model)
    with pytest.warns(warpwave.CutText, match="1 of 2 texts have more than 16 tokens"):
        notes.add(texts=["a fox " * 20, "a dog"], ids=["long", "short"])
