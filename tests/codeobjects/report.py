#!/usr/bin/env python3
"""Writes what check.py left in BUILD_DIR/codeobjects: every kernel to BUILD_DIR/docs/codeobjects.md, the summary to docs/evidence/codeobjects.md.

    report.py BUILD_DIR CHIP..."""
import collections
import json
import pathlib
import sys
import tempfile

import reasons
import siblings
from structs import code_of, kernels_of
from unreached import missed

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/kernels"))

import code_evidence as evidence  # noqa: E402

HOW = """**There is no AMD GPU behind this page.** The AMD emulator of the repository tinygrad/tinygrad executed clang's machine code for each chip instruction by
instruction on a CPU. The results are emulated, never run on hardware.

Each test uses the C interface, once on the ROCm backend and once on the CPU, and the results must have the same bits. A stand-in for `libamdhip64.so`
(testing/standin) hands each launch to the emulator.

- Four orders of waves: one wave after the other up to each barrier; the same from the last wave to the first; switching waves after 97 and after 13
  instructions.
- Odd sizes: one row, rows that do not fill a block, dimensions of 1, 59, 65 and 200; removed rows, masks, ties, strides, special values, every type and
  every quantized format.
- Device memory ends within 256 bytes of a page that faults, shared memory is bounds-checked, and registers and shared memory start with garbage.
"""

PREAMBLE = "# Code objects executed\n\nWritten by `make check-codeobjects`. " + HOW + """
*launches* and *reached* belong to the kernel: *reached* counts its instructions that were executed at least once. Where that is less than four
fifths, [the second table](#what-is-not-reached) says what is left. *comparisons* belong to the test, which may serve several kernels.
"""

LIMITS = """
## What this does not show

- Caches, waits (`s_waitcnt`) and hazards: results are available at once, so a missing wait would pass.
- Timing, and what several blocks do at the same time: blocks run one after the other.
- `v_rcp`, `v_sqrt` and `v_exp` follow the host's mathematics in the last bit. The kernels use them only as a first guess that they then correct.
- Cosine of vectors with denormal norms and quotients of denormal numbers, which `make test` tests on emulated devices: the emulator's `v_div_scale`
  gives NaN for a denormal divisor (commit a9069c17), and AMD's text of that instruction and of `v_div_fmas` names two different scales.
- The runner (tests/codeobjects/emuloop.c, run_hsaco.py) executes what the emulator lacks or does wrongly, by AMD's manuals; a comment there lists it.

## Running it

```sh
git clone https://github.com/tinygrad/tinygrad && git -C tinygrad checkout a9069c177a9da9cca18593edf55acd2e6073cca6
TINYGRAD_PATH=$PWD/tinygrad make check-codeobjects
```
The first run takes four minutes on sixteen cores; a changed kernel takes seconds. `make test` executes a few kernels if it finds such a checkout. The
package `tinygrad` does not contain the emulator.
"""


# A kernel that came after the chip's last run of all of them, and was not run by itself since.
NOT_RUN = {"wave": 0, "status": "not run", "why": "it is newer than the run", "launches": 0, "checks": 0, "reached": 0, "instructions": 0, "beyond": []}


def renewed(build, chip, of_chip):
    """The results of a chip in the order of kernels.def. Kernels are matched with what the build has now."""
    here = set(kernels_of(ROOT, chip)[0])
    for module, kernel in kernels_of(ROOT)[0]:
        result = dict(of_chip.get(kernel, NOT_RUN))
        if (module, kernel) not in here:
            result = {**NOT_RUN, "status": "none", "why": ""}
        elif result.get("code") not in (None, code_of(build, module, chip)):
            result["status"] += " before its module was changed"
        yield kernel, result


def table(results, chips):
    yield f"\n| kernel | {' | '.join(f'{chip}, waves of {waves(results[chip])}' for chip in chips)} |"
    yield "|---|" + "---|" * len(chips)
    for kernel in results[chips[0]]:
        cells = []
        for chip in chips:
            result = results[chip][kernel]
            cells.append("the chip has none" if result["status"] == "none" else f"{result['status']}: {result['launches']} launches, {result['checks']} comparisons, "
                         f"{result['reached']} of {result['instructions']} reached")
        yield f"| `{kernel}` | {' | '.join(cells)} |"


def waves(kernels):
    return " and ".join(sorted({str(result["wave"]) for result in kernels.values() if result["wave"]}))


def beyond(results, chips):
    yield "\n## What failed, and what the emulator could not execute\n"
    found, absent = False, {}
    for chip in chips:
        for kernel, result in results[chip].items():
            if result["status"].startswith("not executed"):
                yield f"- {chip} `{kernel}`, not executed at all: {result['why']}"
                found = True
            if result["status"] == "not run":
                absent.setdefault(kernel, []).append(chip)
                found = True
            if result["status"].startswith("failed"):
                yield f"- {chip} `{kernel}` failed: {result['why']}"
                found = True
            for instruction in result["beyond"]:
                yield f"- {chip} `{kernel}`: {instruction}"
                found = True
    for where in sorted({tuple(chips_) for chips_ in absent.values()}, reverse=True):
        kernels = [f"`{kernel}`" for kernel in absent if tuple(absent[kernel]) == where]
        yield f"- Not executed on {', '.join(where)}, because they are newer than the run: {', '.join(kernels)}."
    if not found:
        yield f"Nothing: every instruction of every kernel of {', '.join(chips)} can be executed."
    elsewhere = [kernel for _, kernel in kernels_of(ROOT)[1]]
    if elsewhere:
        yield f"\n{len(elsewhere)} kernels of `src/kernels/kernels.def` are for NVIDIA chips only (cmake/Kernels.cmake) and are not among them."


REACHED_ENOUGH = 0.8
ASSEMBLED = ("gfx1030", "gfx1201")  # from assembler text that is edited in between (cmake/Kernels.cmake): without line tables

LEFT = """
For each kernel of which less than four fifths are reached on some chip: what is left on the chip with least, in percent of its instructions, by reason, and what
has none, by function. Functions are those that were inlined there; the kernel's name stands for what belongs to none of them.
"""


def unreached(build, results, chips):
    """Where the instructions come from that no test reaches, for the kernels with less than REACHED_ENOUGH on some chip, and why."""
    modules = {kernel: module for module, kernel in kernels_of(ROOT)[0]}
    rows, used = [], collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for kernel, module in modules.items():
            of = {chip: results[chip][kernel] for chip in chips if results[chip][kernel].get("executed")}
            low = {chip: result for chip, result in of.items() if result["reached"] < REACHED_ENOUGH * result["instructions"]}
            if not low:
                continue
            cells = [f"{100 * of[chip]['reached'] // of[chip]['instructions']}%" if chip in of else "" for chip in chips]
            told = {chip: result for chip, result in low.items() if chip not in ASSEMBLED and "before" not in result["status"]}
            if not told:
                rows.append(f"| `{kernel}` | {' | '.join(cells)} | | |")
                continue
            chip = min(told, key=lambda name: told[name]["reached"] / told[name]["instructions"])
            left, total = missed(build, module, kernel, chip, set(told[chip]["executed"]), folder)
            explained = collections.Counter(number for number in (reasons.why(kernel, chain, kind) for chain, kind in left) if number is not None)
            used.update(explained)
            without = collections.Counter(chain[0][2] or kernel for chain, kind in left if reasons.why(kernel, chain, kind) is None)
            because = ", ".join(f"{100 * count / total:.0f}% {letter(number)}" for number, count in explained.most_common() if 200 * count >= total)
            most = ", ".join(f"`{name}`" for name, _ in without.most_common(3))
            rows.append(f"| `{kernel}` | {' | '.join(cells)} | {chip}: {because or 'none'} | {100 * without.total() / total:.0f}%: {most} |")
    yield "\n## What is not reached\n" + LEFT
    for number in sorted(used):
        yield f"- {letter(number)}: {reasons.text(number)}."
    yield f"\n| kernel | {' | '.join(chips)} | left, by reason | left without one |\n|---|" + "--:|" * len(chips) + "---|---|"
    yield from rows
    stale = [reasons.text(number) for number in reasons.NUMBERS if number not in used]
    if stale:
        yield "\nReasons of tests/codeobjects/reasons.py that explain nothing of these any more, and can go:\n"
        yield from (f"- {text}" for text in stale)
        print("tests/codeobjects/reasons.py has reasons that explain nothing any more: " + "; ".join(stale), file=sys.stderr)


def letter(number):
    return "abcdefghijklmnopqrstuvwxyz"[number]


def not_executable(build, results, shares):
    """Chips that cannot be executed: how much of their code consists of instructions that were executed on other chips."""
    yield "\n## Chips whose code is only compiled\n"
    yield "The emulator has no decoder for these chips, or lacks some of their instructions. The table compares their instructions, by name and modifiers but without registers"
    yield "and numbers, with those that were executed in the code of similar chips; instructions that RDNA 3 renamed count under their new names. That an instruction does"
    yield "the same on both chips is what AMD's manuals say; it is not shown here.\n"
    told = [f"{chip} {result['status']}: {result['launches']} launches of `{kernel}`" for chip, _, of_chip in siblings.by_dot2(build, results)
            for kernel, result in of_chip.items() if "fast" in kernel]
    if told:
        yield "Fast products of f16 on gfx906, gfx1030 and gfx10-3-generic use `v_dot2_f32_f16`. The same source, compiled in that form for chips that can be executed"
        yield f"(`check.py --dot2`), gave the CPU's bits of whole numbers and was within the stated error of others: {'; '.join(told)}.\n"
    yield "| chip | executed on | instructions | of a kind that was executed | kinds that were not |\n|---|---|--:|--:|--:|"
    for chip, like, total, known, missing in shares:
        yield f"| {chip} | {' and '.join(like)} | {total} | {100 * known / total:.2f}% | {len(missing)} |"


def compiled_only():
    """The other chips; the long page says how much of their code consists of instructions that were executed."""
    chips = [chip for chip in evidence.other_targets() if "generic" not in chip]
    yield "\n## Chips whose code is only compiled\n"
    yield f"{', '.join(chips)} and the generic targets: the emulator has no decoder for these chips, or lacks some of their instructions. Their code"
    yield "comes from the same sources. `build/docs/codeobjects.md` compares their instructions with those that were executed on similar chips."


def not_executed_kinds(shares):
    kinds = {}
    for chip, _, _, _, missing in shares:
        for (name, modifiers), count, where in missing:
            told = "a sibling has it, where no test gets to" if where is None else f"executed on {' and '.join(where)}" if where else "no chip that can be executed has it"
            kinds.setdefault((" ".join((name, *modifiers)), told), []).append(f"{chip} {count}")
    yield "\nThese kinds were not executed on a similar chip:\n\n| instruction and modifiers | how often | elsewhere |\n|---|---|---|"
    for (kind, told), where in kinds.items():
        yield f"| `{kind.replace('|', 'abs')}` | {', '.join(where)} | {told} |"


def conclusion(build):
    """The counts, which belong to the table of hashes, not to this run (code_evidence.py)."""
    kernels, found_in = evidence.tree(build), evidence.read_table()
    yield evidence.BEGIN
    yield from evidence.page_counts(evidence.counts(kernels, found_in), found_in)
    yield evidence.END
    yield "\n**What binds this to the code.** Each line of the table has the hash of the kernel's source with all that it includes and its options, and of the machine"
    yield "code that was executed. `make lint` compares the first and fails if a kernel of a chip that README calls emulated has changed; `.ci/run` executes what"
    yield "changed in small cases; `make release` compares the second with what it packs.\n"
    yield "Instructions that are not reached are mostly the long form of 64-bit divisions, which needs tensors of more than 2^32 elements, and branches of a switch"
    yield "over types that the kernel never gets. `build/docs/codeobjects.md`, written by the same target, has every kernel and every reason."


def summary(build, results, chips):
    yield "# Code objects executed\n"
    yield from conclusion(build)
    yield "\n## How it is done\n"
    yield HOW.rstrip()
    yield from beyond(results, chips)
    yield from compiled_only()
    yield LIMITS.rstrip()


def main():
    build, chips = pathlib.Path(sys.argv[1]), sys.argv[2:]
    paths = {chip: build / "codeobjects" / f"{chip}.json" for chip in chips}
    read = {chip: json.loads(path.read_text(encoding="utf-8")) if path.exists() else {} for chip, path in paths.items()}
    if any(kernel not in read[chip] for chip in chips for _, kernel in kernels_of(ROOT, chip)[0]):
        print("codeobjects: some kernels were executed elsewhere, so only the counts of docs/evidence/codeobjects.md were renewed")
        return evidence.write(build)
    results = {chip: dict(renewed(build, chip, of_chip)) for chip, of_chip in read.items()}
    shares = list(siblings.shares(build, kernels_of(ROOT)[0], results))
    parts = [[PREAMBLE.rstrip()], table(results, chips), beyond(results, chips), unreached(build, results, chips), not_executable(build, results, shares),
             not_executed_kinds(shares), [LIMITS.rstrip()]]
    (build / "docs").mkdir(exist_ok=True)
    (build / "docs/codeobjects.md").write_text("\n".join(line for part in parts for line in part) + "\n", encoding="utf-8")
    (ROOT / "docs/evidence/codeobjects.md").write_text("\n".join(summary(build, results, chips)) + "\n", encoding="utf-8")
    return evidence.write(build)


if __name__ == "__main__":
    sys.exit(main())
