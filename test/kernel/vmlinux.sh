#!/bin/sh
# usage: vmlinux.sh BZIMAGE OUT
#
# Takes the uncompressed kernel out of an xz-compressed bzImage (Debian 12). QEMU starts such a file at once when it has
# the PVH entry note, as Debian's has; otherwise the emulated processor decompresses it in every boot, 3 s of 6.
# Exit status: 1, without OUT, for an image of another kind. That boots as well, and zstd (Debian 13) costs little.
set -eu
LC_ALL=C
export LC_ALL

field() { # OFFSET TYPE: one little-endian number of the setup header (Linux's Documentation/arch/x86/boot.rst)
    od -An -j "$1" -N "${2#u}" -t "$2" "$image" | tr -d ' '
}

image=$1
sectors=$(field 497 u1) # setup_sects, without the boot sector
offset=$(field 584 u4)  # payload_offset, from the end of the setup sectors
length=$(field 588 u4)  # payload_length; its last four bytes are the uncompressed size, no part of the xz stream
trap 'rm -f "$2.part"' EXIT
tail -c +$(((sectors + 1) * 512 + offset + 1)) "$image" | head -c $((length - 4)) | xz -dc >"$2.part" 2>/dev/null
# An ELF note: name of 4 bytes, value of 4 or 8, type 18 (XEN_ELFNOTE_PHYS32_ENTRY), "Xen".
grep -aqP '\x04\0\0\0[\x04\x08]\0\0\0\x12\0\0\0Xen\0' "$2.part"
mv "$2.part" "$2"
