#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares Cairn's argument locations with gdb's values, at the sites of real programs.

gdb stops at every site of many functions. At the first hits of each it says what it believes each
argument is, and Cairn's location of that argument, as `cairn sites --json` prints it, is evaluated
on the same registers and the same memory. Where both give a value they must be equal, except where
gdb is shown to be wrong: it does not know location views (DW_AT_GNU_locviews), so of several values
that a variable has at one address it prints the last. Such a site is recognised in the DIE: the
parameter's location list has an entry that begins and ends at the address. And where Clang names
the stack pointer as the frame base, gdb reads stack arguments at the entry relative to a stack
pointer that the prologue has yet to move: recognised by the frame base and a location relative to
it, at an entry.

Where Cairn says unavailable and gdb prints a value, that is counted by Cairn's reason and written
to the report.
"""
import collections
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, 'calls')]
import common   # noqa: E402
import sources  # noqa: E402
import tracers  # noqa: E402

LIBC = '/lib/x86_64-linux-gnu/libc.so.6'
FUNCTIONS_MIN = 30
CANDIDATES = 400
HITS = 6
SITES_MAX = 6000

LUA = '''local t = {}
for i = 1, 3000 do t[i] = {k = tostring(i), v = i * 1.5, s = ("x"):rep(i % 17)} end
table.sort(t, function(a, b) return a.k < b.k end)
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local s = {}
for i, e in ipairs(t) do s[#s + 1] = e.k:gsub("1", "one") .. string.format("%5.2f", e.v) end
local co = coroutine.wrap(function() for i = 1, 100 do coroutine.yield(i) end end)
for i = 1, 50 do co() end
print(#table.concat(s, ","), fib(15), select("#", pcall(error, {}, 2)))
for w in ("the quick brown fox"):gmatch("%a+") do s[w] = w:upper():byte(1) end
collectgarbage()
'''
SQL = '''.mode csv
CREATE TABLE a(id INTEGER PRIMARY KEY, name TEXT, v REAL);
CREATE INDEX ia ON a(name);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 800)
  INSERT INTO a SELECT i, 'name' || (i * 7919 % 1009), i / 3.0 FROM n;
SELECT name, count(*), avg(v) FROM a WHERE v BETWEEN 10 AND 200 GROUP BY substr(name, 1, 6) ORDER BY 3 DESC LIMIT 5;
UPDATE a SET v = v * 2 WHERE id % 3 = 0;
DELETE FROM a WHERE name LIKE '%99%';
SELECT a.id, b.name FROM a JOIN a AS b ON b.id = a.id + 1 WHERE a.name > b.name ORDER BY b.name LIMIT 3;
SELECT json_extract('{"a":[1,2,{"b":3}]}', '$.a[2].b'), printf('%08.3f|%s', 3.14159, hex(randomblob(0)));
PRAGMA integrity_check;
.quit
'''


class Subject:
    functions_min = FUNCTIONS_MIN

    def __init__(self, name, program, args, dwarf, module=None):
        self.name, self.program, self.args = name, program, args
        self.dwarf, self.module = dwarf, module

    @property
    def binary(self):
        return self.module or self.program


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, 'w', encoding='ascii') as file:
        file.write(text)
    return path


def libc_debug():
    build_id = re.search(r'Build ID: (\w\w)(\w+)', common.run(['readelf', '-n', LIBC])[1])
    path = build_id and f'/usr/lib/debug/.build-id/{build_id[1]}/{build_id[2]}.debug'
    return path if path and os.path.exists(path) else None


def subjects(folder):
    """Yields a Subject, or (name, reason) for one that is not available."""
    debug = libc_debug()
    if debug:
        words = write(folder, 'words',
                      ''.join(f'{i * 7919 % 1009} w{i % 37}\n' for i in range(600)))
        yield Subject('libc under sort', '/usr/bin/sort', ['-k2', words], debug, LIBC)
        yield Subject('libc under ls', '/usr/bin/ls', ['-l', '/usr/bin'], debug, LIBC)
    else:
        yield 'libc', 'libc6-dbg is not installed, or is not of this libc'
    script, query = write(folder, 'work.lua', LUA), write(folder, 'work.sql', SQL)
    for compiler in ('gcc', 'clang'):
        for name, make, args in (('Lua', sources.lua, [script]), ('SQLite', sources.sqlite, [
                '-init', query, ':memory:'
        ]), ('Redis', sources.redis, ['test', 'all'])):
            try:
                program = make(compiler)
                yield Subject(f'{name} by {compiler}', program, args, program)
            except sources.Unavailable as error:
                yield f'{name} by {compiler}', str(error)


def candidates(subject):
    """Names of functions, unambiguous ones, with copies first; of each kind those with most sites.
    """
    declared, inlined = collections.defaultdict(set), collections.Counter()
    bodies = set()
    for kind, _, _, has_code, name, file, line, _ in common.dies(subject.dwarf):
        if not has_code or not re.fullmatch(r'\w+', name):
            continue
        declared[name].add((file, line))
        if kind == 'inlined':
            inlined[name] += 1
        else:
            bodies.add(name)
    names = [n for n, count in inlined.most_common() if len(declared[n]) == 1 and count <= 60]
    rest = sorted(n for n in bodies if n not in inlined and len(declared[n]) == 1)
    step = max(1, len(rest) // (CANDIDATES // 2))
    return names[:CANDIDATES] + rest[::step][:CANDIDATES // 2]


def all_rows(subject):
    """What `cairn sites` says of the candidates, without those that it calls ambiguous."""
    names = candidates(subject)
    for _ in range(20):
        code, out, err = common.run([common.CAIRN, 'sites', subject.binary, *names, '--json'], 300)
        ambiguous = set(re.findall(r'^cairn: (\w+) names \d+ functions?', err, re.M))
        if code == 0 or not ambiguous:
            break
        names = [n for n in names if n not in ambiguous]
    if code != 0:
        raise RuntimeError(f'cairn sites {subject.binary}: exit code {code}: {err[-500:]}')
    return common.json_lines(out)


def sites_of(subject):
    """Sites to stop at; the id is the index into the rows of `cairn sites`."""
    rows, seen = [], set()
    for row in all_rows(subject):
        if row['kind'] == 'part' or len(rows) >= SITES_MAX:
            continue
        key = (row['function'], row['addr'])
        if key not in seen:
            seen.add(key)
            rows.append(row)
    sites = [{
        'id': i, 'at': int(row['addr'], 16), 'function': row['function'], 'locs':
        {a['name']: a['loc']
         for a in row['args']
         if a['loc'] is not None}
    }
             for i, row in enumerate(rows)]
    return rows, sites


def entries_at(dwarf, die, name, at):
    """The parameter's location list entries that touch an address: [(lo, hi, expression)]."""
    _, out, _ = common.run(
        ['llvm-dwarfdump', f'--debug-info={die}', '--show-children', '--recurse-depth=1', dwarf],
        120)
    for block in re.split(r'\n\n', out):
        if 'DW_TAG_formal_parameter' in block and f'"{name}")' in block:
            found = re.findall(r'\[0x([0-9a-f]+), 0x([0-9a-f]+)\): (.*)', block)
            return [(int(lo, 16), int(hi, 16), text)
                    for lo, hi, text in found
                    if int(lo, 16) <= at <= int(hi, 16)]
    return []


def is_moving_frame(dwarf, die, name):
    """The frame base is %rsp, and the parameter is described relative to it for the whole function.
    """
    _, out, _ = common.run(
        ['llvm-dwarfdump', f'--debug-info={die}', '--show-children', '--recurse-depth=1', dwarf],
        120)
    if not re.search(r'DW_AT_frame_base\s+\(DW_OP_reg7 RSP\)', out):
        return False
    blocks = [
        b for b in re.split(r'\n\n', out)
        if 'DW_TAG_formal_parameter' in b and re.search(rf'"{name}"\)', b)
    ]
    return any(re.search(r'DW_AT_location\s+\((DW_OP_fbreg|DW_OP_breg7)', b) for b in blocks)


class Comparison:
    def __init__(self, subject, rows):
        self.subject, self.rows = subject, rows
        self.equal, self.views, self.both_silent, self.moving, self.in_part = 0, 0, 0, 0, 0
        self.different, self.failed = [], []
        self.only_gdb, self.only_cairn = collections.Counter(), collections.Counter()
        self.functions, self.unreadable = set(), set()
        self.examples, self.cache = {}, {}

    def is_view(self, row, name):
        at = int(row['addr'], 16)
        key = (row['die'], name)
        if key not in self.cache:
            self.cache[key] = any(
                lo == hi == at
                for lo, hi, _ in entries_at(self.subject.dwarf, row['die'], name, at))
        return self.cache[key]

    def is_in_part(self, row, name, size):
        """The compiler describes only the first bytes, of which gdb makes a whole with zeros."""
        entries = entries_at(self.subject.dwarf, row['die'], name, int(row['addr'], 16))
        pieces = [
            sum(int(p, 16)
                for p in re.findall(r'DW_OP_piece 0x([0-9a-f]+)', text))
            for _, _, text in entries
        ]
        return bool(pieces) and 0 < min(pieces) < size

    def add(self, record):
        row = self.rows[record['id']]
        if record['block'] is None:
            return
        self.functions.add(row['function'])
        for arg in row['args']:
            self.argument(row, arg, record)

    def argument(self, row, arg, record):
        name = arg['name']
        in_gdb, in_cairn = name in record['args'], arg['loc'] is not None
        if not in_cairn:
            if in_gdb:
                self.only_gdb[arg['unavailable']] += 1
                self.examples.setdefault(arg['unavailable'], []).append(
                    f'{row["function"]}({name}) at {row["addr"]} DIE {row["die"]}: gdb {record["args"][name]!r}'
                )
            else:
                self.both_silent += 1
            return
        mine = record['cairn'].get(name)
        why, error = record['why'].get(name,
                                       ''), mine.get('error', '') if isinstance(mine, dict) else ''
        if ('Cannot access memory' in error and 'access memory' in why) or (error and error == why):
            # The compiler described a site that is not one; Cairn prints it as unreadable.
            self.unreadable.add(f'{row["function"]}({name}) at {row["addr"]}: {arg["loc"]}')
        elif isinstance(mine, dict) and set(mine) == {'error'}:
            self.failed.append(
                f'{row["function"]}({name}) at {row["addr"]}: {arg["loc"]}: {mine["error"]}')
        elif not in_gdb:
            self.only_cairn[record['why'].get(name, 'gdb does not know the parameter')[:60]] += 1
        elif json.dumps(mine) == json.dumps(record['args'][name]):
            self.equal += 1
        elif self.is_view(row, name):
            self.views += 1
        elif self.is_in_part(row, name, record['sizes'][name]):
            self.in_part += 1
        elif row['kind'] == 'out-of-line' and is_moving_frame(self.subject.dwarf, row['die'], name):
            self.moving += 1
        else:
            self.different.append(
                f'{row["function"]}({name}) at {row["addr"]} DIE {row["die"]}: cairn {arg["loc"]} = {mine!r}, '
                f'gdb {record["args"][name]!r}')

    def report(self):
        s = self.subject.name
        print(
            f'{s}: {len(self.functions)} functions hit, {self.equal} values equal, {self.views} where gdb ignores location views, '
            f'{self.moving} where gdb uses a frame base before the prologue, {self.in_part} described in part, '
            f'{len(self.unreadable)} unreadable to both, '
            f'{len(self.different)} different, {len(self.failed)} not evaluated, {self.both_silent} unavailable to both'
        )
        print(f'{s}: only gdb has a value, by our reason: {dict(self.only_gdb)}')
        print(
            f'{s}: only we have a value, by gdb\'s reason: {dict(self.only_cairn.most_common(5))}')
        for reason, lines in self.examples.items():
            for line in sorted(set(lines))[:3]:
                print(f'{s}: {reason}: {line[:300]}')
        for line in (sorted(set(self.different))[:10] + sorted(set(self.failed))[:5]):
            print(f'{s}: {line[:400]}')
        common.claim(f'gdb {s}: no difference in {self.equal} values', not self.different
                     and self.equal > 0)
        common.claim(f'gdb {s}: every location could be evaluated', not self.failed)
        least = self.subject.functions_min
        common.claim(f'gdb {s}: at least {least} functions were hit ({len(self.functions)})',
                     len(self.functions) >= least)


def compare(subject, folder):
    rows, sites = sites_of(subject)
    label = re.sub(r'\W+', '-', subject.name)
    job = {
        'program': subject.program, 'args': subject.args, 'output': os.path.join(
            folder, label + '.out'), 'sites': sites, 'max_hits': HITS
    }
    _, symbols, _ = common.run(['nm', subject.dwarf])
    job['symbols'] = {
        f[-1].split('@')[0]: int(f[0], 16)
        for f in (line.split() for line in symbols.splitlines())
        if len(f) == 3
    }
    if subject.module:
        job['module'] = subject.module
    else:
        job['entry'] = tracers.entry_address(subject.program)
    comparison = Comparison(subject, rows)
    for record in tracers.run_gdb(job, folder, label, 1200):
        comparison.add(record)
    comparison.report()


def main():
    missing = common.have('gdb', 'gcc', 'clang', 'readelf', 'llvm-dwarfdump')
    if missing or common.dw_program('dies') is None or not os.access(common.CAIRN, os.X_OK):
        common.skip('gdb',
                    'not installed: ' + ' '.join(missing or ['libdw-dev, or cairn is not built']))
        return common.finish()
    folder = common.lab('gdb')
    for subject in subjects(folder):
        if len(sys.argv) > 1 and sys.argv[1] not in (subject if isinstance(subject, tuple) else
                                                     subject.name):
            continue
        if isinstance(subject, tuple):
            common.skip('gdb ' + subject[0], subject[1])
            continue
        try:
            compare(subject, folder)
        except (RuntimeError, OSError) as error:
            print(error)
            common.not_ok('gdb ' + subject.name)
    return common.finish()


if __name__ == '__main__':
    main()
