#!/usr/bin/env python3
"""Writes what performance.py calculated: every number to BUILD_DIR/docs/amd-performance.md, the summary to docs/evidence/amd-performance.md, and
beside it amd-performance.tsv for scripts/gpu/bench-gpu.sh.

    performance_page.py BUILD_DIR CHIP..."""
import json
import pathlib
import re
import sys
import textwrap

from cards import CARDS, SOURCES
from structs import is_stale, kernels_of
from workloads import PAGE, WORKLOADS

ROOT = pathlib.Path(__file__).resolve().parents[2]
PREAMBLE = """# AMD cards: calculated times

Written by `make check-amd-performance`. No AMD card was available: **every time below is calculated, none is measured**. Blocks of each kernel's machine
code were executed instruction by instruction (tests/codeobjects, as for docs/evidence/codeobjects.md) and counted: instructions by kind, the cache lines
of every global access and the bytes used of them, the clocks that banks of the LDS take, loads in flight at each wait. With what is published of the
card ([rates](#rates)) each pipe gets the time that it is busy at least, and the largest is the *calculated* time: a **lower bound**. Caches are
cold, the last round of blocks counts whole, launches and copies to the host are left out. A kernel on hardware is slower than this; by how much is shown for an
NVIDIA card [below](#how-far-to-trust-it).

- **floor**: bytes that must move by the memory's bandwidth, or operations that must be done by the card's peak, whichever is longer. **ratio**: floor by
  calculated time. A ratio above 100% says that the floor is wrong: it counts work that the kernel avoids. Such a row does not count as met.
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
- Bytes are multiplied by the fastest instruction of each chip: `v_mfma_i32_16x16x16i8` on gfx90a, `v_mfma_i32_16x16x32_i8` on gfx942, which does twice as
  much in a clock, `v_mfma_i32_16x16x64_i8` on gfx950, which does four times as much, `v_wmma_i32_16x16x16_iu8` on gfx1100 and gfx1201, the latter at twice the rate; [Instructions](#instructions) has how often.
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
    """The ratio for which a workload has a goal."""
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
    if round(ratio_of(workload, told), 2) > 1:
        return "wrong floor"  # what can be beaten is no floor, so nothing is known about the kernel
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
        own = f"{ratio_of(workload, told):.0%}" if "own" in told else ""
        when = " (before its kernels were changed)" if is_stale(build, chip, told, modules) else ""
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
            verdicts = [met(w, t, chip) for w, t in told]
            wrong = f", {verdicts.count('wrong floor')} with a wrong floor" if "wrong floor" in verdicts else ""
            cells.append(f"{verdicts.count('met')} of {len(told)}{wrong}, ratios {min(ratio_of(w, t) for w, t in told):.0%} to "
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


def measured_rows():
    """The output of scripts/gpu/ncu-counts.py on an NVIDIA card: workload, code, kernel, calculated seconds, the binding pipe, measured seconds."""
    path = ROOT / "docs/evidence/ncu-counts.tsv"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [line.split("\t")[:6] for line in lines if not line.startswith("#") and line.count("\t") >= 5]


def trust():
    """How much calculated times differ from measured ones, on a card that was available."""
    told = measured_rows()
    yield "\n## How far to trust it\n"
    if not told:
        yield "`scripts/gpu/ncu-counts.py` compares the calculation with times measured on an NVIDIA card; its table, `docs/evidence/ncu-counts.tsv`, does not exist."
        return
    ratios = {True: [], False: []}
    for _, _, _, calculated, binds, took in told:
        ratios[binds in ("memory", "second-level cache")].append(float(calculated) / float(took))
    near, far = (sorted(ratios[memory]) for memory in (True, False))
    yield ("The same calculation from `ncu`'s counts on an H200 (`docs/evidence/ncu-counts.tsv`), beside measured times: where memory or the second-level cache\n"
           f"binds ({len(near)} rows), the calculated time is {near[0]:.0%} to {near[-1]:.0%} of the measured one; where instructions or shared memory bind ({len(far)} rows),\n"
           f"{far[0]:.0%} to {far[-1]:.0%}, because the calculation never waits. **A ratio near 100% of a product or a batch says that no pipe is in the way, not that a card\n"
           "gets there.**")
    if near[-1] > 1 or far[-1] > 1:
        yield "\nWhere the calculated time is above 100% of the measured one, a published rate is too low: there the calculated time is no lower bound."


def trust_table():
    told = measured_rows()
    yield f"\nCode: the chip that the kernels were compiled for ({', '.join(sorted({row[1] for row in told}))}); the card runs each.\n"
    yield "| workload | code | kernel | calculated | binds | measured | calculated by measured |\n|---|---|---|--:|---|--:|--:|"
    for key, code, kernel, calculated, binds, took in told:
        yield f"| {key} | {code} | `{kernel}` | {time_text(float(calculated))} | {binds} | {time_text(float(took))} | {float(calculated) / float(took):.0%} |"


SUMMARY = """# AMD cards: calculated times

**No AMD card was available: every time here is calculated, none is measured.** `make check-amd-performance` executes blocks of each kernel's machine
code instruction by instruction ([how](codeobjects.md#running-it)), counts what they do, and divides by the rates that AMD publishes. The busiest pipe
gives the time: a **lower bound**, with cold caches, without launches and copies to the host.

The *floor* is the bytes that must move by the memory's bandwidth, or the operations that must be done by the card's peak, whichever is longer. The
percentage is floor by calculated time.
"""
GOALS = {"bandwidth": "One query, one column and operations on tensors: at least 80%, with 95% of each cache line used and under 5% of bank conflicts",
         "bytes": "The kernel that multiplies bytes, of many queries and 512 columns: at least 65%",
         "matrix": "Fast products: at least 60% (CDNA), 65% (RDNA)"}


def short_title(title):
    """Without the sizes that the text above the table says once."""
    return re.sub(r", (4096 x 14336|8192 x 4096|16 x 64 x 56 x 56, 3 x 3)$|, 4096\^3$", "", title)


def short_time(seconds):
    return f"{1e6 * seconds:.3g} us" if seconds < 0.9995e-3 else f"{1e3 * seconds:.3g} ms"


def goals(results, chips):
    """A line for each goal: how many rows met it, and for each card how many did not, and which of them is the worst."""
    yield "\n## What is wanted, and what is met\n"
    for group, text in GOALS.items():
        every, all_missed, cards = 0, 0, []
        for chip in chips:
            told = [(ratio_of(w, results[chip][w.key]), w.title, met(w, results[chip][w.key], chip)) for w in WORKLOADS
                    if w.group == group and w.key in results[chip]]
            missed = sorted(row for row in told if row[2] != "met")
            every, all_missed = every + len(told), all_missed + len(missed)
            if missed:
                ratio, title, _ = missed[0]
                wrong = sum(row[2] == "wrong floor" for row in missed)
                cards.append(f"{CARDS[chip].name} {len(missed)}{f' ({wrong} have a floor that is too high)' if wrong else ''}, the worst {short_title(title)}, {ratio:.0%}")
        line = f"- {text}: {every - all_missed} of {every} rows.{' Missed: ' + '; '.join(cards) + '.' if cards else ''}"
        yield textwrap.fill(line, 150, subsequent_indent="  ")


def times(results, chips):
    """The rows of the page; the others are in amd-performance.tsv."""
    yield "\n## Times\n"
    yield "Weights of 4096 x 14336, tensors of 8192 x 4096, products of 4096^3, images of 16 x 64 x 56 x 56 with 3 x 3 taps.\n"
    yield f"| | {' | '.join(CARDS[chip].name for chip in chips)} |"
    yield "|---|" + "--:|" * len(chips)
    for workload in WORKLOADS:
        told = [results[chip].get(workload.key) for chip in chips]
        if workload.key in PAGE:
            yield f"| {short_title(workload.title)} | " + " | ".join(f"{short_time(t['seconds'])}, {t['floor'] / t['seconds']:.0%}" if t else "-" for t in told) + " |"


def summary(build, results, chips):
    modules = {kernel: module for module, kernel in kernels_of(ROOT)[0]}
    yield SUMMARY.rstrip()
    old = sum(is_stale(build, chip, told, modules) for chip in chips for told in results[chip].values())
    every = sum(len(results[chip]) for chip in chips)
    left_out = len(WORKLOADS) * len(chips) - every
    if old:
        yield f"\n{old} of the {every} times were counted before their kernels were changed; today's code was not counted."
    yield from goals(results, chips)
    yield from times(results, chips)
    yield ("\n`build/docs/amd-performance.md` has every number behind this page: bound pipes, coalescing, bank conflicts, instructions by kind, rates of the cards"
           + ".\n[amd-performance.tsv](amd-performance.tsv) has more times.")
    if left_out:
        yield f"{left_out} of {every + left_out} pairs of workload and card were left out to save time, variants of these rows; `AMD_PERFORMANCE=all` counts them."
    yield from trust()
    yield RATES


RATES = """
## Rates

From AMD's product pages, white papers and instruction manuals; `tests/codeobjects/cards.py` has each with its source. The MI350X counts as 256 units at
2.2 GHz with 8 TB/s, 2307 TFLOP/s of f16, 4614 TOP/s of bytes, 144 TFLOP/s of f32, and 64 banks of shared memory; the MI355X is the same chip at 2.4 GHz.
Nobody publishes the latency of memory: 500 ns (CDNA) and 350 ns (RDNA) are taken."""


def main():
    build, chips = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    results = {chip: json.loads((build / "performance" / f"{chip}.json").read_text(encoding="utf-8")) for chip in chips}
    lines = [PREAMBLE.rstrip(), *wanted(results, chips)]
    for chip in chips:
        lines += table(build, chip, results[chip])
    lines += [*trust(), *trust_table(), *rates(chips), *instructions(results, chips)]
    (build / "docs").mkdir(exist_ok=True)
    (build / "docs/amd-performance.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    write_summary(build, results, chips)


def write_summary(build, results, chips):
    (ROOT / "docs/evidence/amd-performance.md").write_text("\n".join(summary(build, results, chips)) + "\n", encoding="utf-8")
    rows = ["# chip, workload (bench/gpu_workloads.c), milliseconds calculated, milliseconds of the floor; -: not counted"]
    for chip in chips:
        for workload in WORKLOADS:
            told = results[chip].get(workload.key)
            times = f"{1e3 * told['seconds']:.4f}\t{1e3 * told['floor']:.4f}" if told else "-\t-"
            rows.append(f"{chip}\t{workload.key}\t{times}")
    (ROOT / "docs/evidence/amd-performance.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
