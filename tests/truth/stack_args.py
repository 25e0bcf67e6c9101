#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn stack --args against programs whose arguments tell themselves whether they are right.

    stack_args.py [SEEDS] [STOPS]      6 programs, 200 stops of each build, unless told otherwise

A program is generated from a seed: functions that call each other, inlined or not, recursively,
through pointers, as tail calls, with loops and switches, and that change their parameters. Each
parameter has a number of its own, and whatever value it holds is that number modulo 1009. So a
value that belongs to something else is found with a probability of 1008 in 1009, at any stop,
without asking a debugger. The program is built by GCC and Clang at several levels, and stopped at
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

MODULUS = 1009
SMALL = 97  # of a char
LEVELS = [
    '-O0', '-Og', '-O1', '-O2', '-O3', '-Os', '-O2 -fomit-frame-pointer -fno-inline',
    '-O1 -fno-omit-frame-pointer'
]
TYPES = [
    'int', 'long', 'unsigned', 'short', 'char', 'unsigned long', 'struct two', 'struct big',
    'double'
]
HEAD = """
#include <alloca.h>
#include <sys/prctl.h>
#include <unistd.h>
struct two { long a; int b; };
struct big { long a[5]; int b; };
static volatile unsigned long state = 88172645463325252ul;
static volatile long sink;
static unsigned long rnd(void) { unsigned long x = state; x ^= x << 13; x ^= x >> 7; x ^= x << 17; return state = x; }
#define R(n) ((long)(rnd() % (n)))
__attribute__((noinline)) static void touch(void *p) { sink += (long)p; }
"""


class Program:
    """The source, and the number of each parameter."""

    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.n = 24
        self.params = [[rng.choice(TYPES)
                        for _ in range(rng.randrange(1, 8))]
                       for _ in range(self.n)]
        self.kinds = [
            rng.choice(['noinline', 'noinline', 'noinline', '', 'always_inline'])
            for _ in range(self.n)
        ]

    def number(self, j, k):
        return j * 8 + k + 1

    def value(self, j, k):
        """An expression with the parameter's number, of its type."""
        kind, n = self.params[j][k], self.number(j, k)
        more = self.rng.choice(['0', 'R(15)', 'R(15)', 'i % 13'])
        if kind == 'char':
            return str(n % SMALL)
        if kind == 'struct two':
            return f'(struct two){{{n} + {MODULUS}l * ({more}), {n} + {MODULUS} * 3}}'
        if kind == 'struct big':
            return f'(struct big){{{{{n} + {MODULUS}l * ({more}), {n}, {n}, {n}, {n}}}, {n}}}'
        return f'{n} + {MODULUS} * ({more})'

    def prototype(self, j):
        kind = self.kinds[j]
        attribute = {'': 'static', 'noinline': '__attribute__((noinline)) static',
                     'always_inline': 'static inline __attribute__((always_inline))'}[kind]
        return f'{attribute} long f{j}(' + ', '.join(f'{t} p{k}'
                                                     for k, t in enumerate(self.params[j])) + ')'

    def call(self, j, callee):
        """A call of a later function, or of any that counts the depth down."""
        args = []
        for k, t in enumerate(self.params[callee]):
            same = [i for i, u in enumerate(self.params[j])
                    if u == t and self.rng.random() < 0.4] if t in ('int', 'long', 'unsigned',
                                                                    'unsigned long') else []
            args.append(f'p{same[0]} + {self.number(callee, k) - self.number(j, same[0])}'
                        if same else self.value(callee, k))
        return f'f{callee}(' + ', '.join(args) + ')'

    def body(self, j):
        rng, lines = self.rng, ['long i = R(7), r = 0;']
        for k, t in enumerate(self.params[j]):
            use = {'struct two': f'p{k}.a + p{k}.b', 'struct big': f'p{k}.a[i % 5] + p{k}.b'}.get(
                t, f'p{k}')
            choice = rng.randrange(6)
            if choice == 0:
                lines.append(f'sink += (long)({use});')
            elif choice == 1:
                lines.append(f'touch(&p{k});')
            elif choice == 2 and t in ('int', 'long', 'unsigned'):
                lines.append(f'if (i & 1) p{k} += {MODULUS};')
            elif choice == 3:
                lines.append(f'r += (long)({use}) * i;')
            elif choice == 4 and t in ('int', 'long'):
                lines.append(
                    f'for (int q = 0; q < i; q++) {{ p{k} += {MODULUS}; sink += p{k} >> q; }}')
        later = [c for c in range(j + 1, self.n)]
        for callee in rng.sample(later, min(len(later), rng.randrange(0, 4))):
            lines.append(
                rng.choice([
                    f'r += {self.call(j, callee)};', f'if (R(3)) r += {self.call(j, callee)};',
                    f'for (i = 0; i < 2; i++) r += {self.call(j, callee)};'
                ]))
        if rng.random() < 0.3:
            lines.append(
                'switch (i) { case 0: r += 3; break; case 1: sink--; break; case 2: r ^= 5; break; case 3: sink *= 3; break; case 4: r--; break; default: sink++; }'
            )
        # Inlined into a loop it would take more and more of the stack.
        if rng.random() < 0.2 and self.kinds[j] == 'noinline':
            lines.append('touch(alloca(16 + (i & 7) * 16));')
        if later and rng.random() < 0.4:
            lines.append(f'return {self.call(j, rng.choice(later))};')
        else:
            lines.append('return r + sink;')
        rng.shuffle(lines[1:-1])
        return self.prototype(j) + '\n{\n\t' + '\n\t'.join(lines) + '\n}\n'

    def source(self):
        text = HEAD + ''.join(self.prototype(j) + ';\n' for j in range(self.n))
        text += ''.join(self.body(j) for j in range(self.n))
        calls = '\n\t\t'.join(
            f'case {j}: sink += {self.call_from_main(j)}; break;' for j in range(self.n))
        return text + f'int main(void)\n{{\n\tprctl(PR_SET_PDEATHSIG, 9);\n\tfor (long i = 0;; i++)\n\t\tswitch (R({self.n})) {{\n\t\t{calls}\n\t\t}}\n}}\n'

    def call_from_main(self, j):
        return f'f{j}(' + ', '.join(self.value(j, k) for k in range(len(self.params[j]))) + ')'

    def is_right(self, function, name, value):
        j, k = int(function[1:]), int(name[1:])
        n, kind = self.number(j, k), self.params[j][k]
        if kind == 'char':
            return value == chr(n % SMALL) or value == n % SMALL
        if kind == 'struct two':
            return value['a'] % MODULUS == n and value['b'] % MODULUS == n
        if kind == 'struct big':
            return all(a % MODULUS == n for a in value['a']) and value['b'] == n
        return value % MODULUS == n


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
                for level in LEVELS:
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
