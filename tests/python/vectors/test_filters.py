"""Filters as dictionaries: the same in memory and in a store, with what Python has for values."""
import datetime

import numpy as np
import pytest

import warpwave

PAYLOADS = [{"year": 1990 + i, "lang": ["en", "de", "fr"][i % 3], "day": f"2024-01-{i + 1:02}", "tags": ["a"] if i % 2 else []} for i in range(20)]


@pytest.fixture
def collection(filled):
    return filled(PAYLOADS)


@pytest.mark.parametrize("where, admits", [
    ({"year": {"$gt": 2000}}, lambda p: p["year"] > 2000),
    ({"lang": {"$in": ["en", "fr"]}}, lambda p: p["lang"] != "de"),
    ({"lang": {"$in": ("en", "fr")}, "year": np.int64(1990)}, lambda p: p["year"] == 1990),
    ({"day": {"$lt": datetime.date(2024, 1, 5)}}, lambda p: p["day"] < "2024-01-05"),
    ({"day": {"$gte": datetime.datetime(2024, 1, 5, tzinfo=datetime.timezone.utc)}}, lambda p: p["day"] >= "2024-01-05"),
    ({"tags": {"$contains": "a"}}, lambda p: bool(p["tags"])),
    ({"$not": {"$or": [{"lang": "en"}, {"year": {"$lt": 1995}}]}}, lambda p: p["lang"] != "en" and p["year"] >= 1995),
    ({"lang": "n\u00e9"}, lambda p: False),
])
def test_a_dict_admits_what_it_says(collection, where, admits):
    found = collection.search([0, 0], k=20, where=where)
    assert sorted(found.ids, key=int) == [str(i) for i, payload in enumerate(PAYLOADS) if admits(payload)]


def test_wrong_filters_say_what_is_wrong(collection):
    with pytest.raises(warpwave.Error, match=r"year\.\$above: unknown operator"):
        collection.search([0, 0], where={"year": {"$above": 1}})
    with pytest.raises(TypeError, match="where is int; it must be a dict of conditions"):
        collection.search([0, 0], where=5)
    with pytest.raises(TypeError, match="object"):
        collection.search([0, 0], where={"year": object()})
    with pytest.raises(ValueError, match="parameters are for a where in SQL"):
        collection.search([0, 0], where={"year": 1}, parameters={"a": 1})
    with pytest.raises(ValueError, match="NUL"):
        collection.search([0, 0], where={"lang": "a\0b"})
