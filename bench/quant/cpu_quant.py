#!/usr/bin/env python3
"""Products with quantized matrices, quantizing and dequantizing on the CPU against ggml, in one run.

    bench/quant/cpu_quant.py BUILD --ggml FOLDER [--types q4_0,q8_0,q4_K,q6_K] [--columns 1,8,512] [--rounds 7] [--coders]

FOLDER has ggml's libggml-base.so and libggml-cpu.so, built for this machine (with clang, or gcc 13 on: of gcc 12 its AMX code
fails); without it only ours is measured. BUILD is configured with -DWARPWAVE_BENCH=ON, for the plain read that products with one
column are compared with. ggml holds its weights in each of the repacked layouts that it offers for the type, and the faster one
counts. Both sides take turns on two pinned threads; weights are rotated through more copies than the caches hold. Figures are
medians.
"""
import argparse
import ctypes
import os
import statistics
import time
from pathlib import Path

import numpy as np

THREADS = 2
os.environ["WARPWAVE_THREADS"] = str(THREADS)  # of as many cores as the machine has, both sides use two
os.environ.setdefault("OMP_PROC_BIND", "close")  # ggml's threads, one a core
os.environ.setdefault("OMP_PLACES", "cores")

TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q5_0": 6, "q5_1": 7, "q8_0": 8, "q2_K": 10, "q3_K": 11, "q4_K": 12,
         "q5_K": 13, "q6_K": 14, "iq4_nl": 20, "iq4_xs": 23, "bf16": 30, "mxfp4": 39}
F32 = 7  # of ww_dtype
WANTED = {(1, t): 1.1 for t in TYPES} | {(512, "q4_0"): 1.15, (512, "q8_0"): 1.3, (512, "q4_K"): 1.5, (512, "q6_K"): 1.5}
PAUSE = 0.03  # seconds between turns: the threads of OpenMP spin for a while when they are done


class Layout(ctypes.Structure):
    _fields_ = [("rank", ctypes.c_int32), ("shape", ctypes.c_int64 * 8), ("strides", ctypes.c_int64 * 8), ("offset", ctypes.c_int64)]


class Tensor(ctypes.Structure):
    _fields_ = [("storage", ctypes.c_void_p), ("layout", Layout)]


class Ours:
    def __init__(self, build):
        self.lib = ctypes.CDLL(str(build / "libwarpwave.so"))
        self.lib.ww_error_message.restype = ctypes.c_char_p
        self.lib.ww_quant_block_bytes.restype = ctypes.c_int64
        self.lib.ww_quant_block_elements.restype = ctypes.c_int64
        self.lib.ww_storage_release.argtypes = self.lib.ww_quant_destroy.argtypes = [ctypes.c_void_p]
        self.device = ctypes.c_void_p()
        self.check(self.lib.ww_device_open(b"cpu", ctypes.byref(self.device)))

    def check(self, status):
        if status != 0:
            raise RuntimeError(self.lib.ww_error_message().decode())

    def row_bytes(self, kind, cols):
        return cols // self.lib.ww_quant_block_elements(TYPES[kind]) * self.lib.ww_quant_block_bytes(TYPES[kind])

    def encode(self, kind, values):
        made = ctypes.c_void_p()
        self.check(self.lib.ww_quant_from_f32(self.device, TYPES[kind], values.ctypes.data_as(ctypes.c_void_p),
                                              ctypes.c_int64(values.shape[0]), ctypes.c_int64(values.shape[1]), ctypes.c_int64(0),
                                              ctypes.byref(made)))
        return made

    def load(self, kind, blocks, rows, cols):
        made = ctypes.c_void_p()
        self.check(self.lib.ww_quant_load(self.device, TYPES[kind], blocks.ctypes.data_as(ctypes.c_void_p),
                                          ctypes.c_size_t(blocks.nbytes), ctypes.c_int64(rows), ctypes.c_int64(cols),
                                          ctypes.byref(made)))
        return made

    def blocks(self, matrix, kind, rows, cols):
        out = np.empty(rows * self.row_bytes(kind, cols), np.uint8)
        self.check(self.lib.ww_quant_read_blocks(matrix, ctypes.c_int64(0), ctypes.c_int64(rows), out.ctypes.data_as(ctypes.c_void_p)))
        return out

    def decode(self, matrix, out):
        self.check(self.lib.ww_quant_read_f32(matrix, ctypes.c_int64(0), ctypes.c_int64(out.shape[0]),
                                              out.ctypes.data_as(ctypes.c_void_p)))

    def tensor(self, x):
        made = Tensor()
        storage = ctypes.c_void_p()
        self.check(self.lib.ww_storage_from_host(self.device, F32, ctypes.c_int64(x.size), x.ctypes.data_as(ctypes.c_void_p),
                                                 ctypes.byref(storage)))
        made.storage = storage.value
        made.layout.rank = 2
        made.layout.shape[0], made.layout.shape[1] = x.shape
        made.layout.strides[0], made.layout.strides[1] = x.shape[1], 1
        return made

    def multiply(self, matrix, x, into=None):
        out = Tensor()
        self.check(self.lib.ww_quant_matmul(matrix, ctypes.byref(x), ctypes.byref(out)))
        if into is not None:
            self.check(self.lib.ww_tensor_to_host(ctypes.byref(out), into.ctypes.data_as(ctypes.c_void_p)))
        self.lib.ww_storage_release(out.storage)


class GgmlParams(ctypes.Structure):
    _fields_ = [("mem_size", ctypes.c_size_t), ("mem_buffer", ctypes.c_void_p), ("no_alloc", ctypes.c_bool)]


class Ggml:
    """The few calls that a product needs; everything it returns is a pointer."""

    def __init__(self, folder, threads):
        self.base = ctypes.CDLL(str(folder / "libggml-base.so"), mode=ctypes.RTLD_GLOBAL)
        self.cpu = ctypes.CDLL(str(folder / "libggml-cpu.so"))
        self.quiet = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda level, text, user: None)
        self.base.ggml_log_set(self.quiet, None)
        self.backend = self.call(self.cpu, "ggml_backend_cpu_init")
        self.call(self.cpu, "ggml_backend_cpu_set_n_threads", self.backend, ctypes.c_int(threads))
        registry = self.call(self.cpu, "ggml_backend_cpu_reg")
        device = self.call(self.base, "ggml_backend_reg_dev_get", registry, ctypes.c_size_t(0))
        address = self.call(self.base, "ggml_backend_reg_get_proc_address", registry, b"ggml_backend_dev_get_extra_bufts")
        extra = ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p)(address)(device)
        self.layouts = {"plain": self.call(self.base, "ggml_backend_cpu_buffer_type")}
        for i in range(8):
            if not extra[i]:
                break
            self.layouts[ctypes.string_at(self.call(self.base, "ggml_backend_buft_name", extra[i])).decode()] = extra[i]
        self.device = device

    @staticmethod
    def call(lib, name, *arguments):
        function = getattr(lib, name)
        function.restype = ctypes.c_void_p
        return function(*[ctypes.c_void_p(a) if isinstance(a, int) and not isinstance(a, bool) else a for a in arguments])

    def context(self, tensors):
        params = GgmlParams(tensors * 1024 + (1 << 20), None, True)
        self.base.ggml_init.argtypes = [GgmlParams]
        self.base.ggml_init.restype = ctypes.c_void_p
        return self.base.ggml_init(params)

    def product(self, kind, layout, blocks, copies, rows, cols, x):
        """Copies of the weights in a layout and a graph for each; None where the layout is not for this."""
        n = x.shape[0]
        contexts = [self.context(copies), self.context(4 * copies + 8)]
        weights, work = contexts
        size = [ctypes.c_int64(cols), ctypes.c_int64(rows)]
        all_w = [self.call(self.base, "ggml_new_tensor_2d", weights, ctypes.c_int(TYPES[kind]), *size) for _ in range(copies)]
        buffers = [self.call(self.base, "ggml_backend_alloc_ctx_tensors_from_buft", weights, self.layouts[layout])]
        tx = self.call(self.base, "ggml_new_tensor_2d", work, ctypes.c_int(0), ctypes.c_int64(cols), ctypes.c_int64(n))
        graphs, results = [], []
        for w in all_w:
            y = self.call(self.base, "ggml_mul_mat", work, w, tx)
            contexts.append(self.context(64))
            graph = self.call(self.base, "ggml_new_graph_custom", contexts[-1], ctypes.c_size_t(8), ctypes.c_bool(False))
            self.call(self.base, "ggml_build_forward_expand", graph, y)
            graphs.append(graph)
            results.append(y)
        supports = self.base.ggml_backend_dev_supports_op
        supports.restype = ctypes.c_bool
        supports.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        if not supports(self.device, results[0]):
            self.free(buffers, contexts)
            return None
        buffers.append(self.call(self.base, "ggml_backend_alloc_ctx_tensors_from_buft", work, self.layouts["plain"]))
        for w in all_w:
            self.call(self.base, "ggml_backend_tensor_set", w, blocks.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(0),
                      ctypes.c_size_t(blocks.nbytes))
        self.call(self.base, "ggml_backend_tensor_set", tx, x.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(0),
                  ctypes.c_size_t(x.nbytes))
        return graphs, results[0], buffers, contexts

    def free(self, buffers, contexts):
        for b in buffers:
            self.call(self.base, "ggml_backend_buffer_free", b)
        for c in contexts:
            self.call(self.base, "ggml_free", c)

    def run(self, graph):
        self.call(self.base, "ggml_backend_graph_compute", self.backend, graph)

    def get(self, tensor, out):
        self.call(self.base, "ggml_backend_tensor_get", tensor, out.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(0),
                  ctypes.c_size_t(out.nbytes))


def timed(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def read_rate(floor, data, threads):
    floor.bench_read_seconds.restype = ctypes.c_double
    floor.bench_read_seconds.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    at = (data.ctypes.data + 63) // 64 * 64
    return statistics.median((data.nbytes - 64) / floor.bench_read_seconds(at, data.nbytes - 64, threads) for _ in range(7))


def products(ours, ggml, kind, size, all_columns, rounds, cold):
    """Seconds of both for each number of columns, as medians, and how far the results are apart."""
    rows = cols = size
    rng = np.random.default_rng(7)
    matrix = ours.encode(kind, rng.standard_normal((rows, cols), np.float32))
    blocks = ours.blocks(matrix, kind, rows, cols)
    ours.lib.ww_quant_destroy(matrix)
    copies = int(np.ceil(cold / blocks.nbytes))
    mine = [ours.load(kind, blocks, rows, cols) for _ in range(copies)]
    found = []
    for n in all_columns:
        x = rng.standard_normal((n, cols), np.float32)
        t = ours.tensor(x)
        turns = copies if n <= 8 else 3
        y = np.empty((n, rows), np.float32)
        ours.multiply(mine[0], t, y)
        times = {"ours": []}
        theirs = {}
        z = None
        for layout in ggml.layouts if ggml else []:
            made = ggml.product(kind, layout, blocks, copies if n <= 8 else 3, rows, cols, x)
            if made:
                theirs[layout] = made
                times[layout] = []
                ggml.run(made[0][0])
                z = np.empty((n, rows), np.float32)
                ggml.get(made[1], z)
        for _ in range(rounds):
            for name in times:
                time.sleep(PAUSE)
                if name == "ours":
                    spent = timed(lambda: [ours.multiply(mine[i % copies], t) for i in range(turns)])
                else:
                    spent = timed(lambda: [ggml.run(g) for g in theirs[name][0][:turns]])
                times[name].append(spent / turns)
        medians = {name: statistics.median(v) for name, v in times.items()}
        apart = float(np.abs(y - z).mean() / np.abs(z).mean()) if z is not None else 0.0
        found.append((n, medians, blocks.nbytes, apart))
        for made in theirs.values():
            ggml.free(made[2], made[3])
    for m in mine:
        ours.lib.ww_quant_destroy(m)
    return found


def print_products(found, kind, size, bandwidth):
    for n, medians, nbytes, apart in found:
        best = min((v, k) for k, v in medians.items() if k != "ours") if len(medians) > 1 else (float("nan"), "-")
        flops = 2e-9 * size * size * n
        ratio = best[0] / medians["ours"]
        share = nbytes / medians["ours"] / bandwidth
        wanted = WANTED.get((n, kind))
        read = f"{nbytes / medians['ours'] / 1e9:.1f} GB/s, {share:.0%}" if n <= 8 else ""
        met = wanted is None or ratio >= wanted or (n == 1 and share >= 0.9)
        print(f"| {kind} | {n} | {medians['ours'] * 1e3:.3f} ms, {flops / medians['ours']:.0f} | {best[0] * 1e3:.3f} ms, {flops / best[0]:.0f} "
              f"({best[1]}) | {ratio:.2f}{f' ({wanted})' if wanted else ''}{'' if met else ' **missed**'} | "
              f"{read} | {apart:.1e} |", flush=True)


def coders(ours, ggml, rounds):
    print("\n| type | quantize, GB/s a thread | ggml | times ggml (wanted) | squared error, ours / ggml's | dequantize, GB/s a thread (wanted: 10) |")
    print("|---|---|---|---|---|---|")
    rows, cols = 64, 4096  # 1 MB: it stays in the second-level cache
    x = np.random.default_rng(3).standard_normal((rows, cols), np.float32)
    back = np.empty_like(x)
    for kind in TYPES:
        if kind == "f32":
            continue
        matrix = ours.encode(kind, x)
        spent_encode, spent_decode, spent_ggml = [], [], []
        out = np.empty(rows * ours.row_bytes(kind, cols), np.uint8)
        for _ in range(rounds):
            spent_encode.append(timed(lambda: ours.lib.ww_quant_destroy(ours.encode(kind, x))))
            spent_decode.append(timed(lambda: [ours.decode(matrix, back) for _ in range(10)]) / 10)
            if ggml:
                spent_ggml.append(timed(lambda: ggml.call(ggml.base, "ggml_quantize_chunk", ctypes.c_int(TYPES[kind]),
                                                          x.ctypes.data_as(ctypes.c_void_p), out.ctypes.data_as(ctypes.c_void_p),
                                                          ctypes.c_int64(0), ctypes.c_int64(rows), ctypes.c_int64(cols), None)))
        ours.decode(matrix, back)
        error = float(((back - x) ** 2).sum())
        rate = [x.nbytes / statistics.median(s) / 1e9 if s else float("nan") for s in (spent_encode, spent_decode, spent_ggml)]
        theirs = float("nan")
        if ggml:
            loaded = ours.load(kind, out, rows, cols)
            ours.decode(loaded, back)
            ours.lib.ww_quant_destroy(loaded)
            theirs = float(((back - x) ** 2).sum())
        wanted = " (10)" if kind in ("q4_K", "q6_K") else ""
        missed = [" **missed**" if wanted and rate[0] < 10 * rate[2] else "", " **missed**" if rate[1] < 10 else ""]
        print(f"| {kind} | {rate[0]:.2f} | {rate[2]:.3f} | {rate[0] / rate[2]:.1f}{wanted}{missed[0]} | {error / theirs if theirs else 1:.4f} | "
              f"{rate[1]:.1f}{missed[1]} |", flush=True)
        ours.lib.ww_quant_destroy(matrix)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=Path)
    parser.add_argument("--ggml", type=Path)
    parser.add_argument("--types", default="q4_0,q8_0,q4_K,q6_K")
    parser.add_argument("--columns", default="1,8,512")
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--cold", type=int, default=400, help="megabytes of weights to rotate through")
    parser.add_argument("--coders", action="store_true", help="quantizing and dequantizing instead")
    args = parser.parse_args()
    args.build = args.build.resolve()
    if args.coders:  # one thread on either side
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    ours = Ours(args.build)  # before ggml, whose runtime pins the calling thread
    floor = ctypes.CDLL(str(args.build / "libbench_floor.so"))
    if args.coders:
        coders(ours, Ggml(args.ggml, 1) if args.ggml else None, args.rounds)
        return
    bandwidth = read_rate(floor, np.ones(args.cold << 17, np.int64), THREADS)
    ggml = Ggml(args.ggml, THREADS) if args.ggml else None
    print(f"A plain read by two threads: {bandwidth / 1e9:.1f} GB/s. Load of the machine: {os.getloadavg()[0]:.1f}.\n")
    print("| type | columns | ours, GFLOP/s | ggml, GFLOP/s (its layout) | times ggml (wanted) | weights read | results apart |")
    print("|---|---|---|---|---|---|---|")
    for kind in args.types.split(","):
        columns = [int(n) for n in args.columns.split(",")]
        print_products(products(ours, ggml, kind, args.size, columns, args.rounds, args.cold << 20), kind, args.size, bandwidth)


if __name__ == "__main__":
    main()
