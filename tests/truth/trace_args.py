#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn trace of every function of programs whose arguments tell themselves whether they are right.

    trace_args.py [SEEDS] [EVENTS]     8 programs, 20000 events of each build

The programs are those of numbered.py, built by GCC and Clang at several levels. All their functions
are traced, the bodies and the inlined copies.
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

SECONDS = 20
LEVELS = ['-O0', '-Og', '-O1', '-O2', '-O3', '-Os', '-O2 -fno-inline']
GCC_LEVELS = ['-O2 -fweb', '-O3 -funroll-loops']
SHOWN = 10  # wrong values of a build


class Tally:

    def __init__(self):
        self.right = self.wrong = 0
        self.missing = collections.Counter()

    def add(self, program, build, event):
        for name, value in event['args'].items():
            if isinstance(value, dict) and 'unavailable' in value:
                self.missing[value['unavailable']] += 1
            elif program.is_right(event['function'], name, value):
                self.right += 1
            else:
                self.wrong += 1
                if self.wrong <= SHOWN:
                    print(f'    {build}: {event["function"]} {event["site"]}: {name}={value}')


def events_of(path, n_events):
    """The first events of all functions together."""
    _, out, err = common.run([
        'timeout', '-s', 'INT',
        str(SECONDS), common.CAIRN, 'trace', '--no-cache', '--json', '-n',
        str(n_events), '-c', path, 'f*'
    ], timeout=5 * SECONDS)
    events = [e for e in common.json_lines(out) if re.fullmatch(r'f\d+', e.get('function', ''))
              and 'args' in e]
    if not events:
        raise RuntimeError(f'{path}: {err}')
    return events


def main():
    n_seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    n_events = int(sys.argv[2]) if len(sys.argv) > 2 else 20000
    reason = common.may_trace()
    if reason:
        common.skip('trace_args', reason)
        common.finish()
    totals = {}
    with tempfile.TemporaryDirectory(prefix='cairn-trace-args-') as folder:
        for seed in range(1, n_seeds + 1):
            program = Program(seed)
            source = os.path.join(folder, f'p{seed}.c')
            with open(source, 'w', encoding='utf-8') as file:
                file.write(program.source())
            for compiler in ('gcc', 'clang'):
                if not shutil.which(compiler):
                    common.skip(f'trace_args: {compiler}', 'it is not installed')
                    continue
                for level in LEVELS + (GCC_LEVELS if compiler == 'gcc' else []):
                    path = common.compile_c([source], os.path.join(folder, f'p{seed}'),
                                            ['-g', '-w', *level.split()], compiler)
                    tally = totals.setdefault((compiler, level), Tally())
                    for event in events_of(path, n_events):
                        tally.add(program, f'seed {seed} {compiler} {level}', event)
    for (compiler, level), t in totals.items():
        print(f'    {compiler} {level}: {t.right} right, {t.wrong} wrong; not available: ' +
              ', '.join(f'{why} {n}' for why, n in t.missing.most_common()))
        common.claim(f'trace_args: {compiler} {level}: no value is wrong, and there are values',
                     t.wrong == 0 and t.right > 1000)
    common.finish()


if __name__ == '__main__':
    main()
