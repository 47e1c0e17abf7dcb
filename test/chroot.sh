#!/bin/sh
# usage: chroot.sh DIR [OPTION OF run.sh]...
#
# Runs docs/quickstart.sh and test/run.sh as a newcomer would, on a fresh system: in a copy of DIR, which debootstrap
# --variant=minbase made, with a clone of what is committed here. Needs root. DIR stays as it is, and the copy goes.
# Exit status: 0 when both went well.
set -eu
if [ "${1-}" != --inside ]; then
    tree=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
    pristine=${1:?usage: chroot.sh DIR [OPTION OF run.sh]...}
    shift
    copy=$(mktemp -d "${TMPDIR:-/var/tmp}/ibvxx-chroot.XXXXXX")
    trap 'rm -rf --one-file-system "$copy"' EXIT
    trap 'exit 1' HUP INT TERM
    cp -a --reflink=auto "$pristine" "$copy/root"
    git clone -q --no-hardlinks "$tree" "$copy/root/root/ibvxx"
    # Mounts and processes live in namespaces that end with the command, however it ends.
    unshare --mount --propagation private --pid --fork --kill-child sh "$0" --inside "$copy/root" "$@"
    exit
fi

root=$2
shift 2
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
# As in a system image: no package lists yet. Names are resolved, and packages fetched, as this machine does it.
rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/archives/*.deb
for file in /etc/resolv.conf /etc/hosts; do
    [ ! -f $file ] || cp -L $file "$root$file"
done

inside() { # COMMAND [ARGUMENT...]
    echo "==== ${PRETTY_NAME:-$root}: $*"
    began=$(date +%s)
    status=0
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb chroot "$root" "$@" </dev/null || status=$?
    echo "==== ended with $status after $(($(date +%s) - began)) s"
    [ $status -eq 0 ]
}
# shellcheck source=/dev/null
. "$root/etc/os-release"
all=0
inside sh /root/ibvxx/docs/quickstart.sh || all=1
inside sh /root/ibvxx/test/run.sh "$@" || all=1
exit $all
