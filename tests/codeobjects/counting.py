"""Counts what executed kernels request from their chip (count.h does it, instruction by instruction). The disassembly gives the kind of each
instruction, and how many loads a wait leaves pending."""
import collections
import ctypes
import re
import shutil
import subprocess
import tempfile

TABLE_SIZE = 1 << 21
LOAD, STORE, ATOMIC, LDS, WAIT, KINDS = 1, 2, 3, 4, 5, 6
NO_SCALAR = 255


class Access(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint8) for name in ("kind", "vaddr", "saddr", "bytes", "twice", "swizzled", "left", "counted")] + [
        ("offset", ctypes.c_int32), ("second", ctypes.c_int32)]


class Line(ctypes.Structure):
    _fields_ = [("number", ctypes.c_uint64)] + [(name, ctypes.c_uint32) for name in ("block", "blocks", "group", "groups", "how", "pad")]


class Counts(ctypes.Structure):
    _fields_ = [("access", ctypes.c_void_p), ("lanes", ctypes.c_void_p), ("table", ctypes.c_void_p)] + [
        (name, ctypes.c_uint64) for name in ("table_size", "table_used", "line_bytes", "block", "group", "banks")] + [
        (name, ctypes.c_uint64 * KINDS) for name in ("accesses", "lines", "used", "asked")] + [
        (name, ctypes.c_uint64) for name in ("first_level_cycles", "first_level_bytes", "lds_cycles", "lds_cycles_min", "waits", "retired_bytes")] + [
        ("weighted_bytes", ctypes.c_double)]


def disassembled(image):
    """(address, mnemonic, operands) of every instruction of a code object."""
    objdump = shutil.which("llvm-objdump-22") or shutil.which("llvm-objdump-19") or shutil.which("llvm-objdump") or "llvm-objdump"
    with tempfile.NamedTemporaryFile(suffix=".hsaco") as file:
        file.write(image)
        file.flush()
        text = subprocess.run([objdump, "-d", file.name], check=True, capture_output=True, text=True).stdout
    for line in text.splitlines():
        found = re.match(r"\t(\S+)\s*(.*?)\s*// ([0-9A-F]+):", line)
        if found:
            yield int(found[3], 16), found[1], found[2]


# ---- what an instruction is -----------------------------------------------------------------------------------------------------

TRANSCENDENTAL = re.compile(r"v_(exp|log|rcp|rsq|sqrt|sin|cos|rcp_iflag)_(f|bf)")
INTEGER_PRODUCT = re.compile(r"v_mul_(lo|hi)_[ui]32|v_mad_[ui]64_[ui]32")
MATRIX = re.compile(r"v_(?:mfma|wmma)_(\w+?)_(\d+)x(\d+)x(\d+)_?(\w+)")


def kind_of(mnemonic):
    """The class in which it is counted; for matrix instructions also their shape."""
    if MATRIX.match(mnemonic):
        return "matrix " + re.sub(r"^v_(mfma|wmma)_|_e(32|64)$", "", mnemonic)
    if mnemonic.startswith("v_"):
        return "quarter-rate vector" if TRANSCENDENTAL.match(mnemonic) or INTEGER_PRODUCT.match(mnemonic) else "vector"
    if mnemonic.startswith("ds_"):
        return "LDS"
    if re.match(r"(global|flat|buffer|scratch)_(load|store|atomic)", mnemonic):
        return "global store" if "store" in mnemonic else "global load" if "load" in mnemonic else "global atomic"
    if re.match(r"s_(wait|nop|sleep|delay|barrier|set_inst|clause|sendmsg|code_end)", mnemonic):
        return "waits"
    if re.match(r"s_(branch|cbranch|setpc|swappc|call|endpgm|getpc)", mnemonic):
        return "branches"
    return "scalar load" if re.match(r"s_(buffer_)?load", mnemonic) else "scalar"


def matrix_macs(mnemonic):
    """The type of the factors, and the number of multiply-adds, of one matrix instruction, and the rows of its result."""
    _, m, n, k, type_ = MATRIX.match(mnemonic).groups()
    type_ = re.sub(r"^i?u?8$|^iu8$", "i8", re.sub(r"_?(1k|e64|e32)$", "", type_))
    return type_, int(m) * int(n) * int(k), int(m)


WIDTHS = {"dwordx4": 16, "dwordx3": 12, "dwordx2": 8, "dword": 4, "b128": 16, "b96": 12, "b64": 8, "b32": 4, "short": 2, "ushort": 2, "sshort": 2,
          "byte": 1, "ubyte": 1, "sbyte": 1, "b16": 2, "b8": 1, "u16": 2, "i16": 2, "u8": 1, "i8": 1, "x2": 8, "u64": 8, "i64": 8, "f64": 8}


def width_of(mnemonic):
    for part in reversed(mnemonic.split("_")):
        if part in WIDTHS:
            return WIDTHS[part]
    return 4


def number_of(register):
    return int(re.search(r"\d+", register)[0])


def global_access(mnemonic, operands):
    """Loads start with the register that they fill, stores and atomics without a result with their address."""
    registers = [part.strip() for part in re.sub(r"\s(offset|glc|slc|dlc|sc0|sc1|nt|th|scope).*", "", operands).split(",")]
    kind = LOAD if "_load_" in mnemonic else STORE if "_store_" in mnemonic else ATOMIC
    offset = re.search(r"offset:(-?\d+)", operands)
    scalar = registers[-1] if re.match(r"s\[", registers[-1]) else None
    vectors = [r for r in registers if re.match(r"v(\d+$|\[)", r)]
    if not vectors:
        return None
    returns = kind == LOAD or (kind == ATOMIC and len(vectors) > 2)
    address = vectors[1 if returns and len(vectors) > 1 else 0]
    return Access(kind=kind, vaddr=number_of(address) & 255, saddr=number_of(scalar) if scalar else NO_SCALAR, bytes=width_of(mnemonic),
                  offset=int(offset[1]) if offset else 0)


def lds_access(mnemonic, operands, cdna):
    if re.search(r"permute|swizzle|nop|gws|append|consume|addtid|bvh", mnemonic):
        return None
    loads = re.match(r"ds_(read|load)", mnemonic) or "_rtn" in mnemonic
    vectors = re.findall(r"\bv(?:\d+|\[\d+:\d+\])", operands)
    address = vectors[1 if loads else 0]
    pair = re.match(r"ds_(?:read|write|load|store)_?2", mnemonic)
    size = width_of(mnemonic)
    access = Access(kind=LDS, vaddr=number_of(address), bytes=size, swizzled=int(cdna and bool(loads) and size == 16))
    if pair:
        unit = size * (64 if "st64" in mnemonic or "stride64" in mnemonic else 1)
        first, second = (re.search(rf"offset{i}:(\d+)", operands) for i in (0, 1))
        access.twice, access.offset, access.second = 1, unit * int(first[1] if first else 0), unit * int(second[1] if second else 0)
    else:
        offset = re.search(r"offset:(\d+)", operands)
        access.offset = int(offset[1]) if offset else 0
    return access


def wait(mnemonic, operands):
    """How many loads it leaves pending, or None if it waits for something else."""
    if mnemonic == "s_waitcnt":
        count = re.search(r"vmcnt\((\d+)\)", operands)
        return int(count[1]) if count else 0 if operands.strip() == "0" else None
    if mnemonic == "s_wait_loadcnt":
        return int(operands.split()[0], 0)
    if mnemonic == "s_wait_loadcnt_dscnt":
        return int(operands.split()[0], 0) >> 8 & 63
    return None


def access_of(mnemonic, operands, cdna):
    if kind_of(mnemonic).startswith("global") and not mnemonic.startswith(("buffer", "scratch")):
        access = global_access(mnemonic, operands)
        if access is not None:
            access.counted = int(cdna)
        return access
    if mnemonic.startswith("ds_"):
        return lds_access(mnemonic, operands, cdna)
    left = wait(mnemonic, operands)
    return Access(kind=WAIT, left=min(left, 63)) if left is not None else None


# ---- a launch -------------------------------------------------------------------------------------------------------------------

class Counter:
    """Counts some blocks of a launch. `module` is run_hsaco's, `instructions` those of its disassembly. `group`: so many blocks, one after the other,
    are counted together, since they share what they touch."""

    def __init__(self, module, instructions, card, group=1):
        self.group = group
        self.module, self.instructions = module, instructions
        places = module.size // 4 + 1
        self.accesses = (Access * places)()
        for address, mnemonic, operands in instructions:
            access = access_of(mnemonic, operands, module.arch == "cdna")
            if access is not None:
                self.accesses[address // 4] = access
        self.lanes, self.table = (ctypes.c_uint64 * places)(), (Line * TABLE_SIZE)()
        self.counts = Counts(access=ctypes.addressof(self.accesses), lanes=ctypes.addressof(self.lanes), table=ctypes.addressof(self.table),
                             table_size=TABLE_SIZE, line_bytes=card.line_bytes, first_level_bytes=card.first_level_bytes, banks=card.lds_banks)
        self.address, self.blocks, self.longest = ctypes.addressof(self.counts), 0, []

    def begin(self, *_):
        self.counts.group = self.blocks // self.group
        self.blocks += 1
        self.counts.block = self.blocks

    def end(self, instructions_of_waves):
        self.longest.append(max(instructions_of_waves))

    def result(self, stats, wave, extents, shared_work=False):
        """Sums over the blocks that were counted, as plain numbers; `extents` are the pieces of memory that lines may lie in. Blocks that come for
        their work when they are ready for it, and would share it evenly, have been executed one after the other: their mean counts."""
        entry = stats.entry
        c = self.counts
        if 2 * c.table_used >= TABLE_SIZE:
            raise MemoryError("more cache lines than the table of count.h has places: sample fewer blocks")
        by_kind, by_mnemonic, idle, vector = collections.Counter(), collections.Counter(), 0, 0
        names = {address - entry: mnemonic for address, mnemonic, _ in self.instructions}
        for offset, count in stats.counts.items():
            mnemonic = names.get(offset, "?")
            by_mnemonic[mnemonic] += count
            by_kind[kind_of(mnemonic)] += count
            if mnemonic.startswith(("v_", "ds_", "global_")):
                vector += count * wave
                idle += count * wave - self.lanes[(offset + entry) // 4]
        pieces = lines_by_piece(self.table, c.line_bytes, extents)
        return {"blocks": self.blocks, "instructions": dict(by_mnemonic), "kinds": dict(by_kind), "longest_wave": sum(self.longest) / len(self.longest) if shared_work else max(self.longest),
                "idle_lanes": idle / vector if vector else 0.0, "pieces": pieces, "line_bytes": c.line_bytes,
                "accesses": list(c.accesses), "lines": list(c.lines), "used": list(c.used), "asked": list(c.asked),
                "first_level_cycles": c.first_level_cycles, "lds_cycles": c.lds_cycles, "lds_cycles_min": c.lds_cycles_min, "waits": c.waits,
                "in_flight_bytes": c.weighted_bytes / c.retired_bytes if c.retired_bytes else 0.0}


def lines_by_piece(table, line_bytes, extents):
    """Of each piece of memory: its bytes, lines that one group of blocks alone touched, lines that several did, how often blocks touched lines, and
    which share of the lines was read and which written."""
    import numpy as np
    lines = np.frombuffer(table, dtype=[("number", "u8"), ("block", "u4"), ("blocks", "u4"), ("group", "u4"), ("groups", "u4"), ("how", "u4"), ("pad", "u4")])
    lines = lines[lines["number"] != 0]
    addresses = (lines["number"] - 1) * line_bytes
    found = []
    for begin, end in extents:
        inside = lines[(addresses + line_bytes > begin) & (addresses < end)]
        if len(inside):
            found.append({"bytes": int(end - begin), "alone": int((inside["groups"] == 1).sum()), "shared": int((inside["groups"] > 1).sum()),
                          "touches": int(inside["blocks"].sum()), "read": float((inside["how"] & 1).mean()), "written": float((inside["how"] >> 1 & 1).mean())})
    return found


def pieces_now(on_device):
    """The device's memory, buffer by buffer: each ends at an inaccessible page (testing/standin). on_device(address): whether it is in one of them."""
    with open("/proc/self/maps", encoding="ascii") as maps:
        lines = [line.split() for line in maps]
    for line, behind in zip(lines, lines[1:]):
        begin, end = (int(part, 16) for part in line[0].split("-"))
        if line[1] == "rw-p" and behind[1].startswith("---") and behind[0].startswith(line[0].split("-")[1]) and on_device(end - 256):
            outside, inside = begin // 256 - 1, end // 256 - 1  # other memory of the process may lie before it without a gap
            while inside - outside > 1:
                middle = (outside + inside) // 2
                outside, inside = (outside, middle) if on_device(256 * middle) else (middle, inside)
            yield 256 * inside, end
