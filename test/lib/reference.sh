#!/bin/sh
# usage: reference.sh OUT_DIR
#
# Makes the reference, OUT_DIR/html, from docs/Doxyfile, and takes every warning for a failure. Prints those, then
# "1 passed, 0 failed" or "0 passed, 1 failed"; where there is no doxygen, "0 passed, 0 failed, 1 skipped".
set -u
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
if ! command -v doxygen >/dev/null 2>&1; then
    echo "0 passed, 0 failed, 1 skipped"
    exit 77
fi
rm -rf "$1"
mkdir -p "$1"
out=$(CDPATH='' cd -- "$1" && pwd)
cd "${here%/*/*}" || exit
# What the owners and the context are called must be in it: an empty reference has no warnings either.
if { cat docs/Doxyfile && echo "OUTPUT_DIRECTORY = $out"; } | doxygen - >"$out/log" 2>&1 &&
    grep -q 'create_cq' "$out/html/namespaceibvxx.html" && [ -f "$out/html/classibvxx_1_1rdma__context.html" ]; then
    echo "1 passed, 0 failed"
else
    head -n 25 "$out/log"
    echo "0 passed, 1 failed"
    exit 1
fi
