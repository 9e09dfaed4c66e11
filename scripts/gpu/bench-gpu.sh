#!/usr/bin/env bash
# Figures of the GPUs here: searches of one query and of many, at the sizes people use, tensors, quantized matrices, and copies. Fails where there is no GPU: it
# has measured nothing.
#   scripts/gpu/bench-gpu.sh BUILD_DIR [DEVICE...]
# WARPWAVE_BENCH_ROWS divides the work for a slow device: rows of the first case, 1000000 if not set; WARPWAVE_BENCH_SIDE likewise: rows and
# columns of the largest matrices, 4096 if not set.
set -uo pipefail
build=${1:-build}
shift || true
here=$(dirname "$0")
listed=$("$here/gpu-devices.sh" "$build" "$@") || exit
mapfile -t devices <<< "$listed"
rows=${WARPWAVE_BENCH_ROWS:-1000000}
failed=0

bench() {
    echo
    echo "warpwave bench $*"
    "$build/warpwave" bench "$@" || failed=1
}

# The workloads of docs/evidence/amd-performance.md, measured, and beside them what was calculated for a card with this chip.
workloads() {
    [ -x "$build/tests/gpu_workloads" ] || return 0
    local chip few=()
    chip=$("$build/warpwave" devices --json | python3 -c '
import json, sys
for device in json.load(sys.stdin)["devices"]:
    if device["id"] == sys.argv[1]:
        print(device.get("arch", ""))' "$1")
    [ "$rows" -ge 1000000 ] || { few=(--rows "$rows"); chip=none; } # smaller: not what was calculated
    echo
    echo "gpu_workloads $1: milliseconds measured, milliseconds calculated for $chip (a lower bound), calculated by measured"
    "$build/tests/gpu_workloads" "$1" "${few[@]}" > "$build/gpu-workloads.txt" || failed=1
    awk -F '\t' -v chip="$chip" '
        NR == FNR { if ($1 == chip && $3 != "-") calculated[$2] = $3; next }
        $1 in calculated { printf "%-26s %12.4f %12.4f %6.0f%%\n", $1, $2, calculated[$1], 100 * calculated[$1] / $2; next }
        { printf "%-26s %12.4f %12s\n", $1, $2, "-" }' "$here/../../docs/evidence/amd-performance.tsv" "$build/gpu-workloads.txt"
}

for device in "${devices[@]}"; do
    bench --device "$device" --rows "$rows" --dim 128 --queries 1000 --metric l2
    bench --device "$device" --rows "$rows" --dim 128 --queries 1000 --metric cosine
    bench --device "$device" --rows $((rows / 5)) --dim 768 --queries 1000 --metric cosine
    bench --device "$device" --rows $((rows / 5)) --dim 768 --queries 1000 --metric cosine --screen none
    if [ -x "$build/tests/gpu_figures" ]; then
        echo
        echo "gpu_figures $device: tensors and quantized matrices"
        "$build/tests/gpu_figures" "$device" "${WARPWAVE_BENCH_SIDE:-4096}" || failed=1
    fi
    workloads "$device"
    if [ -x "$build/tests/test_gpu_bandwidth" ]; then
        echo
        WARPWAVE_TEST_DEVICES=$device "$build/tests/test_gpu_bandwidth" 2>&1 | grep -E 'GB/s|FAILED' || true
    fi
done
exit $failed
