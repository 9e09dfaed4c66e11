#!/usr/bin/env python3
"""Reductions, softmax, norms and sorting of tensors against PyTorch, on one device, in one run; as bench/tensor/tensors.py.

    bench/tensor/tensor_rows.py LIBWARPWAVE.SO [--device cuda:0] [--elements 67108864] [--columns 4096] [--turns 30] [--threads 2]
        [--types f32,f16,bf16]
"""
import argparse
import ctypes

import torch
import torch.nn.functional as functional

from tensors import BYTES, TORCH, Library, Tensor, in_turns, table_head, table_row

SUM, MIN, MAX, ARGMIN, ARGMAX, MEAN, PROD = range(7)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--elements", type=int, default=1 << 26)
    parser.add_argument("--columns", type=int, default=4096)
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--types", default="f32,f16,bf16")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    gpu = options.device != "cpu"
    where = "cuda" if gpu else "cpu"
    wait = torch.cuda.synchronize if gpu else (lambda: None)
    ours = Library(options.library, options.device)
    columns, n = options.columns, options.elements
    rows = n // columns
    table_head(options.device)
    for dtype in options.types.split(","):
        base = torch.randn(n, device=where).to(TORCH[dtype]).cpu()
        vector = torch.randn(columns).to(TORCH[dtype])
        x, w = ours.tensor(base, dtype, [rows, columns]), ours.tensor(vector, dtype, [columns])
        tx, tw = base.to(where).view(rows, columns), vector.to(where)
        few, tfew = ours.tensor(base[: n // 16], dtype, [rows // 16, columns]), tx[: rows // 16]
        b = BYTES[dtype]
        px, pw, pfew = ctypes.byref(x), ctypes.byref(w), ctypes.byref(few)

        def reduce(op, *dims):
            given = (ctypes.c_int32 * len(dims))(*dims)
            return lambda: ours.op("ww_tensor_reduce", ctypes.c_int(op), px, given, ctypes.c_int32(len(dims)))

        def sort(name, *arguments):
            
            def run():
                values, places = Tensor(), Tensor()
                ours.check(getattr(ours.lib, name)(pfew, *arguments, ctypes.byref(values), ctypes.byref(places)))
                ours.lib.ww_storage_release(values.storage)
                ours.lib.ww_storage_release(places.storage)

            return run

        eps = ctypes.c_double(1e-5)
        cases = [
            ("copy", 2 * b, lambda: ours.op("ww_tensor_contiguous", px), lambda: tx.clone()),
            ("sum of all", b, reduce(SUM, 0, 1), lambda: tx.sum()),
            ("sum of rows", b, reduce(SUM, 1), lambda: tx.sum(1)),
            ("sum of columns", b, reduce(SUM, 0), lambda: tx.sum(0)),
            ("max of rows", b, reduce(MAX, 1), lambda: tx.amax(1)),
            ("argmax of rows", b, reduce(ARGMAX, 1), lambda: tx.argmax(1)),
            ("softmax", 2 * b, lambda: ours.op("ww_tensor_softmax", px, ctypes.c_int32(-1)), lambda: torch.softmax(tx, -1)),
            ("layer_norm", 2 * b, lambda: ours.op("ww_tensor_layer_norm", px, pw, pw, eps),
             lambda: functional.layer_norm(tx, (columns,), tw, tw)),
            ("rms_norm", 2 * b, lambda: ours.op("ww_tensor_rms_norm", px, pw, eps), lambda: functional.rms_norm(tx, (columns,), tw)),
            ("sort, a 16th", 0, sort("ww_tensor_sort", ctypes.c_bool(False)), lambda: torch.sort(tfew, dim=-1, stable=True)),
            ("top 10, a 16th", 0, sort("ww_tensor_top_k", ctypes.c_int64(10), ctypes.c_bool(True)), lambda: torch.topk(tfew, 10)),
        ]
        for name, bytes_each, mine, theirs in cases:
            a, t = in_turns(mine, ours.synchronize, theirs, wait, options.turns)
            table_row(name, dtype, a, t, bytes_each * n)
        for made in (x, w, few):
            ours.lib.ww_storage_release(made.storage)


if __name__ == "__main__":
    main()
