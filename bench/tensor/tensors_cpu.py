#!/usr/bin/env python3
"""Tensors on the CPU beside their peers, two threads pinned to two cores on every side, all in one run; prints the tables of
bench/results.

    bench/tensor/tensors_cpu.py LIBWARPWAVE.SO [--elements 16777216] [--turns 5] [--only TEXT] [--ggml FOLDER] [--products-only]

Element functions, sums, softmax and norms are PyTorch's; f32 and f64 products OpenBLAS's, as numpy brings it; the f16 products of
ggml are compared where FOLDER has its libraries. The sides take turns, and the median of the turns counts.
"""
import argparse
import ctypes
import os
import statistics
import time


def first_cores(count):
    """CPUs of different cores."""
    cores, seen = [], set()
    for cpu in sorted(os.sched_getaffinity(0)):
        try:
            with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") as file:
                core = file.read().strip()
        except OSError:
            core = str(cpu)
        if core not in seen:
            seen.add(core)
            cores.append(cpu)
    return cores[:count]


THREADS = 2
os.sched_setaffinity(0, first_cores(THREADS))
for name, value in (("OMP_NUM_THREADS", str(THREADS)), ("OPENBLAS_NUM_THREADS", str(THREADS)), ("OMP_PROC_BIND", "close"),
                    ("OMP_PLACES", "cores"), ("OPENBLAS_CORETYPE", "SkylakeX")):
    os.environ.setdefault(name, value)


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--elements", type=int, default=1 << 24)
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--types", default="f32,f16,bf16")
    parser.add_argument("--only", default="")
    parser.add_argument("--ggml")
    parser.add_argument("--products-only", action="store_true")
    return parser.parse_args()


def open_device(path):
    """Before OpenMP is loaded: with OMP_PROC_BIND it binds this thread to one core, which then would be all we see."""
    device = ctypes.c_void_p()
    if ctypes.CDLL(path).ww_device_open(b"cpu", ctypes.byref(device)) != 0:
        raise SystemExit("the device cannot be opened")
    return device


OPTIONS = read_options() if __name__ == "__main__" else None
DEVICE = open_device(OPTIONS.library) if OPTIONS else None

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as functional  # noqa: E402

from tensors import BYTES, DTYPES, TORCH, Library  # noqa: E402

SUM, MIN, MAX, ARGMIN, ARGMAX, MEAN, PROD = range(7)
CANONICAL, FAST = 0, 1


def contest(sides, turns, pause, least=0.03):
    """The median seconds of a call of each side. In a pause before each the other's threads, which wait for work awake, go to
    sleep: OpenBLAS's after some 30 ms."""
    times = {name: [] for name in sides}
    loops = {}
    for name, call in sides.items():
        call()
        begin = time.perf_counter()
        call()
        loops[name] = max(1, min(200, int(least / max(time.perf_counter() - begin, 1e-7))))
    for _ in range(turns):
        for name, call in sides.items():
            time.sleep(pause)
            begin = time.perf_counter()
            for _ in range(loops[name]):
                call()
            times[name].append((time.perf_counter() - begin) / loops[name])
    return {name: statistics.median(all_of_them) for name, all_of_them in times.items()}


def elementwise(ours, dtype, x, y, mask, tx, ty, tm):
    px, py, pm = ctypes.byref(x), ctypes.byref(y), ctypes.byref(mask)
    unary = lambda name: (lambda: ours.op("ww_tensor_unary", ours.lib.ww_unary_of_name(name.encode()), px))
    binary = lambda name: (lambda: ours.op("ww_tensor_binary", ours.lib.ww_binary_of_name(name.encode()), px, py))
    other, tother = ("f16", torch.float16) if dtype == "f32" else ("f32", torch.float32)
    cases = [("copy", lambda: ours.op("ww_tensor_contiguous", px), lambda: tx.clone())]
    cases += [(name, binary(name), call) for name, call in (
        ("add", lambda: tx + ty), ("mul", lambda: tx * ty), ("div", lambda: tx / ty), ("maximum", lambda: torch.maximum(tx, ty)),
        ("pow", lambda: torch.pow(tx, ty)), ("atan2", lambda: torch.atan2(tx, ty)), ("rem", lambda: torch.fmod(tx, ty)))]
    cases += [(name, unary(name), call) for name, call in (
        ("neg", lambda: -tx), ("abs", lambda: tx.abs()), ("recip", lambda: tx.reciprocal()), ("sqr", lambda: tx.square()),
        ("sqrt", lambda: tx.sqrt()), ("rsqrt", lambda: tx.rsqrt()), ("relu", lambda: torch.relu(tx)), ("floor", lambda: tx.floor()),
        ("round", lambda: tx.round()), ("sign", lambda: tx.sign()), ("exp", lambda: tx.exp()), ("expm1", lambda: tx.expm1()),
        ("log", lambda: tx.log()), ("log1p", lambda: tx.log1p()), ("sin", lambda: tx.sin()), ("cos", lambda: tx.cos()),
        ("tanh", lambda: tx.tanh()), ("erf", lambda: tx.erf()), ("sigmoid", lambda: tx.sigmoid()),
        ("silu", lambda: functional.silu(tx)), ("gelu", lambda: functional.gelu(tx, approximate="tanh")),
        ("gelu_erf", lambda: functional.gelu(tx)))]
    cases += [
        ("elu", lambda: ours.op("ww_tensor_elu", px, ctypes.c_double(1.0)), lambda: functional.elu(tx)),
        ("affine", lambda: ours.op("ww_tensor_affine", px, ctypes.c_double(2.0), ctypes.c_double(1.0)),
         lambda: torch.add(ty[:1], tx, alpha=2.0)),
        (f"cast to {other}", lambda: ours.op("ww_tensor_cast", px, ctypes.c_int(DTYPES[other])), lambda: tx.to(tother)),
        ("lt", lambda: ours.op("ww_tensor_cmp", ctypes.c_int(2), px, py), lambda: tx < ty),
        ("where", lambda: ours.op("ww_tensor_where", pm, px, py), lambda: torch.where(tm, tx, ty)),
    ]
    return cases


def rows_of(ours, matrix, vector, tx, tw):
    px, pw, columns = ctypes.byref(matrix), ctypes.byref(vector), tx.shape[1]
    eps = ctypes.c_double(1e-5)

    def reduce(op, *dims):
        given = (ctypes.c_int32 * len(dims))(*dims)
        return lambda: ours.op("ww_tensor_reduce", ctypes.c_int(op), px, given, ctypes.c_int32(len(dims)))

    turned = type(matrix)(storage=matrix.storage)
    turned.layout.rank = 2
    turned.layout.shape[0], turned.layout.shape[1] = tx.shape[1], tx.shape[0]
    turned.layout.strides[0], turned.layout.strides[1] = 1, tx.shape[1]
    return [
        ("sum of all", reduce(SUM, 0, 1), lambda: tx.sum()),
        ("sum of rows", reduce(SUM, 1), lambda: tx.sum(1)),
        ("sum of columns", reduce(SUM, 0), lambda: tx.sum(0)),
        ("mean of rows", reduce(MEAN, 1), lambda: tx.mean(1)),
        ("max of rows", reduce(MAX, 1), lambda: tx.amax(1)),
        ("argmax of rows", reduce(ARGMAX, 1), lambda: tx.argmax(1)),
        ("softmax", lambda: ours.op("ww_tensor_softmax", px, ctypes.c_int32(-1)), lambda: torch.softmax(tx, -1)),
        ("softmax of columns", lambda: ours.op("ww_tensor_softmax", px, ctypes.c_int32(0)), lambda: torch.softmax(tx, 0)),
        ("layer_norm", lambda: ours.op("ww_tensor_layer_norm", px, pw, pw, eps), lambda: functional.layer_norm(tx, (columns,), tw, tw)),
        ("rms_norm", lambda: ours.op("ww_tensor_rms_norm", px, pw, eps), lambda: functional.rms_norm(tx, (columns,), tw)),
        ("transpose", lambda: ours.op("ww_tensor_contiguous", ctypes.byref(turned)), lambda: tx.t().contiguous()),
    ]


def compare_with_torch(ours, options):
    n, columns = options.elements, 4096
    print("| operation | type | ours, ms | PyTorch, ms | GB/s | times PyTorch |\n|---|---|---|---|---|---|")
    for dtype in options.types.split(","):
        base, other = torch.randn(n).to(TORCH[dtype]), (torch.randn(n).abs() * 3 + 0.1).to(TORCH[dtype])
        mask = torch.randint(0, 2, (n,), dtype=torch.uint8)
        made = [ours.tensor(base, dtype, [n]), ours.tensor(other, dtype, [n]), ours.tensor(mask, "u8", [n]),
                ours.tensor(base, dtype, [n // columns, columns]), ours.tensor(other[:columns].contiguous(), dtype, [columns])]
        cases = elementwise(ours, dtype, *made[:3], base, other, mask.bool())
        cases += rows_of(ours, *made[3:], base.view(-1, columns), other[:columns].contiguous())
        for name, mine, theirs in cases:
            if options.only and options.only not in name:
                continue
            times = contest({"ours": mine, "torch": theirs}, options.turns, 0.02)
            moved = n * BYTES[dtype] * (1 if "sum" in name or "of rows" in name else 3 if name in ("add", "mul") else 2)
            print(f"| {name} | {dtype} | {times['ours'] * 1e3:.2f} | {times['torch'] * 1e3:.2f} | {moved / times['ours'] / 1e9:.1f} "
                  f"| {times['torch'] / times['ours']:.2f} |", flush=True)
        for one in made:
            ours.lib.ww_storage_release(one.storage)


class Ggml:
    """A product of ggml's: f16 weights and f32 activations, as its users multiply."""

    class Parameters(ctypes.Structure):
        _fields_ = [("bytes", ctypes.c_size_t), ("buffer", ctypes.c_void_p), ("no_alloc", ctypes.c_bool)]

    class Plan(ctypes.Structure):
        _fields_ = [("work_bytes", ctypes.c_size_t), ("work", ctypes.c_void_p), ("threads", ctypes.c_int), ("rest", ctypes.c_uint64 * 16)]

    def __init__(self, folder, kind, m, n, k):
        self.base = ctypes.CDLL(os.path.join(folder, "libggml-base.so"), ctypes.RTLD_GLOBAL)
        self.cpu = ctypes.CDLL(os.path.join(folder, "libggml-cpu.so"), ctypes.RTLD_GLOBAL)
        self.cpu.ggml_cpu_init()
        for call in ("ggml_init", "ggml_new_tensor_2d", "ggml_mul_mat", "ggml_new_graph", "ggml_get_data"):
            getattr(self.base, call).restype = ctypes.c_void_p
        self.cpu.ggml_graph_plan.restype = self.Plan
        context = ctypes.c_void_p(self.base.ggml_init(self.Parameters(8 * (m * k + n * k + m * n) + (64 << 20), None, False)))
        tensor = lambda kind, columns, rows: ctypes.c_void_p(
            self.base.ggml_new_tensor_2d(context, kind, ctypes.c_int64(columns), ctypes.c_int64(rows)))
        a, b = tensor({"f16": 1, "bf16": 30}[kind], k, m), tensor(0, k, n)
        values = torch.randn(m, k).to(TORCH[kind])
        ctypes.memmove(self.base.ggml_get_data(a), values.data_ptr(), 2 * m * k)
        values = torch.randn(n, k)
        ctypes.memmove(self.base.ggml_get_data(b), values.data_ptr(), 4 * n * k)
        self.graph = ctypes.c_void_p(self.base.ggml_new_graph(context))
        self.base.ggml_build_forward_expand(self.graph, ctypes.c_void_p(self.base.ggml_mul_mat(context, a, b)))
        self.plan = self.cpu.ggml_graph_plan(self.graph, THREADS, None)
        self.work = ctypes.create_string_buffer(self.plan.work_bytes + 64)
        self.plan.work = ctypes.addressof(self.work)

    def run(self):
        self.cpu.ggml_graph_compute(self.graph, ctypes.byref(self.plan))


def compare_products(ours, options):
    m = k = n = options.size
    print(f"\n| {m}^3 | canonical, GFLOP/s | fast | OpenBLAS | PyTorch | ggml, f16 | canonical / OpenBLAS | canonical / ggml's f16 | fast / ggml's f16 |")
    print("|---|---|---|---|---|---|---|---|---|")
    peer = Ggml(options.ggml, "f16", m, n, k).run if options.ggml else None
    for dtype in ("f32", "f64", "f16", "bf16"):
        values = [torch.randn(m, k).to(TORCH[dtype]), torch.randn(k, n).to(TORCH[dtype])]
        a, b = (ours.tensor(value, dtype, [m, k]) for value in values)
        product = lambda math: (lambda: ours.op("ww_tensor_matmul", ctypes.byref(a), ctypes.byref(b), ctypes.c_int(math)))
        sides = {"canonical": product(CANONICAL), "fast": product(FAST), "torch": lambda: torch.matmul(*values)}
        if dtype in ("f32", "f64"):
            arrays = [value.numpy() for value in values]
            sides["openblas"] = lambda: np.matmul(*arrays)
        if peer:
            sides["ggml"] = peer
        times = contest(sides, options.turns, 0.15)
        speed = {name: 2.0 * m * n * k / seconds / 1e9 for name, seconds in times.items()}
        number = lambda name: f"{speed[name]:.0f}" if name in speed else ""
        ratio = lambda one, other: f"{speed[one] / speed[other]:.2f}" if other in speed else ""
        print(f"| {dtype} | {number('canonical')} | {number('fast')} | {number('openblas')} | {number('torch')} | {number('ggml')} "
              f"| {ratio('canonical', 'openblas')} | {ratio('canonical', 'ggml')} | {ratio('fast', 'ggml')} |", flush=True)
        ours.lib.ww_storage_release(a.storage)
        ours.lib.ww_storage_release(b.storage)


def main():
    ours = Library(OPTIONS.library, "cpu")
    ours.device = DEVICE
    torch.set_num_threads(THREADS)
    if not OPTIONS.products_only:
        compare_with_torch(ours, OPTIONS)
    if not OPTIONS.only:
        compare_products(ours, OPTIONS)


if __name__ == "__main__":
    main()
