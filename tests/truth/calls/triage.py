# SPDX-License-Identifier: BSD-2-Clause
"""Writes down all that is needed to tell whose fault a wrong value is.

One file per lie: source of the function, the site as Cairn describes it, its DIE with the chain of
DIEs around it, the code around the address, and whether gdb, asked at the same address, says the
same.
"""
import json
import os
import re

import build
import common
import gccdump
import match
import tracers


def source_of(folder, function):
    for name in ('prog.h', 'a.c', 'b.c'):
        with open(os.path.join(folder, name), encoding='utf-8') as file:
            found = re.search(rf'^[^\n;]*\b{function}\([^\n;]*\)\n{{.*?^}}', file.read(),
                              re.M | re.S)
        if found:
            return f'{name}:\n{found.group(0)}'
    return '(source not found)'


def site_of(path, lie):
    """What `cairn sites` says of the lie's site: the row whose address the event carries."""
    try:
        rows = common.cairn_sites(path, lie['function'])
    except (RuntimeError, OSError) as error:
        return None, str(error)
    for row in rows:
        if str(lie['site']) in (str(row.get(k)) for k in ('addr', 'address', 'at', 'site', 'die')):
            return row, json.dumps(row, indent=1)
    return None, '\n'.join(json.dumps(r) for r in rows)


def number(value):
    return value if isinstance(value, int) else int(str(value), 0)


def die_text(path, die):
    _, out, _ = common.run([
        'llvm-dwarfdump', f'--debug-info={die:#x}', '--show-parents', '--show-children',
        '--parent-recurse-depth=3', path
    ], 60)
    return out


def code_text(path, at):
    _, out, _ = common.run(['objdump', '-dl', '--no-show-raw-insn', f'--start-address={at - 48:#x}',
                            f'--stop-address={at + 48:#x}', path], 60)
    return out


def relative(value, objects):
    """A pointer as (object, offset), so that two runs can be compared; anything else as it is."""
    if isinstance(value, list):
        value = value[1] if len(value) == 2 and isinstance(value[1], str) else value[0]
    address = match.as_int(value) if isinstance(value,
                                                (int,
                                                 str)) and not isinstance(value, bool) else None
    if address is not None:
        for name, base in objects.items():
            if 0 <= address - base < 40000:
                return name, address - base
        return address
    return value


def gdb_at_sites(folder, program, lies):
    """{(function, site): its hits in order} as gdb sees them at the addresses of the lies, and the
    objects of that run."""
    keys = sorted({(l['function'], str(l['site'])) for l in lies})
    report = os.path.join(folder, program + '.gdbreport')
    path = os.path.join(folder, program)
    job = {
        'program': path, 'args': [report], 'output': path + '.gdbout', 'entry':
        tracers.entry_address(path), 'sites':
        [{'id': i, 'at': number(at), 'function': f} for i, (f, at) in enumerate(keys)]
    }
    seen = {}
    for record in tracers.run_gdb(job, folder, program):
        seen.setdefault(keys[record['id']], []).append(record['args'])
    return seen, build.read_report(report)[1]


def is_same(value, expected_name, theirs, objects, their_objects, desc):
    """Did gdb read the very value that Cairn printed?"""
    if expected_name not in theirs:
        return False
    if desc['k'] == 'enum' and value in desc['names']:
        value = desc['names'][value]
    mine, other = relative(value, objects), relative(theirs[expected_name], their_objects)
    if isinstance(mine, int) and isinstance(other, int):
        return (mine - other) % 2 ** desc.get('bits', 64) == 0
    return mine == other


def verdicts(folder, program, meta, lies, objects):
    """Sets lie['whose']: "compiler" where gdb, at the same stop, reads the same wrong value from
    the same debug information; else "ours"."""
    try:
        seen, their_objects = gdb_at_sites(folder, program, lies)
    except (RuntimeError, OSError) as error:
        print(f'{program}: gdb could not be asked: {error}')
        seen, their_objects = {}, {}
    for lie in lies:
        hits = seen.get((lie['function'], str(lie['site'])), [])
        theirs = hits[lie['hit']] if lie['hit'] < len(hits) else {}
        descs = dict(meta['functions'][lie['function']]['params'])
        names = [n for n in lie['args'] if n in descs] if lie['name'] == '(all)' else [lie['name']]
        same = all(
            is_same(lie['args'].get(n), n, theirs, objects, their_objects, descs[n]) for n in names)
        lie['whose'] = 'compiler' if same else 'ours'


def called_at(row):
    call = row.get('call') or {}
    return os.path.basename(call.get('file') or ''), call.get('line')


def pages(folder, config, program, lies):
    """Sets lie['page']: the page of docs/findings that explains it, found in GCC's own dumps; None
    when they show nothing."""
    dumps, symbols = gccdump.Dumps(folder, config[2]), {}
    for lie in lies:
        lie['page'] = None
        if config[1] != 'gcc' or '-flto' in config[2]:
            continue
        if lie['function'] not in symbols:
            rows = common.cairn_sites(os.path.join(folder, program), lie['function'])
            at = symbols.setdefault(lie['function'], {})
            for row in rows:
                if row['kind'] != 'part':
                    at.setdefault(str(row['addr']), []).append((row['symbol'], called_at(row)))
        # Copies that begin at one address: it may be any of them.
        copies = symbols[lie['function']].get(str(lie['site']), [(None, None)])
        names = [lie['name']] if lie['name'] != '(all)' else list(lie['args'])
        # With a wrong serial an event is compared with another call, and all its arguments seem
        # wrong.
        if 'serial' in lie['args'] and lie['how'] == 'matched':
            names.append('serial')
        found = {dumps.bug(symbol, lie['function'], call, names) for symbol, call in copies}
        lie['page'] = min(found - {None}, default=None)


def write(folder, config, program, meta, lies, out):
    """Writes one file for the first lie of each function, parameter and site; returns their paths.
    """
    seen, paths = set(), []
    for lie in sorted(lies, key=lambda l: l['page'] is not None):
        key = (lie['function'], lie['name'], str(lie['site']))
        if key in seen or len(seen) >= 8:
            continue
        seen.add(key)
        path = os.path.join(folder, program)
        row, text = site_of(path, lie)
        call = None if lie['call'] is None else {
            k: v
            for k, v in lie['call'].items()
            if not k.startswith('seen')
        }
        parts = [
            f'seed {meta["seed"]}, {config[0]}: {config[1]} {" ".join(config[2])}',
            f'program {path}',
            f'{lie["function"]}({lie["name"]}) at {lie["site"]}: traced {lie["value"]!r}, called with '
            f'{lie["expected"]!r} ({lie["how"]})', 'event: ' + json.dumps(lie['args']),
            'call: ' + json.dumps(call),
            f'explained by docs/findings/{lie["page"]}.md' if lie['page'] else 'not explained',
            'gdb reads the same value here'
            if lie['whose'] == 'compiler' else 'gdb does not read this value here', 'SITE', text
        ]
        if row is not None:
            die, at = row.get('die'), row.get('addr', row.get('address', row.get('at')))
            parts += ['DIE', die_text(path, number(die))] if die is not None else []
            parts += ['CODE', code_text(path, number(at))] if at is not None else []
        parts += ['SOURCE', source_of(folder, lie['function'])]
        name = os.path.join(
            out,
            f'{meta["seed"]}-{config[0]}-{lie["function"]}-{lie["name"].strip("()")}-{len(paths)}.txt'
        )
        with open(name, 'w', encoding='utf-8') as file:
            file.write('\n\n'.join(parts) + '\n')
        paths.append(name)
    return paths
