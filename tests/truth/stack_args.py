#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn stack --args against programs whose arguments tell themselves whether they are right.

    stack_args.py [SEEDS] [STOPS]      6 programs, 200 stops of each build, unless told otherwise

The programs are those of numbered.py, built by GCC and Clang at several levels, and stopped at
random times.

Beside it, gdb is asked for the same frames of core files: where both have a value, they must agree,
unless the program says who is wrong.
"""
import collections
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import common  # noqa: E402
from numbered import Program  # noqa: E402

LEVELS = [
    '-O0', '-Og', '-O1', '-O2', '-O3', '-Os', '-O2 -fomit-frame-pointer -fno-inline',
    '-O1 -fno-omit-frame-pointer'
]
GCC_LEVELS = ['-O2 -fweb', '-O3 -funroll-loops']


def known_function(name):
    return re.fullmatch(r'f\d+', name or '')


class Tally:
    def __init__(self):
        self.right = self.wrong = 0
        self.missing = collections.Counter()
        self.shown = 0

    def add(self, program, build, threads):
        for thread in threads:
            for number, frame in enumerate(thread['frames']):
                for function in frame['functions']:
                    if known_function(function['name']):
                        self.add_function(program, build, function, frame, number)

    def add_function(self, program, build, function, frame, number):
        if function['args'] is None:
            self.missing['no function'] += 1
            return
        for arg in function['args']:
            if 'unavailable' in arg:
                self.missing[arg['unavailable']] += 1
            elif program.is_right(function['name'], arg['name'], arg['value']):
                self.right += 1
            else:
                self.wrong += 1
                if self.shown < 20:
                    self.shown += 1
                    print(
                        f'    {build}: frame {number} {function["name"]} at {frame["vaddr"]}: {arg}'
                    )


def stops_of(path, n):
    """The threads of many stops, by one cairn."""
    process = subprocess.Popen([path], stdout=subprocess.DEVNULL)
    try:
        time.sleep(0.05)
        _, out, err = common.run([
            common.CAIRN, 'stack', '--args', '--no-cache', '--json', '-n',
            str(n), '-i', '0.001',
            str(process.pid)
        ], timeout=600)
    finally:
        process.kill()
        process.wait()
    threads = common.json_lines(out)
    if not threads:
        raise RuntimeError(f'{path}: {err}')
    return threads


# ---- beside gdb ----

GDB = """
set confirm off
set pagination off
set print frame-arguments all
set print entry-values no
set width 0
bt
"""


def frames_of_gdb(path, core, folder):
    """[(pc or None, function, {name: text})]"""
    script = os.path.join(folder, 'bt.gdb')
    with open(script, 'w', encoding='utf-8') as file:
        file.write(GDB)
    _, out, _ = common.run(['gdb', '-nx', '-q', '-batch', '-x', script, path, core])
    found = []
    for line in out.splitlines():
        if line.startswith('#0 '):
            found = []  # the innermost frame is shown when the core is opened, too
        match = re.match(r'#\d+\s+(?:0x[0-9a-f]+ in )?(\w+) \((.*)\) at ', line)
        if match:
            found.append(
                (match.group(1), dict(re.findall(r'(p\d+)=(-?\d+)(?=[,) ]|$)', match.group(2)))))
    return found


def compare_with_gdb(program, path, build, folder, tally):
    process = subprocess.Popen([path], stdout=subprocess.DEVNULL)
    time.sleep(random.uniform(0.02, 0.08))
    os.kill(process.pid, signal.SIGSTOP)
    common.run(['gcore', '-o', os.path.join(folder, 'core'), str(process.pid)])
    core = os.path.join(folder, f'core.{process.pid}')
    process.kill()
    process.wait()
    _, out, err = common.run([common.CAIRN, 'stack', '--args', '--no-cache', '--json', core])
    threads = common.json_lines(out)
    if not threads:
        raise RuntimeError(f'{core}: {err}')
    ours = [f for frame in threads[0]['frames'] for f in frame['functions']]
    theirs = frames_of_gdb(path, core, folder)
    os.unlink(core)
    tally['stops'] += 1
    if [f['name'] for f in ours if known_function(f['name'])
        ] != [name for name, _ in theirs if known_function(name)]:
        tally['other functions'] += 1
        return
    for mine, (_, values) in zip([f for f in ours if known_function(f['name'])],
                                 [t for t in theirs if known_function(t[0])]):
        for arg in mine['args'] or []:
            value = arg.get('value')
            if not isinstance(value, int):
                tally['only gdb'] += arg['name'] in values and 'unavailable' in arg
                continue
            if arg['name'] not in values:
                tally['only cairn'] += 1
            elif int(values[arg['name']]) == value:
                tally['equal'] += 1
            elif program.is_right(mine['name'], arg['name'], value):
                tally['gdb wrong'] += 1
            else:
                tally['cairn wrong'] += 1
                print(f'    {build}: {mine["name"]} {arg}, gdb {values[arg["name"]]}')


def main():
    n_seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    n_stops = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    reason = common.may_trace()
    if reason:
        common.skip('stack_args', reason)
        common.finish()
    gdb = collections.Counter()
    totals = {}
    with tempfile.TemporaryDirectory(prefix='cairn-stack-args-') as folder:
        for seed in range(1, n_seeds + 1):
            program = Program(seed)
            source = os.path.join(folder, f'p{seed}.c')
            with open(source, 'w', encoding='utf-8') as file:
                file.write(program.source())
            for compiler in ('gcc', 'clang'):
                if not shutil.which(compiler):
                    common.skip(f'stack_args: {compiler}', 'it is not installed')
                    continue
                for level in LEVELS + (GCC_LEVELS if compiler == 'gcc' else []):
                    build = f'seed {seed} {compiler} {level}'
                    path = common.compile_c([source], os.path.join(folder, f'p{seed}'),
                                            ['-g', '-w', *level.split()], compiler)
                    tally = totals.setdefault((compiler, level), Tally())
                    tally.add(program, build, stops_of(path, n_stops))
                    if shutil.which('gcore') and seed <= 2:
                        for _ in range(3):
                            compare_with_gdb(program, path, build, folder, gdb)
    for (compiler, level), t in totals.items():
        print(f'    {compiler} {level}: {t.right} right, {t.wrong} wrong; not available: ' +
              ', '.join(f'{why} {n}' for why, n in t.missing.most_common()))
        common.claim(f'stack_args: {compiler} {level}: no value is wrong, and there are values',
                     t.wrong == 0 and t.right > 100)
    if gdb:
        print('    beside gdb: ' + ', '.join(f'{what} {n}' for what, n in gdb.items()))
        common.claim(
            'stack_args: no value of a core differs from gdb\'s where the program does not say that gdb is wrong',
            gdb['cairn wrong'] == 0 and gdb['equal'] > 0)
    else:
        common.skip('stack_args: beside gdb', 'gcore is not installed')
    common.finish()


if __name__ == '__main__':
    main()
