"""Payloads, ids and texts of Arrow's columns: the C library writes the same bytes as Python's json."""
from __future__ import annotations

import ctypes
import datetime
import decimal
import random
from typing import Any, Callable, Optional

import numpy as np
import pytest

import warpwave
from warpwave import _native as c
from warpwave._arrays import as_payloads
from warpwave._arrow import ArrowTexts

pyarrow = pytest.importorskip("pyarrow", reason="SKIP: no pyarrow")
pytestmark = pytest.mark.check
COUNT = 200
RANDOM = random.Random(1)


def some(make: Callable[[], Any]) -> list[Any]:
    return [None if RANDOM.random() < 0.2 else make() for _ in range(COUNT)]


def texts(made: Any) -> list[Optional[str]]:
    return [None if one is None else one.decode() for one in (ctypes.c_char_p * made.count).from_address(made.pointers)]


def word() -> str:
    return "".join(RANDOM.choice('ab"\\\n\t\x00\x1fäß漢😀/\x7f') for _ in range(RANDOM.randrange(20)))


def day() -> datetime.date:
    return datetime.date(RANDOM.randrange(1, 10000), RANDOM.randrange(1, 13), RANDOM.randrange(1, 29))


def time(micros: tuple[int, ...]) -> datetime.time:
    return datetime.time(RANDOM.randrange(24), RANDOM.randrange(60), RANDOM.randrange(60), RANDOM.choice(micros))


def instant(unit: str) -> datetime.datetime:
    return datetime.datetime.combine(day().replace(year=RANDOM.randrange(1680, 2260)), time((0,) if unit == "s" else (0, 1000)))


def real() -> float:
    return RANDOM.choice([0.1, -0.0, 0.0, 1.0, 1e16, 1e15, 123456789.125, 1e-7, 5e-324, 1.7976931348623157e308, 1e22, RANDOM.random(), RANDOM.gauss(0, 1e6),
                          round(RANDOM.random(), 3), RANDOM.random() * 1e-5])


def columns() -> dict[str, Any]:
    a = pyarrow.array
    made = {f"int{bits}": a(some(lambda bits=bits: RANDOM.randrange(-2**(bits - 1), 2**(bits - 1))), f"int{bits}") for bits in (8, 16, 32, 64)}
    made |= {f"uint{bits}": a(some(lambda bits=bits: RANDOM.randrange(2**bits)), f"uint{bits}") for bits in (8, 16, 32, 64)}
    made |= {"f64": a(some(real)), "f32": a(some(RANDOM.random), "float32"), "f16": a(some(lambda: np.float16(RANDOM.random())), "float16")}
    made |= {"bool": a(some(lambda: RANDOM.random() < 0.5)), "text": a(some(word)), "large": a(some(word), pyarrow.large_string()), "null": pyarrow.nulls(COUNT)}
    made |= {"day": a(some(day)), "day64": a(some(day), pyarrow.date64()), "time64": a(some(lambda: time((0, 5, 999999))), pyarrow.time64("us")),
             "time32": a(some(lambda: time((0, 2000))), pyarrow.time32("ms")), 'q"uo\\te': a(some(lambda: 1)), "dictionary": a(some(word)).dictionary_encode()}
    made |= {"list": a(some(lambda: [1, None, 3][:RANDOM.randrange(4)])), "fixed": a(some(lambda: [7, None]), pyarrow.list_(pyarrow.int32(), 2)),
             "struct": a(some(lambda: {"a": word(), "b": {"c": RANDOM.choice([None, 4])}})),
             "map": a(some(lambda: [("k", 1), ("l", None)]), pyarrow.map_(pyarrow.string(), pyarrow.int32()))}
    made |= {f"{unit} {zone}": a(some(lambda unit=unit: instant(unit)), pyarrow.timestamp(unit, zone)) for unit in ("s", "ms", "us", "ns")
             for zone in (None, "UTC", "+02:30", "-11:00")}
    if hasattr(pyarrow, "string_view"):
        made["view"] = a(some(word), pyarrow.string_view())
    return made


def test_payloads_are_those_of_json() -> None:
    made = columns()
    for name, column in made.items():
        for part in (column, column.slice(37, 100), column.slice(5, 0)):
            batch = pyarrow.record_batch([part], [name])
            assert texts(ArrowTexts(batch, c.WW_ARROW_JSON)) == texts(as_payloads(batch.to_pylist(), len(part))), name
    whole = pyarrow.record_batch(list(made.values()), list(made)).slice(3, 150)
    assert texts(ArrowTexts(whole, c.WW_ARROW_JSON)) == texts(as_payloads(whole.to_pylist(), 150))


def test_decimals_are_exact_numbers() -> None:
    values = [None if one is None else decimal.Decimal(one) for one in ("-0.05", "123.40", None, "0.00", "-99999999999999999999999999999999.99")]
    assert texts(ArrowTexts(pyarrow.array(values, pyarrow.decimal128(34, 2)), c.WW_ARROW_JSON)) == [
        "-0.05", "123.40", None, "0.00", "-99999999999999999999999999999999.99"]
    assert texts(ArrowTexts(pyarrow.array([decimal.Decimal("1200")], pyarrow.decimal128(5, -2)), c.WW_ARROW_JSON)) == ["1200"]


def added(**fields: Any) -> warpwave.Collection:
    made = warpwave.Collection(2, device="cpu")
    vectors = pyarrow.array([[1.0, 2.0], [3.0, 4.0]], pyarrow.list_(pyarrow.float32(), 2))
    assert made.add_table(pyarrow.table({"vector": vectors, **fields})) == 2
    return made


def test_tables_have_ids_payloads_and_types_without_a_form_in_the_library() -> None:
    assert list(added(id=pyarrow.array([7, -8]))) == ["7", "-8"]
    assert list(added(id=pyarrow.array(["b", "a"]).dictionary_encode())) == ["b", "a"]
    berlin = pyarrow.array([datetime.datetime(2024, 7, 1), None], pyarrow.timestamp("s", "Europe/Berlin"))  # goes through Python's objects
    assert added(at=berlin)["0"].payload == {"at": "2024-07-01T02:00:00+02:00"}
    assert added(payload=pyarrow.array(['{"a": 1}', None]))["0"].payload == {"a": 1}
    assert added(payload=pyarrow.array([{"a": 1}, None]))["1"].payload is None
    with pytest.raises(ValueError, match="row 1: the column 'score' is NaN"):
        added(score=pyarrow.array([1.0, float("nan")]))
    with pytest.raises(ValueError, match="not JSON"):
        added(payload=pyarrow.array(["{", None]))
    with pytest.raises(ValueError, match="NUL"):
        added(id=pyarrow.array(["a", "b\0"]))
    with pytest.raises(TypeError, match="bytes has no form in JSON"):
        added(raw=pyarrow.array([b"a", b"b"]))
