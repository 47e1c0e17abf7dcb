#!/usr/bin/env python3
"""Checks which headers ibvxx.hpp offers, and that users never include a private one.

    python3 test/lib/public_headers.py [TREE]

TREE is the top of the source tree; default: the one this file is in. Checks:
  - ibvxx.hpp includes every header in include/ibvxx/ exactly once, except those in NOT_INCLUDED;
  - ibvxx.hpp includes no header in include/ibvxx/detail/, and none that does not exist;
  - README.md, docs/*.md and docs/examples/ include nothing in ibvxx/detail/.
Each violation is printed as `file:line: message`. The last line is `N passed, N failed`, where each
header and each file that was read counts once. The exit code is 1 if anything failed.
"""
import collections
import pathlib
import re
import sys

# Why ibvxx.hpp does not include them: fmt is another library; std::format and exceptions are opt-in;
# the shim is for tests.
NOT_INCLUDED = {"ibvxx.hpp", "format.hpp", "std_format.hpp", "or_throw.hpp", "shim.hpp"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"](ibvxx/[^>"]+)[>"]')
SOURCES = {".hpp", ".cpp", ".h", ".c", ".md", ".build", ".txt"}


def includes(path):
    """The (line, header) pairs of a file's includes of ibvxx."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        found = INCLUDE.match(line)
        if found:
            yield number, found.group(1)


def check_all_header(tree):
    """Yields the (file, line, message) of each check of ibvxx.hpp; no message: it passed."""
    directory = tree / "include" / "ibvxx"
    every = directory / "ibvxx.hpp"
    lines = collections.defaultdict(list)
    for number, header in includes(every):
        lines[header.removeprefix("ibvxx/")].append(number)
    present = {path.name for path in directory.glob("*.hpp")}
    last = len(every.read_text(encoding="utf-8").splitlines())
    for name in sorted(present - NOT_INCLUDED):
        where = lines.pop(name, [])
        if not where:
            yield every, last, f"does not include the public header ibvxx/{name}"
        elif len(where) > 1:
            yield every, where[1], f"includes ibvxx/{name} twice (first in line {where[0]})"
        else:
            yield every, where[0], None
    for name, where in lines.items():
        if name.startswith("detail/"):
            reason = "is private"
        elif name in NOT_INCLUDED and name in present:
            reason = "is to be included by itself (NOT_INCLUDED in public_headers.py)"
        elif (directory / name).exists():
            reason = "is not directly in include/ibvxx/"
        else:
            reason = "does not exist"
        yield every, where[0], f"includes ibvxx/{name}, which {reason}"
    for name in sorted(NOT_INCLUDED - present):
        yield every, 1, f"the exception ibvxx/{name} (NOT_INCLUDED in public_headers.py) does not exist"


def check_users(tree):
    """Yields the same for each file that shows users what to include."""
    shown = [tree / "README.md", *sorted((tree / "docs").glob("*.md"))]
    shown += sorted(path for path in (tree / "docs" / "examples").rglob("*") if path.suffix in SOURCES)
    for path in shown:
        private = [(number, header) for number, header in includes(path)
                   if header.startswith("ibvxx/detail/")]
        for number, header in private:
            yield path, number, f"includes {header}, which is private"
        if not private:
            yield path, 1, None


def main(arguments):
    tree = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parents[2]
    passed = failed = 0
    for path, line, message in (*check_all_header(tree), *check_users(tree)):
        if message is None:
            passed += 1
        else:
            failed += 1
            print(f"{path.relative_to(tree)}:{line}: {message}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
