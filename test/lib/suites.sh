#!/bin/sh
# usage: suites.sh BUILD_DIR [MESON_OPTION]...
#
# Builds everything in BUILD_DIR and runs every test that Meson knows of. Prints what failed, then "N passed, N failed".
set -u
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
tree=${here%/*/*}
build=$1
shift
mkdir -p "$build" # and what the log stands in
# shellcheck source=test/lib/configure.sh
. "$here/configure.sh"

if ! configure "$build" "$tree" "$@" >"$build.log" 2>&1; then
    tail -n 40 "$build.log"
    echo "0 passed, 1 failed"
    exit 1
fi
if ! ninja -C "$build" >"$build.log" 2>&1; then
    grep -v '^\[' "$build.log" | head -n 100
    echo "0 passed, 1 failed"
    exit 1
fi

# ThreadSanitizer of GCC 12 cannot place its shadow memory where the kernel scatters mappings widely.
straight=''
case "$*" in
*b_sanitize=thread*) ! setarch "$(uname -m)" -R true 2>/dev/null || straight="setarch $(uname -m) -R" ;;
esac
rm -f "$build/meson-logs/testlog.txt"
# shellcheck disable=SC2086 # nothing, or several words
$straight meson test -C "$build" --no-rebuild --num-processes "$(nproc)" >"$build.log" 2>&1
if [ ! -f "$build/meson-logs/testlog.txt" ]; then
    cat "$build.log"
    echo "0 passed, 1 failed"
    exit 1
fi
awk -f "$here/tally.awk" "$build/meson-logs/testlog.txt"
