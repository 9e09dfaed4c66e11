#!/usr/bin/env bash
# Installs a build, so that programs find the library: the loader's list is renewed where that is needed and allowed, and otherwise the
# line to type is printed. What was installed is noted in BUILD_DIR/installed.txt (or the file that WARPWAVE_INSTALLED names), by which it
# is removed again.
#   scripts/package/install.sh BUILD_DIR             as `make install`; DESTDIR is honoured
#   scripts/package/install.sh --remove BUILD_DIR    as `make uninstall`
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

# In the loader's list of folders?
loader_knows() {
    ldconfig -v -N 2>/dev/null | grep -q "^$1:"
}

renew_loader() {
    if [ "$(id -u)" -eq 0 ]; then
        ldconfig
    else
        echo "To let programs find the library, type: sudo ldconfig"
    fi
}

remove() {
    local list=${WARPWAVE_INSTALLED:-$1/installed.txt} file folder libdir=
    [ -s "$list" ] || { echo "install: $list is not there: nothing was installed from this build"; exit 1; }
    while read -r file; do
        rm -f "$file"
        [[ $file != */libwarpwave.so ]] || libdir=$(dirname "$file")
    done <"$list"
    # Folders that held nothing else: ours by name, never a shared one.
    sed -E 's|/[^/]*$||' "$list" | sort -ru | while read -r folder; do
        while [[ $folder == */warpwave || $folder == */warpwave/* ]]; do
            rmdir "$folder" 2>/dev/null || true
            folder=$(dirname "$folder")
        done
    done
    echo "Removed $(wc -l <"$list") files."
    rm -f "$list"
    [ -z "$libdir" ] || ! loader_knows "$libdir" || renew_loader
}

install() {
    local build=$1 prefix libdir list=${WARPWAVE_INSTALLED:-$1/installed.txt}
    prefix=$(sed -n 's/^CMAKE_INSTALL_PREFIX:[A-Z]*=//p' "$build/CMakeCache.txt")
    local place=${DESTDIR:-}$prefix
    while [ ! -e "$place" ]; do
        place=$(dirname "$place")
    done
    if [ ! -w "$place" ]; then
        echo "install: you may not write to $place; type: sudo make install PREFIX=$prefix, or choose another PREFIX" >&2
        exit 1
    fi
    cmake --install "$build" >/dev/null
    # CMake's own list has no DESTDIR, and tests that install elsewhere write over it.
    { sed "s|^|${DESTDIR:-}|" "$build/install_manifest.txt"; echo; } | sed '/^$/d' >"$list"
    libdir=$(sed -n 's|/libwarpwave\.so$||p' "$build/install_manifest.txt")
    echo "Installed $(wc -l <"$list") files into ${DESTDIR:-}$prefix; make uninstall removes them."
    if [ -n "${DESTDIR:-}" ]; then
        return
    elif loader_knows "$libdir"; then
        renew_loader
    else
        echo "The loader does not look into $libdir. To compile and run programs with the library, type:"
        echo "    export PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir"
    fi
}

case ${1:-} in
--remove) remove "$2" ;;
*) install "$1" ;;
esac
