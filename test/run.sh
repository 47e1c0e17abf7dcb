#!/bin/sh
# usage: run.sh [--require-kernel] [--only TIER]...
#
# Runs every tier of tests, or those named. The last line is "N passed, N failed", with ", N skipped" where something
# was; the exit status is 1 unless all went well. On Debian, missing packages are installed with apt-get.
#
#   plain         the test programs
#   asan          the same under AddressSanitizer and UndefinedBehaviorSanitizer
#   tsan          those that start threads, under ThreadSanitizer
#   no-unity      every file of the shim and of the tests compiled by itself
#   buildtypes    what packagers build: every build type, by GCC and, where there is one, Clang
#   headers       every header by itself; ibvxx.hpp has the public ones
#   compile-fail  what must not compile
#   downstream    the projects of test/downstream: ibvxx as a Meson subproject, and installed for Meson, pkg-config, CMake
#                 and plain compilers
#   docs          every C++ block of README.md and docs/*.md compiles, and those that are whole programs run; the tables
#                 of verbs and of findings; and, where there is doxygen, the reference
#   quickstart    docs/quickstart.sh
#   conformance   the simulated device against the kept transcript of Soft-RoCE; with --require-kernel, that against the
#                 kernel first
#   tidy          clang-tidy with the checks of .clang-tidy, on everything; only where it is named: it takes ten minutes
#   bench         what the simulation promises of its speed
#   kernel        a real kernel with Soft-RoCE in a virtual machine; skipped where that cannot be had, which
#                 --require-kernel makes a failure
#
# What is built goes to $IBVXX_BUILD, or build-test in the source tree, and is used again by the next run.

# shellcheck disable=SC2086 # many lists of words
set -u
tree=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
lib=$tree/test/lib
build=${IBVXX_BUILD:-$tree/build-test}
# shellcheck source=test/lib/packages.sh
. "$lib/packages.sh"
# shellcheck source=test/lib/configure.sh
. "$lib/configure.sh"

only='' require_kernel=false
while [ $# -gt 0 ]; do
    case $1 in
    --require-kernel) require_kernel=true ;;
    --only)
        only="$only ${2:?--only needs a tier}"
        shift
        ;;
    *)
        sed -n '2,/^$/s/^#\{0,1\} \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    esac
    shift
done
for tier in $only; do
    case $tier in
    plain | asan | tsan | no-unity | buildtypes | tidy | headers | compile-fail | downstream | docs | quickstart | conformance | bench | kernel) ;;
    *)
        echo "run.sh: there is no tier '$tier'" >&2
        exit 2
        ;;
    esac
done

wanted() { # TIER
    case " ${only:-$1} " in *" $1 "*) ;; *) return 1 ;; esac
}

# -O0: compiling is what takes the time. A line table is all that a sanitizer's report needs.
common='-Dwerror=true -Dtests=enabled -Doptimization=0 -Ddebug=false'
plain="$common -Dexamples=enabled -Dkernel_tests=enabled"
sanitizers="$common -Dexamples=disabled -Db_lundef=false"
# The option takes the place of what Meson would read from the environment.
lines="-Dcpp_args=-g1 -fno-omit-frame-pointer -fno-sanitize-recover=all ${CXXFLAGS-}"

plain() { sh "$lib/suites.sh" "$build/plain" $plain; }

asan() {
    ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:strict_string_checks=1} \
        UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1} \
        sh "$lib/suites.sh" "$build/asan" $sanitizers -Db_sanitize=address,undefined "$lines"
}

tsan() {
    TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1} \
        sh "$lib/suites.sh" "$build/tsan" $sanitizers -Db_sanitize=thread "$lines"
}

# A suite of the plain build that "meson test" alone leaves out.
suite() { # SUITE
    [ -f "$build/plain/build.ninja" ] || configure "$build/plain" "$tree" $plain >"$build/build.out" 2>&1
    log=$build/plain/meson-logs/testlog.txt
    rm -f "$log"
    meson test -C "$build/plain" --suite "$1" >"$build/$1.out" 2>&1
    [ -f "$log" ] || cat "$build/$1.out"
    awk -f "$lib/tally.awk" "$log"
}

headers() { suite headers; }

compile_fail() { suite compile-fail; }

docs() { suite docs; }

no_unity() {
    sh "$lib/builds.sh" "$build/no-unity" $common -Dunity_targets=false -Dexamples=disabled
}

buildtypes() {
    # The first is what somebody types who builds ibvxx from its sources.
    {
        sh "$lib/builds.sh" "$build/types/release" --buildtype=release
        compilers=${CXX:-g++}
        [ "$compilers" != g++ ] || ! command -v clang++ >/dev/null 2>&1 || compilers='g++ clang++'
        for compiler in $compilers; do
            for type in release debug debugoptimized minsize; do
                CXX=$compiler sh "$lib/builds.sh" "$build/types/$compiler-$type" --buildtype=$type -Dwerror=true \
                    -Dtests=disabled -Dexamples=enabled
            done
        done
    } >"$build/types.out"
    grep -v ' passed, ' "$build/types.out"
    awk '/ passed, / { passed += $1; failed += $3 } END { print passed + 0 " passed, " failed + 0 " failed" }' "$build/types.out"
}

tidy() {
    install_packages clang-tidy
    sh "$lib/tidy.sh" "$build/tidy"
}

downstream() {
    install_packages cmake make
    sh "$lib/downstream.sh" "$build/downstream" "$build/plain"
}

quickstart() {
    # What the plain tier built is built already; without it the script builds for itself, as for a newcomer.
    where=$build/quickstart
    [ ! -f "$build/plain/build.ninja" ] || where=$build/plain
    if sh "$tree/docs/quickstart.sh" "$where" >"$build/quickstart.out" 2>&1 &&
        tail -n 1 "$build/quickstart.out" | grep -Eq '^[1-9][0-9]* steps failed, [1-9][0-9]* objects released, 0 left$' &&
        grep -q '^A context on ' "$build/quickstart.out" &&
        grep -q '^  arrived  *"written", "sent"$' "$build/quickstart.out"; then
        echo "1 passed, 0 failed"
    else
        cat "$build/quickstart.out"
        echo "0 passed, 1 failed"
    fi
}

build_plain() {
    ninja -C "$build/plain" >"$build/build.out" 2>&1 ||
        sh "$lib/suites.sh" "$build/plain" $plain >"$build/build.out" 2>&1
}

kernel() {
    # Any that cannot be had are missed by fetch.sh, which says so.
    install_packages qemu-system-x86 busybox-static cpio kmod iproute2 ibverbs-providers ibverbs-utils
    wanted plain || build_plain
    set -- --with "$build/plain/docs/examples/rc_pingpong" --with "$(command -v ibv_rc_pingpong)" \
        "$tree/test/kernel/pingpong.sh" "$build/plain/docs/examples/quickstart"
    set -- "$@" "$build/plain/test/kernel-tests" "$build/plain/test/kernel-forwarding-tests"
    status=0
    sh "$tree/test/kernel/run.sh" "$@" >"$build/kernel.out" 2>"$build/kernel.err" || status=$?
    awk -f "$lib/tally.awk" "$build/kernel.out" >"$build/kernel.tally"
    if [ $status -eq 77 ]; then
        cat "$build/kernel.err"
        if $require_kernel; then echo "0 passed, 1 failed"; else echo "0 passed, 0 failed, 1 skipped"; fi
    elif [ $status -ne 0 ] && grep -q ', 0 failed' "$build/kernel.tally"; then
        # The machine itself came to grief.
        cat "$build/kernel.out" "$build/kernel.err"
        echo "0 passed, 1 failed"
    elif ! grep -q '^A context on a real device' "$build/kernel.out"; then
        cat "$build/kernel.out"
        echo "the quickstart did not use the Soft-RoCE device"
        echo "0 passed, 1 failed"
    else
        cat "$build/kernel.tally"
    fi
}

conformance() {
    wanted plain || build_plain
    programs=$build/plain/test/conformance
    # The kept transcript is of Linux 6.1; a later kernel may answer otherwise, and booting one to ask takes a minute.
    asked=''
    if $require_kernel && cached=$(sh "$tree/test/kernel/fetch.sh" 2>/dev/null) &&
        grep -q 'linux-image-6\.1\.' "$cached/package"; then
        asked=$programs/conformance-kernel
        echo "   compared with the kernel's own answers, now"
    else
        echo "   compared with the kept answers of Linux 6.1; --require-kernel asks the kernel again"
    fi
    status=0
    sh "$tree/test/conformance/run.sh" "$programs/conformance-simulated" $asked >"$build/conformance.out" 2>&1 || status=$?
    sed 's/^/   /' "$build/conformance.out"
    if [ $status -eq 0 ]; then
        echo "$(sed -n 's/^\([0-9]*\) probes.*/\1/p' "$build/conformance.out") passed, 0 failed"
    else
        echo "0 passed, 1 failed"
    fi
}

bench() { sh "$lib/bench.sh" "$build/bench"; }

passed=0 failed=0 skipped=0
tier() { # NAME HEADLINE
    wanted "$1" || return 0
    echo
    echo "== $1: $2"
    began=$(date +%s)
    "$(echo "$1" | tr - _)" >"$build/tier.out" 2>&1
    # All but the last line is about failures, or about packages that were installed.
    sed '$d' "$build/tier.out"
    last=$(tail -n 1 "$build/tier.out")
    if echo "$last" | grep -Eq '^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$'; then
        echo "   $last ($(($(date +%s) - began)) s)"
    else
        echo "$last"
        last='0 passed, 1 failed'
    fi
    passed=$((passed + ${last%% passed*}))
    last=${last#*passed, }
    failed=$((failed + ${last%% failed*}))
    case $last in *skipped)
        last=${last#*failed, }
        skipped=$((skipped + ${last%% skipped}))
        ;;
    esac
}

install_packages $build_packages catch2 || exit 1
mkdir -p "$build" || exit 1

tier plain "the test programs"
tier asan "the test programs under AddressSanitizer and UndefinedBehaviorSanitizer"
tier tsan "the tests that start threads, under ThreadSanitizer"
tier no-unity "every file compiled by itself"
tier buildtypes "what packagers build"
tier headers "every header by itself, in every mode"
tier compile-fail "what must not compile"
tier downstream "other people's builds"
tier docs "the C++ blocks of the documentation"
tier quickstart "docs/quickstart.sh"
tier conformance "the simulated device against Soft-RoCE"
tier bench "the speed of the simulated data path"
[ -z "$only" ] || tier tidy "clang-tidy"
tier kernel "Soft-RoCE on a real kernel"

echo
[ $skipped -eq 0 ] || set -- ", $skipped skipped"
echo "$passed passed, $failed failed${1-}"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
