#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""BTF of a binary from Cairn and from the newest pahole: every named struct, union, enum and
function must agree.

    btf_against_pahole.py [FILE...]      default: the lab's vmlinux and libc, SQLite and postgres

Both blobs are read by bpftool. A type is compared by what it says up to the next name, as a set of
definitions per name, since a name may have several. Each difference has to have an explanation that
the symbol table or libdw confirms, or it fails.
"""
import collections
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import common  # noqa: E402
import sources  # noqa: E402

LAB = os.environ.get('CAIRN_LAB') or os.path.expanduser('~/.cache/cairn-lab')
SID = os.path.join(LAB, 'sid')
SHARED = os.path.join(SID, 'srv', 'truth')  # seen as /srv/truth inside

# Seen by hand in DWARF, where the symbol table does not tell.
BY_HAND = {
    'putc_unlocked':
    'inlined everywhere, with two prototypes; a weak alias of other code has its name',
}

NAMED = {'STRUCT': 'struct', 'UNION': 'union', 'ENUM': 'enum', 'ENUM64': 'enum'}


def chroot(*cmd):
    return common.run(['chroot', SID, *cmd], 600)


class Blob:
    """The records of a raw BTF file, with a canonical text for each type."""

    def __init__(self, path):
        code, out, err = chroot('bpftool', '-j', 'btf', 'dump', 'file', path)
        if code != 0:
            raise RuntimeError(f'bpftool: {err[-1000:]}')
        self.types = {t['id']: t for t in json.loads(out)['types']}
        self.texts = {}

    def of(self, number, by_name=True):
        """Text of a type; a struct, union or enum with a name is only named."""
        if number == 0:
            return 'void'
        t = self.types[number]
        kind, name = t['kind'], t.get('name', '')
        if by_name and kind in NAMED and name not in ('', '(anon)'):
            return f'{NAMED[kind]} {name}'
        if number not in self.texts:
            self.texts[number] = self.describe(t)
        return self.texts[number]

    def array(self, t):
        """Dimensions are multiplied: pahole writes int a[2][3] as int a[6]."""
        count = t['nr_elems']
        inner = self.types.get(t['type_id'])
        while inner and inner['kind'] == 'ARRAY':
            count *= inner['nr_elems']
            t, inner = inner, self.types.get(inner['type_id'])
        return f'{self.of(t["type_id"])}[{count}]'

    def describe(self, t):
        kind = t['kind']
        if kind in ('STRUCT', 'UNION'):
            members = ', '.join(
                f'{m["name"]}@{m["bits_offset"]}:{m.get("bitfield_size", 0)} {self.of(m["type_id"])}'
                for m in t['members'])
            return f'{NAMED[kind]} {t["size"]} {{{members}}}'
        if kind in ('ENUM', 'ENUM64'):
            values = ', '.join(f'{v["name"]}={v["val"]}' for v in t['values'])
            return f'enum {t["size"]} {{{values}}}'
        if kind == 'FUNC_PROTO':
            return f'{self.of(t["ret_type_id"])} ({", ".join(self.of(p["type_id"]) for p in t["params"])})'
        if kind == 'FWD':
            return f'{t["fwd_kind"]} {t["name"]}'
        if kind == 'ARRAY':
            return self.array(t)
        if kind == 'INT':
            return f'{t["name"]}:{t["size"]}:{t["encoding"]}'
        if kind == 'FLOAT':
            return f'{t["name"]}:{t["size"]}'
        if kind == 'TYPEDEF':
            return f'typedef {t["name"]}'
        return f'{kind.lower()} {self.of(t["type_id"])}'

    def definitions(self):
        """{'struct NAME': {texts}} and the same of functions and typedefs."""
        found = collections.defaultdict(set)
        for t in self.types.values():
            name = t.get('name', '(anon)')
            if name in ('', '(anon)'):
                continue
            if t['kind'] in NAMED:
                found[f'{NAMED[t["kind"]]} {name}'].add(self.of(t['id'], by_name=False))
            elif t['kind'] == 'TYPEDEF':
                found[f'typedef {name}'].add(self.of(t['type_id']))
            elif t['kind'] == 'FUNC':
                found[f'func {name}'].add(self.of(t['type_id']))
        return found


def symbols_of(path):
    """Symbols of functions: how many have a name, and how many are clones of it (foo.isra.0)."""
    code, out, err = common.run(['nm', path], 120)
    if code != 0:
        raise RuntimeError(f'nm: {err[-500:]}')
    exact, clones = collections.Counter(), collections.Counter()
    for line in out.splitlines():
        fields = line.split()
        if len(fields) < 2 or fields[-2] not in 'tTwWiuV':
            continue
        name = fields[-1].split('@')[0]
        exact[name] += 1
        base, dot, suffix = name.partition('.')
        if dot and suffix.split('.')[0] in ('isra', 'constprop', 'part', 'cold'):
            clones[base] += 1
    return exact, clones


def left_out_of(said):
    """{function: why pahole left it out}, of what pahole -V said."""
    found = {}
    for line in said.splitlines():
        name, skipped, why = line.partition(' : skipping BTF encoding of function due to ')
        if skipped:
            found[name] = why.split(';')[0].split(' for param')[0]
    return found


def assembled_in(path):
    """Names of functions that only units of an assembler describe, by libdw."""
    code, out, err = common.run([common.dw_program('languages'), path], 600)
    if code != 0:
        raise RuntimeError(f'languages {path}: {err}')
    names = collections.defaultdict(set)
    for line in out.splitlines():
        by, name = line.split('\t')
        names[by].add(name)
    return names['assembler'] - names['compiler']


def explain(what, ours, theirs, symbols, left_out, assembled):
    """Why they differ, or None: every reason is seen in the symbol table, or in the units by libdw.
    """
    kind, name = what.split(' ', 1)
    exact, clones = symbols
    if kind != 'func':
        return None
    if name in BY_HAND:
        return BY_HAND[name]
    if not ours and theirs == {'void ()'} and name in assembled:
        return 'an assembler described it, which knows no parameters: pahole writes void ()'
    if not ours and not exact[name] and clones[name]:
        return 'only clones of it have code (foo.isra.0): Cairn gives them sites instead of a function'
    if not theirs and name in left_out:
        return f'pahole leaves it out: {left_out[name]}'
    if not theirs and exact[name] > 1:
        return 'several functions have that name, and one prototype: pahole leaves it out'
    if not theirs and clones[name]:
        return 'there are clones of it, too: pahole leaves it out'
    if not theirs and exact[name] == 1:
        return 'a function with its symbol, which pahole leaves out'
    return None


def compare(path):
    base = os.path.basename(path)
    inside = os.path.join(SHARED, base)
    if not os.path.exists(inside):
        subprocess.run(['cp', '-L', path, inside], check=True)
    name = os.path.join('/srv/truth', base)
    code, said, err = chroot('pahole', '-J', '-V', '-j2', '--btf_features=default',
                             f'--btf_encode_detached={name}.pahole', name)
    if code != 0:
        common.not_ok(f'{base}: pahole: {err[-500:]}')
        return
    if 'CAIRN_BTF' in os.environ:
        subprocess.run(['cp', os.environ['CAIRN_BTF'], inside + '.cairn'], check=True)
    else:
        code, _, err = common.run([common.CAIRN, 'btf', 'encode', path, '-o', inside + '.cairn'],
                                  600)
        if code != 0:
            common.not_ok(f'{base}: cairn btf encode: {err[-500:]}')
            return
    ours, theirs = Blob(name + '.cairn').definitions(), Blob(name + '.pahole').definitions()
    symbols, left_out, assembled = symbols_of(path), left_out_of(said + err), assembled_in(path)
    reasons, unexplained, same = collections.Counter(), [], collections.Counter()
    for what in sorted(set(ours) | set(theirs)):
        if ours.get(what) == theirs.get(what):
            same[what.split()[0]] += 1
            continue
        why = explain(what, ours.get(what), theirs.get(what), symbols, left_out, assembled)
        if why:
            reasons[why] += 1
            if os.environ.get('VERBOSE'):
                print(f'  {why}: {what}: {ours.get(what)} | {theirs.get(what)}')
        else:
            unexplained.append(what)
    for kind, count in sorted(same.items()):
        print(f'{base}: {count} {kind} agree')
    for why, count in reasons.most_common():
        print(f'{base}: {count} differ: {why}')
    for what in unexplained[:40]:
        print(f'  {what}\n    cairn:  {ours.get(what)}\n    pahole: {theirs.get(what)}')
    common.claim(f'{base}: every difference from pahole is explained ({len(unexplained)} are not)',
                 not unexplained)
    made_up = sorted(name for name in assembled if ours.get(f'func {name}'))
    if assembled:
        common.claim(
            f'{base}: no prototype is made up for {len(assembled)} functions in assembler{made_up[:10] or ""}',
            not made_up)


def built():
    """Programs that are made here, as far as they can be."""
    for name, make in (('SQLite', lambda: sources.sqlite('gcc')), ('postgres', sources.postgres)):
        try:
            yield make()
        except sources.Unavailable as error:
            common.skip(f'BTF of {name} against pahole', str(error))


def main():
    if not os.access(os.path.join(SID, 'usr/bin/pahole'), os.X_OK) or os.geteuid() != 0:
        common.skip('BTF against pahole', "needs root and the lab's peers")
        common.finish()
    if common.dw_program('languages') is None:
        common.skip('BTF against pahole', 'libdw-dev is not installed')
        common.finish()
    os.makedirs(SHARED, exist_ok=True)
    paths = sys.argv[1:] or [p for p in map(common.lab_input, ['vmlinux', 'libc.debug']) if p
                             ] + list(built())
    for path in paths:
        compare(os.path.realpath(path))
    common.finish()


main()
