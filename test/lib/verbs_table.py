#!/usr/bin/env python3
"""usage: verbs_table.py COMPILER VERBS_H

Holds docs/verbs.md against verbs.h and against ibvxx: every function that the header declares has a row, and every
counterpart of a function that this header has exists, given the macro that the row names. Prints what is wrong, then "N
passed, N failed", one test a row.
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
    rows = re.findall(r"^\| `(\w+)` \| (?:`(\w+)`|\(none\)) \|(.*)", page, flags=re.M)
    functions = declared_functions(Path(header_path).read_text())
    failures = [f"docs/verbs.md has no row for {function}"
                for function in sorted(functions - {function for function, _, _ in rows})]
    names, macros = set(), set()
    for function, counterpart, remarks in rows:
        if function in functions and counterpart:
            names.add(counterpart)
            macros |= set(re.findall(r"`(IBVXX_HAVE_\w+)`", remarks))
    source = "#include <ibvxx/ibvxx.hpp>\n" + "".join(f"using ibvxx::{name};\n" for name in sorted(names))
    flags = subprocess.run(["pkg-config", "--cflags", "libibverbs"], capture_output=True, text=True).stdout.split()
    compiled = subprocess.run(
        [*compiler.split(), "-std=c++20", "-fsyntax-only", "-I", str(TREE / "include"), *flags,
         *(f"-D{macro}=1" for macro in sorted(macros)), "-x", "c++", "-"],
        input=source, capture_output=True, text=True)
    if compiled.returncode != 0:
        failures += [line for line in compiled.stderr.splitlines() if "error:" in line]
    for failure in failures:
        print(failure)
    print(f"{len(rows) - min(len(failures), len(rows))} passed, {len(failures)} failed")


if __name__ == "__main__":
    main()
