#!/usr/bin/env python3
"""usage: verbs_table.py COMPILER VERBS_H

Holds docs/verbs.md against verbs.h and against ibvxx: every function that the header declares has a row, every row but
those of functions that this header does not have yet names one, and every counterpart exists. Prints what is wrong, then
"N passed, N failed", one test a row.
"""

import re
import subprocess
import sys
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]


def declared_functions(header):
    """The functions declared or defined at file scope. Good for verbs.h, not for C in general."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    text = re.sub(r"\\\n", " ", text)
    text = "\n".join(line for line in text.split("\n") if not line.lstrip().startswith("#"))
    text = text.replace('extern "C" {', "")
    text = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", text)
    outside, depth = [], 0
    for character in text:
        if character == "{":
            depth += 1
        elif character == "}":
            depth = max(0, depth - 1)
        elif depth == 0:
            outside.append(character)
    return set(re.findall(r"\b(\w*ibv_\w+|verbs_get_ctx)\s*\(", "".join(outside)))


def main():
    compiler, header_path = sys.argv[1:3]
    page = (TREE / "docs/verbs.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (?:`(\w+)`|\(none\)) \|", page, flags=re.M))
    functions = declared_functions(Path(header_path).read_text())
    failures = []
    newer = page.split("Functions that came after", 1)[1]
    known_newer = set(re.findall(r"`(?:ibv_)?(\w+)`", newer))
    for function in sorted(functions - rows.keys()):
        # A newer header has more; those that ibvxx wraps where it finds them are told of below the table.
        if function.removeprefix("ibv_") not in known_newer and "comp_cntr" not in function and "buf" not in function \
                and "dmah" not in function:
            failures.append(f"docs/verbs.md has no row for {function}")
    source = "#include <ibvxx/ibvxx.hpp>\n" + "".join(
        f"using ibvxx::{name};\n" for name in sorted(set(rows.values()) - {""}))
    flags = subprocess.run(["pkg-config", "--cflags", "libibverbs"], capture_output=True, text=True).stdout.split()
    compiled = subprocess.run(
        [*compiler.split(), "-std=c++20", "-fsyntax-only", "-I", str(TREE / "include"), *flags, "-x", "c++", "-"],
        input=source, capture_output=True, text=True)
    if compiled.returncode != 0:
        failures += [line for line in compiled.stderr.splitlines() if "error:" in line]
    for failure in failures:
        print(failure)
    print(f"{len(rows) - min(len(failures), len(rows))} passed, {len(failures)} failed")


if __name__ == "__main__":
    main()
