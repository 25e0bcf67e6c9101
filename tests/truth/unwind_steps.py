#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every instruction of running programs is unwound one frame, and compared with a shadow stack kept from calls and returns.

unwind/steps.c does it; see there. A caller's pc, stack pointer or callee-saved register that is not what it was is wrong, and the
claim is that none is. What no row describes is counted: hand-written assembler, code made at run time.
"""
import os
import re
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import common  # noqa: E402

STEPS = 200000  # at least; programs of many functions get more, in many short windows
SQL = '''create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000)
insert into t select i, hex(randomblob(i % 50)), i * 1.5 from n;
create index tb on t(b); create view v as select b, count(*) k from t group by substr(b, 1, 2);
select * from t where b like '%A%' order by c desc limit 100; select sum(c), avg(a), max(b) from t;
select t.a, u.b from t join t u on t.a = u.a + 1 where u.c > 100 order by u.b;
update t set b = upper(b) || 'x', c = c + 1 where a % 3 = 0; delete from t where a % 7 = 0;
select k, json_group_array(b) from v group by k; explain query plan select * from v where k > 2;
select printf('%d %s %f', a, b, c), date('now', '+' || (a % 9) || ' days') from t;
vacuum; pragma integrity_check; analyze; reindex; drop view v; drop table t;
'''
PYTHON = '''
import json, re, collections, decimal, datetime, hashlib, itertools, io, zlib, struct, textwrap, random, ast, difflib
def work(i):
    d = {str(k): [k, k * 1.5, None, "x" * (k % 9)] for k in range(i % 40)}
    json.loads(json.dumps(d)); re.findall(r"(a+)(b|c)*d", "aaabcbcd" * (i % 9)); sorted(d, key=lambda s: s[::-1])
    decimal.Decimal(i).sqrt(); datetime.datetime.fromtimestamp(i).isoformat(); hashlib.sha256(str(i).encode()).hexdigest()
    list(itertools.permutations("abc")); zlib.decompress(zlib.compress(bytes(i % 300))); struct.pack("<iq", i % 99, i)
    "%s %r %d" % (i, str(i), i); f"{i:>10}{i!r}"; random.sample(range(50), 5); ast.parse("x = [a for a in b if c]")
    difflib.unified_diff(["a", str(i)], ["b"]); collections.Counter("hello"); textwrap.fill("words " * 20)
    try:
        {}[i]
    except KeyError:
        pass
    int(str(i) * 20) ** 3 % 1000003; b"x".join([b"a"] * 4); set(range(i % 30)) & {1, 2}; complex(i, 1) * 2j
for i in itertools.count():
    work(i)
'''
NODE = '''let a = {}; for (let i = 0; ; i++) { a["k" + i % 1000] = JSON.stringify({ i, b: [1, 2, "x".repeat(i % 100)] });
JSON.parse(a["k" + i % 1000]); [3, 1, 2].sort(); /a+b/.test("aaab" + i); new Map([[i, a]]); BigInt(i) ** 3n; new Date(i).toISOString();
Buffer.from("x" + i).toString("base64"); require("crypto").createHash("sha256").update("" + i).digest("hex");
require("zlib").deflateSync("abc".repeat(50)); try { null.x } catch (e) { e.stack } encodeURIComponent("a b" + i) }'''


def programs(folder):
    """name: (windows, instructions in each, command), or why it cannot be run"""
    lists = {'ls': (40, 5001, ['ls', '-lR', '--color', '--full-time', '/usr/lib', '/usr/share'])}
    sql = os.path.join(folder, 'work.sql')
    with open(sql, 'w', encoding='utf-8') as file:
        file.write(SQL * 200)
    lists['sqlite3'] = (500, 1500, ['sqlite3', ':memory:', f'.read {sql}'])
    python = os.path.join(folder, 'work.py')
    with open(python, 'w', encoding='utf-8') as file:
        file.write(PYTHON)
    lists['python3'] = (500, 1500, ['/usr/bin/python3', python])
    lists['openssl'] = (40, 5001, ['openssl', 'speed', '-seconds', '1'])
    lists['node'] = (500, 1500, ['node', '--jitless', '-e', NODE])
    lists['node with its JIT'] = (200, 1500, ['node', '-e', NODE])
    exceptions = os.path.join(folder, 'exceptions')
    code, _, err = common.run(['g++', '-O2', '-ftemplate-depth=3000', '-Wl,-z,lazy', os.path.join(HERE, 'unwind', 'exceptions.cc'), '-o', exceptions], 300)
    lists['C++ exceptions'] = (300, 1500, [exceptions]) if code == 0 else err[-200:]
    lists['gdb'] = (500, 1500, ['gdb', '-batch', '-nx', '-ex', 'info functions str', '-ex', 'info types _', '/usr/bin/gdb'])
    return lists


def steps_program():
    path = os.path.join(os.path.dirname(os.path.realpath(common.CAIRN)), 'tests', 'truth', 'unwind_steps')
    if not os.path.exists(path):
        raise SystemExit(f'{path}: not built')
    return path


def compare(steps, name, windows, length, command, seed):
    if shutil.which(command[0]) is None:
        common.skip(f'unwind_steps {name}', f'{command[0]} is not installed')
        return
    code, out, err = common.run([steps, str(seed), str(windows), str(length)] + command, 900)
    found = re.search(r'^counts (.*)$', out, re.M)
    if code != 0 or not found:
        common.not_ok(f'unwind_steps {name}: {code} {err[-300:]}')
        return
    words = found.group(1).split()
    counts = {words[i]: int(words[i + 1]) for i in range(0, len(words), 2)}
    compared = counts['right'] + counts['wrong']
    known = compared + counts['undescribed']
    print(f'    {name}: {counts["steps"]} instructions in {counts["windows"]} windows, {counts["functions"]} functions, '
          f'{counts["signals"]} signals; right {100 * counts["right"] / max(known, 1):.3f} %, not described '
          f'{100 * counts["undescribed"] / max(known, 1):.3f} %, wrong {counts["wrong"]}')
    for line in out.splitlines():
        if line.startswith('wrong'):
            print('    ' + line)
    common.claim(f'unwind_steps {name}: none of {compared} callers is wrong', counts['wrong'] == 0 and counts['steps'] >= STEPS and compared > STEPS // 3)


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    steps = steps_program()
    with tempfile.TemporaryDirectory(prefix='cairn-steps-') as folder:
        for name, what in programs(folder).items():
            if isinstance(what, str):
                common.skip(f'unwind_steps {name}', what)
            else:
                compare(steps, name, *what, seed)
    common.finish()


main()
