#!/bin/sh
# usage, inside the kernel tier's machine:
#
#   rdma_baseline save                    remember what the kernel holds now (init does it once, on fresh links)
#   rdma_baseline check                   fail, and print the difference, when it holds anything else
#   rdma_baseline run PROGRAM [ARG...]    run, then check; the program's own failure comes first
#   rdma_baseline show                    the counts, one "DEVICE OBJECT COUNT" a line
#
# The counts are those of `rdma resource`: pd, cq, qp, cm_id, mr, ctx, srq of each device. The kernel frees what a
# process held when the process goes, so `check` after a test finds what a live process or the kernel still holds; a
# test finds its own leaks by running `check` while it lives.
set -u
saved=/run/rdma-baseline

show() {
    # "0: rxe0: pd 1 cq 1 ...": the index is left out, since a link that was deleted and added again gets a new one.
    rdma resource show | awk '{
        sub(/:$/, "", $2)
        for (i = 3; i < NF; i += 2) print $2, $i, $(i + 1)
    }' | sort
}

check() {
    # The kernel finishes some releases after the call or the process is gone: give it 2 s, no more.
    tries=20
    until show >/run/rdma-now && cmp -s $saved /run/rdma-now; do
        if [ $((tries -= 1)) -le 0 ]; then
            echo "rdma_baseline: the kernel's objects differ from the baseline:"
            awk '
                { key = $1 " " $2 }
                NR == FNR { before[key] = $3; next }
                !(key in before) { print "  " key ": absent -> " $3; next }
                before[key] != $3 { print "  " key ": " before[key] " -> " $3 }
                { delete before[key] }
                END { for (key in before) print "  " key ": " before[key] " -> absent" }
            ' $saved /run/rdma-now
            return 1
        fi
        sleep 0.05
    done
}

case ${1-} in
save) show >$saved ;;
check) check ;;
show) show ;;
run)
    shift
    "$@"
    status=$?
    check || [ $status -ne 0 ] || status=1
    exit $status
    ;;
*)
    echo "usage: rdma_baseline save | check | show | run PROGRAM [ARG...]" >&2
    exit 2
    ;;
esac
