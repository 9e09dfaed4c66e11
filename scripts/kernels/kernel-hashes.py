#!/usr/bin/env python3
"""Hashes the instructions of every kernel in a folder of code objects, names left out, so that a change that should move no instruction can
be seen to move none. A kernel that was renamed but not changed keeps its hash.

    scripts/kernels/kernel-hashes.py FOLDER                    a line a kernel: HASH CHIP MODULE KERNEL
    scripts/kernels/kernel-hashes.py FOLDER --against OLDER    the kernels whose hash no kernel of OLDER has for that chip, and a count
"""
import collections
import hashlib
import pathlib
import re
import sys

from code_objects import CodeObject


def functions_of_elf(path):
    """The code of each kernel in an AMD code object."""
    objects = CodeObject(path.read_bytes())
    for name in objects.kernels:
        yield name, objects.bytes_of(name)


def functions_of_ptx(path):
    """The text of each kernel, with its own name, labels and global names numbered as they come."""
    text = re.sub(r"//[^\n]*", "", path.read_text())
    for match in re.finditer(r"\.entry (\w+)\((.*?)^}", text, flags=re.M | re.S):
        body = match.group(2).replace(match.group(1), "KERNEL")
        numbers = {}
        body = re.sub(r"\$L__BB\d+_", "$L_", body)
        body = re.sub(r"(?<![\w.%$])[A-Za-z_]\w{6,}", lambda m: f"N{numbers.setdefault(m.group(), len(numbers))}", body)
        yield match.group(1), re.sub(r"\s+", " ", body).encode()


def hashes(folder):
    for path in sorted(pathlib.Path(folder).glob("*.*")):
        kind = path.suffix[1:]
        if kind in ("hsaco", "ptx"):
            module, chip = path.stem.split(".")
            for name, code in (functions_of_elf if kind == "hsaco" else functions_of_ptx)(path):
                yield hashlib.sha256(code).hexdigest()[:16], chip, module, name


def main():
    if len(sys.argv) == 2:
        for row in hashes(sys.argv[1]):
            print(*row)
        return
    if len(sys.argv) != 4 or sys.argv[2] != "--against":
        sys.exit(__doc__)
    older = {(chip, digest) for digest, chip, _, _ in hashes(sys.argv[3])}
    counts = collections.Counter()
    for digest, chip, module, name in hashes(sys.argv[1]):
        same = (chip, digest) in older
        counts["the same" if same else "changed"] += 1
        if not same:
            print("changed:", chip, module, name)
    print(", ".join(f"{count} {what}" for what, count in sorted(counts.items(), reverse=True)))


if __name__ == "__main__":
    main()
