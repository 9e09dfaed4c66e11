#!/usr/bin/env python3
"""Writes a manual page: scripts/docs/man-page.py warpwave|warpwave-mpi REFERENCE FILE. REFERENCE is docs/reference/command.md with its lists of options
(scripts/command-reference.py --page). The build calls it.

The text before the first command becomes the description, the table of variables the environment, each command a subsection. The exit codes are those of
docs/reference/errors.md.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ABOUT = {"warpwave": "exact vector search with the same bits on every device", "warpwave-mpi": "exact vector search over MPI ranks, with the bits of one"}


def roff(text):
    """The text of one line, as roff shows it literally."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    return r"\&" + escaped if escaped[:1] in (".", "'") else escaped


def inline(text):
    """A line of Markdown as roff: code and strong words in bold, emphasis in italics, links without their addresses."""
    text = re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", text)
    out = []
    for piece in re.split(r"(`[^`]+`|\*\*[^*]+\*\*|(?<!\\)\*[^*]+(?<!\\)\*)", text):
        plain = piece.strip("`*") if len(piece) > 2 and piece[0] in "`*" else None
        if plain is not None:
            out.append(rf"\f{'B' if piece[0] == '`' or piece.startswith('**') else 'I'}{roff(plain.replace(chr(92) + '|', '|'))}\fR")
        else:
            out.append(roff(re.sub(r"\\([\\|<*])", r"\1", piece)))
    joined = "".join(out)
    return r"\&" + joined if joined[:1] in (".", "'") else joined


def cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def body(text):
    """Paragraphs, tables, lists and blocks of code. The heads of tables are left out: the first column tells what each row is about."""
    out, fenced, begun = [], False, False
    for line in re.sub(r"^<!--.*-->$", "", text, flags=re.M).split("\n"):
        if line.startswith("```"):
            out.append(".EE" if fenced else ".PP\n.EX")
            fenced = not fenced
        elif fenced:
            out.append(roff(line))
        elif line.startswith("|"):
            row = cells(line)
            if not re.match(r"\|[-:|]+$", line) and row[0] not in ("variable", "code"):
                out += [".TP", inline(row[0]), inline(row[1])]
        elif line.startswith("- "):
            name, text = re.match(r"- (`[^`]+`(?: \(.*?\))?): (.*)", line).groups()
            out += [".TP", inline(name), inline(text)]
        elif line:
            out += [inline(line)] if begun else [".PP", inline(line)]
        begun = bool(line) and not line.startswith(("|", "- ", "```"))
    return out


def page(name, text):
    errors = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
    head, *rest = re.split(r"^## `(warpwave(?:-mpi)? [\w-]+)`\n", text, flags=re.M)
    commands = [(title, part) for title, part in zip(rest[::2], rest[1::2]) if title.split()[0] == name]
    tables = re.findall(r"(?:^\|.*\n)+", head, flags=re.M)
    description = re.sub(r"(?:^\|.*\n)+|^# .*\n|^\*For .*\n", "", head, flags=re.M)
    codes = re.search(r"^## Exit codes.*?((?:^\|.*\n)+)", errors, flags=re.M | re.S)
    out = [r'.\" Made from docs/reference/command.md.', f".TH {name.upper()} 1", ".SH NAME", rf"{roff(name)} \- {ABOUT[name]}", ".SH SYNOPSIS"]
    launcher = r"\fBmpiexec\fR \fB\-n\fR \fIRANKS\fR " if name == "warpwave-mpi" else ""
    for number, (title, _) in enumerate(commands):
        out += [".br"] * bool(number) + [rf"{launcher}\fB{roff(title)}\fR [\fIARGUMENTS\fR]"]
    out += [".SH DESCRIPTION", *body(description), ".SH COMMANDS"]
    for title, part in commands:
        out += [".SS " + roff(title), *body(part)]
    out += [".SH ENVIRONMENT", *body("".join(tables)), ".SH EXIT STATUS", *body(codes.group(1)), ".SH SEE ALSO"]
    out += [r"\fBwarpwave\fR(1), \fBmpiexec\fR(1)" if name == "warpwave-mpi" else r"\fBwarpwave\-mpi\fR(1), \fBsqlite3\fR(1)"]
    return "\n".join(out) + "\n"


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ABOUT:
        sys.exit("usage: scripts/docs/man-page.py warpwave|warpwave-mpi REFERENCE FILE")
    reference = pathlib.Path(sys.argv[2]).read_text(encoding="utf-8")
    pathlib.Path(sys.argv[3]).write_text(page(sys.argv[1], reference), encoding="utf-8")


if __name__ == "__main__":
    main()
