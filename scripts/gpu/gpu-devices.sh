#!/usr/bin/env bash
# The GPUs to work on, one a line: those that are named, or every real one. Fails, with the reasons, where there is none.
#   scripts/gpu/gpu-devices.sh BUILD_DIR [DEVICE...]      DEVICE as in `warpwave devices`; emulated ones only by name
set -euo pipefail
build=$1
shift
devices=("$@")
if [ ${#devices[@]} -eq 0 ]; then
    mapfile -t devices < <("$build/warpwave" devices --json | python3 -c '
import json, sys
for device in json.load(sys.stdin)["devices"]:
    if device["backend"] in ("cuda", "rocm"):
        print(device["id"])')
fi
if [ ${#devices[@]} -eq 0 ]; then
    echo "SKIP: there is no GPU here, so nothing was done:" >&2
    "$build/warpwave" devices | grep -E '^(cuda: |rocm: |this library )' >&2 || true
    exit 1
fi
for device in "${devices[@]}"; do
    case $device in
    cuda* | rocm* | emulator*)
        if ! "$build/warpwave" devices --device "$device" >/dev/null; then # its message says which devices there are
            exit 2
        fi
        echo "$device"
        ;;
    *) echo "gpu-devices: '$device' is not a GPU" >&2; exit 2 ;;
    esac
done
