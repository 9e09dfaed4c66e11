#!/usr/bin/env python3
"""Refuses a version that breaks programs which were linked with the release before it, unless the library's SONAME, MAJOR.MINOR of the version, has changed.

    scripts/package/abi.py              compares the headers with those of the newest tag v* before this commit; `make release` does
    scripts/package/abi.py OLD NEW      compares the headers of two folders, each with warpwave/*.h

The binary interface is what the headers declare: scripts/symbols.py checks that the library exports exactly these functions. So the headers are
compiled to a library of empty functions, which takes a second, and abidiff (Debian: abigail-tools) compares two of these. The reference is in git,
in the tag: nothing is stored beside it that could be forgotten.

These changes break nothing: functions and constants that are added, and fields at the end of a struct that begins with its own size.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OTHER_LIBRARIES = {"cluster.h"}
DECLARATION = re.compile(r'(__attribute__\s*\(\(visibility\("default"\)\)\)[^;{}]*);')
STRUCT = re.compile(r"(typedef struct (\w+)\s*\{)([^{}]*)(\}\s*\w+;)")
NUMBER = r"define WW_VERSION_{}\s+(\d+)"
ERROR, CHANGED = 1 | 2, 4 | 8  # bits of abidiff's exit status


class Broken(Exception):
    """Programs break, and the text says where; or it cannot be known, and why."""


def run(*command, **more):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        raise Broken(f"{' '.join(map(str, command))} failed: {done.stderr.strip()}")
    return done.stdout.strip()


def headers_of(folder):
    found = sorted(path.name for path in (folder / "warpwave").glob("*.h") if path.name not in OTHER_LIBRARIES)
    if not found:
        raise Broken(f"{folder} has no warpwave/*.h")
    return found


def soname(folder):
    text = (folder / "warpwave" / "status.h").read_text(encoding="utf-8")
    return "libwarpwave.so." + ".".join(re.search(NUMBER.format(part), text)[1] for part in ("MAJOR", "MINOR"))


def preprocessed(folder):
    includes = "".join(f"#include <warpwave/{name}>\n" for name in headers_of(folder))
    return run("cc", "-E", "-I", folder, "-x", "c", "-", input=includes)


def fields(body):
    """The declarations in a struct, without what the preprocessor says about lines."""
    return [" ".join(field.split()) for field in re.sub(r"(?m)^#.*$", "", body).split(";")[:-1]]


def without_growth(new, old):
    """The new text, in which structs that begin with their own size have no fields past those that they had: old programs pass that size."""
    had = {name: body for _, name, body, _ in STRUCT.findall(old) if fields(body)[0] == "size_t struct_size"}

    def cut(match):
        before = had.get(match[2], match[3])
        grown = fields(match[3])[:len(fields(before))] == fields(before)
        return match[1] + (before if grown else match[3]) + match[4]

    return STRUCT.sub(cut, new)


def compile_stub(text, name, library):
    """A library of empty functions with what the text declares, and with their types as debug information."""
    source = library.with_suffix(".c")
    source.write_text(DECLARATION.sub(r"\1 { __builtin_trap(); }", text), encoding="utf-8")
    run("cc", "-g", "-O0", "-w", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", library, source)


def compare(old, new):
    """Raises Broken if programs linked with the library of `old` break with that of `new` and its SONAME does not say so."""
    if soname(old) != soname(new):
        return f"{soname(old)} is now {soname(new)}: programs are linked anew"
    before, now = preprocessed(old), preprocessed(new)
    with tempfile.TemporaryDirectory() as folder:
        libraries = [pathlib.Path(folder) / name for name in ("old.so", "new.so")]
        for library, text in zip(libraries, (before, without_growth(now, before))):
            compile_stub(text, soname(old), library)
        try:
            done = subprocess.run(["abidiff", "--no-added-syms", *libraries], capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise Broken("abidiff is not here; on Debian: apt install abigail-tools") from None
    if done.returncode & ERROR:
        raise Broken(f"abidiff failed: {(done.stderr or done.stdout).strip()}")
    if done.returncode & CHANGED:
        raise Broken(f"programs linked with {soname(old)} would break, and it would still be called that. Undo the change, or raise the minor version "
                     f"(scripts/package/release.py lists where it is written). What changed:\n{done.stdout.strip()}")
    return f"programs linked with {soname(old)} work with this one"


def newest_release():
    """The newest tag v* of a commit before this one, or None."""
    tags = run("git", "tag", "--list", "v*", "--merged", "HEAD", "--no-contains", "HEAD", "--sort=-version:refname").split()
    return tags[0] if tags else None


def main(arguments):
    if len(arguments) == 2:
        return compare(*map(pathlib.Path, arguments))
    if arguments:
        sys.exit(__doc__)
    tag = newest_release()
    if tag is None:
        return "no release is tagged before this commit, so no program can break"
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", tag, "include"], cwd=ROOT, capture_output=True, check=True).stdout
        subprocess.run(["tar", "--extract", "--directory", folder], input=archive, check=True)
        return f"since {tag}: {compare(pathlib.Path(folder) / 'include', ROOT / 'include')}"


if __name__ == "__main__":
    try:
        print(f"abi: {main(sys.argv[1:])}")
    except Broken as broken:
        sys.exit(f"abi: {broken}")
