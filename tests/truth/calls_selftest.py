#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Does the comparison find what it is there to find? Faultless events pass; one fault each is put in and must be reported."""
import copy
import os
import random
import sys

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)),
                os.path.join(os.path.dirname(os.path.abspath(__file__)), 'calls')]
import build   # noqa: E402
import common  # noqa: E402
import emit    # noqa: E402
import match   # noqa: E402


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
        args = {n: shown(d, call['args'][n], objects) for n, d in meta['functions'][call['f']]['params']}
        events.append({'f': call['f'], 'place': 'x', 'args': {k: v for k, v in args.items() if v is not None}, 'why': {}})
    return events


def judge(meta, calls, events, objects):
    return match.match(meta, [dict(c) for c in calls], copy.deepcopy(events), objects, set(meta['functions']))


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
    objects = {name: 0x1000000 * (i + 1) for i, name in enumerate(build.read_report(os.path.join(folder, 'log.report'))[1])}
    events = perfect_events(meta, calls, objects)
    rng = random.Random(1)
    clean = judge(meta, calls, events, objects)
    common.claim('faultless events have no lie, none missing, none doubled',
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
    victim = next(e for e in broken if len(e['args']) > 1 and not meta['functions'][e['f']]['shape'] == 'pure')
    name = list(victim['args'])[0]
    victim['args'][name] = wrong(victim['args'][name])
    result = judge(meta, calls, broken, objects)
    common.claim('matched by order, a wrong value is found too', result.counts['lies'] == 1)
    return common.finish()


if __name__ == '__main__':
    main()
