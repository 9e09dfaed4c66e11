#!/usr/bin/env python3
"""Operations on tensors against PyTorch, on one device, in one run: time, bandwidth, and the ratio of the two.

    bench/tensor/tensors.py LIBWARPWAVE.SO [--device cuda:0] [--elements 67108864] [--turns 30] [--types f32,f16,bf16] [--only NAME,NAME]

On a GPU calls are queued, as PyTorch queues them, and the time is that of many, waited for together; on the CPU PyTorch gets as
many threads as the library uses. The first line is a plain copy, which is as fast as memory goes.
"""
import argparse
import ctypes
import functools
import statistics
import time

import torch
import torch.nn.functional as functional

DTYPES = {"u8": 0, "u32": 1, "i64": 4, "bf16": 5, "f16": 6, "f32": 7, "f64": 8}
TORCH = {"u8": torch.uint8, "i64": torch.int64, "bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "f64": torch.float64}
FUNCTIONS = (("neg", torch.neg), ("relu", torch.relu), ("recip", torch.reciprocal), ("sqrt", torch.sqrt), ("rsqrt", torch.rsqrt),
             ("exp", torch.exp), ("expm1", torch.expm1), ("log", torch.log), ("log1p", torch.log1p), ("sin", torch.sin),
             ("cos", torch.cos), ("tanh", torch.tanh), ("erf", torch.erf), ("sigmoid", torch.sigmoid), ("silu", functional.silu),
             ("gelu", lambda x: functional.gelu(x, approximate="tanh")), ("gelu_erf", functional.gelu))
BYTES = {"u8": 1, "i64": 8, "bf16": 2, "f16": 2, "f32": 4, "f64": 8}


class Layout(ctypes.Structure):
    _fields_ = [("rank", ctypes.c_int32), ("shape", ctypes.c_int64 * 8), ("strides", ctypes.c_int64 * 8), ("offset", ctypes.c_int64)]


class Tensor(ctypes.Structure):
    _fields_ = [("storage", ctypes.c_void_p), ("layout", Layout)]


class Library:
    def __init__(self, path, device):
        self.lib = ctypes.CDLL(path)
        self.lib.ww_error_message.restype = ctypes.c_char_p
        self.lib.ww_storage_release.argtypes = [ctypes.c_void_p]
        self.device = ctypes.c_void_p()
        self.check(self.lib.ww_device_open(device.encode(), ctypes.byref(self.device)))

    def check(self, status):
        if status != 0:
            raise RuntimeError(self.lib.ww_error_message().decode())

    def tensor(self, host, dtype, shape):
        made = Tensor()
        storage = ctypes.c_void_p()
        self.check(self.lib.ww_storage_from_host(self.device, DTYPES[dtype], ctypes.c_int64(host.numel()),
                                                 ctypes.c_void_p(host.data_ptr()), ctypes.byref(storage)))
        made.storage = storage.value
        made.layout.rank = len(shape)
        stride = 1
        for d in range(len(shape) - 1, -1, -1):
            made.layout.shape[d] = shape[d]
            made.layout.strides[d] = stride
            stride *= shape[d]
        return made

    def op(self, name, *arguments):
        out = Tensor()
        self.check(getattr(self.lib, name)(*arguments, ctypes.byref(out)))
        self.lib.ww_storage_release(out.storage)

    def synchronize(self):
        self.check(self.lib.ww_device_synchronize(self.device))


def seconds(call, synchronize, turns):
    begin = time.perf_counter()
    for _ in range(turns):
        call()
    synchronize()
    return (time.perf_counter() - begin) / turns


def in_turns(mine, synchronize, theirs, wait, turns):
    """Both sides warmed up, then by turns: the medians of five."""
    seconds(mine, synchronize, 2)
    seconds(theirs, wait, 2)
    rounds = [(seconds(mine, synchronize, turns), seconds(theirs, wait, turns)) for _ in range(5)]
    return statistics.median(a for a, _ in rounds), statistics.median(t for _, t in rounds)


def table_head(device):
    chip = torch.cuda.get_device_name() if device != "cpu" else "CPU"
    print(f"{chip}, PyTorch {torch.__version__}, {time.strftime('%Y-%m-%d')}; milliseconds, and how many times PyTorch's speed.\n")
    print("| operation | type | ours | PyTorch | GB/s | times PyTorch |\n|---|---|---|---|---|---|")


def table_row(name, dtype, a, t, moved):
    rate = f"{moved / a / 1e9:.0f}" if moved else ""
    print(f"| {name} | {dtype} | {a * 1e3:.3f} | {t * 1e3:.3f} | {rate} | {t / a:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--elements", type=int, default=1 << 26)
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--types", default="f32,f16,bf16")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    only = [name for name in options.only.split(",") if name]
    if options.threads:
        torch.set_num_threads(options.threads)
    gpu = options.device != "cpu"
    where = "cuda" if gpu else "cpu"
    wait = torch.cuda.synchronize if gpu else (lambda: None)
    ours = Library(options.library, options.device)
    n = options.elements
    columns = 4096
    rows = n // columns
    table_head(options.device)
    for dtype in options.types.split(","):
        base = torch.randn(n, device=where).to(TORCH[dtype]).cpu()
        other = (torch.randn(n, device=where) * 3).to(TORCH[dtype]).cpu()
        mask = torch.randint(0, 2, (n,), dtype=torch.uint8, device=where).cpu()
        x, y, m = (ours.tensor(t, d, [n]) for t, d in ((base, dtype), (other, dtype), (mask, "u8")))
        tx, ty, tm = base.to(where), other.to(where), mask.to(where).bool()
        matrix = ours.tensor(base, dtype, [rows, columns])
        bias = ours.tensor(other[:columns].contiguous(), dtype, [rows, columns])
        bias.layout.strides[0], bias.layout.strides[1] = 0, 1
        turned = ours.tensor(base, dtype, [columns, rows])
        turned.layout.strides[0], turned.layout.strides[1] = 1, columns
        ids = torch.randint(0, rows, (rows,), dtype=torch.int64)
        i, ti = ours.tensor(ids, "i64", [rows]), ids.to(where)
        tmatrix, tbias = tx.view(rows, columns), ty[:columns]
        b = BYTES[dtype]
        half, thalf = ("f16", torch.float16) if dtype == "f32" else ("f32", torch.float32)
        u = lambda k: (lambda: ours.op("ww_tensor_unary", ctypes.c_int(k), ctypes.byref(x)))
        bin_ = lambda k: (lambda: ours.op("ww_tensor_binary", ctypes.c_int(k), ctypes.byref(x), ctypes.byref(y)))
        number = ours.lib.ww_unary_of_name
        cases = [
            ("copy", 2 * b, lambda: ours.op("ww_tensor_contiguous", ctypes.byref(x)), lambda: tx.clone()),
            ("add", 3 * b, bin_(0), lambda: tx + ty),
            ("mul", 3 * b, bin_(2), lambda: tx * ty),
            ("add a row to all", 2 * b, lambda: ours.op("ww_tensor_binary", ctypes.c_int(0), ctypes.byref(matrix), ctypes.byref(bias)),
             lambda: tmatrix + tbias),
            *((name, 2 * b, u(number(name.encode())), functools.partial(call, tx)) for name, call in FUNCTIONS),
            ("elu", 2 * b, lambda: ours.op("ww_tensor_elu", ctypes.byref(x), ctypes.c_double(1.0)), lambda: functional.elu(tx)),
            ("powf", 2 * b, lambda: ours.op("ww_tensor_powf", ctypes.byref(x), ctypes.c_double(2.3)), lambda: torch.pow(tx, 2.3)),
            ("pow", 3 * b, bin_(ours.lib.ww_binary_of_name(b"pow")), lambda: torch.pow(tx, ty)),
            ("atan2", 3 * b, bin_(ours.lib.ww_binary_of_name(b"atan2")), lambda: torch.atan2(tx, ty)),
            ("affine", 2 * b, lambda: ours.op("ww_tensor_affine", ctypes.byref(x), ctypes.c_double(2.0), ctypes.c_double(1.0)),
             lambda: torch.add(ty[:1], tx, alpha=2.0)),
            (f"cast to {half}", b + BYTES[half], lambda: ours.op("ww_tensor_cast", ctypes.byref(x), ctypes.c_int(DTYPES[half])),
             lambda: tx.to(thalf)),
            ("cmp lt", 2 * b + 1, lambda: ours.op("ww_tensor_cmp", ctypes.c_int(2), ctypes.byref(x), ctypes.byref(y)), lambda: tx < ty),
            ("where", 3 * b + 1, lambda: ours.op("ww_tensor_where", ctypes.byref(m), ctypes.byref(x), ctypes.byref(y)),
             lambda: torch.where(tm, tx, ty)),
            ("transpose", 2 * b, lambda: ours.op("ww_tensor_contiguous", ctypes.byref(turned)), lambda: tmatrix.t().contiguous()),
            ("index_select rows", 2 * b, lambda: ours.op("ww_tensor_index_select", ctypes.byref(matrix), ctypes.byref(i), ctypes.c_int(0)),
             lambda: tmatrix.index_select(0, ti)),
            ("uniform", b, lambda: ours.op("ww_tensor_uniform", ours.device, ctypes.c_int(DTYPES[dtype]), ctypes.c_int(1),
                                           (ctypes.c_int64 * 1)(n), ctypes.c_double(0.0), ctypes.c_double(1.0)),
             lambda: torch.rand(n, dtype=TORCH[dtype], device=where)),
        ]
        for name, bytes_each, mine, theirs in cases:
            if only and name not in only:
                continue
            a, t = in_turns(mine, ours.synchronize, theirs, wait, options.turns)
            table_row(name, dtype, a, t, bytes_each * n)
        for made in (x, y, m, matrix, bias, turned, i):
            ours.lib.ww_storage_release(made.storage)


if __name__ == "__main__":
    main()
