#!/usr/bin/env python3
"""How far calculated times can be trusted: counts what kernels ask of an NVIDIA card with ncu, calculates from the counts as
docs/evidence/amd-performance.md does for AMD's cards, and prints that beside the time that ncu measured of the same kernels.

    scripts/gpu/ncu-counts.py GPU_WORKLOADS... > docs/evidence/ncu-counts.tsv

GPU_WORKLOADS are programs gpu_workloads of builds for different chips (build/tests/gpu_workloads, another of CHIPS=sm_75). Each workload is run once
under ncu; kernels that prepare it are left out. Lines: workload, build, longest kernel, seconds calculated, the pipe that binds, seconds measured, coalescing,
bank conflicts, occupancy. What went wrong goes to the errors' output, and the table goes on."""
import csv
import io
import os
import subprocess
import sys

# The H200's, as NVIDIA publishes them: units, clock, memory; a unit issues four instructions a clock, two shares of fma, half of the others, and its
# shared memory gives 128 bytes. What the units ask of the L2 counts, 5.5 TB/s of it (not published), not what the L2 asks of the memory.
UNITS, CLOCK, MEMORY, SECOND_LEVEL = 132, 1.98e9, 4.8e12, 5.5e12
KEYS = ["search-1-128", "search-1-128-screened", "search-1000-128", "search-1000-128-screened", "quant-q4_0-1", "quant-q8_0-1", "quant-q4_k-1",
        "quant-q6_k-1", "quant-q4_0-8", "quant-q4_k-8", "quant-q4_0-512", "quant-q4_k-512", "add", "exp", "softmax", "layer_norm", "sum", "argmax", "sort",
        "conv2d-canonical", "conv2d-fast"]
PREPARING = ("tensor_random", "rows_pack", "rows_gather", "rows_unpack", "screen_code", "quant_encode", "tensor_set")
METRICS = {
    "seconds": "gpu__time_duration.sum", "dram": "dram__bytes.sum", "l2": "lts__t_sectors_srcunit_tex.sum", "issued": "smsp__inst_executed.sum",
    "fma": "sm__inst_executed_pipe_fma.sum", "alu": "sm__inst_executed_pipe_alu.sum", "xu": "sm__inst_executed_pipe_xu.sum",
    "tensor": "sm__pipe_tensor_cycles_active.sum", "fp16": "sm__inst_executed_pipe_fp16.sum",
    "lsu": "l1tex__data_pipe_lsu_wavefronts.sum", "shared": "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "coalescing": "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct", "warps": "sm__warps_active.avg.pct_of_peak_sustained_active",
}
UNIT_OF = {"nsecond": 1e-9, "ns": 1e-9, "usecond": 1e-6, "us": 1e-6, "msecond": 1e-3, "ms": 1e-3, "second": 1.0, "s": 1.0, "sector": 32,
           "byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12}


def known_metrics():
    """The metrics that this version of ncu has: their names differ between versions."""
    listed = subprocess.run(["ncu", "--query-metrics"], capture_output=True, text=True, check=False).stdout
    names = {line.split()[0] for line in listed.splitlines() if line and not line.startswith(("-", "="))}
    found = {key: metric for key, metric in METRICS.items() if metric.split(".")[0] in names}
    return found if "seconds" in found else METRICS


def launches(program, key, metrics):
    """Each kernel that ran: its name and its counts."""
    command = ["ncu", "--csv", "--target-processes", "all", "--metrics", ",".join(metrics.values()), program, "cuda:0", "--once", key]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    if not lines:
        raise RuntimeError((done.stdout + done.stderr).strip().replace("\n", " ")[-300:])
    names, found = {metric: key for key, metric in metrics.items()}, {}
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        launch = found.setdefault(row["ID"], {"kernel": row["Kernel Name"].split("(")[0]})
        if row["Metric Name"] in names and row["Metric Value"]:
            launch[names[row["Metric Name"]]] = float(row["Metric Value"].replace(",", "")) * UNIT_OF.get(row["Metric Unit"], 1)
    return [launch for launch in found.values() if not launch["kernel"].startswith(PREPARING)]


def pipes(launch):
    """The minimum time that each pipe is busy, in seconds, if all units share the work evenly. An instruction of a warp takes two clocks of a pipe of
    16 lanes."""
    clocks = UNITS * CLOCK
    each = {"memory": launch.get("dram", 0) / MEMORY, "second-level cache": launch.get("l2", 0) / SECOND_LEVEL,
            "issue": launch.get("issued", 0) / 4 / clocks, "fma": launch.get("fma", 0) / 4 / clocks, "alu": launch.get("alu", 0) / 2 / clocks,
            "transcendental": launch.get("xu", 0) * 2 / clocks, "matrix": launch.get("tensor", 0) / 4 / clocks,
            "vector cache and shared memory": launch.get("lsu", 0) / clocks}
    return each


def main():
    metrics = known_metrics()
    print("# workload, build, longest kernel, s calculated, binds, s measured (ncu), coalescing %, bank conflicts % of wavefronts, occupancy %")
    for program in sys.argv[1:]:
        build = os.path.basename(os.path.dirname(os.path.dirname(os.path.abspath(program))))
        for key in KEYS:
            try:
                longest = max(launches(program, key, metrics), key=lambda launch: launch.get("seconds", 0.0))
            except (RuntimeError, ValueError, subprocess.TimeoutExpired) as wrong:
                print(f"{build} {key}: {str(wrong)[:300]}", file=sys.stderr)
                continue
            each = pipes(longest)
            binds = max(each, key=each.get)
            conflicts = 100 * longest.get("conflicts", 0) / longest["shared"] if longest.get("shared") else 0.0
            print(f"{key}\t{build}\t{longest['kernel']}\t{each[binds]:.4g}\t{binds}\t{longest['seconds']:.4g}\t{longest.get('coalescing', 0):.0f}\t"
                  f"{conflicts:.0f}\t{longest.get('warps', 0):.0f}", flush=True)


if __name__ == "__main__":
    main()
