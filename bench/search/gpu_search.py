"""Times exact search on an NVIDIA GPU beside PyTorch (matmul and topk in fp32, TF32 off), in one run, and prints a table.

usage: python3 bench/search/gpu_search.py BUILD [--device cuda:0] [--shapes 1000000x128,...] [--queries 1,16,1000] [--metric dot]
                                         [--screen none|int8] [--repeat N] [--no-check] [--out FILE]

Needs numpy and PyTorch. Ours is timed from the call to its return: queries go up, results come down. PyTorch is timed twice: the
same way, and with queries and results left on the GPU. Results of a sample of queries are compared with our CPU device,
rows and score bits; a difference ends the run.
"""
import argparse
import ctypes
import datetime
import statistics
import subprocess
import sys
import time

import numpy as np
import torch

from contestants import K, api, pointer, sized

METRICS = {"cosine": 0, "l2": 1, "dot": 2}
SCREENS = {"int8": 0, "none": 1}
PYTORCH_SCORES_BYTES = 48 << 30  # more than this at a time goes in pieces


class Collection:
    """A collection of ours on one device."""

    def __init__(self, library, device, metric, dim, screen):
        self.library, self.dim = library, dim
        self.device, self.handle = ctypes.c_void_p(), ctypes.c_void_p()
        self.check(library.ww_device_open(device.encode(), ctypes.byref(self.device)))
        config = sized(api.ww_collection_config, dim=dim, metric=METRICS[metric], screen=SCREENS[screen])
        self.check(library.ww_collection_create(self.device, ctypes.byref(config), ctypes.byref(self.handle)))

    def check(self, status):
        if status != 0:
            raise RuntimeError(self.library.ww_error_message().decode())

    def add(self, rows):
        batch = sized(api.ww_rows, count=rows.shape[0], dim=self.dim, vectors=rows.ctypes.data)
        start = time.perf_counter()
        self.check(self.library.ww_collection_add(self.handle, ctypes.byref(batch)))
        return time.perf_counter() - start

    def clear(self):
        self.check(self.library.ww_collection_clear(self.handle))

    def searcher(self, queries):
        """A function that searches, and the arrays it fills."""
        ids = np.empty((len(queries), K), np.int64)
        scores = np.empty((len(queries), K), np.float32)
        search = sized(api.ww_query, queries=queries.ctypes.data, query_count=len(queries), dim=self.dim, k=K)
        arguments = (self.handle, ctypes.byref(search), pointer(ids, ctypes.c_int64), pointer(scores))
        call = self.library.ww_collection_search

        def run():
            self.check(call(*arguments))
        run.queries = queries  # what `search` points at lives as long as the function
        return run, ids, scores

    def close(self):
        self.library.ww_collection_destroy(self.handle)
        self.library.ww_device_close(self.device)


def wall_ms(run, repeat):
    """Median, and the least, of `repeat` calls after some to warm up."""
    for _ in range(max(3, repeat // 10)):
        run()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times), min(times)


def event_ms(run, repeat):
    for _ in range(max(3, repeat // 10)):
        run()
    times = []
    for _ in range(repeat):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def pytorch_best(rows, queries):
    """The k best of each query, in pieces where the scores of all would not fit."""
    piece = max(1, PYTORCH_SCORES_BYTES // (4 * len(rows)))
    found = [torch.topk(torch.matmul(queries[i:i + piece], rows.T), K) for i in range(0, len(queries), piece)]
    return torch.cat([f.values for f in found]), torch.cat([f.indices for f in found])


def read_bandwidth():
    """What a plain read reaches, in GB/s: the fastest of PyTorch's reductions over 4 GB."""
    data = torch.ones(1 << 30, device="cuda")
    best = 0.0
    for reduce in (torch.sum, torch.amax):
        best = max(best, data.numel() * 4 / event_ms(lambda: reduce(data), 20) / 1e6)
    return best


def pinned_bandwidth():
    host = torch.empty(1 << 28, pin_memory=True)
    there = torch.empty(1 << 28, device="cuda")
    return host.numel() * 4 / event_ms(lambda: there.copy_(host, non_blocking=True), 10) / 1e6


def check_bits(cpu, ours, queries, text):
    """All queries on the GPU, a sample of them on the CPU: the same rows with the same bits."""
    sample = np.unique(np.linspace(0, len(queries) - 1, min(len(queries), 6)).astype(int))
    run, ids, scores = ours.searcher(queries)
    run_sample, sample_ids, sample_scores = cpu.searcher(np.ascontiguousarray(queries[sample]))
    run()
    run_sample()
    if not (np.array_equal(ids[sample], sample_ids)
            and np.array_equal(scores[sample].view(np.uint32), sample_scores.view(np.uint32))):
        sys.exit(f"{text}: the GPU's results are not the CPU's")


def bench_shape(options, library, rows_count, dim, floor_gbs, copy_gbs, lines):
    torch.cuda.empty_cache()
    generator = torch.Generator(device="cuda").manual_seed(dim)
    rows_gpu = torch.randn((rows_count, dim), device="cuda", generator=generator)
    rows = rows_gpu.cpu().numpy()
    queries_all = torch.randn((max(options.queries), dim), device="cuda", generator=generator).cpu().numpy()
    ours = Collection(library, options.device, options.metric, dim, options.screen)
    ours.add(rows)  # first of all: staging memory and segments are made
    ours.clear()
    seconds = ours.add(rows)
    add_gbs = rows.nbytes / seconds / 1e9
    print(f"{rows_count} x {dim}: add {add_gbs:.1f} GB/s, {rows_count / seconds / 1e6:.1f} M rows/s; pinned copy {copy_gbs:.1f} GB/s",
          flush=True)
    lines.append((rows_count, dim, "add", f"{seconds * 1e3:.1f} ms, {add_gbs:.1f} GB/s ({add_gbs / copy_gbs:.0%} of a pinned copy)"))
    if not options.no_check:
        cpu = Collection(library, "cpu", options.metric, dim, "none")
        cpu.add(rows)
        for count in options.queries:
            check_bits(cpu, ours, np.ascontiguousarray(queries_all[:count]), f"{rows_count} x {dim}, {count} queries")
        cpu.close()
    row_bytes = rows_count * ((dim + 63) // 64 * 64) * 4
    for count in options.queries:
        queries = np.ascontiguousarray(queries_all[:count])
        repeat = options.repeat or (200 if count == 1 else 50 if count <= 64 else 10)
        run, _, _ = ours.searcher(queries)
        ours_ms, ours_min = wall_ms(run, repeat)
        queries_gpu = torch.from_numpy(queries).cuda()
        theirs_ms = event_ms(lambda: pytorch_best(rows_gpu, queries_gpu), max(5, repeat // 4))

        def end_to_end():
            values, indices = pytorch_best(rows_gpu, torch.from_numpy(queries).cuda())
            return values.cpu(), indices.cpu()
        theirs_whole_ms, _ = wall_ms(end_to_end, max(5, repeat // 4))
        floor_ms = row_bytes / floor_gbs / 1e6
        line = (f"{ours_ms:.3f} ms (min {ours_min:.3f}), read floor {floor_ms:.3f} ms ({floor_ms / ours_ms:.0%}), PyTorch {theirs_ms:.3f} ms on the GPU, "
                f"{theirs_whole_ms:.3f} ms in all: {theirs_ms / ours_ms:.2f}x, {theirs_whole_ms / ours_ms:.2f}x")
        print(f"{rows_count} x {dim}, {count} queries: {line}", flush=True)
        lines.append((rows_count, dim, count, (ours_ms, floor_ms, theirs_ms, theirs_whole_ms)))
    ours.close()


def table(options, lines, floor_gbs, copy_gbs):
    torch_text = f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}"
    driver = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True, text=True)
    yield f"{torch_text}, driver {driver.stdout.strip()}, {datetime.date.today()}; k={K}, {options.metric}, screen: {options.screen}."
    yield f"A plain read reaches {floor_gbs / 1e3:.2f} TB/s, a pinned copy to the GPU {copy_gbs:.1f} GB/s."
    yield ""
    yield "| rows | dim | queries | ours, end to end | floor of one read | of the floor | PyTorch, on the GPU | PyTorch, end to end | times PyTorch |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for rows, dim, count, values in lines:
        if count == "add":
            yield f"| {rows} | {dim} | add | {values} | | | | | |"
            continue
        ours, floor, theirs, whole = values
        yield (f"| {rows} | {dim} | {count} | {ours:.3f} ms | {floor:.3f} ms | {floor / ours:.0%} | {theirs:.3f} ms | {whole:.3f} ms "
               f"| {theirs / ours:.2f} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--shapes", default="1000000x128,1000000x768,10000000x128")
    parser.add_argument("--queries", default="1,16,1000", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--metric", default="dot", choices=METRICS)
    parser.add_argument("--screen", default="none", choices=SCREENS)
    parser.add_argument("--repeat", type=int, default=0)
    parser.add_argument("--no-check", action="store_true")
    parser.add_argument("--out")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")
    library = ctypes.CDLL(f"{options.build}/libwarpwave.so")
    library.ww_error_message.restype = ctypes.c_char_p
    floor_gbs, copy_gbs = read_bandwidth(), pinned_bandwidth()
    print(f"read {floor_gbs:.0f} GB/s, pinned copy {copy_gbs:.1f} GB/s", flush=True)
    lines = []
    for shape in options.shapes.split(","):
        rows_count, dim = (int(n) for n in shape.split("x"))
        bench_shape(options, library, rows_count, dim, floor_gbs, copy_gbs, lines)
    text = "\n".join(table(options, lines, floor_gbs, copy_gbs)) + "\n"
    print(text)
    if options.out:
        with open(options.out, "w") as file:
            file.write(text)


if __name__ == "__main__":
    main()
