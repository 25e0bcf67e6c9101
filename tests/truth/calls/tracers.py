# SPDX-License-Identifier: BSD-2-Clause
"""Two ways to see the calls of an optimised program: Cairn, and gdb at addresses that libdw found.

Both give events in one shape, in the order they happened:

    {"f": function, "site": a key of the site, "args": {name: value}, "why": {name: reason}}

args has what is available. The second tracer knows nothing of Cairn: it proves the comparison
itself, and tells whether a wrong value is everybody's (then it is the compiler's) or ours alone.
"""
import json
import os
import subprocess

import common


def absent(value):
    """The reason when a value is unavailable or unreadable as a whole, else None."""
    if isinstance(value, dict) and len(value) == 1:
        return value.get('unavailable') or value.get('unreadable')
    return None


def cairn_event(row):
    event = {'f': row['function'], 'site': row['address'], 'args': {}, 'why': {}}
    for name, value in row['args'].items():
        why = absent(value)
        if why is None:
            event['args'][name] = value
        else:
            event['why'][name] = why
    return event


def trace_with_cairn(folder, program, report, functions, extra=()):
    out = os.path.join(folder, program + '.events')
    if os.path.exists(out):
        os.unlink(out)
    cmd = [common.CAIRN, 'trace', '--json', '--best-effort', '--ring', '65536', '-o', out, *extra,
           '-c', f'{os.path.join(folder, program)} {os.path.join(folder, report)}', *functions]
    code, _, err = common.run(cmd, 120, cwd=folder)
    if code != 0:
        raise RuntimeError(f'cairn trace: exit code {code}: {err[-1500:]}')
    with open(out, encoding='utf-8') as file:
        rows = common.json_lines(file.read())
    # One thread, but several processors: their buffers are read one after the other.
    events = sorted((r for r in rows if 'args' in r), key=lambda r: r['time_ns'])
    lost = [r for r in rows if 'args' not in r and r.get('lost')]
    if lost:
        raise RuntimeError(f'cairn trace: events were lost: {lost}')
    return [cairn_event(r) for r in events]


def entry_address(path):
    with open(path, 'rb') as file:
        return int.from_bytes(file.read(32)[24:32], 'little')


class Broken(Exception):
    """The tracer itself failed."""


def run_gdb(job, folder, name, timeout=600):
    path = os.path.join(folder, name + '.gdbjob')
    with open(path, 'w', encoding='utf-8') as file:
        json.dump(job, file)
    env = dict(os.environ, GDB_VALUES_JOB=path)
    script = os.path.join(common.HERE, 'gdb_values.py')
    done = subprocess.run(['gdb', '-nx', '-batch', '-x', script], env=env, stdin=subprocess.DEVNULL,
                          capture_output=True, check=False, timeout=timeout)
    text = done.stderr.decode('utf-8', 'replace')
    if done.returncode != 0 and 'internal problem' in text + done.stdout.decode('utf-8', 'replace'):
        raise Broken('gdb ends with an internal problem of its own on this program')
    if 'Traceback' in text or 'Python Exception' in text or not os.path.exists(job['output']):
        raise RuntimeError(f'gdb: {text[-1500:]}')
    with open(job['output'], encoding='utf-8') as file:
        return [json.loads(line) for line in file]


def trace_with_gdb(folder, program, report, functions):
    path = os.path.join(folder, program)
    wanted = set(functions)
    sites = [{'id': f'{die:#x}', 'at': at, 'function': name}
             for kind, die, at, has_code, name, _, _, _ in common.dies(path)
             if has_code and name in wanted]
    job = {
        'program': path, 'args': [os.path.join(folder, report)], 'output': path + '.gdbout',
        'sites': sites, 'entry': entry_address(path)
    }
    return [{'f': r['function'], 'site': r['id'], 'args': r['args'], 'why': r['why']}
            for r in run_gdb(job, folder, program)]
