#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Does the comparison find what it is there to find? Faultless events pass; one fault each is put
in and must be reported."""
import copy
import os
import random
import sys
import tempfile

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)),
                os.path.join(os.path.dirname(os.path.abspath(__file__)), 'calls')]
import build   # noqa: E402
import common  # noqa: E402
import emit    # noqa: E402
import gccdump  # noqa: E402
import gccweb   # noqa: E402
import match   # noqa: E402


# One program for each of GCC's bugs, in main or g, as in docs/findings; and one that is described
# rightly.
DEFECTS = [(gccdump.DEAD_NAME, '-O1', 'g', 'i', """volatile unsigned sink;
static inline void f(int i, unsigned s) { sink = s; }
__attribute__((noipa)) void g(unsigned s) { for (int i = 0; i < 7; i++) { s++; f(i, s); } }
int main(void) { g(100); return 0; }"""),
           (gccdump.REMOVED, '-O2', 'start', 'unused', """volatile int sink;
static inline void f(int depth, int unused) { sink = depth; if (depth == 0) return; sink = 5; f(depth - 1, unused + 1); sink = 6; }
__attribute__((noipa)) void start(int x) { f(x, 6); }
int main(void) { start(3); return 0; }"""),
           (gccdump.BEFORE_LOOP, '-O1', 'g', 'm', """volatile long sink;
static inline void f(long m) { sink = 1; }
__attribute__((noipa)) void g(long n, int *p) { long sum = 0; while (n--) sum += *p++; sink = sum; f(n); }
int a[8];
int main(void) { g(4, a); return 0; }"""),
           (gccdump.AFTER_STORE, '-Os', 'main', 's', """volatile int sink, n = 3;
unsigned counter;
__attribute__((noipa)) void use(unsigned a) { sink = a; }
static inline void f(unsigned s) { use(s * 37); }
int main(void) { for (int i = 0; i < n; i++) use(++counter); unsigned s = ++counter; f(s); return 0; }"""
            ),
           (gccdump.BEFORE_LOOP, '-O1', 'g', 'm', """volatile long sink;
static inline void f(long m) { sink = 1; }
__attribute__((noipa)) void g(int *p) { long sum = 0, n = 4; while (n--) sum += *p++; sink = sum; f(n); }
int a[8];
int main(void) { g(a); return 0; }"""),
           (gccweb.PAGE, '-O2 -funroll-loops', 'g', 'a', """volatile long sink;
static inline void f(long a) { sink = 1; }
__attribute__((noipa)) void g(long x) { long rest = x % 29; sink = rest; f(rest); sink = rest; }
int main(void) { g(100); return 0; }"""),
           (None, '-O2 -funroll-loops', 'g', 'a', """volatile long sink;
static inline void f(long a) { sink = 1; }
__attribute__((noipa)) void g(long x) { long rest = x & 29; sink = rest; f(rest); sink = rest; }
int main(void) { g(100); return 0; }"""),
           (None, '-O2', 'g', 'a', """volatile int sink;
static inline void f(int a) { sink = a; }
__attribute__((noipa)) void g(int x) { f(x + 2); }
int main(void) { g(4); return 0; }"""),]


def defects_are_found():
    for page, level, symbol, parameter, text in DEFECTS:
        with tempfile.TemporaryDirectory() as folder:
            for name, content in (('a.c', text), ('b.c', 'void unused(void) {}')):
                with open(os.path.join(folder, name), 'w', encoding='ascii') as file:
                    file.write(content + '\n')
            found = gccdump.Dumps(folder, [*level.split(), '-g']).bug(symbol, 'f', None,
                                                                      [parameter])
        common.claim(
            f'the dumps show {page}' if page else 'the dumps show no bug where there is none',
            found == page)


def opposites_have_eight_bits():
    for compared, holds in (('3 == 2', True), ('x_1 + 2', False)):
        function = gccdump.Function()
        function.blocks[2] = [
            f'  # DEBUG D#1 => {compared}', '  # DEBUG D#2 => ~D#1',
            '  # DEBUG a => (unsigned int) D#2'
        ]
        copy = gccdump.Copy(function, 2, 3, {'a': '(unsigned int) D#2'}, set())
        common.claim(
            f'the opposite of {compared} {"has eight bits" if holds else "is one of a number"}',
            copy.is_eight_bits('(unsigned int) D#2') == holds)


def shown(desc, logged, objects):
    """A value as a tracer would print it."""
    kind = desc['k']
    if kind == 'ptr' and not desc['str']:
        return None if logged is None else objects[logged[0]] + logged[1]
    if kind == 'struct':
        return {n: shown(d, logged[n], objects) for n, d in desc['members']}
    if kind == 'array':
        return [shown(desc['elem'], v, objects) for v in logged]
    if kind == 'float':
        return float.fromhex(logged)
    if kind == 'enum':
        return next((n for n, v in desc['names'].items() if v == logged), logged)
    return logged


def perfect_events(meta, calls, objects):
    events = []
    for call in calls:
        args = {
            n: shown(d, call['args'][n], objects)
            for n, d in meta['functions'][call['f']]['params']
        }
        events.append({
            'f': call['f'], 'site': 'x', 'args': {k: v
                                                  for k, v in args.items()
                                                  if v is not None}, 'why': {}
        })
    return events


def judge(meta, calls, events, objects):
    return match.match(meta, [dict(c) for c in calls], copy.deepcopy(events), objects,
                       set(meta['functions']))


def wrong(value):
    """The same value, slightly wrong."""
    if isinstance(value, dict):
        key = list(value)[0]
        return value | {key: wrong(value[key])}
    if isinstance(value, list):
        return [wrong(value[0])] + value[1:]
    if isinstance(value, str):
        return value + 'x'
    return value + 1


def each_value_counts(meta, calls, events, objects, rng):
    found = 0
    picks = [(i, n) for i, e in enumerate(events) for n in e['args'] if n != 'serial']
    picks = rng.sample(picks, 150)
    for i, name in picks:
        broken = copy.deepcopy(events)
        broken[i]['args'][name] = wrong(broken[i]['args'][name])
        result = judge(meta, calls, broken, objects)
        found += len(result.lies) == 1 and result.lies[0]['name'] == name
    return common.claim(f'a wrong value is found ({found} of {len(picks)})', found == len(picks))


def main():
    missing = common.have('gcc')
    if missing:
        common.skip('calls_selftest', 'gcc is not installed')
        return common.finish()
    folder = common.lab('selftest')
    meta = emit.write(7, folder, 40)
    _, calls = build.call_log(folder)
    objects = {
        name: 0x1000000 * (i + 1)
        for i, name in enumerate(build.read_report(os.path.join(folder, 'log.report'))[1])
    }
    events = perfect_events(meta, calls, objects)
    rng = random.Random(1)
    clean = judge(meta, calls, events, objects)
    common.claim(
        'faultless events have no lie, none missing, none doubled',
        (clean.counts['lies'], clean.counts['missing'], clean.counts['doubled']) == (0, 0, 0))
    each_value_counts(meta, calls, events, objects, rng)

    i = rng.randrange(len(events))
    result = judge(meta, calls, events[:i] + events[i + 1:], objects)
    common.claim('a missing event is counted', result.counts['missing'] == 1)
    result = judge(meta, calls, events[:i] + [events[i]] + events[i:], objects)
    common.claim('a doubled event is counted', result.counts['doubled'] == 1)
    broken = copy.deepcopy(events)
    broken[i]['args']['serial'] += 1
    result = judge(meta, calls, broken, objects)
    common.claim('a wrong serial is a lie', result.counts['lies'] >= 1)
    for event in broken:
        del event['args']['serial']
    result = judge(meta, calls, broken, objects)
    common.claim('without serials events are matched by order', result.counts['lies'] == 0
                 and result.counts['by_order'] > len(events) / 2)
    victim = next(e for e in broken
                  if len(e['args']) > 1 and not meta['functions'][e['f']]['shape'] == 'pure')
    name = list(victim['args'])[0]
    victim['args'][name] = wrong(victim['args'][name])
    result = judge(meta, calls, broken, objects)
    common.claim('matched by order, a wrong value is found too', result.counts['lies'] == 1)
    defects_are_found()
    opposites_have_eight_bits()
    return common.finish()


if __name__ == '__main__':
    main()
