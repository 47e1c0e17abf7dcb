#!/bin/sh
# usage: reduce.sh UNPACKED OUT
#
# Cuts an unpacked Debian kernel image down to what the kernel tier boots: the layout is described in fetch.sh.
# Order and dependencies are worked out here, once, with the host's kmod: the machine inside then needs no more than
# insmod, and no decompression either (Debian 13 ships .ko.xz).
set -eu
PATH=$PATH:/usr/sbin:/sbin
unpacked=$1
out=$2

# rxe asks for crc32 through the crypto API; without crc32_generic `rdma link add` fails with ENOENT. Newer kernels
# do without the module, so it is the one that may be missing. The last ones are for librdmacm.
optional=crc32_generic
modules="$optional udp_tunnel ip6_udp_tunnel ib_core ib_uverbs rdma_rxe dummy configfs ib_cm iw_cm rdma_cm rdma_ucm"

# Debian 12's package has lib/modules, Debian 13's usr/lib/modules; kmod looks in the place it was built for.
for place in lib usr/lib; do
    if [ ! -e "$unpacked/$place/modules" ]; then
        mkdir -p "$unpacked/$place"
        case $place in
        lib) ln -s ../usr/lib/modules "$unpacked/lib/modules" ;;
        *) ln -s ../../lib/modules "$unpacked/usr/lib/modules" ;;
        esac
    fi
done
version=$(ls "$unpacked/lib/modules")
depmod -b "$unpacked" "$version"

mkdir -p "$out/modules"
image=$unpacked/boot/vmlinuz-$version
sh "$(dirname "$0")/vmlinux.sh" "$image" "$out/kernel" || cp "$image" "$out/kernel"

# The host's modprobe.d must not change what is loaded inside: read no configuration.
for module in $modules; do
    modprobe -C /dev/null -d "$unpacked" -S "$version" --show-depends "$module" ||
        [ "$module" = "$optional" ]
done >"$out/depends"
# "builtin NAME" lines need nothing; of the "insmod FILE" lines the first mention counts.
awk '$1 == "insmod" && !seen[$2]++ { print $2 }' "$out/depends" >"$out/files"
while read -r file; do
    name=${file##*/}
    case $name in
    *.xz) name=${name%.xz} && busybox xzcat "$file" >"$out/modules/$name" ;;
    *.gz) name=${name%.gz} && busybox zcat "$file" >"$out/modules/$name" ;;
    *.ko) cp "$file" "$out/modules/$name" ;;
    *) echo "reduce.sh: cannot decompress $file" >&2 && exit 1 ;;
    esac
    case $name in
    dummy.ko) echo "$name numdummies=2" ;;
    *) echo "$name" ;;
    esac
done <"$out/files" >"$out/load"
rm "$out/depends" "$out/files"
