#!/usr/bin/env python3
"""Quantized products on a GPU: microseconds, and the bandwidth at which weights are read, beside PyTorch's f16 product and what was
seen of ggml.

    bench/gpu_quant.py LIBWARPWAVE.SO [--device cuda:0] [--rows 4096] [--cols 14336] [--turns 200] [--types q4_0,q8_0] [--columns 1,8,512]

Weights are cold: products rotate through as many matrices as fill 400 MB. Products are queued one behind the other and waited for
together, launches included; the figure is the median of seven such rounds, in which the contestants take turns. `issue` is the time
the host needs for a call. The column "ggml (seen)" is not measured here: its CUDA backend on an H200, 4096 x 14336.
"""
import argparse
import ctypes
import statistics
import time

import torch

from tensors import Library, Tensor

TYPES = {"f16": 1, "q4_0": 2, "q4_1": 3, "q5_0": 6, "q5_1": 7, "q8_0": 8, "q2_K": 10, "q3_K": 11, "q4_K": 12, "q5_K": 13, "q6_K": 14}
SEEN = {("q4_0", 1): 15.3, ("q8_0", 1): 22.9, ("q4_K", 1): 17.3, ("q6_K", 1): 28.8, ("q4_0", 8): 34.7, ("q8_0", 8): 46.2,
        ("q4_K", 8): 69.6, ("q6_K", 8): 62.4, ("q4_0", 512): 308, ("q8_0", 512): 312, ("q4_K", 512): 342, ("q6_K", 512): 420,
        ("f16", 512): 131}
ROTATE_BYTES = 400 << 20


class Product(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("queued", ctypes.c_int32), ("math", ctypes.c_int), ("expert_rows", ctypes.c_int64),
                ("experts", ctypes.c_void_p)]


def matrices(ours, values, name):
    """As many matrices as fill ROTATE_BYTES, all with the same blocks; and the bytes of one."""
    rows, cols = values.shape
    row_bytes = ctypes.c_int64()
    ours.check(ours.lib.ww_quant_row_bytes(TYPES[name], ctypes.c_int64(cols), ctypes.byref(row_bytes)))
    size = rows * row_bytes.value
    first = ctypes.c_void_p()
    ours.check(ours.lib.ww_quant_from_f32(ours.device, TYPES[name], ctypes.c_void_p(values.data_ptr()), ctypes.c_int64(rows),
                                          ctypes.c_int64(cols), ctypes.c_int64(0), ctypes.byref(first)))
    blocks = torch.empty(size, dtype=torch.uint8)
    ours.check(ours.lib.ww_quant_read_blocks(first, ctypes.c_int64(0), ctypes.c_int64(rows), ctypes.c_void_p(blocks.data_ptr())))
    made = [first]
    while len(made) * size < ROTATE_BYTES:
        one = ctypes.c_void_p()
        ours.check(ours.lib.ww_quant_load(ours.device, TYPES[name], ctypes.c_void_p(blocks.data_ptr()), ctypes.c_size_t(size),
                                          ctypes.c_int64(rows), ctypes.c_int64(cols), ctypes.byref(one)))
        made.append(one)
    return made, size


def check_result(ours, matrix, x, n, values, given, product):
    """The mean error against PyTorch on the weights as they were coded."""
    out = ctypes.c_void_p()
    ours.check(ours.lib.ww_quant_multiply(matrix, ctypes.addressof(x), product, ctypes.addressof(out)))
    rows, cols = values.shape
    y = torch.empty(n, rows)
    ours.check(ours.lib.ww_storage_to_host(out, ctypes.c_void_p(y.data_ptr())))
    ours.lib.ww_storage_destroy(out)
    decoded = torch.empty(rows, cols)
    ours.check(ours.lib.ww_quant_read_f32(matrix, ctypes.c_int64(0), ctypes.c_int64(rows), ctypes.c_void_p(decoded.data_ptr())))
    exact = given.double().cuda() @ decoded.cuda().double().t()
    return ((y.cuda().double() - exact).abs().mean() / exact.abs().mean()).item()


def issue_round(call, count, turns, synchronize):
    begin = time.perf_counter()
    for i in range(turns):
        call(i % count)
    issued = time.perf_counter()
    synchronize()
    return (time.perf_counter() - begin) / turns * 1e6, (issued - begin) / turns * 1e6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--cols", type=int, default=14336)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--types", default="q4_0,q8_0,q4_K,q6_K")
    parser.add_argument("--columns", default="1,8,512")
    parser.add_argument("--fast", action="store_true")
    options = parser.parse_args()
    ours = Library(options.library, options.device)
    asked = Product(ctypes.sizeof(Product), 1, 1 if options.fast else 0, 0, None)
    multiply, destroy = ours.lib.ww_quant_multiply, ours.lib.ww_storage_destroy
    multiply.argtypes = [ctypes.c_void_p] * 4
    torch.manual_seed(1)
    values = torch.randn(options.rows, options.cols, device="cuda").cpu()
    half = [values.half().cuda() for _ in range(4)]
    print(f"{'type':5} {'n':>4} {'us':>8} {'GB/s':>6} {'issue':>6} {'f16 torch us':>12} {'ggml (seen)':>11} {'ratio':>6} {'error':>8}")
    for name in options.types.split(","):
        made, size = matrices(ours, values, name)
        for n in [int(c) for c in options.columns.split(",")]:
            given = torch.randn(n, options.cols)
            x = ours.tensor(given, "f32", [n, options.cols])
            peer_x = given.half().cuda()
            out, product, tensor = ctypes.c_void_p(), ctypes.addressof(asked), ctypes.addressof(x)
            where = ctypes.addressof(out)

            def call(i):
                if multiply(made[i], tensor, product, where) != 0:
                    ours.check(1)
                destroy(out)

            turns = options.turns if n < 64 else max(options.turns // 5, 10)
            error = check_result(ours, made[0], x, n, values, given, product)
            mine, issue, theirs = [], [], []
            for _ in range(8):
                us, issued = issue_round(call, len(made), turns, ours.synchronize)
                mine.append(us)
                issue.append(issued)
                theirs.append(issue_round(lambda i: torch.mm(peer_x, half[i % 4].t()), len(made), turns, torch.cuda.synchronize)[0])
            us, peer = statistics.median(mine[1:]), statistics.median(theirs[1:])
            seen = SEEN.get((name, n))
            print(f"{name:5} {n:4} {us:8.1f} {size / us / 1e3:6.0f} {statistics.median(issue[1:]):6.1f} {peer:12.1f} "
                  f"{seen if seen else '-':>11} {f'{seen / us:.2f}' if seen else '-':>6} {error:8.5f}", flush=True)
            destroy(x.storage)
        for one in made:
            ours.lib.ww_quant_destroy(one)


if __name__ == "__main__":
    main()
