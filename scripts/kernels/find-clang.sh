#!/usr/bin/env bash
# Prints the clangs here that are new enough to compile kernels, one path a line, the best first: those of the distribution by number, then
# whatever `clang` is, then ROCm's own, which is all that there is in AMD's containers and with AMD's packages on Ubuntu 22.04.
# cmake/Kernels.cmake tries them in earnest, in this order.
#   scripts/kernels/find-clang.sh              17 or later
#   scripts/kernels/find-clang.sh --with-lld   and with an lld as new, which AMD's chips need
set -euo pipefail

new_enough() {
    local version
    version=$("$1" -dumpversion 2>/dev/null) || return 1
    version=${version%%.*}
    [[ $version =~ ^[0-9]+$ ]] && [ "$version" -ge 17 ]
}

# An older lld, which a clang finds on PATH, links no code for AMD.
has_lld() {
    local lld clang_version
    lld=$("$1" -print-prog-name=lld 2>/dev/null) || return 1
    clang_version=$("$1" -dumpversion)
    [[ $lld == /* && $("$lld" -flavor gnu --version 2>/dev/null) =~ LLD\ ([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -ge "${clang_version%%.*}" ]
}

for name in clang-22 clang-21 clang-20 clang-19 clang-18 clang-17 clang \
    ${ROCM_PATH:+"$ROCM_PATH/llvm/bin/clang"} ${ROCM_HOME:+"$ROCM_HOME/llvm/bin/clang"} /opt/rocm/llvm/bin/clang amdclang; do
    path=$(command -v "$name") || continue
    new_enough "$path" || continue
    [ "${1:-}" != --with-lld ] || has_lld "$path" || continue
    echo "$path"
done
