#!/usr/bin/env python3
"""Writes the API reference from the public headers and the examples: scripts/api-reference.py FILE, or --check to write nothing.

It refuses headers with a public function that no comment explains, and a header that warpwave.h does not include.
The headers keep one habit that makes this easy: a comment stands directly above what it explains, and a blank line ends the
group. So a header is read as paragraphs; a paragraph is a comment (or none) and the declarations under it. Each subject shows the
program of examples/ that calls most of its functions.
"""
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PREAMBLE = """# API reference

Written by `make docs` from the headers and examples. What holds for every function is in [errors](docs/reference/errors.md) (statuses and
messages) and [architecture](docs/design/architecture.md#what-crosses-the-api) (ownership, structs, threads).
"""
# In the order of the reference; headers that are not named follow as warpwave.h has them.
SUBJECTS = {"vectors": "Collections", "ivf": "Indexes of collections", "ranking": "Ranking", "store": "Stores", "text": "Collections of text", "cluster": "Clusters", "device": "Devices", "status": "Statuses and messages", "files": "Files of vectors", "arrays": "Arrays in files", "tensor": "Tensors",
            "tensor_rows": "Tensors: reductions and rows", "tensor_foreign": "Tensors: memory of other libraries",
            "tensor_files": "Tensors from files", "quant": "Quantized matrices", "gguf": "GGUF files", "model": "Models"}

FIRST_EXAMPLES = {"vectors": "search.c", "status": "search.c"}  # others could show more, and not as simply


def example_for(subject, functions, shown):
    """The Markdown of the example that calls most of these functions, the shortest one of several: the program or, if it was shown before, a link to
    it."""
    def merit(path):
        text = path.read_text(encoding="utf-8")
        return len([name for name in functions if re.search(rf"\b{name}\(", text)]), -len(text)

    found = sorted((ROOT / "examples").glob(FIRST_EXAMPLES.get(subject, "*.[ch]")))
    best = max(found, key=merit, default=None)
    if not best or merit(best)[0] == 0:
        return []
    link = f"[examples/{best.name}](examples/{best.name})"
    if best in shown:
        return [f"Example: {link}, [above](#{shown[best]}).", ""]
    return [f"Example, {link}:", "", "```c", best.read_text(encoding="utf-8").rstrip(), "```", "", best]


def prose(comment):
    """The text of a /* */ comment. Indented lines are kept as they are, because they are tables or formulas."""
    body = comment.strip().removeprefix("/*").removesuffix("*/")
    lines = [re.sub(r"^\s*\* ?", "", line).rstrip() for line in body.split("\n")]
    lines[0] = lines[0].strip()
    out = []
    for line in lines:
        if line.startswith("  "):
            out.append(("    " if out and out[-1].startswith("    ") else "\n    ") + line.strip())
        else:
            out.append(line)
    return "\n".join(out).strip()


def without_plumbing(text):
    """The header without its guard, its includes, the C++ wrapper and the visibility macro."""
    text = re.sub(r'#ifdef __cplusplus\n(extern "C" \{|\})\n#endif\n', "", text)
    text = re.sub(r"#if defined\(__GNUC__\)\n(#define WW_API.*\n)#else\n(#define WW_API.*\n)#endif\n", "", text)
    text = re.sub(r"^#(ifndef|define) WARPWAVE(_\w+)?_H\n", "", text, flags=re.M)
    text = re.sub(r"^#include .*\n", "", text, flags=re.M)
    return re.sub(r"\n#endif\n*$", "\n", text)


def paragraphs(text):
    """(comment, code) pairs. A blank line inside braces or inside a comment does not end a paragraph."""
    comment, code, inside, depth = [], [], False, 0
    for line in text.split("\n") + [""]:
        if inside or (not code and line.startswith("/*")):
            comment.append(line)
            inside = "*/" not in line
        elif line.strip() or depth > 0:
            code.append(line)
            depth += line.count("{") - line.count("}")
        elif comment or code:
            yield prose("\n".join(comment)) if comment else "", "\n".join(code)
            comment, code = [], []


def declarations(code):
    """The code as a reader needs it: inline functions lose their body, exported ones their marker."""
    code = re.sub(r"^static inline ([^{]*?)\n\{\n.*?^\}$", r"\1;", code, flags=re.M | re.S)
    return re.sub(r"^WW_API ", "", code, flags=re.M)


def names(code):
    """What the declarations declare, in order."""
    patterns = (r"^#define (\w+)", r"^(?:typedef )?(?:enum|struct) (\w+)", r"^typedef \w[\w ]*\(\*(\w+)\)", r"^[a-z][\w *]*?(ww_\w+)\(")
    found = [(match.start(), match.group(1)) for pattern in patterns for match in re.finditer(pattern, code, flags=re.M)]
    return [name for _, name in sorted(found)]


def title(declared):
    """A heading: one name, a few names, or the first and last of many."""
    shown = declared if len(declared) <= 4 else [declared[0], "…", declared[-1]]
    return ", ".join(f"`{name}`" if name != "…" else name for name in shown)


def anchor(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def section(header, shown):
    """The Markdown of one header, and its lines of the table of contents. `shown`: where each example was already shown."""
    name = header.relative_to(ROOT / "include").as_posix()
    text = without_plumbing(header.read_text(encoding="utf-8"))
    parts = list(paragraphs(text))
    subject = SUBJECTS.get(header.stem, header.stem.replace("_", " ").capitalize())
    contents = [f"- [{subject}](#{anchor(name)}), `<{name}>`"]
    out = [f'<a id="{anchor(name)}"></a>', f"## {subject}: `<{name}>`", "", parts[0][0], ""]
    example = example_for(header.stem, re.findall(r"^WW_API .*?(ww_\w+)\(", text, flags=re.M), shown)
    if example and isinstance(example[-1], pathlib.Path):
        shown[example.pop()] = anchor(name)
    out += example
    explained = False
    for comment, code in parts[1:] if not parts[0][1] else parts:
        exported = re.search(r"^WW_API ", code, flags=re.M)
        code = declarations(code)
        if not code.strip():
            out += [comment, ""]
            explained = True  # by the comment that opens this part of the header
            continue
        declared = names(code)
        if not declared:
            raise SystemExit(f"api-reference: {name}: nothing declared in:\n{code}")
        if exported and not comment and not explained:
            raise SystemExit(f"api-reference: {name}: {declared[0]} has no comment")
        explained = False
        key = anchor(declared[0])
        out += [f'<a id="{key}"></a>', f"### {title(declared)}", "", "```c", code, "```", ""]
        out += [comment, ""] if comment else []
        contents.append(f"  - [{title(declared)}](#{key})")
    return "\n".join(out), "\n".join(contents)


def linked_from(text, folder):
    """The text with links to files of the tree relative to a folder; outside the tree it only gets their names."""
    def link(match):
        words, path, place = match.groups()
        if not folder.is_relative_to(ROOT):
            return f"{words} ({path})" if words != path else path
        return f"[{words}]({os.path.relpath(ROOT / path, folder)}{place or ''})"

    return re.sub(r"\[([^]]+)\]\(((?:docs|examples)/[^)#]+)(#[^)]*)?\)", link, text)


def reference():
    umbrella = (ROOT / "include" / "warpwave.h").read_text(encoding="utf-8")
    headers = [ROOT / "include" / path for path in re.findall(r"^#include <(warpwave/\w+\.h)>", umbrella, flags=re.M)]
    headers += [ROOT / "include" / "warpwave" / name for name in ("store.h", "cluster.h", "model.h", "text.h")]  # parts of other libraries
    # dlpack.h has the structs of DLPack, for programs that do not have that header.
    strays = sorted(path for path in set((ROOT / "include" / "warpwave").glob("*.h")) - set(headers) if path.stem != "dlpack")
    if strays:
        raise SystemExit(f"api-reference: not in warpwave.h: {', '.join(path.name for path in strays)}")
    order = list(SUBJECTS)
    headers.sort(key=lambda header: order.index(header.stem) if header.stem in order else len(order))
    shown = {}
    sections, contents = zip(*[section(header, shown) for header in headers])
    text = "\n".join([PREAMBLE, *contents, "", *sections]).rstrip() + "\n"
    for header in headers:
        for name in re.findall(r"^WW_API [^;{]*?\b(ww_\w+)\(", header.read_text(encoding="utf-8"), flags=re.M):
            if not re.search(rf"\b{name}\(", text):
                raise SystemExit(f"api-reference: {header.name}: {name} is missing from the page")
    return text


def main():
    if len(sys.argv) != 2:
        raise SystemExit("usage: scripts/api-reference.py FILE | --check")
    text = reference()
    if sys.argv[1] != "--check":
        output = pathlib.Path(sys.argv[1]).resolve()
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(linked_from(text, output.parent), encoding="utf-8")


if __name__ == "__main__":
    main()
