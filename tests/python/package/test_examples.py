"""The programs of examples/python."""
import re
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT, run_python

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


def test_every_example_is_run_here():
    assert {path.name for path in EXAMPLES.glob("*.py")} == {"search_text.py", "deduplicate.py", "classify.py"}


def test_the_module_is_the_command():
    printed = run_python("import sys, runpy; sys.argv = ['warpwave', 'version']; runpy.run_module('warpwave', run_name='__main__')")
    import warpwave
    assert warpwave.__version__ in printed
