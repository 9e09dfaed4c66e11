#!/usr/bin/env bash
# Where ROCm's runtime is installed and no AMD GPU is: the library loads the runtime, gives the runtime's own reason for having no
# device, and `auto` falls back. Run in AMD's containers by .github/workflows/ci.yml.
#   scripts/gpu/check-rocm-runtime.sh BUILD_DIR
set -euo pipefail
build=$1
said=$("$build/warpwave" devices | grep '^rocm: ') || { echo "there is a ROCm device here, or the backend is missing" >&2; exit 1; }
echo "$said"
case $said in
*"no ROCm runtime"*) echo "check-rocm-runtime: the runtime was not loaded, although it should be installed" >&2; exit 1 ;;
*hip[A-Z]*) ;;
*) echo "check-rocm-runtime: the reason does not name the call of the runtime that gave it" >&2; exit 1 ;;
esac
fallback=$(env -u WARPWAVE_DEVICE "$build/tests/example_search")
[ "$(head -1 <<< "$fallback")" = "east 0.9939" ] || { echo "check-rocm-runtime: auto did not fall back: $fallback" >&2; exit 1; }
