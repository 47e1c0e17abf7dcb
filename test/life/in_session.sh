#!/bin/sh
# usage: in_session.sh PROGRAM
#
# Runs each part of in_session.cpp: its status, and a text that its output must have.
set -u
program=$1 passed=0 failed=0

# part, IBVXX_SHIM, status, text (empty: no output)
part() {
    output=$(IBVXX_SHIM=$2 "$program" "$1" 2>&1)
    status=$?
    case $4,$output in
    ,*) [ -z "$output" ] ;;
    *) printf '%s' "$output" | grep -qF -- "$4" ;;
    esac
    if [ $? = 0 ] && [ "$status" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf '%s: status %s, not %s, with "%s":\n%s\n' "$1" "$status" "$3" "$4" "$output"
    fi
}

part static-context simulate 0 ''
part destructor-function simulate 0 ''
part leak simulate 86 'leak: MR#1 of sim0, made by ibv_reg_mr'
part leak simulate 86 'the process exits with 3 finding(s): status 86'
part children simulate 0 '40 children ended'
part exit off 86 'leak: context#1 of sim0'
part clean-exit off 5 ''
part child-exits off 0 'child 7, 0 findings'
part child-exits off 0 'ibv_close_device on context#1 of sim0, which the parent process made before the fork: refused'
part late-use off 0 'ibv_close_device on context#1 of sim0 after its session ended: refused'
part new-handler off 0 'allocated after 1, null'
part cancelled off 0 '111'
part destroys off 0 '-1
0 findings'
part fcntl off 0 'allocated, not locked'
part action off 0 "shim: there is no simulated device 'none'"
part action off 0 'cannot throw: the exception of a rule'\''s action is lost: lost'
part poller off 0 'in turn'
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
