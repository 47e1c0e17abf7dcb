#!/bin/sh
# usage: docs.sh LOG_DIR
#
# Compiles every C++ block of README.md and docs/*.md. A block with an #include stands as it is; any other is put into
# a function, behind snippet.hpp, which declares what such blocks speak of. Prints what failed, then "N passed, N failed".
set -u
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
tree=${here%/*/*}
logs=$1
rm -rf "$logs"
mkdir -p "$logs"

cd "$tree" || exit
for page in README.md docs/*.md; do
    [ -f "$page" ] || continue
    awk -v prefix="$logs/$(basename "$page" .md)" -v page="$page" -v snippet="$here/snippet.hpp" '
        function flush_block() {
            file = prefix "-" first ".cpp"
            if (block ~ /#include/)
                printf "#line %d \"%s\"\n%s", first, page, block > file
            else
                printf "#include \"%s\"\nresult<void> snippet() {\n#line %d \"%s\"\n%sreturn {};\n}\n", \
                    snippet, first, page, block > file
            close(file)
        }
        /^```cpp$/ { inside = 1; first = NR + 1; block = ""; next }
        /^```$/ && inside { inside = 0; flush_block(); next }
        inside { block = block $0 "\n" }' "$page"
done

passed=0 failed=0
for block in "$logs"/*.cpp; do
    [ -f "$block" ] || continue
    # shellcheck disable=SC2046 # flags
    if ${CXX:-g++} -std=c++20 -fsyntax-only -Wall -Wextra -Werror -Wno-unused-variable -Wno-unused-but-set-variable \
        -I include $(pkg-config --cflags libibverbs fmt) "$block" >"$block.log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        head -n 15 "$block.log"
    fi
done
echo "$passed passed, $failed failed"
