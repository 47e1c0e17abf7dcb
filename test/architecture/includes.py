#!/usr/bin/env python3
"""usage: includes.py [TREE]

Reads the includes of src/shim and include/ibvxx, and checks the rules of docs/internals.md:

- an include never points upward: to a later room of the shim, from forward/ to device/ or back, or to a later layer of the
  toolkit (errors, handles, objects, context);
- every file of the shim is in a room;
- of the toolkit, the shim includes the errors only, and core/ nothing that describes devices; the toolkit never includes the
  shim;
- no headers include each other in a circle;
- a header of the shim has the source of its name: what it declares without a body is defined there;
- functions in unnamed namespaces of different files of the shim have different names.

Prints what is wrong as FILE:LINE: ..., then "N passed, N failed", one test a file.
"""
import pathlib
import re
import sys

# The rooms of src/shim from the bottom up. Rooms of one row do not include each other.
ROOMS = [['core'], ['forward', 'device'], ['intercept'], ['system'], ['session']]
LEVEL = {room: level for level, row in enumerate(ROOMS) for room in row}
# The layers of include/ibvxx from the bottom up. A header that no row names is of the objects.
TOOLKIT = [
    ['verb', 'error', 'result', 'or_throw', 'teardown', 'text', 'version', 'completion_status', 'context_state', 'format',
     'std_format', 'detail/hints', 'detail/format_text'],
    ['handle', 'detail/checks'],
    [],
    ['context', 'context_config', 'detail/context_open', 'detail/context_resources', 'detail/owner_registry',
     'detail/memory_registry', 'detail/qp_registry'],
    ['ibvxx'],
]
ERRORS, OBJECTS = 0, 2
TOOLKIT_LEVEL = {f'ibvxx/{name}.hpp': level for level, row in enumerate(TOOLKIT) for name in row}
DESCRIBES_DEVICES = re.compile(r'ibvxx/shim/device\w*\.hpp')

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def toolkit_level(name):
    return TOOLKIT_LEVEL.get(name, OBJECTS)


def blank(match):
    return re.sub(r'[^\n]', ' ', match.group(0))


def without_comments(text):
    text = re.sub(r'//[^\n]*', blank, text)
    return re.sub(r'/\*.*?\*/', blank, text, flags=re.DOTALL)


def code_of(text):
    """The text without comments, literals and preprocessor lines; lines keep their numbers."""
    text = without_comments(text)
    text = re.sub(r'"(\\.|[^"\\\n])*"', '""', text)
    return re.sub(r'^\s*#(.*\\\n)*.*', blank, text, flags=re.MULTILINE)


def includes_of(path):
    for number, line in enumerate(without_comments(path.read_text()).split('\n'), 1):
        found = INCLUDE.match(line)
        if found:
            yield number, found.group(2), found.group(1) == '"'


def declarations(text):
    """Functions that a header declares and does not define: (line, class or '', name)."""
    code = code_of(text)
    scopes = []  # of each open brace: 'namespace', 'class NAME', or 'body'
    start = 0
    for at, char in enumerate(code):
        if char not in '{};':
            continue
        head = code[start:at]
        words = re.sub(r'\[\[.*?\]\]', '', head, flags=re.DOTALL).strip()
        words = re.sub(r'^(public|private|protected)\s*:\s*', '', words)
        inside_body = 'body' in scopes
        if char == '{':
            named = re.search(r'\b(?:struct|class|union)\s+(?:\[\[.*?\]\]\s*)?(\w+)[^()]*$', words)
            if re.match(r'(inline\s+)?namespace\b|extern\b', words):
                scopes.append('namespace')
            elif named and not inside_body and not words.startswith('enum'):
                scopes.append('class ' + named.group(1))
            else:
                scopes.append('body')
        elif char == '}':
            if scopes:
                scopes.pop()
        elif not inside_body:
            owner = scopes[-1][6:] if scopes and scopes[-1].startswith('class ') else ''
            found = re.search(r'(~?\w+|operator\s*\S+?)\s*\(', words)
            skipped = re.search(r'=\s*(default|delete|0)\s*$', words) or re.match(
                r'(using|typedef|friend|template|static_assert|return|extern|enum)\b', words)
            is_value = re.match(r'[^(]*=', words) and not re.search(r'\boperator\b', words)
            if found and not skipped and not is_value and words.endswith((')', 'noexcept', 'const', 'override', 'final')):
                line = code.count('\n', 0, start + len(head) - len(head.lstrip())) + 1
                yield line, owner, found.group(1)
        start = at + 1


def defines(source, owner, name):
    prefix = re.escape(owner) + r'::' if owner else r'(?<![\w:.>])'
    # A parameter list, then what may stand between it and the body.
    return re.search(prefix + re.escape(name) + r'\s*\([^;{}]*\)[^;{}]*(\{|:\s)', source) is not None


def local_functions(text):
    """Functions in unnamed namespaces: (line, name)."""
    code = code_of(text)
    scopes = []
    start = 0
    for at, char in enumerate(code):
        if char not in '{};':
            continue
        words = re.sub(r'\[\[.*?\]\]', '', code[start:at], flags=re.DOTALL).strip()
        if char == '{':
            if re.match(r'namespace\b', words):
                scopes.append(words)
            else:
                found = re.search(r'(\w+)\s*\(', words)
                if found and scopes[-1:] == ['namespace'] and not re.match(r'(struct|class|union|enum)\b', words) \
                        and not re.match(r'[^(]*=', words):
                    yield code.count('\n', 0, start + len(code[start:at]) - len(code[start:at].lstrip())) + 1, found.group(1)
                scopes.append('body')
        elif char == '}' and scopes:
            scopes.pop()
        start = at + 1


def circles(graph):
    """Each circle once, as a list of files."""
    state, found = {}, []

    def visit(node, way):
        state[node] = 'open'
        for _, other in graph.get(node, []):
            if state.get(other) == 'open':
                found.append(way[way.index(other):] + [other] if other in way else [node, other])
            elif other not in state:
                visit(other, way + [other])
        state[node] = 'done'

    for node in sorted(graph):
        if node not in state:
            visit(node, [node])
    return found


def check(tree):
    """Problems by file: {path: ['FILE:LINE: ...']}."""
    shim, include = tree / 'src/shim', tree / 'include'
    sources = sorted(shim.rglob('*.[ch]pp'))
    rooms = [path for path in sources if path.relative_to(shim).parts[0] in LEVEL]
    headers = sorted((include / 'ibvxx').rglob('*.hpp'))
    problems = {path: [] for path in sources + headers}
    graph = {}

    def wrong(path, line, text):
        problems[path].append(f'{path.relative_to(tree)}:{line}: {text}')

    for path in sources:
        if path not in rooms:
            wrong(path, 1, f'is in none of the rooms {", ".join(LEVEL)}')

    for path in rooms:
        room = path.relative_to(shim).parts[0]
        for line, name, quoted in includes_of(path):
            if name.startswith('ibvxx/') and not name.startswith('ibvxx/shim') and toolkit_level(name) > ERRORS:
                wrong(path, line, f'the shim includes more of the toolkit than its errors: <{name}>')
            if room == 'core' and DESCRIBES_DEVICES.fullmatch(name):
                wrong(path, line, f'core/ knows no device: <{name}>')
            if not quoted:
                continue
            target = next((one for one in (shim / name, path.parent / name) if one.exists()), None)
            if target is None:
                wrong(path, line, f'src/shim has no {name}')
                continue
            graph.setdefault(path, []).append((line, target.resolve()))
            other = target.resolve().relative_to(shim.resolve()).parts[0]
            if other == room:
                continue
            if LEVEL.get(other, len(ROOMS)) > LEVEL[room]:
                wrong(path, line, f'points upward: {room}/ includes {other}/ ("{name}")')
            elif LEVEL[other] == LEVEL[room]:
                wrong(path, line, f'{room}/ and {other}/ do not include each other ("{name}")')
        if path.suffix != '.hpp':
            continue
        source = path.with_suffix('.cpp')
        body = code_of(source.read_text()) if source.exists() else ''
        for line, owner, name in declarations(path.read_text()):
            if not defines(body, owner, name):
                full = f'{owner}::{name}' if owner else name
                wrong(path, line, f'declares {full}, which {source.relative_to(tree)} does not define'
                      if source.exists() else f'declares {full}, and there is no {source.relative_to(tree)}')

    # Unity builds compile several files as one, where two such functions would meet.
    local = {}
    for path in rooms:
        if path.suffix == '.cpp':
            for line, name in local_functions(path.read_text()):
                other = local.setdefault(name, path)
                if other != path:
                    wrong(path, line, f'{name} in an unnamed namespace is one of {other.relative_to(tree)}, too')

    for path in headers:
        own = str(path.relative_to(include))
        in_shim = own.startswith('ibvxx/shim')
        for line, name, _ in includes_of(path):
            target = include / name
            if target.exists():
                graph.setdefault(path, []).append((line, target))
            if not name.startswith('ibvxx/'):
                continue
            if name.startswith('ibvxx/shim'):
                if not in_shim:
                    wrong(path, line, f'the toolkit includes the shim: <{name}>')
            elif in_shim and toolkit_level(name) > ERRORS:
                wrong(path, line, f'the shim includes more of the toolkit than its errors: <{name}>')
            elif toolkit_level(name) > toolkit_level(own):
                wrong(path, line, f'points upward: <{name}>')

    known = {path.resolve(): path for path in problems}
    for circle in circles({path.resolve(): [(n, t.resolve()) for n, t in edges] for path, edges in graph.items()}):
        names = ' -> '.join(str(one.relative_to(tree.resolve())) for one in circle)
        wrong(known[circle[0]], 1, f'includes itself in a circle: {names}')
    return problems


def main():
    tree = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    problems = check(tree)
    for wrong in problems.values():
        for one in wrong:
            print(one)
    failed = sum(1 for wrong in problems.values() if wrong)
    print(f'{len(problems) - failed} passed, {failed} failed')
    return 1 if failed or not problems else 0


if __name__ == '__main__':
    sys.exit(main())
