#!/usr/bin/env python3
"""Writes docs/evidence/amd-performance.md, and beside it amd-performance.tsv for scripts/bench-gpu.sh, from what performance.py left:

    performance_page.py BUILD_DIR CHIP..."""
import json
import pathlib
import sys

from cards import CARDS, SOURCES
from structs import code_of, kernels_of
from workloads import WORKLOADS

ROOT = pathlib.Path(__file__).resolve().parents[2]
PREAMBLE = """# AMD cards: calculated times

Written by `make amd-performance`; do not edit. No AMD card was at hand: **every time below is calculated, none is measured**. Blocks of each kernel's machine
code were executed instruction by instruction (tests/codeobjects, as for [codeobjects.md](codeobjects.md)) and counted: instructions by kind, the cache lines
of every global access and the bytes used of them, the clocks that banks of the LDS take, loads in flight at each wait. With what is published of the
card ([rates](#rates)) each pipe gets the time that it is busy at least, and the largest is the *calculated* time: a **lower bound**. Caches are
cold, the last round of blocks counts whole, launches and copies to the host are left out. A kernel on hardware is slower than this; by how much is shown for an
NVIDIA card [below](#how-far-to-trust-it).

- **floor**: what cannot be avoided: bytes by the memory's bandwidth or operations by the card's peak, whichever is longer. **ratio**: floor by calculated time.
- **binds**: the pipe of the longest kernel. *one wave's instructions*: a SIMD has so few waves that the instructions of one wave, one every four (CDNA)
  clocks, take longer than any pipe.
- **coalescing**: bytes used of the cache lines that each access touches, all accesses together. Where lanes take turns with a line, two accesses use half
  of it each: 50%, though the memory gives it once.
- **working set**: the cache lines that the longest kernel reads and those that it writes, each once however often they are touched.
- **conflicts**: share of the LDS's clocks that is lost to banks. **waves**: resident waves a SIMD, by registers and shared memory.
- Searches are calculated for a slice of the card, its units with their share of rows and bandwidth, and multiplied; of 1000 queries the kernels that
  work for a query, not for rows, are calculated for the whole card. The screen's thresholds in a slice are made those that a sample of all rows would give, so
  that it keeps its share of what all keep.
- *multiplying kernel*: the ratio of that kernel alone, of 1000 screened queries and of 512 columns.
- *before its kernels were changed*: counted with the code that stood there then; what the code of today would give was not counted.
- *in an earlier build, the same code*: the row was kept from a run before this one; its longest kernel's machine code is the same, byte for byte.
- Bytes are multiplied by the fastest instruction of each chip: `v_mfma_i32_16x16x16i8` on gfx90a, `v_mfma_i32_16x16x32_i8` on gfx942, which does twice as
  much in a clock, `v_wmma_i32_16x16x16_iu8` on gfx1100 and gfx1201, the latter at twice the rate; [Instructions](#instructions) has how often.
- Four blocks of each launch are counted and multiplied by the number of all, or two groups of eight where blocks share rows; that this tells what a
  whole run does is checked before anything is counted (`tests/codeobjects/check_sampling.py`).
"""
WANTED = {"bandwidth": "at least 80%, coalescing 95%, conflicts under 5%", "bytes": "multiplying kernel at least 65%", "matrix": "at least 60% (CDNA), 65% (RDNA)",
          "": "none"}


def time_text(seconds):
    return f"{1e6 * seconds:.1f} us" if seconds < 1e-3 else f"{1e3 * seconds:.2f} ms"


def size_text(bytes_):
    return f"{bytes_ / 1e9:.2f} GB" if bytes_ >= 1e9 else f"{bytes_ / 1e6:.1f} MB"


def ratio_of(workload, told):
    """The ratio that something is wanted of."""
    if workload.group == "bytes" and "own" in told:
        return told["floor"] / told["own"]["seconds"]
    return told["floor"] / told["seconds"]


def met(workload, told, chip):
    least = {"bandwidth": 0.8, "bytes": 0.65, "matrix": 0.6 if chip.startswith("gfx9") else 0.65}.get(workload.group)
    if least is None:
        return "-"
    short = [] if ratio_of(workload, told) >= least else ["ratio"]
    if workload.group == "bandwidth":
        short += [] if told["coalescing"] >= 0.95 else ["coalescing"]
        short += [] if told["conflicts"] < 0.05 else ["conflicts"]
    return "met" if not short else "missed: " + ", ".join(short)


def table(build, chip, results):
    card, modules = CARDS[chip], {kernel: module for module, kernel in kernels_of(ROOT)[0]}
    yield f"\n## {card.name} ({chip})\n"
    yield "| workload | calculated | floor | ratio | multiplying kernel | longest kernel | binds | working set | coalescing | conflicts | idle lanes | waves | wanted |"
    yield "|---|--:|--:|--:|--:|---|---|--:|--:|--:|--:|--:|---|"
    for workload in WORKLOADS:
        if workload.key not in results:
            yield f"| {workload.title} | not calculated | | | | | | | | | | | |"
            continue
        told = results[workload.key]
        stale = any(kernel in modules and code != code_of(build, modules[kernel], chip) for kernel, code in told["code"].items())
        own = f"{ratio_of(workload, told):.0%}" if "own" in told else ""
        when = " (before its kernels were changed)" if stale else " (in an earlier build, the same code)" if told.get("earlier") else ""
        yield (f"| {workload.title}{when} | {time_text(told['seconds'])} | {time_text(told['floor'])} | "
               f"{told['floor'] / told['seconds']:.0%} | {own} | `{told['kernel']}` | {told['pipe']} | {size_text(told['pipes']['memory'] * card.memory_bytes)} | "
               f"{told['coalescing']:.0%} | {told['conflicts']:.0%} | "
               f"{told['idle_lanes']:.0%} | {told['waves']:.2g} | {met(workload, told, chip)} |")


def wanted(results, chips):
    yield "\n## What is wanted, and what is met\n"
    yield f"| | {' | '.join(CARDS[chip].name for chip in chips)} |"
    yield "|---|" + "---|" * len(chips)
    for group, text in WANTED.items():
        if not group:
            continue
        cells = []
        for chip in chips:
            told = [(w, results[chip][w.key]) for w in WORKLOADS if w.group == group and w.key in results[chip]]
            cells.append(f"{sum(met(w, t, chip) == 'met' for w, t in told)} of {len(told)}, ratios {min(ratio_of(w, t) for w, t in told):.0%} to "
                         f"{max(ratio_of(w, t) for w, t in told):.0%}" if told else "-")
        yield f"| {text} | {' | '.join(cells)} |"


def instructions(results, chips):
    yield "\n## Instructions\n"
    yield "Executed by waves in the blocks that were counted, of each workload's longest kernel.\n"
    for chip in chips:
        yield f"\n### {CARDS[chip].name}\n"
        yield "| workload | kernel | instructions |\n|---|---|---|"
        for workload in WORKLOADS:
            if workload.key in results[chip]:
                told = results[chip][workload.key]
                kinds = sorted(told["kinds"].items(), key=lambda kind: -kind[1])
                yield f"| {workload.title} | `{told['kernel']}` | {', '.join(f'{name} {count}' for name, count in kinds)} |"


def rates(chips):
    yield "\n## Rates\n"
    yield "| card | units | clock | memory | second-level cache, a clock | line | latency taken | multiply-adds a clock and unit: f32; matrix units |"
    yield "|---|--:|--:|--:|--:|--:|--:|---|"
    for chip in chips:
        card = CARDS[chip]
        matrix = ", ".join(f"{type_} {macs * card.simds}" for type_, macs in card.matrix.items())
        yield (f"| {card.name} | {card.units}{'' if card.vector_clocks == 4 else ' pairs'} | {card.clock_hz / 1e9:.2f} GHz | {card.memory_bytes / 1e9:.0f} GB/s | "
               f"{card.second_level_bytes} B | {card.line_bytes} B | {1e9 * card.latency_s:.0f} ns | {card.fma_a_clock}; {matrix} |")
    yield "\n" + SOURCES


def trust():
    """What scripts/ncu-counts.py told on an NVIDIA card."""
    yield "\n## How far to trust it\n"
    measured = ROOT / "docs/evidence/ncu-counts.tsv"
    if not measured.exists():
        yield ("The same calculation from `ncu`'s counts of the same kernels on an H200, beside their measured times, is made by `scripts/ncu-counts.py`; its table,\n"
               "`docs/evidence/ncu-counts.tsv`, is not there yet.")
        return
    yield ("The same calculation from `ncu`'s counts of the same kernels on an H200 (`scripts/ncu-counts.py`): the largest of its pipes, and the time that `ncu` measured. "
           "Kernels are the longest of each workload.\n")
    told = [line.split("\t") for line in measured.read_text(encoding="utf-8").splitlines() if not line.startswith("#") and line.count("\t") >= 5]
    ratios = {True: [], False: []}
    for _, _, _, calculated, binds, took, *_ in told:
        ratios[binds in ("memory", "second-level cache")].append(float(calculated) / float(took))
    near, far = (sorted(ratios[memory]) for memory in (True, False))
    yield (f"Where the memory or the second-level cache binds ({len(near)} rows), the calculated time is {near[0]:.0%} to {near[-1]:.0%} of the measured one, half of them over "
           f"{near[len(near) // 2]:.0%}; where instructions or shared memory do ({len(far)} rows), {far[0]:.0%} to {far[-1]:.0%}, half over {far[len(far) // 2]:.0%}, since nothing "
           "in the calculation waits. **So ratios near 100% of products, convolutions and batches say that no pipe is in the way, not that the card gets there.**\n")
    if near[-1] > 1 or far[-1] > 1:
        yield "Above 100% a rate that was taken is too low: there it is no lower bound.\n"
    yield f"Code: the chip that the kernels were compiled for ({', '.join(sorted({parts[1] for parts in told}))}); the card runs each.\n"
    yield "| workload | code | kernel | calculated | binds | measured | calculated by measured |\n|---|---|---|--:|---|--:|--:|"
    for key, code, kernel, calculated, binds, took, *_ in told:
        yield f"| {key} | {code} | `{kernel}` | {time_text(float(calculated))} | {binds} | {time_text(float(took))} | {float(calculated) / float(took):.0%} |"


def main():
    build, chips = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    results = {chip: json.loads((build / "performance" / f"{chip}.json").read_text(encoding="utf-8")) for chip in chips}
    lines = [PREAMBLE.rstrip(), *wanted(results, chips)]
    for chip in chips:
        lines += table(build, chip, results[chip])
    lines += [*trust(), *rates(chips), *instructions(results, chips)]
    lines += ["\n## Running it\n", "```sh", "TINYGRAD_PATH=/path/to/tinygrad make amd-performance", "```",
              "Some minutes a chip. The checkout of tinygrad is that of [codeobjects.md](codeobjects.md#running-it)."]
    (ROOT / "docs/evidence/amd-performance.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    rows = ["# chip, workload (bench/gpu_workloads.c), milliseconds calculated, milliseconds of the floor"]
    rows += [f"{chip}\t{key}\t{1e3 * told['seconds']:.4f}\t{1e3 * told['floor']:.4f}" for chip in chips for key, told in results[chip].items()]
    (ROOT / "docs/evidence/amd-performance.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
