#!/usr/bin/env python3
"""Compares what the documents say with the tree: links and their anchors, file names, every name in code style, rooms, chips, commands with their
options, targets of make, error messages, the origin of figures, and the index. Prints each wrong line as FILE:LINE: why, and exits 1 if there is one."""
import csv
import math
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
FOLDERS = "src|tests|include|examples|bench|scripts|cmake|docs|python|data|tools"
CHIP = re.compile(r"\b(gfx\d[0-9a-f]*(?:-\d)?(?:-generic)?|sm_\d+a?)\b")
# Chips that documents name and that are not compiled for: hipRTC compiles for these two in tests; the driver finishes PTX for any NVIDIA chip.
OTHER_CHIPS = {"gfx90c", "gfx1031", "gfx11", "gfx12", "gfx9", "gfx10", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"}
OTHER_HEADERS = {"stdint.h", "stddef.h", "stdbool.h", "stdio.h", "jansson.h", "zstd.h", "xxhash.h"}  # not ours
# Names in code style that belong to other projects.
OTHER_NAMES = set("""
    __builtin_amdgcn_global_load_lds __restrict__ global_load_dword global_load_lds_dword pshufb tbl v_perm_b32
    IDSelectorBitmap IndexIDMap PyDLL check_estimator get_current_count vec_version unhex
    _ENABLE_TRIGGER _TRUSTED_SCHEMA
    --cpus-per-task --requeue
""".split())

offences = []


def offend(path, line, why):
    offences.append(f"{path}:{line}: {why}")


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def tracked():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [path for path in listed.split("\n") if path and (ROOT / path).exists()]


def documents():
    return [path for path in tracked() if path.endswith(".md") and not path.startswith(("tests/", "data/"))]


def fenced(text, language):
    """The fenced blocks of one language in a Markdown text."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.M | re.S)


def code_spans(text):
    """(line number, text, language) of all code: `inline`, which has no language, and the lines of fenced blocks."""
    language = None
    for number, line in enumerate(text.split("\n"), 1):
        fence = re.match(r"```(\w*)", line)
        if fence:
            language = None if language is not None else fence.group(1)
        elif language is not None:
            yield number, line, language
        else:
            for span in re.findall(r"`([^`]+)`", line):
                yield number, span, ""


# ---- links -------------------------------------------------------------------------------------------------------------------


def anchors(text):
    """The anchors of a document, which can follow # in a link: headings as GitHub spells them, and explicit ones."""
    headings = re.findall(r"^#+ +(.*?) *$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), flags=re.M)
    spelled = {re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()).replace(" ", "-") for heading in headings}
    return spelled | set(re.findall(r'<a id="([^"]+)">', text))


def check_links(path, text):
    folder = (ROOT / path).parent
    for number, line in enumerate(text.split("\n"), 1):
        for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", line):
            if re.match(r"[a-z]+:", target):
                continue
            there = folder / target if target else ROOT / path
            if not there.exists():
                offend(path, number, f"{target} is not there")
            elif anchor and there.suffix == ".md" and anchor not in anchors(there.read_text(encoding="utf-8")):
                offend(path, number, f"{target or path} has no heading #{anchor}")


def check_index():
    index = read("docs/README.md")
    for path in documents():
        if path.startswith("docs/") and path != "docs/README.md" and f"({path.removeprefix('docs/')}" not in index:
            offend("docs/README.md", 1, f"does not lead to {path}")


# ---- names of files, rooms, chips ----------------------------------------------------------------------------------------------


def check_paths(path, text, files, names):
    """Paths and file names in code style exist. Words in capitals and * stand for any name."""
    for number, span, language in code_spans(text):
        if language not in ("", "sh"):
            continue
        for word in re.findall(rf"(?<![\w./-])(?:{FOLDERS})/[\w./*{{}},-]+", span):
            plain = word.rstrip(".,/")
            stands_for_any = re.search(r"[A-Z]{2,}|[*{]", plain)
            if not stands_for_any and plain not in files and not any(file.startswith(plain + "/") for file in files):
                offend(path, number, f"{plain} is not there")
        for word in re.findall(r"(?<![\w./<*-])[a-z]\w*\.(?:c|h|def)\b", span) if not language else []:
            if word not in names and word not in OTHER_HEADERS and not re.search(r"[A-Z]{2,}", word):
                offend(path, number, f"there is no file {word}")


def source_words(files):
    """Every word of the sources without their comments, and of their paths; and their text, for options."""
    words, texts = set(), []
    for file in files:
        words.update(re.findall(r"\w+", file))
        if file.endswith((".md", "check-docs.py")) or file.startswith(("data/", "tests/fuzz/corpus/")):
            continue
        text = (ROOT / file).read_bytes().decode("utf-8", errors="replace")
        if file.endswith((".c", ".h", ".def", ".S")):
            text = re.sub(r"//.*", "", re.sub(r"/\*.*?\*/", " ", text, flags=re.S))
        elif not file.endswith((".txt", ".in")):
            text = re.sub(r"^\s*#(?!include|define|if|elif).*$", "", text, flags=re.M)
        texts.append(text)
        words.update(re.findall(r"\w+", text))
    return words, "\n".join(texts)


def check_words(path, text, words, texts):
    """Names in code style (functions, variables, kernels, options) appear in a source. Capitals in a name, as in matmul_TYPE, stand for any text; m_c
    belongs to a formula."""
    for number, span, language in code_spans(text):
        if language:
            continue
        option = re.fullmatch(r"--[a-z][\w-]*", span)
        if option and span not in texts and span not in OTHER_NAMES:
            offend(path, number, f"no source has the option {span}")
        name = re.fullmatch(r"([A-Za-z_]\w*(?:\.\w+)*)(?:\(\))?", span)
        for part in name.group(1).split(".") if name else []:
            stands_for_any = re.search(r"[a-z]_?[A-Z]+(_|$)", part) or re.fullmatch(r"[a-z]_[a-z]", part)
            if part not in words and part not in OTHER_NAMES and not stands_for_any:
                offend(path, number, f"no source has the name {part}")


def check_names(path, text, headers):
    """Functions, types and constants of the API that documents name are in the headers. X and dots stand for any name."""
    for number, line in enumerate(text.split("\n"), 1):
        for name in re.findall(r"\b(?:ww|WW)_[A-Za-z0-9_]*[A-Za-z0-9](?!\w*\.\.\.|\w)", line):
            if not re.search(rf"\b{name}\b", headers) and not re.match(r"ww_X|ww_fail$|WW_API$", name):
                offend(path, number, f"{name} is in no header")


def check_kernel_words():
    """The words that kernels are written in are defined in src/kernels/simt, or by the compiler."""
    path = "docs/design/kernels.md"
    texts = "\n".join(file.read_text(encoding="utf-8") for folder in ("src/kernels/simt", "src/arithmetic") for file in (ROOT / folder).glob("*.h"))
    table = re.search(r"^## The words$(.*?)^## ", read(path), flags=re.M | re.S)
    for line in table.group(1).split("\n") if table else []:
        for span in re.findall(r"`(\w[^`]*)`", line) if line.startswith("| ") else []:
            word = re.match(r"\w+", span).group()
            stem = re.sub(r"[uf]\d\d$", "", word)  # macros define some words for several types
            if not re.search(rf"\b({word}\b|{stem}##)", texts):
                offend(path, 1, f"{word} is no word of src/kernels/simt")


ROOMS = ("src/", "programs/", "mpi/", "testing/")


def check_rooms(files):
    """The table of rooms in the architecture has every folder of the source, and no other. Folders in a room are named in its row, as `search/`."""
    path = "docs/design/architecture.md"
    folders = {str(parent) + "/" for file in files if file.startswith(ROOMS) for parent in list(pathlib.PurePosixPath(file).parents)[:-1]} - {"src/", "programs/", "testing/"}
    named = {}
    for number, line in enumerate(read(path).split("\n"), 1):
        for room, text in re.findall(r"^\| `((?:src|programs|mpi|testing)/[\w/]*)` \|(.*)", line):
            named.update({room + inside: number for inside in ["", *re.findall(r"`((?:\w+/)+)`", text)]})
    for folder in sorted(folders - set(named)):
        offend(path, 1, f"the table of rooms lacks {folder}")
    for folder in sorted(set(named) - folders):
        offend(path, named[folder], f"{folder} is not there")


def chips():
    """The chips that kernels are compiled for: from the list of scripts/kernels/chips.sh, or the variables of cmake/Kernels.cmake with CHIPS in their
    names."""
    list_of_them = ROOT / "scripts/kernels/chips.sh"
    if list_of_them.exists():
        bodies = re.findall(r'^(?:amd|nvidia)="([^"]*)"', list_of_them.read_text(encoding="utf-8"), flags=re.M)
    else:
        bodies = re.findall(r"set\(\s*\w*CHIPS\w*\s([^)]*)\)", read("cmake/Kernels.cmake"))
    return set(CHIP.findall(" ".join(bodies)))


def check_chips(path, text, known):
    counts = {"AMD": sum(chip.startswith("gfx") for chip in known), "NVIDIA": sum(chip.startswith("sm_") for chip in known)}
    for number, line in enumerate(text.split("\n"), 1):
        for chip in CHIP.findall(line):
            if chip not in known | OTHER_CHIPS and not chip.endswith("-generic"):
                offend(path, number, f"{chip} is not a chip that kernels are compiled for")
        for count, vendor in re.findall(r"\b(\d+) (AMD|NVIDIA) (?:chips|targets|ones)\b", line):
            if int(count) != counts[vendor]:
                offend(path, number, f"{count} {vendor} chips; kernels are compiled for {counts[vendor]}")


def check_chip_tables(known):
    for path, kind in (("docs/design/kernels.md", ""), ("docs/guide/amd.md", "gfx"), ("docs/guide/nvidia.md", "sm_")):
        missing = sorted(chip for chip in known if chip.startswith(kind) and chip not in read(path))
        if missing:
            offend(path, 1, f"does not name {', '.join(missing)}")


# ---- commands and targets ------------------------------------------------------------------------------------------------------


def commands():
    """For each command of `warpwave`: its options, and the words that its source contains (info, encode, ...)."""
    found = {}
    for file in sorted((ROOT / "programs/warpwave").glob("**/*.c")):
        if file.name.startswith("no_"):  # stands for a command that was not built
            continue
        text = file.read_text(encoding="utf-8")
        for name in re.findall(r'const command command_\w+ = \{\s*\.name = "(\w+)"', text):
            alone = file.parent == ROOT / "programs/warpwave"
            parts = [file] if alone else sorted(file.parent.glob("*.c"))
            texts = "\n".join(part.read_text(encoding="utf-8") for part in parts)
            options = set(re.findall(r'"(--?[a-z][\w-]*)"', texts)) - {"--help", "-h", "--version"}
            found[name] = (options, set(re.findall(r'"([a-z]+)"', texts)))
    return found


def python_commands():
    """The command that the Python package adds, in the same form."""
    text = read("python/warpwave/_import.py")
    return {"import": (set(re.findall(r'"(--[a-z][\w-]*)"', text)), set())}


def check_command_lines(path, text, known):
    for number, line, language in code_spans(text):
        if language not in ("", "sh", "console"):
            continue
        for name, rest in re.findall(r"(?:^|[ /(])warpwave ([a-z]+)\b([^|#;&>]*)", line):
            if name not in known:
                offend(path, number, f"`warpwave {name}`: there is no such command")
                continue
            options, words = known[name]
            for option in re.findall(r"(?<!\S)(--?[a-z][\w-]*)", rest):
                if option not in options | {"--help", "--version"}:
                    offend(path, number, f"`warpwave {name}` has no option {option}")
            word = re.match(r" ([a-z]+)(?= |$)", rest)
            if word and name in ("gguf", "quant") and word.group(1) not in words:
                offend(path, number, f"`warpwave {name} {word.group(1)}`: there is no such command")


def check_command_page(known):
    """Each command has a section, with the place where the build puts the list of its options."""
    path = "docs/reference/command.md"
    text = read(path)
    for name, (options, _) in known.items():
        section = re.search(rf"^## `warpwave {name}`$(.*?)(?=^## |\Z)", text, flags=re.M | re.S)
        if not section:
            offend(path, 1, f"has no section on `warpwave {name}`")
        elif options and f"\n<!-- options of {name} -->\n" not in section.group(1):
            offend(path, 1, f"the section on `warpwave {name}` has no comment 'options of {name}', where the build puts them")


def check_targets(path, text, targets):
    for number, line, language in code_spans(text):
        if language in ("", "sh", "console"):
            for target in re.findall(r"(?:^|[ (;&])make ([a-z][a-z-]*)\b(?!/)", line):
                if target not in targets:
                    offend(path, number, f"`make {target}` is no target of the Makefile")


# The front page and the results are read by people in a hurry.
WORDS_MAX = {"README.md": 900, "bench/RESULTS.md": 1500, "docs/evidence/amd-performance.md": 900}


def check_reader(path, text):
    """A page of the guide, the design or the reference says at its top who it is for; the two pages above are short."""
    if re.match(r"docs/(guide|design|reference)/", path) and not re.search(r"^\*?For ", "\n".join(text.split("\n")[1:5]), flags=re.M):
        offend(path, 1, "does not say at its top who it is for: '*For people who ...*'")
    if len(text.split()) > WORDS_MAX.get(path, math.inf):
        offend(path, 1, f"has {len(text.split())} words; the maximum is {WORDS_MAX[path]}")


def check_measurements(path, text):
    """`bench/run BUILD NAME` names a measurement that bench/run has."""
    known = re.findall(r"^#   ([a-z]+(?:-[a-z]+)*) +\w", read("bench/run"), flags=re.M)
    for number, line, _ in code_spans(text):
        for name in re.findall(r"\bbench/run build ([\w-]+)", line):
            if name not in known:
                offend(path, number, f"bench/run has no measurement '{name}'")


def check_readme():
    readme = read("README.md")
    for command in ("demo", "test"):
        if f"make {command}" not in readme:
            offend("README.md", 1, f"does not show `make {command}`")
    if read("examples/search.c") not in fenced(read("docs/guide/start.md"), "c"):
        offend("docs/guide/start.md", 1, "the C example is not examples/search.c, letter for letter")


# ---- figures ------------------------------------------------------------------------------------------------------------------


def check_figures(files):
    """Every row of bench/results says where it comes from; notes.csv has the conditions instead."""
    for path in sorted(file for file in files if re.fullmatch(r"bench/results/[\w-]+\.csv", file)):
        rows = list(csv.reader(read(path).splitlines()))
        if path.endswith("/notes.csv"):
            continue
        if rows[0][-4:] != ["machine", "date", "commit", "command"]:
            offend(path, 1, "does not end with the columns machine, date, commit, command")
        for number, row in enumerate(rows[1:], 2):
            if len(row) != len(rows[0]) or not all(row[-4:]):
                offend(path, number, "has no machine, date, commit or command, or another number of columns")


# ---- messages ------------------------------------------------------------------------------------------------------------------


def messages():
    """Every text in the code that could be a message, as a pattern: a conversion stands for anything."""
    for file in (ROOT / "src").glob("**/*.c"):
        for literal in re.findall(r'"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*', file.read_text(encoding="utf-8")):
            text = "".join(re.findall(r'"((?:\\.|[^"\\\n])*)"', literal)).replace('\\"', '"').replace("\\n", "")
            pieces = re.split(r"%[-+ #0-9.*]*(?:hh|h|ll|l|z|j|t)?[a-zA-Z]", text)
            if max(len(piece) for piece in pieces) >= 8:
                yield re.compile(".*?".join(map(re.escape, pieces)) + "$")


def check_messages(paths):
    """Blocks of `text` in these documents show messages, one per line; each ends like a text in the code."""
    patterns = list(messages())
    for path in paths:
        for number, line, language in code_spans(read(path)):
            if language == "text" and line.strip() and not any(pattern.search(line) for pattern in patterns):
                offend(path, number, f"no message of the code reads so: {line}")


def main():
    files = set(tracked())
    names = {pathlib.PurePosixPath(file).name for file in files}
    targets = set(re.findall(r"^([\w-]+):", read("Makefile"), flags=re.M))
    targets.update(f"check-{name}" for name in re.findall(r"^([a-z-]+) +[n-]  \w", read("scripts/check"), flags=re.M))
    known_chips, known_commands = chips(), commands()
    headers = "\n".join(read(file) for file in sorted(files) if file.startswith("include/"))
    headers += read("src/store/sqlite/functions.c") + read("src/store/sqlite/models.c")  # the names that SQL knows
    words, texts = source_words(files)
    for path in sorted(file for file in files if file.startswith("include/")):
        check_words(path, read(path), words, texts)
    for path in documents():
        text = read(path)
        check_links(path, text)
        if not path.startswith("docs/evidence/"):
            check_paths(path, text, files, names)
            check_chips(path, text, known_chips)
            check_names(path, text, headers)
            check_words(path, text, words, texts)
        check_command_lines(path, text, known_commands | python_commands())
        check_targets(path, text, targets)
        check_measurements(path, text)
        check_reader(path, text)
    check_index()
    check_rooms(files)
    check_kernel_words()
    check_chip_tables(known_chips)
    check_command_page(known_commands)
    check_readme()
    check_figures(files)
    check_messages(["docs/reference/errors.md", "docs/reference/files.md"])
    print("\n".join(offences), file=sys.stderr, end="\n" if offences else "")
    sys.exit(1 if offences else 0)


if __name__ == "__main__":
    main()
