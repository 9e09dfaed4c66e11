"""Times matrix products and a convolution beside their peers, both sides in one run, and prints a table.

usage: python3 bench/tensor/matmul.py BUILD [--device cpu|cuda:0] [--sizes 2048x2048x2048,...] [--types f32,f16,...] [--repeat N] [--conv]

On a CPU the peer is OpenBLAS, as numpy brings it (f32 and f64; both sides on the same two pinned threads), on a GPU PyTorch:
cuBLAS in fp32 with and without TF32, and in f16 and bf16, and cuDNN. The two sides take turns and the best time of each counts.
Every canonical product is checked against a chain of fused operations at a few of its elements.
"""
import argparse
import ctypes
import os
import time

import numpy as np

TYPES = {"u8": 0, "u32": 1, "i16": 2, "i32": 3, "i64": 4, "bf16": 5, "f16": 6, "f32": 7, "f64": 8, "f8e4m3": 9, "i8": 10}
NUMPY = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i8": np.int8}
CANONICAL, FAST = 0, 1
RANK_MAX = 8


class Layout(ctypes.Structure):
    _fields_ = [("rank", ctypes.c_int32), ("shape", ctypes.c_int64 * RANK_MAX), ("strides", ctypes.c_int64 * RANK_MAX),
                ("offset", ctypes.c_int64)]


class Tensor(ctypes.Structure):
    _fields_ = [("storage", ctypes.c_void_p), ("layout", Layout)]


class Conv(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("padding", ctypes.c_int64 * 2), ("stride", ctypes.c_int64 * 2),
                ("dilation", ctypes.c_int64 * 2), ("output_padding", ctypes.c_int64 * 2), ("groups", ctypes.c_int64),
                ("math", ctypes.c_int)]


class Ours:
    def __init__(self, build, device):
        self.library = ctypes.CDLL(os.path.join(build, "libwarpwave.so"))
        self.library.ww_error_message.restype = ctypes.c_char_p
        self.device = ctypes.c_void_p()
        self.check(self.library.ww_device_open(device.encode(), ctypes.byref(self.device)))

    def check(self, status):
        if status != 0:
            raise RuntimeError(self.library.ww_error_message().decode())

    def tensor(self, array, dtype):
        made, shape = Tensor(), (ctypes.c_int64 * RANK_MAX)(*array.shape)
        self.check(self.library.ww_tensor_from_host(self.device, TYPES[dtype], array.ndim, shape, array.ctypes.data_as(ctypes.c_void_p),
                                                    ctypes.byref(made)))
        return made

    def synchronize(self):
        self.check(self.library.ww_device_synchronize(self.device))

    def matmul(self, a, b, math):
        out = Tensor()
        self.check(self.library.ww_tensor_matmul(ctypes.byref(a), ctypes.byref(b), math, ctypes.byref(out)))
        return out

    def conv2d(self, x, w, math, padding):
        how, out = Conv(struct_size=ctypes.sizeof(Conv), groups=1, math=math), Tensor()
        for pair, value in ((how.padding, padding), (how.stride, 1), (how.dilation, 1)):
            pair[0] = pair[1] = value
        self.check(self.library.ww_tensor_conv2d(ctypes.byref(x), ctypes.byref(w), ctypes.byref(how), ctypes.byref(out)))
        return out

    def release(self, tensor):
        self.library.ww_tensor_release(ctypes.byref(tensor))

    def read(self, tensor, shape, dtype):
        array = np.empty(shape, dtype)
        self.check(self.library.ww_tensor_to_host(ctypes.byref(tensor), array.ctypes.data_as(ctypes.c_void_p)))
        return array


def bf16_bits(array):
    bits = array.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def host_array(random, shape, dtype):
    if dtype == "i8":
        return random.integers(-128, 128, shape, dtype=np.int8)
    values = random.standard_normal(shape, dtype=np.float32)
    return bf16_bits(values) if dtype == "bf16" else values.astype(NUMPY[dtype])


def check_bits(a, b, c, random):
    """f32: a chain of fma in chunks of 512; f64 holds each product exactly, and one rounding to f32 after each addition is
    nearly always what fma gives, so a few units of difference in the last place are let through."""
    for _ in range(16):
        i, j = random.integers(a.shape[0]), random.integers(b.shape[1])
        total = np.float32(0)
        for first in range(0, a.shape[1], 512):
            chunk = np.float32(0)
            for x, y in zip(a[i, first:first + 512].astype(np.float64), b[first:first + 512, j].astype(np.float64)):
                chunk = np.float32(x * y + np.float64(chunk))
            total = np.float32(total + chunk)
        if abs(float(c[i, j]) - float(total)) > 4 * np.spacing(np.float32(abs(total))):
            raise SystemExit(f"element {i}, {j} is {c[i, j]}, not {total}")


def contest(runs, repeat, synchronize):
    """The best time of each, taking turns."""
    best = {name: float("inf") for name in runs}
    for name, run in runs.items():
        run()
    synchronize()
    for _ in range(repeat):
        for name, run in runs.items():
            loops = max(1, min(50, int(0.02 / best[name]))) if best[name] < 1e9 else 1
            synchronize()
            start = time.perf_counter()
            for _ in range(loops):
                run()
            synchronize()
            best[name] = min(best[name], (time.perf_counter() - start) / loops)
    return best


def our_runs(ours, call):
    def run_with(math):
        def run():
            ours.release(call(math))
        return run
    return {"canonical": run_with(CANONICAL), "fast": run_with(FAST)}


def report(what, operations, times):
    line = f"{what:32}"
    for name, seconds in times.items():
        line += f"  {name} {seconds * 1e3:.3f} ms {operations / seconds / 1e9:.1f} G/s"
    print(line, flush=True)


def torch_runs(torch, call, plain_f32):
    """`call` in the peer: with TF32 and without where that is a choice."""
    def run_with(tf32):
        def run():
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
            call()
        return run
    return {"torch": run_with(False), "torch-tf32": run_with(True)} if plain_f32 else {"torch": run_with(False)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sizes", default="2048x2048x2048")
    parser.add_argument("--types", default="f32,f64,f16,bf16,i8")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--conv", action="store_true")
    options = parser.parse_args()
    on_cpu, random, ours = options.device == "cpu", np.random.default_rng(1), Ours(options.build, options.device)
    torch = None
    if not on_cpu:
        import torch

    def synchronize():
        ours.synchronize()
        if torch:
            torch.cuda.synchronize()

    def to_torch(array, dtype):
        there = torch.from_numpy(array if dtype != "bf16" else array.view(np.int16)).cuda()
        return there.view(torch.bfloat16) if dtype == "bf16" else there

    for size in options.sizes.split(","):
        m, k, n = map(int, size.split("x"))
        for dtype in options.types.split(","):
            a, b = host_array(random, (m, k), dtype), host_array(random, (k, n), dtype)
            x, y = ours.tensor(a, dtype), ours.tensor(b, dtype)
            runs = our_runs(ours, lambda math: ours.matmul(x, y, math))
            if on_cpu and dtype in ("f32", "f64"):
                runs["openblas"] = lambda: a @ b
            if torch and dtype != "i8":
                ta, tb = to_torch(a, dtype), to_torch(b, dtype)
                runs.update(torch_runs(torch, lambda: torch.matmul(ta, tb), dtype == "f32"))
            report(f"matmul {size} {dtype}", 2.0 * m * k * n, contest(runs, options.repeat, synchronize))
            if dtype == "f32":
                out = ours.matmul(x, y, CANONICAL)
                check_bits(a, b, ours.read(out, (m, n), np.float32), random)
                ours.release(out)
            ours.release(x)
            ours.release(y)
    if options.conv:
        for dtype in ("f32", "f16", "bf16"):
            image, kernel = host_array(random, (64, 64, 56, 56), dtype), host_array(random, (64, 64, 3, 3), dtype)
            x, y = ours.tensor(image, dtype), ours.tensor(kernel, dtype)
            runs = our_runs(ours, lambda math: ours.conv2d(x, y, math, 1))
            if torch:
                tx, tw = to_torch(image, dtype), to_torch(kernel, dtype)
                runs.update(torch_runs(torch, lambda: torch.nn.functional.conv2d(tx, tw, padding=1), dtype == "f32"))
            report(f"conv2d 64x64x56x56 3x3 {dtype}", 2.0 * 64 * 64 * 64 * 9 * 56 * 56, contest(runs, options.repeat, synchronize))


if __name__ == "__main__":
    main()
