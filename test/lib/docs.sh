#!/bin/sh
# usage: docs.sh LOG_DIR [SHIM]
#
# Compiles every C++ block of README.md and docs/*.md. A block with an #include stands as it is; the others of a page are
# put into functions, behind snippet.hpp, which declares what such blocks speak of. They pass or fail together. With SHIM,
# the archive, those that stand as they are are also run, on the simulated device, and must end well. Prints what failed,
# then "N passed, N failed", one test a block.
set -u
warnings=${IBVXX_PAGE_WARNINGS:?has the warnings: run meson test --suite docs}
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
tree=${here%/*/*}
logs=$1
shim=${2-}
# With another standard library than the compiler's own nothing is run: the system's fmt does not fit it.
case "${CXX-} ${CXXFLAGS-}" in *-stdlib=*) shim='' ;; esac
rm -rf "$logs"
mkdir -p "$logs"

cd "$tree" || exit
for page in README.md docs/*.md; do
    [ -f "$page" ] || continue
    awk -v prefix="$logs/$(basename "$page" .md)" -v page="$page" -v snippet="$here/snippet.hpp" '
        function end_block() {
            if (block ~ /#include/) {
                file = prefix "-" first ".cpp"
                printf "#line %d \"%s\"\n%s", first, page, block > file
                close(file)
                print file, 1
            } else {
                functions = functions sprintf("result<void> snippet_%d() {\n#line %d \"%s\"\n%sreturn {};\n}\n", \
                    first, first, page, block)
                ++count
            }
        }
        /^```cpp$/ { inside = 1; first = NR + 1; block = ""; next }
        /^```$/ && inside { inside = 0; end_block(); next }
        inside { block = block $0 "\n" }
        END {
            if (!count) exit
            file = prefix ".cpp"
            printf "#include \"%s\"\n%s", snippet, functions > file
            print file, count
        }' "$page"
done >"$logs/blocks"

compile() { # ARGUMENT...
    # shellcheck disable=SC2046,SC2086 # flags
    ${CXX:-g++} -std=c++20 $warnings -Werror -I include $(pkg-config --cflags libibverbs fmt) "$@"
}

check() { # FILE
    if [ -z "$shim" ] || ! grep -q '^int main' "$1"; then
        compile -fsyntax-only "$1"
        return
    fi
    # shellcheck disable=SC2046 # flags
    compile -O0 -o "$1.out" "$1" -Wl,--whole-archive "$shim" -Wl,--no-whole-archive \
        $(pkg-config --libs libibverbs fmt) || return
    IBVXX_SHIM=simulate "$1.out" || {
        echo "$1 ended with $?"
        return 1
    }
}

passed=0 failed=0
while read -r file count; do
    if check "$file" >"$file.log" 2>&1 </dev/null; then
        passed=$((passed + count))
    else
        failed=$((failed + count))
        head -n 15 "$file.log"
    fi
done <"$logs/blocks"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
