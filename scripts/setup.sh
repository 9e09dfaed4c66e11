#!/usr/bin/env bash
# Installs what the named purposes of scripts/packages need and what is missing: with apt where there is apt, with sudo where
# we are not root. Elsewhere it says what to install and goes on, since the tools may be there under other package names.
# WARPWAVE_SETUP=no leaves the machine alone.
#   scripts/setup.sh [--chips WORD] PURPOSE ...   with the purpose kernels as well, if that word of scripts/kernels/chips.sh means any chip and no
#                                              clang here can compile for GPUs
#   scripts/setup.sh --line PURPOSE               prints the line to type that installs it
#   scripts/setup.sh --unpack ARCHITECTURE FOLDER PURPOSE [SUITE]   unpacks its packages for another architecture, or those of another suite of
#                                              Debian, and what they need, into FOLDER: nothing is installed, and root is not needed
set -euo pipefail
here=$(dirname "$0")
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)

has_apt() {
    command -v dpkg-query >/dev/null && command -v apt-get >/dev/null
}

architecture=
if has_apt; then
    architecture=$(dpkg --print-architecture)
fi

purposes_known() {
    sed -nE 's/^([a-z-]+):.*/\1/p' "$here/packages" | tr '\n' ' '
}

# Ends the script if a purpose is none; not for use in a subshell, which is all that an exit would end.
check_purposes() {
    local purpose
    for purpose in "$@"; do
        if ! [[ $purpose =~ ^[a-z-]+$ ]] || ! grep -q "^$purpose:" "$here/packages"; then
            echo "setup: unknown purpose '$purpose'; scripts/packages has these: $(purposes_known)" >&2
            exit 2
        fi
    done
}

# The words of a purpose, those for this architecture included.
packages_of() {
    sed -nE "s/^$1(\[$architecture\])?: *//p" "$here/packages" | tr '\n' ' '
}

# For this machine: a package may be installed for another architecture as well, or instead. a&b: both.
installed() {
    local name
    for name in ${1//&/ }; do
        dpkg-query -W -f '${db:Status-Status} ${Architecture}\n' "$name" 2>/dev/null | grep -qxE "installed ($architecture|all)" || return 1
    done
}

known_to_apt() {
    local name
    for name in ${1//&/ }; do
        [ -n "$(apt-cache show "$name" 2>/dev/null)" ] || return 1
    done
}

# first_that TEST A|B|C: the first alternative that passes the test.
first_that() {
    local test=$1 names name
    IFS='|' read -r -a names <<<"$2"
    for name in "${names[@]}"; do
        if "$test" "$name"; then
            echo "$name"
            return 0
        fi
    done
    return 1
}

# What is missing for the purposes "$@": missing=().
find_missing() {
    local purpose package words
    missing=()
    for purpose in "$@"; do
        if [ "$purpose" = kernels ] && [ -n "$("$here/kernels/find-clang.sh" --with-lld)" ]; then # ROCm's own, say
            continue
        fi
        read -r -a words <<<"$(packages_of "$purpose")"
        for package in "${words[@]}"; do
            first_that installed "$package" >/dev/null || missing+=("$package")
        done
    done
}

# What apt calls the missing: chosen=(). Those it does not know: unknown=().
choose() {
    local package name
    chosen=()
    unknown=()
    for package in "${missing[@]}"; do
        if name=$(first_that known_to_apt "$package"); then
            read -r -a names <<<"${name//&/ }"
            chosen+=("${names[@]}")
        else
            unknown+=("${package//|/ or }")
        fi
    done
}

print_line() {
    if ! has_apt; then
        echo "install clang 17 or later with its lld"
        return
    fi
    missing=()
    read -r -a missing <<<"$(packages_of "$1")"
    choose
    if [ ${#unknown[@]} -gt 0 ] && [ "$1" = kernels ] && [ -n "$(apt-cache dumpavail 2>/dev/null | head -n 1)" ]; then
        echo "curl -fsSL https://apt.llvm.org/llvm.sh | ${as_root[*]:+${as_root[*]} }bash -s -- 19"
    else
        [ ${#chosen[@]} -gt 0 ] || read -r -a chosen <<<"$(tr '&' ' ' <<<"${missing[*]%%|*}")"
        echo "${as_root[*]:+${as_root[*]} }apt-get install ${chosen[*]}"
    fi
}

install_missing() {
    if [ ${#as_root[@]} -gt 0 ] && ! command -v sudo >/dev/null; then
        {
            echo "setup: these packages are missing, and you are neither root nor is there sudo. As root, run:"
            echo "    apt-get install $(tr '&' ' ' <<<"${missing[*]%%|*}")"
            echo "or, if you have their programs from elsewhere, try again with WARPWAVE_SETUP=no in the environment."
        } >&2
        exit 1
    fi
    "${as_root[@]}" apt-get update -qq
    choose
    [ ${#unknown[@]} -eq 0 ] || echo "setup: apt here does not know ${unknown[*]}; going on without" >&2
    [ ${#chosen[@]} -gt 0 ] || return 0
    echo "setup: installing ${chosen[*]}" >&2
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${chosen[@]}" >/dev/null
}

# write_sources FOLDER ARCHITECTURE SUITE: apt's sources: those of this machine, or of a suite of Debian.
write_sources() {
    local folder=$1 file sources
    if [ -n "$3" ]; then
        # Experimental is no whole suite: what it needs is in sid.
        for file in "$3" $([ "$3" != experimental ] || echo sid); do
            echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $file main"
        done >"$folder/debian.list"
        return
    fi
    # Ubuntu keeps ARM64 on another server.
    sources='s#://(archive|security)[.]ubuntu[.]com/ubuntu/?([ \t]|$)#://ports.ubuntu.com/ubuntu-ports/\2#g'
    [ "$2" != amd64 ] || sources='s#://ports[.]ubuntu[.]com/ubuntu-ports/?([ \t]|$)#://archive.ubuntu.com/ubuntu/\1#g'
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
        [ ! -e "$file" ] || sed -E "$sources" "$file" >"$folder/$(basename "$file" | sed 's/^sources[.]list$/main.list/')"
    done
}

# Downloads the packages of a purpose for another architecture or from another suite, with all that they need, into FOLDER/.apt and unpacks them into
# FOLDER. apt is told of an empty machine of that architecture, so the packages of this one stay as they are.
unpack() {
    local other=$1 folder=$2 suite=${4:-} words apt options
    read -r -a words <<<"$(packages_of "$3")"
    if [ "$(cat "$folder/.unpacked" 2>/dev/null)" = "$other ${suite:+$suite }${words[*]}" ]; then
        return 0
    fi
    if ! has_apt; then
        echo "setup: no apt here, so the packages of '$3' for $other cannot be fetched: ${words[*]}" >&2
        exit 1
    fi
    rm -rf "$folder"
    apt=$folder/.apt
    mkdir -p "$apt"/{lists,archives}/partial "$apt/sources"
    apt=$(cd "$apt" && pwd)
    : >"$apt/status"
    write_sources "$apt/sources" "$other" "$suite"
    options=(-qq -o "APT::Architecture=$other" -o "APT::Architectures::=$other" -o "Dir::State=$apt" -o "Dir::State::lists=$apt/lists"
        -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt" -o "Dir::Cache::archives=$apt/archives" -o "Dir::Log=$apt"
        -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$apt/sources" -o APT::Sandbox::User= -o Debug::NoLocking=1)
    [ -z "$suite" ] || options+=(-o "APT::Default-Release=$suite")
    echo "setup: fetching ${words[*]} for $other${suite:+ from Debian $suite} into $folder" >&2
    apt-get "${options[@]}" update
    apt-get "${options[@]}" install -y --no-install-recommends --download-only "${words[@]}" >/dev/null
    for file in "$apt"/archives/*.deb; do # rocBLAS's own kernels are gigabytes, and nobody runs them here
        dpkg-deb --fsys-tarfile "$file" | tar -x -C "$folder" --no-same-owner --exclude='*/rocblas/*/library' --exclude='./usr/share/doc'
        rm "$file"
    done
    for name in lib lib64; do # where the release has merged them with /usr, no package brings these
        [ -e "$folder/$name" ] || [ ! -d "$folder/usr/$name" ] || ln -s "usr/$name" "$folder/$name"
    done
    find "$folder" -type l -lname '/*' | while read -r name; do # links into the root, which is the folder
        ln -sfnr "$folder$(readlink "$name")" "$name"
    done
    rm -rf "$apt"
    echo "$other ${suite:+$suite }${words[*]}" >"$folder/.unpacked"
}

case ${1:-} in
--line)
    check_purposes "${2:-}"
    print_line "$2"
    exit 0
    ;;
--unpack)
    check_purposes "${4:-}"
    unpack "$2" "$3" "$4" "${5:-}"
    exit 0
    ;;
esac
purposes=()
if [ "${1:-}" = --chips ]; then
    chips=$("$here/kernels/chips.sh" "$2" 2>/dev/null) || chips= # cmake refuses what is unknown, with the list
    [ -z "$chips" ] || purposes+=(kernels)
    shift 2
fi
check_purposes "$@"
purposes+=("$@")
[ "${WARPWAVE_SETUP:-yes}" != no ] || exit 0
if ! has_apt; then
    wanted=$(for purpose in "${purposes[@]}"; do packages_of "$purpose"; done)
    echo "setup: no apt here; please have the equivalents of these Debian packages: $wanted" >&2
    exit 0
fi
find_missing "${purposes[@]}"
[ ${#missing[@]} -eq 0 ] || install_missing
