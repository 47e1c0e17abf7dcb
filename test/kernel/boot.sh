#!/bin/sh
# usage: boot.sh --kernel DIR --run 'COMMANDS' [--program FILE]... [--file SRC:DEST]... [--timeout SECONDS] [--log FILE]
#
# Boots a machine with two Soft-RoCE devices (see init), runs the commands in it as root and exits with their status.
#
#   --kernel DIR      what fetch.sh printed
#   --program FILE    put into /bin, with its libraries; no sanitizers
#   --file SRC:DEST   put at the absolute path DEST
#   --timeout N       whole run, seconds, 120 unless told
#   --log FILE        gets the console: the kernel's messages and, after "| ", the commands' output
#
# What the commands print comes on stdout, as it is printed. When the machine gives no verdict (panic, hang, failed
# setup), the end of its console goes to stderr and the exit status is 70.
# IBVXX_ACCEL=tcg or kvm overrules the choice of accelerator.
set -eu
here=$(dirname "$0")

die() {
    echo "boot.sh: $*" >&2
    exit 70
}

kernel='' commands='' log='' timeout=120
# Whatever is for initramfs.sh stays in "$@": each argument is taken from the front and those put back at the end.
left=$#
while [ "$left" -gt 0 ]; do
    [ "$left" -ge 2 ] || die "$1 needs an argument"
    case $1 in
    --kernel) kernel=$2 ;;
    --run) commands=$2 ;;
    --timeout) timeout=$2 ;;
    --log) log=$2 ;;
    --program | --file) set -- "$@" "$1" "$2" ;;
    *) die "unknown option $1" ;;
    esac
    shift 2
    left=$((left - 2))
done
if [ -z "$kernel" ] || [ -z "$commands" ]; then
    die "--kernel and --run are needed"
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/ibvxx-boot.XXXXXX")
machine=''
# shellcheck disable=SC2317 # called by the trap
cleanup() {
    [ -z "$machine" ] || kill "$machine" 2>/dev/null || true
    # The serial console's lines end in CR LF.
    if [ -n "$log" ] && [ -f "$work/console" ]; then
        tr -d '\r' <"$work/console" >"$log"
    fi
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 70' HUP INT TERM

printf '%s\n' "$commands" >"$work/commands"
sh "$here/initramfs.sh" --kernel "$kernel" "$@" --commands "$work/commands" --out "$work/initramfs" ||
    die "no initramfs"

accel=${IBVXX_ACCEL:-$(sh "$here/accel.sh")}
case $accel in
kvm) ;;
tcg) accel=tcg,thread=multi ;;
*) die "IBVXX_ACCEL is neither kvm nor tcg" ;;
esac

# oops=panic: a kernel that oopsed proves nothing any more. The first serial line is the console, the second the output.
# In the background, since a shell would look at a signal only after a foreground command had ended.
timeout --foreground -k 5 "$timeout" qemu-system-x86_64 \
    -accel "$accel" -cpu max -smp 2 -m 1024 -nodefaults -no-user-config -display none -no-reboot \
    -kernel "$kernel/kernel" -initrd "$work/initramfs" \
    -append "console=ttyS0 panic=-1 oops=panic quiet" \
    -serial "file:$work/console" -serial stdio </dev/null &
machine=$!
ended=0
wait "$machine" || ended=$?
machine=''

verdict=$(tr -d '\r' <"$work/console" | sed -n 's/^\(\[[ 0-9.]*\] \)\{0,1\}ibvxx-kernel-tier: //p' | tail -n 1)
case $verdict in
"status "*) exit "${verdict#status }" ;;
esac
{
    tr -d '\r' <"$work/console" | tail -n 30
    case $ended in
    124 | 137) echo "boot.sh: no verdict within $timeout s" ;;
    *) echo "boot.sh: no verdict, QEMU ended with $ended${verdict:+; $verdict}" ;;
    esac
} >&2
exit 70
