#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn trace of every function of programs whose arguments tell themselves whether they are right.

    trace_args.py [SEED...]     ten programs unless told otherwise; 20000 events of each build

The programs are those of numbered.py, built by GCC and Clang at several levels, as C and as C++.
All their functions are traced, the bodies and the inlined copies.
"""
import collections
import os
import re
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import common  # noqa: E402
from numbered import Program  # noqa: E402

SEEDS = [1, 2, 3, 4, 5, 6, 7, 8, 33, 41]
EVENTS = 20000
SECONDS = 20
LEVELS = ['-O0', '-Og', '-O1', '-O2', '-O3', '-Os', '-O2 -fno-inline']
GCC_LEVELS = ['-O2 -fweb', '-O3 -funroll-loops']
CXX_LEVELS = ['-O0', '-O2', '-O2 -gdwarf-4']
CXX = ['-x', 'c++', '-fpermissive']
AVX2 = '-O3 -mavx2'  # functions that align their stacks
SHOWN = 10  # wrong values of a build


class Tally:

    def __init__(self):
        self.right = self.wrong = 0
        self.missing = collections.Counter()

    def add(self, program, build, event):
        for name, value in event['args'].items():
            if isinstance(value, dict) and 'unavailable' in value:
                self.missing[value['unavailable']] += 1
            # What was passed was stored, so that its page is there.
            elif not (isinstance(value, dict) and 'unreadable' in value) and program.is_right(
                    event['function'], name, value):
                self.right += 1
            else:
                self.wrong += 1
                if self.wrong <= SHOWN:
                    print(f'    {build}: {event["function"]} {event["site"]}: {name}={value}')


def levels_of(compiler):
    with open('/proc/cpuinfo', encoding='utf-8') as file:
        has_avx2 = ' avx2 ' in file.read()
    levels = {'gcc': LEVELS + GCC_LEVELS, 'clang': LEVELS}.get(compiler, CXX_LEVELS)
    return levels + ([AVX2] if has_avx2 else [])


def events_of(path):
    """The first events of all functions together."""
    _, out, err = common.run([
        'timeout', '-s', 'INT',
        str(SECONDS), common.CAIRN, 'trace', '--no-cache', '--json', '-n',
        str(EVENTS), '-c', path, 'f*'
    ], timeout=5 * SECONDS)
    events = [e for e in common.json_lines(out) if re.fullmatch(r'f\d+', e.get('function', ''))
              and 'args' in e]
    if not events:
        raise RuntimeError(f'{path}: {err}')
    return events


def main():
    seeds = [int(seed) for seed in sys.argv[1:]] or SEEDS
    reason = common.may_trace()
    if reason:
        common.skip('trace_args', reason)
        common.finish()
    totals = {}
    with tempfile.TemporaryDirectory(prefix='cairn-trace-args-') as folder:
        for seed in seeds:
            program = Program(seed)
            source = os.path.join(folder, f'p{seed}.c')
            with open(source, 'w', encoding='utf-8') as file:
                file.write(program.source())
            for compiler in ('gcc', 'clang', 'g++', 'clang++'):
                if not shutil.which(compiler):
                    common.skip(f'trace_args: {compiler}', 'it is not installed')
                    continue
                language = CXX if compiler.endswith('++') else []
                for level in levels_of(compiler):
                    path = common.compile_c([source], os.path.join(folder, f'p{seed}'),
                                            ['-g', '-w', *level.split(), *language], compiler)
                    tally = totals.setdefault((compiler, level), Tally())
                    for event in events_of(path):
                        tally.add(program, f'seed {seed} {compiler} {level}', event)
    for (compiler, level), t in totals.items():
        print(f'    {compiler} {level}: {t.right} right, {t.wrong} wrong; not available: ' +
              ', '.join(f'{why} {n}' for why, n in t.missing.most_common()))
        common.claim(f'trace_args: {compiler} {level}: no value is wrong, and there are values',
                     t.wrong == 0 and t.right > 1000)
    common.finish()


if __name__ == '__main__':
    main()
