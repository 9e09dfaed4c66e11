"""What the tests of the Python package share."""
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import warpwave

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEVICES = [device.id for device in warpwave.devices() if device.id != "emulator:64" or os.environ.get("WARPWAVE_TEST_LONG")]


@pytest.fixture(params=DEVICES)
def device(request):
    """Every device of the machine, emulated ones included; the second emulated one in the long form."""
    return request.param


@pytest.fixture
def random():
    return np.random.default_rng(19)


@pytest.fixture(params=["memory", "store"])
def filled(request, tmp_path):
    """A function that makes a collection of 20 rows on a line, ids "0" to "19", with these payloads: in memory, and in a store."""
    def make(payloads):
        if request.param == "memory":
            made = warpwave.Collection(2, metric="l2", device="cpu")
        else:
            made = warpwave.Store(tmp_path / "s.db", device="cpu").create("docs", dim=2, metric="l2")
        made.add(np.arange(40, dtype=np.float32).reshape(20, 2), ids=[str(i) for i in range(20)], payloads=payloads)
        return made
    return make


@pytest.fixture
def points(random):
    """300 rows of 20 numbers."""
    return random.standard_normal((300, 20)).astype(np.float32)


def run_python(code, timeout=60, **environment):
    """Runs a program of its own and returns what it printed; fails the test if it fails."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=timeout, env={**os.environ, **environment}, check=False)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


# The beginning of a program whose Python has an SQLite that cannot load extensions.
HIDDEN_EXTENSIONS = """
import sqlite3
class Connection(sqlite3.Connection):
    def __getattribute__(self, name):
        if name == "enable_load_extension": raise AttributeError(name)
        return super().__getattribute__(name)
connect = sqlite3.connect
sqlite3.connect = lambda *a, **k: connect(*a, factory=Connection, **k)
import warpwave
"""
