#!/bin/sh
# usage: fetch.sh [CACHE_DIR]
#
# Makes sure that the kernel tier has what it boots, and prints the directory that holds the kernel:
#
#   kernel       the kernel of the image that Debian's linux-image-amd64 depends on
#   modules/     the modules that Soft-RoCE needs, uncompressed
#   load         one line per module, in loading order: FILE [PARAMETER...]
#
# Nothing is installed: the one package is downloaded, unpacked and cut down in the cache, which lies outside the
# checkout and survives it. Later runs only look. To get a newer kernel, delete the directory.
# Exit status: 0; 77 when something cannot be had (one line on stderr says what); otherwise something broke.
set -eu
PATH=$PATH:/usr/sbin:/sbin # depmod and rdma live there, an ordinary user's PATH need not have it
LC_ALL=C
export PATH LC_ALL

skip() {
    echo "kernel tier: $*" >&2
    exit 77
}

need() { # COMMAND PACKAGE
    command -v "$1" >/dev/null 2>&1 || skip "$1 is missing (Debian package $2)"
}

need qemu-system-x86_64 qemu-system-x86
need busybox busybox-static
need cpio cpio
need depmod kmod
need rdma iproute2
need ibv_rc_pingpong ibverbs-utils
need ldd libc-bin
need dash dash
ls /usr/lib/*/libibverbs/librxe-rdmav*.so >/dev/null 2>&1 ||
    skip "the Soft-RoCE provider librxe is missing (Debian package ibverbs-providers)"
# The initramfs holds busybox without any library, so that a broken program's libraries cannot take the shell with them.
! ldd "$(command -v busybox)" >/dev/null 2>&1 || skip "busybox is not static (Debian package busybox-static)"

cache=${1:-${IBVXX_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ibvxx}/kernel}

# One directory per release, since a home directory may be shared; the last number changes with what is kept in it.
# shellcheck source=/dev/null
release=$(. /etc/os-release && echo "${ID:-unknown}-${VERSION_ID:-none}")
kernel=$cache/$release-1
if [ -f "$kernel/load" ]; then
    echo "$kernel"
    exit 0
fi

need apt-get apt
need dpkg-deb dpkg
# The meta-package names one image exactly; a pattern would match every build there is, and the cloud image lacks
# rdma_rxe.
image=$(apt-cache depends linux-image-amd64 2>/dev/null |
    sed -n 's/^ *|\{0,1\}Depends: \(linux-image-[0-9][^ ]*\)$/\1/p' | head -n 1)
[ -n "$image" ] || skip "no kernel: apt knows no linux-image-amd64 (apt-get update?)"

# Work beside the target: the final rename must not cross file systems, or it would not be atomic.
mkdir -p "$cache"
work=$(mktemp -d "$cache/unpack.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

echo "kernel tier: downloading $image" >&2
# Without the sandbox user, who could not write into the private directory and would only cause a warning.
(cd "$work" && apt-get -q -o APT::Sandbox::User=root download "$image") >&2 ||
    skip "no kernel: $image cannot be downloaded"
echo "kernel tier: unpacking" >&2
dpkg -x "$work"/*.deb "$work/root"
sh "$(dirname "$0")/reduce.sh" "$work/root" "$work/kept" >&2
echo "$image" >"$work/kept/package"

# Whoever came first wins: -T refuses to replace a directory that holds something.
mv -T "$work/kept" "$kernel" 2>/dev/null || [ -f "$kernel/load" ]
echo "$kernel"
