#!/bin/sh
# usage: prints.sh PATTERN PROGRAM [ARGUMENT...]
#
# Runs the program, shows what it prints, and fails unless it succeeds and one of its lines is, from end to end, as the
# extended regular expression says.
set -u
pattern=$1
shift
output=$("$@" 2>&1)
status=$?
printf '%s\n' "$output"
[ $status -eq 0 ] || exit $status
printf '%s\n' "$output" | grep -Eqx -e "$pattern" || {
    echo "prints.sh: no line is: $pattern"
    exit 1
}
