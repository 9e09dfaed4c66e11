#!/usr/bin/env python3
"""The pages of docs/evidence carry the commit that they were made from.

    scripts/evidence.py stamp PAGE     writes that line into docs/evidence/PAGE.md; the make targets that write pages run this
    scripts/evidence.py lines          writes the lines of parity-lines.tsv into parity.md
    scripts/evidence.py check          fails if a page has no such line; warns if its sources have changed a lot since then
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
EVIDENCE = ROOT / "docs" / "evidence"
COMMITS_MAX = 100  # a page is called old if more commits than this have changed its sources
# Page: the make target that writes it, and the sources that its contents depend on.
PAGES = {
    "accuracy": ("check-accuracy", "src/arithmetic bench/tensor/ulp.c"),
    "amd-performance": ("check-amd-performance", "src/kernels src/gpu src/arithmetic cmake/Kernels.cmake tests/codeobjects"),
    "codeobjects": ("check-codeobjects", "src/kernels src/gpu src/arithmetic cmake/Kernels.cmake tests/codeobjects"),
    "faults": ("check-faults", "src programs mpi testing tests/faults tests/support scripts/fault-report.py"),
    "parity": ("check-parity", "src tests/device/test_cross_backend.c"),
    "resources": ("check-resources", "src/kernels src/arithmetic cmake/Kernels.cmake tools/check-kernels.c scripts/kernels/kernel-resources.sh"),
}
LINES = "## Lines to compare\n"
LINE = re.compile(r"^Made by `make ([\w-]+)` at commit ([0-9a-f]{8,40}) of (\d{4}-\d\d-\d\d)\b.*$", flags=re.M)


def git(*arguments):
    """The output of git, or None if it fails: there is no git, no repository or no such commit."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def stamp(page):
    target, sources = PAGES[page]
    path = EVIDENCE / f"{page}.md"
    found = git("log", "-1", "--abbrev=8", "--format=%h %cs")
    if found is None:
        sys.exit(f"evidence: {path} needs the commit that it was made from, and this is no clone")
    commit, date = found.split()
    changed = ", with changes that were not committed" if git("status", "--porcelain", "--", *sources.split()) else ""
    line = f"Made by `make {target}` at commit {commit} of {date}{changed}. Do not edit. For people who check what other pages claim."
    heading, _, rest = LINE.sub("", path.read_text(encoding="utf-8")).partition("\n")
    path.write_text(f"{heading}\n\n{line}\n\n{rest.lstrip()}", encoding="utf-8")


def lines_section():
    """The section of parity.md that parity-lines.tsv stands for."""
    rows = [line.split("\t") for line in (EVIDENCE / "parity-lines.tsv").read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    text = [LINES, "`warpwave bench --parity` computes a fixed set of searches, tensors, products and the logits of a small model, and prints a digest of the bits",
            "of each. Every machine prints the same four words. If you own a card that is not here, compare yours by eye, and send them with",
            "`warpwave devices`. *run*: on that machine; the kernels of emulated devices are compiled for the host.", ""]
    text += ["| " + " | ".join(row) + " |" for row in rows]
    text.insert(6, "|" + "---|" * len(rows[0]))
    return "\n".join(text) + "\n"


def with_lines(page):
    """The page with that section at its end, in place of the one it has."""
    return page.split(LINES)[0].rstrip() + "\n\n" + lines_section()


def check():
    wrong = [f"docs/evidence/{path.name}: scripts/evidence.py does not know this page" for path in sorted(EVIDENCE.glob("*.md")) if path.stem not in PAGES]
    parity = (EVIDENCE / "parity.md").read_text(encoding="utf-8")
    if parity != with_lines(parity):
        wrong.append("docs/evidence/parity.md has other lines than parity-lines.tsv: run scripts/evidence.py lines")
    for page, (target, sources) in PAGES.items():
        path = EVIDENCE / f"{page}.md"
        line = LINE.search(path.read_text(encoding="utf-8")) if path.exists() else None
        if not line or line.group(1) != target:
            wrong.append(f"docs/evidence/{page}.md: no line 'Made by `make {target}` at commit ... of ...'")
            continue
        commits = git("rev-list", "--count", f"{line.group(2)}..HEAD", "--", *sources.split())
        if commits is None:
            print(f"evidence: {page}.md: commit {line.group(2)} is not in this clone, so its age is unknown")
        elif int(commits) > COMMITS_MAX and page != "codeobjects":  # its table has hashes: scripts/kernels/code_evidence.py check
            print(f"warning: docs/evidence/{page}.md is of {line.group(3)}; its sources had {commits} commits since then: run make {target}")
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    return 1 if wrong else 0


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "stamp" and sys.argv[2] in PAGES:
        stamp(sys.argv[2])
    elif sys.argv[1:] == ["lines"]:
        path = EVIDENCE / "parity.md"
        path.write_text(with_lines(path.read_text(encoding="utf-8")), encoding="utf-8")
    elif sys.argv[1:] == ["check"]:
        sys.exit(check())
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
