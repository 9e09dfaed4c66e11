#!/usr/bin/env python3
"""Draws what `warpwave demo` prints in a terminal as docs/guide/demo.svg:   scripts/demo/demo-picture.py BUILD/warpwave > docs/guide/demo.svg

The command runs on the CPU in a terminal of its own, COLUMNS wide. Half blocks become rectangles in the grays that it asked for; all
other text stays text. The first digit is shown, and what follows the digits up to the commands to try.
"""
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from xml.sax.saxutils import escape

COLUMNS, CELL_WIDTH, CELL_HEIGHT, MARGIN, TITLE = 118, 8, 16, 14, 30


def demo_lines(command):
    """The lines of the demo with their escape sequences."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "COLUMNS": str(COLUMNS)}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen([command, "demo", "--device", "cpu"], stdout=theirs, stderr=subprocess.DEVNULL, env=environment)
    os.close(theirs)
    text = b""
    try:
        while piece := os.read(ours, 65536):
            text += piece
    except OSError:  # a terminal reports in this way that its other side was closed
        pass
    if process.wait() != 0:
        raise SystemExit(f"{command} demo failed")
    return text.decode().replace("\r", "").split("\n")


def gray(number):
    """One of the 24 grays of a terminal of 256 colours."""
    return f"#{(8 + 10 * (number - 232)):02x}" + 2 * f"{(8 + 10 * (number - 232)):02x}"


def add_rectangles(cells, row, paths):
    """Adds two rows of pixels, the upper and lower halves of the cells, to the path of each colour; neighbours of one colour become one
    piece."""
    for half in (0, 1):
        start = 0
        for i in range(1, len(cells) + 1):
            if i == len(cells) or cells[i] is None or cells[start] is None or cells[i][half] != cells[start][half]:
                if cells[start] is not None:
                    x, y = MARGIN + start * CELL_WIDTH, TITLE + MARGIN + row * CELL_HEIGHT + half * CELL_HEIGHT // 2
                    width, height = (i - start) * CELL_WIDTH, CELL_HEIGHT // 2
                    paths.setdefault(gray(cells[start][half]), []).append(f"M{x} {y}h{width}v{height}h-{width}z")
                start = i


def text_or_cells(line):
    """The cells of a line of half blocks; None for plain text."""
    found = re.findall(r"\x1b\[38;5;(\d+);48;5;(\d+)m\u2580|(?:\x1b\[0m)?([^\x1b])", line)
    cells = [None if plain else (int(upper), int(lower)) for upper, lower, plain in found]
    return cells if any(cells) else None


def main():
    lines = demo_lines(sys.argv[1])
    ends = [i for i, line in enumerate(lines) if line.startswith("the neighbours say")]
    result = next(i for i, line in enumerate(lines) if line.startswith("accuracy"))
    end = next(i for i, line in enumerate(lines) if line.startswith("What to try next"))
    shown = ["$ make demo", *lines[:ends[0] + 1], "", "...", "", *lines[result:end - 1]]
    width, height = 2 * MARGIN + COLUMNS * CELL_WIDTH, TITLE + 2 * MARGIN + len(shown) * CELL_HEIGHT
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
          f'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13">')
    print("<title>warpwave demo: handwritten digits and their nearest neighbours</title>")
    print('<rect width="100%" height="100%" rx="8" fill="#0d1117"/>')
    for i, color in enumerate(("#ff5f57", "#febc2e", "#28c840")):
        print(f'<circle cx="{MARGIN + 6 + 20 * i}" cy="18" r="6" fill="{color}"/>')
    paths = {}
    for row, line in enumerate(shown):
        cells = text_or_cells(line)
        if cells:
            add_rectangles(cells, row, paths)
        elif line:
            y = TITLE + MARGIN + row * CELL_HEIGHT + 12
            color = "#7ee787" if line.startswith("$") else "#d0d7de"
            print(f'<text x="{MARGIN}" y="{y}" fill="{color}" xml:space="preserve" '
                  f'textLength="{len(line) * CELL_WIDTH}" lengthAdjust="spacingAndGlyphs">{escape(line)}</text>')
    for color, pieces in sorted(paths.items()):
        print(f'<path fill="{color}" shape-rendering="crispEdges" d="{"".join(pieces)}"/>')
    print("</svg>")


if __name__ == "__main__":
    main()
