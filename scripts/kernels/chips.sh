#!/usr/bin/env bash
# The GPU chips to compile kernels for: the one list of them, and what the word CHIPS of make means. Prints targets on one line.
#   scripts/kernels/chips.sh all | none | auto | CHIP ...    auto: the targets that the GPUs of this machine load; nothing where there is none
#   scripts/kernels/chips.sh --gpus                          the GPUs of this machine as their drivers name them: gfx1101 sm_86
#   scripts/kernels/chips.sh --target CHIP ...               for each chip the target that it loads, or nothing (src/gpu/chip.c chooses alike)
# An unknown chip is refused, and the known ones are named. WARPWAVE_KFD names another folder than that of AMD's driver, for tests.
set -euo pipefail

# The generic ones serve the other chips of their family where the runtime loads code object version 6: ROCm 6.2 and later.
amd="gfx906 gfx908 gfx90a gfx942 gfx950 gfx1030 gfx1100 gfx1151 gfx1201 gfx1250 gfx9-generic gfx9-4-generic gfx10-1-generic gfx10-3-generic gfx11-generic gfx12-generic"
nvidia="sm_75 sm_80 sm_90a"
# Compiled if they are named; the driver runs sm_80's code on them as well.
on_request="sm_100 sm_120"
all="$amd $nvidia"

known() {
    [[ " $all " == *" $1 "* ]]
}

# target CHIP: the best of all the targets for that chip.
target() {
    local number best='' one
    if known "$1"; then
        echo "$1"
        return
    fi
    case $1 in
    gfx940 | gfx941) echo gfx9-4-generic ;;
    gfx900 | gfx902 | gfx904 | gfx909 | gfx90c) echo gfx9-generic ;;
    gfx101[0-3]) echo gfx10-1-generic ;;
    gfx103[1-6]) echo gfx10-3-generic ;;
    gfx110[1-3] | gfx115[0-3]) echo gfx11-generic ;;
    gfx1200) echo gfx12-generic ;;
    sm_[0-9]*)
        number=${1#sm_}
        number=${number%%[!0-9]*}
        if known "sm_${number}a"; then
            echo "sm_${number}a"
            return
        fi
        for one in $nvidia; do
            [[ $one == *a ]] || [ "${one#sm_}" -gt "$number" ] || best=$one
        done
        [ -z "$best" ] || echo "$best"
        ;;
    esac
}

# AMD's kernel driver tells each node's chip as major * 10000 + minor * 100 + stepping; CPUs are nodes with 0.
amd_gpus() {
    local folder=${WARPWAVE_KFD:-/sys/class/kfd/kfd/topology/nodes} version
    if [ -d "$folder" ]; then
        cat "$folder"/*/properties 2>/dev/null | sed -n 's/^gfx_target_version \([1-9][0-9]*\)$/\1/p' | while read -r version; do
            printf 'gfx%d%x%x\n' $((version / 10000)) $((version / 100 % 100)) $((version % 100))
        done
    elif command -v rocm_agent_enumerator >/dev/null; then
        rocm_agent_enumerator 2>/dev/null | grep -E '^gfx[1-9]' || true
    fi
}

# NVIDIA's tool says it. In a container that has the driver's library but not the tool, the library is asked.
nvidia_gpus() {
    local said='' scratch
    if command -v nvidia-smi >/dev/null; then
        said=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | sed -nE 's/^ *([0-9]+)\.([0-9]+) *$/sm_\1\2/p') || said=
    fi
    if [ -z "$said" ] && has_libcuda && command -v cc >/dev/null; then
        scratch=$(mktemp -d)
        if cc -o "$scratch/cuda-chips" "$(dirname "$0")/../../tools/cuda-chips.c" -ldl 2>/dev/null; then
            said=$(timeout 20 "$scratch/cuda-chips" 2>/dev/null) || said=
        fi
        rm -rf "$scratch"
    fi
    [ -z "$said" ] || echo "$said"
}

has_libcuda() {
    local folder folders
    IFS=: read -r -a folders <<<"${LD_LIBRARY_PATH:-}:/usr/lib/wsl/lib"
    for folder in "${folders[@]}"; do
        [ -z "$folder" ] || [ ! -e "$folder/libcuda.so.1" ] || return 0
    done
    PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1 '
}

gpus() {
    { amd_gpus; nvidia_gpus; } | sort -u
}

targets_here() {
    local gpu chosen
    gpus | while read -r gpu; do
        chosen=$(target "$gpu")
        if [ -n "$chosen" ]; then
            echo "$chosen"
        else
            echo "chips: no target is for the GPU $gpu of this machine; if it is AMD's, the library compiles kernels for it with ROCm's hipRTC" >&2
        fi
    done | sort -u
}

in_order() {
    local one
    for one in $all $on_request; do
        [[ " $* " != *" $one "* ]] || printf '%s ' "$one"
    done | sed 's/ $//'
    echo
}

read -r -a words <<<"${*//[,;]/ }"
case ${words[0]:-auto} in
--gpus) gpus ;;
--target)
    for chip in "${words[@]:1}"; do
        target "$chip"
    done
    ;;
all | none | auto)
    if [ ${#words[@]} -gt 1 ]; then
        echo "chips: '${words[0]}' stands alone: ${words[*]}" >&2
        exit 2
    fi
    case ${words[0]:-auto} in
    all) echo "$all" ;;
    none) echo ;;
    auto) in_order "$(targets_here | tr '\n' ' ')" ;;
    esac
    ;;
*)
    for chip in "${words[@]}"; do
        if ! known "$chip" && [[ " $on_request " != *" $chip "* ]]; then
            loads=$(target "$chip")
            echo "chips: unknown chip '$chip'${loads:+ (it runs code for $loads)}; known: $all; or auto, all, none" >&2
            exit 2
        fi
    done
    in_order "${words[@]}"
    ;;
esac
