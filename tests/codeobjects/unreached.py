#!/usr/bin/env python3
"""Says which lines of the source the instructions come from that no test of a kernel reaches.

    unreached.py BUILD_DIR CHIP KERNEL...      for each line: how many instructions, and through which lines it was inlined

The kernel's test (cases.py) is run once, in one order of waves. Lines are taken from a second compilation with line tables, whose
instructions must be the same, byte for byte.
"""
import collections
import itertools
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import reasons


def with_lines(build, module, chip, folder):
    """Compiles the module again by its build rule, with line tables."""
    rule = subprocess.run(["ninja", "-C", str(build), "-t", "commands", f"kernels/{module}.{chip}.hsaco"], check=True, capture_output=True,
                          text=True).stdout.splitlines()[-1]
    words = shlex.split(re.sub(r"-MD -MF \S+ -MT \S+", "", next(part for part in rule.split(" && ") if "--offload-arch" in part)))
    path = pathlib.Path(folder) / f"{module}.{chip}.hsaco"
    if not path.exists():
        words[words.index("-o") + 1] = str(path)
        subprocess.run(words + ["-gline-tables-only"], check=True)
    return path


def instructions_of(path, kernel):
    """The addresses of a kernel's instructions, their bytes and their text, without the padding after its end."""
    listing = subprocess.run(["llvm-objdump-19", "-d", f"--disassemble-symbols={kernel}", str(path)], check=True, capture_output=True, text=True).stdout
    found = [(int(address, 16), code, text) for text, address, code in re.findall(r"^\s+((?!s_code_end)\w.*?)\s*// ([0-9A-F]{12}): (.*)$", listing, flags=re.M)]
    while found and found[-1][2].startswith("s_nop"):
        found.pop()
    return found


def frames_of(path, addresses):
    """For each address, the file, line and function of everything that was inlined there, innermost first."""
    asked = "\n".join(f"{address:#x}" for address in addresses)
    found = subprocess.run(["llvm-symbolizer-19", f"--obj={path}", "--output-style=JSON"], input=asked, check=True, capture_output=True, text=True).stdout
    for text in found.splitlines():
        yield [(pathlib.Path(frame["FileName"]).name, frame["Line"], frame["FunctionName"]) for frame in json.loads(text)["Symbol"]]


def missed(build, module, kernel, chip, executed, folder):
    """Of each instruction that is not among those executed, which are told by their distance from the kernel's beginning, the frames and its kind (reasons.py);
    and how many instructions there are."""
    path = with_lines(build, module, chip, folder)
    places = instructions_of(path, kernel)
    if [code for _, code, _ in places] != [code for _, code, _ in instructions_of(build / "kernels" / f"{module}.{chip}.hsaco", kernel)]:
        raise SystemExit(f"{kernel}: with line tables its code is another")
    begin = places[0][0]
    left = [(number, at, text) for number, (at, _, text) in enumerate(places) if at - begin not in executed]
    frames = [tuple(chain) for chain in frames_of(path, [at for _, at, _ in left])]
    long = {chain for chain, (_, _, text) in zip(frames, left) if reasons.LONG_DIVISION.search(text)}
    branches = {number for _, run in itertools.groupby(enumerate(left), lambda pair: pair[1][0] - pair[0])
                for number in only_branches([of for _, of in run])}
    return [(chain, "division" if chain in long else "branches" if number in branches else None) for chain, (number, _, _) in zip(frames, left)], len(places)


def only_branches(run):
    """The indices of a run of instructions, if it only branches."""
    return [number for number, _, _ in run] if all(reasons.BRANCHES.match(text) for _, _, text in run) else []


def main():
    import cases
    from check import Bench, Setting
    from machine import ROOT
    from structs import kernels_of
    build, chip, wanted = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3:]
    setting, known = Setting(build, chip), {kernel: module for module, kernel in kernels_of(ROOT, chip)[0]}
    with tempfile.TemporaryDirectory() as folder:
        for kernel in wanted:
            bench = Bench(setting)
            bench.executor.counts, bench.executor.wrong, bench.executor.order = bench.counts, None, bench.order
            cases.TESTS[kernel](bench)
            frames, total = missed(build, known[kernel], kernel, chip, bench.counts[kernel].executed, folder)
            print(f"{kernel} on {chip}: {total - len(frames)} of {total} reached")
            for (lines, number), count in collections.Counter((tuple((file, line) for file, line, _ in chain), reasons.why(kernel, chain, kind))
                                                              for chain, kind in frames).most_common(40):
                print(f"{count:6}  " + " < ".join(f"{file}:{line}" for file, line in lines) + ("" if number is None else f"  (reason {number})"))


if __name__ == "__main__":
    main()
