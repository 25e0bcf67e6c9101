#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A file without debug information that has .BTF and .BTF.inline answers cairn sites as its debug
information does, for all functions of real programs.

    btf_sites.py [FILE...]      default: Lua and SQLite by GCC and Clang, the lab's vmlinux

Facts that BTF does not hold are listed and counted; nothing else may differ. Which functions have a
FUNC with code is read from the blobs by code of btf_inline.py, not by Cairn.
"""
import collections
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import blobs  # noqa: E402
import common  # noqa: E402
import sources  # noqa: E402

# What a LOC_PARAM can say, as cairn sites prints it.
RECORD = re.compile(r'^(\*\()?%\w+([+-](0x[0-9a-f]+|\d+))?\)?$|^const ')
# It can if they are of 8 bytes each, and of an address in the object.
PERHAPS = re.compile(r'^&[\w.]+(\+0x[0-9a-f]+)?$|^\{%\w+, %\w+\}$')
# The convention has the argument of a body although the debug information has it nowhere.
BY_CONVENTION = {
    'not-live', 'optimised-out', 'no-description', 'may-not-be-passed', 'may-have-changed'
}


def sites_of(path, *options):
    code, out, err = common.run(
        [common.CAIRN, 'sites', path, '--sites', '--json', '--no-demangle', *options], 900)
    if code != 0:
        raise RuntimeError(f'cairn sites {path} {" ".join(options)}: exit {code}: {err[-800:]}')
    return common.json_lines(out)


def is_same_constant(a, b):
    """Constants are cut to the parameter's type: -1 is 0xffffffff of 4 bytes."""
    if not (a and b and a.startswith('const ') and b.startswith('const ')):
        return False
    distance = int(a[6:], 0) - int(b[6:], 0)
    return any(distance % (1 << bits) == 0 for bits in (8, 16, 32, 64))


class Differences:
    def __init__(self, name):
        self.name, self.wrong = name, collections.defaultdict(list)
        self.held, self.listed = collections.Counter(), collections.Counter()

    def say(self, what, holds, detail):
        self.held[what] += 1
        if not holds:
            self.wrong[what].append(detail)

    def finish(self, whats):
        for what, n in sorted(self.listed.items()):
            print(f'  {self.name}: BTF does not hold: {n} {what}')
        for what in whats:
            for detail in self.wrong[what][:10]:
                print(f'    {detail}')
            common.claim(
                f'{self.name}: {what} ({self.held[what]} compared, {len(self.wrong[what])} differ)',
                not self.wrong[what])


WHATS = ('inlined sites are the same', 'locations at inlined sites are the same',
         'no value where the debug information has none', 'parameters have the same types',
         'bodies are the same', 'arguments of bodies are the same', 'hazards are the same',
         'symbols and offsets are the same', 'caveats of bodies are the same, or unknown')


def compare_inlined_arg(d, key, said, told):
    detail = f'{key}: {said["name"]}: {said["text"]} but {told["text"]}'
    if said['loc'] is None:
        d.say(WHATS[2], told['loc'] is None, detail)
    elif told['loc'] is None and PERHAPS.match(said['loc']):
        d.listed['parts of less than 8 bytes, and addresses outside the object'] += 1
    elif told['loc'] is None and not RECORD.match(said['loc']):
        d.listed['locations of more steps than a LOC_PARAM has'] += 1
    else:
        same = said['loc'] == told['loc'] or is_same_constant(said['loc'], told['loc'])
        # Cuts to the width of the type, and reads of more bytes than it has, are left out.
        if not same and told['loc'] and re.search(r'<<|&|\(u|s0x', said['loc']):
            registers = re.findall(r'%\w+', said['loc'])
            same = registers == re.findall(r'%\w+', told['loc'])
        d.say(WHATS[1], same, detail)


def compare_body_arg(d, key, said, told):
    detail = f'{key}: {said["name"]}: {said["text"]} but {told["text"]}'
    if said['loc'] == told['loc']:
        d.say(WHATS[5], True, '')
    elif told['loc'] is None:
        d.listed[f'arguments of bodies: {told["unavailable"]}'] += 1
        d.say(WHATS[5], told['unavailable'] != 'not-recorded', detail)
    elif said['loc'] is None and said['unavailable'] in BY_CONVENTION:
        d.listed[f'(it has more) arguments of bodies that are {said["unavailable"]} in DWARF'] += 1
    else:
        d.say(WHATS[5], False, detail)


def compare_args(d, said, told):
    key = said['function'], said['addr']
    if told['params_unknown']:
        d.listed['prototypes of bodies of which no FUNC is known to be theirs'] += 1
        return
    types = [a['type'] for a in said['args']] == [a['type'] for a in told['args']]
    if said['params_unknown']:
        d.listed['functions whose debug information has no prototype'] += 1
        return
    d.say(WHATS[3], types, f'{key}: {said["args"]} but {told["args"]}')
    for one, other in zip(said['args'], told['args']):
        if one['name'] != other['name']:
            d.listed['names of parameters that differ between declarations'] += 1
        (compare_inlined_arg if told['rule'] == 'btf' else compare_body_arg)(d, key, one, other)


def compare_places(d, said, told):
    key = said['function'], said['addr']
    hazard = said['hazard'], told['hazard']
    d.say(WHATS[6], hazard[0] == hazard[1] or told['symbol'] is None, f'{key}: {hazard}')
    for name in ('symbol', 'symbol_off', 'section', 'section_off', 'offset'):
        d.say(WHATS[7], said[name] == told[name], f'{key}: {name}: {said[name]} {told[name]}')
    if said['container'] != told['container']:
        d.listed['names of containers (moved code, several symbols of one body)'] += 1
    if said['kind'] != 'inlined':
        d.say(WHATS[8],
              set(said['count_caveats']) <= set(told['count_caveats'])
              or 'unknown' in told['count_caveats'],
              f'{key}: {said["count_caveats"]} but {told["count_caveats"]}')
    elif said['count_caveats']:
        d.listed['caveats of inlined sites'] += 1


def distance(said, told):
    """Of several copies at one address, which is which."""

    def differ(one, other):
        if one['loc'] == other['loc'] or is_same_constant(one['loc'], other['loc']):
            return False
        return other['loc'] is not None or bool(
            RECORD.match(one['loc']) or PERHAPS.match(one['loc']))

    pairs = list(zip(said['args'], told['args']))
    return sum(differ(*p) or p[0]['type'] != p[1]['type'] for p in pairs) + 100 * (len(
        said['args']) != len(told['args']))


def pair(said, known):
    """[(site of DWARF, site of BTF)]; equal ones find each other first."""
    pairs, left = [], said
    for limit in (0, 1, 1000):
        still = []
        for site in left:
            candidates = known[site['function'], site['kind'], site['addr']]
            best = min(candidates, key=lambda other, site=site: distance(site, other), default=None)
            if best is None or distance(site, best) > limit:
                still.append(site)
                continue
            candidates.remove(best)
            pairs.append((site, best))
        left = still
    return pairs, left


def compare(name, said, told, coded):
    """@coded: names that have a FUNC with code."""
    d = Differences(name)
    described = {s['function'] for s in said if s['kind'] == 'out-of-line'}
    known = collections.defaultdict(list)
    for site in told:
        known[site['function'], site['kind'], site['addr']].append(site)
    d.listed['split-off parts'] = sum(s['kind'] == 'part' for s in said)
    pairs, missing = pair([s for s in said if s['kind'] != 'part'], known)
    for one, other in pairs:
        d.say(WHATS[0 if one['kind'] == 'inlined' else 4], True, '')
        compare_args(d, one, other)
        compare_places(d, one, other)
    for site in missing:
        inlined = site['kind'] == 'inlined'
        if not inlined and site['function'] not in coded:
            d.listed['bodies of functions without a FUNC'] += 1
            continue
        if not inlined and (site['symbol_off'] or site['symbol'] != site['function']):
            d.listed['bodies without a symbol of their name (overridden, static by another)'] += 1
            continue
        d.say(WHATS[0 if inlined else 4], False, f'not there: {site["function"]} {site["addr"]}')
    for site in (s for sites in known.values() for s in sites):
        is_folded = site['kind'] != 'inlined' and site['function'] not in described
        if is_folded or site['count_caveats'] == ['unknown']:
            d.listed['(it has more) bodies of functions folded into others'] += 1
        else:
            d.say(WHATS[0 if site['kind'] == 'inlined' else 4], False,
                  f'too many: {site["function"]} {site["addr"]}')
    d.finish(WHATS)


def coded_functions(main_path):
    with open(main_path, 'rb') as file:
        main = blobs.Blob(file.read())
    return {main.string(t[1]) for t in main.types if t[0] == blobs.FUNC}


def compare_stripped(name, said, path):
    """Without symbols the inlined sites stay; bodies are those of exported functions."""
    told = sites_of(path)
    inlined = collections.Counter((s['function'], s['addr']) for s in said
                                  if s['kind'] == 'inlined')
    found = collections.Counter((s['function'], s['addr']) for s in told if s['kind'] == 'inlined')
    clones = collections.Counter((s['function'], s['addr']) for s in said
                                 if s['kind'] == 'out-of-line')
    extra = found - inlined
    common.claim(
        f'{name}, without symbols: the same {sum(inlined.values())} inlined sites, and '
        f'{sum(extra.values())} entries of clones', not inlined - found and not extra - clones)
    common.claim(f'{name}, without symbols: each at the start of an instruction',
                 not [s for s in told if s['hazard'] == 'not-a-boundary'])


def check(path):
    name = os.path.basename(path)
    folder = common.lab('btf-sites')
    out = os.path.join(folder, name + '.btf')
    code, _, err = common.run([common.CAIRN, 'btf', 'encode', path, '-o', out], 600)
    if code != 0:
        common.not_ok(f'{name}: cairn btf encode: {err[-500:]}')
        return
    said = sites_of(path, '--no-sidecar')
    compare(name, said, sites_of(path, f'--btf={out}'), coded_functions(out))
    if name.startswith('vmlinux'):
        return
    embedded, stripped = os.path.join(folder, name), os.path.join(folder, name + '.stripped')
    code, _, err = common.run([common.CAIRN, 'btf', 'encode', '--embed', path, '-o', embedded])
    common.claim(f'{name}: the sections are embedded {err[-200:] if code else ""}', code == 0)
    shutil.copy(embedded, stripped)
    common.run(['strip', '--strip-debug', stripped])
    compare(f'{name}, stripped of debug information', said, sites_of(stripped),
            coded_functions(out))
    common.run(['strip', stripped])
    compare_stripped(name, said, stripped)


def programs():
    for make, compiler in ((m, c) for m in (sources.lua, sources.sqlite) for c in ('gcc', 'clang')):
        try:
            yield make(compiler)
        except sources.Unavailable as error:
            common.skip(f'{make.__name__} by {compiler}', str(error))
    vmlinux = common.lab_input('vmlinux')
    if vmlinux:
        yield os.path.realpath(vmlinux)
    else:
        common.skip('vmlinux', "needs the lab's kernel")


def main():
    for path in sys.argv[1:] or programs():
        check(path)
    common.finish()


main()
