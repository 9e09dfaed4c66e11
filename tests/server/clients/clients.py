"""A plugin for pytest: the tests of other people's clients ask the server at WARPWAVE_PORT, and leave out what clients-skipped.txt names.

Each line of that file is FILE::TEST and the reason. A line whose test does not exist fails the run, so that the list stays true. Where a test
of qdrant-client wants gRPC, which the server does not have, it gets HTTP.
"""
import os
import pathlib
import random

import numpy
import pytest
import qdrant_client
from qdrant_client.conversions import common_types

SKIPPED = pathlib.Path(__file__).with_name("clients-skipped.txt")

# The tests of 1.18 name a type that the client of 1.20 has no longer; only an annotation needs it.
if not hasattr(common_types, "NamedVector"):
    common_types.NamedVector = object


def pytest_configure(config):
    config.addinivalue_line("markers", "timeout: the tests set one, and the plugin for it is not needed")
    connect = qdrant_client.QdrantClient.__init__

    def connect_here(self, *positional, **named):
        if named.get("port") == 6333 or named.get("host") == "localhost":
            named.update(host="127.0.0.1", port=int(os.environ["WARPWAVE_PORT"]), prefer_grpc=False)
        connect(self, *positional, **named)

    qdrant_client.QdrantClient.__init__ = connect_here


def skipped():
    lines = [line.split(maxsplit=1) for line in SKIPPED.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return {name: reason for name, reason in lines}


def pytest_collection_modifyitems(config, items):
    left = skipped()
    found = set()
    for item in items:
        name = f"{item.path.name}::{item.originalname}"
        if name in left:
            found.add(name)
            item.add_marker(pytest.mark.skip(reason=left[name]))
    files = {item.path.name for item in items}
    wrong = sorted(name for name in set(left) - found if name.split("::")[0] in files)
    if wrong and not config.option.keyword:
        raise pytest.UsageError(f"{SKIPPED.name} names tests that do not exist: {wrong}")


@pytest.fixture(autouse=True)
def same_random_numbers():
    random.seed(7)
    numpy.random.seed(7)
