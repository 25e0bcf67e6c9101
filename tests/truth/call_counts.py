#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""As many events as calls, or a mark at a site that says beforehand why not: every function of Lua,
SQLite and Redis.

The same source is built at -O0 with a counter at each function's entry (-finstrument-functions,
hooks.c), and optimised; the optimised build is traced, all sites of all functions at once. For each
function with a body in both builds:

    equal        as many events as calls
    announced    not as many, and `cairn sites` says at one of its sites, or of the function, that this can happen
    explained    not as many, nothing said so, and what the program executed and libdw's reading of its debug information prove why:
                 call_counts/why.py, whose classes are counted
    open         neither: this fails

docs/accuracy.md says what the classes are. --lines shows a function line by line. What is announced
without need is counted too: marks that are everywhere would announce everything. And each site has
as many events as its instruction was executed.
"""
import argparse
import collections
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, 'call_counts')]
import common    # noqa: E402
import lines     # noqa: E402
import programs  # noqa: E402
import sources   # noqa: E402
import why       # noqa: E402

# The condition is never met: the kernel counts each hit and nothing is printed.
PROBE = '{}() if 1 == 0'
# Names given to one `cairn trace`.
BATCH = 600


def command(program, args):
    return f'{program} {args}'


def bodies(path):
    """{address: (name, line)} of the functions of a build, by libdw (which knows Clang's files of
    DWARF 5 not always)."""
    return {
        row[2]: (row[4], row[6])
        for row in common.dies(path)
        if row[0] == 'body' and row[3] and row[4]
    }


def counting_run(program, args):
    """{function: [(address the call returns to, calls)]} of one run of the counting build."""
    where = bodies(program)
    out = program + '.calls'
    env = dict(os.environ, CALL_COUNTS=out)
    code, _, err = common.run(['setarch', '-R', '/bin/sh', '-c', f'exec {program} {args}'], 300,
                              env=env)
    if not os.path.exists(out):
        raise RuntimeError(f'{program} {args}: exit code {code}, no counts: {err[-300:]}')
    counted = {key: [] for key in where.values()}
    with open(out, encoding='ascii') as file:
        for line in file:
            at, caller, n = (int(word, 16) for word in line.split())
            if at in where:
                counted[where[at]].append((caller, n))
    os.unlink(out)
    return counted


def calls(program, args):
    """{function: calls} of the counting build; functions whose number differs between two runs are
    left out."""
    first, second = ({
        key: sum(n
                 for _, n in rows)
        for key, rows in counting_run(program, args).items()
    }
                     for _ in range(2))
    differ = sorted(key[0] for key in first if first[key] != second.get(key))
    if differ:
        print(f'{program}: left out, since two runs differ: {" ".join(differ)}')
    return {key: n for key, n in first.items() if second.get(key) == n}


def sites(path):
    """{(name, line): its rows of `cairn sites`}; two functions of one name and line are left out.
    """
    names = sorted({row[4] for row in common.dies(path) if row[3] and row[4]})
    rows = collections.defaultdict(list)
    for at in range(0, len(names), BATCH):
        code, out, err = common.run([common.CAIRN, 'sites', path, '--json', *names[at:at + BATCH]],
                                    600)
        if code not in (0, 1):
            raise RuntimeError(f'cairn sites: {code}: {err[-500:]}')
        # A name without a site is a failure, and a line of its own.
        for row in common.json_lines(out):
            if 'error' not in row:
                rows[(row['function'], row['line'])].append(row)
    return {
        key: found
        for key, found in rows.items()
        if len({row['file']
                for row in found}) == 1 and found[0]['file']
    }


def summary(program, args, probes):
    out = program + '.events'
    cmd = [
        'setarch', '-R', common.CAIRN, 'trace', '--json', '--best-effort', '-o', out, '-c',
        command(program, args), *probes
    ]
    code, _, err = common.run(cmd, 900)
    last = []
    if os.path.exists(out):
        with open(out, encoding='utf-8') as file:
            last = file.read().splitlines()[-1:]
        os.unlink(out)
    if code != 0 or not last or 'summary' not in last[0]:
        raise RuntimeError(f'cairn trace: exit code {code}: {err[:800]}')
    return json.loads(last[0])


def events(program, args, where, keys):
    """{function: events}, and how many hits no program saw."""
    counted, missed = {}, 0
    for at in range(0, len(keys), BATCH):
        batch = keys[at:at + BATCH]
        told = summary(program, args, [
            PROBE.format(f'{os.path.basename(where[key][0]["file"])}:{key[1]}:{key[0]}')
            for key in batch
        ])
        counted.update((key, p['filtered'] + p['events']) for key, p in zip(batch, told['probes']))
        missed += told['missed']
    return counted, missed


def marks(rows):
    """What is said beforehand of a function: {mark: number of sites}."""
    found = collections.Counter()
    for row in rows:
        found.update(row.get('count_caveats') or ())
        # Refused: `cairn trace` says so and attaches nothing, unless --best-effort is given.
        found.update(['hazard'] if row['hazard'] else [])
    return found


def outcome(n_calls, n_events, announced):
    if n_calls == n_events:
        return 'equal, marked' if announced else 'equal'
    return 'announced' if announced else 'unannounced'


def executed_otherwise(label, prover, rows, where):
    """
    Functions whose events are not as many as their sites were executed.

    Those are two runs, one of them under Valgrind and much slower: Redis may log or answer once
    more. One in ten thousand is shown only.
    """
    differ = [(r, n) for r, n in ((r, prover.hits(where[r['function']]))
                                  for r in rows) if n != r['events']]
    text = [f'{r["function"][0]} ({r["events"]}, executed {n})' for r, n in differ]
    if differ:
        print(f'{label}: not as many events as executions in another run: {" ".join(text)}')
    return [t for t, (r, n) in zip(text, differ) if abs(n - r['events']) * 10000 > n]


def explain(label, made, args, rows, where):
    """Sets the classes of the functions that differ; says what is not explained of those that are
    not announced."""
    by_line = Lines(made, args)
    prover = why.Why(made[0], args, by_line.calls_of)
    for row in rows:
        if row['calls'] == row['events']:
            continue
        found, unexplained = prover.explain(row['function'], where[row['function']])
        row['classes'] = dict(found)
        if row['outcome'] == 'announced':
            continue
        row['outcome'] = 'open' if unexplained or not found else 'explained'
        for text in unexplained:
            print(f'    {label}: {row["function"][0]}: {text}')
    return executed_otherwise(label, prover, rows, where)


def compare(label, made, args):
    optimised, counting = made
    want, where = calls(counting, args), sites(optimised)
    functions = sorted(
        key for key in want if key in where and any(r['kind'] != 'part' for r in where[key]))
    got, missed = events(optimised, args, where, functions)
    rows = []
    for key in functions:
        said = marks(where[key])
        rows.append({
            'function': key, 'calls': want[key], 'events': got[key], 'marks': dict(said), 'outcome':
            outcome(want[key], got[key], said)
        })
    otherwise = explain(label, made, args, rows, where)
    report(label, rows, where, missed)
    with open(optimised + '.json', 'w', encoding='utf-8') as file:
        json.dump(rows, file, indent=1)
    common.claim(
        f'call_counts {label}: {len(rows)} functions; events are as many as calls, or a mark says why not, or it is proven that nothing could tell',
        rows and not missed and not any(r['outcome'] == 'open' for r in rows))
    if otherwise:
        print(f'{label}: not as many events as executions: {" ".join(otherwise)}')
    common.claim(
        f'call_counts {label}: each function has as many events as its sites were executed',
        not otherwise)


def report(label, rows, where, missed):
    called = [r for r in rows if r['calls'] or r['events']]
    counts = collections.Counter(r['outcome'] for r in called)
    n_sites = sum(len(p) for p in where.values())
    marked = sum(bool(r.get('count_caveats')) for p in where.values() for r in p)
    print(
        f'{label}: {len(called)} functions called of {len(rows)}: {counts["equal"]} equal, {counts["equal, marked"]} equal and marked, '
        f'{counts["announced"]} announced, {counts["explained"]} explained, {counts["open"]} open; {sum(r["calls"] for r in called)} calls, '
        f'{marked} of {n_sites} sites marked, {missed} hits lost')
    functions, n = collections.Counter(), collections.Counter()
    for row in called:
        if row['outcome'] == 'explained':
            functions[max(sorted(row['classes']), key=row['classes'].get)] += 1
            n.update(row['classes'])
    told = ', '.join(f'{functions[name]} {name} ({n[name]} calls)' for name, _ in n.most_common())
    print(f'{label}: the explained ones, by the class of most of their calls: {told or "none"}')
    for row in sorted(called, key=lambda r: (r['outcome'], -abs(r['calls'] - r['events']))):
        if row['outcome'] in ('announced', 'explained', 'open'):
            name, line = row['function']
            file = os.path.basename(where[row['function']][0]['file'])
            print(
                f'    {row["outcome"]:12} {file}:{line}:{name}: {row["calls"]} calls, {row["events"]} events {row["marks"] or ""} {row.get("classes") or ""}'
            )


def events_by_address(program, args, probe):
    """{address of a site: events}"""
    out = program + '.events'
    code, _, err = common.run([
        'setarch', '-R', common.CAIRN, 'trace', '--json', '--best-effort', '--no-move', '--ring',
        '131072', '-o', out, '-c',
        command(program, args), probe + '()'
    ], 900)
    if code != 0:
        raise RuntimeError(f'cairn trace: exit code {code}: {err[:800]}')
    with open(out, encoding='utf-8') as file:
        rows = [json.loads(line) for line in file]
    os.unlink(out)
    if rows[-1]['lost']:
        raise RuntimeError(f'{probe}: {rows[-1]["lost"]} events lost')
    return collections.Counter(int(row['address'], 16) for row in rows[:-1])


class Lines:
    """Calls and events line by line, of the functions of one program."""

    def __init__(self, made, args):
        self.optimised, counting = made
        self.counting, self.args = counting, args
        self.counted = counting_run(counting, args)

    def calls_of(self, key):
        return lines.calls_by_line(self.counting, self.counted.get(key, []))

    def of(self, key, rows):
        probe = f'{os.path.basename(rows[0]["file"])}:{key[1]}:{key[0]}'
        return lines.table(self.calls_of(key), rows,
                           events_by_address(self.optimised, self.args, probe))

    def show(self, names):
        for name in names:
            rows = common.cairn_sites(self.optimised, name)
            for line, path in sorted({(r['line'], r['file']) for r in rows}):
                lines.show(
                    f'{name}, declared at {path}:{line}',
                    self.of((name, line),
                            [r for r in rows if (r['line'], r['file']) == (line, path)]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--program', action='append', choices=sorted(programs.PROGRAMS))
    parser.add_argument('--compiler', action='append')
    parser.add_argument('--lines', nargs='+', metavar='FUNC', help='only show the calls and '
                        'events of these functions, line by line')
    options = parser.parse_args()
    missing = common.have('valgrind', 'objdump', 'strip', 'addr2line')
    if common.may_trace() or missing or common.dw_program('dies') is None:
        common.skip(
            'call_counts',
            common.may_trace()
            or (f'not installed: {" ".join(missing)}' if missing else 'libdw-dev is not installed'))
        return common.finish()
    for name in options.program or programs.PROGRAMS:
        for compiler in options.compiler or ('gcc', 'clang'):
            label = f'{name} by {compiler}'
            try:
                made, args = programs.PROGRAMS[name](compiler)
                if options.lines:
                    Lines(made, args).show(options.lines)
                    continue
                compare(label, made, args)
            except (sources.Unavailable, FileNotFoundError) as error:
                common.skip(f'call_counts {label}', re.sub(r'\s+', ' ', str(error))[-300:])
    return common.finish()


if __name__ == '__main__':
    main()
