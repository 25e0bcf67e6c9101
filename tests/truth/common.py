# SPDX-License-Identifier: BSD-2-Clause
"""What the long comparisons share: running programs, claims, and reading what Cairn prints."""
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
# What is compared is the debug information's answer, not an earlier one's sidecar.
os.environ.setdefault('CAIRN_CACHE', 'off')
CAIRN = os.environ.get('CAIRN') or os.path.join(TOP, 'build', 'cairn')
COUNTS = {'ok': 0, 'not ok': 0, 'skip': 0}


def ok(name):
    COUNTS['ok'] += 1
    print(f'ok {name}', flush=True)


def not_ok(name):
    COUNTS['not ok'] += 1
    print(f'not ok {name}', flush=True)


def skip(name, reason):
    COUNTS['skip'] += 1
    print(f'skip {name}: {reason}', flush=True)


def claim(name, holds):
    (ok if holds else not_ok)(name)
    return holds


def finish():
    print(f'{COUNTS["ok"]} passed, {COUNTS["not ok"]} failed, {COUNTS["skip"]} skipped')
    sys.exit(1 if COUNTS['not ok'] else 0)


def lab(*parts):
    """A folder for what takes long to make, kept between runs."""
    base = os.environ.get('CAIRN_LAB') or os.path.expanduser('~/.cache/cairn-lab')
    folder = os.path.join(base, 'truth', *parts)
    os.makedirs(folder, exist_ok=True)
    return folder


def lab_input(name):
    """A large input of the lab, None when it is not there."""
    base = os.environ.get('CAIRN_LAB') or os.path.expanduser('~/.cache/cairn-lab')
    path = os.path.join(base, 'in', name)
    return path if os.path.exists(path) else None


def have(*tools):
    return [t for t in tools if shutil.which(t) is None]


def run(cmd, timeout=120, cwd=None, env=None):
    """(exit code, stdout, stderr); the exit code is None when the time limit passed."""
    process = subprocess.Popen(cmd, cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, err = process.communicate(timeout=timeout)
        code = process.returncode
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        code = None
    return code, out.decode('utf-8', 'replace'), err.decode('utf-8', 'replace')


def compile_c(sources, output, flags, compiler='gcc', timeout=300, libraries=()):
    code, _, err = run([compiler] + flags + sources + ['-o', output, *libraries], timeout)
    if code != 0:
        raise RuntimeError(f'{compiler} {" ".join(flags)} {" ".join(sources)}: {err[-2000:]}')
    return output


def dw_program(name):
    """A libdw program of this folder, which reads DWARF independently of Cairn; None when libdw-dev
    is missing."""
    sources, output = [os.path.join(HERE, f'{name}.c'),
                       os.path.join(HERE, 'units.c')], os.path.join(lab(), name)
    newest = max(os.path.getmtime(source) for source in sources)
    if os.path.exists(output) and os.path.getmtime(output) > newest:
        return output
    try:
        return compile_c(sources, output, ['-O2', '-Wall', '-Wl,--no-as-needed', '-ldw'])
    except RuntimeError:
        return None


def dies(path):
    """[(kind, die, address or None, has code, name, file, line, linkage name)]"""
    code, out, err = run([dw_program('dies'), path], 600)
    if code != 0:
        raise RuntimeError(f'dies {path}: {err}')
    rows = []
    for line in out.splitlines():
        kind, die, at, has_code, name, file, decl_line, linkage = line.split('\t')
        rows.append((kind, int(die,
                               16), None if at == '-' else int(at, 16), has_code == '1', name, file,
                     int(decl_line), linkage))
    return rows


def json_lines(text):
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            rows.append(json.loads(line))
        except ValueError as error:
            raise RuntimeError(f'line {number} is not JSON ({error}): {line[:200]}') from error
    return rows


def number_of(value):
    """A value of JSON as the register has it; None: it is shown otherwise (a string, an enumerator, a struct)."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return value
    if isinstance(value, str) and re.fullmatch('0x[0-9a-f]+', value):
        return int(value, 16)
    return None


def cairn_sites(path, *functions, timeout=300):
    """The sites `cairn sites PATH FUNC... --json` prints."""
    code, out, err = run([CAIRN, 'sites', path, *functions, '--json'], timeout)
    if code != 0:
        raise RuntimeError(f'cairn sites {path} {" ".join(functions)}: exit {code}: {err[-1500:]}')
    return json_lines(out)


def may_trace():
    """None, or why live tracing is not possible here."""
    if os.geteuid() != 0:
        return 'not root'
    if not os.access(CAIRN, os.X_OK):
        return f'{CAIRN} is not built'
    return None
