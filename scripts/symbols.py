#!/usr/bin/env python3
"""The symbols that the library exports, which programs are linked with.

    scripts/symbols.py --check FILE     compares those of libwarpwave.so or libwarpwave.a with scripts/symbols.txt, and with the headers
    scripts/symbols.py --write FILE     writes that list

A symbol that is missing breaks programs: raise the minor version, which is part of the library's SONAME.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "scripts" / "symbols.txt"
OTHER_LIBRARIES = {"cluster.h"}  # headers whose functions are not in libwarpwave


def exported(path):
    """The global symbols that a library defines."""
    shared = not path.endswith(".a")
    options = ["-D"] if shared else ["-g"]
    printed = subprocess.run(["nm", *options, "--defined-only", path], check=True, capture_output=True, text=True).stdout
    return sorted({line.split()[2] for line in printed.split("\n") if len(line.split()) == 3})


def declared():
    """The functions that the headers declare."""
    names = set()
    for header in sorted((ROOT / "include" / "warpwave").glob("*.h")):
        if header.name not in OTHER_LIBRARIES:
            names.update(re.findall(r"^WW_API [\w ]+?[ *]+(\w+)\(", header.read_text(encoding="utf-8"), flags=re.M))
    return names


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("--check", "--write"):
        sys.exit(__doc__)
    found = exported(sys.argv[2])
    if sys.argv[1] == "--write":
        LIST.write_text("\n".join(found) + "\n", encoding="utf-8")
        return
    known = LIST.read_text(encoding="utf-8").split()
    wrong = [f"{name}: is exported, and no header declares it" for name in found if name not in declared()]
    wrong += [f"{name}: a header declares it, and it is not exported" for name in sorted(declared() - set(found))]
    wrong += [f"{name}: is new: scripts/symbols.py --write adds it to scripts/symbols.txt" for name in found if name not in known]
    wrong += [f"{name}: is gone, which breaks programs: raise the minor version, then --write" for name in known if name not in found]
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
