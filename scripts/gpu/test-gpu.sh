#!/usr/bin/env bash
# The tests that need a real GPU: every suite that runs on devices, on it; a minute of stress; and NVIDIA's compute-sanitizer
# where it is installed. Without a GPU this fails: it has tested nothing.
#   scripts/gpu/test-gpu.sh BUILD_DIR [DEVICE...]      DEVICE as in `warpwave devices`; all real GPUs if none is named
# WARPWAVE_STRESS_SECONDS sets the length of the stress, 60 by default.
set -uo pipefail
build=${1:-build}
shift || true
listed=$("$(dirname "$0")/gpu-devices.sh" "$build" "$@") || exit
mapfile -t devices <<< "$listed"
"$build/warpwave" devices
names=$(IFS=,; echo "${devices[*]}")
export WARPWAVE_TEST_DEVICES=$names

# The suites that run on devices say so in their source; the cross-backend test has its own way of naming them.
suites=()
while read -r source; do
    suites+=("$build/tests/$(basename "$source" .c)")
done < <(grep -rlE --include='test_*.c' 'RUN_ON_EVERY_DEVICE|getenv."WARPWAVE_TEST_DEVICES"' "$(dirname "$0")"/../../tests)

passed=0
failed=()
skipped=()
run() {
    local name=$1 begin=$SECONDS output failure=0
    shift
    output=$("$@" 2>&1) || failure=$?
    # The sanitizer may lose track of a launch and count that against the program: nothing was found, and not all was looked at.
    if [ $failure -ne 0 ] && grep -q 'Internal Sanitizer Error' <<< "$output"; then
        printf 'again %-44s %4d s: %s\n' "$name" $((SECONDS - begin)) "$(grep -m 1 'Internal Sanitizer Error' <<< "$output")"
        failure=0
        output=$("$@" 2>&1) || failure=$?
    fi
    if [ $failure -eq 0 ]; then
        passed=$((passed + 1))
        printf 'pass  %-44s %4d s\n' "$name" $((SECONDS - begin))
        grep -E '^[0-9]+ searches|GB/s|SKIP' <<< "$output" | sed 's/^/      /'
    else
        failed+=("$name")
        printf 'FAIL  %-44s %4d s\n%s\n' "$name" $((SECONDS - begin)) "$output"
    fi
}

echo "suites on $names:"
for program in "${suites[@]}"; do
    case $program in
    *stress) WARPWAVE_STRESS_SECONDS=${WARPWAVE_STRESS_SECONDS:-60} run "$(basename "$program")" "$program" ;;
    *) run "$(basename "$program")" "$program" ;;
    esac
done

for vendor in cuda rocm; do
    case $names in
    *"$vendor"*) run "example ${vendor}_basic" "$build/tests/example_${vendor}_basic" ;;
    esac
done

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)
case $names in
*cuda*)
    if [ -n "$sanitizer" ]; then
        for tool in memcheck racecheck; do
            for program in "${suites[@]}"; do
                case $program in
                *collection_search | *gpu_copies | *threads_gpu_stress)
                    WARPWAVE_STRESS_SECONDS=5 run "$tool $(basename "$program")" \
                        "$sanitizer" --tool "$tool" --error-exitcode 9 "$program" ;;
                esac
            done
        done
    else
        skipped+=("compute-sanitizer memcheck and racecheck: compute-sanitizer is not installed")
    fi ;;
esac

echo "$passed passed, ${#failed[@]} failed, ${#skipped[@]} skipped on $names"
for reason in "${skipped[@]}"; do echo "SKIP: $reason"; done
[ ${#failed[@]} -eq 0 ] || { printf 'failed: %s\n' "${failed[@]}"; exit 1; }
