"""The programs and the notebook of examples/python."""
import json
import re
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT, run_python
from notebook import cells_of, kept, outputs_of

pytestmark = pytest.mark.check

EXAMPLES = ROOT / "examples" / "python"


def run(name, *arguments):
    return subprocess.run([sys.executable, "-W", "error", str(EXAMPLES / name), *map(str, arguments)], capture_output=True, text=True, check=True, timeout=120).stdout


@pytest.mark.long
def test_text_is_searched(tmp_path):
    assert "0.4" in run("search_text.py") and "warm" in run("search_text.py")
    (tmp_path / "a.txt").write_text("apples and pears\n\nships at sea")
    assert "a.txt 1: ships at sea" in run("search_text.py", "a ship at sea", tmp_path / "a.txt").split("\n")[1]


def test_duplicates_are_found(tmp_path):
    assert run("deduplicate.py") == "2300 vectors, 300 pairs with a similarity of at least 0.98, 2000 kept\n"
    np.save(tmp_path / "v.npy", np.repeat(np.eye(5, dtype=np.float32), 2, axis=0))
    assert "5 pairs" in run("deduplicate.py", tmp_path / "v.npy", 0.99)


@pytest.mark.long
def test_digits_are_classified():
    right = re.search(r"(\d+) of 597 right", run("classify.py"))
    assert int(right[1]) > 570


@pytest.mark.nightly
def test_pictures_are_drawn(tmp_path):
    run("classify.py", tmp_path / "digits.png")
    assert (tmp_path / "digits.png").stat().st_size > 1000


def test_a_notebook_prints_what_it_shows(monkeypatch):
    monkeypatch.chdir(EXAMPLES)
    shown = [kept(cell) for cell in cells_of("digits.ipynb")[1]]
    assert list(outputs_of("digits.ipynb")) == shown and sum(bool(printed) for printed, _ in shown) == 7 and shown[0][1] == "(1797, 64)"


def test_a_notebook_that_shows_something_else_is_noticed(tmp_path):
    path = tmp_path / "n.ipynb"
    shown = [{"output_type": "stream", "text": ["2\n"]}, {"output_type": "execute_result", "data": {"text/plain": ["4"]}}]
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": ["print(0)"]},
                                          {"cell_type": "code", "source": ["x = 2\n", "print(x)\n", "x + 1"], "outputs": shown},
                                          {"cell_type": "code", "source": ["y = x"], "outputs": []}]}), encoding="utf-8")
    assert list(outputs_of(path)) == [("2\n", "3"), ("", "")]
    assert [kept(cell) for cell in cells_of(path)[1]] == [("2\n", "4"), ("", "")]


def test_every_example_is_run_here():
    assert {path.name for path in EXAMPLES.iterdir() if path.is_file()} == {"search_text.py", "deduplicate.py", "classify.py", "digits.ipynb"}


def test_the_module_is_the_command():
    printed = run_python("import sys, runpy; sys.argv = ['warpwave', 'version']; runpy.run_module('warpwave', run_name='__main__')")
    import warpwave
    assert warpwave.__version__ in printed
