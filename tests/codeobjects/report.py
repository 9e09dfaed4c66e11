#!/usr/bin/env python3
"""Prints docs/evidence/codeobjects.md from what check.py left in BUILD_DIR/codeobjects:   report.py BUILD_DIR CHIP..."""
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
PREAMBLE = """# Code objects executed

Written by `make test-codeobjects`; do not edit. There is no AMD GPU behind this table: the machine code that clang made for each chip
was executed instruction by instruction on a CPU, with the AMD emulator of the repository tinygrad/tinygrad. So the results below are
**emulated**, never run on hardware.

What is tested is the library: collections, tensors and quantized matrices are used through its C interface on its ROCm backend and on its CPU, and the results
must have the same bits. The backend runs over the stand-in for `libamdhip64.so` (tests/standin), which hands each launch over, with the code
object that the library chose and the arguments that it made; the emulator executes it on the memory that the library took. Each test is run with four
orders of waves: one after the other up to each barrier, the same from the last wave and block to the first, and taking turns after 97 and after
13 instructions. Sizes are odd (one row, rows that do not fill a block, dimensions of 1, 59, 65, 200; removed rows, masks, ties, strides, special
values, every type and every quantized format). Device memory ends, to 256 bytes, at a page that faults, shared memory is bounds-checked, and registers and shared
memory begin with garbage.

*launches* and *reached* are of the kernel: *reached* counts its instructions that were executed at least once. Where it is
less than four fifths, [the second table](#what-is-not-reached) says what is left. *comparisons* are of the test, which may serve several kernels.
"""

LIMITS = """
## What this does not show

- Caches, waits (`s_waitcnt`) and hazards are not modelled: an instruction's result is there at once. A missing wait would pass.
- Timing, and what several blocks do at the same time: blocks run one after the other.
- `v_rcp`, `v_sqrt` and `v_exp` follow the host's mathematics in the last bit. The kernels use them only as a first guess that is then corrected.
- A division of f32 with denormal operands gives an infinity there (`v_div_scale` does not scale), which the instruction set
  specifies otherwise. Cosine of vectors with denormal norms, and quotients of denormal numbers, are therefore left out here; they are
  tested on the emulated devices of `make test`.
- gfx90a's `v_mad_f32`, `v_mac_f32`, `v_madmk_f32`, `v_madak_f32` and `v_mfma_i32_16x16x16i8` are executed by the runner itself
  (tests/codeobjects/emuloop.c), as AMD's manual of the chip describes them: the emulator's decoder is of later chips, which have none of them.
  So are stores of whole dwords, which the emulator puts at multiples of four alone, and CDNA's additions with SDWA that make a carry, which
  it forgets; it also forgets absolute values and signs of operands with SDWA, which run_hsaco.py adds. The other matrix instructions, `v_mfma_i32_16x16x32_i8` and
  `v_wmma_i32_16x16x16_iu8`, are the emulator's own, but that it takes a constant third operand of the latter for a register: run_hsaco.py mends that.
- gfx906, gfx908, gfx1030, gfx1151 and the generic targets: see [above](#chips-whose-code-is-only-compiled).

## Running it

```sh
git clone https://github.com/tinygrad/tinygrad && git -C tinygrad checkout a9069c177a9da9cca18593edf55acd2e6073cca6
TINYGRAD_PATH=$PWD/tinygrad make test-codeobjects
```
It takes about forty minutes on two cores, most of it for translating instructions the first time. `make test` executes a few kernels, where it finds such a checkout: the package index's
`tinygrad` (0.14.0, wheel and source) does not carry the emulator, which lives in the repository's tests.
"""


# A kernel that came after the chip's last run of all of them, and was not run by itself since.
NOT_RUN = {"wave": 0, "status": "not run", "why": "it is newer than this table", "launches": 0, "checks": 0, "reached": 0, "instructions": 0, "beyond": []}


def renewed(build, chip, of_chip):
    """The results of a chip in the order of kernels.def; what was executed is told from what the build has now."""
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
    found = False
    for chip in chips:
        for kernel, result in results[chip].items():
            if result["status"].startswith("not executed"):
                yield f"- {chip} `{kernel}`, not executed at all: {result['why']}"
                found = True
            if result["status"] == "not run":
                yield f"- {chip} `{kernel}`: {result['why']}"
                found = True
            if result["status"].startswith("failed"):
                yield f"- {chip} `{kernel}` failed: {result['why']}"
                found = True
            for instruction in result["beyond"]:
                yield f"- {chip} `{kernel}`: {instruction}"
                found = True
    if not found:
        yield f"Nothing: every instruction of every kernel of {', '.join(chips)} can be executed."
    elsewhere = [kernel for _, kernel in kernels_of(ROOT)[1]]
    if elsewhere:
        yield f"\nNot among them, because AMD's chips have no code of theirs (cmake/Kernels.cmake): {', '.join(f'`{kernel}`' for kernel in elsewhere)}."


REACHED_ENOUGH = 0.8
ASSEMBLED = ("gfx1030", "gfx1201")  # from text that is mended in between (cmake/Kernels.cmake): without line tables

LEFT = """
For each kernel of which less than four fifths are reached on some chip: what is left on the chip with least, in percent of its instructions, by reason, and what
has none, by function. Functions are those that were inlined there; the kernel's name stands for what belongs to none of them.
"""


def unreached(build, results, chips):
    """Where the instructions come from that no test reaches, of the kernels with less than REACHED_ENOUGH on some chip, and why."""
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


def not_executable(build, results):
    """Chips that cannot be executed: how much of their code consists of instructions that were executed elsewhere."""
    yield "\n## Chips whose code is only compiled\n"
    yield "For these the emulator has no decoder, or not all instructions. By name and modifiers, and without registers and numbers, their instructions are those that"
    yield "were executed in the code of the chips beside them, to this share; old names of instructions that RDNA 3 has renamed count as the new ones. That an"
    yield "instruction does the same there is what AMD's manuals say, and is not shown here.\n"
    told = [f"{chip} {result['status']}: {result['launches']} launches of `{kernel}`" for chip, _, of_chip in siblings.by_dot2(build, results)
            for kernel, result in of_chip.items() if "fast" in kernel]
    if told:
        yield "Fast products of f16 on gfx906, gfx1030 and gfx10-3-generic are of `v_dot2_f32_f16`. The same source, compiled in that form for chips that can be executed"
        yield f"(`check.py --dot2`), gave the CPU's bits of whole numbers and was within the stated error of others: {'; '.join(told)}.\n"
    rows, kinds = [], {}
    for chip, like, total, known, missing in siblings.shares(build, kernels_of(ROOT)[0], results):
        rows.append(f"| {chip} | {' and '.join(like)} | {total} | {100 * known / total:.2f}% | {len(missing)} |")
        for (name, modifiers), count, where in missing:
            told = "a sibling has it, where no test gets to" if where is None else f"executed on {' and '.join(where)}" if where else "no chip that can be executed has it"
            kinds.setdefault((" ".join((name, *modifiers)), told), []).append(f"{chip} {count}")
    yield "| chip | executed on | instructions | of a kind that was executed | kinds that were not |\n|---|---|--:|--:|--:|"
    yield from rows
    yield "\nThese kinds were not executed on a sibling, all of them:\n\n| instruction and modifiers | how often | elsewhere |\n|---|---|---|"
    for (kind, told), where in kinds.items():
        yield f"| `{kind.replace('|', 'abs')}` | {', '.join(where)} | {told} |"


def main():
    build, chips = pathlib.Path(sys.argv[1]), sys.argv[2:]
    read = {chip: json.loads((build / "codeobjects" / f"{chip}.json").read_text(encoding="utf-8")) for chip in chips}
    results = {chip: dict(renewed(build, chip, of_chip)) for chip, of_chip in read.items()}
    print(PREAMBLE.rstrip())
    print("\n".join(table(results, chips)))
    print("\n".join(beyond(results, chips)))
    print("\n".join(unreached(build, results, chips)))
    print("\n".join(not_executable(build, results)))
    print(LIMITS.rstrip())


if __name__ == "__main__":
    main()
