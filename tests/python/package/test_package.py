"""The package itself: generated from the headers, typed, documented with examples that run, complete."""
import doctest
import importlib
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT, run_python

import warpwave

PACKAGE = ROOT / "python" / "warpwave"
MODULES = sorted(path.stem for path in PACKAGE.glob("*.py") if path.stem != "__main__")


def test_the_native_functions_are_those_of_the_headers():
    subprocess.run([sys.executable, str(ROOT / "scripts" / "python-native.py"), "--check"], check=True)


def test_the_generator_sees_a_changed_header(tmp_path):
    """The check above can fail."""
    import shutil
    shutil.copytree(ROOT / "include", tmp_path / "include")
    for part in ("scripts/python-native.py", "python/warpwave/_native.py", "rust/warpwave-sys/src/native.rs"):
        (tmp_path / part).parent.mkdir(parents=True)
        shutil.copy(ROOT / part, tmp_path / part)
    check = [sys.executable, str(tmp_path / "scripts" / "python-native.py"), "--check"]
    assert subprocess.run(check, check=False).returncode == 0
    header = tmp_path / "include" / "warpwave" / "status.h"
    header.write_text(header.read_text().replace("WW_INTERNAL = 13", "WW_INTERNAL = 15"))
    assert subprocess.run(check, check=False, capture_output=True).returncode != 0


def test_structs_have_the_sizes_of_c(tmp_path):
    """Every struct and enumeration constant, as a C compiler sees it."""
    import ctypes
    import shutil
    from warpwave import _native
    compiler = os.environ.get("CC", "cc")
    if not shutil.which(compiler):
        pytest.fail(f"no C compiler: {compiler}")
    names = [name for name, value in vars(_native).items() if isinstance(value, type) and issubclass(value, ctypes.Structure) and name.startswith("ww_")]
    numbers = {name: value for name, value in vars(_native).items() if name.startswith("WW_") and isinstance(value, int) and name != "WW_STREAM_NONE"}
    assert len(names) > 20 and len(numbers) > 100
    lines = [f'printf("%zu ", sizeof({name}));' for name in names] + [f'printf("%lld ", (long long){name});' for name in numbers]
    headers = "".join(f"#include <warpwave/{path.stem}.h>\n" for path in sorted((ROOT / "include" / "warpwave").glob("*.h")) if path.stem not in ("dlpack", "kernel", "cluster"))
    source = tmp_path / "sizes.c"
    source.write_text(f"#include <stdio.h>\n{headers}int main(void) {{ {' '.join(lines)} return 0; }}\n")
    # only sizes and constants are asked for, and a library to link with is not needed
    subprocess.run([compiler, "-I", str(ROOT / "include"), "-c", "-o", str(tmp_path / "sizes.o"), str(source)], check=True)
    library = pathlib.Path(os.environ["WARPWAVE_LIBRARY"])
    subprocess.run([compiler, "-o", str(tmp_path / "sizes"), str(tmp_path / "sizes.o"), str(library), f"-Wl,-rpath,{library.parent}"], check=True)
    printed = subprocess.run([str(tmp_path / "sizes")], capture_output=True, text=True, check=True).stdout.split()
    wanted = [ctypes.sizeof(getattr(_native, name)) for name in names] + list(numbers.values())
    assert dict(zip([*names, *numbers], map(int, printed))) == dict(zip([*names, *numbers], wanted))


@pytest.mark.long
def test_mypy_strict_has_nothing_to_say():
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--config-file", "pyproject.toml", "--no-incremental", "--cache-dir", os.devnull],
                          cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": ""})
    assert done.returncode == 0, done.stdout
    assert (PACKAGE / "py.typed").is_file()


@pytest.mark.long
def test_mypy_strict_has_nothing_to_say_about_the_examples(tmp_path):
    pytest.importorskip("mypy", reason="SKIP: mypy is not installed")
    (tmp_path / "typed.py").write_text(TYPED)
    for program in (*sorted((ROOT / "examples" / "python").glob("*.py")), tmp_path / "typed.py"):
        done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--config-file", "pyproject.toml", "--cache-dir", tmp_path / "cache", program],
                              cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": "", "MYPYPATH": "python"})
        assert done.returncode == 0, done.stdout


# What a program that is checked strictly does with results, rows and generated text.
TYPED = """
import numpy as np
import warpwave

store = warpwave.Store(":memory:", device="cpu")
docs: warpwave.Collection = store.get_or_create("docs", dim=2)
docs.add(np.eye(2), ids=["x", "y"], payloads=[{"a": 1}, None])
found: warpwave.Results = docs.search([1, 0], k=1, where={"a": 1})
scores: list[float] = [hit.score for hit in found.hits()]
row: warpwave.Row = docs.get("x")
other: warpwave.Row = docs["y"]
norm: float = float(np.linalg.norm(row.vector))
page: warpwave.Results = docs.get(where={"a": 1}, limit=10)
changed: int = docs.update(where={"a": 1}, payloads={"b": 2}, merge=True)
names: list[str] = [one.id for one in docs.iterate()]


async def asynchronous() -> None:
    library = await warpwave.AsyncStore.open(":memory:")
    notes: warpwave.AsyncCollection = await library.get_or_create("notes", dim=2)
    hits: warpwave.Results = await notes.search([1, 0], k=1)
    async for one in notes.iterate():
        print(one.id, hits.ids)


def say(model: warpwave.Model) -> str:
    for piece in model.generate("a", stream=True, stop="."):
        print(piece.upper())
    return model.generate([{"role": "user", "content": "hello"}], max_tokens=5, system="be short")
"""


# Names that do not exist, which a type checker must find: a line each.
MISSPELT = """
import warpwave

async def wrong(d: warpwave.AsyncCollection, s: warpwave.AsyncStore, m: warpwave.AsyncModel, found: warpwave.Results) -> None:
    await d.serach([1, 0])
    await s.get_or_make("x")
    await m.embedd("x")
    print(found.distances)
"""


@pytest.mark.long
def test_mypy_finds_names_that_do_not_exist(tmp_path):
    (tmp_path / "misspelt.py").write_text(MISSPELT)
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--config-file", "pyproject.toml", "--cache-dir", tmp_path / "cache", tmp_path / "misspelt.py"],
                          cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": "", "MYPYPATH": "python"})
    for name in ("serach", "get_or_make", "embedd", "distances"):
        assert f'has no attribute "{name}"' in done.stdout, done.stdout


@pytest.mark.check
def test_the_types_of_asynchronous_classes_are_those_of_the_synchronous_ones():
    subprocess.run([sys.executable, ROOT / "scripts" / "python-aio.py", "--check"], check=True)


PEERS = ("haystack", "langchain", "llamaindex", "ray", "sklearn")  # modules over other libraries


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.check) if name in PEERS else name for name in MODULES])
def test_docstrings_run(name):
    for large, needs in (("haystack", "haystack"), ("llamaindex", "llama_index.core"), ("ray", "ray")):
        if name == large:
            pytest.importorskip(needs, reason=f"SKIP: {needs} is not installed; make check-python installs it")
    module = importlib.import_module(f"warpwave.{name}" if name != "__init__" else "warpwave")
    failed, _ = doctest.testmod(module, extraglobs={"warpwave": warpwave, "np": np}, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


def test_everything_public_is_documented():
    for name in warpwave.__all__:
        thing = getattr(warpwave, name)
        if callable(thing):
            assert thing.__doc__, name
            for method, value in vars(thing).items() if isinstance(thing, type) else ():
                if not method.startswith("_") and callable(value) and name in ("Collection", "Device", "Results", "QuantMatrix", "Gguf"):
                    assert value.__doc__, f"{name}.{method}"


def test_it_needs_numpy_alone():
    run_python("""
import sys
class Refuse:
    def find_spec(self, name, *_):
        if name.split(".")[0] in ("tqdm", "pandas", "sklearn", "scipy", "ml_dtypes", "langchain_core", "torch"):
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
import warpwave, numpy as np
c = warpwave.Collection(2, device="cpu"); c.add(np.eye(2), progress=True)
assert c.search([1, 0]).ids[0] == "0"
""")


def test_a_missing_or_wrong_library_is_told():
    for library, says in (("/nowhere/libwarpwave.so", "WARPWAVE_LIBRARY"), ("libm.so.6", "another version")):
        printed = run_python("""
try:
    import warpwave
except ImportError as error:
    print(error)
""", WARPWAVE_LIBRARY=library)
        assert says in printed


def test_an_old_numpy_without_numpy_typing_does():
    """Debian 11's, 1.19."""
    assert run_python("import sys; sys.modules['numpy.typing'] = None; import warpwave; print(warpwave.Collection(2, device='cpu').dim)") == "2\n"
