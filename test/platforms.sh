#!/bin/sh
# usage: platforms.sh [--rows PATTERN] [--tiers 'TIER...'] DEBIAN=DIR...
#
# Runs the suite on every row of platforms.txt whose Debian is given, for example 12=/srv/bookworm 13=/srv/trixie, where
# each DIR was made by debootstrap --variant=minbase, and writes docs/platforms.md. Needs root. What is committed is
# tested, in a copy of DIR, which stays as it is.
#
#   --rows PATTERN   only rows that this extended regular expression matches, for example '13 clang'
#   --tiers TIERS    instead of those of the row; the table is left alone then, since it speaks of whole runs
#
# Results of earlier runs, in $IBVXX_PLATFORMS or /var/tmp/ibvxx-platforms, stay in the table until their rows run again.
# Exit status: 0 when every row that ran was green.
set -eu
tree=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
state=${IBVXX_PLATFORMS:-/var/tmp/ibvxx-platforms}

# ---- inside the copy of one system: one row

if [ "${1-}" = --inside ]; then
    shift
    root=$1 cxx=$2 flags=$3 fallback=$4
    shift 4
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    for file in /etc/resolv.conf /etc/hosts; do
        [ ! -f $file ] || cp -L $file "$root$file"
    done
    in_root() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb "$@" </dev/null; }
    # shellcheck disable=SC2016 # for the shell inside
    in_root PACKAGES="${PLATFORM_PACKAGES}" FALLBACK="$fallback" chroot "$root" sh -c '
        . /root/ibvxx/test/lib/packages.sh
        install_packages $PACKAGES || exit
        # Debian builds Catch2 3 with libstdc++: with libc++ it is built from its source, as a subproject.
        [ "$FALLBACK" != catch2 ] || [ -d /root/ibvxx/subprojects/Catch2-3.15.3 ] || {
            sed "s/^Types: deb\$/Types: deb-src/; s/^deb /deb-src /" /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null \
                >/etc/apt/sources.list.d/source.list
            install_packages dpkg-dev && apt-get -q update && cd /root && apt-get -q source catch2 &&
                mv /root/catch2-*/ /root/ibvxx/subprojects/Catch2-3.15.3
        }' >&2
    [ -z "$fallback" ] || fallback=--force-fallback-for=$fallback
    in_root CXX="$cxx" CXXFLAGS="$flags" IBVXX_BUILD=/root/build IBVXX_MESON_OPTIONS="$fallback" \
        chroot "$root" sh /root/ibvxx/test/run.sh "$@"
    exit
fi

# ---- outside

rows='' tiers='' systems=''
while [ $# -gt 0 ]; do
    case $1 in
    --rows) rows=${2:?--rows needs a pattern} && shift ;;
    --tiers) tiers=${2:?--tiers needs a list} && shift ;;
    [0-9]*=/*) systems="$systems $1" ;;
    *)
        sed -n '2,/^$/s/^#\{0,1\} \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    esac
    shift
done
[ -n "$systems" ] || {
    echo "platforms.sh: no system; see the first lines of $0" >&2
    exit 2
}
mkdir -p "$state"
commit=$(git -C "$tree" rev-parse --short HEAD)
some='plain headers compile-fail docs quickstart conformance downstream'
most="asan tsan $some"

directory_of() { # DEBIAN
    for system in $systems; do
        [ "${system%%=*}" != "$1" ] || echo "${system#*=}"
    done
}

packages_of() { # DEBIAN COMPILER LIBRARY
    version=${2#*-}
    case $2 in
    gcc-*) echo "g++-$version" ;;
    # The sanitizers' runtimes are packages of their own.
    clang-*) echo "clang-$version libclang-rt-$version-dev" ;;
    esac
    [ "$3" != libc++ ] || echo "libc++-$version-dev libc++abi-$version-dev"
    # git: the copy is a clone. doxygen, by its size no part of what run.sh installs, belongs to a whole run.
    echo "git doxygen"
}

compiler_of() { # COMPILER LIBRARY
    case $1 in
    gcc-*) echo "g++-${1#*-}" ;;
    clang-*) echo "clang++-${1#*-}$([ "$2" = libstdc++ ] || echo " -stdlib=libc++")" ;;
    esac
}

flags_of() { # LIBRARY C++
    # Compilers of before 2023 call it 2b. Debian's fmt is built with libstdc++, but it comes as headers, too.
    case $2 in
    23) echo "-std=c++2b$([ "$1" = libstdc++ ] || echo " -DFMT_HEADER_ONLY=1")" ;;
    *) echo "-std=c++$2$([ "$1" = libstdc++ ] || echo " -DFMT_HEADER_ONLY=1")" ;;
    esac
}

row_file() { echo "$state/$1-$2-$3-$4"; } # DEBIAN COMPILER LIBRARY C++

copy='' copied='' # the system that is there as a copy, for the rows that follow one another
discard() {
    [ -z "$copy" ] || rm -rf --one-file-system "$copy"
    copy='' copied=''
}
trap discard EXIT
trap 'exit 1' HUP INT TERM

run_row() { # DEBIAN COMPILER LIBRARY C++ TIERS
    directory=$(directory_of "$1")
    file=$(row_file "$1" "$2" "$3" "$4")
    if [ "$copied" != "$1" ]; then
        discard
        copy=$(mktemp -d "${TMPDIR:-/var/tmp}/ibvxx-platform.XXXXXX")
        cp -a --reflink=auto "$directory" "$copy/root"
        git clone -q --no-hardlinks "$tree" "$copy/root/root/ibvxx"
        copied=$1
    fi
    rm -rf "$copy/root/root/build" # another compiler's
    wanted=$5
    [ -z "$tiers" ] || wanted=$tiers
    [ "$wanted" != most ] || wanted=$most
    [ "$wanted" != some ] || wanted=$some
    set -- "$1" "$2" "$3" "$4"
    fallback=''
    [ "$3 $1" != "libc++ 13" ] || fallback=catch2
    echo "==== Debian $1, $2, $3, C++$4: $wanted"
    options=''
    [ "$wanted" = all ] || for tier in $wanted; do options="$options --only $tier"; done
    [ "$wanted" != all ] || options=--require-kernel
    began=$(date +%s)
    status=0
    # Mounts and processes live in namespaces that end with the command, however it ends.
    # shellcheck disable=SC2086 # options
    PLATFORM_PACKAGES=$(packages_of "$1" "$2" "$3" | tr '\n' ' ') \
        unshare --mount --propagation private --pid --fork --kill-child sh "$0" --inside "$copy/root" \
        "$(compiler_of "$2" "$3")" "$(flags_of "$3" "$4")" "$fallback" $options >"$file.log" 2>&1 || status=$?
    last=$(tail -n 1 "$file.log")
    case $last in
    *' passed, '*' failed'*) ;;
    *) last='did not run to its end' ;;
    esac
    took=$(($(date +%s) - began))
    echo "     $last ($took s); $file.log"
    [ -n "$tiers" ] || {
        # shellcheck disable=SC2016 # dpkg-query's own variables
        versions=$(chroot "$copy/root" dpkg-query -W -f '${Package} ${source:Upstream-Version}\n' \
            libibverbs-dev catch2 libfmt-dev | awk '{ of[$1] = $2 }
                END { print of["libibverbs-dev"] " | " of["catch2"] ", " of["libfmt-dev"] }')
        echo "| $versions | $last | $(date -u +%Y-%m-%d), $commit |" >"$file"
    }
    [ $status -eq 0 ]
}

grep -v '^#' "$tree/test/platforms.txt" >"$state/rows"
all=0
while read -r debian compiler library language row_tiers <&3; do
    [ -n "$(directory_of "$debian")" ] || continue
    [ -z "$rows" ] || echo "$debian $compiler $library $language" | grep -Eq -e "$rows" || continue
    run_row "$debian" "$compiler" "$library" "$language" "$row_tiers" || all=1
done 3<"$state/rows"

[ -n "$tiers" ] || {
    cat <<'HEAD'
# Platforms

What the whole test suite was run on, and how it ended. `test/platforms.sh` writes this page; `test/platforms.txt` has the rows.
"whole" is every tier with a kernel's Soft-RoCE; "most" leaves out the kernel, which a compiler does not change, and "some" the
sanitizers as well.

| Debian | compiler | library | C++ | tiers | rdma-core | Catch2, fmt | result | when, commit |
|---|---|---|---|---|---|---|---|---|
HEAD
    while read -r debian compiler library language row_tiers; do
        file=$(row_file "$debian" "$compiler" "$library" "$language")
        echo "| $debian | $compiler | $library | $language | $([ "$row_tiers" = all ] && echo whole || echo "$row_tiers") $(
            cat "$file" 2>/dev/null || echo '| | | not run yet | |'
        )"
    done <"$state/rows"
} >"$state/table"
[ -n "$tiers" ] || cp "$state/table" "$tree/docs/platforms.md"
exit $all
