#!/usr/bin/env python3
"""Reads from libraries and programs that users get whether they are hardened, and prints what is missing.

    scripts/package/check-hardening.py FILE ...

RELRO and BIND_NOW: what the loader fills in is read-only afterwards. No stack can be executed. Programs can be loaded anywhere (PIE). Stacks are
guarded, and libc checks the sizes that the compiler knows: their functions are among the imports. Functions that can be called indirectly begin with
endbr64 on x86-64, with bti or paciasp on ARM64: those that a library exports, and of a program a thousand.
"""
import pathlib
import re
import subprocess
import sys

# Instructions as they lie in the file, by machine.
LANDINGS = {"X86-64": {bytes.fromhex("f30f1efa")}, "AArch64": {bytes.fromhex("5f2403d5"), bytes.fromhex("3f2303d5"), bytes.fromhex("df2403d5")}}
WITHOUT_LANDING_MAX = 0.01  # of exported functions: the compiler leaves it out of some that only jump elsewhere
LANDINGS_OF_A_PROGRAM = 1000


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], check=True, capture_output=True, text=True).stdout


def offsets_of(path):
    """A function from an address to a place in the file."""
    loads = [tuple(int(word, 16) for word in match.groups()) for match in
             re.finditer(r"^  LOAD +(0x\w+) (0x\w+) 0x\w+ (0x\w+)", readelf("-l", path), flags=re.M)]
    return lambda address: next((offset + address - begin for offset, begin, size in loads if begin <= address < begin + size), None)


def wrong_with(path):
    header, segments, dynamic, symbols = (readelf(option, path) for option in ("-h", "-l", "-d", "--dyn-syms"))
    if "GNU_RELRO" not in segments:
        yield "has no RELRO segment (-z relro)"
    if not re.search(r"\bBIND_NOW\b|Flags:.*\bNOW\b", dynamic):
        yield "binds lazily (-z now)"
    if re.search(r"GNU_STACK .* RWE ", segments):
        yield "has an executable stack"
    if "INTERP" in segments and not re.search(r"Flags:.*\bPIE\b", dynamic):
        yield "is a program that is not position independent (-pie)"
    content = pathlib.Path(path).read_bytes()
    if "INTERP" in segments and b"libwarpwave.so" in content:
        return  # one call of the library: the wheel's command
    if "__stack_chk_fail" not in symbols:
        yield "has no guarded stacks (-fstack-protector-strong)"
    if not re.search(r"\b__\w+_chk\b", symbols):
        yield "calls no checked function of libc (-D_FORTIFY_SOURCE)"
    landings = next((found for machine, found in LANDINGS.items() if machine in header), None)
    if landings is None:
        return
    if "INTERP" in segments and sum(content.count(landing) for landing in landings) < LANDINGS_OF_A_PROGRAM:
        yield "marks few targets of indirect jumps (-fcf-protection, -mbranch-protection)"
    place = offsets_of(path)
    functions = [int(address, 16) for address in re.findall(r"^ +\d+: (\w+) +\d+ FUNC +GLOBAL +DEFAULT +\d+ ww_", symbols, flags=re.M)]
    without = sum(content[place(address):place(address) + 4] not in landings for address in functions)
    if without > WITHOUT_LANDING_MAX * len(functions):
        yield f"{without} of {len(functions)} exported functions do not begin with a target of indirect jumps (-fcf-protection, -mbranch-protection)"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    wrong = [f"{path}: {why}" for path in sys.argv[1:] for why in wrong_with(path)]
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    if wrong:
        sys.exit(1)
    print(f"hardening: {len(sys.argv) - 1} files are as they should be")


if __name__ == "__main__":
    main()
