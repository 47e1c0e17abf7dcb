#!/bin/sh
# usage: run.sh SIMULATED [KERNEL]
#
# Runs the program SIMULATED (conformance-simulated) and compares its transcript with Soft-RoCE's: the one that is kept
# here, or, with KERNEL (conformance-kernel), the one that this program writes now in the kernel tier's machine, which
# must then equal the kept one. Prints "N probes, M documented differences" after whatever is wrong.
#
# Exit status: 0; 77 when the machine's parts cannot be had; otherwise something differs or failed.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
kept=$here/soft-roce-6.1.txt

work=$(mktemp -d "${TMPDIR:-/tmp}/ibvxx-conformance.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

"$1" >"$work/simulated" 2>"$work/errors" || {
    status=$?
    tail -n 5 "$work/errors" >&2
    tail -n 1 "$work/simulated" >&2
    echo "run.sh: $1 failed with exit status $status after the line above" >&2
    exit 1
}

reference=$kept
if [ $# -gt 1 ]; then
    kernel=$(sh "$here/../kernel/fetch.sh") || exit $?
    sh "$here/../kernel/boot.sh" --kernel "$kernel" --program "$2" --timeout "${IBVXX_KERNEL_TIMEOUT:-900}" \
        --run "rdma_baseline run ${2##*/}" >"$work/kernel"
    grep -v '^#' "$kept" >"$work/kept"
    # A later kernel may answer otherwise; then it has a transcript of its own to be kept.
    diff "$work/kept" "$work/kernel" || {
        echo "run.sh: the kernel's transcript is not the kept one" >&2
        exit 1
    }
    reference=$work/kernel
fi

sh "$here/compare.sh" "$reference" "$work/simulated" "$here/differences.txt"
