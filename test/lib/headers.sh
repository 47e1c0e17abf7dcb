#!/bin/sh
# usage: headers.sh LOG_DIR [all]
#
# Compiles every header alone, with the warnings in $IBVXX_HEADER_WARNINGS and, by GCC, $IBVXX_GCC_WARNINGS (meson.build
# sets both): with the default compiler in C++20, and in C++23 without exceptions and RTTI; where there is clang, with that
# too. "all" takes every combination of the compilers, or of those named in $IBVXX_COMPILERS, with both standards, with and
# without exceptions and RTTI. Prints what failed, then "N passed, N failed".
set -u
warnings=${IBVXX_HEADER_WARNINGS:?has the warnings: run meson test --suite headers}
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
include=${here%/*/*}/include
logs=$1
every=${2-}
rm -rf "$logs"
mkdir -p "$logs"

bare='-fno-exceptions -fno-rtti'
compilers=${IBVXX_COMPILERS:-${CXX:-g++}}
[ -n "${IBVXX_COMPILERS-}" ] || ! command -v clang++ >/dev/null 2>&1 || compilers="$compilers clang++"
modes() { # prints COMPILER, and flags
    if [ "$every" = all ]; then
        for compiler in $compilers; do
            for standard in c++20 c++2b; do
                echo "$compiler -std=$standard"
                echo "$compiler -std=$standard $bare"
            done
        done
    else
        echo "${CXX:-g++} -std=c++20"
        echo "${CXX:-g++} -std=c++2b $bare"
        case $compilers in *clang++) echo "clang++ -std=c++20 $bare" ;; esac
    fi
}

jobs() {
    cd "$include" || exit
    modes | while read -r mode; do
        for header in ibvxx/*.hpp ibvxx/*/*.hpp; do
            # The one header whose purpose is to throw.
            case $mode$header in *"$bare"*or_throw.hpp) continue ;; esac
            echo "$mode $header"
        done
    done
}

# Reads one job: a command line whose last word is the header.
# shellcheck disable=SC2016 # it is for the shells that xargs starts
compile='
    header=${1##* } log=$logs/$(echo "$1" | tr -c "[:alnum:]+.\n" _)
    case ${1% *} in *clang*) ;; *) flags="$flags ${IBVXX_GCC_WARNINGS-}" ;; esac
    if echo "#include <$header>" | ${1% *} -I "$include" $flags -x c++ -fsyntax-only - >"$log" 2>&1; then
        echo passed
    else
        echo "failed: $1"
        mv "$log" "$log.failed"
    fi'

flags="$warnings -Werror $(
    pkg-config --cflags libibverbs fmt | sed 's/-I/-isystem /g'
)"
export include logs flags
jobs >"$logs/jobs"
xargs -d '\n' -n 1 -P "$(nproc)" sh -c "$compile" job <"$logs/jobs" >"$logs/results"
for log in "$logs"/*.failed; do
    [ ! -f "$log" ] || head -n 15 "$log"
done
grep '^failed' "$logs/results"
passed=$(grep -c '^passed' "$logs/results")
failed=$(($(wc -l <"$logs/jobs") - passed))
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
