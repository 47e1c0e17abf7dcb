#!/bin/sh
# usage: downstream.sh BUILD_DIR [BUILT]
#
# Builds and runs the projects of test/downstream, each in the way that it is for: ibvxx as a wrapped Meson subproject, and
# installed, with Meson, pkg-config, CMake, and nothing but an include path. BUILT is a build directory of ibvxx to install
# from; without one, or where it is of no use, one is made. Prints what failed, then "N passed, N failed".
set -u
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
tree=${here%/*/*}
projects=$tree/test/downstream
rm -rf "$1/wrap" "$1/prefix" "$1/projects" "$1/logs"
mkdir -p "$1/logs" "$1/projects"
work=$(CDPATH='' cd -- "$1" && pwd)
built=${2-}
# CXX stays; what else a run of the suite was told is not what these projects are built with.
unset PKG_CONFIG_PATH CMAKE_PREFIX_PATH DESTDIR MAKEFLAGS CXXFLAGS

check() { # FUNCTION...: each is one test, and what it prints is shown only when it fails
    for test; do
        # In a shell of its own, which it may leave as it likes.
        if ("$test") >"$work/logs/$test" 2>&1; then
            echo passed >"$work/logs/$test.result"
        else
            echo "failed: $test" >"$work/logs/$test.result"
        fi
    done
}

none() { # WHAT: fails, and shows them, if there are lines on standard input
    found=$(cat)
    [ -z "$found" ] || {
        echo "$1: $found"
        return 1
    }
}

# ---- ibvxx as a subproject: only what the project asks for comes from it

wrap_builds() {
    mkdir -p "$work/wrap/subprojects/packagefiles"
    cp -R "$projects/meson/." "$work/wrap"
    # As a repository would have it: no build directories, and no subprojects that were fetched.
    (cd "$tree" && tar -cf "$work/wrap/subprojects/packagefiles/ibvxx.tar" --transform 's,^,ibvxx/,' \
        meson.build meson_options.txt LICENSE include src docs test subprojects/*.wrap subprojects/packagefiles) &&
        cd "$work/wrap" &&
        meson setup -Doptimization=0 -Ddebug=false --force-fallback-for=ibvxx,ibvxx-shim build &&
        ninja -C build transport &&
        find build -type f -name 'libibvxx*.a' | none "built although nothing links it" &&
        ninja -C build
}

wrap_sweeps() { meson test -C "$work/wrap/build" --no-rebuild --print-errorlogs; }

wrap_leaks_no_tests() { meson test -C "$work/wrap/build" --list | grep ibvxx | none "tests of ibvxx"; }

wrap_leaks_no_warnings() { grep -i warning "$work/logs/wrap_builds" | none "warnings"; }

wrap_respects_cpp_std() {
    grep '"command":' "$work/wrap/build/compile_commands.json" >"$work/wrap/commands" &&
        grep -q subprojects/ibvxx/src "$work/wrap/commands" &&
        grep -v -e '-std=gnu++20' "$work/wrap/commands" | none "not the parent's C++" &&
        grep -e 'std=c++' "$work/wrap/commands" | none "another C++"
}

wrap_is_not_held_to_werror() {
    grep subprojects/ibvxx/src "$work/wrap/commands" | grep -e -Werror | none "-Werror of the parent"
}

wrap_installs_nothing_unasked() {
    meson install -C "$work/wrap/build" --no-rebuild --destdir "$work/wrap/unasked" || return
    [ ! -d "$work/wrap/unasked" ] || find "$work/wrap/unasked" -type f | none "installed"
}

wrap_installs_when_asked() {
    meson configure "$work/wrap/build" -Dibvxx:install=enabled &&
        ninja -C "$work/wrap/build" &&
        meson install -C "$work/wrap/build" --no-rebuild --destdir "$work/wrap/asked" || return
    for file in ibvxx/ibvxx.hpp shim/session.hpp libibvxx-shim.a ibvxx.pc ibvxx-shim.pc ibvxx-config.cmake; do
        [ -n "$(find "$work/wrap/asked" -path "*/$file")" ] || {
            echo "$file was not installed"
            return 1
        }
    done
}

# ---- ibvxx installed: the prefix is moved after the installation, so nothing may remember where it was

installs() {
    # What is installed from must be able to make movable packages; directories of older configurations are not.
    if [ -z "$built" ] || ! grep -qs pcfiledir "$built/meson-private/ibvxx.pc"; then
        built=$work/built
        [ -f "$built/build.ninja" ] ||
            meson setup -Doptimization=0 -Ddebug=false -Dtests=disabled -Dexamples=disabled "$built" "$tree" || return
    fi
    ninja -C "$built" src/shim/libibvxx-shim.a &&
        meson install -C "$built" --no-rebuild --destdir "$work/staging" &&
        mv "$work/staging$(meson introspect --buildoptions "$built" |
            sed 's/.*"name": "prefix", "value": "\([^"]*\)".*/\1/')" "$work/prefix" &&
        rm -rf "$work/staging"
}

# Sets up the environment of a user of the prefix.
use_prefix() {
    libdir=$(dirname "$(find "$work/prefix" -name libibvxx-shim.a)")
    export PKG_CONFIG_PATH="$libdir/pkgconfig" CMAKE_PREFIX_PATH="$work/prefix"
}

in_make() { # PROJECT [VARIABLE=VALUE]...
    mkdir -p "$work/projects/$1"
    cd "$work/projects/$1" || return
    project=$projects/$1/
    shift
    make -f "${project}Makefile" SOURCE="$project" "$@" check
}

installed_meson() {
    use_prefix
    meson setup -Doptimization=0 -Ddebug=false --wrap-mode=nofallback "$work/projects/meson" "$projects/meson" &&
        ninja -C "$work/projects/meson" &&
        meson test -C "$work/projects/meson" --no-rebuild --print-errorlogs
}

installed_pkg_config() { use_prefix && in_make pkg-config; }

installed_cmake() {
    use_prefix
    cmake -G Ninja -S "$projects/cmake" -B "$work/projects/cmake" &&
        ninja -C "$work/projects/cmake" &&
        cd "$work/projects/cmake" && ctest --output-on-failure
}

# The error that a user of another series, or of a component that is not there, is to read.
cmake_refuses() { # ARGUMENTS OF find_package, and what is to be said
    mkdir -p "$work/projects/refused"
    printf 'cmake_minimum_required(VERSION 3.13)\nproject(refused CXX)\nfind_package(ibvxx %s)\n' "$1" \
        >"$work/projects/refused/CMakeLists.txt"
    if cmake -G Ninja -S "$work/projects/refused" -B "$work/projects/refused/build" >"$work/projects/refused/log" 2>&1; then
        echo "find_package(ibvxx $1) found it"
        return 1
    fi
    tr -s ' \n' ' ' <"$work/projects/refused/log" | grep -F "$2" || {
        cat "$work/projects/refused/log"
        return 1
    }
}
installed_cmake_refuses_another_series() { use_prefix && cmake_refuses '0.2 REQUIRED' 'requested version "0.2"'; }
installed_cmake_refuses_an_unknown_component() {
    use_prefix && cmake_refuses 'REQUIRED COMPONENTS turbo' 'this ibvxx has no component turbo'
}

installed_plain() { use_prefix && in_make plain INCLUDE="$work/prefix/include" SHIM="$libdir/libibvxx-shim.a"; }
tree_plain() { use_prefix && in_make plain INCLUDE="$tree/include" SHIM="$libdir/libibvxx-shim.a"; }
installed_raw_verbs() { use_prefix && in_make raw; }

versions_agree() {
    use_prefix
    echo '#include <ibvxx/version.hpp>
IBVXX_VERSION' | ${CXX:-g++} -std=c++20 -E -P -x c++ -I "$work/prefix/include" - >"$work/projects/version" &&
        numbers=$(pkg-config --modversion ibvxx | awk -F. '{ print $1 * 10000 + $2 * 100 + $3 }') &&
        [ "$(tail -n 1 "$work/projects/version")" = "$numbers" ] &&
        grep -q "version = \"$(pkg-config --modversion ibvxx)\"" "$work/prefix/include/ibvxx/version.hpp"
}

# docs/using.md: what a signature speaks of has another name in the other kind, and what it returns does not count.
kinds_have_names_of_their_own() {
    use_prefix
    mkdir -p "$work/projects/kinds"
    cd "$work/projects/kinds" || return
    echo '#include <ibvxx/context.hpp>
        void use(ibvxx::rdma_context&) {}' >use.cpp
    echo '#include <ibvxx/context.hpp>
        void use(ibvxx::rdma_context&);
        int main() { ibvxx::rdma_context context({}); use(context); }' >main.cpp
    for standard in 20 2b; do
        # shellcheck disable=SC2046 # flags
        ${CXX:-g++} -O0 -std=c++$standard $(pkg-config --cflags ibvxx) -c -o "main$standard.o" main.cpp &&
            ${CXX:-g++} -O0 -std=c++$standard $(pkg-config --cflags ibvxx) -c -o "use$standard.o" use.cpp &&
            ${CXX:-g++} -o main "main$standard.o" "use$standard.o" -libverbs || return
    done
    nm -C use2b.o | grep -q std_expected || return 0 # its library has none in C++23, either
    if ${CXX:-g++} -o main main20.o use2b.o -libverbs; then
        echo "objects of both kinds were linked"
        return 1
    fi
}

# What the build finds in a newer verbs.h reaches whoever uses what was installed; without the shim, too.
newer_verbs_are_passed_on() {
    CXXFLAGS="-I$projects/newer" meson setup -Dtests=disabled -Dexamples=disabled -Dshim=disabled \
        "$work/projects/newer" "$tree" &&
        meson install -C "$work/projects/newer" --no-rebuild --destdir "$work/projects/newer/root" || return
    PKG_CONFIG_PATH=$(dirname "$(find "$work/projects/newer/root" -name ibvxx.pc)")
    export PKG_CONFIG_PATH
    # shellcheck disable=SC2046 # flags
    ${CXX:-g++} -std=c++20 -fsyntax-only -Wall -Wextra -Werror -isystem "$projects/newer" \
        $(pkg-config --cflags ibvxx) "$projects/newer/newer.cpp" &&
        find "$work/projects/newer/root" -name '*shim*.pc' | none "a package of a shim that was not built"
}

# The subproject builds the shim, which is most of all the work; the other programs are built beside it.
check wrap_builds wrap_sweeps wrap_leaks_no_tests wrap_leaks_no_warnings wrap_respects_cpp_std \
    wrap_is_not_held_to_werror wrap_installs_nothing_unasked wrap_installs_when_asked &
check installs versions_agree newer_verbs_are_passed_on
[ ! -d "$work/prefix" ] || check installed_meson installed_pkg_config installed_cmake installed_cmake_refuses_another_series \
    installed_cmake_refuses_an_unknown_component installed_plain tree_plain installed_raw_verbs \
    kinds_have_names_of_their_own
wait

for result in "$work"/logs/*.result; do
    if ! grep -q '^passed' "$result"; then
        cat "$result"
        tail -n 25 "${result%.result}"
    fi
done
passed=$(cat "$work"/logs/*.result | grep -c '^passed')
echo "$passed passed, $(($(cat "$work"/logs/*.result | wc -l) - passed)) failed"
