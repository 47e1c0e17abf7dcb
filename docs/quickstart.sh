#!/bin/sh
# usage: quickstart.sh [BUILD_DIR]
#
# Builds docs/examples/quickstart.cpp and runs it: on an RDMA device if there is one, otherwise on a simulated one.
# On Debian it first installs, with apt-get, the packages that are missing for that. It can be run again, from anywhere;
# BUILD_DIR is build-quickstart in the source tree by default.
set -eu
tree=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
build=${1:-$tree/build-quickstart}
# shellcheck source=test/lib/packages.sh
. "$tree/test/lib/packages.sh"

# shellcheck disable=SC2086 # a list
install_packages $build_packages ibverbs-providers

quietly() { # COMMAND [ARGUMENT...]: shows its output only if it fails
    "$@" >"$build/quickstart.log" 2>&1 || {
        cat "$build/quickstart.log" >&2
        exit 1
    }
}

mkdir -p "$build"
[ -f "$build/build.ninja" ] || {
    echo "Configuring $build"
    quietly meson setup -Doptimization=0 -Ddebug=false -Dtests=disabled -Dexamples=enabled "$build" "$tree"
}
echo "Building"
quietly ninja -C "$build" docs/examples/quickstart
echo
"$build/docs/examples/quickstart"
