"""Chips whose code cannot be executed here: the share of their instructions, identified by name and modifiers, that was executed in the code of
similar chips. The code of both is only disassembled."""
import collections
import json
import re
import shutil
import subprocess

# of the chips that cannot be executed, those with the nearest instructions that can
CDNA, RDNA = ("gfx90a", "gfx942", "gfx950"), ("gfx1100", "gfx1201")
SIBLINGS = {"gfx906": CDNA, "gfx908": CDNA, "gfx9-generic": CDNA, "gfx9-4-generic": CDNA, "gfx1030": RDNA, "gfx10-1-generic": RDNA, "gfx10-3-generic": RDNA,
            "gfx11-generic": ("gfx1100",), "gfx1151": RDNA, "gfx12-generic": ("gfx1201",), "gfx1250": ("gfx1201",)}

OBJDUMP = shutil.which("llvm-objdump-22") or "llvm-objdump-19"  # the first knows the newest chips

# instructions that RDNA 3 has under other names
RENAMED = [(r"^(s_(?:buffer_)?load)_dword(?:x(\d+))?$", lambda m: f"{m[1]}_b{32 * int(m[2] or 1)}"),
           (r"^((?:global|flat|scratch|buffer)_(?:load|store))_dword(?:x(\d+))?$", lambda m: f"{m[1]}_b{32 * int(m[2] or 1)}"),
           (r"^((?:global|flat|scratch|buffer)_load)_ubyte$", lambda m: f"{m[1]}_u8"), (r"^((?:global|flat|scratch|buffer)_load)_sbyte$", lambda m: f"{m[1]}_i8"),
           (r"^((?:global|flat|scratch|buffer)_load)_ushort$", lambda m: f"{m[1]}_u16"), (r"^((?:global|flat|scratch|buffer)_load)_sshort$", lambda m: f"{m[1]}_i16"),
           (r"^((?:global|flat|scratch|buffer)_load)_short_d16(_hi)?$", lambda m: f"{m[1]}_d16{m[2] or ''}_b16"),
           (r"^((?:global|flat|scratch|buffer)_store)_byte$", lambda m: f"{m[1]}_b8"), (r"^((?:global|flat|scratch|buffer)_store)_short$", lambda m: f"{m[1]}_b16"),
           (r"^ds_read2?(st64)?_", lambda m: m[0].replace("read", "load_2addr" if "read2" in m[0] else "load").replace("_2addrst64", "_2addr_stride64")),
           (r"^ds_write2?(st64)?_", lambda m: m[0].replace("write", "store_2addr" if "write2" in m[0] else "store").replace("_2addrst64", "_2addr_stride64")),
           (r"2addr2(st64)?", lambda m: "2addr_stride64" if m[1] else "2addr"), (r"^(global_atomic_\w+?)_x2$", lambda m: f"{m[1]}_u64"),
           (r"andn2", lambda m: "and_not1"), (r"orn2", lambda m: "or_not1"), (r"^s_ff1_i32_b", lambda m: "s_ctz_i32_b"), (r"^s_flbit_i32_b", lambda m: "s_clz_i32_u"),
           (r"^v_ffbh_u32", lambda m: "v_clz_i32_u32"), (r"^v_ffbl_b32", lambda m: "v_ctz_i32_b32"), (r"^v_cvt_pkrtz", lambda m: "v_cvt_pk_rtz")]


def signature(name, operands, renames):
    """An instruction without its registers and numbers: its name and its modifiers."""
    encoding = re.search(r"_(dpp8?|sdwa)$", name)
    name = re.sub(r"_(e32|e64|dpp8?|sdwa|e64_dpp)$", "", name).replace("v_dual_", "v_")
    for pattern, other in RENAMED if renames else ():
        name = re.sub(pattern, other, name)
    modifiers = {encoding[1]} if encoding else set()
    modifiers.update(re.findall(r"\b(?:(?!row_mask|bank_mask)[a-z_]\w*(?=:)|glc|slc|dlc|offen|idxen|lds|clamp|nt|sc[01]|gds|row_mirror|row_half_mirror|abs|neg)\b", operands))
    modifiers.update("|-"[sign == "-"] for sign in re.findall(r"(?<![\w.])([|-])(?=[vs|])", operands))
    return name, tuple(sorted(modifiers))


def disassembled(path, renames):
    """(kernel, distance from its start, signature) of each instruction of a module; a dual instruction counts as two."""
    listing = subprocess.run([OBJDUMP, "-d", "--no-show-raw-insn", str(path)], check=True, capture_output=True, text=True).stdout
    kernel = begin = None
    for text in listing.splitlines():
        if head := re.match(r"^([0-9a-f]+) <(\w+)>:$", text):
            begin, kernel = int(head[1], 16), head[2]
        elif found := re.match(r"^\s+(?!s_code_end)(\w.*?)\s*// ([0-9A-F]{12}):?", text):
            for part in found[1].split(" :: "):
                name, _, operands = part.strip().partition(" ")
                yield kernel, int(found[2], 16) - begin, signature(name, operands, renames)


def shares(build, modules, results):
    """For each chip that cannot be executed and has code here: the siblings, instructions, those whose like was executed, and the kinds that are missing, with
    how many instructions each has and where else it is: the chips that executed it, none, or None if a sibling has it where no test gets to."""
    executed, present = ({chip: set() for chip in CDNA + RDNA} for _ in range(2))
    for chip, paths, of_chip in [(chip, modules_of(build, modules, chip), results[chip]) for chip in results] + list(by_dot2(build, results)):
        reached = {kernel: set(result.get("executed", ())) for kernel, result in of_chip.items()}
        for path in paths:
            for kernel, at, sign in disassembled(path, False):
                present[chip].add(sign)
                if at in reached.get(kernel, ()):
                    executed[chip].add(sign)
    for chip, siblings in SIBLINGS.items():
        known, there, total, missing = set().union(*(executed[one] for one in siblings)), set().union(*(present[one] for one in siblings)), 0, collections.Counter()
        for path in modules_of(build, modules, chip):
            for _, _, sign in disassembled(path, chip.startswith("gfx10")):
                total += 1
                if sign not in known:
                    missing[sign] += 1
        if total:
            yield chip, siblings, total, total - missing.total(), [
                (sign, count, None if sign in there else [one for one in executed if sign in executed[one]]) for sign, count in missing.most_common()]


def by_dot2(build, chips):
    """The results of check.py --dot2: code for chips without matrix units, compiled for these."""
    for chip in chips:
        told = build / "codeobjects/dot2" / f"{chip}.json"
        if told.exists():
            yield chip, [build / "codeobjects/dot2" / f"matmul_fast.{chip}.hsaco"], json.loads(told.read_text(encoding="utf-8"))


def modules_of(build, modules, chip):
    paths = (build / "kernels" / f"{module}.{chip}.hsaco" for module in sorted({module for module, _ in modules}))
    return [path for path in paths if path.exists()]
