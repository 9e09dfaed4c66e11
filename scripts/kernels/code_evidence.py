#!/usr/bin/env python3
"""The table of AMD machine code that was executed on an emulator, and the words that are made from it.

    scripts/kernels/code_evidence.py check BUILD      compares the table with the tree, without compiling: fails if a kernel of a chip that README
                                                      calls emulated was not executed as it is now. BUILD is configured, not built
    scripts/kernels/code_evidence.py changed BUILD    prints the kernels and chips that were not executed as they are now
    scripts/kernels/code_evidence.py write BUILD      writes these words into README.md and docs/evidence/codeobjects.md
    scripts/kernels/code_evidence.py release FOLDER   fails if FOLDER (kernels/ of a build) has machine code of such a chip that was not executed

docs/evidence/codeobjects.tsv has a line for each kernel and chip: hashes of its source (all that it includes, and the options) and of its machine code,
the compiler, the cases that were run, and the result. tests/codeobjects/execute.py writes it.
"""
import functools
import hashlib
import pathlib
import re
import sys

from code_objects import CodeObject

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS = ROOT / "src/kernels"
TABLE = ROOT / "docs/evidence/codeobjects.tsv"
PAGE = ROOT / "docs/evidence/codeobjects.md"
README = ROOT / "README.md"
CHIPS = ("gfx942", "gfx90a", "gfx950", "gfx1100", "gfx1201")  # those that the emulator has instructions for
COLUMNS = ("chip", "module", "kernel", "source", "code", "compiler", "cases", "launches", "comparisons", "instructions", "reached", "result")
OTHER_MACHINES = ("simt_nvidia.h", "simt_emulated.h", "emulated_kernel.h")  # included for other machines only
WORDS = re.compile(r"(?:gfx\w+(?:, gfx\w+)*: emulated; )?[\w-]+ other targets: compiled")
BEGIN, END = "<!-- counts: written from codeobjects.tsv -->", "<!-- end of counts -->"
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen")


# ---- what the tree has ------------------------------------------------------------------------------------------------------

@functools.lru_cache(maxsize=None)
def normal(path):
    """The text without comments and with single spaces: what the compiler sees of it."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r'("(?:\\.|[^"\\\n])*")|/\*.*?\*/|//[^\n]*', lambda m: m[1] or " ", text, flags=re.S)
    return re.sub(r"[ \t\n]*\n[ \t\n]*", "\n", re.sub(r"[ \t]+", " ", text)).strip()


@functools.lru_cache(maxsize=None)
def included(path, root):
    """The files that this one includes, as (name, path), in the order of the text."""
    names = re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(encoding="utf-8"), flags=re.M)
    found = []
    for name in names:
        if name.rsplit("/", 1)[-1] not in OTHER_MACHINES:
            found.append((name, path.parent / name if (path.parent / name).exists() else root / name))
    return tuple(found)


def source_hash(source, root, options):
    """Of a module's text, of all that it includes (known by the names that they are included by), and of the options."""
    files, left = {}, [(source.name, source)]
    while left:
        name, path = left.pop()
        if name not in files:
            files[name] = normal(path)
            left += included(path, root)
    digest = hashlib.sha256(options.encode())
    for name in sorted(files):
        digest.update(f"\0{name}\0{files[name]}".encode())
    return digest.hexdigest()[:16]


def modules(build):
    """(chip, module): options, as the build compiles them for AMD's chips. cmake writes that file."""
    path = build / "kernels/modules.txt"
    if not path.exists():
        sys.exit(f"code_evidence: {path} is missing: run cmake first")
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        chip, module, options = line.split(" ", 2)
        found[chip, module] = re.sub(r" -I\S+", "", options)
    return found


def tree(build):
    """(chip, kernel): (module, hash of the source), for all chips of CHIPS."""
    text = (KERNELS / "kernels.def").read_text(encoding="utf-8")
    entries = re.findall(r"^KERNEL_ENTRY\(\s*(\w+)\s*,\s*(\w+)\s*,", text, flags=re.M)
    sources = {path.stem: path for path in KERNELS.rglob("*.c")}
    options, hashes = modules(build), {}
    for chip, module in options:
        if chip in CHIPS:
            hashes[chip, module] = source_hash(sources[module], KERNELS.parent, options[chip, module])
    return {(chip, kernel): (module, hashes[chip, module]) for chip in CHIPS for module, kernel in entries if (chip, module) in hashes}


def other_targets():
    """How many of AMD's targets are only compiled."""
    amd = re.search(r'^amd="(.*)"$', (ROOT / "scripts/kernels/chips.sh").read_text(encoding="utf-8"), flags=re.M)[1].split()
    return [chip for chip in amd if chip not in CHIPS]


# ---- the table --------------------------------------------------------------------------------------------------------------

def read_table():
    """(chip, kernel): row, a dict of COLUMNS."""
    if not TABLE.exists():
        return {}
    lines = TABLE.read_text(encoding="utf-8").splitlines()[1:]
    rows = (dict(zip(COLUMNS, line.split("\t"), strict=True)) for line in lines)
    return {(row["chip"], row["kernel"]): row for row in rows}


def write_table(rows):
    order = {chip: number for number, chip in enumerate(CHIPS)}
    some = sorted(rows.values(), key=lambda row: (order.get(row["chip"], 99), row["module"], row["kernel"]))
    text = "\n".join("\t".join(str(row[column]) for column in COLUMNS) for row in some)
    new = TABLE.with_suffix(".new")
    new.write_text("\t".join(COLUMNS) + "\n" + text + "\n", encoding="utf-8")
    new.replace(TABLE)


def counts(kernels, table):
    """For each chip: the kernels that were executed as they are now, and of the others, why not."""
    found = {chip: {"executed": [], "missing": [], "changed": [], "failed": []} for chip in CHIPS}
    for (chip, kernel), (_, source) in kernels.items():
        row = table.get((chip, kernel))
        kind = "missing" if row is None else "changed" if row["source"] != source else "executed" if row["result"] == "passed" else "failed"
        found[chip][kind].append(kernel)
    return found


def emulated(found):
    return [chip for chip in CHIPS if found[chip]["executed"] and not any(found[chip][kind] for kind in ("missing", "changed", "failed"))]


# ---- the words --------------------------------------------------------------------------------------------------------------

def words(found):
    """What README says of AMD's chips."""
    chips, others = emulated(found), len(other_targets()) + len(CHIPS) - len(emulated(found))
    return (f"{', '.join(chips)}: emulated; " if chips else "") + f"{NUMBERS[others]} other targets: compiled"


def page_counts(found, table):
    """The table of docs/evidence/codeobjects.md."""
    total = {kind: sum(len(found[chip][kind]) for chip in CHIPS) for kind in ("executed", "missing", "changed", "failed")}
    yield (f"**{total['missing']} not executed, {total['changed']} changed since they were executed, {total['failed']} differences** in "
           f"{sum(total.values())} pairs of kernel and chip.\n")
    yield "| chip | kernels | executed as they are now | not executed | changed since | differences | launches | comparisons | instructions reached | in small cases only |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    for chip in CHIPS:
        of = found[chip]
        rows = [table[chip, kernel] for kernel in of["executed"]]
        launches, comparisons, reached, instructions = (sum(int(row[name]) for row in rows) for name in ("launches", "comparisons", "reached", "instructions"))
        yield (f"| {chip} | {sum(map(len, of.values()))} | {len(rows)} | {len(of['missing'])} | {len(of['changed'])} | {len(of['failed'])} | {launches:,} | "
               f"{comparisons:,} | {reached / max(1, instructions):.0%} | {sum(row['cases'] == 'small' for row in rows)} |")
    compilers = ", ".join(sorted({row["compiler"] for row in table.values()}))
    yield f"\nMachine code of clang {compilers}. [codeobjects.tsv](codeobjects.tsv) has a line for each kernel and chip, with the hashes."


def with_words(text, found):
    return WORDS.sub(words(found), text, count=1)


def with_counts(text, found, table):
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    return text[:begin] + "\n" + "\n".join(page_counts(found, table)) + "\n" + text[end:]


# ---- what it is called for -----------------------------------------------------------------------------------------------

def check(build):
    table = read_table()
    found = counts(tree(build), table)
    wrong = []
    readme, page = README.read_text(encoding="utf-8"), PAGE.read_text(encoding="utf-8")
    said = WORDS.search(readme)
    claimed = re.findall(r"gfx\w+", said[0].split(":")[0]) if said and "emulated" in said[0] else []
    for chip in claimed:
        for kind, text in (("changed", "changed since they were executed"), ("missing", "were never executed"), ("failed", "differ from the CPU")):
            some = found.get(chip, {}).get(kind, [])
            if some:
                wrong.append(f"{chip} is called emulated, but {len(some)} of its kernels {text}: {', '.join(some[:5])}{', ...' if len(some) > 5 else ''}")
    if not said or said[0] != words(found):
        wrong.append(f"README.md must say '{words(found)}'")
    if page != with_counts(page, found, table):
        wrong.append("the counts of docs/evidence/codeobjects.md are not those of the table")
    compiler = compiler_of(build)
    built_by = {row["compiler"] for row in table.values()}
    if compiler and compiler not in built_by:
        print(f"evidence: this build's clang is {compiler}, the executed machine code is by {', '.join(sorted(built_by)) or 'none'}")
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        print("TINYGRAD_PATH=... make check-codeobjects executes what changed; scripts/kernels/code_evidence.py write BUILD writes the words", file=sys.stderr)
    return 1 if wrong else 0


def compiler_of(build):
    path = build / "kernels/compiler.txt"
    version = re.search(r"version (\d+(?:\.\d+)*)", path.read_text(encoding="utf-8")) if path.exists() else None
    return version[1] if version else ""


def write(build):
    table = read_table()
    found = counts(tree(build), table)
    README.write_text(with_words(README.read_text(encoding="utf-8"), found), encoding="utf-8")
    PAGE.write_text(with_counts(PAGE.read_text(encoding="utf-8"), found, table), encoding="utf-8")
    return 0


def changed(build):
    found = counts(tree(build), read_table())
    for chip in CHIPS:
        for kind in ("missing", "changed", "failed"):
            for kernel in found[chip][kind]:
                print(chip, kernel)
    return 0


def unexecuted(folder, table):
    """The kernels of chips that README calls emulated whose machine code in the folder was not executed."""
    said = WORDS.search(README.read_text(encoding="utf-8"))
    for chip in CHIPS:
        if said and chip in said[0]:
            for path in sorted(folder.glob(f"*.{chip}.hsaco")):
                code = CodeObject(path.read_bytes())
                for kernel in code.kernels:
                    row = table.get((chip, kernel), {})
                    if row.get("result") != "passed" or row["code"] != code.hash_of(kernel):
                        yield chip, kernel


def release(folder):
    wrong = [f"{chip} {kernel}" for chip, kernel in unexecuted(folder, read_table())]
    if wrong:
        print(f"{len(wrong)} kernels of chips that README calls emulated were never executed as they are compiled here: {', '.join(wrong[:8])}"
              f"{', ...' if len(wrong) > 8 else ''}. TINYGRAD_PATH=... make check-codeobjects executes them.", file=sys.stderr)
    return 1 if wrong else 0


def main():
    commands = {"check": check, "changed": changed, "write": write, "release": release}
    if len(sys.argv) != 3 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    sys.exit(commands[sys.argv[1]](pathlib.Path(sys.argv[2])))


if __name__ == "__main__":
    main()
