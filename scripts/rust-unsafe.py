#!/usr/bin/env python3
"""Makes rust/warpwave/UNSAFE.md: how often each file of the crates uses unsafe code. The reasons are in the sources.

    scripts/rust-unsafe.py --write    writes it; `--check` compares it with the file in the tree

A use is a block, an implementation or a function. Its reason is the comment SAFETY above it; a use without one ends the script. Declarations that are
made from the headers are not listed.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "rust" / "warpwave" / "UNSAFE.md"
SOURCES = [path for crate in ("warpwave-sys", "warpwave", "hive-gpu-warpwave") for path in sorted((ROOT / "rust" / crate / "src").glob("*.rs"))
           if path.name != "native.rs"]
HEAD = """# Unsafe code

Made from the sources by `scripts/rust-unsafe.py --write`; `make lint` checks it, and fails if an unsafe use has no comment `SAFETY` above it that says why
it is sound. Miri cannot follow calls into C, so these comments, the tests that make and drop handles under valgrind and the sources that must not compile
take its place. A macro counts once, for all that it makes.

Every call of C goes through `call()` (`rust/warpwave/src/error.rs`), which refuses it inside of a callback. Three rules make the calls sound:

1. A handle owns what it points to, and every use borrows the handle (`rust/warpwave/src/handle.rs`). Only what a header allows to be shared is `Sync`.
2. All memory that a call reads or writes is a borrow that outlives the call, and its length is checked in Rust unless the call takes the length.
3. No panic unwinds through C: callbacks catch it, and it goes on when the call has returned (`rust/warpwave/src/callback.rs`).

"""


def reason(lines, number, path):
    """The SAFETY comment, or the # Safety section of a declaration, in the ten lines above, as one text."""
    for start in range(number, max(number - 12, -1), -1):
        found = re.match(r"\s*// SAFETY: (.*)", lines[start])
        if found:
            said = [found[1]]
            for line in lines[start + 1:number + 1]:
                more = re.match(r"\s*// (?!SAFETY)(.*)", line)
                if not more:
                    break
                said.append(more[1])
            return " ".join(said)
        if re.match(r"\s*/// # Safety", lines[start]):
            return " ".join(found[1] for found in (re.match(r"\s*/// (?!# )(.*)", line) for line in lines[start:number + 1]) if found)
        if start < number and re.match(r"    \}|\}", lines[start]):
            break
    raise SystemExit(f"rust-unsafe: {path}:{number + 1}: an unsafe use without a reason")


def uses(path):
    """The reason of each unsafe use of a file."""
    lines = path.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines):
        code = re.sub(r"//.*|\"[^\"]*\"|#!?\[.*", "", line)
        if re.search(r"\bunsafe (?:\{|impl|fn|extern|trait)|\bunsafe$", code) and not re.search(r"init: unsafe|: unsafe extern", code):
            if "unsafe extern" in code:
                continue  # a callback, whose block is listed
            yield reason(lines, number, path)


def page():
    out = [HEAD, "| file | uses |\n|---|--:|\n"]
    for path in SOURCES:
        listed = list(uses(path))  # each with its reason; one without ends the script
        if listed:
            name = path.relative_to(ROOT / "rust")
            out.append(f"| [{name}](../{name}) | {len(listed)} |\n")
    return "".join(out)


def main():
    text = page()
    if sys.argv[1:] == ["--write"]:
        TARGET.write_text(text, encoding="utf-8")
    elif sys.argv[1:] == ["--check"]:
        if not TARGET.is_file() or TARGET.read_text(encoding="utf-8") != text:
            raise SystemExit("rust/warpwave/UNSAFE.md is not what the sources say: run scripts/rust-unsafe.py --write")
    else:
        raise SystemExit("usage: scripts/rust-unsafe.py --check | --write")


if __name__ == "__main__":
    main()
