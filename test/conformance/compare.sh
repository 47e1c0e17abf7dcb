#!/bin/sh
# usage: compare.sh KERNEL SIMULATED DIFFERENCES
#
# Compares two transcripts and prints "N probes, M documented differences". Fails, after a line for each, where a probe
# differs that DIFFERENCES does not document, where a documented one does not differ any more or differs otherwise, and
# where a probe is missing on one side.
#
# A documented difference is four lines, of which the last three are indented, and a blank line:
#
#   group/probe
#     kernel: what the kernel's transcript says
#     simulated: what the simulation's says
#     reason: why
#
# Lines that begin with "#" are comments, in all three files.
set -eu
LC_ALL=C
export LC_ALL

[ $# -eq 3 ] || {
    echo "usage: compare.sh KERNEL SIMULATED DIFFERENCES" >&2
    exit 2
}
for file; do
    [ -r "$file" ] || {
        echo "compare.sh: cannot read $file" >&2
        exit 2
    }
done

# shellcheck disable=SC2016
exec awk '
    function complain(text) { print text; failures++ }
    function value(line) { sub(/^[^:]*: /, "", line); return line }

    FNR == 1 { file++ }
    /^#/ || /^$/ { next }

    file == 1 || file == 2 {
        if ($0 == "end of transcript") { ended[file] = 1; next }
        if ($0 ~ /^broken: /) { complain((file == 1 ? "kernel" : "simulated") " is " $0); next }
        split($0, part, ": ")
        name = part[1]
        if (file == 1) { order[++probes] = name; kernel[name] = value($0) }
        else { simulated[name] = value($0); if (!(name in kernel)) complain(name ": not in the kernel'\''s transcript") }
        next
    }
    /^[^ ]/ { name = $0; listed[++documented] = name; if (name in reason) complain(name ": documented twice"); reason[name] = ""; next }
    /^ *kernel: / { expected_kernel[name] = value($0); next }
    /^ *simulated: / { expected_simulated[name] = value($0); next }
    /^ *reason: ./ { reason[name] = value($0); next }
    { complain("differences: cannot read \"" $0 "\"") }

    END {
        if (!ended[1]) complain("the kernel'\''s transcript has no end")
        if (!ended[2]) complain("the simulation'\''s transcript has no end")
        for (i = 1; i <= probes; i++) {
            name = order[i]
            if (!(name in simulated)) { complain(name ": missing in the simulation'\''s transcript"); continue }
            same = kernel[name] == simulated[name]
            if (name in reason) {
                if (same) complain(name ": documented as a difference, but both say \"" kernel[name] "\"")
                else if (kernel[name] != expected_kernel[name] || simulated[name] != expected_simulated[name])
                    complain(name ": differs otherwise than documented\n  kernel: " kernel[name] "\n  simulated: " simulated[name])
                else differing++
            } else if (!same)
                complain(name "\n  kernel: " kernel[name] "\n  simulated: " simulated[name])
        }
        for (i = 1; i <= documented; i++) {
            name = listed[i]
            if (!(name in kernel)) complain(name ": documented, but no probe has this name")
            if (reason[name] == "") complain(name ": documented without a reason")
        }
        printf "%d probes, %d documented differences\n", probes, differing
        if (failures) { printf "%d undocumented\n", failures; exit 1 }
    }
' "$1" "$2" "$3"
