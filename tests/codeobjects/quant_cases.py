"""Tests of the kernels of quantized matrices, like those of tensor_cases.py: every format is encoded, decoded and multiplied."""
import ctypes

import numpy as np

from machine import api, both

BLOCKS_32 = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q8_1")
BLOCKS_256 = ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K")
CODEBOOK = ("IQ4_NL", "IQ4_XS", "MXFP4")
PLAIN = ("F32", "F16", "BF16")
i64 = ctypes.c_int64


def weights(seed, rows, cols):
    """Rows of different magnitudes: one of zeros, one with a single large element, one of small integers, where codes tie."""
    values = np.random.default_rng(seed).standard_normal((rows, cols)).astype(np.float32)
    values[1] = 0
    values[2, 5] = 60
    values[3] = np.rint(values[3] * 3)
    return values


class Matrix:
    """A matrix on a device: encoded there, or made of encoded blocks."""

    def __init__(self, on, type_, values, blocks=None):
        self.on, self.type, (self.rows, self.cols) = on, getattr(api, "WW_QUANT_" + type_), values.shape
        self.handle, size = ctypes.c_void_p(), i64()
        on.ok(on.c.ww_quant_row_bytes(self.type, i64(self.cols), ctypes.byref(size)))
        self.row_bytes = size.value
        if blocks is None:
            on.ok(on.c.ww_quant_from_f32(on.handle, self.type, values.ctypes.data_as(ctypes.c_void_p), i64(self.rows), i64(self.cols), i64(0),
                                         ctypes.byref(self.handle)))
        else:
            on.ok(on.c.ww_quant_load(on.handle, self.type, blocks.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(blocks.nbytes), i64(self.rows),
                                     i64(self.cols), ctypes.byref(self.handle)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.on.c.ww_quant_destroy(self.handle)

    def blocks(self):
        found = np.empty(self.rows * self.row_bytes, np.uint8)
        self.on.ok(self.on.c.ww_quant_read_blocks(self.handle, i64(0), i64(self.rows), found.ctypes.data_as(ctypes.c_void_p)))
        return found

    def read(self):
        found = np.empty((self.rows - 1, self.cols), np.float32)
        self.on.ok(self.on.c.ww_quant_read_f32(self.handle, i64(1), i64(self.rows - 1), found.ctypes.data_as(ctypes.c_void_p)))
        ids, picked = np.array([3, 0, 3], np.int64), np.empty((3, self.cols), np.float32)
        self.on.ok(self.on.c.ww_quant_get_rows(self.handle, ids.ctypes.data_as(ctypes.c_void_p), i64(3), picked.ctypes.data_as(ctypes.c_void_p)))
        return [found, picked]


def encode(types):
    def test(bench):
        for n, type_ in enumerate(types):
            def make(on, cols=256 * (1 + n % 2)):
                with Matrix(on, type_, weights(n, 5, cols)) as matrix:
                    return matrix.blocks()
            bench.same(f"coding {type_}", make)
        bad = weights(1, 5, 256)
        bad[4, 200] = np.inf
        bench.same("what cannot be coded", lambda on: Matrix(on, types[0], bad).blocks())
    return test


def on_cpu_coded(bench, type_, values):
    with Matrix(bench.cpu, type_, values) as matrix:
        return matrix.blocks()


def decode(bench):
    for n, type_ in enumerate(BLOCKS_32 + BLOCKS_256 + CODEBOOK + PLAIN):
        values = weights(n, 5, 256)
        coded = on_cpu_coded(bench, type_, values)

        def make(on):
            with Matrix(on, type_, values, coded) as matrix:
                return matrix.read()
        bench.same(f"decoding {type_}", make)


def product(types, columns_of):
    """Each format with each number of columns, and the first once more as a mixture of experts. In the first order also columns of halves, groups of every
    width, matrices of several tiles, and, with compute units enough, sums that several thread blocks share."""
    def test(bench):
        few = max(columns_of) < 32
        more = [(37, 1024, 2, "f32", 0), (20, 2048, 1, "f32", 64), (20, 2048, 8, "f32", 64), (20, 2048, 5, "bf16", 1), (21, 768, 3, "f16", 0)] if few else [
            (150, 2048, 140, "f32", 1), (130, 1024, 33, "f16", 64), (37, 1024, 130, "bf16", 0), (136, 768, 132, "f32", 64)]
        for n, type_ in enumerate(types):
            odd = [(23, 288, 1, "f32", 0), (23, 288, 4, "f32", 0)] if few and type_ not in BLOCKS_256 + ("Q8_K", "IQ4_XS") + PLAIN else []  # rows that begin anywhere
            cases = [(37 if n == 0 else 5, 512 if n % 2 else 256, columns, "f32", 0) for columns in columns_of] + (more + odd if bench.first else [])
            for rows, cols, columns, kind, units in cases:
                values = weights(n, rows, cols)
                coded = on_cpu_coded(bench, type_, values)
                x = halves(np.random.default_rng(n + columns).standard_normal((columns, cols)).astype(np.float32), kind)

                def make(on):
                    with on.units(units), Matrix(on, type_, values, coded) as matrix:
                        return on.call("ww_quant_matmul", matrix.handle, on.tensor(x, kind))
                bench.same(f"{type_} {rows} x {cols} times {columns} of {kind}", make)
        values = weights(7, 12, 256)
        coded, x = on_cpu_coded(bench, types[0], values), np.random.default_rng(8).standard_normal((4, 256)).astype(np.float32)

        def experts(on):
            with Matrix(on, types[0], values, coded) as matrix:
                return on.call("ww_quant_matmul_experts", matrix.handle, i64(4), on.tensor(x, "f32"), np.array([2, 0, 1, 2], np.int64))
        bench.same(f"experts of {types[0]}", experts)
    return test


def of_each(types):
    """Formats of one kernel's switch, once."""
    def test(bench):
        for n, type_ in enumerate(types if bench.first else ()):
            values, x = weights(n, 70, 1024), np.random.default_rng(n).standard_normal((40, 1024)).astype(np.float32)
            coded = on_cpu_coded(bench, type_, values)

            def make(on):
                with Matrix(on, type_, values, coded) as matrix:
                    return on.call("ww_quant_matmul", matrix.handle, on.tensor(x, "f32"))
            bench.same(f"{type_} times 40", make)
    return test


def halves(x, kind):
    """Floats as f16, or as the bits of bf16."""
    return x if kind == "f32" else x.astype(np.float16) if kind == "f16" else (x.view(np.uint32) >> 16).astype(np.uint16)


LONG_ROWS = (21, 6400)  # chunks of a row that lie inside it, whole ones and one that is not; rows that begin anywhere in a cache line


def gemv(type_):
    """A format with few columns; long rows by one thread block or several, in the first order of waves for each number of columns."""
    few = product((type_,), (1, 9))

    def test(bench):
        few(bench)
        values = weights(3, *LONG_ROWS)
        coded = on_cpu_coded(bench, type_, values)
        for splits, columns in ((1, 1), (1, 8), *(((1, 3), (2, 1), (8, 8)) if bench.first else ())):
            x = np.random.default_rng(columns).standard_normal((columns, values.shape[1])).astype(np.float32)

            def make(on):
                on.c.codeobjects_gemv_splits(on.handle, splits)
                try:
                    with Matrix(on, type_, values, coded) as matrix:
                        return on.call("ww_quant_matmul", matrix.handle, on.tensor(x, "f32"))
                finally:
                    on.c.codeobjects_gemv_splits(on.handle, 0)
            bench.same(f"long rows of {type_} times {columns} by {splits}", make)
    return test


def from_and_to_tensors(bench):
    """Encoding from a tensor, decoding to one and by ids."""
    for n, (type_, kind) in enumerate((("Q4_0", "f16"), ("Q4_K", "bf16"), ("MXFP4", "f32"))):
        values = weights(n, 5, 256)

        def make(on):
            matrix, rows = ctypes.c_void_p(), np.array([3, 0, 3, 4294967295], np.uint32)
            on.ok(on.c.ww_quant_from_tensor(getattr(api, "WW_QUANT_" + type_), ctypes.byref(on.tensor(values, "f32")), ctypes.byref(matrix)))
            try:
                code = getattr(api, "WW_" + kind.upper())
                return [on.call("ww_quant_dequantize", matrix, i64(1), i64(3), code), on.call("ww_quant_rows", matrix, on.tensor(rows, "u32"), code)]
            finally:
                on.c.ww_quant_destroy(matrix)
        bench.same(f"{type_} and a tensor of {kind}", make)


def coded(types, columns_of):
    """Activations that are encoded before they are multiplied, and experts by ids on the device."""
    def test(bench):
        for n, (type_, cols) in enumerate([(type_, 256) for type_ in types] + [(type_, 1280) for type_ in types if bench.first]):
            values = weights(n, 12, cols)
            blocks, kind = on_cpu_coded(bench, type_, values), "Q8_K" if type_ in BLOCKS_256 else "Q8_1"
            for columns in columns_of:
                x = np.random.default_rng(n).standard_normal((columns, cols)).astype(np.float32)

                def make(on):
                    with Matrix(on, type_, values, blocks) as matrix, Matrix(on, kind, x) as activations:
                        return on.call("ww_quant_multiply_coded", matrix.handle, activations.handle, None)
                bench.same(f"{type_} times {columns} that are coded", make)
    return test


def expert_ids(bench):
    some = np.array([2, 0, 1, 2, 4294967295, 2, 3, 0, 2], np.uint32)  # one is skipped, one is no expert
    many = np.random.default_rng(9).integers(0, 3, 300).astype(np.uint32)  # more columns than threads
    many[::41] = 4294967295
    all_of_them = np.concatenate([np.arange(900), [4294967295, 1000]]).astype(np.uint32)  # groups enough for many of each thread
    cases = [(type_, activations, some, "u32", 12, 4) for type_, activations in (("Q4_0", 0), ("Q6_K", 0), ("Q4_K", 1), ("F16", 0))]
    if bench.first:
        cases += [("Q8_0", 0, many, "u32", 12, 4), ("Q4_K", 0, np.minimum(many, 255), "u8", 12, 4), ("Q4_0", 0, np.where(many > 3, -1, many.astype(np.int64)), "i64", 12, 4),
                  ("F16", 0, np.minimum(some, 255), "u8", 12, 4), ("F16", 0, some.astype(np.int64), "i64", 12, 4),
                  ("Q8_0", 0, all_of_them, "u32", 900, 1), ("Q8_0", 0, np.array([0, 4294967295, 7], np.uint32), "u32", 1100, 1100)]
    for type_, activations, ids, kind, rows, each in cases:
        values, x = weights(7, rows, 256), np.random.default_rng(8).standard_normal((len(ids), 256)).astype(np.float32)
        blocks = on_cpu_coded(bench, type_, values)

        def make(on):
            tensor = on.tensor(ids, kind)
            how = api.ww_quant_product(struct_size=ctypes.sizeof(api.ww_quant_product), queued=1, expert_rows=each, activations=activations)
            how.expert_ids = ctypes.addressof(tensor)
            with Matrix(on, type_, values, blocks) as matrix:
                return on.call("ww_quant_multiply", matrix.handle, on.tensor(x, "f32"), how)
        bench.same(f"experts of {type_} by ids", make)


def decoded(bench):
    """Float activations: every format."""
    for n, type_ in enumerate(BLOCKS_32 + BLOCKS_256 + CODEBOOK + PLAIN):
        values = weights(n, 5, 256)
        blocks, x = on_cpu_coded(bench, type_, values), np.random.default_rng(n).standard_normal((1 + n % 5, 256)).astype(np.float32)
        how = api.ww_quant_product(struct_size=ctypes.sizeof(api.ww_quant_product), activations=1)

        def make(on):
            with Matrix(on, type_, values, blocks) as matrix:
                return on.call("ww_quant_multiply", matrix.handle, on.tensor(x, "f32"), how)
        bench.same(f"{type_} times floats", make)


def fused(kind, types, columns_of):
    """A norm or a gate before a product, and an addition after it."""
    def test(bench):
        for n, (type_, cols) in enumerate([(type_, 512) for type_ in types] + [(type_, cols) for type_ in types for cols in (4352, 9216) if bench.first]):
            values = weights(n, 12, cols)
            blocks = on_cpu_coded(bench, type_, values)
            rng = np.random.default_rng(n)
            weight, start = rng.standard_normal(cols).astype(np.float32), rng.standard_normal((9, 12)).astype(np.float32)
            for columns in columns_of:
                x, up = (rng.standard_normal((columns, cols)).astype(np.float32) for _ in range(2))

                def make(on):
                    beside = on.tensor(weight, "f32") if kind == "norm" else on.tensor(up, "f32")
                    how = api.ww_quant_product(struct_size=ctypes.sizeof(api.ww_quant_product), queued=1, norm_eps=1e-5, accumulate=1)
                    setattr(how, "norm_weight" if kind == "norm" else "up", ctypes.addressof(beside))
                    out = on.tensor(start[:columns], "f32")
                    with Matrix(on, type_, values, blocks) as matrix:
                        on.ok(on.c.ww_quant_multiply(matrix.handle, ctypes.byref(on.tensor(x, "f32")), ctypes.byref(how), ctypes.byref(out)))
                        return on.storage_of(out)
                bench.same(f"a {kind} and {type_} times {columns}", make)
    return test


def many_columns(type_):
    """A gemv of columns that are coded before it, of one that is given as codes, and of one that is coded before: on many chips others code themselves."""
    def one(bench):
        values = weights(5, *LONG_ROWS)
        blocks, x = on_cpu_coded(bench, type_, values), np.random.default_rng(5).standard_normal((1, values.shape[1])).astype(np.float32)
        for splits in (1, 2, 8) if bench.first else ():
            def make(on):
                on.c.codeobjects_gemv_one(on.handle, False)
                on.c.codeobjects_gemv_splits(on.handle, splits)
                try:
                    with Matrix(on, type_, values, blocks) as matrix:
                        return on.call("ww_quant_matmul", matrix.handle, on.tensor(x, "f32"))
                finally:
                    on.c.codeobjects_gemv_splits(on.handle, 0)
                    on.c.codeobjects_gemv_one(on.handle, True)
            bench.same(f"{type_} times one that is coded before, by {splits}", make)
    return both(gemv(type_), coded((type_,), (1,)), one)


def one_column(type_):
    """A gemv that codes its column: as it is, some chunks of it and a rest; behind a norm; gated."""
    def long(bench):
        values = weights(3, 19, 4352)
        coded, x = on_cpu_coded(bench, type_, values), np.random.default_rng(3).standard_normal((1, 4352)).astype(np.float32)
        x[0, 64:96], x[0, 256:512] = 0, np.resize([1.5, -1.5], 256)  # a block of zeros, and one whose extremes have both signs

        def make(on):
            with Matrix(on, type_, values, coded) as matrix:
                return on.call("ww_quant_matmul", matrix.handle, on.tensor(x, "f32"))
        bench.same(f"{type_} times a long column", make)
    return both(long, fused("norm", (type_,), (1,)), fused("gate", (type_,), (1,)))


def fast(bench):
    """Decoded to bf16, and multiplied by the matrix units, even if integers are faster."""
    bench.gpu.c.codeobjects_quant_bf16(bench.gpu.handle, True)
    try:
        fast_in_bf16(bench)
    finally:
        bench.gpu.c.codeobjects_quant_bf16(bench.gpu.handle, False)


def fast_in_bf16(bench):
    for n, type_ in enumerate(BLOCKS_32 + BLOCKS_256 + CODEBOOK):
        rows, columns = ((5, 33), (140, 133), (131, 70))[n if bench.first and n < 3 else 0]
        values = weights(n, rows, 512 if n % 2 else 256)
        coded, x = on_cpu_coded(bench, type_, values), np.random.default_rng(n).standard_normal((columns, values.shape[1])).astype(np.float32)
        how = api.ww_quant_product(struct_size=ctypes.sizeof(api.ww_quant_product), math=api.WW_MATH_FAST)

        def make(on):
            with Matrix(on, type_, values, coded) as matrix:
                return on.call("ww_quant_multiply", matrix.handle, on.tensor(x, "f32"), how)
        with bench.executor.asleep(), Matrix(bench.gpu, type_, values, coded) as matrix:
            decoded = bench.gpu.call("ww_quant_multiply", matrix.handle, bench.gpu.tensor(np.eye(values.shape[1], dtype=np.float32), "f32"), how).reshape(-1, rows)
        rounded = ((x.view(np.uint32) + 0x7fff + (x.view(np.uint32) >> 16 & 1)) & 0xffff0000).view(np.float32).astype(np.float64)
        sizes = np.abs(rounded) @ np.abs(decoded.astype(np.float64))
        bench.near(f"a fast product of {type_}", make, rounded @ decoded.astype(np.float64), x.shape[1] * 2.0 ** -23 * sizes)


TESTS = {
    "quant_decode": both(decode, from_and_to_tensors),
    "quant_encode_block32": encode(BLOCKS_32 + CODEBOOK + ("Q8_K", "F16", "BF16")),
    "quant_encode_kblock": encode(BLOCKS_256),
    "quant_gemv_activations": both(gemv("Q4_0"), product(("Q4_K",), (9,)), coded(("Q4_0", "Q4_1", "Q4_K"), (1, 9)),
                                   fused("norm", ("Q8_0", "Q4_K"), (9,)), fused("gate", ("Q8_0", "Q4_K"), (9,))),
    **{f"quant_gemv_{type_.lower()}": many_columns(type_) for type_ in BLOCKS_32 + BLOCKS_256 + CODEBOOK + ("Q8_K",)},
    **{f"quant_gemv_one_{type_.lower()}": one_column(type_) for type_ in BLOCKS_32 + BLOCKS_256 + CODEBOOK + ("Q8_K",)},
    **dict.fromkeys(("quant_tile_activations_block32", "quant_unpack_block32", "quant_tile_fold", "quant_tile_block32"),
                    both(product(("Q4_0", "Q5_0", "Q8_0"), (35, 300)), product(("Q5_1", "IQ4_NL", "MXFP4"), (35,)),
                         coded(("Q5_1", "Q8_0"), (35,)), of_each(BLOCKS_32))),
    "quant_tile_block32_min": product(("Q4_1", "Q5_1"), (35,)),
    **dict.fromkeys(("quant_tile_activations_kblock", "quant_unpack_kblock", "quant_tile_kblock"),
                    both(product(("Q3_K", "Q6_K", "Q8_K", "Q2_K", "Q4_K", "Q5_K", "IQ4_XS"), (35,)), coded(("Q4_K", "Q6_K"), (35,)),
                         of_each(BLOCKS_256))),
    "quant_float_product": both(product(PLAIN, (1, 9)), decoded),
    **dict.fromkeys(("quant_expert_rows", "quant_expert_groups"), expert_ids),
    **dict.fromkeys(("quant_weights_bf16", "quant_activations_bf16"), fast),
}
