#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares every traced call of generated programs with what the programs log themselves.

    calls.py [--seeds FIRST-LAST] [--configs NAME,...] [--tracer cairn|gdb] [--out DIR] [--seconds N]

See calls/gen.py for the idea, calls/match.py for how an event finds its call, calls/build.py for
the builds. One claim per way to build: no value is a lie that is not explained. The table tells the
rest: calls, events, missing, doubled, values compared, unavailable. Each lie is written to DIR
(default: truth/calls in the lab's folder) with source, DIE, code and what gdb says.

A lie does not count only if GCC's own dumps of the very build show one of its known bugs at that
argument of that function's copies (calls/gccdump.py); its page in docs/findings is named.
Everything else fails.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import shutil
import sys
import time
import traceback

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)),
                os.path.join(os.path.dirname(os.path.abspath(__file__)), 'calls')]
import build    # noqa: E402
import common   # noqa: E402
import emit     # noqa: E402
import match    # noqa: E402
import missing  # noqa: E402
import tracers  # noqa: E402
import triage   # noqa: E402

COLUMNS = [
    'functions', 'calls', 'events', 'missing', 'doubled', 'merged', 'values', 'unavailable',
    'unchecked', 'lies', 'unexplained'
]


def one_build(folder, config, meta, checksum, calls, options):
    """The match of one build, as plain data."""
    program = 'p.' + config[0]
    build.compile_program(folder, program, config[1], config[2])
    report = program + '.report'
    # A generator that slipped into undefined behaviour must not pass for a tracer's harm, nor for a
    # lie.
    build.run_program(folder, program, os.path.join(folder, report))
    if build.read_report(os.path.join(folder, report))[0] != checksum:
        return {'config': config[0], 'undefined': True}
    trace = tracers.trace_with_gdb if options.tracer == 'gdb' else tracers.trace_with_cairn
    started = time.monotonic()
    with_code = {row[4] for row in common.dies(os.path.join(folder, program)) if row[3] and row[2]}
    events = trace(folder, program, report, [f for f in meta['functions'] if f in with_code])
    took = time.monotonic() - started
    traced_checksum, objects = build.read_report(os.path.join(folder, report))
    calls = [dict(c) for c in calls]
    result = match.match(meta, calls, events, objects, with_code)
    if options.tracer == 'cairn':
        missing.explain(result, missing.Counts(folder, program, events))
    if result.lies:
        triage.verdicts(folder, program, meta, result.lies, objects)
        triage.pages(folder, config, program, result.lies)
    files = triage.write(folder, config, program, meta, result.lies, options.out)
    result.counts['unexplained'] = sum(lie['page'] is None for lie in result.lies)
    return {
        'config': config[0], 'counts': result.counts, 'took': took, 'files': files, 'harmed':
        traced_checksum != checksum, 'pages': dict(
            collections.Counter(lie['page'] for lie in result.lies if lie['page'])), 'missing': {
                k: len(v)
                for k, v in result.missing.items()
            }, 'missing_examples': {k: v[:3]
                                    for k, v in result.missing.items()}, 'doubled':
        {k: len(v)
         for k, v in result.doubled.items()}, 'doubled_examples':
        {k: v[:3]
         for k, v in result.doubled.items()}, 'reasons': result.reasons
    }


def one_seed(seed, options, deadline):
    folder = os.path.join(options.work, str(seed))
    rows = []
    try:
        meta = emit.write(seed, folder, options.functions)
        checksum, calls = build.call_log(folder)
    except (RuntimeError, OSError, ValueError) as error:
        return [{'config': 'log', 'error': f'seed {seed}: {error}'}]
    configs = [build.by_name(n)
               for n in options.configs.split(',')] if options.configs else build.configs_for(seed)
    for config in configs:
        if time.monotonic() > deadline:
            break
        try:
            rows.append(one_build(folder, config, meta, checksum, calls, options) | {'seed': seed})
        except (RuntimeError, OSError, ValueError, KeyError, TypeError) as error:
            text = traceback.format_exc()[-400:] if not isinstance(error,
                                                                   RuntimeError) else str(error)
            rows.append(
                {'config': config[0], 'error': f'seed {seed} {config[0]}: {text}', 'seed': seed})
    if not options.keep and not any(r.get('files') or r.get('error') for r in rows):
        shutil.rmtree(folder)
    return rows


def add_up(rows):
    """{config: totals}"""
    totals = {}
    for row in rows:
        if 'error' in row or 'undefined' in row:
            continue
        t = totals.setdefault(
            row['config'], {
                'counts': collections.Counter(), 'missing': collections.Counter(), 'took': 0.0,
                'doubled': collections.Counter(), 'reasons': collections.Counter(), 'pages':
                collections.Counter(), 'builds': 0
            })
        for key in ('counts', 'missing', 'doubled', 'reasons', 'pages'):
            t[key].update(row[key])
        t['took'] += row['took']
        t['builds'] += 1
    return totals


def show(totals):
    width = max([len(n) for n in totals] + [6])
    print(f'{"build":{width}} {"builds":>6} ' + ' '.join(f'{c:>11}' for c in COLUMNS))
    for name, t in sorted(totals.items()):
        print(f'{name:{width}} {t["builds"]:6} ' + ' '.join(f'{t["counts"][c]:11}'
                                                            for c in COLUMNS))
    total = {key: collections.Counter() for key in ('counts', 'missing', 'doubled', 'reasons')}
    for t in totals.values():
        for key, counter in total.items():
            counter.update(t[key])
    print(f'{"all":{width}} {sum(t["builds"] for t in totals.values()):6} ' + ' '.join(
        f'{total["counts"][c]:11}' for c in COLUMNS))
    print(
        f'events matched by serial {total["counts"]["matched"]}, by order {total["counts"]["by_order"]}, loosely '
        f'{total["counts"]["loose"]}, not at all {total["counts"]["unmatched"]}')
    for key in ('missing', 'doubled', 'reasons'):
        print(f'{key}: ' + ', '.join(f'{k} {v}' for k, v in total[key].most_common()))


def claims(rows, totals, prefix):
    errors = [r['error'] for r in rows if 'error' in r]
    for error in errors[:10]:
        print('error: ' + error)
    undefined = sorted({r['seed'] for r in rows if 'undefined' in r})
    if undefined:
        print(
            f'left out, the program itself computes something else when optimised: seeds {undefined}'
        )
    harmed = [r for r in rows if r.get('harmed')]
    for name, t in sorted(totals.items()):
        files = [f for r in rows if r.get('config') == name for f in r.get('files', [])]
        for path in files[:5]:
            print('lie: ' + path)
        counts = t['counts']
        for page, n in sorted(t['pages'].items()):
            print(f'{name}: {n} wrong values: docs/findings/{page}.md')
        common.claim(
            f'{prefix} {name}: {"no lie" if not t["pages"] else "no lie but those of known compiler bugs"} in '
            f'{counts["values"]} values of {counts["events"]} events', counts['unexplained'] == 0
            and counts['values'] > 0)
    doubled = collections.Counter(why for t in totals.values() for why in t['doubled'].elements())
    for why, n in sorted(doubled.items()):
        print(f'doubled: {n} {why}')
    common.claim(
        f'{prefix}: each second event of a call is announced at a site, or the debug information shows why',
        not any('not explained' in why for why in doubled))
    for row in harmed:
        print(f'harmed: seed {row["seed"]} {row["config"]}')
    common.claim(f'{prefix}: every traced program computes what it does untraced', not harmed
                 and bool(totals))
    common.claim(f'{prefix}: every build could be traced', not errors)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument('--seeds', default=os.environ.get('CAIRN_TRUTH_SEEDS', '1-60'))
    parser.add_argument('--functions', type=int, default=80)
    parser.add_argument('--configs')
    parser.add_argument('--tracer', choices=['cairn', 'gdb'], default='cairn')
    parser.add_argument('--out')
    parser.add_argument('--seconds', type=int, default=3000)
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    parser.add_argument('--keep', action='store_true')
    parser.add_argument('--name', default='calls')
    options = parser.parse_args()
    options.out = options.out or common.lab(options.name, 'lies')
    options.work = common.lab(options.name, 'work')
    os.makedirs(options.out, exist_ok=True)
    return options


def why_not(options):
    missing = common.have('gcc', 'clang', 'ld.lld', 'ld.gold', 'llvm-dwarfdump', 'objdump',
                          *(['gdb'] if options.tracer == 'gdb' else []))
    if missing:
        return 'not installed: ' + ' '.join(missing)
    if common.dw_program('dies') is None:
        return 'libdw-dev is not installed'
    return common.may_trace() if options.tracer == 'cairn' else None


def main():
    options = parse()
    reason = why_not(options)
    if reason:
        common.skip(options.name, reason)
        return common.finish()
    first, _, last = options.seeds.partition('-')
    seeds = range(int(first), int(last or first) + 1)
    deadline = time.monotonic() + options.seconds
    rows = []
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        for result in pool.map(one_seed, seeds, [options] * len(seeds), [deadline] * len(seeds)):
            rows += result
    totals = add_up(rows)
    show(totals)
    with open(os.path.join(options.out, 'rows.json'), 'w', encoding='utf-8') as file:
        json.dump(rows, file, indent=1)
    claims(rows, totals, options.name)
    return common.finish()


if __name__ == '__main__':
    main()
