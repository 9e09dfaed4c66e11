#!/usr/bin/env python3
"""Checks what no compiler does: which folder includes which, how long files and how full folders are, where code asks for a vendor,
words that mean unfinished work; and, with scripts/check-docs.py, that the documents agree with the tree. Prints each offending line as
FILE:LINE: why, and exits 1 if there was one.
"""
import ast
import fnmatch
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Arrows run one way (docs/design/architecture.md). A folder may include itself, the folders named here, and include/warpwave. The
# longest name that fits a file counts, so a subfolder has arrows of its own where it is named. "cpu" is everything below src/cpu;
# "cpu/." only what lies in that folder itself.
# What a backend implements, and nothing else of device/.
INTERFACE = [f"device/{name}.h" for name in ("backend", "tuning", "results", "certificate", "segment_buffers", "tensor_jobs", "row_jobs", "matmul_job", "quant_jobs", "kernel_jobs")]
CPU_SHARED = ["cpu/.", "cpu/isa/.", "cpu/search", "cpu/tensor", "cpu/matmul", "cpu/quant", "cpu/attention"]
CPU_BELOW = ["kernels/elementwise", "arithmetic", "base", *INTERFACE]
GPU_BELOW = ["kernels", "arithmetic", "base", *INTERFACE]
ARROWS = {
    "base": [],  # what the machine and the process are asked is base/system, which has the code of base/memory.h and base/pool.h
    "base/system": ["base/."],
    "base/files": ["base/."],
    "base/json": ["base/."],
    "base/strings": ["base/."],
    "base/tables": ["base/."],
    "arithmetic": ["base"],
    "kernels": ["arithmetic", "base"],
    "kernels/simt": ["arithmetic"],
    "kernels/search": ["kernels/simt", "arithmetic"],
    "kernels/screen": ["kernels/search", "kernels/simt", "arithmetic"],
    "kernels/elementwise": ["kernels/simt", "arithmetic"],
    "kernels/reduce": ["kernels/elementwise", "kernels/simt", "arithmetic"],
    "kernels/matmul": ["kernels/simt", "arithmetic"],
    "kernels/quant": ["kernels/simt", "arithmetic"],
    "kernels/quant/tile": ["kernels/quant", "kernels/simt", "arithmetic"],
    "kernels/attention": ["kernels/simt", "arithmetic"],
    # Shared CPU headers are written once for all instruction sets, so they include none of their folders; a set may build on another.
    "cpu": [*CPU_SHARED, *CPU_BELOW],
    "cpu/isa/avx512": ["cpu/isa/avx2", *CPU_SHARED, *CPU_BELOW],
    "cpu/isa/amx": ["cpu/isa/avx512", "cpu/isa/avx2", *CPU_SHARED, *CPU_BELOW],
    "gpu": ["gpu", *GPU_BELOW],
    "gpu/driver": ["gpu/.", *GPU_BELOW],
    "gpu/blas": ["gpu/driver", "gpu/.", *GPU_BELOW],
    "gpu/search": ["gpu/driver", "gpu/.", *GPU_BELOW],
    "gpu/tensor": ["gpu/blas", "gpu/driver", "gpu/.", *GPU_BELOW],
    "gpu/quant": ["gpu/tensor", "gpu/blas", "gpu/driver", "gpu/.", *GPU_BELOW],
    "device": ["kernels", "arithmetic", "base"],
    "device/registry.c": ["cpu", "gpu", "device", "kernels", "base"],  # names the backends
    "device/group": ["device/.", "arithmetic", "base"],
    "files": ["arithmetic/half.h", "base"],
    "vectors": ["tensor/tensor.h", "device", "arithmetic", "base"],  # rows and queries may come as tensors
    "vectors/query/score.c": ["cpu/isa/.", "vectors", "arithmetic", "base"],  # ww_score() is defined as what the CPU computes
    "map": ["vectors/collection.h", "arithmetic", "base"],
    "store": ["vectors/collection.h", "vectors/internal", "vectors/filter", "vectors/multi", "vectors/sparse", "vectors/query/results.h", "vectors/write/payloads.h", "device/share.h", "arithmetic", "base"],
    "store/maps": ["store/.", "vectors/operations.h", "arithmetic", "base"],
    "store/sqlite": ["store", "vectors/collection.h", "vectors/internal", "vectors/query/results.h", "vectors/write/payloads.h", "arithmetic", "base"],
    "tensor": ["device", "arithmetic", "base"],
    "quant": ["tensor", "device", "arithmetic", "base"],
    "gguf": ["quant", "tensor", "files", "device", "arithmetic", "base"],
    "mpi": ["base"],  # a library of its own, on public headers
    "mpi/command": ["warpwave/.", "mpi", "files/matrix.h", "base"],
    "text": ["vectors/query/results.h", "base"],
    "model": ["gguf", "quant", "tensor", "files", "device", "arithmetic", "base"],
    "model/tokenizer": ["model/.", "gguf", "files", "base"],
    "model/grammar": ["model/tokenizer", "model/.", "base"],
    "model/template": ["model/.", "base"],
    "model/convert": ["model/tokenizer/vocabulary.h", "gguf", "files", "base"],
    # Programs use public headers and base. What they still reach for besides is named here, header by header, to become public or to move.
    "snapshot": ["base"],
    "server": ["snapshot", "base"],
    "warpwave": ["files/matrix.h", "arithmetic/row_values.h", "base"],
    "warpwave/store": ["warpwave", "snapshot", "files/matrix.h", "arithmetic/row_values.h", "base"],
    "warpwave/serve": ["warpwave/.", "warpwave/text/lines.h", "warpwave/model/place.h", "server/.", "base"],
    "warpwave/key": ["warpwave/.", "server/keys/keys.h", "server/out.h", "base"],
    "warpwave/cluster": ["warpwave/.", "server/nodes/members.h", "base"],
    # Tools of the tests, which nothing else includes.
    "emulator": ["kernels", "base"],
    "emulated": ["emulator", "gpu/driver/.", "gpu/.", *GPU_BELOW],
    "standin": ["emulated", "emulator", "gpu/driver", "gpu/blas", "kernels", "arithmetic", "base"],
    "inject": [],
}
# Where a kernel or shared arithmetic may ask which vendor it is compiled for (docs/design/kernels.md says why); everywhere else what
# differs is behind a word of simt.h.
VENDOR_CONDITION = re.compile(r"^\s*#\s*(if|elif|ifdef|ifndef)\b.*(__AMDGCN__|__NVPTX__|__gfx\w*__|__CUDA_ARCH|__HIP)")
VENDOR_FILES = {
    "src/arithmetic/function.h": "device functions are marked",
    "src/arithmetic/convert.h": "the chips' own conversions of halves",
    "src/arithmetic/root.h": "a builtin that older clangs lack",
    "src/arithmetic/blocks/dot.h": "loads of blocks that are aligned to two bytes",
    "src/kernels/quant/quant.h": "device data is marked; where tensor cores want codes",
    "src/kernels/quant/quant_gemv.h": "mma.sync, unrolling, variants that AMD's chips do without",
    "src/kernels/quant/quant_gemv_one.c": "a form for the copy engine, and one for chips without",
    "src/kernels/quant/quant_gemv_layout.h": "rows that the copy engine does not bring are moved",
    "src/kernels/quant/quant_gemv_mfma.h": "MFMA of 16 and of 32 bytes",
    "src/kernels/matmul/conv_shared.h": "how elements are brought, and what there is room for",
    "src/kernels/quant/quant_*stages.h": "the copy engine",
    "src/kernels/quant/tile/*": "unrolling; where stages wait",
    "src/kernels/quant/quant_words.h": "byte permutations",
    "src/kernels/elementwise/tensor_pow_atan2.c": "registers for bounds of powers",
    "src/kernels/search/search_one.h": "rows in flight",
}
FOLDER_FILES_MAX = 30
# Functions of src and bench take at most so many parameters; more are a struct that has a name. Where more are allowed, and why; public
# functions (ww_...) are as their header promises.
PARAMETERS_MAX = 5
MANY_PARAMETERS = {
    "src/kernels/*": "inlined; the first parameters are constants, and a struct would change machine code",
    "src/arithmetic/*": "inlined into kernels and inner loops",
    "src/cpu/isa/*": "inner loops: parameters are registers",
    "src/cpu/attention/attention_template.h": "likewise",
    "src/cpu/search/*": "loops over 64 rows: parameters are registers",
    "src/cpu/quant/*.h": "templates of inner loops, by format",
    "src/cpu/matmul/matmul.h": "the table of tiles that instruction sets fill, in the manner of BLAS libraries: a, b, k, c, stride",
    "src/cpu/tensor/element_loops*.h": "the table of inner loops that instruction sets fill",
    "src/cpu/tensor/row_loops*.h": "likewise",
    "src/store/filter/filter.c": "SQLite's authorizer",
    "programs/server/http.c": "libmicrohttpd's callback for requests",
    "programs/server/snapshots/upload.c": "libmicrohttpd's callback for forms",
    "programs/server/tls.c": "GnuTLS's callback for certificates",
    "src/store/sqlite/table.c": "SQLite's functions of a virtual table",
    "src/store/sqlite/hybrid.c": "likewise",
    "testing/standin/*": "the signatures of vendors' libraries",
    "testing/inject/inject.c": "the C library's signature of what starts main()",
}
ROOT_FILES = {".clang-format", ".clang-tidy", ".containerignore", ".gitignore", "CHANGELOG.md", "CITATION.cff", "CMakeLists.txt", "CODE_OF_CONDUCT.md",
              "CONTRIBUTING.md", "Containerfile",
              "LICENSE", "Makefile", "README.md", "SECURITY.md", "pyproject.toml"}
ROOMS = ("src/", "programs/", "mpi/", "testing/")  # where C of the project lies, but for tests, benchmarks and examples
# Sources of tests that a script compiles, or that other folders name.
SOURCES_NAMED_ELSEWHERE = {"tests/codeobjects/emuloop.c", "tests/gpu/cuda_numbers.c", "tests/seams/codeobjects_hooks.c", "tests/memcheck/jansson.c",
                           "tests/room/room.c", "tests/seams/wrong_thresholds.c", "tests/seams/wrong_thresholds_gpu.c"}
FILE_LINES_MAX = 700
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX)\b")
ENDS_OR_PRINTS = re.compile(r"(?<![\w.>])(abort|exit|_exit|assert|printf|puts|perror)\s*\(")
TAKES_MEMORY = re.compile(r"(?<![\w.>])(malloc|calloc|realloc|free)\s*\(")
PLACES_THAT_NAME_THE_WORDS = {"scripts/check-tree.py", "CONTRIBUTING.md"}

offences = []


def offend(path, line, why):
    offences.append(f"{path}:{line}: {why}")


def tracked():
    """Text files of the repository, as (path, lines). Data and files that are not UTF-8 are left out."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for path in filter(None, listed.split("\0")):
        file = ROOT / path
        if file.is_file() and not file.is_symlink() and not path.startswith(("data/", "tests/data/", "tests/fuzz/corpus/")):
            try:
                yield path, file.read_text(encoding="utf-8").split("\n")
            except UnicodeDecodeError:
                continue


def code_lines(lines):
    """The lines with comments and strings blanked, so that words in prose are not taken for calls."""
    text = "\n".join(lines)
    blank = lambda match: re.sub(r"[^\n]", " ", match.group())
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S).split("\n")


def includes(lines):
    """(line number, path) of each include with quotes."""
    for number, line in enumerate(lines, 1):
        match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if match:
            yield number, match.group(1)


def inside_of(path):
    """A path as includes write it: from src, programs and testing, and for mpi from the root."""
    return re.sub(r"^(src|programs|testing)/", "", path)


def rule_of(inside):
    """The longest name in ARROWS that matches a path as includes write it."""
    parts = inside.split("/")
    for length in range(len(parts), 0, -1):
        name = "/".join(parts[:length])
        if name in ARROWS:
            return name
    return None


def leads_to(arrow, target):
    """Returns true if an arrow allows an include: the file itself, a folder with everything below it, or "folder/." without what is below."""
    if arrow.endswith("/."):
        return target.rpartition("/")[0] == arrow[:-2]
    return target == arrow or target.startswith(arrow + "/")


def check_arrows(path, lines):
    inside = inside_of(path)
    rule = rule_of(inside)
    if not rule:
        offend(path, 1, f"{path.rpartition('/')[0]} is not a room: name it in scripts/check-tree.py and docs/design/architecture.md")
        return
    own = inside.rpartition("/")[0]
    arrows = [f"{own}/.", *([] if rule in ("cpu", "base") else [rule]), *ARROWS[rule]]
    for number, target in includes(lines):
        if target.startswith(".."):
            offend(path, number, f"{target}: includes are written from src, programs, testing or the root")
        elif "/" in target and rule_of(target) and not any(leads_to(arrow, target) for arrow in arrows):
            offend(path, number, f"{own} must not include {target}: its arrows lead to {', '.join(arrows[1:]) or 'nothing'}")


def check_vendors(path, lines):
    if path.startswith("src/kernels/simt/") or any(fnmatch.fnmatch(path, allowed) for allowed in VENDOR_FILES):
        return
    for number, line in enumerate(lines, 1):
        if VENDOR_CONDITION.search(line):
            offend(path, number, "asks for a vendor: put it behind a word of kernels/simt, or name the file in scripts/check-tree.py")


def circles(graph):
    """The circles of a graph, each as a list of names from one back to itself. Depth first: meeting a name of the current path again closes one."""
    done, way, found = set(), [], []

    def visit(name):
        if name in way:
            found.append(way[way.index(name):] + [name])
        elif name not in done:
            way.append(name)
            for target in graph.get(name, []):
                visit(target)
            way.pop()
            done.add(name)

    for name in sorted(graph):
        visit(name)
    return found


def check_circles(files):
    """No header includes itself, and no module of Python or Rust imports itself, directly or indirectly: inside functions neither, nor for
    types only. A crate's root is not a module here: its modules may name what it exports."""
    graphs = {}
    for path, lines in files:
        folder, _, name = path.rpartition("/")
        if path.startswith(ROOMS) and name.endswith((".c", ".h", ".def")):
            graphs.setdefault("", {})[inside_of(path)] = [target for _, target in includes(lines)]
        elif path.startswith("python/") and name.endswith(".py"):
            graphs.setdefault(folder, {})[name.removesuffix(".py")] = python_imports("\n".join(lines))
        elif re.match(r"rust/[^/]+/src/\w+\.rs$", path) and name != "lib.rs":
            graphs.setdefault(folder, {})[name.removesuffix(".rs")] = rust_imports("\n".join(lines))
    for folder, graph in graphs.items():
        for circle in circles(graph):
            suffix = {"python": ".py", "rust": ".rs"}.get(folder.split("/")[0], "")
            offend(f"{folder}/{circle[0]}{suffix}".lstrip("/"), 1, f"{'imports' if suffix else 'includes'} itself: {' -> '.join(circle)}")


def python_imports(text):
    """The modules of the same package that a module imports, wherever in it. `from . import x` names the module x."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            yield from [node.module.split(".")[0]] if node.module else [alias.name for alias in node.names]


def rust_imports(text):
    """The modules of the same crate that a module names, in `use` or in a path. Comments do not count."""
    code = re.sub(r"//[^\n]*", "", text)
    for names in re.findall(r"\bcrate::(\{[^}]*\}|\w+)", code):
        yield from (name for name in re.findall(r"\w+", names) if name.islower())


def check_folders(paths):
    """Folders of code are small enough to be read as a list."""
    counts = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        if folder.split("/")[0] in ("src", "programs", "mpi", "testing", "include", "tests") and name.endswith((".c", ".h", ".def", ".S", ".py", ".cpp")):
            counts[folder] = counts.get(folder, 0) + 1
    for folder, count in counts.items():
        if count > FOLDER_FILES_MAX:
            offend(folder, count, f"{count} source files; at most {FOLDER_FILES_MAX}: which are its two subjects?")


def check_root():
    """Files that a program leaves in the folder it was started in are easily committed by mistake."""
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    for name in names:
        if "/" not in name and name not in ROOT_FILES:
            offend(name, 1, "a stray file? If it belongs in the root, add it to ROOT_FILES in scripts/check-tree.py")


def check_sources(paths):
    """Every source is named by the CMakeLists.txt of its folder, or of one above it; those of fuzzers without .c."""
    texts = {}
    for path in paths:
        pure = pathlib.PurePosixPath(path)
        if not path.startswith((*ROOMS, "tests/")) or pure.suffix not in (".c", ".S") or path in SOURCES_NAMED_ELSEWHERE:
            continue
        name = pure.with_suffix("") if pure.match("tests/fuzz/*") else pure
        for folder in list(pure.parents)[:-1]:
            listing = str(folder / "CMakeLists.txt")
            if listing not in texts:
                texts[listing] = (ROOT / listing).read_text(encoding="utf-8") if (ROOT / listing).exists() else ""
            if re.search(rf"(?<![\w/.-]){re.escape(str(name.relative_to(folder)))}(?![\w.-])", texts[listing]):
                break
        else:
            offend(path, 1, "no CMakeLists.txt above it names this file")


def check_library_manners(path, lines):
    """No room of the library ends the process or prints, and memory comes from base/memory.h.
    base/system/large_blocks.c is what memory.c stands on."""
    own_memory = path.startswith(("src/base/system/memory.c", "src/base/system/large_blocks.c"))
    for number, line in enumerate(code_lines(lines), 1):
        ending = ENDS_OR_PRINTS.search(line)
        if ending:
            offend(path, number, f"{ending.group(1)}() in the library: return a status with ww_fail()")
        taking = TAKES_MEMORY.search(line)
        if taking and not own_memory:
            offend(path, number, f"{taking.group(1)}() in the library: memory comes from base/memory.h")


def check_emulator(path, lines):
    """The library knows nothing of the tests' emulator, which fills a table of driver functions like any other. Kernels are compiled for it, too."""
    for number, (line, source) in enumerate(zip(code_lines(lines), lines), 1):
        if re.search(r"emulat", line, flags=re.I) or re.search(r'"[^"]*emulat', source, flags=re.I) and not source.strip().startswith(("/*", "*")):
            offend(path, number, "the library does not know the emulator: testing/emulated says what is special about it")


def check_messages(path, lines):
    """A message names a C function at its beginning only, where the command, SQL and Python leave it out, and constants of C only where it tells of
    the number that stood in their place: elsewhere it would tell people of what they cannot see."""
    text = re.sub(r"/\*.*?\*/", lambda match: re.sub(r"[^\n]", " ", match.group()), "\n".join(lines), flags=re.S)
    for match in re.finditer(r'"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*', text):
        said = re.sub(r'"\s*"', "", match.group())[1:-1]
        behind = re.sub(r"^ww_\w+(: |$)", "", said)
        number = text.count("\n", 0, match.start()) + 1
        if re.search(r"\bww_[a-z]\w*\(\)", behind) and not path.startswith("src/store/sqlite/"):  # where they are functions of SQL
            offend(path, number, "a message that names a C function: say what it does")
        if re.search(r"\bWW_[A-Z]", behind) and not re.search(r"(is|type) %[du];", behind):
            offend(path, number, "a message that names a constant of C: say what it means")


def check_float_guards(files):
    """Every public call that returns a status starts with FLOAT_GUARD(), so that nobody has to think of the caller's rounding mode. ..._init() only
    fills a struct."""
    text = {path: "\n".join(lines) for path, lines in files}
    public = set()
    for path, content in text.items():
        if path.startswith("include/warpwave"):
            public.update(re.findall(r"^WW_API ww_status (ww_\w+)\(", content, re.MULTILINE))
    for path, content in text.items():
        if not path.startswith(("src/", "mpi/")) or not path.endswith(".c"):
            continue
        for match in re.finditer(r"^ww_status (ww_\w+)\([^;{]*\)\n\{\n(.*)\n", content, re.MULTILINE):
            public.discard(match.group(1))
            if match.group(2) != "    FLOAT_GUARD();":
                offend(path, content.count("\n", 0, match.start()) + 1, f"{match.group(1)} does not begin with FLOAT_GUARD();")
    for name in sorted(public):
        if not name.endswith("_init"):
            offend("include", 1, f"{name}: no definition that begins with FLOAT_GUARD(); was found in src")


# The verbs that end an object (include/warpwave.h); other words for it would be a second name for the same thing.
OTHER_ENDS = re.compile(r"^WW_API void (ww_\w+_(?:free|unload|delete|dispose|drop|end|finish|put|unref))\(", re.MULTILINE)
# Counts have fixed widths, and structs are written to the caller's memory: not every language can take one by value.
LONG = re.compile(r"\b(?:unsigned )?long\b")


def check_headers(files):
    """Three habits of the public headers: how objects end, which integers there are, and that no exported function returns a struct."""
    text = {path: "\n".join(lines) for path, lines in files if path.startswith("include/")}
    structs = {name for content in text.values() for name in re.findall(r"^typedef struct (ww_\w+) \{", content, re.MULTILINE)}
    for path, content in text.items():
        def offend_at(match, why, path=path, content=content):
            offend(path, content.count("\n", 0, match.start()) + 1, why)

        for match in OTHER_ENDS.finditer(content):
            offend_at(match, f"{match.group(1)}: an object ends with ..._close(), ..._destroy() or ..._release()")
        for match in re.finditer(r"^WW_API (?:const )?(ww_\w+) (ww_\w+)\(", content, re.MULTILINE):
            if match.group(1) in structs:
                offend_at(match, f"{match.group(2)} returns a struct by value: take a pointer to it")
        for match in re.finditer(r"^(?!(?: \*|/\*|.*\*/$)).*$", content, re.MULTILINE):
            if LONG.search(match.group().split("/*")[0]):
                offend_at(match, "long has another size elsewhere: int64_t")


# State of the process: what a file keeps between calls. Functions, constants and types are not meant.
STATE = re.compile(r"^(static )?(?!extern\b|typedef\b|return\b|goto\b|struct \w+;|enum\b|union\b|_Static_assert\b)(?P<type>(?:_Atomic\([^)]*\)|[\w ])+?[ *]+)(?P<name>\w+)(\[[^=;]*\])*(, \*?\w+)*( = .*)?[;{,]?$")


def check_state(path, lines):
    """Variables that outlive a call are shared by all users in a process, so each is gone or has a comment that says why it may be there: on its
    line, or above the group of variables that it is in."""
    depth, justified, code = 0, False, code_lines(lines)
    for number, (line, source) in enumerate(zip(code, lines), 1):
        line = re.sub(r"'(?:\\.|[^'\\])'", "   ", line)
        text = line.rstrip()
        inside = re.match(r"^ +static (?!inline)", text)
        match = STATE.match(text.strip()) if (inside or (depth == 0 and text and not text[0].isspace() and text[0] not in "#}")) else None
        ends_struct = re.match(r"^\} (\w+);$", text)
        is_state = (match and not is_constant(match.group("type"))) or (ends_struct and state_struct)
        if is_state and not justified and "/*" not in source and "*/" not in source:
            offend(path, number, f"{(match or ends_struct).group('name' if match else 1)} is state of the process: say in a line why it may be, or do without it")
        if depth == 0 and re.match(r"^(static )?struct \{$", text):
            state_struct = True
        elif ends_struct or depth == 0:
            state_struct = False
        if source.strip().endswith("*/"):
            justified = True
        elif not is_state and not (depth > 0 and not inside):
            justified = False
        depth += text.count("{") - text.count("}")


def is_constant(kind):
    """Whether an object of this type cannot be written: a pointer must be constant itself."""
    return kind.rstrip().endswith("const") if "*" in kind else bool(re.search(r"\bconst\b", kind))


def parameters_of(text):
    """The number of parameters in a list, in which function pointers have their own lists."""
    while "(" in text:
        text, found = re.subn(r"\([^()]*\)", "", text)
        if not found:
            break
    return text.count(",") + 1


def check_parameters(path, lines):
    """Definitions of functions, and pointers to functions, with more parameters than a reader can remember."""
    if any(fnmatch.fnmatch(path, allowed) for allowed in MANY_PARAMETERS):
        return
    text = "\n".join(code_lines(lines))
    nested = r"((?:[^(){};]|\((?:[^(){};]|\([^()]*\))*\))*)"
    for pattern in (r"^(?!\s)[A-Za-z_][\w \t*(),]*?\b(\w+)\(" + nested + r"\)\s*\{", r"\(\*(\w+)\)\(" + nested + r"\)"):
        for match in re.finditer(pattern, text, re.MULTILINE):
            count = parameters_of(match.group(2))
            if count > PARAMETERS_MAX and not match.group(1).startswith("ww_"):
                offend(path, text.count("\n", 0, match.start()) + 1,
                       f"{match.group(1)} has {count} parameters; at most {PARAMETERS_MAX}: what do they belong to?")


def check_file(path, lines):
    is_code = path.endswith((".c", ".h", ".def"))
    if path.startswith(ROOMS) and is_code:
        check_arrows(path, lines)
        check_vendors(path, lines)
        # What stands for a vendor's library takes its memory where that would.
        if not path.startswith(("programs/warpwave/", "mpi/command/", "src/kernels/", "src/arithmetic/", "testing/")):
            check_library_manners(path, lines)
        check_messages(path, lines)
        if path.startswith("src/") and not path.startswith(("src/kernels/", "src/arithmetic/")):
            check_emulator(path, lines)
        if path.endswith(".c") and not path.startswith(("src/kernels/", "testing/")):
            check_state(path, lines)
    if is_code and path.startswith((*ROOMS, "bench/")):
        check_parameters(path, lines)
    if is_code and len(lines) - 1 > FILE_LINES_MAX:
        offend(path, len(lines) - 1, f"more than {FILE_LINES_MAX} lines: which are its two subjects?")
    if is_code and path.startswith((*ROOMS, "include/", "tests/", "bench/")) and not lines[0].startswith("/*"):
        offend(path, 1, "a file opens with a comment that says what it does and why")
    if path not in PLACES_THAT_NAME_THE_WORDS:
        for number, line in enumerate(lines, 1):
            match = UNFINISHED.search(line)
            if match:
                offend(path, number, f"{match.group()}: finish it, or describe it as an issue")


def main():
    files = list(tracked())
    for path, lines in files:
        check_file(path, lines)
    check_circles(files)
    check_folders(path for path, _ in files)
    check_root()
    check_sources(path for path, _ in files)
    check_float_guards(files)
    check_headers(files)
    print("\n".join(offences), file=sys.stderr, end="\n" if offences else "")
    documents = subprocess.run([ROOT / "scripts" / "check-docs.py"], check=False)
    sys.exit(1 if offences or documents.returncode else 0)


if __name__ == "__main__":
    main()
