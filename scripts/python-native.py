#!/usr/bin/env python3
"""Makes the C functions, structs and constants of the public headers known to other languages: python/warpwave/_native.py, as ctypes sees them, and
rust/warpwave-sys/src/native.rs.

    scripts/python-native.py            prints both
    scripts/python-native.py --check    compares them with the files in the tree; `--write` writes these

The headers are regular: constants are #define or enum, structs are typedefs, functions begin with WW_API. Whatever is not understood
ends the script, so that nothing is left out in silence. There is one parser and a writer for each language.
"""
import pathlib
import re
import sys
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Kernels of one's own are written and launched from C. DLPack's structs are opaque to other languages. Clusters need MPI. Hooks replace C's memory.
LEFT_OUT = {"kernel", "dlpack", "cluster", "hooks"}
ROOMS = {"store", "model", "text"}  # headers of what a library can be built without

SCALARS = {"int", "float", "double", "bool", "char", "size_t", "long long", "void",
           *(f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64))}


def fail(where, what):
    raise SystemExit(f"python-native: {where}: {what}")


# ---- the parser --------------------------------------------------------------------------------------------------------------


@dataclass
class Type:
    """A C type: a name, and for each pointer to it whether what it points to is const. Or a pointer to a function."""
    base: str
    pointers: list = field(default_factory=list)
    call: object = None  # Function


@dataclass
class Variable:
    """A parameter or a field. `text` is the declaration as the header has it, and `count` the size of an array."""
    name: str
    type: Type
    text: str
    count: str = ""


@dataclass
class Function:
    name: str
    result: Type
    parameters: list


@dataclass
class Struct:
    name: str
    fields: list


class Header:
    """One header's declarations, in its order. `enums`, `structs` and `callbacks` are the names known so far, of all headers."""

    def __init__(self, stem, known):
        self.stem, self.known = stem, known
        self.room = stem if stem in ROOMS else ""
        self.constants = []  # (name, value, the enum's name or "")
        self.callbacks, self.structs, self.functions = [], [], []
        self.read((ROOT / "include" / "warpwave" / f"{stem}.h").read_text(encoding="utf-8"))

    def type_of(self, text, where):
        """A type, given without the variable's name."""
        words = re.findall(r"\w+|\*", re.sub(r"\b(struct|enum)\b", "", text))
        stars = [i for i, word in enumerate(words) if word == "*"]
        before = words[:stars[0]] if stars else words
        base = " ".join(word for word in before if word != "const")
        const, pointers = "const" in before, []
        for star in stars:
            pointers.append(const)
            const = words[star + 1:star + 2] == ["const"]
        if not stars and base not in SCALARS | self.known.enums | self.known.structs | self.known.callbacks:
            fail(where, f"what is '{text}'?")
        return Type(base, pointers)

    def variable(self, text, where):
        text = " ".join(text.split())
        pointer = re.fullmatch(r"(\w[\w ]*?[ *]*)\(\*(\w+)\)\((.*)\)", text)
        if pointer:
            return Variable(pointer[2], Type("", [], self.function(pointer[1], pointer[2], pointer[3])), text)
        found = re.fullmatch(r"(.*?[\s*])(\w+)(?:\[(\w*)\])?", text)
        if not found:
            fail(where, f"'{text}'?")
        return Variable(found[2], self.type_of(found[1], where), text, found[3] or "")

    def function(self, result, name, parameters):
        return Function(name, self.type_of(result, name), [self.variable(p, name) for p in split(parameters)])

    def read(self, text):
        for name, value in re.findall(r"^#define (WW_\w+)\s+(.+?)\s*(?:/\*.*)?$", text, flags=re.M):
            value = re.sub(r"INT64_C\((\d+)\)", r"\1", value)
            if re.fullmatch(r'-?\d+|"[^"]*"|\(\(void \*\)-1\)', value):
                self.constants.append((name, value, ""))
            elif name != "WW_API":
                fail(self.stem, f"#define {name} {value}?")
        code = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
        for members, name in re.findall(r"^typedef enum \w+ \{(.*?)\} (\w+);", code, flags=re.M | re.S):
            self.known.enums.add(name)
            for member in filter(None, (part.strip() for part in members.split(","))):
                found = re.fullmatch(r"(WW_\w+)\s*=\s*(-?\d+)", member)
                if not found:
                    fail(self.stem, f"enum {name}: {member}?")
                self.constants.append((found[1], found[2], name))
        for result, name, parameters in re.findall(r"^typedef (\w+) \(\*(\w+)\)\((.*?)\);", code, flags=re.M | re.S):
            self.known.callbacks.add(name)
            self.callbacks.append(self.function(result, name, parameters))
        for name, fields in re.findall(r"^typedef struct (\w+) \{(.*?)^\} \1;", code, flags=re.M | re.S):
            declared = [self.fields(" ".join(part.split()), f"struct {name}") for part in fields.split(";") if part.strip()]
            self.structs.append(Struct(name, sum(declared, [])))
            self.known.structs.add(name)
        self.opaque = re.findall(r"^typedef struct (\w+) \1;", code, flags=re.M)
        for result, name, parameters in re.findall(r"^WW_API ([\w ]+?[ *]+)(ww_\w+)\((.*?)\);", code, flags=re.M | re.S):
            self.functions.append(self.function(result, name, parameters))
        declared = len(re.findall(r"^WW_API (?!int sqlite3_)", code, flags=re.M))  # not what SQLite calls
        if declared != len(self.functions):
            fail(self.stem, f"{declared} functions are declared, {len(self.functions)} were understood")

    def fields(self, declaration, where):
        """The fields of one declaration, such as `int64_t rows, cols`."""
        if "(*" in declaration:
            return [self.variable(declaration, where)]
        first, *others = declaration.split(", ")
        kind = re.match(r"(.*?[\s*])\w+(?:\[\w+\])?$", first)
        if not kind:
            fail(where, f"'{declaration}'?")
        return [self.variable(text, where) for text in (first, *(kind[1] + other for other in others))]


@dataclass
class Known:
    enums: set = field(default_factory=set)
    structs: set = field(default_factory=set)
    callbacks: set = field(default_factory=set)


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


def in_order():
    """The headers, each after those that it includes."""
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


# ---- Python ------------------------------------------------------------------------------------------------------------------

CTYPES = {"int": "c_int", "float": "c_float", "double": "c_double", "bool": "c_bool", "char": "c_char", "size_t": "c_size_t",
          **{f"{sign}int{bits}_t": f"c_{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}}

# What Python checks before a call: ctypes would cut the number or the text.
CHECKED = {"c_char_p", *(kind for kind in CTYPES.values() if kind not in ("c_float", "c_double", "c_bool", "c_char"))}

PYTHON_HEAD = '''"""The C library as ctypes sees it. Made from the headers by scripts/python-native.py; do not edit.

A pointer to a struct of the API is a POINTER, so that byref() is checked; every other pointer is an address, so that arrays are passed
without an object each. An integer or a text is given with its name, for the checks of _checked.py. Calls release the GIL.
"""
from ctypes import (CFUNCTYPE, POINTER, Structure, c_bool, c_char, c_char_p, c_double, c_float, c_int, c_int8, c_int16, c_int32, c_int64,
                    c_size_t, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p)

from ._checked import struct
from ._library import function

__all__: list[str] = []  # nothing is exported: this is for the modules of this package
_UNUSED = (CFUNCTYPE, POINTER, c_bool, c_char, c_char_p, c_double, c_float, c_int8, c_int16, c_uint8, c_uint16, c_uint32, c_uint64)
'''


class Python:
    """Writes the declarations for ctypes."""
    target = ROOT / "python" / "warpwave" / "_native.py"

    def __init__(self, known):
        self.seen = set()  # structs that were written, which POINTER can name
        self.known = known

    def type(self, kind):
        if kind.call or len(kind.pointers) > 1:
            return "c_void_p"
        if not kind.pointers:
            return "c_int" if kind.base in self.known.enums else CTYPES.get(kind.base, kind.base)
        if kind.base == "char":
            return "c_char_p"
        return f"POINTER({kind.base})" if kind.base in self.seen else "c_void_p"

    def variable(self, variable):
        if variable.text.endswith("]"):
            return self.type(Type(variable.type.base, [*variable.type.pointers, False]))
        return self.type(variable.type)

    def argument(self, parameter, following):
        """A parameter of a function: with its name, if Python checks it. A text whose length follows may contain NULs, and a buffer that the function
        fills is not a text."""
        kind = self.variable(parameter)
        measured = kind == "c_char_p" and ("const" not in parameter.text or following.startswith("size_t "))
        return kind if kind not in CHECKED or measured else f'("{parameter.name}", {kind})'

    def callback(self, callback):
        types = [self.variable(p) for p in callback.parameters]
        if types[:2] == ["c_char_p", "c_size_t"]:  # a text with its length is an address, since c_char_p ends at a NUL
            types[0] = "c_void_p"
        return f"{callback.name} = CFUNCTYPE({', '.join([self.type(callback.result), *types])})"

    def struct(self, struct):
        names = [each.name for each in struct.fields]
        measured = "bytes" in names or "text_bytes" in names  # a `text` with its length beside it is an address
        lines = []
        for each in struct.fields:
            kind = self.type(each.type)
            kind = "c_void_p" if kind.startswith("POINTER") or (measured and each.name == "text") else kind
            lines.append(f'("{each.name}", {kind} * {each.count})' if each.count else f'("{each.name}", {kind})')
        self.seen.add(struct.name)
        body = ",\n                ".join(lines)
        return f"\n\n@struct\nclass {struct.name}(Structure):\n    _fields_ = [{body}]"

    def function(self, function, library):
        kind = "None" if function.result == Type("void") else self.type(function.result)
        kind = "c_void_p" if kind.startswith("POINTER") else kind
        following = [p.text for p in function.parameters[1:]] + [""]
        types = [self.argument(p, text) for p, text in zip(function.parameters, following)]
        return f'{function.name} = function("{library}", {", ".join([chr(34) + function.name + chr(34), kind, *types])})'

    def write(self, headers):
        out = [PYTHON_HEAD.rstrip("\n")]
        for header in headers:
            out.append(f"\n# ---- warpwave/{header.stem}.h {'-' * (105 - len(header.stem))}")
            out += [f"{name} = {'-1' if 'void' in value else value}" for name, value, _ in header.constants]
            out += [self.callback(each) for each in header.callbacks]
            out += [self.struct(each) for each in header.structs]
            if header.structs:
                out.append("\n")
            out += [wrapped(self.function(each, header.room)) for each in header.functions]
        return "\n".join(out) + "\n"


def wrapped(line, width=130):
    """A long call over several lines, formatted like the rest of the tree."""
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


# ---- Rust --------------------------------------------------------------------------------------------------------------------

RUST = {"int": "c_int", "float": "f32", "double": "f64", "bool": "bool", "char": "c_char", "size_t": "usize", "void": "c_void",
        **{f"{sign}int{bits}_t": f"{'u' if sign else 'i'}{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}}

RUST_HEAD = """// The C library's declarations, a module for each header. Made from the headers by scripts/python-native.py; do not edit.
use super::{initialized, Opaque};
use super::{c_char, c_int, c_void};
"""


class Rust:
    """Writes the declarations for Rust: enums are c_int with constants, opaque handles are structs that cannot be made, structs that begin with
    their size have a Default that calls their ..._init()."""
    target = ROOT / "rust" / "warpwave-sys" / "src" / "native.rs"

    def __init__(self, known):
        self.known = known

    def type(self, kind):
        if kind.call:
            return f"Option<{self.pointer(kind.call)}>"
        name = RUST.get(kind.base, kind.base)
        for const in kind.pointers:
            name = f"*{'const' if const else 'mut'} {name}"
        return name

    def result(self, kind):
        return "" if kind == Type("void") else f" -> {self.type(kind)}"

    def pointer(self, function):
        return f'unsafe extern "C" fn({self.parameters(function)}){self.result(function.result)}'

    def parameters(self, function):
        return ", ".join(f"{escaped(p.name)}: {self.parameter(p)}" for p in function.parameters)

    def parameter(self, parameter):
        if parameter.text.endswith("]"):  # an array as a parameter is a pointer
            const = "const" in parameter.text.split(parameter.type.base)[0]
            return self.type(Type(parameter.type.base, [*parameter.type.pointers, const]))
        return self.type(parameter.type)

    def constant(self, name, value, enum):
        if "void" in value:
            return f"pub const {name}: *mut c_void = usize::MAX as *mut c_void;"
        if value.startswith('"'):
            return f"pub const {name}: &str = {value};"
        return f"pub const {name}: {enum or 'i64'} = {value};"

    def struct(self, struct, inits):
        out = ["#[repr(C)]", "#[derive(Clone, Copy, Debug)]", f"pub struct {struct.name} {{"]
        for each in struct.fields:
            kind = self.type(each.type)
            if each.count:
                kind = f"[{kind}; {each.count if each.count.isdigit() else each.count + ' as usize'}]"
            out.append(f"    pub {escaped(each.name)}: {kind},")
        out.append("}")
        if struct.fields[0].name == "struct_size":
            if f"{struct.name}_init" not in inits:
                fail(struct.name, "begins with struct_size and has no ..._init()")
            out += [f"impl Default for {struct.name} {{", "    fn default() -> Self {", f"        initialized({struct.name}_init)", "    }", "}"]
        return out

    def module(self, header):
        """The lines of one header's module."""
        enums = list(dict.fromkeys(enum for _, _, enum in header.constants if enum))
        out = [f"pub type {name} = c_int;" for name in enums]
        out += [self.constant(*each) for each in header.constants]
        defined = {struct.name for struct in header.structs}
        for name in header.opaque:
            if name not in defined:
                out += ["#[repr(C)]", f"pub struct {name} {{", "    _opaque: Opaque,", "}"]
        out += [f"pub type {each.name} = Option<{self.pointer(each)}>;" for each in header.callbacks]
        for each in header.structs:
            out += self.struct(each, {function.name for function in header.functions})
        if header.functions:
            out.append('extern "C" {')
            out += [f"    pub fn {each.name}({self.parameters(each)}){self.result(each.result)};" for each in header.functions]
            out.append("}")
        return out

    def write(self, headers):
        out = [RUST_HEAD]
        for header in headers:
            body = self.module(header)
            needed = [f'#[cfg(feature = "{header.stem}")]'] if header.room else []
            out += [*needed, f"mod {header.stem} {{", "    use super::*;", *(f"    {line}" for line in body), "}", *needed, f"pub use {header.stem}::*;", ""]
        foreign = sorted(set(re.findall(r"\*(?:mut|const) (DL\w+)", "\n".join(out))))  # DLPack's
        for name in foreign:
            out += ["#[repr(C)]", f"pub struct {name} {{", "    _opaque: Opaque,", "}"]
        return "\n".join(out).rstrip("\n") + "\n"


def escaped(name):
    """A name that is a word of Rust needs a mark."""
    return f"r#{name}" if name in ("type", "in", "where", "fn", "match", "ref", "move", "loop", "use", "mod") else name


def main():
    if sys.argv[1:] not in ([], ["--check"], ["--write"]):
        raise SystemExit("usage: scripts/python-native.py [--check | --write]")
    known = Known()
    headers = [Header(stem, known) for stem in in_order()]
    for writer in (Python(known), Rust(known)):
        text, target = writer.write(headers), writer.target
        if sys.argv[1:] == ["--write"]:
            target.write_text(text, encoding="utf-8")
        elif sys.argv[1:] == ["--check"]:
            if not target.is_file() or target.read_text(encoding="utf-8") != text:
                raise SystemExit(f"{target.relative_to(ROOT)} is not what the headers say: run scripts/python-native.py --write")
        else:
            sys.stdout.write(text)


if __name__ == "__main__":
    main()
