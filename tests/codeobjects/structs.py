"""Reads C structs and enums from headers and makes ctypes classes and numbers from them, so that tests always match the declarations. It
understands the C of this project's headers: typedef structs of numbers, pointers, arrays and other such structs, and enums of constant
expressions."""
import ctypes
import hashlib
import pathlib
import re

NUMBERS = {"float": ctypes.c_float, "int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32, "int64_t": ctypes.c_int64,
           "uint64_t": ctypes.c_uint64, "size_t": ctypes.c_size_t, "char": ctypes.c_char, "bool": ctypes.c_bool, "double": ctypes.c_double,
           "int": ctypes.c_int, "long": ctypes.c_long, "ww_progress": ctypes.c_void_p}


class Header:
    """The structs, by name, and the enums' constants of some headers, in the order in which they are needed."""

    def __init__(self, *paths):
        self.structs, self.constants, self.types = {}, {}, dict(NUMBERS)
        for path in paths:
            text = re.sub(r"/\*.*?\*/", " ", pathlib.Path(path).read_text(encoding="utf-8"), flags=re.S)
            self.constants.update({name: int(number) for name, number in re.findall(r"^#define (\w+) (\d+)$", text, flags=re.M)})
            for kind, name, body in re.findall(r"(?:typedef )?(enum|struct)\s*(\w*)\s*{(.*?)}", text, flags=re.S):
                self._enum(name, body) if kind == "enum" else self._struct(name, body)

    def _enum(self, name, body):
        value = -1
        self.types[name] = ctypes.c_int
        for entry in filter(None, (part.strip() for part in body.split(","))):
            constant, _, expression = (part.strip() for part in entry.partition("="))
            value = eval(expression.replace("/", "//"), {}, self.constants) if expression else value + 1
            self.constants[constant] = value

    def _struct(self, name, body):
        fields = []
        for declaration in filter(None, (part.strip() for part in body.split(";"))):
            kind, rest = re.match(r"(?:const )?(\w+)\b(.*)", declaration, flags=re.S).groups()
            for declarator in rest.split(","):
                field, count = re.search(r"(\w+)\s*(?:\[(\w+)\])?\s*$", declarator).groups()
                type_ = ctypes.c_void_p if "*" in declarator else self.types[kind]
                fields.append((field, type_ * int(self.constants.get(count, count)) if count else type_))
        self.structs[name] = self.types[name] = type(name, (ctypes.Structure,), {"_fields_": fields})

    def __getattr__(self, name):
        try:
            return self.__dict__["structs"].get(name) or self.__dict__["constants"][name]
        except KeyError:
            raise AttributeError(name) from None


def code_of(build, module, chip):
    """A hash that distinguishes a module's machine code from other versions."""
    return hashlib.sha256((build / "kernels" / f"{module}.{chip}.hsaco").read_bytes()).hexdigest()[:16]


def kernels_of(root, chip=""):
    """kernels.def as (module, kernel): those that AMD's chips, or this one, have code for, and those that they do not have
    (cmake/Kernels.cmake)."""
    every = re.findall(r"^KERNEL_ENTRY\(\s*(\w+)\s*,\s*(\w+)\s*,", (root / "src/kernels/kernels.def").read_text(encoding="utf-8"), flags=re.M)
    only = re.findall(r'^set\(ONLY_FOR_(\w+) "(.*)"\)', (root / "cmake/Kernels.cmake").read_text(encoding="utf-8"), flags=re.M)
    chips_of = dict(only)
    for module, chips in only:  # "${ONLY_FOR_other}"
        other = re.fullmatch(r"\$\{ONLY_FOR_(\w+)\}", chips)
        chips_of[module] = chips_of[other[1]] if other else chips
    elsewhere = {module for module, chips in chips_of.items() if not re.search(chips, chip or "gfx")}
    return [entry for entry in every if entry[0] not in elsewhere], [entry for entry in every if entry[0] in elsewhere]


def is_stale(build, chip, told, modules):
    """Whether a kernel of the workload has changed since it was counted, or no longer exists."""
    return any(kernel not in modules or code != code_of(build, modules[kernel], chip) for kernel, code in told["code"].items())
