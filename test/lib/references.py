#!/usr/bin/env python3
"""usage: references.py [TREE]

What the text of the repository refers to must exist. In every source, script, build file and page that git tracks (or, without
git, that is there):

  paths     docs/..., include/ibvxx/..., src/..., test/..., in prose, comments and messages. A path may be a folder, or what
            the folder's meson.build makes, and may hold *, <family> or {hpp,cpp}: then something must match.
  names     NAME.hpp, .cpp, .sh, .py, .awk, .md without a folder: a file of that name is somewhere in the tree
  gone      notes that were never part of the repository
  rooms     in docs/internals.md and docs/contributing.md: `core/call.cpp` is a file of src/shim, and `call::may_destroy` or
            `find_leaks` is a word of some file in src, include or test
  facts     "docs/facts/PAGE.md L3.2" names a fact that PAGE has
  cases     a "case 22" of test/cases/ is a row of docs/cases.md, and each row names files that say "case 22"
  links     [text](page#heading) in README.md and docs/: the page and the heading exist

Prints FILE:LINE and what is wrong, then "N passed, N failed": one test a reference.
"""

import re
import subprocess
import sys
from pathlib import Path

TREE = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]).resolve()
SUFFIXES = {".md", ".cpp", ".hpp", ".c", ".h", ".py", ".sh", ".awk", ".txt", ".build", ".in", ".cmake", ".yml"}
NAMES = {"Doxyfile", "Makefile", "init", "run", ".clang-tidy", ".editorconfig"}
# Those that name files of trees that they make themselves.
OF_OTHER_TREES = {"test/lib/references.py", "test/architecture/includes_test.py"}
# Written by a program, not by a person: a transcript of answers.
GENERATED = re.compile(r"^(test/conformance/soft-roce-.*\.txt|subprojects/.*)$")
# What is part of a longer path or of an address is no path from the top of the tree.
PATH = re.compile(r"(?<![\w/.$<\"}-])((?:docs|include/ibvxx|src|test)/[\w./*{},<>-]*[\w}*>/])")
NAME = re.compile(r"(?<![\w/.$<>}*%-])([a-z][\w-]*\.(?:hpp|cpp|sh|py|awk|md))\b(?!\.)|\b(README\.md)\b")
GONE = re.compile(r"\b(verbs-facts|kernel-device|device-facts|shim-facts|cm-facts|reach-facts)\b")
# Files that scripts write while they run, and one of compiler-rt.
ELSEWHERE = {"main.cpp", "use.cpp", "tsan_new_delete.cpp"}
FACT = re.compile(r"(?:docs/)?(facts/[\w-]+\.md),? ([A-Z]\d+(?:\.\d+)?)")
ROOM = re.compile(r"`((?:core|device|intercept|forward|system|session)/[\w./*{},<>-]*)`")
WORD = re.compile(r"`((?:[a-z]\w*::)*([a-z]\w*_\w+|[a-z]\w*(?=\(\)))|(?:[a-z]\w*::)+([a-z]\w*))(?:\(\))?`")
ABOUT_SOURCES = {"docs/internals.md", "docs/contributing.md"}
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def tracked():
    asked = subprocess.run(["git", "-C", TREE, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                           capture_output=True, check=False)
    if asked.returncode == 0:
        names = [name.decode() for name in asked.stdout.split(b"\0") if name]
    else:
        names = [str(path.relative_to(TREE)) for path in TREE.rglob("*") if path.is_file()]
        names = [name for name in names if not re.match(r"(build[^/]*|\.git)/", name)]
    return sorted(name for name in names if (TREE / name).is_file())


def slug(heading):
    """The name that GitHub gives a heading."""
    text = re.sub(r"`|\*|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def prose(lines):
    """(number, line) of a page outside of its blocks of code."""
    code = False
    for number, line in enumerate(lines, 1):
        if line.startswith("```"):
            code = not code
        elif not code:
            yield number, line


def anchors(page):
    found, seen = set(), {}
    for _, line in prose(page.read_text().splitlines()):
        found |= set(re.findall(r'<a (?:id|name)="([^"]+)"', line))
        heading = re.match(r"#+ +(.*)", line)
        if heading:
            name = slug(heading.group(1))
            found.add(f"{name}-{seen[name]}" if name in seen else name)
            seen[name] = seen.get(name, 0) + 1
    return found


def alternatives(path):
    """a.{hpp,cpp} is two paths; <family> and * stand for any name."""
    braces = re.search(r"\{([^{}]*)\}", path)
    if braces:
        for one in braces.group(1).split(","):
            yield from alternatives(path[:braces.start()] + one + path[braces.end():])
    else:
        yield re.sub(r"<\w+>", "*", path)


class Checker:
    def __init__(self):
        self.files = tracked()
        self.names = {file.rsplit("/", 1)[-1] for file in self.files}
        self.passed = 0
        self.wrong = []
        self.facts = {}
        self.words = set()

    def check(self, good, file, line, message):
        if good:
            self.passed += 1
        else:
            self.wrong.append((file, line, message))

    def exists(self, path, beside):
        for one in alternatives(path.rstrip("/")):
            if "*" in one or "?" in one:
                if not any(TREE.glob(one)):
                    return False
            elif not any((base / one).exists() or self.is_made(base / one) for base in (TREE, beside)):
                return False
        return True

    @staticmethod
    def is_made(path):
        """A program or library of the folder's meson.build."""
        name = re.sub(r"^lib(.*)\.(a|so)$", r"\1", path.name)
        build = path.parent / "meson.build"
        return build.is_file() and f"'{name}'" in build.read_text()

    def facts_of(self, page):
        if page not in self.facts:
            path = TREE / "docs" / page
            text = path.read_text() if path.is_file() else ""
            self.facts[page] = set(re.findall(r"^- \*\*([A-Z]\d+\.\d+)\*\*", text, re.M))
            self.facts[page] |= set(re.findall(r"^## ([A-Z]\d+) ", text, re.M))
        return self.facts[page]

    def paths(self, file, text):
        beside = (TREE / file).parent
        lines = text.splitlines()
        # Code on a page may name files of the reader's.
        own = dict(prose(lines)) if file.endswith(".md") else dict(enumerate(lines, 1))
        for number, line in enumerate(lines, 1):
            for gone in GONE.findall(line):
                self.check(False, file, number, f"{gone} is no page of the repository: docs/facts/ has what it said")
            # Shell variables and build directories, such as $build/test/..., are not matched.
            for match in PATH.finditer(line):
                path = match.group(1).rstrip(".,")
                self.check(self.exists(path, beside), file, number, f"there is no {path}")
            for names in NAME.findall(own.get(number, "")):
                name = names[0] or names[1]
                self.check(name in self.names or name in ELSEWHERE, file, number, f"there is no file {name}")
            for page, fact in FACT.findall(line):
                self.check(fact in self.facts_of(page), file, number, f"docs/{page} has no fact {fact}")

    def links(self, file, text):
        beside = (TREE / file).parent
        for number, line in prose(text.splitlines()):
            for target in LINK.findall(line):
                if re.match(r"[a-z]+:", target):
                    continue
                name, _, anchor = target.partition("#")
                page = (beside / name) if name else TREE / file
                if not page.exists():
                    self.check(False, file, number, f"the link leads to {target}, which does not exist")
                elif anchor:
                    self.check(anchor in anchors(page), file, number, f"{page.name} has no heading #{anchor}")
                else:
                    self.check(True, file, number, "")

    def rooms(self, file, text):
        if not self.words:
            for name in self.files:
                if re.match(r"(src|include|test)/.*\.(cpp|hpp)$", name) or name == "meson_options.txt":
                    self.words |= set(re.findall(r"\w+", (TREE / name).read_text()))
        for number, line in enumerate(text.splitlines(), 1):
            for path in ROOM.findall(line):
                self.check(self.exists(f"src/shim/{path}", TREE), file, number, f"there is no src/shim/{path}")
            for span, *last in WORD.findall(line):
                word = last[0] or last[1]
                self.check(word in self.words, file, number, f"nothing in the sources is called {span}")

    def cases(self):
        name = "docs/cases.md"
        page = TREE / name
        if not page.is_file():
            self.check(False, name, 1, "there is no page of cases")
            return
        rows = {}
        for number, line in enumerate(page.read_text().splitlines(), 1):
            row = re.match(r"\| *(\d+) *\|(.*)\|(.*)\|$", line)
            if not row:
                continue
            case, _, where = row.groups()
            self.check(case not in rows, name, number, f"case {case} is there twice")
            rows[case] = re.findall(r"`([^`]+)`", where)
            self.check(rows[case], name, number, f"case {case} names no file that tests it")
            for file in rows[case]:
                path = TREE / file
                says = path.is_file() and re.search(rf"\bcase {case}\b", path.read_text(), re.I)
                self.check(says, name, number, f"{file} does not say \"case {case}\"")
        for file in self.files:
            if not file.startswith("test/cases/"):
                continue
            for number, line in enumerate((TREE / file).read_text().splitlines(), 1):
                for case in re.findall(r"\bcase (\d+)\b", line, re.I):
                    self.check(case in rows, file, number, f"docs/cases.md has no case {case}")
                    if case in rows and "TEST_CASE" in line or line.lstrip().startswith(f'"case {case}:'):
                        self.check(file in rows.get(case, []), file, number,
                                   f"docs/cases.md does not name this file for case {case}")

    def run(self):
        for file in self.files:
            path = TREE / file
            if GENERATED.match(file) or file in OF_OTHER_TREES:
                continue
            if path.suffix not in SUFFIXES and path.name not in NAMES:
                continue
            text = path.read_text()
            self.paths(file, text)
            if file in ABOUT_SOURCES:
                self.rooms(file, text)
            if file == "README.md" or file.startswith("docs/") and path.suffix == ".md":
                self.links(file, text)
        self.cases()
        for file, line, message in sorted(self.wrong):
            print(f"{file}:{line}: {message}")
        print(f"{self.passed} passed, {len(self.wrong)} failed")
        return 1 if self.wrong else 0


if __name__ == "__main__":
    sys.exit(Checker().run())
