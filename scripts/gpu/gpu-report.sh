#!/usr/bin/env bash
# Runs a command and keeps what it says as a part of BUILD_DIR/gpu-report.txt, the one file that an owner of a GPU can send: the
# machine, the devices and versions first, then the tests, then the figures, each from its last run.
#   scripts/gpu/gpu-report.sh BUILD_DIR tests|figures COMMAND...      exits as the command does
set -uo pipefail
build=$1 part=$2
shift 2
root=$(dirname "$0")/../..
parts=$build/gpu-report
report=$build/gpu-report.txt
mkdir -p "$parts"

line() { printf '%-18s %s\n' "$1" "$2"; }
first_of() { "$@" 2> /dev/null | head -1; }

amdgpu_driver() {
    if [ ! -e /sys/module/amdgpu ]; then
        echo "not loaded"
    else
        cat /sys/module/amdgpu/version 2> /dev/null || echo "the kernel's own"
    fi
}

machine() {
    local os cpu rocm
    os=$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release 2> /dev/null)
    cpu=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo 2> /dev/null | head -1)
    rocm=${ROCM_PATH:-${ROCM_HOME:-/opt/rocm}}
    rocm=$(cat "$rocm/.info/version" 2> /dev/null || echo "not installed under $rocm")
    line warpwave "$(first_of "$build/warpwave" version)"
    line commit "$(git -C "$root" rev-parse HEAD 2> /dev/null || echo 'not a checkout')$([ -z "$(git -C "$root" status --porcelain 2> /dev/null)" ] || echo ', with changes')"
    line date "$(date -u '+%Y-%m-%d %H:%M UTC')"
    line system "${os:-unknown}, Linux $(uname -r) $(uname -m)"
    line processor "${cpu:-unknown}, $(nproc) threads"
    line compiler "$(first_of cc --version)"
    line "device compiler" "$("$build/warpwave" version | sed -n 2p)"
    line ROCm "$rocm"
    line "amdgpu driver" "$(amdgpu_driver)"
    line "NVIDIA driver" "$(first_of nvidia-smi --query-gpu=driver_version,name --format=csv,noheader || echo 'not loaded')"
    echo
    echo "-- as warpwave sees the devices"
    "$build/warpwave" devices 2>&1
    vendors_word
}

# What the vendor's own tools say of the same devices, to be compared with the lines above.
vendors_word() {
    if command -v rocminfo > /dev/null; then
        echo
        echo "-- as rocminfo sees them: chip, name, compute units, wave size, threads a block, memory"
        timeout 60 rocminfo 2>&1 | grep -E '^ *(Name|Marketing Name|Compute Unit|Wavefront Size|Workgroup Max Size|Max Waves Per CU|BDFID|Size):' | sed 's/  */ /g'
    fi
    if command -v rocm-smi > /dev/null; then
        echo
        echo "-- as rocm-smi sees them"
        timeout 60 rocm-smi --showproductname --showbus --showmeminfo vram --showdriverversion --showclocks 2>&1 | grep -vE '^=*$'
    fi
    if command -v nvidia-smi > /dev/null; then
        echo
        echo "-- as nvidia-smi sees them"
        timeout 60 nvidia-smi --query-gpu=name,pci.bus_id,memory.total,memory.free,clocks.sm,clocks.mem,driver_version --format=csv 2>&1
    fi
}

machine > "$parts/machine"
begin=$SECONDS
"$@" 2>&1 | tee "$parts/$part.running"
code=${PIPESTATUS[0]}
{
    line command "$*"
    line result "$([ "$code" -eq 0 ] && echo passed || echo "FAILED, exit code $code"), after $((SECONDS - begin)) s"
    echo
    cat "$parts/$part.running"
} > "$parts/$part"
rm -f "$parts/$part.running"

{
    echo "Warpwave GPU report"
    for name in machine tests figures; do
        printf '\n==== %s ====\n' "$name"
        if [ -s "$parts/$name" ]; then
            cat "$parts/$name"
        else
            echo "not run yet: make $([ $name = tests ] && echo check-gpu || echo check-figures)"
        fi
    done
} > "$report"
echo "report: $report"
exit "$code"
