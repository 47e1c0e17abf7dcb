#!/bin/sh
# usage: tidy.sh LOG_DIR [FILE]...
#
# Runs clang-tidy with the checks of .clang-tidy on every source file of the shim, the tests and the examples, or on those
# named, and with them on the headers that they include. Prints what it found, then "N passed, N failed", one test a file.
set -u
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
tree=${here%/*/*}
logs=$1
shift
rm -rf "$logs"
mkdir -p "$logs"
cd "$tree" || exit

# What must not compile is left out, projects that are compiled in a way of their own, and what needs C++23's <format>.
# shellcheck disable=SC2046 # names without spaces
[ $# -gt 0 ] || set -- $(git ls-files src test docs | grep '\.cpp$' |
    grep -v -e '^test/compile_fail/' -e '^test/downstream/' -e std_format_test)
flags="-std=c++20 -Wno-everything -I src/shim -I include -I test -I docs/examples $(
    pkg-config --cflags libibverbs fmt catch2 | sed 's/-I/-isystem /g'
)"
export flags logs

# shellcheck disable=SC2016 # it is for the shells that xargs starts
check='
    log=$logs/$(echo "$1" | tr / _).log
    if clang-tidy --quiet "$1" -- $flags >"$log" 2>/dev/null; then
        rm "$log"
        echo passed
    else
        echo "failed: $1"
    fi'
printf '%s\n' "$@" | xargs -d '\n' -n 1 -P "$(nproc)" sh -c "$check" check >"$logs/results"
for log in "$logs"/*.log; do
    [ ! -f "$log" ] || head -n 20 "$log"
done
grep '^failed' "$logs/results"
passed=$(grep -c '^passed' "$logs/results")
echo "$passed passed, $(($# - passed)) failed"
