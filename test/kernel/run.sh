#!/bin/sh
# usage: run.sh [--with PROGRAM]... PROGRAM...
#
# Runs each program as root in a machine with two Soft-RoCE devices (see boot.sh) and then looks whether the kernel
# holds anything that it did not hold before. Prints for each
#
#   test:         NAME
#   ...its output...
#   result:       exit status N
#
# Those after --with are not run, but there for the others.
# Exit status: 0 when all succeeded; 77 when the machine's parts cannot be had; otherwise something failed.
set -eu
here=$(dirname "$0")
kernel=$(sh "$here/fetch.sh") || exit $?

names=''
left=$#
while [ "$left" -gt 0 ]; do
    if [ "$1" = --with ]; then
        shift
        left=$((left - 1))
    else
        names="$names ${1##*/}"
    fi
    set -- "$@" --program "$1"
    shift
    left=$((left - 1))
done

sh "$here/boot.sh" --kernel "$kernel" "$@" --timeout "${IBVXX_KERNEL_TIMEOUT:-240}" --run "
all=0
for program in$names; do
    echo \"test:         \$program\"
    status=0
    rdma_baseline run \"\$program\" || status=\$?
    echo \"result:       exit status \$status\"
    [ \$status -eq 0 ] || all=1
done
exit \$all"
