"""Tests of the kernels of tensors: calls of the library on the executed device and on the CPU, whose results must have the same bits. A test is for
all kernels that TESTS lists it for, and must launch each of them."""
import contextlib
import ctypes

import numpy as np

import quant_cases
from machine import CODES, TYPES, api, both, hooks

f64 = ctypes.c_double
i64 = ctypes.c_int64
FLOATS_32, INTEGERS = ("f32", "f16", "bf16", "f8e4m3"), ("i64", "u8", "u32", "i32", "i16")
UNARY = [name for name in vars(api)["constants"] if name in (
    "WW_ABS WW_NEG WW_RECIP WW_SQR WW_SQRT WW_RSQRT WW_RELU WW_FLOOR WW_CEIL WW_ROUND WW_SIGN WW_EXP WW_EXPM1 WW_LOG WW_LOG1P WW_SIN WW_COS WW_TANH "
    "WW_ERF WW_SIGMOID WW_SILU WW_GELU WW_GELU_ERF").split()]
BINARY = "WW_ADD WW_SUB WW_MUL WW_DIV WW_MAXIMUM WW_MINIMUM WW_REM WW_POW WW_ATAN2".split()
COMPARE = "WW_EQ WW_NE WW_LT WW_LE WW_GT WW_GE".split()


def numbers(seed, count, type_):
    """Values of a type. For floats: of very different magnitudes, including special values, but never denormal, because the emulator's divisions are
    wrong there. For integers: all of the range."""
    rng = np.random.default_rng(seed)
    if type_ in INTEGERS + ("i8",):
        info = np.iinfo(TYPES[type_])
        values = rng.integers(info.min, info.max, count, TYPES[type_], endpoint=True)
        small = rng.random(count) < 0.6
        values[small] = rng.integers(max(info.min, -9), 10, small.sum())
        values[:3] = (info.min, info.max, 0)[:len(values[:3])]
        return values
    values = rng.standard_normal(count) * 2.0 ** rng.integers(-12, 8, count)
    special = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.5, np.inf, -np.inf, np.nan, 88.0, -104.0, 1e30, 40.0]
    values[5:5 + len(special)] = special[:len(values[5:5 + len(special)])]
    if type_ in ("f32", "f64"):
        return values.astype(TYPES[type_])
    if type_ == "f16":
        return np.clip(values, -60000, 60000).astype(np.float16)
    bits = values.astype(np.float32).view(np.uint32)
    if type_ == "bf16":
        return (bits >> 16).astype(np.uint16)
    codes = rng.integers(0, 256, count).astype(np.uint8)  # f8: all there are
    return codes


def plain(seed, shape, type_):
    """Values for sums and products, none of them special."""
    rng = np.random.default_rng(seed)
    if type_ in INTEGERS + ("i8",):
        return numbers(seed, int(np.prod(shape)), type_).reshape(shape)
    if type_ == "f8e4m3":  # all that are numbers
        return (rng.integers(0, 127, shape) + 128 * rng.integers(0, 2, shape)).astype(np.uint8)
    values = rng.standard_normal(shape)
    if type_ == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return values.astype(TYPES[type_])


def both_ways(on, values, type_):
    """A dense tensor, and one that a stride of 3 selects from wider rows."""
    yield on.tensor(values, type_)
    if values.size >= 60:
        yield on.tensor(values, type_, shape=(values.size // 30, 5), strides=(30, 3), offset=2)


def laid_out(on, values, type_):
    """Tensors of at least 17,003 elements that GPUs process in units, and one that they process element by element."""
    for shape, strides in (((264, 64), (64, 1)), ((264, 64), (0, 1)), ((264, 64), (1, 0)), ((17000,), (0,)), ((130, 64), (128, 1)), ((2, 66, 128), (128, 128, 1)),
                           ((7, 3, 9), (1, 100, 11)), ((3, 2, 2, 5), (40, 0, 1, 7))):
        yield on.tensor(values, type_, shape=shape, strides=strides)


@contextlib.contextmanager
def wide_indices(on):
    """Within this, indices are calculated with 64 bits, as for more than 2^31 elements."""
    on.c.codeobjects_indices_64(on.handle, True)
    try:
        yield
    finally:
        on.c.codeobjects_indices_64(on.handle, False)


def same_everywhere(bench, what, make):
    """make(on) must have the same bits with 32-bit and 64-bit indices."""
    def wide(on):
        with wide_indices(on):
            return make(on)
    bench.same(what, make)
    bench.same(what + ", places of 64 bits", wide)


def apart(on, type_, seed=None):
    """A tensor of 4 x 3 x 5 elements that are not contiguous: zeros to write to, or numbers."""
    values = np.zeros(113, TYPES[type_]) if seed is None else numbers(seed, 113, type_)
    return on.tensor(values, type_, shape=(4, 3, 5), strides=(1, 40, 7))


def into_strides(bench, types, calls):
    """Results that are not contiguous; calls(on, type) are functions with their arguments, except for the result's type, which is the last."""
    for type_ in types if bench.first else ():
        same_everywhere(bench, f"{type_} into strides", lambda on: [on.into(apart(on, to), *call) for *call, to in calls(on, type_)])


# ---- element by element --------------------------------------------------------------------------------------------------------

def unary(types, names, more):
    def test(bench):
        for t, type_ in enumerate(types):
            values = numbers(t + 1, 300 if t == 0 else 61, type_)
            for name in names if t == 0 else names[t::5]:
                bench.same(f"{name} of {type_}", lambda on, v=values, n=name: [
                    on.call("ww_tensor_unary", getattr(api, n), x) for x in both_ways(on, v, type_)])
            bench.same(f"affine of {type_}", lambda on, v=values: on.call("ww_tensor_affine", on.tensor(v, type_), f64(2.5), f64(-1.25)))
            if more and t == 0:
                bench.same(f"powf of {type_}", lambda on, v=values: on.call("ww_tensor_powf", on.tensor(v, type_), f64(1.7)))
                bench.same(f"elu of {type_}", lambda on, v=values: on.call("ww_tensor_elu", on.tensor(v, type_), f64(0.7)))
            if bench.first:
                many, name = numbers(t + 1, 17003, type_), names[t % len(names)]
                same_everywhere(bench, f"{name} of {type_} in every layout", lambda on: [
                    on.call("ww_tensor_unary", getattr(api, name), x) for x in laid_out(on, many, type_)])
                for other in names:  # a row again and again: whole tiles, and no kernel for dense ones
                    bench.same(f"{other} of rows of {type_}", lambda on: on.call(
                        "ww_tensor_unary", getattr(api, other), on.tensor(many, type_, shape=(264, 64), strides=(0, 1))))
                bench.same(f"affine of rows of {type_}", lambda on: on.call(
                    "ww_tensor_affine", on.tensor(many, type_, shape=(264, 64), strides=(0, 1)), f64(2.5), f64(-1.25)))
                if more and type_ in ("f32", "f64"):  # far angles in every place of a unit
                    far = (plain(t, 17003, type_) * 1e30).astype(TYPES[type_])
                    same_everywhere(bench, f"far angles of {type_}", lambda on: [
                        on.call("ww_tensor_unary", getattr(api, n), x) for n in ("WW_SIN", "WW_COS") for x in laid_out(on, far, type_)])
                into_strides(bench, (type_,), lambda on, t: [("ww_tensor_unary", getattr(api, names[0]), apart(on, t, 1), t)])
                if more:
                    bench.same(f"powf and elu of rows of {type_}", lambda on: [on.call(
                        function, on.tensor(many, type_, shape=(264, 64), strides=(0, 1)), f64(0.7)) for function in ("ww_tensor_powf", "ww_tensor_elu")])
    return test


def dense(bench):
    """Functions of f32 for whole tiles, and for the rest."""
    values = numbers(1, 9001, "f32")
    for name in UNARY:
        bench.same(f"{name} of f32", lambda on: on.call("ww_tensor_unary", getattr(api, name), on.tensor(values, "f32")))
    bench.same("powf of f32", lambda on: on.call("ww_tensor_powf", on.tensor(values, "f32"), f64(1.7)))
    if bench.first:
        bench.same("elu of f32", lambda on: on.call("ww_tensor_elu", on.tensor(values, "f32"), f64(0.7)))
        far = (plain(2, 9001, "f32") * 1e30).astype(np.float32)
        bench.same("far angles of f32", lambda on: [on.call("ww_tensor_unary", getattr(api, name), on.tensor(far, "f32")) for name in ("WW_SIN", "WW_COS")])


def binary(types):
    def test(bench):
        for t, type_ in enumerate(types):
            count = 300 if t == 0 else 61
            x, y = numbers(t + 1, count, type_), np.roll(numbers(t + 9, count, type_), 3)
            y[::7] = x[::7]
            for name in BINARY if t == 0 else BINARY[t::4]:
                bench.same(f"{name} of {type_}", lambda on, n=name: on.call("ww_tensor_binary", getattr(api, n), on.tensor(x, type_), on.tensor(y, type_)))
            for name in COMPARE[t::2]:
                bench.same(f"{name} of {type_}", lambda on, n=name: on.call(
                    "ww_tensor_cmp", getattr(api, n), on.tensor(x, type_, shape=(12, 5), strides=(5, 1)),
                    on.tensor(y, type_, shape=(12, 5), strides=(0, 2))))
            if bench.first:
                x, y = numbers(t + 1, 17003, type_), np.roll(numbers(t + 9, 17003, type_), 3)
                y[::7] = x[::7]
                into_strides(bench, (type_,), lambda on, t: [("ww_tensor_binary", api.WW_MUL, apart(on, t, 1), apart(on, t, 2), t)])
                for name in ("WW_DIV", "WW_LE"):
                    function, op = "ww_tensor_cmp" if name in COMPARE else "ww_tensor_binary", getattr(api, name)
                    same_everywhere(bench, f"{name} of {type_} in every layout", lambda on: [
                        on.call(function, op, a, b) for a, b in zip(laid_out(on, x, type_), laid_out(on, y, type_))])
                if type_ in ("f32", "f64"):
                    large, small = (np.where(np.isfinite(v), v, 3).astype(TYPES[type_]) * scale for v, scale in ((x, TYPES[type_](2.0 ** 20)), (y, TYPES[type_](2.0 ** -20))))
                    same_everywhere(bench, f"remainders of {type_} far apart", lambda on: [
                        on.call("ww_tensor_binary", api.WW_REM, a, b) for a, b in zip(laid_out(on, large, type_), laid_out(on, small, type_))])
                for name in BINARY + COMPARE:
                    function, op = "ww_tensor_cmp" if name in COMPARE else "ww_tensor_binary", getattr(api, name)
                    bench.same(f"{name} of rows of {type_}", lambda on: on.call(
                        function, op, on.tensor(x, type_, shape=(264, 64), strides=(64, 1)), on.tensor(y, type_, shape=(264, 64), strides=(1, 0))))
    return test


SHORT = ("WW_RECIP", "WW_SQRT", "WW_RSQRT", "WW_EXP", "WW_TANH", "WW_SIGMOID", "WW_SILU", "WW_GELU", "WW_LOG")


def simple(bench):
    """Whole tiles of operations that have their own code, and the rest."""
    for type_ in ("f32", "f16", "bf16"):
        x, y = numbers(1, 17003, type_), np.roll(numbers(2, 17003, type_), 3)
        for name in ("WW_ABS", "WW_NEG", "WW_SQR", "WW_RELU") + (() if type_ == "f32" else SHORT):
            bench.same(f"{name} of {type_}", lambda on: on.call("ww_tensor_unary", getattr(api, name), on.tensor(x, type_)))
        for name in ("WW_ADD", "WW_SUB", "WW_MUL", "WW_MAXIMUM", "WW_MINIMUM", "WW_POW", "WW_ATAN2"):
            bench.same(f"{name} of {type_}", lambda on: on.call("ww_tensor_binary", getattr(api, name), on.tensor(x, type_), on.tensor(y, type_)))
        for name in COMPARE:
            bench.same(f"{name} of {type_}", lambda on: on.call("ww_tensor_cmp", getattr(api, name), on.tensor(x, type_), on.tensor(y, type_)))
        bench.same(f"affine of {type_}", lambda on: on.call("ww_tensor_affine", on.tensor(x, type_), f64(2.5), f64(-1.25)))
    # rows that one row is added to or compared with
    for type_, rows in (("f32", 66), ("f16", 131), ("bf16", 131)):
        x, y = plain(1, (rows, 64), type_), plain(2, 64, type_)
        both = lambda on: (on.tensor(x, type_), on.tensor(y, type_, shape=(rows, 64), strides=(0, 1)))
        bench.same(f"neg of {type_}", lambda on: on.call("ww_tensor_unary", api.WW_NEG, on.tensor(x, type_)))
        bench.same(f"add to {type_}", lambda on: on.call("ww_tensor_binary", api.WW_ADD, *both(on)))
        bench.same(f"compare {type_}", lambda on: on.call("ww_tensor_cmp", api.WW_LT, *both(on)))
        if bench.first:
            x, y = numbers(3, 17003, type_), np.roll(numbers(4, 17003, type_), 3)
            for name in ("WW_ABS", "WW_NEG", "WW_SQR", "WW_RELU"):
                same_everywhere(bench, f"{name} of {type_} in every layout", lambda on: [
                    on.call("ww_tensor_unary", getattr(api, name), a) for a in laid_out(on, x, type_)])
            for name in ["WW_ADD", "WW_SUB", "WW_MUL", "WW_MAXIMUM", "WW_MINIMUM"] + COMPARE:
                function = "ww_tensor_cmp" if name in COMPARE else "ww_tensor_binary"
                same_everywhere(bench, f"{name} of {type_} in every layout", lambda on: [
                    on.call(function, getattr(api, name), a, b) for a, b in zip(laid_out(on, x, type_), laid_out(on, y, type_))])


def cast(types):
    def test(bench):
        for t, type_ in enumerate(types):
            values = numbers(t + 3, 131, type_)
            for to in CODES if t == 0 else list(CODES)[t::4]:
                bench.same(f"{type_} to {to}", lambda on, c=CODES[to]: [on.call("ww_tensor_cast", x, c) for x in both_ways(on, values, type_)])
            if bench.first:
                many = numbers(t + 3, 17003, type_)
                into_strides(bench, (type_,), lambda on, t: [("ww_tensor_cast", apart(on, t, 1), CODES[to], to) for to in CODES])
                for to in CODES:
                    same_everywhere(bench, f"{type_} to {to} in every layout", lambda on: [
                        on.call("ww_tensor_cast", x, CODES[to]) for x in laid_out(on, many, type_)])
    return test


def tensor_copy(bench):
    for type_ in ("u8", "f16", "f32", "f64"):
        values = plain(1, 960, type_)
        bench.same(f"a transposed {type_}", lambda on: on.call("ww_tensor_contiguous", on.tensor(values, type_, shape=(7, 3, 9), strides=(1, 100, 11))))
        bench.same(f"rows of {type_}", lambda on: on.call("ww_tensor_contiguous", on.tensor(values, type_, shape=(5, 32), strides=(64, 1), offset=64)))

        def between(on):
            to = on.tensor(np.zeros_like(values), type_, shape=(5, 31), strides=(1, 7))
            on.ok(on.c.ww_tensor_copy_strided(ctypes.byref(on.tensor(values, type_, shape=(5, 31), strides=(40, 1))), ctypes.byref(to)))
            return on.storage_of(to)
        bench.same(f"{type_} into strides", between)
        if bench.first:
            many = plain(4, 17003, type_)
            same_everywhere(bench, f"{type_} in every layout", lambda on: [on.call("ww_tensor_contiguous", x) for x in laid_out(on, many, type_)])
            same_everywhere(bench, f"{type_} into strides", between)
            lines = [dict(shape=(3, 2, 32), strides=strides, offset=0) for strides in ((128, 48, 1), (64, 192, 1))]

            def units(on):
                to = on.tensor(np.zeros_like(values), type_, **lines[1])
                on.ok(on.c.ww_tensor_copy_strided(ctypes.byref(on.tensor(values, type_, **lines[0])), ctypes.byref(to)))
                return on.storage_of(to)
            same_everywhere(bench, f"lines of {type_} into lines", units)


def tensor_set(bench):
    for type_ in ("u8", "bf16", "i32", "i64"):
        def make(on):
            to = on.tensor(plain(2, 700, type_), type_, shape=(9, 30), strides=(65, 2), offset=3)
            value = np.array([77], TYPES[type_])
            on.ok(on.c.ww_tensor_const_set(ctypes.byref(to), value.ctypes.data_as(ctypes.c_void_p)))
            return on.storage_of(to)
        same_everywhere(bench, f"set {type_}", make)


def tensor_where(bench):
    for condition, type_ in (("u8", "f32"), ("u32", "f64"), ("i64", "u8"), ("u8", "f16"), *((("u8", "i8"), ("u32", "i16"), ("i64", "f32")) if bench.first else ())):
        chosen = np.random.default_rng(5).integers(0, 2, 311)
        x, y = plain(6, 311, type_), plain(7, 311, type_)
        bench.same(f"where of {type_}", lambda on: [
            on.call("ww_tensor_where", on.tensor(chosen, condition), on.tensor(x, type_), on.tensor(y, type_)),
            on.call("ww_tensor_where", on.tensor(chosen, condition, shape=(10, 9), strides=(9, 1)), on.tensor(x, type_, shape=(10, 9), strides=(30, 1)),
                    on.tensor(y, type_, shape=(10, 9), strides=(0, 1)))])
        if bench.first:
            chosen = np.random.default_rng(8).integers(0, 2, 17003)
            into_strides(bench, (type_,), lambda on, t: [("ww_tensor_where", on.tensor(chosen[:60], condition, shape=(4, 3, 5)), apart(on, t, 1), apart(on, t, 2), t)])
            x, y = plain(6, 17003, type_), plain(7, 17003, type_)
            same_everywhere(bench, f"where of {type_} in every layout", lambda on: [
                on.call("ww_tensor_where", *each) for each in zip(laid_out(on, chosen, condition), laid_out(on, x, type_), laid_out(on, y, type_))])


def random(types):
    def test(bench):
        for type_ in types:
            def make(on):
                on.ok(on.c.ww_device_seed(on.handle, ctypes.c_uint64(12345)))
                return [on.call(f"ww_tensor_{how}", on.handle, CODES[type_], 1, np.array([count], np.int64), f64(-1.5), f64(2.0))
                        for how in ("uniform", "normal") for count in ((1, 517, 5000, 518, 519) if bench.first else (1, 517))]
            bench.same(f"random {type_}", make)
    return test


# ---- by ids --------------------------------------------------------------------------------------------------------------------

def index(bench):
    more = [(type_, ids_type) for type_ in ("u8", "i16", "bf16", "f8e4m3", "u32", "i32", "f64") for ids_type in ("u32", "u8", "i64")] if bench.first else []
    for n, (type_, ids_type) in enumerate([("f32", "u32"), ("f16", "i64"), ("i64", "u8")] + more):
        x = plain(n, (9, 24), type_)
        rng = np.random.default_rng(n)
        ids = rng.integers(0, 9, (13, 24)).astype(TYPES[ids_type])
        ids[2, 3] = np.iinfo(TYPES[ids_type]).max  # skipped
        some = ids[:, 0].copy()
        src = plain(n + 4, (13, 24), type_)
        same_everywhere(bench, f"gather {type_}", lambda on: on.call("ww_tensor_gather", on.tensor(x, type_), on.tensor(ids, ids_type), 0))
        same_everywhere(bench, f"select {type_}", lambda on: [
            on.call("ww_tensor_index_select", on.tensor(x, type_), on.tensor(some, ids_type), 0),
            on.call("ww_tensor_index_select", on.tensor(x, type_, shape=(4, 9), strides=(30, 2)), on.tensor(some, ids_type), 1)])
        for function in ("ww_tensor_scatter", "ww_tensor_scatter_add", "ww_tensor_index_add"):
            def make(on):
                to = on.tensor(x, type_)
                places = on.tensor(some if function == "ww_tensor_index_add" else ids, ids_type)
                on.ok(getattr(on.c, function)(ctypes.byref(to), ctypes.byref(places), ctypes.byref(on.tensor(src, type_)), 0))
                return on.storage_of(to)
            same_everywhere(bench, f"{function} of {type_}", make)
        if bench.first:  # lines that lie apart, in all three
            cube, more, places = plain(n + 7, (4, 9, 6), type_), plain(n + 8, (4, 10, 12), type_), rng.integers(0, 9, (4, 10, 12)).astype(TYPES[ids_type])
            same_everywhere(bench, f"gather {type_} between others", lambda on: on.call(
                "ww_tensor_gather", on.tensor(cube, type_), on.tensor(places, ids_type, shape=(4, 5, 6), strides=(120, 24, 2)), 1))
            for function in ("ww_tensor_scatter", "ww_tensor_scatter_add"):
                def between(on):
                    to = on.tensor(cube, type_)
                    on.ok(getattr(on.c, function)(ctypes.byref(to), ctypes.byref(on.tensor(places, ids_type, shape=(4, 5, 6), strides=(120, 24, 2))),
                                                  ctypes.byref(on.tensor(more, type_, shape=(4, 5, 6), strides=(120, 12, 1))), 1))
                    return on.storage_of(to)
                same_everywhere(bench, f"{function} of {type_} between others", between)
            same_everywhere(bench, f"one row of {type_} again and again", lambda on: on.call(
                "ww_tensor_index_select", on.tensor(plain(n, (50, 64), type_), type_), on.tensor(some, ids_type, shape=(30,), strides=(0,)), 0))
        wrong = ids.copy()
        wrong[7, 5] = 9
        if bench.first:  # whole units, four of a thread, by ids that repeat
            table, rows = plain(n, (50, 64), type_), np.arange(1300) % 50
            same_everywhere(bench, f"rows of {type_}", lambda on: on.call("ww_tensor_index_select", on.tensor(table, type_), on.tensor(rows, ids_type), 0))
            wide = np.repeat(rows, 2).astype(TYPES[ids_type])  # ids that lie apart
            same_everywhere(bench, f"rows of {type_} by ids that lie apart", lambda on: [
                on.call("ww_tensor_index_select", on.tensor(table, type_), on.tensor(wide, ids_type, shape=(1300,), strides=(2,)), 0),
                on.call("ww_tensor_gather", on.tensor(table, type_), on.tensor(wide, ids_type, shape=(13, 20), strides=(100, 2)), 0)])
        bench.same(f"an id that is not there, {type_}", lambda on: on.call("ww_tensor_gather", on.tensor(x, type_), on.tensor(wrong, ids_type), 0))


# ---- reductions and rows -------------------------------------------------------------------------------------------------------

def reduce_by(types, shapes, floats):
    """shapes: of the tensor, its strides or None, the dimensions to reduce."""
    names = "SUM MIN MAX PROD".split() + (["MEAN"] if floats else [])

    def test(bench):
        for t, type_ in enumerate(types):
            for s, (shape, strides, dims) in enumerate(shapes + (LONG if bench.first and t == 0 and shapes in (ROWS, UNITS) else [])):
                values = plain(s, int(np.prod(shape)) if strides is None else 1 + sum((n - 1) * d for n, d in zip(shape, strides)), type_)
                for name in (names if bench.first or (t == 0 and s < 2) else names[(s + t) % len(names)::len(names)]):
                    bench.same(f"{name} of {type_} {shape} along {dims}", lambda on: on.call(
                        "ww_tensor_reduce", getattr(api, "WW_REDUCE_" + name), on.tensor(values, type_, shape=shape, strides=strides),
                        np.array(dims, np.int32), len(dims)))
    return test


ROWS = [((3, 65), None, (1,)), ((2, 5000), None, (1,)), ((4, 6, 7), (100, 1, 13), (0, 2)), ((4200,), None, (0,)), ((3, 4, 2, 5), (1, 40, 3, 7), (1, 3))]
LONG = [((2, 16785408), (0, 1), (1,)), ((17000000,), None, (0,))]  # chunks enough for loads ahead in the rounds after the first, and for a third round
UNITS = [((3, 640), None, (1,)), ((4224,), None, (0,)), ((2, 4160), None, (1,)), ((2, 3, 128), (1024, 256, 1), (2,))]
COLUMNS = [((65, 9), None, (0,)), ((5000, 9), None, (0,)), ((3, 70, 11), None, (1,))]
CHUNKS = [((300, 16), None, (0,)), ((4100, 8), None, (0,)), ((2, 700, 72), None, (1,))]


def reduce_arg(types):
    def test(bench):
        for t, type_ in enumerate(types):
            more = [((2, 3000), 1), ((40, 128), 1), ((1, 70000), 1), ((3, 50, 7), 1), ((2, 5000), 1), ((300, 40), 0)] if bench.first else []
            for shape, dim in [((3, 65), 1), ((200, 5), 0), ((1, 17000), 1)] + more:
                values = numbers(t, int(np.prod(shape)), type_).reshape(shape)
                if type_ in FLOATS_32[:3] + ("f64",) and shape[0] == 3:
                    values = plain(t, shape, type_)
                for name in ("ARGMIN", "ARGMAX"):
                    bench.same(f"{name} of {type_} {shape}", lambda on: on.call(
                        "ww_tensor_reduce", getattr(api, "WW_REDUCE_" + name), on.tensor(values, type_), np.array([dim], np.int32), 1))
    return test


def rows_of(types):
    def test(bench):
        for t, type_ in enumerate(types):
            short, long = [(2, 68), (2, 128), (1, 1280), (160, 64)], [(3, 65), (3, 192), (1, 1500), (2, 2048), (1, 4352), (1, 9000)]
            for shape in short + long + [(1, 515), (2, 4096), (3, 1027), (1, 20), (70, 64), (35, 128), (17, 256), (9, 384), (3, 512), (2, 1024), (1, 1984), (2, 1100), (2, 2500), (2, 3900)] if bench.first else short if t else long:
                x, weight, bias = plain(1, shape, type_), plain(2, shape[-1:], type_), plain(3, shape[-1:], type_)
                bench.same(f"softmax of {type_} {shape}", lambda on: on.call("ww_tensor_softmax", on.tensor(x, type_), 1))
                bench.same(f"layer_norm of {type_} {shape}", lambda on: on.call(
                    "ww_tensor_layer_norm", on.tensor(x, type_), on.tensor(weight, type_), on.tensor(bias, type_), f64(1e-5)))
                bench.same(f"rms_norm of {type_} {shape}", lambda on: on.call(
                    "ww_tensor_rms_norm", on.tensor(x, type_), on.tensor(weight, type_), f64(1e-5)))
            if t == 0 or bench.first:
                bench.same(f"softmax of columns of {type_}", lambda on: on.call("ww_tensor_softmax", on.tensor(plain(4, (33, 5), type_), type_), 0))
    return test


def rope(types):
    def test(bench):
        for type_ in types:
            x, cosines, sines = plain(1, (2, 3, 5, 16), type_), plain(2, (5, 8), type_), plain(3, (5, 8), type_)
            for interleaved in (False, True):
                bench.same(f"rope of {type_}", lambda on: on.call("ww_tensor_rope", on.tensor(x, type_), on.tensor(cosines, type_), on.tensor(sines, type_),
                                                                     ctypes.c_bool(interleaved)))
            if bench.first:  # angles of each row, in one dimension or several, that lie apart
                angles = [plain(seed, (2, 3, 5, 24), type_) for seed in (4, 5)]
                bench.same(f"rope of {type_} by angles apart", lambda on: [
                    on.call("ww_tensor_rope", on.tensor(x, type_), *(on.tensor(a, type_, shape=(2, 3, 5, 8), strides=(360, 120, 24, 3)) for a in angles), ctypes.c_bool(True)),
                    on.call("ww_tensor_rope", on.tensor(x, type_, shape=(30, 16)), *(on.tensor(a, type_, shape=(30, 8), strides=(24, 2)) for a in angles), ctypes.c_bool(False))])
    return test


def attention(*types):
    """A step of decoding and a prompt, over one chunk and over two, for each type of cache. In the first order also heads of other sizes, several of them
    in a block or, with compute units enough, one; keys that end anywhere, and queries that see none."""
    def test(bench):
        shapes = [(32, 1, 20, 5, 1, False, 0, 0), (32, 1, 270, 2, 1, True, 260, 0), (32, 3, 20, 2, 1, True, 0, 0), (32, 2, 258, 2, 1, True, 0, 0)]
        if bench.first:
            shapes += [(128, 1, 300, 9, 1, False, 0, 0), (96, 1, 515, 16, 2, False, 0, 0), (64, 1, 256, 2, 1, False, 0, 64), (128, 1, 300, 1, 1, False, 0, 64), (160, 1, 40, 8, 1, False, 0, 0),
                       (64, 1, 600, 3, 3, True, 100, 64), (128, 5, 300, 4, 2, True, 0, 0), (256, 70, 330, 2, 1, True, 300, 0), (64, 9, 800, 3, 1, False, 0, 64),
                       (256, 1, 300, 2, 1, False, 0, 0), (256, 1, 290, 8, 1, False, 0, 0), (32, 1, 1700, 1, 1, False, 0, 0), (32, 2, 1700, 1, 1, False, 0, 0), (64, 1, 20, 2, 1, True, 5, 0, 900)]
        for n, (type_, size, queries, keys, heads, kv_heads, causal, window, units, *first) in enumerate((t, *shape) for t in types for shape in shapes):
            q, k, v = plain(n, (queries, heads // kv_heads * kv_heads, size), "f32"), plain(n + 50, (keys, kv_heads, size), "f32"), plain(n + 90, (keys, kv_heads, size), "f32")
            how = api.ww_attention(struct_size=ctypes.sizeof(api.ww_attention), type=type_, causal=causal, window=window, first_position=(*first, -1)[0])

            def make(on):
                with on.units(units):
                    return on.call("ww_tensor_attention", on.tensor(q, "f32"), on.tensor(k, "f32"), on.tensor(v, "f32"), how)
            bench.same(f"attention of {queries} over {keys}, type {type_}", make)
    return test


def session(*types):
    """Steps of a model's session: one token, whose key and value the launch with its query puts into the cache, and several; with a rope of each kind."""
    def test(bench):
        shapes = [(1, 1, 64, 2, 1, 1, 32), (270, 1, 64, 6, 2, 2, 24)]
        if bench.first:
            shapes += [(258, 1, 160, 5, 1, 1, 80), (30, 1, 128, 9, 1, 0, 0), (40, 7, 64, 4, 2, 1, 24), (262, 6, 32, 2, 2, 2, 16), (9, 9, 96, 3, 1, 0, 0)]
        for n, (type_, keys, tokens, size, heads, kv_heads, rope, half) in enumerate((t, *shape) for t in types for shape in shapes):
            q, k, v = (plain(n + seed, shape, "f32") for seed, shape in enumerate(((tokens, heads, size), (keys, kv_heads, size), (keys, kv_heads, size))))
            angles = np.outer(np.arange(keys), 1 / np.arange(1, half + 1)).astype(np.float32) if half else np.zeros((keys, 1), np.float32)
            cosines, sines = np.cos(angles), np.sin(angles)

            def make(on):
                layer = 2 * kv_heads * 256 * size
                cache = np.empty(-(-keys // 256) * {api.WW_ATTENTION_F16: 2 * layer, api.WW_ATTENTION_F32: 4 * layer, api.WW_ATTENTION_Q8_0: layer + layer // 16}[type_], np.uint8)
                out = np.empty_like(q)
                step = hooks.codeobjects_step(cache_bytes=cache.nbytes, keys=keys, tokens=tokens, type=type_, heads=heads, kv_heads=kv_heads, head_size=size, rope=rope, half=half)
                for name, array in (("q", q), ("k", k), ("v", v), ("cosines", cosines), ("sines", sines), ("out", out), ("cache", cache)):
                    setattr(step, name, array.ctypes.data)
                on.ok(on.c.codeobjects_attend(on.handle, ctypes.byref(step)))
                return [out, cache]
            bench.same(f"a session's {tokens} tokens of {keys}, type {type_}, rope {rope}", make)
    return test


def sort(bench):
    more = [(type_, shape) for type_ in ("f32", "f16", "bf16", "f8e4m3", "u8", "i16", "u32", "i32", "i64", "f64") for shape in ((2, 4096), (1, 2047), (1, 5000), (5, 512), (21, 128), (150, 16), (9, 99))]
    for n, (type_, shape) in enumerate((("f32", (3, 5)), ("f32", (17, 64)), ("f32", (2, 70)), ("f32", (19, 128)), ("f16", (1, 4500)), ("i64", (2, 33)), ("bf16", (2, 700)), ("u8", (1, 300)), ("f64", (1, 2500)),
                                        *(more if bench.first else ()))):
        values = numbers(n, int(np.prod(shape)), type_).reshape(shape)
        for descending in (False, True) if n < 4 else (n % 2 == 0,):
            bench.same(f"sort {type_} {shape}", lambda on: on.call("ww_tensor_sort", on.tensor(values, type_), ctypes.c_bool(descending), outs=2))
        if bench.first:
            for k in (1, 100, 200):
                bench.same(f"top_{k} {type_} {shape}", lambda on: on.call("ww_tensor_top_k", on.tensor(values, type_), i64(min(shape[1], k)), ctypes.c_bool(k == 100), outs=2))
        bench.same(f"top_k {type_} {shape}", lambda on: on.call("ww_tensor_top_k", on.tensor(values, type_), i64(min(shape[1], 7)), ctypes.c_bool(n % 2 == 0), outs=2))


# ---- products ------------------------------------------------------------------------------------------------------------------

def product(types, shapes):
    """shapes: batch, m, n, k, whether a and b are transposed; in the first order elements also have gaps, and k is more than two chunks."""
    def test(bench):
        for t, type_ in enumerate(types):
            more = [(*shapes[0][:3], 1100, *shapes[0][4:], 2), (*shapes[-1], 3)] if bench.first else []
            for s, (batch, m, n, k, a_turned, b_turned, step) in enumerate([(*shape, 1) for shape in (shapes if t == 0 or bench.first else shapes[t % len(shapes):][:1])] + more):
                a, b = plain(s, (batch, m, k * step), type_), plain(s + 5, (batch, k, n * step), type_)
                if type_ == "i8":
                    a, b = (np.random.default_rng(s + i).integers(-128, 128, v.shape).astype(np.int8) for i, v in enumerate((a, b)))

                def make(on):
                    x = on.tensor(a, type_, shape=(batch, m, k), strides=[step * d for d in ((m * k, 1, m) if a_turned else (m * k, k, 1))])
                    y = on.tensor(b, type_, shape=(batch, k, n), strides=[step * d for d in ((k * n, 1, k) if b_turned else (k * n, n, 1))])
                    return on.call("ww_tensor_matmul", x, y, api.WW_MATH_CANONICAL)
                bench.same(f"{type_} {batch} of {m} x {k} by {n}", make)
    return test


SMALL = [(1, 5, 7, 3, False, False), (2, 65, 33, 20, True, False), (1, 17, 66, 600, False, True), (3, 64, 64, 16, False, False), (1, 1, 70, 9, True, True)]
LARGE = [(1, 130, 131, 9, False, False), (1, 129, 200, 20, True, True), (2, 132, 136, 516, False, False)]


FAST_MORE = ((1, 130, 133, 64, 0), (3, 260, 129, 40, 1), (2, 129, 257, 33, 3))  # lines that end anywhere, in tiles of every kind


def fast_product(type_, a_turned, b_turned):
    """By the matrix units: integers, whose sums are exact, have the canonical bits; other numbers are within the stated error. Sizes: batch, m, n, k,
    gaps."""
    def test(bench):
        for s, (batch, m, n, k, gap) in enumerate(((1, 132, 140, 64, 0), (2, 20, 36, 96, 4), (1, 35, 131, 67, 1), *(FAST_MORE if bench.first else ()))):
            whole, other = (whole_numbers(s + i, shape, type_) for i, shape in enumerate(((batch, m + gap, k + gap), (batch, k + gap, n + gap))))

            def make(on, a=whole, b=other, shape=(batch, m, n, k, gap)):
                count, rows, columns, steps, more = shape
                x = on.tensor(a, type_, shape=(count, rows, steps), strides=((rows + more) * (steps + more),) + ((1, rows + more) if a_turned else (steps + more, 1)))
                y = on.tensor(b, type_, shape=(count, steps, columns), strides=((steps + more) * (columns + more),) + ((1, steps + more) if b_turned else (columns + more, 1)))
                return on.call("ww_tensor_matmul", x, y, api.WW_MATH_CANONICAL if on is bench.cpu else api.WW_MATH_FAST)
            bench.same(f"{type_} {batch} of {m} x {k} by {n}", make)
        a, b = plain(3, (1, 24, 160), type_), plain(4, (1, 160, 40), type_)
        x, y = as_numbers(a, type_).reshape((160, 24)).T if a_turned else as_numbers(a, type_)[0], as_numbers(b, type_).reshape((40, 160)).T if b_turned else as_numbers(b, type_)[0]
        sizes, last = np.abs(x) @ np.abs(y), {"f16": 2.0 ** -11, "bf16": 2.0 ** -8, "f32": 0}[type_]
        summed = sizes * (2.0 ** -9 if type_ == "f32" else 160 * 2.0 ** -23)
        bench.near(f"{type_}, any numbers", lambda on: as_numbers(make(on, a, b, (1, 24, 40, 160, 0)), type_), x @ y, summed + (np.abs(x @ y) + summed) * last)
    return test


def whole_numbers(seed, shape, type_):
    values = np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)
    return (values.view(np.uint32) >> 16).astype(np.uint16) if type_ == "bf16" else values.astype(TYPES[type_])


def as_numbers(values, type_):
    return ((values.astype(np.uint32) << 16).view(np.float32) if type_ == "bf16" else values).astype(np.float64)


def fast_products(type_):
    """Two layouts for each, which have their own loops."""
    return both(*(fast_product(type_, a, b) for a in (False, True) for b in (False, True)))


def fast_convolution(type_):
    """Those with as many outputs as inputs from shared memory, the others written out and multiplied. Shapes: images, channels, y, x, out channels,
    taps, padding, stride, dilation, groups."""
    def test(bench):
        for s, (images, channels, y, x, outs, taps, padding, stride, dilation, groups) in enumerate(
                ((2, 5, 7, 6, 6, 3, 1, 1, 1, 1), (1, 8, 9, 8, 10, 3, 2, 2, 2, 2), (1, 32, 5, 4, 4, 2, 0, 1, 1, 1), (3, 37, 9, 13, 70, 3, 1, 1, 1, 1),
                 (1, 33, 4, 90, 5, 5, 4, 1, 2, 1), (3, 5, 16, 16, 66, 3, 1, 1, 1, 1))):  # the last: 256 outputs a block, the others fewer on wave64
            values = whole_numbers(s, (images, channels, y, x), type_)
            weights = whole_numbers(s + 3, (outs, channels // groups, taps, taps), type_)

            def make(on):
                how = api.ww_conv(struct_size=ctypes.sizeof(api.ww_conv), groups=groups, math=api.WW_MATH_CANONICAL if on is bench.cpu else api.WW_MATH_FAST)
                for d in range(2):
                    how.padding[d], how.stride[d], how.dilation[d] = padding, stride, dilation
                return on.call("ww_tensor_conv2d", on.tensor(values, type_), on.tensor(weights, type_), how)
            bench.same(f"{type_} fast convolution {s}", make)
    return test


def convolution(types, shapes):
    """shapes: images, channels, y, x, out channels, taps, padding, stride, dilation, groups, transposed."""
    def test(bench):
        for t, type_ in enumerate(types):
            for s, (images, channels, y, x, outs, taps, padding, stride, dilation, groups, transposed) in enumerate(shapes if t == 0 or bench.first else shapes[:1]):
                values = plain(s, (images, channels, y, x), type_)
                weights = plain(s + 3, (channels, outs // groups, taps, taps) if transposed else (outs, channels // groups, taps, taps), type_)
                how = api.ww_conv(struct_size=ctypes.sizeof(api.ww_conv), groups=groups, math=api.WW_MATH_CANONICAL)
                for d in range(2):
                    how.padding[d], how.stride[d], how.dilation[d] = padding, stride, dilation
                bench.same(f"{type_} convolution {s}", lambda on: on.call(
                    "ww_tensor_conv_transpose2d" if transposed else "ww_tensor_conv2d", on.tensor(values, type_), on.tensor(weights, type_), how))
    return test


CONV_SMALL = [(1, 3, 7, 6, 5, 3, 1, 1, 1, 1, False), (2, 4, 9, 8, 6, 3, 2, 2, 2, 2, False), (1, 4, 5, 4, 6, 3, 1, 2, 1, 2, True)]
CONV_WIDE = [(1, 2, 24, 23, 5, 3, 1, 1, 1, 1, False), (1, 60, 24, 24, 8, 3, 1, 1, 1, 1, False),
             (1, 3, 48, 48, 64, 3, 1, 1, 1, 1, False)]  # few channels out, more than 512 places
CONV_LARGE = [(1, 2, 14, 13, 130, 3, 1, 1, 1, 1, False), (1, 60, 14, 12, 132, 3, 1, 1, 1, 1, False)]  # more than 64 channels out, more than 128 places


# ---- images --------------------------------------------------------------------------------------------------------------------

def pool(types):
    def test(bench):
        for t, type_ in enumerate(types):
            x = plain(t, (2, 3, 9, 11), type_)
            for kernel, stride, padding, counts in (((2, 2), (2, 2), (0, 0), 1), ((3, 2), (1, 2), (1, 1), t % 2)):
                how = api.ww_pool(struct_size=ctypes.sizeof(api.ww_pool), padding_counts=counts)
                for d in range(2):
                    how.kernel[d], how.stride[d], how.padding[d] = kernel[d], stride[d], padding[d]
                for function in ("ww_tensor_avg_pool2d", "ww_tensor_max_pool2d"):
                    bench.same(f"{function} of {type_}", lambda on: on.call(function, on.tensor(x, type_), how))
    return test


def cumsum(types):
    def test(bench):
        for t, type_ in enumerate(types):
            x = plain(t, (3, 150, 4), type_)
            bench.same(f"cumsum of {type_}", lambda on: [on.call("ww_tensor_cumsum", on.tensor(x, type_), dim) for dim in (1, 2)])
    return test


def nearest(bench):
    for type_ in CODES if bench.first else ("u8", "f16", "f32", "i64"):
        x = plain(1, (2, 3, 5, 7), type_)
        bench.same(f"nearest of {type_}", lambda on: [
            on.call("ww_tensor_upsample_nearest2d", on.tensor(x, type_), i64(11), i64(9)),
            on.call("ww_tensor_upsample_nearest1d", on.tensor(x.reshape(2, 3, 35), type_), i64(50))])


def bilinear(types):
    def test(bench):
        for type_ in types:
            x = plain(1, (2, 3, 5, 7), type_)
            bench.same(f"bilinear of {type_}", lambda on: [
                on.call("ww_tensor_upsample_bilinear2d", on.tensor(x, type_), i64(11), i64(9), align, None) for align in (0, 1)])
    return test


TESTS = {
    "tensor_unary_f32": unary(FLOATS_32, UNARY, True),
    **dict.fromkeys(("tensor_unary_cheap", "tensor_unary_costly"), dense),
    "tensor_unary_f64": unary(("f64",), UNARY, True),
    "tensor_unary_i64": unary(INTEGERS, ["WW_ABS", "WW_NEG", "WW_SQR", "WW_RELU", "WW_SIGN", "WW_FLOOR"], False),
    "tensor_binary_f32": binary(FLOATS_32),
    "tensor_binary_f64": binary(("f64",)),
    "tensor_binary_i64": binary(INTEGERS),
    **dict.fromkeys(("tensor_unary_half", "tensor_pow_atan2", "tensor_tiles_unary", "tensor_tiles_binary", "tensor_tiles_cmp"), simple),
    "tensor_cast_f32": cast(FLOATS_32),
    "tensor_cast_f64": cast(("f64",)),
    "tensor_cast_i64": cast(INTEGERS + ("i8",)),
    "tensor_copy": tensor_copy,
    "tensor_set": tensor_set,
    "tensor_where": tensor_where,
    "tensor_random": random((*FLOATS_32, "f64")),
    **dict.fromkeys(("tensor_index_check", "tensor_gather", "tensor_scatter"), index),
    "tensor_reduce_rows_f32": reduce_by(FLOATS_32, ROWS, True),
    "tensor_reduce_rows_f64": reduce_by(("f64",), ROWS, True),
    "tensor_reduce_rows_i64": reduce_by(INTEGERS, ROWS, False),
    "tensor_reduce_rows_half": reduce_by(("f16", "bf16"), UNITS, True),
    "tensor_reduce_columns_f32": reduce_by(FLOATS_32, COLUMNS, True),
    "tensor_reduce_columns_vectors": reduce_by(FLOATS_32, CHUNKS, True),
    "tensor_reduce_columns_f64": reduce_by(("f64",), COLUMNS, True),
    "tensor_reduce_columns_i64": reduce_by(INTEGERS, COLUMNS, False),
    **dict.fromkeys(("tensor_reduce_arg_f32", "tensor_reduce_arg_quads"), reduce_arg(FLOATS_32)),
    "tensor_reduce_arg_f64": reduce_arg(("f64",)),
    "tensor_reduce_arg_i64": reduce_arg(INTEGERS),
    **dict.fromkeys(("tensor_rows_f32", "tensor_rows_registers_any", "tensor_rows_registers", "tensor_softmax_short", "tensor_norm_short"), rows_of(FLOATS_32)),
    "tensor_rows_f64": rows_of(("f64",)),
    "tensor_rope": rope((*FLOATS_32, "f64")),
    **dict.fromkeys(("attention_store", "attention_merge", "attention_chunk_f16", "attention_tile_f16", "attention_chunk_f32", "attention_tile_f32"),
                    both(attention(api.WW_ATTENTION_F16, api.WW_ATTENTION_F32), session(api.WW_ATTENTION_F16, api.WW_ATTENTION_F32))),
    **dict.fromkeys(("attention_store_q8_0", "attention_chunk_q8_0", "attention_tile_q8_0"), both(attention(api.WW_ATTENTION_Q8_0), session(api.WW_ATTENTION_Q8_0))),
    **dict.fromkeys(("tensor_sort_registers", "tensor_sort_row", "tensor_sort_row_1024", "tensor_top_row", "tensor_sort_keys", "tensor_sort_tile",
                     "tensor_sort_step", "tensor_sort_put"), sort),
    "matmul_f32_64": product(("f32", "f16", "bf16"), SMALL),
    "matmul_f32_128": product(("f32", "f16", "bf16"), LARGE),
    "matmul_fast_f16": fast_products("f16"),
    "matmul_fast_bf16": both(fast_products("bf16"), quant_cases.fast),  # results of f32 are those of quantized matrices
    "matmul_fast_f32": fast_products("f32"),
    "matmul_pack": both(fast_product("f16", False, False), fast_product("f32", False, False)),
    "conv_im2col": both(fast_convolution("bf16"), fast_convolution("f32")),
    "conv_arrange": both(fast_convolution("f16"), fast_convolution("f32")),
    "conv_shared_f16": fast_convolution("f16"),
    "conv_shared_bf16": fast_convolution("bf16"),
    "conv_shared_f32": fast_convolution("f32"),
    "matmul_f64_64": product(("f64",), SMALL),
    "matmul_i8_64": product(("i8",), SMALL),
    "conv_f32_64": convolution(("f32", "f16", "bf16"), CONV_SMALL),
    "conv_f32_64_256": convolution(("f32", "f16", "bf16"), CONV_WIDE),
    "conv_f32_128": convolution(("f32", "f16", "bf16"), CONV_LARGE),
    "conv_f64_64": convolution(("f64",), CONV_SMALL + [(1, 60, 10, 9, 67, 3, 1, 1, 1, 1, False)]),  # the last: two chunks, and more than a tile
    "conv_integer": convolution(("u8", "u32"), CONV_SMALL),
    "tensor_cumsum": cumsum((*FLOATS_32, "f64", *INTEGERS)),
    "tensor_pool": pool((*FLOATS_32, "f64", *INTEGERS)),
    "tensor_nearest": nearest,
    "tensor_bilinear": bilinear((*FLOATS_32, "f64")),
}
