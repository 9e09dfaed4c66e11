"""Rows by conditions: got, counted, removed, changed and iterated; the same in memory and in a store."""
import datetime
import threading
import uuid

import numpy as np
import pytest

import warpwave

PAYLOADS = [{"year": 1990 + i, "lang": ["en", "de", "fr"][i % 3], "day": f"2024-01-{i + 1:02}"} for i in range(20)]


@pytest.fixture
def collection(filled):
    return filled(PAYLOADS)


@pytest.fixture
def stored(tmp_path):
    made = warpwave.Store(tmp_path / "s.db", device="cpu").create("docs", dim=2, metric="l2")
    made.add(np.arange(40, dtype=np.float32).reshape(20, 2), payloads=PAYLOADS)
    return made


def test_rows_are_got_counted_and_iterated_by_conditions(collection):
    english = [str(i) for i in range(0, 20, 3)]
    assert list(collection.get(where={"lang": "en"}).ids) == english
    assert collection.get(where={"lang": "en"}).payloads[1] == PAYLOADS[3]
    assert collection.count({"lang": "en"}) == 7 and collection.count() == 20
    assert [row.id for row in collection.iterate({"lang": "en"})] == english
    assert [row.id for row in collection.iterate()] == list(collection)
    assert len(collection.get(where={"lang": "xx"})) == 0 and collection.count({"lang": "xx"}) == 0


def test_pages_begin_behind_the_last_handle_whatever_was_written_between(collection):
    seen = list(collection.get(where={"lang": {"$ne": "fr"}}, limit=5).ids)
    assert seen == ["0", "1", "3", "4", "6"]
    last = int(collection.get(where={"lang": {"$ne": "fr"}}, limit=5).handles[-1])
    collection.upsert([[9.0, 9.0]], ids=["7"], payloads=[PAYLOADS[7]])  # a new row, but the handle that it had
    collection.remove(["9"])
    assert list(collection.get(where={"lang": {"$ne": "fr"}}, limit=4, after=last).ids) == ["7", "10", "12", "13"]
    assert list(collection.get(limit=3).ids) == ["0", "1", "2"] and list(collection.peek(2).ids) == ["0", "1"]
    assert len(collection.get(limit=0)) == 0


def test_rows_are_removed_by_conditions(collection):
    assert collection.remove(where={"year": {"$lt": 1995}}) == 5
    assert len(collection) == 15 and "4" not in collection and "5" in collection
    assert list(collection.search([0, 1], k=1).ids) == ["5"]
    assert collection.remove(where={"year": {"$lt": 1995}}) == 0
    del collection["5"]
    del collection[["6", "7"]]
    assert len(collection) == 12
    with pytest.raises(KeyError):
        del collection["5"]
    with pytest.raises(ValueError, match="clear"):
        collection.remove()
    collection.add([[1.0, 2.0]], ids=["4"])
    assert collection["4"].payload is None


def test_payloads_are_set_and_merged(collection):
    assert collection.update("3", payloads={"year": 1, "new": [1]}, merge=True) == 1
    assert collection["3"].payload == {"year": 1, "lang": "en", "day": "2024-01-04", "new": [1]}
    assert collection.update(where={"lang": "de"}, payloads={"seen": True, "k\u00e4y": None}, merge=True) == 7
    assert collection["1"].payload == {**PAYLOADS[1], "seen": True, "k\u00e4y": None}
    assert collection.update(where={"lang": "fr"}, payloads={"x": 1}) == 6 and collection["2"].payload == {"x": 1}
    assert collection.update(where={"x": 1}, payloads=None or {"x": None}) == 6
    collection.update(["1", "1"], payloads=[{"a": 1}, {"b": 2}], merge=True)
    assert collection["1"].payload["a"] == 1 and collection["1"].payload["b"] == 2
    collection.update("4", payloads=[1, 2])
    before = [row.payload for row in collection.iterate()]
    with pytest.raises(warpwave.InvalidArgument, match="not an object"):
        collection.update(["0", "4"], payloads=[{"z": 1}, {"z": 1}], merge=True)
    with pytest.raises(warpwave.InvalidArgument, match="object"):
        collection.update("0", payloads=[1], merge=True)
    with pytest.raises(KeyError):
        collection.update(["0", "none"], payloads=[{"z": 1}, {"z": 1}], merge=True)
    assert [row.payload for row in collection.iterate()] == before
    assert list(collection.search([0, 1], k=1).ids) == ["0"]


def test_a_payload_that_is_not_there_is_merged_into(collection):
    collection.add([[50.0, 50.0]], ids=["bare"])
    collection.update("bare", payloads={"a": {"b": 1}}, merge=True)
    assert collection["bare"].payload == {"a": {"b": 1}}
    collection.update("bare", payloads={"a": {"c": 2}}, merge=True)
    assert collection["bare"].payload == {"a": {"c": 2}}  # fields of the object itself, not of those in it


def test_a_where_in_sql_binds_lists_and_dates(stored):
    where = "payload->>'$.lang' IN :langs AND payload->>'$.day' >= :day"
    parameters = {"langs": ["en", "fr"], "day": datetime.date(2024, 1, 10)}
    expected = [str(i) for i in range(9, 20) if i % 3 != 1]
    assert list(stored.get(where=where, parameters=parameters).ids) == expected
    assert stored.count(where, parameters=parameters) == len(expected)
    assert sorted(stored.search([0, 0], k=20, where=where, parameters=parameters).ids, key=int) == expected
    assert stored.count("id IN (:ids)", parameters={"ids": ["1", "2", "x"]}) == 2
    assert stored.count("id NOT IN /* none */ ( :ids )", parameters={"ids": ["1", "2"]}) == 18
    assert stored.count("payload->>'$.year' IN :years", parameters={"years": [1990, 1991, 3]}) == 2
    assert stored.count("id IN :ids", parameters={"ids": []}) == 0
    assert stored.count("id IN :ids AND ':ids' = ':ids'", parameters={"ids": ["1"]}) == 1
    assert stored.remove(where="id IN :ids", parameters={"ids": ["1", "2"]}) == 2 and len(stored) == 18
    assert stored.update(where="id = :id", parameters={"id": "3"}, payloads={"a": 1}, merge=True) == 1 and stored["3"].payload["a"] == 1


@pytest.mark.parametrize("where, parameters, message", [
    ("id = :ids", {"ids": ["1"]}, "must stand alone after IN"),
    ("id IN (:ids, '2')", {"ids": ["1"]}, "must stand alone after IN"),
    ("id IN (:ids)", {"ids": [["1"]]}, "JSON array of numbers"),
    ("id IN ?", [["1"]], "a list needs a parameter with a name"),
])
def test_lists_elsewhere_are_refused(stored, where, parameters, message):
    with pytest.raises(warpwave.InvalidArgument, match=message):
        stored.count(where, parameters=parameters)


def test_dates_compare_in_dicts(collection):
    assert collection.count({"day": {"$gte": datetime.date(2024, 1, 10)}}) == 11
    assert collection.count({"day": {"$lt": datetime.datetime(2024, 1, 10, 12, tzinfo=datetime.timezone.utc)}}) == 10


def test_conditions_of_the_wrong_type_say_what_is_accepted(collection):
    with pytest.raises(TypeError, match="where is int; it must be a dict of conditions"):
        collection.count(5)
    with pytest.raises(ValueError, match="parameters are for a where in SQL"):
        collection.get(where={"a": 1}, parameters={"b": 1})
    with pytest.raises(ValueError, match="there are parameters, but no where"):
        collection.get(parameters={"b": 1})
    with pytest.raises(ValueError, match="limit is -1"):
        collection.get(limit=-1)
    with pytest.raises(TypeError, match="limit is 1.5; it must be an integer"):
        collection.get(limit=1.5)
    with pytest.raises(ValueError, match="give one or the other"):
        collection.get("1", limit=3)
    with pytest.raises(ValueError, match="not both"):
        collection.update("1", payloads={}, where={"a": 1})


def test_sql_over_a_collection_in_memory_is_refused():
    with pytest.raises(ValueError, match="SQL is for the collections of a Store; give a dict"):
        warpwave.Collection(2, device="cpu").count("1")


def test_uuids_are_ids(collection):
    one = uuid.uuid4()
    collection.add([[100.0, 100.0]], ids=[one])
    assert one in collection and collection[one].id == str(one)
    collection.remove(one)
    assert one not in collection


def test_threads_that_change_and_remove_by_conditions_meet_whole_rows(collection):
    failed = []

    def work(thread):
        try:
            for i in range(12):
                collection.add(np.full((3, 2), 100 + i), ids=[f"{thread}-{i}-{j}" for j in range(3)], payloads=[{"t": thread, "i": i}] * 3)
                assert collection.update(where={"t": thread, "i": i}, payloads={"seen": True}, merge=True) == 3
                assert collection.count({"t": thread, "i": i, "seen": True}) == 3
                assert i % 2 == 0 or collection.remove(where={"t": thread, "i": i}) == 3
                collection.search([0, 1])
        except BaseException as error:  # pytest sees those of the main thread alone
            failed.append(error)

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and len(collection) == 20 + 4 * 6 * 3 and collection.count({"seen": True}) == 4 * 6 * 3
