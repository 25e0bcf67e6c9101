#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares every traced argument of generated C++ functions with what the functions print of their
arguments.

    passing.py [--seeds FIRST-LAST] [--name NAME]

Classes are generated with every mixture of special members (provided, defaulted, deleted, none, of
templates), bases, virtual functions and bases, members of all classes of the calling convention,
and without members. Functions, methods and constructors take and return them by value, between
scalars, in registers and on the stack. Each prints its arguments. One claim per build: no value
differs, and no argument is unavailable at an entry.
"""
import argparse
import collections
import json
import os
import random
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common   # noqa: E402

# A vector register cannot be read by a probe: such arguments only have to leave the others alone.
SCALARS = [
    'int', 'long', 'short', 'char', 'unsigned', 'unsigned char', 'bool', 'float', 'double',
    'const void *', 'long long', 'signed char', 'unsigned short', 'E8', '__int128', 'long double'
]
SSE = {'float', 'double', 'long double'}
BUILDS = [('gcc', 'g++', ['-O0']), ('gcc-O2', 'g++', ['-O2']),
          ('gcc-dwarf4', 'g++', ['-O0', '-gdwarf-4']), ('gcc-O1', 'g++', ['-O1', '-fno-ipa-sra']),
          ('clang', 'clang++', ['-O0']), ('clang-O2', 'clang++', ['-O2'])]


class Generator:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.lines, self.classes, self.members, self.functions = [], [], 0, 0
        self.calls, self.virtual_of, self.ancestors = [], {}, {}

    def member(self):
        self.members += 1
        return f'm{self.members}'

    # ---- classes ----

    def special_members(self, name):
        rng, lines = self.rng, []
        form = {
            'provided': f': {name}(1) {{{{ {{}} }}}}', 'defaulted': '= default;', 'deleted':
            '= delete;'
        }
        if rng.random() < 0.25:
            lines.append(f'~{name}() ' + rng.choice(['{ sink++; }', '= default;']))
        copy = rng.choice(['none', 'none', 'none', 'provided', 'defaulted', 'deleted'])
        move = rng.choice(['none', 'none', 'none', 'defaulted', 'deleted', 'provided'])
        if copy != 'none':
            lines.append(f'{name}(const {name} &o) ' + form[copy].format('(void)o;'))
        if move != 'none':
            lines.append(f'{name}({name} &&o) ' + form[move].format('(void)o;'))
        if rng.random() < 0.15:
            lines.append(f'{name} &operator=(const {name} &) = default;')
        if rng.random() < 0.1:
            lines.append(f'{name} &operator=({name} &&) {{ return *this; }}')
        if rng.random() < 0.15:
            lines.append(f'template <class U> {name}(U &&, U *) {{}}')
        if rng.random() < 0.15:
            lines.append(f'virtual int virtual_{name}() {{ return 1; }}')
        return lines

    def choose_bases(self, n):
        """Classes without a common ancestor, so that a cast to each is unambiguous."""
        bases, taken = [], set()
        for c in self.rng.sample(self.classes, min(n, len(self.classes))):
            if not taken & self.ancestors[c]:
                bases.append(c)
                taken |= self.ancestors[c]
        return bases

    def make_class(self, index):
        rng, name = self.rng, f'C{index}'
        bases = self.choose_bases(rng.choice([0, 0, 0, 1, 1, 2]))
        virtual = {b for b in bases if rng.random() < 0.15}
        fields, inits = [], []
        for base in bases:
            inits.append(f'{base}(s)')
        for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4])):
            m = self.member()
            if self.classes and rng.random() < 0.2:
                fields.append(f'{rng.choice(self.classes)} {m};')
                inits.append(f'{m}(s + {self.members})')
                continue
            t = rng.choice(SCALARS)
            bits = f' : {rng.randint(1, 7)}' if t == 'int' and rng.random() < 0.3 else ''
            fields.append(f'{t} {m}{bits};')
            inits.append(f'{m}(make<{t}>(s + {self.members}))'
                         if not bits else f'{m}((s + {self.members}) & 1 ? -1 : 0)')
        key = rng.choice(['struct', 'class'])
        special = self.special_members(name)
        heads = ', '.join(('virtual ' if b in virtual else '') + 'public ' + b for b in bases)
        # A virtual base is made by the most derived class, which has to name it.
        all_virtual = sorted(virtual | set().union(*(self.virtual_of[b] for b in bases)))
        inits = [f'{v}(s)' for v in all_virtual if v not in bases] + inits
        self.virtual_of[name] = set(all_virtual)
        self.ancestors[name] = {name}.union(*(self.ancestors[b] for b in bases))
        self.lines += [f'{key} {name}{" : " + heads if heads else ""} {{', 'public:'
                       ] + ['\t' + f for f in fields]
        constructor = f'\texplicit {name}(int s){" : " + ", ".join(inits) if inits else ""} {{ (void)s; }}'
        self.lines += [constructor] + ['\t' + s for s in special]
        shows = []
        for f in fields:
            m = f.rstrip(';').split(' : ')[0].split()[-1]
            shows.append(f'put(c.{m}, "{m}");')
        for b in bases:
            if b not in virtual:
                shows.append(f'put(static_cast<const {b} &>(c), "");')
        self.lines += [
            '};',
            f'static inline void put(const {name} &c, const char *) {{ (void)c; {" ".join(shows)} }}',
            ''
        ]
        self.classes.append(name)

    # ---- functions ----

    def parameters(self):
        rng = self.rng
        types = [rng.choice(self.classes) if rng.random() < 0.5 else rng.choice(SCALARS)
                 for _ in range(rng.choice([1, 2, 3, 3, 4, 5, 7, 9]))]
        return [(t, f'p{i}') for i, t in enumerate(types)]

    def body(self, name, params):
        shows = ' '.join(f'begin("{p}"); put({p}, "");' for _, p in params)
        return f'start("{name}"); {shows} end();'

    def arguments(self, params):
        return ', '.join(f'{t}({self.rng.randint(1, 90)})' if t in self.virtual_of else
                         f'make<{t}>({self.rng.randint(1, 90)})' for t, _ in params)

    def make_function(self):
        rng, name = self.rng, f'f{self.functions}'
        self.functions += 1
        params = self.parameters()
        text = ', '.join(f'{t} {p}' for t, p in params)
        result = rng.choice(self.classes) if rng.random() < 0.4 else rng.choice(
            ['int', 'void', 'double', 'long'])
        value = {'void': 'return;'}.get(result, f'return {result}(1);')
        if rng.random() < 0.3:
            self.lines += [
                f'struct M{name} {{', f'\tint filler;', f'\tNOINLINE {result} {name}({text});',
                '};', f'{result} M{name}::{name}({text}) {{ {self.body(name, params)} {value} }}'
            ]
            self.calls.append(f'{{ M{name} m; m.{name}({self.arguments(params)}); }}')
        else:
            self.lines.append(
                f'NOINLINE {result} {name}({text}) {{ {self.body(name, params)} {value} }}')
            self.calls.append(f'{name}({self.arguments(params)});')

    def make_constructor(self):
        name = f'f{self.functions}'
        self.functions += 1
        params = [(t, p) for t, p in self.parameters()]
        text = ', '.join(f'{t} {p}' for t, p in params)
        virtual = self.rng.random() < 0.5
        base = 'virtual Root' if virtual else 'Root'
        pad = 'virtual ~%s() {}' % name if self.rng.random() < 0.3 else ''
        # An implicit copy constructor has the line of its class.
        self.lines += [
            f'struct {name} : {base} {{', f'\tNOINLINE {name}({text});', f'\tint x; {pad} }};',
            f'{name}::{name}({text}) : Root(1), x(2) {{ {self.body(name, params)} }}',
            f'struct D{name} : {name} {{ NOINLINE D{name}() : {"Root(2), " if virtual else ""}'
            f'{name}({self.arguments(params)}) {{}} }};'
        ]
        self.calls += [
            f'{{ {name} v({self.arguments(params)}); sink += v.x; }}',
            f'{{ D{name} v; sink += v.x; }}'
        ]

    def program(self):
        self.lines = [PRELUDE]
        for i in range(24):
            self.make_class(i)
        for _ in range(40):
            self.make_function()
        for _ in range(12):
            self.make_constructor()
        return '\n'.join(self.lines + ['int main()', '{'] + ['\t' + c for c in self.calls] +
                         ['\treturn 0;', '}', ''])

PRELUDE = '''\
#include <stdio.h>
#include <type_traits>
#include <utility>
#define NOINLINE __attribute__((noinline, noclone))
enum E8 : signed char { E8_a = -1, E8_b = 5 };
int sink;
template <class T> static T make(int s) { return (T)(s * 37 - 700); }
template <> const void *make<const void *>(int s) { return (const void *)(unsigned long)(s * 4096); }
template <> E8 make<E8>(int s) { return s & 1 ? E8_a : E8_b; }
static bool first;
static void start(const char *f) { printf("%s", f); }
static void begin(const char *p) { printf(" %s", p); first = true; }
static void end() { puts(""); fflush(stdout); asm volatile("" ::: "memory"); }
static void value(const char *m, const char *text) { printf("%s%s=%s", first ? ":" : ",", m, text); first = false; }
template <class T> static typename std::enable_if<std::is_integral<T>::value || std::is_enum<T>::value>::type
put(T v, const char *m) { char s[64]; snprintf(s, sizeof(s), "%lld", (long long)v); value(m, s); }
static void put(__int128 v, const char *m) { char s[64]; snprintf(s, sizeof(s), "%lld", (long long)v); value(m, s); }
static void put(const void *v, const char *m) { char s[64]; snprintf(s, sizeof(s), "%lld", (long long)v); value(m, s); }
static void put(double v, const char *m) { char s[64]; snprintf(s, sizeof(s), "%.0f", v); value(m, s); }
static void put(float v, const char *m) { put((double)v, m); }
static void put(long double v, const char *m) { put((double)v, m); }
struct Root { int r; explicit Root(int s) : r(s) {} };
'''


# ---- what Cairn says ----

def number(value):
    """A scalar as the programs print it. A string is an enumerator, a char, or a number that JSON
    has no room for."""
    if isinstance(value, (bool, int)):
        return str(int(value))
    if isinstance(value, float):
        return f'{value:.0f}'
    if value in ('E8_a', 'E8_b'):
        return '-1' if value == 'E8_a' else '5'
    if len(value) == 1:
        return str(ord(value))
    return str(int(value, 0))


def leaves(value, out):
    """Values by the names of their members; a class that is in an object twice gives two."""
    for name, inner in value.items():
        if isinstance(inner, dict):
            leaves(inner, out)
        elif re.fullmatch(r'm\d+', name):
            out[name].append(number(inner))
    return out


class Stats:
    def __init__(self):
        self.calls = self.compared = 0
        self.unavailable, self.wrong = collections.Counter(), []


def compare(call, event, stats):
    name, *shown = call.split(' ')
    stats.calls += 1
    for text in shown:
        param, _, fields = text.partition(':')
        got = event['args'].get(param, {'unavailable': 'the parameter is not there'})
        if isinstance(got, dict) and 'unavailable' in got:
            stats.unavailable[got['unavailable']] += 1
            continue
        got = leaves(got, collections.defaultdict(list)) if isinstance(
            got, dict) else {'': [number(got)]}
        printed = by_key([f.split('=') for f in fields.split(',')] if fields else [],
                         lambda f: f[0])
        for member, values in printed.items():
            stats.compared += len(values)
            if sorted(v for _, v in values) != sorted(got.get(member, [])):
                stats.wrong.append(f'{name} {param} {member}: {got.get(member)}, printed {values}')


def trace(program, functions):
    cmd = [common.CAIRN, 'trace', '--json', '-o', program + '.events', '-c', program, *functions]
    code, out, err = common.run(cmd, 120)
    if code != 0:
        raise RuntimeError(f'cairn trace: status {code}: {err[-1500:]}')
    with open(program + '.events', encoding='utf-8') as file:
        events = [json.loads(line) for line in file]
    return out, [e for e in events if 'args' in e]


def by_key(items, key_of):
    ret = collections.defaultdict(list)
    for item in items:
        ret[key_of(item)].append(item)
    return ret


def probes(program, n):
    """Constructors by their symbols, as those of a class have one name; and the names that have
    two, with code each."""
    rows = [line.split() for line in common.run(['nm', program])[1].splitlines()]
    found = {}
    for at, _, symbol in (row for row in rows if len(row) == 3):
        m = re.match(r'_ZN\d+(f\d+)C[12]E', symbol)
        if m and not re.search(r'E(RKS_|OS_)$', symbol):
            found.setdefault(m.group(1), {})[at] = symbol
    names = [f'f{i}' for i in range(n) if f'f{i}' not in found]
    symbols = [s for variants in found.values() for s in variants.values()]
    return [f'{program}:{f}' for f in names + symbols], {f for f in found if len(found[f]) == 2}


def without_doubles(events, doubled):
    """Two constructors may be one function, and have two probes then; they are called in turn."""
    return [e for i, e in enumerate(events) if e['function'].split('::')[-1] not in doubled or
            e['address'] not in (x['address'] for x in events[max(i - 1, 0):i])]


def one_build(folder, seed, build, stats):
    generator = Generator(seed)
    source, program = os.path.join(folder, f'p{seed}.cc'), os.path.join(
        folder, f'p{seed}.{build[0]}')
    with open(source, 'w', encoding='utf-8') as file:
        file.write(generator.program())
    flags = ['-g', '-std=c++17', '-w', *build[2]]
    common.compile_c([source], program, flags, build[1])
    functions, doubled = probes(program, generator.functions)
    out, events = trace(program, functions)
    events = without_doubles(events, doubled)
    calls = by_key([line for line in out.splitlines() if line.startswith('f')],
                   lambda line: line.split(' ')[0])
    seen = by_key(events, lambda e: e['function'].split('::')[-1])
    for name, lines in calls.items():
        if len(lines) != len(seen[name]):
            stats.wrong.append(f'{name}: {len(lines)} calls, {len(seen[name])} events')
        for line, event in zip(lines, seen[name]):
            compare(line, event, stats)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--seeds', default='1-20')
    parser.add_argument('--name', default='passing')
    options = parser.parse_args()
    first, last = (int(x) for x in options.seeds.split('-'))
    folder = common.lab(options.name)
    for build in BUILDS:
        name = f'{build[0]}: each argument of C++ functions is what the function prints'
        if common.have(build[1]):
            common.skip(name, f'no {build[1]}')
            continue
        if os.geteuid() != 0:
            common.skip(name, 'tracing needs root')
            continue
        stats = Stats()
        for seed in range(first, last + 1):
            one_build(folder, seed, build, stats)
        for line in stats.wrong[:20]:
            print('  ' + line)
        print(
            f'  {build[0]}: {stats.calls} calls, {stats.compared} values, {len(stats.wrong)} wrong; unavailable: '
            f'{dict(stats.unavailable)}')
        common.claim(name, stats.compared > 0 and not stats.wrong)
    common.finish()


main()
