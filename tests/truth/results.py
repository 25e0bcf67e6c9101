#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""$ret of many functions, held against what the programs print of their own results.

    results.py [SEED...]    four programs unless told otherwise

A program has functions of random types: integers, enumerators, pointers, and structs and unions of
them, with bit-fields, arrays and floats. It is built by GCC and Clang at several levels. What is
refused is counted by its reason.
"""
import collections
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CAIRN = os.environ.get('CAIRN', os.path.join(HERE, '..', '..', 'build',
                                             'cairn'))
SEEDS = [1, 2, 3, 4]
LEVELS = ['-O0', '-Og', '-O1', '-O2', '-O3', '-Os']
N_FUNCTIONS = 120
CALLS = 5
SHOWN = 10

INTEGERS = {
    'signed char': (8, True),
    'unsigned char': (8, False),
    'short': (16, True),
    'unsigned short': (16, False),
    'int': (32, True),
    'unsigned int': (32, False),
    'long': (64, True),
    'unsigned long': (64, False),
    '__int128': (128, True),
    '_Bool': (1, False),
}


class Program:
    """Functions that return what they draw, and print it as JSON."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.types, self.functions = [], []
        for i in range(N_FUNCTIONS):
            self.function(i)

    def scalar(self):
        return self.random.choice(
            list(INTEGERS) + ['double', 'float'] * self.has_floats)

    def member(self, k):
        """Declaration, name, and how it is filled and printed."""
        name, kind = f'm{k}', self.random.randrange(8)
        if kind == 0:
            bits = self.random.randrange(1, 31)
            return f'int {name} : {bits};', [(name, 'int')]
        if kind == 1:
            n = self.random.randrange(1, 4)
            scalar = self.random.choice(['signed char', 'short', 'int'])
            return f'{scalar} {name}[{n}];', [(f'{name}[{j}]', scalar)
                                              for j in range(n)]
        scalar = self.scalar()
        return f'{scalar} {name};', [(name, scalar)]

    def record(self, i):
        self.has_floats = self.random.random() < .2
        members = [self.member(k) for k in range(self.random.randrange(1, 6))]
        packed = ' __attribute__((packed))' if self.random.random(
        ) < .15 else ''
        self.types.append(
            f'struct t{i} {{ {" ".join(m[0] for m in members)} }}{packed};')
        return f'struct t{i}', [leaf for m in members for leaf in m[1]]

    def function(self, i):
        self.has_floats = self.random.random() < .1
        if self.random.random() < .5:
            kind, leaves = self.record(i)
        else:
            kind = self.scalar()
            leaves = [('', kind)]
        body = []
        for name, scalar in leaves:
            target = f'r.{name}' if name else 'r'
            body.append(f'{target} = ({scalar})draw();')
        shown = f'printf("{{\\"f\\": \\"f{i}\\", \\"leaves\\": [");'
        shows = []
        for name, scalar in leaves:
            target = f'r.{name}' if name else 'r'
            shows.append(f'show_float({target});' if scalar in (
                'double', 'float') else f'show({target});')
        self.functions.append(
            f'F {kind} f{i}(void) {{ {kind} r; memset(&r, 0, sizeof(r)); {" ".join(body)} return r; }}\n'
            f'static void c{i}(void) {{ {kind} r = f{i}(); {shown} {" comma(); ".join(shows)} '
            'puts("]}"); }')

    def text(self):
        calls = '\n'.join(f'\t\tc{i}();' for i in range(N_FUNCTIONS))
        return f"""#include <stdint.h>
#include <stdio.h>
#include <string.h>
#define F __attribute__((noinline))
static uint64_t seed = 3;
static __int128 draw(void)
{{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	__int128 n = (__int128)(int64_t)seed << 32 ^ seed >> 7;
	return seed >> 60 & 1 ? (int)(seed >> 40) % 7 - 3 : n;
}}
static void comma(void) {{ fputs(", ", stdout); }}
static void show(__int128 n) {{ printf("[%ld, %lu]", (long)(n >> 64), (unsigned long)n); }}
static void show_float(double n) {{ printf("\\"%a\\"", n); }}
{chr(10).join(self.types)}
{chr(10).join(self.functions)}
int main(void)
{{
	for (int i = 0; i < {CALLS}; i++) {{
{calls}
	}}
	return 0;
}}
"""


def leaves_of(value):
    """The integers of a value in JSON, in the order of its members."""
    if isinstance(value, dict):
        return [leaf for v in value.values() for leaf in leaves_of(v)]
    if isinstance(value, list):
        return [leaf for v in value for leaf in leaves_of(v)]
    return [int(value)] if isinstance(value, (int, bool)) else [value]


def logged(out):
    results = collections.defaultdict(list)
    for line in out.splitlines():
        if line.startswith('{"f"'):
            one = json.loads(line)
            results[one['f']].append([
                (high << 64) + low if isinstance(v, list) else v
                for v in one['leaves']
                for high, low in ([v] if isinstance(v, list) else [(0, 0)])
            ])
    return results


def is_equal(seen, wanted):
    """A float of 4 bytes is shown with as many digits as it has."""
    if not isinstance(wanted, str):
        return seen == wanted
    number = float.fromhex(wanted)
    return seen == number or struct.pack('f', seen) == struct.pack('f', number)


def are_equal(seen, wanted):
    return [len(s) for s in seen] == [len(w) for w in wanted] and all(
        is_equal(a, b) for s, w in zip(seen, wanted) for a, b in zip(s, w))


def trace(path, tail):
    with open(path + '.log', 'w', encoding='utf-8') as log:
        r = subprocess.run([
            CAIRN, 'trace', '--no-cache', '--best-effort', '--json', '-o',
            path + '.events', *tail, '-c', path, *(f'f{i}($ret)'
                                                   for i in range(N_FUNCTIONS))
        ],
                           stdout=log,
                           stderr=subprocess.PIPE,
                           text=True,
                           check=False)
    with open(path + '.events', encoding='utf-8') as file:
        events = [json.loads(line) for line in file]
    with open(path + '.log', encoding='utf-8') as file:
        return events, logged(file.read()), r.stderr


def compare(build, path, tail, tally):
    events, results, err = trace(path, tail)
    seen = collections.defaultdict(list)
    for event in events:
        if 'summary' not in event:
            seen[event['function']].append(leaves_of(event['args']['$ret']))
    for function, wanted in results.items():
        if not seen[function]:
            tally['refused'] += len(wanted)
        elif are_equal(seen[function], wanted):
            tally['right'] += len(wanted)
        else:
            tally['wrong'] += 1
            if tally['wrong'] <= SHOWN:
                print(
                    f'    {build}: {function}: {seen[function]}, not {wanted}')
    for reason in re.findall(r'^  f\d+ entry .*unavailable: (.*)$', err, re.M):
        tally[reason] += 1


def main():
    tally = collections.Counter()
    folder = tempfile.mkdtemp()
    for seed in map(int, sys.argv[1:] or SEEDS):
        path = os.path.join(folder, f'results{seed}')
        with open(path + '.c', 'w', encoding='utf-8') as file:
            file.write(Program(seed).text())
        for compiler in filter(shutil.which, ('gcc', 'clang')):
            for level in LEVELS:
                for backend in ('auto', 'uprobe_multi'):
                    subprocess.run(
                        [compiler, level, '-g', '-w', path + '.c', '-o', path],
                        check=True)
                    compare(f'{compiler} {level} {seed} {backend}', path,
                            ['--backend', backend], tally)
    shutil.rmtree(folder)
    for what, n in tally.most_common():
        print(f'{what}: {n}')
    ok = tally['right'] > 1000 and not tally['wrong']
    print(f'{"ok" if ok else "not ok"} results_of_many_types_are_right')
    return 0 if ok else 1


sys.exit(main())
