#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tables of a million hits: of all kinds and by all keys, against the same hits printed as events
and summed up here, and against what the program itself has logged of its calls.

    aggregates.py [CALLS]     1000000 unless told otherwise

aggregates/calls.c makes the calls from four threads on their own processors. All tables and the
events are of one run: each is a trace of its own of the same process, attached before it begins.
Every value of every row is compared, histograms bucket by bucket."""
import collections
import fractions
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), 'cli')]
import common  # noqa: E402
import test_trace_aggregate as sums  # noqa: E402

CALLS = 1000000
CALL = struct.Struct('<QiHhBBBBB3x')
TEXTS = ['a', 'bb', 'a longer one', '', None, 'café "q"', '0123456789' * 7, '/index.html']
STR_LEN = 63
KEYS_MAX = 1000
HIT = 'hit'
# The frames of hit() and of its callers in the program, innermost first.
WAYS = [['hit', 'call', 'way_0', 'go', 'run'], ['hit', 'call', 'way_1', 'go', 'run'],
        ['hit', 'call', 'way_1', 'way_2', 'go', 'run'],
        ['hit', 'call'] + ['way_3'] * 4 + ['go', 'run']]


def everything(name, lhist=None):
    words = sums.everything(name, lhist)
    return words + ['--quantiles', name]


LHISTS = {
    'n': (-1000, 1000, 100),
    'u': (-1 << 60, 1 << 62, 1 << 60),
    'h': (-100, 100, 1),
    'y': (0, 256, 16)
}
# Each table: the words that ask for it, the number in it, the key of a row and of a call.
TABLES = {
    'by a character and $tid': ('n', ['--by', 'c,$tid'], lambda by: (by['c'], by['$tid']), lambda c:
                                (c['c'], c['tid'])),
    'by a string, numbers of 64 bits':
    ('u', ['--by', 's'], lambda by: text_key(by['s']), lambda c: text_key(c['s'])),
    'by an expression and a character': ('h', ['--by', 'n % 7,c'], lambda by:
                                         (by['n % 7'], by['c']), lambda c:
                                         (remainder(c['n'], 7), c['c'])),
    'by $pid, $comm and $cpu': ('y', ['--by', '$pid,$comm,$cpu'], lambda by:
                                (by['$pid'], by['$comm'], by['$cpu']), lambda c:
                                (c['pid'], c['comm'], c['cpu'])),
    'by nothing': ('n', [], lambda by: (), lambda c: ()),
}


def remainder(a, b):
    return abs(a) % b * (-1 if a < 0 else 1)


def text_key(text):
    """What is kept of it; NULL is a key of its own."""
    if text is None or isinstance(text, dict):
        return None
    return text.encode()[:STR_LEN].decode()


# ---- one run ----


class Trace:
    """One of the traces of the process."""

    def __init__(self, folder, number, pid, words, probe):
        self.out, self.err = (os.path.join(folder, f'{number}.{end}') for end in ('out', 'err'))
        with open(self.err, 'w', encoding='utf-8') as err:
            self.process = subprocess.Popen([
                common.CAIRN, 'trace', '--json', '--no-cache', '--max-slowdown', 'off', '-o',
                self.out, '-p',
                str(pid), *words, probe
            ],
                                            stdin=subprocess.DEVNULL,
                                            stderr=err,
                                            stdout=subprocess.DEVNULL)

    def wait_attached(self):
        for _ in range(600):
            with open(self.err, encoding='utf-8') as file:
                text = file.read()
            if 'attached' in text:
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise RuntimeError(text[-800:])

    def objects(self, **kwargs):
        """Of the finished trace; averages stay as exact as they are printed."""
        if self.process.wait(300) != 0:
            with open(self.err, encoding='utf-8') as file:
                raise RuntimeError(file.read()[-800:])
        with open(self.out, encoding='utf-8') as file:
            for line in file:
                yield json.loads(line, **kwargs)

    def table(self):
        found = list(self.objects(parse_float=fractions.Fraction))
        summary = found[-1]
        if summary['failed'] or any(p['lost'] for p in summary['probes']):
            raise RuntimeError(f'hits are missing: {summary}')
        return next(o for o in found if 'rows' in o), summary


def words_of(name):
    number, by, _, _ = TABLES[name]
    return everything(number, LHISTS[number]) + by


def run(folder, calls):
    """All traces of one run by name, and the program's calls."""
    path = common.compile_c([os.path.join(HERE, 'aggregates', 'calls.c')],
                            os.path.join(folder, 'calls'),
                            ['-O2', '-g', '-pthread', '-fno-optimize-sibling-calls'])
    log = os.path.join(folder, 'log')
    with subprocess.Popen([path, log, str(calls)], stdin=subprocess.PIPE) as process:
        traces = {
            'events': (['--ring', '65536'], 'hit(n, u, h, y, c, s, k)'),
            'keys': (['--max-keys', '20000', *everything('h')[:-2], '--by', 'k'], HIT),
            'full': (['--max-keys',
                      str(KEYS_MAX), *everything('h')[:-2], '--by', 'k,$tid'], HIT),
            'stacks': (['--by', '$stack', '--sum', 'n'], HIT),
            'callers': (['--by', '$caller', '--sum', 'n'], HIT),
            **{name: (words_of(name), HIT)
               for name in TABLES}
        }
        try:
            traces = {
                name: Trace(folder, i, process.pid, words, probe)
                for i, (name, (words, probe)) in enumerate(traces.items())
            }
            for trace in traces.values():
                trace.wait_attached()
            process.stdin.write(b'g')
            process.stdin.close()
            process.wait(500)
        finally:
            process.kill()
    return traces, calls_of(log, process.pid)


def calls_of(log, pid):
    """What the program has called."""
    with open(log, 'rb') as file:
        threads = [json.loads(line) for line in iter(file.readline, b'\n')]
        data = file.read()
    names = ('u', 'n', 'k', 'h', 'y', 'c', 's', 'way', 'thread')
    found = []
    for fields in CALL.iter_unpack(data):
        call = dict(zip(names, fields))
        call.update(threads[call['thread']], c=chr(call['c']), s=TEXTS[call['s']], pid=pid)
        found.append(call)
    return found


# ---- claims ----


def judge(name, check, *args):
    """A claim that an assertion refutes."""
    try:
        shown = check(*args)
    except (AssertionError, RuntimeError, KeyError) as error:
        print(f'{name}: {str(error)[:1500]}')
        return common.not_ok(f'aggregates: {name}')
    return common.ok(f'aggregates: {name}' + (f' ({shown})' if shown else ''))


def expect(condition, *shown):
    if not condition:
        raise AssertionError(' '.join(str(s)[:500] for s in shown))


def same_events(trace, calls):
    """Each event is one call: the same values as often, of the same thread."""
    names = ('u', 'n', 'k', 'h', 'y', 'c')

    def key(values, tid, comm):
        return (*(values[name] for name in names), text_key(values['s']), tid, comm)

    wanted = collections.Counter(key(c, c['tid'], c['comm']) for c in calls)
    found, summary = collections.Counter(), None
    for event in trace.objects():
        if 'args' in event:
            found[key(event['args'], event['tid'], event['comm'])] += 1
        else:
            summary = event
    expect(sum(p['lost'] for p in summary['probes']) == 0, summary)
    expect(found == wanted, list((found - wanted).items())[:3], list((wanted - found).items())[:3])
    return f'{sum(found.values())} events'


def same_quantiles(row, numbers, name):
    for quantile in (row['quantiles'][name], ):
        sums.expect_quantiles(quantile, numbers, row['by'] if 'by' in row else '')


def same_table(name, trace, calls):
    number, _, key_of_row, key_of_call = TABLES[name]
    table, _ = trace.table()
    by_key = sums.groups(calls, key_of_call)
    expect(
        len(table['rows']) == len(by_key) and not table['others'], len(table['rows']), len(by_key),
        table['others'])
    for row in table['rows']:
        numbers = [c[number] for c in by_key[key_of_row(row.get('by', {}))]]
        sums.same_row(row, numbers, number, LHISTS[number])
        same_quantiles(row, numbers, number)
    expect(table['count'] == len(calls), table['count'])
    return f'{len(table["rows"])} rows, {table["count"]} hits'


def same_keys(trace, calls):
    table, _ = trace.table()
    by_key = sums.groups(calls, lambda c: c['k'])
    expect(len(by_key) >= 10000 or len(calls) < 1000000, len(by_key))
    expect(len(table['rows']) == len(by_key) and not table['others'], len(table['rows']))
    for row in table['rows']:
        sums.same_row(row, [c['h'] for c in by_key[row['by']['k']]], 'h')
    return f'{len(by_key)} keys'


def same_others(trace, calls):
    table, _ = trace.table()
    by_key = sums.groups(calls, lambda c: (c['k'], c['tid']))
    expect(len(table['rows']) == KEYS_MAX and len(table['others']) == 1, len(table['rows']))
    rest = set(by_key)
    for row in table['rows']:
        key = row['by']['k'], row['by']['$tid']
        sums.same_row(row, [c['h'] for c in by_key[key]], 'h')
        rest.discard(key)
    numbers = [c['h'] for key in rest for c in by_key[key]]
    sums.same_row(table['others'][0], numbers, 'h')
    return f'{len(numbers)} hits of {len(rest)} keys without a row'


def names_of(stack):
    """The functions of a stack up to the thread's own, innermost first."""
    names = [g['function'] for frame in stack['frames'] for g in frame['functions']]
    return names[:names.index('run') + 1] if 'run' in names else names


def way_of(names):
    """Which way it is; None: only its inner part was walked. -1: there is no such stack."""
    if names in WAYS:
        return WAYS.index(names)
    return None if any(way[:len(names)] == names for way in WAYS) else -1


def same_stacks(trace, calls):
    table, summary = trace.table()
    by_way = sums.groups(calls, lambda c: c['way'])
    found, rest = collections.Counter(), sum(row['count'] for row in table['others'])
    total = collections.Counter()
    for row in table['rows']:
        way = way_of(names_of(row['by']['$stack']))
        expect(way != -1, 'no such stack', names_of(row['by']['$stack']))
        if way is None:
            rest += row['count']
        found[way] += row['count']
        total[way] += row['sum']['n']
    del found[None]
    for way, of in by_way.items():
        expect(found[way] <= len(of), way, found[way], len(of))
        if not rest and not summary['lost'] + summary['missed']:
            expect(total[way] == sum(c['n'] for c in of), way)
    expect(
        sum(found.values()) + rest + summary['lost'] + summary['missed'] == len(calls), found, rest,
        summary)
    expect(rest + summary['missed'] < len(calls) / 100, rest, summary)
    return f'{sum(found.values())} hits by whole stacks, {rest} by cut ones'


def same_callers(trace, calls):
    """Of the callers, the function with the copy of call()."""
    table, _ = trace.table()
    wanted = sums.groups(calls, lambda c: {2: 1}.get(c['way'], c['way']))
    found, total = collections.Counter(), collections.Counter()
    for row in table['rows']:
        text = json.dumps(row['by']['$caller'])
        way = re.search(r'way_(\d)', text)
        expect(way, text)
        found[int(way[1])] += row['count']
        total[int(way[1])] += row['sum']['n']
    expect(found == {way: len(of) for way, of in wanted.items()}, found)
    expect(total == {way: sum(c['n'] for c in of) for way, of in wanted.items()}, total)
    return f'{len(table["rows"])} rows'


def main():
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else CALLS
    reason = common.may_trace()
    if reason:
        common.skip('aggregates', reason)
        return common.finish()
    with tempfile.TemporaryDirectory(prefix='cairn-aggregates-') as folder:
        traces, log = run(folder, calls)
        judge('the events are the calls', same_events, traces['events'], log)
        for name in TABLES:
            judge(f'{name}, every value is that of the calls', same_table, name, traces[name], log)
        judge('more than 10,000 keys', same_keys, traces['keys'], log)
        judge('what finds no room is among the others', same_others, traces['full'], log)
        judge('by $stack', same_stacks, traces['stacks'], log)
        judge('by $caller', same_callers, traces['callers'], log)
    return common.finish()


if __name__ == '__main__':
    main()
