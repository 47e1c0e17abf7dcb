#!/bin/sh
# usage: side_by_side.sh PLAIN SHIM
#
# Runs each part of two builds of the same program: both must print the same and end with the same status.
set -u
plain=$1 shim=$2 passed=0 failed=0
unset IBVXX_SHIM
parts=$("$plain" | sed '/^destructor function$/d')
while read -r part; do
    expected=$("$plain" "$part" 2>&1; echo "status $?")
    seen=$("$shim" "$part" 2>&1; echo "status $?")
    if [ "$expected" = "$seen" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf '%s\n--- without the shim:\n%s\n--- with it:\n%s\n' "$part" "$expected" "$seen"
    fi
done <<END
$parts
END
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
