#!/usr/bin/env bash
# Everything that is checked without running the library; every check runs, and the failed ones are named at the end.
#   scripts/lint.sh BUILD_DIR       (configured; exported symbols are checked if it is also built)
# CLANG_FORMAT and CLANG_TIDY name other versions of the two tools. LINT_STATES is how many states of a function the static analyzer looks
# at; the CI's own job for it has the analyzer's own 225000. Without it they are 50000, which finds what is near in a third of the time, and
# the tests are checked without the analyzer: they run under the sanitizers.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
build=${1:-build}
clang_format=${CLANG_FORMAT:-clang-format-19}
failed=()

check() {
    local name=$1 begin=$SECONDS
    shift
    if "$@"; then
        printf 'lint: %-18s ok (%d s)\n' "$name" $((SECONDS - begin))
    else
        printf 'lint: %-18s FAILED\n' "$name"
        failed+=("$name")
    fi
}

formatting() {
    local crooked
    crooked=$(git ls-files -z '*.c' '*.h' | xargs -0 -r -n 100 -P "$(nproc)" "$clang_format" --dry-run -Werror 2>&1 | grep -E ': (error|fatal)' | sort -u -t: -k1,1)
    [ -z "$crooked" ] || { echo "$crooked"; echo "the first of each file; make format repairs them"; return 1; }
}

# With LINT_STATES files that are compiled in several forms are checked in each, too.
static_analysis() {
    if [ -n "${LINT_STATES:-}" ]; then
        scripts/tidy.py "$build" --states "$LINT_STATES" --every-form
    else
        scripts/tidy.py "$build"
    fi
}

# SC2100 takes build=build-asan for arithmetic.
shell_scripts() {
    git ls-files -z ':!*.md' | xargs -0 grep -lE -m 1 '^#!.*\b(bash|sh)$' -- | xargs -r shellcheck -e SC2100
}

python_scripts() {
    git ls-files -z ':!*.md' | xargs -0 grep -lE -m 1 '^#!.*\bpython3$' -- | xargs -r python3 -c '
import ast, pathlib, sys
for path in sys.argv[1:]:
    ast.parse(pathlib.Path(path).read_text(encoding="utf-8"), path)'
}

# The crates for Rust: formatting, clippy and documentation, with warnings as errors.
rust_crates() {
    local options=(--quiet --locked --offline --manifest-path rust/Cargo.toml --workspace --all-targets)
    cargo fmt --manifest-path rust/Cargo.toml --all --check || { echo "cargo fmt in rust/ repairs it"; return 1; }
    local -x WARPWAVE_LIB_DIR CARGO_TARGET_DIR
    WARPWAVE_LIB_DIR=$(realpath "$build")
    CARGO_TARGET_DIR=$WARPWAVE_LIB_DIR/rust
    cargo clippy "${options[@]}" --all-features -- -D warnings && cargo clippy "${options[@]}" -- -D warnings &&
        RUSTDOCFLAGS='-D warnings' cargo doc --quiet --locked --offline --manifest-path rust/Cargo.toml --workspace --no-deps --all-features
}

# The nightly workflow runs what `make check-nightly` does, and what else takes too long for every change.
nightly_targets() {
    local target missing=()
    for target in check-codeobjects $(scripts/check --nightly | sed 's/^/check-/'); do
        grep -qE "(target:|make) $target( |\$)" .github/workflows/nightly.yml || missing+=("$target")
    done
    [ ${#missing[@]} -eq 0 ] || { echo ".github/workflows/nightly.yml does not run ${missing[*]}"; return 1; }
}

exported_symbols() {
    scripts/symbols.py --check "$build/libwarpwave.so" || return 1
    [ ! -e "$build/libwarpwave.a" ] || scripts/symbols.py --check "$build/libwarpwave.a"
}

check "formatting" formatting
check "tree" scripts/check-tree.py
check "API reference" scripts/api-reference.py --check
check "phrases" scripts/check-phrases.py
check "evidence" scripts/evidence.py check
check "picture of rows" bench/search/rows.py --check
check "executed kernels" scripts/kernels/code_evidence.py check "$build"
check "shell scripts" shell_scripts
check "python scripts" python_scripts
check "declarations" scripts/python-native.py --check
check "types of asyncio" scripts/python-aio.py --check
check "versions" scripts/package/release.py --check
check "unsafe code" scripts/rust-unsafe.py
check "nightly targets" nightly_targets
rust_minor=$(rustc --version 2>/dev/null | sed -nE 's/^rustc 1\.([0-9]+)\..*/\1/p')
if [ "${rust_minor:-0}" -ge 75 ] && cargo clippy --version >/dev/null 2>&1 && cargo fmt --version >/dev/null 2>&1; then
    check "rust crates" rust_crates
else
    echo "lint: rust crates        skipped: no cargo 1.75 or later with clippy and rustfmt"
fi
if [ -e "$build/libwarpwave.so" ]; then
    check "exported symbols" exported_symbols
else
    echo "lint: exported symbols   skipped: $build/libwarpwave.so is not built"
fi
check "static analysis" static_analysis

[ ${#failed[@]} -eq 0 ] || { echo "lint: failed: ${failed[*]}" >&2; exit 1; }
