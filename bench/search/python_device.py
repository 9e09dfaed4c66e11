#!/usr/bin/env python3
"""PyTorch's CUDA tensors as rows and queries: from the device's memory, and once more through the host.

    PYTHONPATH=python WARPWAVE_LIBRARY=build/libwarpwave.so python3 bench/search/python_device.py [--rows N] [--dim D] [--queries N] [--device cuda:0]

Both ways leave the same bits, which is checked. Through the host is what one had to write before, tensor.cpu().numpy(), with the copy counted
and the destination's memory ready. Times are the best of five; room for the rows is reserved. Without PyTorch, or on a device that it does not
have (emulator:32), the tensors are this package's own.
"""
import argparse
import time

import numpy as np

import warpwave

K = 10


def seconds(once, prepare=lambda: None, repeats=5):
    best = float("inf")
    for _ in range(repeats):
        prepare()
        began = time.perf_counter()
        once()
        best = min(best, time.perf_counter() - began)
    return best


def make_tensors(device, shapes):
    """Random tensors on the device, and how to bring one to the host."""
    if device.startswith("cuda"):
        try:
            import torch
        except ImportError:
            print("PyTorch is not installed: the tensors are warpwave's own")
        else:
            torch.manual_seed(1)
            made = [torch.randn(shape, device=device) for shape in shapes]
            torch.cuda.synchronize()
            return made, lambda tensor: tensor.cpu().numpy(), "torch"
    random = np.random.default_rng(1)
    return [warpwave.asarray(random.standard_normal(shape, np.float32), device=device) for shape in shapes], lambda tensor: tensor.numpy(), "warpwave"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=768)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--device", default="cuda:0")
    options = parser.parse_args()
    (rows, queries), to_host, library = make_tensors(options.device, [(options.rows, options.dim), (options.queries, options.dim)])
    there, through = (warpwave.Collection(options.dim, metric="dot", device=options.device, screen="int8") for _ in range(2))
    gigabytes = options.rows * options.dim * 4 / 1e9

    def empty(collection):
        collection.clear()
        collection.reserve(options.rows)

    print(f"{options.rows:,} x {options.dim} f32 ({gigabytes:.2f} GB), tensors of {library} on {warpwave.Device(options.device).info.name}")
    by_device = seconds(lambda: there.add(rows), lambda: empty(there))
    by_host = seconds(lambda: through.add(to_host(rows)), lambda: empty(through))
    print(f"add: from the device {by_device * 1e3:.1f} ms ({gigabytes / by_device:.0f} GB/s), through the host {by_host * 1e3:.1f} ms "
          f"({gigabytes / by_host:.1f} GB/s): {by_host / by_device:.1f} times as fast")
    for count in sorted({1, min(100, options.queries), options.queries}):
        some = queries[:count]
        a, b = there.search(some, K, ids=False), through.search(to_host(some), K, ids=False)
        assert np.array_equal(a.rows, b.rows) and np.array_equal(a.scores, b.scores), "the two ways differ"
        by_device = seconds(lambda: there.search(some, K, ids=False))
        by_host = seconds(lambda: there.search(to_host(some), K, ids=False))
        print(f"search of {count:,}, k = {K}: from the device {by_device * 1e3:.3f} ms, through the host {by_host * 1e3:.3f} ms: "
              f"{by_host / by_device:.2f} times as fast")


if __name__ == "__main__":
    main()
