"""The wheel: which glibc it needs, its command, its own SQLite, what is in the source distribution; whole wheels are built and installed every night."""
import importlib.util
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest
from conftest import HIDDEN_EXTENSIONS, ROOT, run_python
from small_models import write_decoder

pytestmark = pytest.mark.check

BUILD = pathlib.Path(os.environ["WARPWAVE_BUILD"])
CHECK = [sys.executable, str(ROOT / "scripts" / "package" / "check-wheel.py")]
ZIG = [sys.executable, "-m", "ziglang", "cc", "-target", f"{platform.machine()}-linux-gnu.2.28", "-s"]
LINK = ZIG if importlib.util.find_spec("ziglang") else ["cc", "-s"]  # as `make wheel` links, or as `pip install .` does


@pytest.fixture(scope="module")
def linked(tmp_path_factory):
    """The objects of this build, linked as the wheel's are, with every other library inside."""
    folder = tmp_path_factory.mktemp("wheel")
    library, command = folder / "lib" / "libwarpwave.so.0.2", folder / "bin" / "warpwave"
    library.parent.mkdir()
    command.parent.mkdir()
    libgcc = subprocess.run(["cc", "-print-libgcc-file-name"], capture_output=True, text=True, check=True).stdout.strip()
    subprocess.run([*LINK, "-shared", "-o", str(library), "-Wl,-soname,libwarpwave.so.0.2", f"-Wl,--version-script={ROOT / 'python' / 'exports.map'}", "-Wl,-z,defs",
                    "-Wl,-Bsymbolic", "-Wl,-z,nodelete", f"@{BUILD / 'wheel' / 'objects.rsp'}", "-lm", "-lpthread", "-ldl", libgcc], check=True)
    subprocess.run([*LINK, "-fPIE", "-pie", "-o", str(command), str(ROOT / "python" / "command.c"), str(library), "-Wl,-rpath,$ORIGIN/../lib"], check=True)
    return folder


@pytest.mark.long
def test_the_objects_of_this_build_link_for_glibc_2_28(linked):
    shared = (BUILD / "wheel" / "shared.txt").read_text(encoding="utf-8").split()
    for name in ("lib/libwarpwave.so.0.2", "bin/warpwave"):
        done = subprocess.run([*CHECK, "--elf", str(linked / name), "--bundled", *shared], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    # And the check can fail: the usual build needs more.
    usual = subprocess.run([*CHECK, "--elf", os.environ["WARPWAVE_COMMAND"]], capture_output=True, text=True, check=False)
    assert usual.returncode == 1 and "jansson" in usual.stderr


def test_a_library_that_could_not_be_linked_in_must_be_in_the_wheel(tmp_path):
    """As jansson on x86-64, whose archive cannot be part of a shared library (cmake/Python.cmake)."""
    source, library = tmp_path / "needs.c", tmp_path / "libneeds.so"
    source.write_text('#include <stdlib.h>\nvoid *json_null(void);\nvoid *needs(void) { return json_null() ? malloc(1) : 0; }\n', encoding="utf-8")
    jansson = subprocess.run(["cc", "-print-file-name=libjansson.so"], capture_output=True, text=True, check=True).stdout.strip()
    subprocess.run([*LINK, "-shared", "-o", str(library), str(source), jansson], check=True)
    alone = subprocess.run([*CHECK, "--elf", str(library)], capture_output=True, text=True, check=False)
    assert alone.returncode == 1 and "needs libjansson.so" in alone.stderr
    beside = subprocess.run([*CHECK, "--elf", str(library), "--bundled", jansson], capture_output=True, text=True, check=False)
    assert "needs libjansson.so" not in beside.stderr


def run_linked(linked, code):
    return run_python(code, WARPWAVE_LIBRARY=str(linked / "lib" / "libwarpwave.so.0.2"))


def test_one_library_has_collections_stores_and_models(linked, tmp_path):
    printed = run_linked(linked, f"""
import sqlite3, warpwave
c = warpwave.Collection(2, device="cpu"); c.add([[1, 0]]); print(c.search([1, 0]).ids[0])
with warpwave.Store({str(tmp_path / "s.db")!r}, device="cpu") as store:
    store.create("docs", dim=2).add([[1, 0]])
    beside = sqlite3.connect(store.path)  # the same SQLite: the file may be open in both
    store["docs"].add([[0, 1]])
    print(beside.execute("SELECT count(*) FROM docs_rows").fetchone()[0], store.info.sqlite_version == sqlite3.sqlite_version)
print(warpwave._native.ww_model_token_ends(None, 0))
""")
    assert printed == "0\n2 True\n0\n"


def test_its_command_does_what_the_usual_one_does(linked, tmp_path):
    """Stores with its own SQLite, models with its own Unicode: the same words, to the byte."""
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"id": "a", "vector": [1, 0], "payload": {"n": 1}}\n{"id": "b", "vector": [0, 1], "payload": {"n": 2}}\n', encoding="utf-8")
    queries = tmp_path / "queries.csv"
    queries.write_text("0.6,0.8\n", encoding="utf-8")
    words = tmp_path / "words.gguf"
    write_decoder(words)
    told = []
    for number, command in enumerate((os.environ["WARPWAVE_COMMAND"], str(linked / "bin" / "warpwave"))):
        store = f"s{number}.db"
        lines = (["store", "import", store, "docs", str(rows), "--quiet"], ["store", "search", store, "docs", "--queries", str(queries), "--where", "payload->>'$.n' > 0", "--json"],
                 ["store", "check", store], ["model", "tokenize", str(words), "--prompt", "ünïcode ab"], ["model", "generate", str(words), "--prompt", "ab", "-n", "5", "--json"])
        told.append([])
        for line in lines:
            done = subprocess.run([command, *line], capture_output=True, text=True, cwd=tmp_path, check=False)
            assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
            told[-1].append(re.sub(r'("\w*second\w*": )[^,\n]*', r"\1", done.stdout.replace(store, "s.db")))
    assert told[0] == told[1] and '"a"' in told[0][1]


# Python's SQLite out of reach: no load_extension(), and no library to be found in the process, as if it were inside of the interpreter.
UNREACHABLE = HIDDEN_EXTENSIONS + """
import builtins, io
opened = builtins.open
builtins.open = lambda name, *a, **k: io.StringIO("") if name == "/proc/self/maps" else opened(name, *a, **k)
"""


def test_the_bundled_sqlite_serves_where_pythons_cannot_be_had(linked, tmp_path):
    printed = run_linked(linked, UNREACHABLE + f"""
import numpy as np
points = np.eye(5)
for name in ("a.db", "b.db", "a.db"):
    with warpwave.Store({str(tmp_path)!r} + "/" + name, device="cpu", busy_ms=20000) as store, warpwave.Store(store.path, device="cpu") as again:
        docs = store["docs"] if "docs" in store else store.create("docs", dim=5)
        docs.add(points, payloads=[{{"n": i}} for i in range(5)])
        again["docs"].add(points)
        print(len(docs), docs.search(points[2], k=1, where="payload->>'$.n' = :n", parameters={{"n": 4}}).ids[0])
        store.check(); store.backup({str(tmp_path)!r} + "/copy.db", replace=True)
import os
del docs, store, again
print(len([1 for name in os.listdir("/proc/self/fd") if ".db" in os.path.realpath("/proc/self/fd/" + name)]))
""")
    assert printed == "10 4\n10 4\n20 4\n0\n"


def test_the_bundled_sqlite_refuses_a_file_that_is_open_otherwise(linked, tmp_path):
    """Both orders; nothing is lost, and the locks of Python's connection stay when the store is closed."""
    probe = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], timeout=0); c.execute('BEGIN IMMEDIATE')"
    printed = run_linked(linked, UNREACHABLE + f"""
import subprocess, sys, os
def tried(call):
    try: call(); print("done")
    except warpwave.Unsupported as error: print("open in this process" in str(error))
def locked(): print(subprocess.run([sys.executable, "-c", {probe!r}, path], capture_output=True).returncode)
path = {str(tmp_path / "s.db")!r}
store = warpwave.Store(path, device="cpu")
store.create("docs", dim=2).add([[1, 0]])
beside = sqlite3.connect(path)
beside.execute("BEGIN IMMEDIATE")
tried(lambda: store["docs"].add([[0, 1]]))       # the store first: its writes are refused from now on
tried(lambda: store.backup(path + ".copy"))      # and so is what reads it by a connection of its own
locked()
store.close()
locked()                                         # closing it has not dropped the other's lock
tried(lambda: warpwave.Store(path, device="cpu"))  # sqlite3 first: refused when it is opened
locked()
beside.rollback(); beside.close()
locked()
with warpwave.Store(path, device="cpu") as store: tried(lambda: store["docs"].add([[0, 1]])); print(len(store["docs"]))
print(len([1 for name in os.listdir("/proc/self/fd") if "s.db" in os.path.realpath("/proc/self/fd/" + name)]))
""")
    assert printed == "True\nTrue\n1\n1\nTrue\n1\n0\ndone\n2\n0\n"


@pytest.mark.long
def test_the_source_distribution_has_what_a_build_needs(tmp_path):
    subprocess.run([sys.executable, "-m", "build", "--no-isolation", "--sdist", "--outdir", str(tmp_path), str(ROOT)], check=True, capture_output=True)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
        archive.extractall(tmp_path / "sources", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    for wanted in ("CMakeLists.txt", "pyproject.toml", "LICENSE", "python/warpwave/_native.py", "python/licenses/zstd.txt", "include/warpwave/vectors.h",
                   "src/vectors/collection.c", "src/kernels/kernels.def", "cmake/Python.cmake", "scripts/kernels/chips.sh", "data/digits.csv"):
        assert wanted in names, wanted
    assert not [name for name in names if name.startswith(("build", "tests/", "bench/"))]
    # It is configured where there is no compiler for GPUs, as it will be by pip.
    sources = next((tmp_path / "sources").iterdir())
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in ("/usr/bin", "/bin"):
        for tool in pathlib.Path(folder).iterdir():
            if not tool.name.startswith(("clang", "lld", "ld.lld", "ccache")) and not (tools / tool.name).exists():
                (tools / tool.name).symlink_to(tool)
    done = subprocess.run(["cmake", "-S", str(sources), "-B", str(tmp_path / "configured"), "-G", "Ninja", "-DWARPWAVE_WHEEL=ON", "-DWARPWAVE_TESTS=OFF", "-DWARPWAVE_CHIPS=auto"],
                          capture_output=True, text=True, check=False, env={"PATH": str(tools), "HOME": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    planned = (tmp_path / "configured" / "build.ninja").read_text(encoding="utf-8")
    assert "wheel/libwarpwave.so.0.2" in planned and "offload-arch" not in planned and "GPU kernels: none" in done.stdout + done.stderr


@pytest.mark.nightly
def test_a_wheel_is_built_checked_and_installed(tmp_path):
    """For CPUs alone, which needs no compiler for GPUs; `make wheel` makes and checks the one for all chips."""
    subprocess.run([str(ROOT / "scripts" / "package" / "make-wheel.sh"), str(tmp_path / "wheel"), "none"], check=True)
    wheel = next((tmp_path / "wheel" / "dist").glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        assert "warpwave/langchain.py" in archive.namelist()


@pytest.mark.nightly
def test_the_source_distribution_is_installed_by_pip(tmp_path):
    """To its end, in an environment of its own: built without kernels, as where there is no GPU, with stores, models and the command."""
    subprocess.run([sys.executable, "-m", "build", "--no-isolation", "--sdist", "--outdir", str(tmp_path), str(ROOT)], check=True, capture_output=True)
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "v")], check=True)
    subprocess.run([str(tmp_path / "v" / "bin" / "pip"), "install", "-q", "-C", "cmake.define.WARPWAVE_CHIPS=none", str(next(tmp_path.glob("*.tar.gz")))], check=True)
    for command in (["python", "-c", "import warpwave; store = warpwave.Store('s.db', device='cpu'); store.create('docs', dim=2).add([[1, 0]]); "
                     "assert warpwave._native.ww_model_token_ends(None, 0) == 0 and 'site-packages' in warpwave.__file__"],
                    ["warpwave", "store", "check", "s.db"]):
        done = subprocess.run([str(tmp_path / "v" / "bin" / command[0]), *command[1:]], capture_output=True, text=True, cwd=tmp_path, check=False,
                              env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)})
        assert done.returncode == 0, done.stdout + done.stderr


OLD_PYTHON = """
import os, sqlite3
import numpy as np, warpwave
from small_models import write_decoder
c = warpwave.Collection(3, device="cpu"); c.add(np.eye(3), ids=["x", "y", "z"], payloads=[1, 2, 3])
assert c.search([0, 1, 0.1], k=1, payloads=True).payloads == [2]
with warpwave.Store("s.db", device="cpu") as store:
    docs = store.create("docs", dim=2); docs.add([[1, 0], [0, 1]], payloads=[{"n": 1}, {"n": 2}])
    assert docs.search([1, 0], where="payload->>'$.n' = :n", parameters={"n": 2}).ids.tolist() == ["1"]
    assert store.info.sqlite_version != sqlite3.sqlite_version  # the bundled one: Python's is too old
beside = sqlite3.connect("s.db")
try:
    warpwave.Store("s.db", device="cpu")
    raise SystemExit("a file that is open otherwise was opened")
except warpwave.Unsupported:
    pass
write_decoder("m.gguf")
model = warpwave.Model("m.gguf", device="cpu")
assert model.tokenize("xab<end>") == [120, 257, 256] and model.generate("a fox", 5)
assert os.system("v/bin/warpwave store check s.db && v/bin/warpwave model tokenize m.gguf --prompt ab") == 0
"""


def _package_archive():
    """The archive that apt fetches this machine's packages from."""
    listed = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Component: main"],
                            capture_output=True, text=True, check=True).stdout.split()
    if not listed:
        pytest.skip("SKIP: the wheel on Debian 11: apt has no package archive")
    return listed[0]


@pytest.mark.nightly
def test_the_wheel_runs_on_debian_11(tmp_path):
    """Python 3.9, glibc 2.31, NumPy 1.19, SQLite 3.34, and none of the libraries that are linked in: in a root of its own."""
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("SKIP: the wheel on Debian 11: that needs debootstrap, and to be root")
    subprocess.run([str(ROOT / "scripts" / "package" / "make-wheel.sh"), str(tmp_path / "wheel"), "none"], check=True)
    root = tmp_path / "root"
    subprocess.run(["debootstrap", "--variant=minbase", "--include=python3-numpy,python3-venv", "bullseye", str(root), _package_archive()], check=True, capture_output=True)
    work = root / "work"
    work.mkdir()
    for file in (next((tmp_path / "wheel" / "dist").glob("*.whl")), ROOT / "tests" / "python" / "small_models.py"):
        shutil.copy(file, work)
    (work / "old.py").write_text(OLD_PYTHON, encoding="utf-8")
    subprocess.run(["mount", "-t", "proc", "proc", str(root / "proc")], check=True)
    try:
        done = subprocess.run(["chroot", str(root), "sh", "-ec", "cd /work; python3 -m venv --system-site-packages v; v/bin/pip install -q --no-index *.whl; v/bin/python old.py"],
                              capture_output=True, text=True, check=False)
    finally:
        subprocess.run(["umount", str(root / "proc")], check=True)
    assert done.returncode == 0, done.stdout + done.stderr
