#!/usr/bin/env python3
"""Checks that each use of unsafe code in the crates has a comment SAFETY above it that says why it is sound. A use is a block, an implementation or a
function; a callback is covered by its block. Declarations that are made from the headers are left out.

Miri cannot follow calls into C. Three rules, these comments and the tests that make and drop handles under valgrind take its place:
1. A handle owns what it points to, and every use borrows the handle (rust/warpwave/src/handle.rs). Only what a header allows to be shared is Sync.
2. All memory that a call reads or writes is a borrow that outlives the call, and its length is checked in Rust unless the call takes the length.
3. No panic unwinds through C: callbacks catch it, and it goes on when the call has returned (callback.rs). Every call of C goes through call()
   (error.rs), which refuses it inside of a callback.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = [path for crate in ("warpwave-sys", "warpwave", "hive-gpu-warpwave") for path in sorted((ROOT / "rust" / crate / "src").glob("*.rs"))
           if path.name != "native.rs"]

def has_reason(lines, number):
    """Whether the ten lines above have a comment SAFETY, or a section # Safety of a declaration."""
    for start in range(number, max(number - 12, -1), -1):
        if re.match(r"\s*// SAFETY: \S|\s*/// # Safety", lines[start]):
            return True
        if start < number and re.match(r"    \}|\}", lines[start]):
            return False
    return False


def main():
    bare = []
    for path in SOURCES:
        lines = path.read_text(encoding="utf-8").split("\n")
        for number, line in enumerate(lines):
            code = re.sub(r"//.*|\"[^\"]*\"|#!?\[.*", "", line)
            used = re.search(r"\bunsafe (?:\{|impl|fn|trait)|\bunsafe$", code) and not re.search(r"init: unsafe|unsafe extern", code)
            if used and not has_reason(lines, number):
                bare.append(f"rust-unsafe: {path.relative_to(ROOT)}:{number + 1}: an unsafe use without a reason")
    sys.exit("\n".join(bare) or 0)


if __name__ == "__main__":
    main()
