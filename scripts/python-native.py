#!/usr/bin/env python3
"""Makes python/warpwave/_native.py, the C functions, structs and constants as ctypes sees them, from the public headers.

    scripts/python-native.py            prints it
    scripts/python-native.py --check    compares it with the file in the tree; `--write` writes that

The headers are regular: constants are #define or enum, structs are typedefs, functions begin with WW_API. Whatever is not understood
ends the script, so that nothing is left out in silence.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "python" / "warpwave" / "_native.py"
# Kernels of one's own are written and launched from C. DLPack's structs are opaque to Python.
LEFT_OUT = {"kernel", "dlpack", "cluster"}

SCALARS = {"int": "c_int", "float": "c_float", "double": "c_double", "bool": "c_bool", "char": "c_char", "size_t": "c_size_t",
           "long long": "c_longlong", **{f"{sign}int{bits}_t": f"c_{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}}

# What Python checks before a call: ctypes would cut the number or the text.
CHECKED = {"c_char_p", *(kind for kind in SCALARS.values() if kind not in ("c_float", "c_double", "c_bool", "c_char"))}

HEAD = '''"""The C library as ctypes sees it. Made from the headers by scripts/python-native.py; do not edit.

A pointer to a struct of the API is a POINTER, so that byref() is checked; every other pointer is an address, so that arrays are passed
without an object each. An integer or a text is given with its name, for the checks of _checked.py. Calls release the GIL.
"""
from ctypes import (CFUNCTYPE, POINTER, Structure, c_bool, c_char, c_char_p, c_double, c_float, c_int, c_int8, c_int16, c_int32, c_int64,
                    c_longlong, c_size_t, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p)

from ._checked import struct
from ._library import function

__all__: list[str] = []  # nothing is exported: this is for the modules of this package
_UNUSED = (CFUNCTYPE, POINTER, c_bool, c_char, c_char_p, c_double, c_float, c_int8, c_int16, c_uint8, c_uint16, c_uint32, c_uint64,
           c_longlong)

'''


class Header:
    """One header's declarations, translated."""

    def __init__(self, names, enums, structs, callbacks):
        self.constants, self.structs, self.functions = [], [], []
        self.enums, self.known_structs, self.callbacks = enums, structs, callbacks
        self.name = names

    def type_of(self, text, where):
        """The ctypes name of a C type, given without the parameter's name."""
        text = re.sub(r"\b(const|struct|enum)\b", "", text).strip()
        stars = text.count("*")
        base = " ".join(text.replace("*", " ").split())
        if stars == 0:
            if base in self.enums:
                return "c_int"
            if base in self.callbacks or base in self.known_structs:
                return base
            if base in SCALARS:
                return SCALARS[base]
            raise SystemExit(f"python-native: {where}: what is '{text}'?")
        if stars == 1 and base == "char":
            return "c_char_p"
        if stars == 1 and base in self.known_structs:
            return f"POINTER({base})"
        return "c_void_p"

    def read(self, text):
        for name, value in re.findall(r"^#define (WW_\w+)\s+(.+?)\s*(?:/\*.*)?$", text, flags=re.M):
            value = re.sub(r"INT64_C\((\d+)\)", r"\1", value)
            if value == "((void *)-1)":
                value = "-1"
            if re.fullmatch(r'-?\d+|"[^"]*"', value):
                self.constants.append(f"{name} = {value}")
            elif name != "WW_API":
                raise SystemExit(f"python-native: {self.name}: #define {name} {value}?")
        code = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
        for members, name in re.findall(r"^typedef enum \w+ \{(.*?)\} (\w+);", code, flags=re.M | re.S):
            self.enums.add(name)
            for member in filter(None, (part.strip() for part in members.split(","))):
                found = re.fullmatch(r"(WW_\w+)\s*=\s*(-?\d+)", member)
                if not found:
                    raise SystemExit(f"python-native: {self.name}: enum {name}: {member}?")
                self.constants.append(f"{found[1]} = {found[2]}")
        for result, name, parameters in re.findall(r"^typedef (\w+) \(\*(\w+)\)\((.*?)\);", code, flags=re.M | re.S):
            self.callbacks.add(name)
            types = [self.parameter(p, name) for p in split(parameters)]
            if types[:2] == ["c_char_p", "c_size_t"]:  # a text with its length is an address, since c_char_p ends at a NUL
                types[0] = "c_void_p"
            self.structs.append(f"{name} = CFUNCTYPE({', '.join([self.type_of(result, name), *types])})")
        for name, fields in re.findall(r"^typedef struct (\w+) \{(.*?)^\} \1;", code, flags=re.M | re.S):
            self.structs.append(self.struct(name, fields))
            self.known_structs.add(name)
        for result, name, parameters in re.findall(r"^WW_API ([\w ]+?\*?) ?\*?(?=ww_)(ww_\w+)\((.*?)\);", code, flags=re.M | re.S):
            pointer = re.search(rf"\*\s*{name}\(", code) is not None
            self.functions.append(self.function(result + ("*" if pointer and "*" not in result else ""), name, parameters))
        declared = len(re.findall(r"^WW_API ", code, flags=re.M))
        if declared != len(self.functions):
            raise SystemExit(f"python-native: {self.name}: {declared} functions are declared, {len(self.functions)} were understood")

    def parameter(self, text, where):
        text = " ".join(text.split())
        if "(*" in text:  # a function pointer: an address
            return "c_void_p"
        found = re.fullmatch(r"(.*?[\s*])(\w+)(\[.*\])?", text)
        if not found:
            raise SystemExit(f"python-native: {where}: parameter '{text}'?")
        return self.type_of(found[1] + ("*" if found[3] else ""), where)

    def argument(self, text, following, where):
        """A function's parameter: with its name, if Python checks it. A text with its length behind it may hold NULs, and a buffer that the
        function fills is no text."""
        kind = self.parameter(text, where)
        measured = kind == "c_char_p" and ("const" not in text or " ".join(following.split()).startswith("size_t "))
        if kind not in CHECKED or measured:
            return kind
        name = re.search(r"(\w+)(\[.*\])?\s*$", text)[1]
        return f'("{name}", {kind})'

    def struct(self, name, fields):
        lines = []
        measured = re.search(r"\b(text_)?bytes;", fields) is not None  # a `text` with its length beside it is an address
        for declaration in filter(None, (" ".join(part.split()) for part in fields.split(";"))):
            pointer = re.fullmatch(r"\w[\w ]*\(\*(\w+)\)\(.*\)", declaration)
            if pointer:
                lines.append((pointer[1], "c_void_p"))
                continue
            found = re.fullmatch(r"(.*?[\s*])(\w+(?:\[\w+\])?(?:, \w+)*)", declaration)
            if not found:
                raise SystemExit(f"python-native: struct {name}: '{declaration}'?")
            for field in found[2].split(", "):
                array = re.fullmatch(r"(\w+)\[(\w+)\]", field)
                kind = self.type_of(found[1], f"struct {name}")
                kind = "c_void_p" if kind.startswith("POINTER") or (measured and field == "text") else kind
                lines.append((array[1], f"{kind} * {array[2]}") if array else (field, kind))
        body = ",\n                ".join(f'("{field}", {kind})' for field, kind in lines)
        return f"\n\n@struct\nclass {name}(Structure):\n    _fields_ = [{body}]"

    def function(self, result, name, parameters):
        result = " ".join(result.split())
        kind = "None" if result == "void" else self.type_of(result, name)
        kind = "c_void_p" if kind.startswith("POINTER") else kind
        listed = split(parameters)
        types = [self.argument(p, following, name) for p, following in zip(listed, [*listed[1:], ""])]
        return f'{name} = function("{self.library}", {", ".join([repr(name).replace(chr(39), chr(34)), kind, *types])})'


def split(parameters):
    """Parameters at the commas outside of parentheses."""
    if parameters.strip() == "void":
        return []
    parts, depth, current = [], 0, ""
    for letter in parameters:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += letter
    return [*parts, current]


def wrapped(line, width=130):
    """A long call over several lines, as the rest of the tree has them."""
    if len(line) <= width or "(" not in line:
        return line
    indent = " " * (line.index("(") + 1)
    out, current = [], ""
    for word in re.split(r"(?<=,) (?!c_\w+\))|(?<=\),) ", line):
        if current and len(current) + 1 + len(word) > width:
            out.append(current)
            current = indent + word
        else:
            current = f"{current} {word}" if current else word
    return "\n".join([*out, current])


def in_order():
    """The headers, each behind those it includes."""
    folder = ROOT / "include" / "warpwave"
    ordered = []

    def visit(stem):
        if stem in ordered or stem in LEFT_OUT:
            return
        for needed in re.findall(r"^#include <warpwave/(\w+)\.h>", (folder / f"{stem}.h").read_text(encoding="utf-8"), flags=re.M):
            visit(needed)
        ordered.append(stem)

    for path in sorted(folder.glob("*.h")):
        visit(path.stem)
    return ordered


def generate():
    enums, structs, callbacks = set(), set(), set()
    out = [HEAD.rstrip("\n")]
    for stem in in_order():
        header = Header(stem, enums, structs, callbacks)
        header.library = f"warpwave_{stem}" if stem in ("store", "model") else "warpwave"
        header.read((ROOT / "include" / "warpwave" / f"{stem}.h").read_text(encoding="utf-8"))
        out.append(f"\n# ---- warpwave/{stem}.h {'-' * (105 - len(stem))}")
        out += header.constants
        out += header.structs
        if header.structs and header.structs[-1].startswith("\n"):
            out.append("\n")
        out += [wrapped(line) for line in header.functions]
    return "\n".join(out) + "\n"


def main():
    text = generate()
    if sys.argv[1:] == ["--write"]:
        TARGET.write_text(text, encoding="utf-8")
    elif sys.argv[1:] == ["--check"]:
        if not TARGET.is_file() or TARGET.read_text(encoding="utf-8") != text:
            raise SystemExit("python/warpwave/_native.py is not what the headers say: run scripts/python-native.py --write")
    elif not sys.argv[1:]:
        sys.stdout.write(text)
    else:
        raise SystemExit("usage: scripts/python-native.py [--check | --write]")


if __name__ == "__main__":
    main()
