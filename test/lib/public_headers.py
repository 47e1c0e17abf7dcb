#!/usr/bin/env python3
"""usage: public_headers.py [TREE]

Checks that ibvxx.hpp includes every public header but those that need another library, exceptions or the shim, and none
of ibvxx/detail; and that no guide and no example includes one of ibvxx/detail. Prints what is wrong, then
"N passed, N failed", one test a file.
"""
import pathlib
import re
import sys

# What ibvxx.hpp leaves out, as its first comment says.
APART = {'ibvxx.hpp', 'format.hpp', 'std_format.hpp', 'or_throw.hpp', 'shim.hpp'}
INCLUDE = re.compile(r'^\s*#\s*include\s*<ibvxx/([^>]+)>', re.MULTILINE)


def main():
    tree = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
    folder = tree / 'include/ibvxx'
    problems = {}

    umbrella = (folder / 'ibvxx.hpp').read_text()
    included = INCLUDE.findall(umbrella)
    public = {path.name for path in folder.glob('*.hpp')} - APART
    wrong = [f'does not include <ibvxx/{name}>' for name in sorted(public - set(included))]
    wrong += [f'includes <ibvxx/{name}>, which is not one of its headers' for name in included if name not in public]
    wrong += [f'includes <ibvxx/{name}> twice' for name in sorted(set(included)) if included.count(name) > 1]
    problems['include/ibvxx/ibvxx.hpp'] = wrong

    pages = [tree / 'README.md', *sorted((tree / 'docs').glob('*.md')), *sorted((tree / 'docs/examples').glob('*.[ch]pp'))]
    for page in pages:
        private = [name for name in INCLUDE.findall(page.read_text()) if name.startswith('detail/')]
        problems[str(page.relative_to(tree))] = [f'includes <ibvxx/{name}>, which is private' for name in private]

    for file, wrong in problems.items():
        for one in wrong:
            print(f'{file}: {one}')
    failed = sum(1 for wrong in problems.values() if wrong)
    print(f'{len(problems) - failed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
