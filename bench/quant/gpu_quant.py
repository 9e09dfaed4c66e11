#!/usr/bin/env python3
"""Quantized products on a GPU: microseconds, and the bandwidth at which weights are read, beside PyTorch's f16 product and ggml.

    bench/quant/gpu_quant.py LIBWARPWAVE.SO [--ggml FOLDER] [--device cuda:0] [--rows 4096] [--cols 14336] [--turns 200] [--types q4_0,q8_0]
                       [--columns 1,8,512] [--fast] [--parts]

Weights are cold: products rotate through as many matrices as fill 400 MB. Products are queued one behind the other and waited for
together, launches included; the figure is the median of seven such rounds, in which the contestants take turns. `issue` is the time
the host needs for a call. FOLDER has ggml's libggml-base.so and libggml-cuda.so: its products rotate likewise, many in one graph,
which it replays. Errors are means against f64 on the decoded weights, over the mean result. Without FOLDER ggml's column is what was
seen of its CUDA backend on an H200, 4096 x 14336, and is marked so. With --parts a line follows each product: the kernels it
consists of, the median of their microseconds, and, in brackets, how long after the begin of the product each began and ended, as
PyTorch's profiler saw them.
"""
import argparse
import ctypes
import statistics
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tensor"))
from cpu_quant import Ggml  # noqa: E402
from tensors import Library, Tensor  # noqa: E402

TYPES = {"f16": 1, "q4_0": 2, "q4_1": 3, "q5_0": 6, "q5_1": 7, "q8_0": 8, "q2_K": 10, "q3_K": 11, "q4_K": 12, "q5_K": 13, "q6_K": 14,
         "iq4_nl": 20, "iq4_xs": 23, "mxfp4": 39}
SEEN = {("q4_0", 1): 15.3, ("q8_0", 1): 22.9, ("q4_K", 1): 17.3, ("q6_K", 1): 28.8, ("q4_0", 8): 34.7, ("q8_0", 8): 46.2,
        ("q4_K", 8): 69.6, ("q6_K", 8): 62.4, ("q4_0", 512): 308, ("q8_0", 512): 312, ("q4_K", 512): 342, ("q6_K", 512): 420,
        ("f16", 512): 131}
ROTATE_BYTES = 400 << 20
GRAPH_PRODUCTS = 60  # at least, of one graph of ggml's


class Product(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("queued", ctypes.c_int32), ("math", ctypes.c_int), ("expert_rows", ctypes.c_int64),
                ("experts", ctypes.c_void_p)]


def matrices(ours, values, name):
    """As many matrices as fill ROTATE_BYTES, all with the same blocks; and these."""
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
    return made, blocks


class GgmlCuda(Ggml):
    """Products of ggml's CUDA backend, as the nodes of one graph."""

    def __init__(self, folder):
        self.base = ctypes.CDLL(str(folder / "libggml-base.so"), mode=ctypes.RTLD_GLOBAL)
        self.cuda = ctypes.CDLL(str(folder / "libggml-cuda.so"))
        self.quiet = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda level, text, user: None)
        self.base.ggml_log_set(self.quiet, None)
        self.backend = self.call(self.cuda, "ggml_backend_cuda_init", ctypes.c_int(0))

    def set(self, tensor, host):
        self.call(self.base, "ggml_backend_tensor_set", tensor, ctypes.c_void_p(host.data_ptr()), ctypes.c_size_t(0),
                  ctypes.c_size_t(host.numel() * host.element_size()))

    def weights(self, name, blocks, copies, rows, cols):
        context = self.context(copies)
        made = [self.call(self.base, "ggml_new_tensor_2d", context, ctypes.c_int(TYPES[name]), ctypes.c_int64(cols), ctypes.c_int64(rows))
                for _ in range(copies)]
        buffer = self.call(self.base, "ggml_backend_alloc_ctx_tensors", context, self.backend)
        for one in made:
            self.set(one, blocks)
        return made, buffer, context

    def graph(self, weights, x):
        """Products of x with all weights in turn, some rounds of that: the graph, how many, the first result, and what to free."""
        count = -(-GRAPH_PRODUCTS // len(weights)) * len(weights)
        context = self.context(2 * count + 8)
        columns, cols = x.shape
        given = self.call(self.base, "ggml_new_tensor_2d", context, ctypes.c_int(0), ctypes.c_int64(cols), ctypes.c_int64(columns))
        results = [self.call(self.base, "ggml_mul_mat", context, weights[i % len(weights)], given) for i in range(count)]
        nodes = self.context(4 * count)
        graph = self.call(self.base, "ggml_new_graph_custom", nodes, ctypes.c_size_t(2 * count), ctypes.c_bool(False))
        for y in results:
            self.call(self.base, "ggml_build_forward_expand", graph, y)
        buffer = self.call(self.base, "ggml_backend_alloc_ctx_tensors", context, self.backend)
        self.set(given, x)
        return graph, count, results[0], ([buffer], [context, nodes])

    def read(self, result, columns, rows):
        y = torch.empty(columns, rows)
        self.call(self.base, "ggml_backend_tensor_get", result, ctypes.c_void_p(y.data_ptr()), ctypes.c_size_t(0),
                  ctypes.c_size_t(y.numel() * 4))
        return y

    def begin(self, graph):
        self.call(self.base, "ggml_backend_graph_compute_async", self.backend, graph)

    def synchronize(self):
        self.call(self.base, "ggml_backend_synchronize", self.backend)


def mean_error(y, exact):
    return ((y.cuda().double() - exact).abs().mean() / exact.abs().mean()).item()


def check_result(ours, matrix, x, n, values, given, product):
    """The mean error against PyTorch on the weights as they were coded, and what is exact."""
    out = Tensor()
    ours.check(ours.lib.ww_quant_multiply(matrix, ctypes.addressof(x), product, ctypes.addressof(out)))
    rows, cols = values.shape
    y = torch.empty(n, rows)
    ours.check(ours.lib.ww_tensor_to_host(ctypes.byref(out), ctypes.c_void_p(y.data_ptr())))
    ours.lib.ww_storage_release(out.storage)
    decoded = torch.empty(rows, cols)
    ours.check(ours.lib.ww_quant_read_f32(matrix, ctypes.c_int64(0), ctypes.c_int64(rows), ctypes.c_void_p(decoded.data_ptr())))
    exact = given.double().cuda() @ decoded.cuda().double().t()
    return mean_error(y, exact), exact


def issue_round(call, count, synchronize, turns):
    begin = time.perf_counter()
    for i in range(turns):
        call(i % count)
    issued = time.perf_counter()
    synchronize()
    return (time.perf_counter() - begin) / turns * 1e6, (issued - begin) / turns * 1e6


def measure(mine, ggml, torch_mm, turns):
    """Medians of microseconds: of ours, of a call of ours, of ggml's (None where it is not there), of PyTorch's."""
    rounds = []
    for _ in range(8):
        us, issued = issue_round(*mine, turns)
        theirs = None
        if ggml:
            peer, graph, count = ggml
            theirs = issue_round(lambda i: peer.begin(graph), 1, peer.synchronize, max(turns // count, 1))[0] / count
        rounds.append((us, issued, theirs, issue_round(*torch_mm, turns)[0]))
    return [statistics.median(r[i] for r in rounds[1:]) if rounds[0][i] is not None else None for i in range(4)]


def parts_of(call, count, synchronize, products=20):
    """The kernels of a product in their order, each with the medians of its duration, begin and end in microseconds."""
    synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        for i in range(products):
            call(i % count)
        synchronize()
    kernels = sorted((event.time_range.start, event.time_range.end, event.name) for event in seen.events()
                     if event.device_type == torch.autograd.DeviceType.CUDA and event.name.startswith("quant_"))
    each = len(kernels) // products
    found = []
    for k in range(each):
        of_kernel = [(*kernels[p * each + k], kernels[p * each][0]) for p in range(products // 4, products)]
        median = [statistics.median(values) for values in zip(*((end - begin, begin - first, end - first) for begin, end, _, first in of_kernel))]
        found.append((of_kernel[0][2], *median))
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--ggml", type=Path)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--cols", type=int, default=14336)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--types", default="q4_0,q8_0,q4_K,q6_K")
    parser.add_argument("--columns", default="1,8,512")
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--parts", action="store_true")
    options = parser.parse_args()
    ours = Library(options.library, options.device)
    ggml = GgmlCuda(options.ggml) if options.ggml else None
    asked = Product(ctypes.sizeof(Product), 1, 1 if options.fast else 0, 0, None)
    multiply, release = ours.lib.ww_quant_multiply, ours.lib.ww_tensor_release
    multiply.argtypes, release.argtypes = [ctypes.c_void_p] * 4, [ctypes.c_void_p]
    torch.manual_seed(1)
    values = torch.randn(options.rows, options.cols, device="cuda").cpu()
    half = [values.half().cuda() for _ in range(4)]
    print(f"| type | n | us | GB/s of weights | issue, us | f16 PyTorch, us | ggml{'' if ggml else ' (seen)'}, us | times ggml | error | ggml's |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name in options.types.split(","):
        made, blocks = matrices(ours, values, name)
        size = blocks.numel()
        weights = ggml.weights(name, blocks, len(made), options.rows, options.cols) if ggml else None
        for n in [int(c) for c in options.columns.split(",")]:
            given = torch.randn(n, options.cols)
            x = ours.tensor(given, "f32", [n, options.cols])
            peer_x = given.half().cuda()
            out, product, tensor = Tensor(), ctypes.addressof(asked), ctypes.addressof(x)
            where = ctypes.addressof(out)

            def call(i):
                if multiply(made[i], tensor, product, where) != 0:
                    ours.check(1)
                release(where)

            turns = options.turns if n < 64 else max(options.turns // 5, 10)
            error, exact = check_result(ours, made[0], x, n, values, given, product)
            replayed, theirs_error = None, None
            if ggml:
                graph, count, first, held = ggml.graph(weights[0], given)
                ggml.begin(graph)
                ggml.synchronize()
                theirs_error = mean_error(ggml.read(first, n, options.rows), exact)
                replayed = (ggml, graph, count)
            us, issue, theirs, f16 = measure((call, len(made), ours.synchronize), replayed,
                                             (lambda i: torch.mm(peer_x, half[i % 4].t()), len(made), torch.cuda.synchronize), turns)
            parts = parts_of(call, len(made), ours.synchronize) if options.parts else None
            if ggml:
                ggml.free(*held)
            theirs = theirs or SEEN.get((name, n))
            print(f"| {name} | {n} | {us:.1f} | {size / us / 1e3:.0f} | {issue:.1f} | {f16:.1f} | {f'{theirs:.1f}' if theirs else '-'} | "
                  f"{f'{theirs / us:.2f}' if theirs else '-'} | {error:.5f} | {f'{theirs_error:.5f}' if ggml else '-'} |", flush=True)
            if parts:
                print(f"parts of {name}, n = {n}: " + ", ".join(f"{kernel} {us:.1f} us ({begin:.1f}..{end:.1f})" for kernel, us, begin, end in parts))
            release(ctypes.addressof(x))
        if ggml:
            ggml.free([weights[1]], [weights[2]])
        for one in made:
            ours.lib.ww_quant_destroy(one)


if __name__ == "__main__":
    main()
