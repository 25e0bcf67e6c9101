#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every DW_TAG_inlined_subroutine with code is a site, and nothing else is: DIE by DIE, against
libdw (dies.c).

On vmlinux, libstdc++ and libc of the lab, and on postgres 15 built from Debian's source, where two
functions are also counted and timed beside gdb and perf probe, which leave copies out without
saying so.
"""
import collections
import glob
import os
import re
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import common   # noqa: E402
import sources  # noqa: E402

POSTGRES_FUNCTIONS = ('MemoryContextSwitchTo', 'list_length')


def all_sites_program():
    build = os.environ.get('CAIRN_BUILD') or os.path.dirname(common.CAIRN)
    libraries = [
        p for p in glob.glob(os.path.join(build, '**', 'libcairn.*'), recursive=True)
        if re.search(r'\.(so|a)$', p)
    ]
    if not libraries:
        raise RuntimeError(f'no libcairn under {build}')
    library = sorted(libraries, key=lambda p: p.endswith('.a'))[0]
    folder = os.path.dirname(library)
    return common.compile_c([os.path.join(HERE, 'counts', 'all_sites.c')],
                            os.path.join(common.lab('counts'), 'all_sites'), [
                                '-O2', '-Wall', '-I',
                                os.path.join(common.TOP, 'include'), '-L', folder,
                                f'-Wl,-rpath,{folder}', '-Wl,--no-as-needed', '-lcairn'
                            ])


def sites_of(program, path):
    """({kind: {die: (address, name)}}, copies without code)"""
    code, out, err = common.run([program, path], 900)
    if code != 0:
        raise RuntimeError(f'all_sites {path}: exit code {code}: {err[-500:]}')
    kinds, without, twice = collections.defaultdict(dict), 0, 0
    for line in out.splitlines():
        kind, die, at, name = line.split('\t')
        if kind == 'without_code':
            without += int(die, 16)
            continue
        twice += kind != 'further' and int(die, 16) in kinds[kind]
        kinds[kind][int(die, 16)] = (int(at, 16), name)
    return kinds, without, twice


def compare(label, program, path, dwarf):
    started = time.monotonic()
    kinds, without, twice = sites_of(program, path)
    took = time.monotonic() - started
    rows = [r for r in common.dies(dwarf) if r[0] == 'inlined']
    # Address 0 in a linked file: code in a section that the linker dropped, left behind in the
    # debug information.
    dropped = [r for r in rows if r[3] and r[2] == 0]
    with_code = {r[1]: r for r in rows if r[3] and r[2] != 0}
    mine = kinds['inlined']
    missing, extra = sorted(set(with_code) - set(mine)), sorted(set(mine) - set(with_code))
    print(
        f'{label}: {len(rows)} DIEs, {len(with_code)} with code, {len(dropped)} dropped by the linker; {len(mine)} inlined sites, {without} copies without code, '
        f'{len(kinds["body"])} bodies, {len(kinds["part"])} parts, {took:.2f} s')
    other_at = [
        d for d in mine
        if d in with_code and with_code[d][2] is not None and mine[d][0] != with_code[d][2]
    ]
    print(f'{label}: {len(other_at)} sites are not at entry_pc or the first range: '
          + ', '.join(f'{d:#x}: {mine[d][0]:#x} for {with_code[d][2]:#x}' for d in other_at[:4]))
    for what, dies in (('not found by us', missing), ('of ours alone', extra)):
        print(f'{label}: {len(dies)} {what}')
        for die in dies[:8]:
            print(f'    {die:#x} {with_code[die] if die in with_code else mine[die]}')
    common.claim(f'counts {label}: each of {len(with_code)} inlined DIEs with code is a site',
                 not missing and bool(with_code))
    common.claim(
        f'counts {label}: the other {len(rows) - len(with_code)} are counted as copies without code ({without})',
        without == len(rows) - len(with_code))
    common.claim(f'counts {label}: each of {len(mine)} inlined sites is such a DIE, once', not extra
                 and not twice)


def timed(command, timeout=300):
    started = time.monotonic()
    code, out, err = common.run(command, timeout)
    return code, out, err, time.monotonic() - started


def peers(path, function):
    """Count and time of Cairn, gdb and perf probe for one function."""
    rows = []
    code, out, _, took = timed([common.CAIRN, 'sites', path, function, '--json'])
    # A copy that the compiler duplicated has several sites and one DIE.
    copies = {row['die'] for row in common.json_lines(out) if row['chain']} if code == 0 else None
    rows.append(('cairn sites', copies and len(copies), took))
    _, out, _, took = timed(['gdb', '-nx', '-batch', '-ex', f'break {function}', path])
    found = re.search(r'\((\d+) locations\)', out)
    rows.append(('gdb break', int(found.group(1)) if found else None, took))
    if not common.have('perf'):
        code, out, _, took = timed(
            ['perf', 'probe', '--max-probes=100000', '-q', '-x', path, '-D', function])
        rows.append(('perf probe -D', len([l for l in out.splitlines()
                                           if l.startswith('p:')]) if code == 0 else None, took))
    return rows


def postgres(program):
    try:
        path = sources.postgres()
    except sources.Unavailable as error:
        common.skip('counts postgres', str(error))
        return
    compare('postgres', program, path, path)
    dies = common.dies(path)
    for function in POSTGRES_FUNCTIONS:
        want = sum(r[0] == 'inlined' and r[3] and r[4] == function for r in dies)
        rows = peers(path, function)
        print(f'{function}: {want} inlined DIEs with code; '
              + '; '.join(f'{name} {count} in {took:.2f} s' for name, count, took in rows))
        common.claim(f'counts postgres {function}: all {want} copies are found',
                     rows[0][1] == want > 0)


def main():
    if common.dw_program('dies') is None or not os.access(common.CAIRN, os.X_OK):
        common.skip('counts', 'libdw-dev is not installed, or cairn is not built')
        return common.finish()
    try:
        program = all_sites_program()
    except RuntimeError as error:
        print(error)
        common.not_ok('counts: a program builds against libcairn')
        return common.finish()
    for label, name, debug in (('libstdc++', 'libstdc++.so.6', None), ('vmlinux', 'vmlinux', None),
                               ('libc', 'libc.so.6', 'libc.debug')):
        path, dwarf = common.lab_input(name), common.lab_input(debug or name)
        if path is None or dwarf is None:
            common.skip(f'counts {label}', 'not in the lab: its script inputs fetches it')
            continue
        try:
            compare(label, program, path, dwarf)
        except RuntimeError as error:
            print(error)
            common.not_ok(f'counts {label}')
    postgres(program)
    return common.finish()


if __name__ == '__main__':
    main()
