"""The wheel: which glibc it needs, what is in the source distribution; whole wheels are built and installed every night."""
import os
import pathlib
import platform
import subprocess
import sys
import tarfile
import zipfile

import pytest
from conftest import ROOT, run_python

BUILD = pathlib.Path(os.environ["WARPWAVE_BUILD"])
CHECK = [sys.executable, str(ROOT / "scripts" / "check-wheel")]


def test_the_objects_of_this_build_link_for_glibc_2_28(tmp_path):
    """As the wheel is linked: by zig, for an old glibc, jansson and zstd inside."""
    libgcc = subprocess.run(["cc", "-print-libgcc-file-name"], capture_output=True, text=True, check=True).stdout.strip()
    core, store = tmp_path / "libcore.so", tmp_path / "libstore.so"
    for linked, objects, more in ((core, "objects.rsp", ["-Wl,-soname,libwarpwave.so.0"]), (store, "store.rsp", [str(core)])):
        subprocess.run([sys.executable, "-m", "ziglang", "cc", "-target", f"{platform.machine()}-linux-gnu.2.28", "-shared", "-s", "-o", str(linked),
                        f"-Wl,--version-script={ROOT / 'python' / 'exports.map'}", "-Wl,-z,defs", f"@{BUILD / 'wheel' / objects}", *more, "-lm", "-lpthread", "-ldl",
                        libgcc], check=True)
        done = subprocess.run([*CHECK, "--elf", str(linked)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert run_python("import warpwave; c = warpwave.Collection(2, device='cpu'); c.add([[1, 0]]); print(c.search([1, 0]).ids[0])", WARPWAVE_LIBRARY=str(core)) == "0\n"
    # And the check can fail: the usual build needs more.
    usual = subprocess.run([*CHECK, "--elf", os.environ["WARPWAVE_COMMAND"]], capture_output=True, text=True, check=False)
    assert usual.returncode == 1 and "jansson" in usual.stderr


def test_the_source_distribution_has_what_a_build_needs(tmp_path):
    subprocess.run([sys.executable, "-m", "build", "--no-isolation", "--sdist", "--outdir", str(tmp_path), str(ROOT)], check=True, capture_output=True)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
        archive.extractall(tmp_path / "sources", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    for wanted in ("CMakeLists.txt", "pyproject.toml", "LICENSE", "python/warpwave/_native.py", "python/licenses/zstd.txt", "include/warpwave/vectors.h",
                   "src/vectors/collection.c", "src/kernels/kernels.def", "cmake/Python.cmake", "scripts/chips", "data/digits.csv"):
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
    assert "wheel/libwarpwave.so.0" in planned and "offload-arch" not in planned and "GPU kernels: none" in done.stdout + done.stderr


@pytest.mark.nightly
def test_a_wheel_is_built_checked_and_installed(tmp_path):
    """For CPUs alone, which needs no compiler for GPUs; `make wheel` makes and checks the one for all chips."""
    subprocess.run([str(ROOT / "scripts" / "make-wheel"), str(tmp_path / "wheel"), "none"], check=True)
    wheel = next((tmp_path / "wheel" / "dist").glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        assert "warpwave/langchain.py" in archive.namelist()
