#!/bin/sh
# usage: builds.sh BUILD_DIR [MESON_OPTION]...
#
# Builds everything in BUILD_DIR and runs nothing. Prints what failed, then "1 passed, 0 failed" or "0 passed, 1 failed".
set -u
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
tree=${here%/*/*}
build=$1
shift
mkdir -p "$build" # and what the log stands in
# shellcheck source=test/lib/configure.sh
. "$here/configure.sh"
if configure "$build" "$tree" "$@" >"$build.log" 2>&1 && ninja -C "$build" >"$build.log" 2>&1; then
    echo "1 passed, 0 failed"
else
    echo "---- ${build##*/} ($*) does not build ----"
    grep -v '^\[' "$build.log" | head -n 40
    echo "0 passed, 1 failed"
fi
