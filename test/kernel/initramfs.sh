#!/bin/sh
# usage: initramfs.sh --kernel DIR [--program FILE]... [--file SRC:DEST]... --commands FILE --out FILE
#
# Builds the initramfs that boot.sh boots: busybox, ip and rdma, the Soft-RoCE provider, the modules, the programs in
# /bin, and for everything dynamic the libraries that ldd finds on this machine. The commands are run by init.
# Needs no root: no device node is made, the kernel's own built-in initramfs has /dev/console.
set -eu
PATH=$PATH:/usr/sbin:/sbin # rdma lives there
LC_ALL=C
export PATH LC_ALL
here=$(dirname "$0")

die() {
    echo "initramfs.sh: $*" >&2
    exit 1
}

work=$(mktemp -d "${TMPDIR:-/tmp}/ibvxx-initramfs.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
root=$work/root

# A merged /usr, as on current Debian: /lib/X and /usr/lib/X are then the same file, whichever of them ldd prints.
mkdir "$root"
(cd "$root" && mkdir -p usr/bin usr/lib usr/lib64 dev proc sys tmp run root etc/libibverbs.d modules &&
    ln -s usr/bin bin && ln -s usr/bin sbin && ln -s bin usr/sbin && ln -s usr/lib lib && ln -s usr/lib64 lib64)

provider=$(find /usr/lib -path '*/libibverbs/librxe-rdmav*.so' | head -n 1)
[ -n "$provider" ] || die "no Soft-RoCE provider"
# The multiarch directory is where glibc's loader looks without a cache file, so all libraries go there.
libraries=$root${provider%/libibverbs/*}
mkdir -p "$libraries/libibverbs"

copy() { # SRC DEST: two different files must not end up under one name
    if [ -e "$2" ]; then
        cmp -s "$1" "$2" || die "$1 differs from the file that is already at ${2#"$root"}"
    else
        cp -L "$1" "$2" || die "cannot copy $1"
    fi
}

# ldd fails for what is static or no ELF file at all, which needs no libraries. A missing library must not go unnoticed:
# inside it would look like a failing test.
add_libraries_of() { # FILE
    ldd "$1" >"$work/ldd" 2>/dev/null || return 0
    ! grep 'not found' "$work/ldd" >&2 || die "$1 lacks libraries here"
    # "NAME => FILE (ADDRESS)" is a library, "/FILE (ADDRESS)" the loader, whose path is fixed in the program.
    sed -n 's/^.* => \(\/[^ ]*\) (.*$/library \1/p; t; s/^[[:space:]]*\(\/[^ ]*\) (.*$/loader \1/p' "$work/ldd" |
        while read -r kind file; do
            case $kind in
            library) copy "$file" "$libraries/${file##*/}" ;;
            loader) copy "$file" "$root$file" ;;
            esac
        done
}

add_program() { # FILE [NAME]
    [ -f "$1" ] || die "no program $1"
    copy "$1" "$root/bin/${2:-${1##*/}}"
    chmod 755 "$root/bin/${2:-${1##*/}}"
    add_libraries_of "$1"
}

kernel='' commands='' out=''
while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || die "$1 needs an argument"
    case $1 in
    --kernel) kernel=$2 ;;
    --commands) commands=$2 ;;
    --out) out=$2 ;;
    --program) add_program "$2" ;;
    --file)
        destination=$root/${2##*:}
        mkdir -p "$(dirname "$destination")"
        copy "${2%:*}" "$destination"
        add_libraries_of "${2%:*}"
        ;;
    *) die "unknown option $1" ;;
    esac
    shift 2
done
if [ -z "$kernel" ] || [ -z "$commands" ] || [ -z "$out" ]; then
    die "--kernel, --commands and --out are needed"
fi

# busybox's own shell would run its applet wherever a program has the same name, ip for one; dash goes by PATH.
add_program "$(command -v dash)" sh
for tool in busybox ip rdma; do
    add_program "$(command -v $tool)"
done
copy "$provider" "$libraries/libibverbs/${provider##*/}"
add_libraries_of "$provider"
# Only this one: libibverbs warns about each provider that it is told of and cannot load.
copy /etc/libibverbs.d/rxe.driver "$root/etc/libibverbs.d/rxe.driver"

copy "$kernel/load" "$root/modules/load"
for module in "$kernel"/modules/*.ko; do
    copy "$module" "$root/modules/${module##*/}"
done

echo 'root:x:0:0:root:/root:/bin/sh
nobody:x:65534:65534:nobody:/tmp:/bin/sh' >"$root/etc/passwd"
echo 'root:x:0:
nogroup:x:65534:' >"$root/etc/group"

copy "$here/init" "$root/init"
copy "$here/baseline.sh" "$root/bin/rdma_baseline"
copy "$commands" "$root/etc/commands"
chmod 755 "$root/init" "$root/bin/rdma_baseline"

# Not compressed: unpacking would be emulated, reading is not.
(cd "$root" && find . | cpio --quiet -o -H newc -R 0:0) >"$out"
