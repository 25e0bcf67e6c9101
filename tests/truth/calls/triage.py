# SPDX-License-Identifier: BSD-2-Clause
"""Writes down all that is needed to tell whose fault a wrong value is.

One file per lie: source of the function, the place as Cairn describes it, its DIE with the chain of DIEs around it, the code around the
address, and whether gdb, asked at the same address, says the same.
"""
import json
import os
import re

import build
import common
import match
import tracers


def source_of(folder, function):
    for name in ('prog.h', 'a.c', 'b.c'):
        with open(os.path.join(folder, name), encoding='utf-8') as file:
            found = re.search(rf'^[^\n;]*\b{function}\([^\n;]*\)\n{{.*?^}}', file.read(), re.M | re.S)
        if found:
            return f'{name}:\n{found.group(0)}'
    return '(source not found)'


def place_of(path, lie):
    """What `cairn sites` says of the lie's place: the row whose address the event carries."""
    try:
        rows = common.cairn_sites(path, lie['function'])
    except (RuntimeError, OSError) as error:
        return None, str(error)
    for row in rows:
        if str(lie['place']) in (str(row.get(k)) for k in ('addr', 'address', 'at', 'place', 'die')):
            return row, json.dumps(row, indent=1)
    return None, '\n'.join(json.dumps(r) for r in rows)


def number(value):
    return value if isinstance(value, int) else int(str(value), 0)


def die_text(path, die):
    _, out, _ = common.run(['llvm-dwarfdump', f'--debug-info={die:#x}', '--show-parents', '--show-children',
                            '--parent-recurse-depth=3', path], 60)
    return out


def code_text(path, at):
    _, out, _ = common.run(['objdump', '-dl', '--no-show-raw-insn', f'--start-address={at - 48:#x}',
                            f'--stop-address={at + 48:#x}', path], 60)
    return out


def gdb_opinion(folder, program, meta, calls, lie, cache):
    """Does gdb, at the places libdw tells, print the same wrong value somewhere for this function and parameter?"""
    if program not in cache:
        try:
            events = tracers.trace_with_gdb(folder, program, program + '.gdbreport', list(meta['functions']))
            _, objects = build.read_report(os.path.join(folder, program + '.gdbreport'))
            cache[program] = match.match(meta, calls, events, objects, set(meta['functions'])).lies
        except RuntimeError as error:
            return f'gdb could not be asked: {error}'
    same = [l for l in cache[program] if l['function'] == lie['function'] and l['name'] == lie['name']]
    if not same:
        return 'gdb tells no lie about this parameter: probably ours'
    return f'gdb, too, tells {len(same)} lies about this parameter, such as ' + json.dumps(
        {k: same[0][k] for k in ('place', 'value', 'expected', 'how')})


def write(folder, config, program, meta, calls, lies, out):
    """Writes one file for the first lie of each function, parameter and place; returns their paths."""
    seen, paths, cache = set(), [], {}
    for lie in lies:
        key = (lie['function'], lie['name'], str(lie['place']))
        if key in seen or len(seen) >= 8:
            continue
        seen.add(key)
        path = os.path.join(folder, program)
        row, text = place_of(path, lie)
        call = None if lie['call'] is None else {k: v for k, v in lie['call'].items() if not k.startswith('seen')}
        parts = [f'seed {meta["seed"]}, {config[0]}: {config[1]} {" ".join(config[2])}', f'program {path}',
                 f'{lie["function"]}({lie["name"]}) at {lie["place"]}: traced {lie["value"]!r}, called with '
                 f'{lie["expected"]!r} ({lie["how"]})', 'event: ' + json.dumps(lie['args']), 'call: ' + json.dumps(call),
                 gdb_opinion(folder, program, meta, calls, lie, cache), 'PLACE', text]
        if row is not None:
            die, at = row.get('die'), row.get('addr', row.get('address', row.get('at')))
            parts += ['DIE', die_text(path, number(die))] if die is not None else []
            parts += ['CODE', code_text(path, number(at))] if at is not None else []
        parts += ['SOURCE', source_of(folder, lie['function'])]
        name = os.path.join(out, f'{meta["seed"]}-{config[0]}-{lie["function"]}-{lie["name"].strip("()")}-{len(paths)}.txt')
        with open(name, 'w', encoding='utf-8') as file:
            file.write('\n\n'.join(parts) + '\n')
        paths.append(name)
    return paths
