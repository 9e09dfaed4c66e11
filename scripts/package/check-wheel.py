#!/usr/bin/env python3
"""Checks a wheel as people will get it: its tag, its size, what is in it, which symbols of glibc it needs, auditwheel's verdict, and that it
works when installed into an environment of its own.

    scripts/package/check-wheel.py FILE.whl [--quick]     --quick leaves out the installation
    scripts/package/check-wheel.py --elf FILE ... [--bundled LIBRARY ...]
                                               only the symbols of libraries and programs; those after --bundled will be in the wheel, too

Prints what is wrong, a line each, and exits 1 if anything is.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import venv
import zipfile

GLIBC_MAX = (2, 28)
BYTES_MAX = 22_000_000
LIBRARY, COMMAND = "warpwave/lib/libwarpwave.so.0.2", "warpwave/bin/warpwave"
NEEDED = re.compile(r"lib(c|m|pthread|dl|rt)\.so\.\d+|ld-linux-.*|" + re.escape(LIBRARY.rsplit("/", 1)[-1]))
BUNDLED = "warpwave.libs/"  # where auditwheel puts the libraries that could not be linked in
SMOKE = """
import numpy as np, warpwave
c = warpwave.Collection(3, device="cpu"); c.add(np.eye(3), ids=["x", "y", "z"], payloads=[1, 2, 3])
assert c.search([0, 1, 0.1], k=1, payloads=True).payloads == [2]
assert np.from_dlpack(warpwave.asarray([1.0, 2.0], device="cpu") * 2).tolist() == [2, 4]
with warpwave.Store("smoke.db", device="cpu") as store:
    docs = store.create("docs", dim=2); docs.add([[1, 0], [0, 1]], payloads=[{"n": 1}, {"n": 2}])
    assert docs.search([1, 0], where="payload->>'$.n' = :n", parameters={"n": 2}).ids.tolist() == ["1"]
assert warpwave._native.ww_model_token_ends(None, 0) == 0
import pathlib; assert "site-packages" in str(pathlib.Path(warpwave.__file__))
"""
SERVE = """
import json, re, signal, subprocess, sys, urllib.request
server = subprocess.Popen([sys.executable, "-m", "warpwave", "serve", "served.db", "--device", "cpu", "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True)
said = server.stderr.readline()
assert "http://" in said, said
url = re.search("http://.*", said).group()
def ask(method, path, body):
    asked = urllib.request.Request(url + path, json.dumps(body).encode(), {"content-type": "application/json"}, method=method)
    return json.load(urllib.request.urlopen(asked, timeout=60))["result"]
try:
    ask("PUT", "/collections/docs", {"vectors": {"size": 2, "distance": "Dot"}})
    ask("PUT", "/collections/docs/points", {"points": [{"id": 7, "vector": [1, 2], "payload": {"n": 1}}]})
    found = ask("POST", "/collections/docs/points/query", {"query": [3, 1], "filter": {"must": [{"key": "n", "match": {"value": 1}}]}})
    assert [(point["id"], point["score"]) for point in found["points"]] == [(7, 5.0)], found
finally:
    server.send_signal(signal.SIGTERM)
    assert server.wait(timeout=60) == 0
refused = subprocess.run([sys.executable, "-m", "warpwave", "serve", "served.db", "--tls-cert", "a", "--tls-key", "b"], stderr=subprocess.PIPE, text=True)
assert refused.returncode != 0 and "has no TLS" in refused.stderr, refused.stderr
"""
wrong = []


def complain(text):
    wrong.append(text)


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def name_inside(path):
    """The name by which other libraries load it."""
    return re.search(r"\(SONAME\).*\[(.*)\]", run("readelf", "-d", "-W", path))[1]


def check_elf(path, name, bundled=()):
    """Versions of glibc's symbols, libraries, exports. `bundled`: names of the libraries that are in the wheel."""
    versions = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_(\d+\.\d+(?:\.\d+)?)", run("readelf", "-V", "-W", path))}
    if not versions:
        complain(f"{name}: no version of glibc was found in it")
    for version in sorted(versions):
        if version[:2] > GLIBC_MAX:
            complain(f"{name}: needs GLIBC_{'.'.join(map(str, version))}; at most {GLIBC_MAX[0]}.{GLIBC_MAX[1]} is allowed")
    for library in re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", "-W", path)):
        if not NEEDED.fullmatch(library) and library not in bundled:
            complain(f"{name}: needs {library}, which is not everywhere")
    if name in (LIBRARY, COMMAND) or name == path:
        done = subprocess.run([pathlib.Path(__file__).with_name("check-hardening.py"), path], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            complain(f"{name}: {done.stderr.strip()}")
    if pathlib.Path(name).name.startswith("libwarpwave."):
        exported = {line.split()[-1].split("@")[0] for line in run("nm", "-D", "--defined-only", path).splitlines()}
        for symbol in sorted(symbol for symbol in exported if not symbol.startswith("ww_") and symbol != "sqlite3_warpwave_init"):
            complain(f"{name}: exports {symbol}")
        for symbol in ("ww_collection_query", "ww_model_open", "ww_store_open", "ww_sqlite_use_bundled", "sqlite3_warpwave_init", "ww_command_main"):
            if symbol not in exported:
                complain(f"{name}: {symbol} is not exported")


def check_contents(wheel, folder):
    names = wheel.namelist()
    for wanted in (LIBRARY, COMMAND, "warpwave/py.typed", "warpwave/__init__.py", "warpwave/_native.py"):
        if wanted not in names:
            complain(f"{wanted} is not in it")
    for library in ("jansson", "libmicrohttpd", "pcre2", "sqlite", "utf8proc", "zlib", "zstd"):
        if not any(name.endswith(f"{library}.txt") for name in names):
            complain(f"the license of {library} is not in it")
    bundled = [name for name in names if name.startswith(BUNDLED) and not name.endswith("/")]
    libraries = [name for name in names if ".so" in name and name not in bundled]
    if libraries != [LIBRARY]:
        complain(f"libraries: {libraries}")
    requires = re.findall(r"^Requires-Dist: (.*)$", wheel.read(next(name for name in names if name.endswith("METADATA"))).decode(), flags=re.M)
    if [line for line in requires if "extra" not in line] != ["numpy"]:
        complain(f"it requires {requires}")
    wheel.extractall(folder)
    brought = [name_inside(folder / name) for name in bundled]
    for name in (LIBRARY, COMMAND, *bundled):
        if name in names:
            check_elf(str(folder / name), name, brought)


def check_installed(path, folder):
    """In a separate environment, away from this tree."""
    venv.create(folder / "venv", with_pip=True)
    python = str(folder / "venv" / "bin" / "python")
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(path))
    command = str(folder / "venv" / "bin" / "warpwave")
    for command in ((python, "-c", SMOKE), (python, "-c", SERVE), (python, "-m", "warpwave", "version"), (command, "devices"), (command, "store", "check", "smoke.db")):
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False, env={"PATH": "/usr/bin:/bin"})
        if done.returncode != 0:
            complain(f"{' '.join(' '.join(command[1:]).split())[:60]}: exit code {done.returncode}: {done.stderr.strip()}")


def check_wheel(path, quick):
    tag = re.fullmatch(r"warpwave-[\w.]+-py3-none-manylinux_2_28_(x86_64|aarch64)\.whl", path.name)
    if not tag:
        complain(f"{path.name}: the tag is not py3-none-manylinux_2_28_...")
    size = path.stat().st_size
    if size > BYTES_MAX:
        complain(f"{path.name}: {size:,} bytes; at most {BYTES_MAX:,} are allowed")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with zipfile.ZipFile(path) as wheel:
            check_contents(wheel, folder / "contents")
        verdict = subprocess.run([sys.executable, "-m", "auditwheel", "show", str(path)], capture_output=True, text=True, check=False)
        text = " ".join((verdict.stdout + verdict.stderr).split())
        found = re.search(r'platform tag: "(?:manylinux_2_(\d+)|manylinux(\d+))', text)
        if not found or (found[1] and int(found[1]) > GLIBC_MAX[1]):
            complain(f"auditwheel: {text}")
        if not quick:
            check_installed(path, folder)
    tag = found[0] + '"' if found else "no"
    print(f"{path.name}: {size:,} bytes, auditwheel: {tag}")


def main():
    if sys.argv[1:2] == ["--elf"]:
        files = sys.argv[2:]
        bundled = []
        if "--bundled" in files:
            at = files.index("--bundled")
            files, bundled = files[:at], files[at + 1:]
        for name in files + bundled:
            check_elf(name, pathlib.Path(name).name, [name_inside(library) for library in bundled])
    else:
        check_wheel(pathlib.Path(sys.argv[1]).resolve(), "--quick" in sys.argv)
    for line in wrong:
        print(f"check-wheel: {line}", file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
