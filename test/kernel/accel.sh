#!/bin/sh
# usage: accel.sh
#
# Prints the QEMU accelerator to use: kvm or tcg. The device node alone proves nothing: it may be there without
# permission, or without the processor's help behind it, as in many containers. So a virtual processor is really made.
set -u
if [ -r /dev/kvm ] && [ -w /dev/kvm ] &&
    echo quit | timeout 10 qemu-system-x86_64 -accel kvm -cpu max -m 16 -nodefaults -no-user-config \
        -display none -S -monitor stdio >/dev/null 2>&1; then
    echo kvm
else
    echo tcg
fi
