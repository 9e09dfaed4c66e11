"""Rows as records, texts and functions that embed them, and what callers get wrong."""
from __future__ import annotations

import json
import pathlib
import sqlite3
import warnings
from typing import Any, Iterator

import numpy as np
import pytest

import warpwave

ROWS = [{"id": "a", "vector": [1, 0], "year": 1999, "lang": "en"}, {"id": "b", "vector": [0, 1], "year": 2020, "lang": None}]


@pytest.fixture
def store(tmp_path: pathlib.Path) -> Iterator[warpwave.Store]:
    with warpwave.Store(tmp_path / "s.db", device="cpu", synchronous="off") as opened:
        yield opened


def collection(rows: Any = None) -> warpwave.Collection:
    made = warpwave.Collection(2, metric="l2", device="cpu")
    if rows is not None:
        made.add(rows)
    return made


# ---- into a collection -----------------------------------------------------------------------------------------------------------


def test_a_dict_is_the_payload_of_one_row_and_refused_for_several() -> None:
    c = collection()
    c.add([[1, 2]], ids=["a"], payloads={"year": 2020})
    c.add([3, 4], ids=["b"], payloads={"year": 2021})
    c.upsert([[3, 5]], ids=["b"], payloads={"year": 2022})
    assert [row.payload for row in c.items()] == [{"year": 2020}, {"year": 2022}]
    with pytest.raises(ValueError, match="a dict, which is one payload, for 2 vectors"):
        c.add([[1, 2], [3, 4]], payloads={"year": 2020})
    with pytest.raises(TypeError, match="payloads is the str 'abc'"):
        c.add([[1, 2], [3, 4], [5, 6]], payloads="abc")
    assert len(c) == 2


def test_records_are_rows() -> None:
    c = collection(ROWS)
    assert c["a"].payload == {"year": 1999, "lang": "en"} and list(c["b"].vector) == [0, 1]
    c.upsert({"id": "b", "vector": [5, 5], "payload": [1, 2]})
    assert c["b"].payload == [1, 2]
    c.add([{"vector": [7, 7]}])
    assert len(c) == 3 and c["2"].payload is None
    for wrong, says in (([{"id": "x"}], "the field 'vector'"), ([{"id": "x", "vector": [1, 2]}, {"vector": [1, 2]}], "record 1 has no 'id'"),
                        ([{"vector": [1, 2], "payload": 1, "year": 2}], "'payload' and other fields")):
        with pytest.raises(ValueError, match=says):
            c.add(wrong)
    with pytest.raises(ValueError, match="the rows are records"):
        c.add(ROWS, ids=["x", "y"])


def test_none_in_a_vector_is_named() -> None:
    with pytest.raises(ValueError, match=r"vectors\[0\]\[1\] is None"):
        collection().add([[1, None]])


# ---- texts -----------------------------------------------------------------------------------------------------------------------


def lengths(texts: list[str]) -> list[list[float]]:
    return [[len(text), text.count("a")] for text in texts]


def test_texts_are_kept_with_vectors_that_were_made_elsewhere(store: warpwave.Store) -> None:
    docs = store.create("docs", dim=2, metric="l2")
    docs.add([[1, 0], [0, 1]], ids=["x", "y"], texts=["one", None])
    docs.upsert([[2, 2]], ids=["z"], texts="three")
    assert list(docs.search([1, 0], k=3, texts=True).texts) == ["one", None, "three"]
    assert docs.update(["x"], vectors=[[3, 3]], texts=["new"]) == 1
    assert docs.search([3, 3], k=1, texts=True)[0].text == "new"
    with pytest.raises(ValueError, match="set embed"):
        docs.add(texts=["two"])
    with pytest.raises(warpwave.InvalidArgument):
        collection().add([[1, 2]], texts=["in memory"])


def test_a_function_embeds_texts(store: warpwave.Store) -> None:
    for docs in (store.create("docs", dim=2, metric="l2", embed=lengths), collection()):
        docs.embed = lengths
        docs.add(texts=["a", "banana"], ids=["one", "six"])
        assert docs.search(text="aaaaaa", k=1)[0].id == "six" and docs.search(text=["b", "x" * 6], k=1).ids.tolist() == [["one"], ["six"]]
        docs.update("one", texts="aaaaaaaaa")
        assert list(docs["one"].vector) == [9, 9]
        docs.embed = lambda texts: [[1.0, 2.0]]
        with pytest.raises(ValueError, match=r"shape \(1, 2\) for 2 texts"):
            docs.add(texts=["a", "b"])
    assert store["docs"].search([6, 3], k=1, texts=True)[0].text == "banana"


def test_results_and_collections_become_records() -> None:
    c = collection(ROWS)
    one, two = c.search([1, 0], payloads=True, vectors=True), c.search([[1, 0], [0, 1]], k=1)
    assert one.to_list()[0] == {"id": "a", "score": 0.0, "vector": pytest.approx([1, 0]), "payload": {"year": 1999, "lang": "en"}}
    assert json.loads(json.dumps(one.to_list()))[0]["vector"] == [1, 0] and json.loads(json.dumps(c.to_list()))[0]["vector"] == [1, 0]
    assert two.to_list() == [[{"id": "a", "score": 0.0}], [{"id": "b", "score": 0.0}]]
    assert c.to_list({"year": 1999}, vectors=False) == [{"id": "a", "payload": {"year": 1999, "lang": "en"}}]


# ---- out of a collection ---------------------------------------------------------------------------------------------------------


def test_a_hit_has_its_vector_or_says_how_to_get_it() -> None:
    c = collection(ROWS)
    assert list(c.search([1, 0], vectors=True)[0].vector) == [1, 0]
    with pytest.raises(ValueError, match="vectors=True"):
        c.search([1, 0])[0].vector
    with pytest.raises(AttributeError, match="'Results' object has no attribute 'distances'"):
        c.search([1, 0]).distances  # type: ignore[attr-defined]


def test_rows_that_were_read_are_shown_without_scores() -> None:
    c = collection(ROWS)
    assert repr(c.get(["b", "a"])) == "<warpwave.Results: 2 rows: b, a>" and repr(c.get(where={"year": 1})) == "<warpwave.Results: 0 rows>"
    assert repr(c.search([1, 0], k=1)) == "<warpwave.Results of one query, 1 hits: a: 0>"
    assert repr(c.get(["b"], vectors=False)[0]) == "Hit(id='b', row=1, payload={'year': 2020, 'lang': None})" and "score" not in c.get(["b"])._repr_html_()
    assert repr(c.search([1, 0], k=1)[0]) == "Hit(id='a', score=0.0, row=0, payload=<not fetched>)"


# ---- mistakes --------------------------------------------------------------------------------------------------------------------


def test_a_mask_of_another_length_is_refused(store: warpwave.Store) -> None:
    docs = store.create("docs", dim=2)
    for c in (collection(), docs):
        c.add(ROWS)
        for rows in (1, 3):
            with pytest.raises(ValueError, match=f"the mask is for {rows} rows; the collection has 2"):
                c.search([1, 0], mask=np.ones(rows, bool))
        assert c.search([1, 0], mask=np.array([False, True])).ids.tolist() == ["b"]


def test_numbers_out_of_range_are_value_errors() -> None:
    with pytest.raises(ValueError, match="dim is 0"):
        warpwave.Collection(0)
    with pytest.raises(ValueError, match="the maximum is"):
        collection(ROWS).search([1, 0], k=500000)


def test_a_text_where_vectors_are_meant_names_the_argument() -> None:
    with pytest.raises(TypeError, match="a text is given as text="):
        collection(ROWS).search("a small animal")


def test_a_number_that_is_compared_with_a_text_gives_a_warning() -> None:
    c = collection(ROWS)
    with pytest.warns(UserWarning, match="'year' is compared with the text '5'") as seen:
        assert len(c.search([1, 0], where={"year": {"$gt": "5"}})) == 0
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        c.search([1, 0], where={"year": {"$gt": 5}, "lang": {"$gte": "b"}})


def test_an_index_takes_a_field_as_a_filter_does(store: warpwave.Store) -> None:
    store.create("docs", dim=2).add(ROWS)
    store.index("docs", "year")
    store.index("docs", "$.lang")
    assert store["docs"].count({"year": {"$gt": 2000}}) == 1


def test_renaming_keeps_the_object_open(store: warpwave.Store) -> None:
    docs = store.create("docs", dim=2)
    docs.add(ROWS)
    assert store.rename("docs", "papers") is docs and docs.name == "papers" and docs.search([1, 0], k=1)[0].id == "a"
    assert store["papers"] is docs and "docs" not in store


def test_get_or_create_opens_what_exists_without_a_dimension(store: warpwave.Store) -> None:
    store.create("docs", dim=2, metric="l2")
    assert store.get_or_create("docs").dim == 2
    with pytest.raises(ValueError, match="metric='dot'"):
        store.get_or_create("docs", metric="dot")
    with pytest.raises(TypeError, match="dim is missing"):
        store.get_or_create("other")


def test_a_backup_replaces_no_file_unless_told_to(store: warpwave.Store, tmp_path: pathlib.Path) -> None:
    store.create("docs", dim=2)
    store.backup(tmp_path / "copy.db")
    with pytest.raises(FileExistsError, match="replace=True"):
        store.backup(tmp_path / "copy.db")
    store.backup(tmp_path / "copy.db", replace=True)


def test_a_file_without_bytes_gives_a_warning(tmp_path: pathlib.Path) -> None:
    (tmp_path / "lost.db").touch()
    with pytest.warns(UserWarning, match="0 bytes"):
        warpwave.Store(tmp_path / "lost.db", device="cpu").close()


def test_damage_is_a_corrupt_file(tmp_path: pathlib.Path) -> None:
    for number, damage in enumerate((b"\xff\xfe!!", b"{\"a\":!}")):
        path = tmp_path / f"{number}.db"
        with warpwave.Store(path, device="cpu") as store:
            store.create("docs", dim=2).add([[1, 0]], ids=["some"], payloads=[{"field": "0123456789abcdef"}])
        whole = path.read_bytes()
        place = whole.index(b'{"field":"0123456789abcdef"}')
        path.write_bytes(whole[:place] + damage + whole[place + len(damage):])
        with warpwave.Store(path, device="cpu") as store, pytest.raises(warpwave.CorruptFile):
            print(store["docs"].get("some").payload)
    assert sqlite3.sqlite_version
