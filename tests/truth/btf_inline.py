#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every site in the inline blob is a site that cairn sites tells, with the same locations, and none
is missing.

Sites are inlined copies, and entries of clones (foo.isra.0), whose parameters are not where the
prototype says. The newest bpftool has to step over all of them.

    btf_inline.py [FILE...]      default: the lab's vmlinux

The blobs are read here by code of its own, from the tables of docs/formats, not by Cairn.
"""
import collections
import json
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import common  # noqa: E402
from blobs import Blob, FUNC, LOCSEC, SIGNED, CONST, ADDR, REG, DEREF, OFFSET  # noqa: E402

SID = os.path.join(os.environ.get('CAIRN_LAB') or os.path.expanduser('~/.cache/cairn-lab'), 'sid')
SHARED = os.path.join(SID, 'srv', 'truth')  # seen as /srv/truth inside
REGISTERS = ['rax', 'rdx', 'rcx', 'rbx', 'rsi', 'rdi', 'rbp', 'rsp'
             ] + [f'r{i}' for i in range(8, 16)]


def signed(value, bits):
    return value - (1 << bits) if value >> (bits - 1) else value


def text(blob, number, base):
    """As cairn sites writes it; None for no location."""
    if number == 0:
        return None
    _, _, vlen, size, words = blob.type(number)
    flags, values = words[0], words[1:1 + vlen]
    if flags & CONST:
        value = values[0] | (values[1] << 32 if vlen > 1 else 0)
        if flags & ADDR:
            return 'addr', value + base
        if flags & SIGNED:
            value = signed(value, 64 if vlen > 1 else 32)
        return 'const', value & ((1 << 8 * min(size, 8)) - 1)
    if not flags & REG:
        return None
    if vlen == 2 and not flags & OFFSET:
        return 'regs', values[0], values[1]
    offset = 0
    if flags & OFFSET:
        offset = signed(values[1] | values[2] << 32, 64) if vlen == 3 else signed(values[1], 32)
    return ('mem' if flags & DEREF else 'reg'), values[0], offset


SIMPLE = re.compile(r'^(\*\()?%(\w+)([+-]0x[0-9a-f]+|[+-]\d+)?(\))?$')


def of_sites(loc):
    """The same form from what cairn sites prints; 'other' when no record can say it."""
    match = SIMPLE.match(loc)
    if match and bool(match[1]) == bool(match[4]) and match[2] in REGISTERS:
        return ('mem' if match[1] else 'reg'), REGISTERS.index(match[2]), int(match[3] or '0', 0)
    if loc.startswith('const '):
        return 'const', int(loc[6:], 0)
    match = re.match(r'^\{%(\w+), %(\w+)\}$', loc)
    if match and match[1] in REGISTERS and match[2] in REGISTERS:
        return 'regs', REGISTERS.index(match[1]), REGISTERS.index(match[2])
    return 'other', loc


def agree(record, arg, strictly):
    if arg['unavailable']:
        return record is None
    told = of_sites(arg['loc'])
    if strictly and record is not None and record[0] not in ('addr', 'const'):
        return record == told
    if strictly and record is None:
        return told[0] == 'other' and 'const' not in told[1] and not told[1].startswith('&')
    if record is None:
        return told[0] == 'other' or told[0] in ('const', 'regs')
    if record[0] == 'const' and told[0] == 'const':
        return (told[1] - record[1]) % 256 == 0 and (record[1] == told[1] or told[1] < 0
                                                     or told[1] > record[1])
    if record[0] == 'addr':
        return arg['loc'].startswith('&')
    if told[0] == 'other':
        # What only cuts to the width of the value.
        return f'%{REGISTERS[record[1]]}' in arg['loc'] and ('<<' in arg['loc'] or '&' in arg['loc']
                                                             or '(u' in arg['loc'])
    return record == told


def key_of(site):
    return site['function'], site['section'], site['section_off']


def take(known, site, strictly):
    """Remove the one that is the site; False when there is none."""
    for one in known:
        if all(agree(slot, arg, strictly) for slot, arg in zip(one, site['args'])):
            known.remove(one)
            return True
    return False


def is_site(site):
    if site['kind'] == 'inlined':
        return True
    return site['kind'] == 'out-of-line' and not site['symbol_off'] and bool(
        re.search(r'\.(isra|constprop)\.', site['symbol'] or ''))


def newest_bpftool(base_name, out, end):
    if not os.path.exists(os.path.join(SID, 'usr/sbin/bpftool')):
        common.skip(f'{base_name}: the newest bpftool reads it', "needs the lab's")
        return
    os.makedirs(SHARED, exist_ok=True)
    for name in ('', '.inline'):
        shutil.copy(out + name, os.path.join(SHARED, 'sites.btf' + name))
    code, text, err = common.run([
        'chroot', SID, 'bpftool', 'btf', 'dump', '-B', '/srv/truth/sites.btf', 'file',
        '/srv/truth/sites.btf.inline'
    ], 600)
    last = text.splitlines()[-1] if text else err[-500:]
    common.claim(f'{base_name}: the newest bpftool steps over them all ({last})',
                 code == 0 and last.startswith(f'[{end - 1}] UNKNOWN'))


def check(path):
    base_name = os.path.basename(path)
    out = os.path.join(common.lab('btf'), base_name + '.btf')
    if 'CAIRN_BTF' in os.environ:
        out = os.environ['CAIRN_BTF']
    else:
        code, _, err = common.run([common.CAIRN, 'btf', 'encode', path, '-o', out], 600)
        if code != 0:
            common.not_ok(f'{base_name}: cairn btf encode: {err[-500:]}')
            return
    with open(out, 'rb') as file:
        main = Blob(file.read())
    with open(out + '.inline', 'rb') as file:
        blob = Blob(file.read(), main)
    known = collections.defaultdict(list)
    for kind, name, vlen, _, words in blob.types:
        if kind != LOCSEC:
            continue
        order = [words[3 * i:3 * i + 3] for i in range(vlen)]
        keys = [(func, off, proto) for func, proto, off in order]
        common.claim(f'{base_name}: {blob.string(name)}: {vlen} known in order',
                     keys == sorted(keys))
        for func, proto, off in order:
            slots = blob.type(proto)[4]
            func_type = blob.type(func)
            assert func_type[0] == FUNC and len(slots) <= blob.type(func_type[3])[2]
            known[blob.string(func_type[1]), blob.string(name),
                  off].append([text(blob, s, 0) for s in slots])
    code, told, err = common.run([common.CAIRN, 'sites', path, '--sites', '--json'], 600)
    if code != 0:
        common.not_ok(f'{base_name}: cairn sites: {err[-500:]}')
        return
    sites = [s for s in map(json.loads, told.splitlines()) if is_site(s)]
    # Several copies may begin at one address: those that agree to the letter find each other first.
    open_sites, missing, differ = sites, [], []
    for strictly in (True, False):
        open_sites = [s for s in open_sites if not take(known[key_of(s)], s, strictly)]
    for site in open_sites:
        key = key_of(site)
        (differ if known[key] else missing).append(
            f'{key}: {[a["unavailable"] or a["loc"] for a in site["args"]]} but {known[key]}')
    n = len(sites)
    left = sum(map(len, known.values()))
    for what in missing[:5] + differ[:20]:
        print('  ' + what)
    n_clones = sum(s['kind'] != 'inlined' for s in sites)
    common.claim(
        f'{base_name}: all {n} known are there, {n_clones} of them clones ({len(missing)} are not)',
        not missing)
    common.claim(f'{base_name}: with the same locations ({len(differ)} differ)', not differ)
    common.claim(f'{base_name}: and no others ({left} are)', not left)
    newest_bpftool(base_name, out, blob.end)


def main():
    paths = sys.argv[1:] or [p for p in [common.lab_input('vmlinux')] if p]
    if not paths:
        common.skip('sites in BTF', "needs the lab's kernel")
    for path in paths:
        check(os.path.realpath(path))
    common.finish()


main()
