#!/bin/sh
# usage: compile_fail.sh LOG_DIR
#
# Checks that what test/compile_fail/*.cpp show does not compile, for the reason that the file's second line gives as a
# pattern, and that the corrected version (-DRIGHT) does. Prints what failed, then "N passed, N failed".
set -u
warnings=${IBVXX_WARNINGS:?has the warnings: run meson test --suite compile-fail}
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
tree=${here%/*/*}
logs=$1
rm -rf "$logs"
mkdir -p "$logs"
flags="-std=c++20 $warnings -Werror -fsyntax-only -I $tree/include $(
    pkg-config --cflags libibverbs | sed 's/-I/-isystem /g'
)"
export flags logs

# shellcheck disable=SC2016 # it is for the shells that xargs starts
check='
    file=$1 log=$logs/${1##*/}.log
    says=$(sed -n "2s|^// says: ||p" "$file")
    if ! ${CXX:-g++} $flags -DRIGHT "$file" >"$log" 2>&1; then
        wrong="the corrected version does not compile"
    elif ${CXX:-g++} $flags "$file" >"$log" 2>&1; then
        wrong="it compiles"
    elif ! grep error "$log" | grep -Eq "${says:-no reason given}"; then
        wrong="it does not compile, but not because of: $says"
    else
        rm "$log"
        echo passed
        exit
    fi
    echo "failed: ${1##*/}: $wrong"'

ls "$tree"/test/compile_fail/*.cpp >"$logs/jobs"
xargs -d '\n' -n 1 -P "$(nproc)" sh -c "$check" check <"$logs/jobs" >"$logs/results"
for log in "$logs"/*.log; do
    [ ! -f "$log" ] || head -n 15 "$log"
done
grep '^failed' "$logs/results"
passed=$(grep -c '^passed' "$logs/results")
failed=$(($(wc -l <"$logs/jobs") - passed))
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
