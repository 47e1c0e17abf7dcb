#!/bin/sh
# usage: bench.sh BUILD_DIR
#
# Builds the programs of test/bench, optimised, in BUILD_DIR and runs them: each holds the simulation to its limits and
# prints what it measured. Ends with "N passed, N failed".
set -u
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
tree=${here%/*/*}
build=$1
mkdir -p "$build" # and what the log stands in
# shellcheck source=test/lib/configure.sh
. "$here/configure.sh"

if ! configure "$build" "$tree" --buildtype=release -Dwerror=true -Dtests=enabled -Dbenchmarks=enabled >"$build.log" 2>&1 ||
    ! ninja -C "$build" test/data-path-bench test/scale-bench >"$build.log" 2>&1; then
    tail -n 40 "$build.log"
    echo "0 passed, 1 failed"
    exit 1
fi
log=$build/meson-logs/benchmarklog.txt
rm -f "$log"
if meson test -C "$build" --no-rebuild --benchmark --suite bench --logbase benchmarklog >"$build.log" 2>&1; then
    grep -E '^[^=:]*: .*\(limit' "$log" | sed 's/^/   /'
else
    cat "$log" "$build.log"
fi
if [ ! -f "$log" ]; then
    echo "   there is no $log"
    echo "0 passed, 1 failed"
    exit 1
fi
awk -f "$here/tally.awk" "$log"
