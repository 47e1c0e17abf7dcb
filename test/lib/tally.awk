# Reads logs of test programs, in the form that Meson writes them:
#
#   test:         NAME
#   result:       exit status 0          (may also come after the output)
#   ...what the program printed...
#
# Prints the output of each program that failed, then "N passed, N failed[, N skipped]". A Catch2 program, of either
# generation, counts for as many tests as its summary has test cases, a script of test/lib for what its last line says, any
# other one for one. Exit status 77: skipped.

function number(text) {
    return match(text, /[0-9]+/) ? substr(text, RSTART, RLENGTH) + 0 : 0
}

function finish(    bad) {
    if (name == "") return
    bad = f
    if (result == "exit status 77" && p == 0 && f == 0) s = s ? s : 1
    else if (result != "exit status 0" && f == 0) bad = 1
    else if (result == "exit status 0" && (f != 0 || empty)) bad = f ? f : 1
    else if (!summary) p = 1
    passed += p
    failed += bad
    skipped += s
    if (bad) {
        printf "---- %s: %s ----\n%s", name, result == "" ? "did not end" : result, output
    }
    name = ""
}

BEGIN { passed = failed = skipped = 0 }
/^test: +/ {
    finish()
    name = $0
    sub(/^test: +/, "", name)
    result = output = ""
    p = f = s = summary = empty = 0
    next
}
/^result: +/ {
    result = $0
    sub(/^result: +/, "", result)
    next
}
# Catch2: "All tests passed (9 assertions in 2 test cases)", or "test cases: 3 | 1 passed | 1 failed | 1 skipped".
/^All tests passed \(/ {
    p = $0
    sub(/.* in /, "", p)
    p = number(p)
    summary = 1
}
/^test cases: / {
    p = f = s = 0
    summary = 1
    fields = split($0, field, "|")
    for (i = 2; i <= fields; i++) {
        if (field[i] ~ /passed|as expected/) p += number(field[i])
        else if (field[i] ~ /failed/) f += number(field[i])
        else if (field[i] ~ /skipped/) s += number(field[i])
    }
}
# The scripts of test/lib.
/^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$/ {
    p = $1
    f = $3
    s = $5 + 0
    summary = 1
}
/^No tests ran/ { empty = 1 }
# Meson's separators and its own summary do not belong to a program's output.
/^=+( +[0-9]+\/[0-9]+ +=+)?$/ || /^(Ok|Expected Fail|Fail|Unexpected Pass|Skipped|Timeout): +[0-9]/ { next }
{ output = output $0 "\n" }
END {
    finish()
    printf "%d passed, %d failed%s\n", passed, failed, skipped ? ", " skipped " skipped" : ""
}
