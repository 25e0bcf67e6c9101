# SPDX-License-Identifier: BSD-2-Clause
"""Lua, SQLite and Redis, each built twice by a compiler: optimised, and at -O0 with a counter at
every function's entry.

What would differ from run to run is made constant, so that two builds make the same calls: seeds of
hashes, for Lua, whose tables and cache are indexed by addresses, the heap (heap.c), and for Redis,
whose timers decide what it does, the clock (clock.c).
"""
import glob
import os
import shutil

import common
import sources

HERE = os.path.dirname(os.path.abspath(__file__))
OPTIMISED = ['-O2', '-g']
COUNTING = ['-O0', '-g', '-finstrument-functions']
# Folders of the two builds. Paths of equal length: they become strings of the programs, whose
# memory decides when garbage is collected.
FAST, SLOW = 'fast', 'slow'

LUA = r'''
local t = {}
for i = 1, 400 do t[i] = {k = tostring(i), v = i * 1.5, s = ("x"):rep(i % 17)} end
table.sort(t, function(a, b) return a.k < b.k end)
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local s = {}
for i, e in ipairs(t) do s[#s + 1] = e.k:gsub("1", "one") .. string.format("%5.2f %q %x", e.v, e.s, i) end
local co = coroutine.wrap(function() for i = 1, 100 do coroutine.yield(i) end end)
for i = 1, 50 do co() end
print(#table.concat(s, ","), fib(12), select("#", pcall(error, {}, 2)))
for w in ("the quick brown fox"):gmatch("%a+") do s[w] = w:upper():byte(1) end
local m = setmetatable({}, {__index = function(_, k) return k * 2 end, __add = function(a, b) return 7 end,
  __eq = function() return true end, __lt = function() return true end, __le = function() return false end,
  __call = function(self, x) return x end, __len = function() return 3 end, __concat = function() return "c" end,
  __close = function() end, __gc = function() end})
local o = setmetatable({}, getmetatable(m))
print(m[21], m + 1, m == o, m < o, m <= o, m(5), #m, m .. "x")
for i = 1, 30 do
  local f = load("local a, b = ... ; local function g(x) return x and x .. 'y' or nil end while b > 0 do b = b - 1 if b == 7 then goto e end end ::e:: " ..
    "repeat local z = a * 2 // 3 % 5 ~ 1 & 255 | 8 << 1 until true for i = 1, 3 do local c <const>, d <close> = 1, nil end return g(a), -b, not a, #'abc', {1, 2, x = 3, [4] = 5}", "chunk" .. i)
  f(i, 10)
end
print(load("x = = 2"), load("for"), load("x = 'abc"), load("goto nowhere"), pcall(load, "x = }"))
print(string.pack("<i4 z s1", 100, "abc", "de"), ("%d"):rep(3, ","), ("abc"):reverse(), ("  x "):match("^%s*(.-)%s*$"), ("k=v"):find("(%w)=(%w)"))
print(utf8.char(72, 228, 8364, 0x10FFFF), utf8.len("häß"))
for _, c in utf8.codes("aé€") do io.write(c, " ") end
print("\u{48}\x41\065\z
   b", math.floor(3.7), math.ceil(3.2), math.max(1, 5, 3), math.fmod(7, 3), math.tointeger(3.0), math.type(1), math.ult(1, 2), math.abs(-3))
print(table.unpack({1, 2, 3})) print(table.concat(table.move({1, 2, 3}, 1, 3, 2), " ")) table.insert(t, 1, 5) table.remove(t)
print(tostring(1e15), 2^53, 10 // 3, 10.0 // 3, -7 % 3, 7 % -3.5, 1 << 62, 5 // 0.0, "10" + 5, 0x10, 1e2, 0x.8p1, tonumber("z", 36), tonumber("  0x1p4 "))
local weak = setmetatable({}, {__mode = "k"}) for i = 1, 50 do weak[{}] = i end
local eph = setmetatable({}, {__mode = "v"}) for i = 1, 50 do eph[i] = {} end
for i = 1, 3 do collectgarbage() collectgarbage("step", 10) end
collectgarbage("generational") for i = 1, 2000 do t[i % 100 + 1] = {i, tostring(i)} end collectgarbage("incremental") collectgarbage()
print(pcall(string.rep, "x", -1), pcall(error), select(-1, 1, 2), next({}), rawequal(t, t), rawlen({1}), type(os.time()), os.date("!%Y", 0))
print(xpcall(function() local x = nil; return x.y end, function(e) return #debug.traceback(e) > 0 end), debug.getinfo(1, "l").currentline)
local f = io.open(arg[0]) local n = 0 for l in f:lines() do n = n + #l end f:seek("set", 0) f:read("n", "l", "a") f:close() print(n)
'''

SQL = r'''
.mode csv
CREATE TABLE a(id INTEGER PRIMARY KEY, name TEXT, v REAL);
CREATE INDEX ia ON a(name);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
  INSERT INTO a SELECT i, 'name' || (i * 7919 % 1009), i / 3.0 FROM n;
SELECT name, count(*), avg(v) FROM a WHERE v BETWEEN 10 AND 200 GROUP BY substr(name, 1, 6) ORDER BY 3 DESC LIMIT 5;
UPDATE a SET v = v * 2 WHERE id % 3 = 0;
DELETE FROM a WHERE name LIKE '%99%';
SELECT a.id, b.name FROM a JOIN a AS b ON b.id = a.id + 1 WHERE a.name > b.name ORDER BY b.name LIMIT 3;
SELECT json_extract('{"a":[1,2,{"b":3}]}', '$.a[2].b'), printf('%08.3f|%s|%q|%x', 3.14159, hex('abc'), 'it''s', 255);
CREATE TABLE b(x UNIQUE, y CHECK (y > 0), z DEFAULT 5, FOREIGN KEY(x) REFERENCES a(id));
CREATE TRIGGER tr AFTER INSERT ON b BEGIN UPDATE a SET v = v + 1 WHERE id = new.x; END;
CREATE VIEW w AS SELECT x, y FROM b WHERE y < 50;
INSERT INTO b(x, y) VALUES (1, 10), (2, 20), (3, 60);
INSERT OR REPLACE INTO b VALUES (1, 11, 12) ON CONFLICT(x) DO UPDATE SET y = 9;
BEGIN; SAVEPOINT s; DELETE FROM b WHERE x = 2; ROLLBACK TO s; RELEASE s; COMMIT;
SELECT * FROM w LEFT JOIN a ON a.id = w.x UNION SELECT x, y, z, z, z FROM b EXCEPT SELECT 9, 9, 9, 9, 9 ORDER BY 1;
SELECT x, row_number() OVER (ORDER BY y), sum(y) OVER (PARTITION BY x % 2 ORDER BY y ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM b;
SELECT CASE WHEN x IN (SELECT id FROM a WHERE v > 5) THEN 'yes' ELSE upper('no') END, coalesce(NULL, trim('  q ')), x IS NULL, abs(-y) FROM b;
SELECT group_concat(name, ';'), max(length(name)), min(v), total(v) FROM (SELECT DISTINCT name, v FROM a LIMIT 20);
SELECT date('2020-02-29', '+1 year'), strftime('%s', '2021-01-01'), round(2.567, 2), instr('hello', 'l'), replace('aXb', 'X', 'y'), typeof(1.0), quote('x');
CREATE VIRTUAL TABLE IF NOT EXISTS r USING rtree(id, x0, x1);
ALTER TABLE b RENAME TO c; ALTER TABLE c ADD COLUMN q TEXT; ALTER TABLE c DROP COLUMN q;
EXPLAIN QUERY PLAN SELECT * FROM a WHERE name = 'name5' OR id IN (1, 2, 3);
ANALYZE; REINDEX; VACUUM;
.schema
.dump c
PRAGMA integrity_check; PRAGMA table_info(a); PRAGMA foreign_key_check;
DROP TABLE c; DROP INDEX ia;
SELECT * FROM nowhere; SELECT 1 +; INSERT INTO a VALUES (1);
.quit
'''

REDIS = [
    *(f'SET key:{i} value:{i * 7919 % 1009}' for i in range(200)), 'APPEND key:1 tail',
    'INCRBY n 5', 'INCRBYFLOAT f 1.5', 'SETRANGE key:2 3 xyz', 'SETBIT bits 100 1',
    'BITOP NOT nbits bits', 'BITFIELD bits SET u8 0 200', 'PFADD hll a b c', 'PFMERGE hll2 hll',
    'MSET a 1 b 2', 'GETSET a 3', *(f'RPUSH list e{i}' for i in range(300)), 'LPOP list',
    'LINSERT list BEFORE e5 x', 'LREM list 0 e7', 'LTRIM list 10 250', 'LSET list 3 y',
    'RPOPLPUSH list list2', *(f'SADD ints {i * 31 % 1000}' for i in range(100)),
    *(f'SADD set m{i}' for i in range(200)), 'SREM set m3', 'SMOVE set set2 m4',
    'SINTERSTORE s3 set set2', 'SUNIONSTORE s4 set ints', 'SDIFFSTORE s5 set s3',
    *(f'HSET hash f{i} v{i}' for i in range(300)), 'HDEL hash f3', 'HINCRBY hash n 3',
    *(f'ZADD zset {i * 37 % 101}.5 m{i}' for i in range(300)), 'ZINCRBY zset 3 m5', 'ZREM zset m6',
    'ZREMRANGEBYSCORE zset 1 5', 'ZREMRANGEBYRANK zset 0 3',
    'ZUNIONSTORE z2 2 zset set WEIGHTS 2 3', 'ZINTERSTORE z3 2 zset z2', 'ZPOPMIN zset',
    'ZADD lex 0 a 0 b 0 c', 'ZREMRANGEBYLEX lex [a (b', 'ZRANGESTORE z4 zset 0 10',
    'GEOADD geo 13.36 38.11 P 15.08 37.50 C', 'GEOSEARCHSTORE g2 geo FROMLONLAT '
    '15 37 BYRADIUS 200 km', *(f'XADD stream {i}-1 a {i} b {i}' for i in range(1, 200)),
    'XDEL stream 5-1', 'XTRIM stream MAXLEN 50', 'XGROUP CREATE stream g 0',
    'SORT list ALPHA STORE sorted', 'COPY list list3', 'RENAME list3 list4',
    'PEXPIREAT key:9 99999999999999', 'PERSIST key:9', 'DEL key:3 key:4', 'UNLINK hash2', 'MULTI',
    'SET in multi', 'EXEC', 'SELECT 1', 'SET x y', 'MOVE x 2', 'SWAPDB 1 2', 'FLUSHDB', 'SELECT 0',
    'DEBUG DIGEST', 'SHUTDOWN NOSAVE NOW',
]


def write(path, text):
    with open(path, 'w', encoding='utf-8', newline='') as file:
        file.write(text)
    return path


def folder(compiler, *kind):
    return common.lab('call_counts', compiler, *kind)


def is_made(output):
    """Whether it is there, and made in the way that is written here."""
    files = (os.path.join(HERE, name) for name in ('hooks.c', 'clock.c', 'heap.c', 'programs.py'))
    return os.path.exists(output) and os.path.getmtime(output) > max(
        os.path.getmtime(file) for file in files)


def compile_both(name, files, flags, compiler):
    """(optimised, counting)"""
    made = []
    for kind, options, more in ((FAST, OPTIMISED, []), (SLOW, COUNTING, [
            os.path.join(HERE, 'hooks.c')
    ])):
        output = os.path.join(folder(compiler, kind), name)
        if not is_made(output):
            try:
                common.compile_c(files + more + ['-lm', '-ldl', '-lpthread'], output,
                                 [*options, '-w', *flags], compiler, 1200)
            except RuntimeError as error:
                raise sources.Unavailable(str(error)) from error
        made.append(output)
    return made


def lua(compiler):
    tree = sources.unpacked('lua5.4')
    files = [
        p for p in sorted(glob.glob(os.path.join(tree, 'src', '*.c'))) if not p.endswith('/luac.c')
    ]
    heap = os.path.join(folder(compiler), 'heap.o')
    if not is_made(heap):
        # The counting build's own flags would count its functions.
        common.compile_c([os.path.join(HERE, 'heap.c')], heap, ['-O2', '-c', '-fno-builtin'],
                         compiler)
    made = compile_both('lua', [*files, heap], [
        '-DLUA_COMPAT_5_3', '-DLUA_USE_LINUX', '-Dluai_makeseed(L)=0', '-DSTRCACHE_N=1',
        '-DSTRCACHE_M=1'
    ], compiler)
    return made, write(os.path.join(folder(compiler), 'work.lua'), LUA)


def sqlite(compiler):
    sources.sqlite(compiler)  # makes the amalgamation
    made_in = os.path.join(common.lab('src', 'sqlite3'), 'made')
    made = compile_both('sqlite', [os.path.join(made_in, f) for f in ('shell.c', 'sqlite3.c')],
                        ['-DSQLITE_THREADSAFE=0', '-DSQLITE_ENABLE_RTREE'], compiler)
    script = write(os.path.join(folder(compiler), 'work.sql'), SQL)
    return made, f':memory: ".read {script}"'


def redis_build(compiler, kind, flags):
    """The server with its tests, allocating with malloc; built in a copy of the source."""
    output = os.path.join(folder(compiler, kind), 'redis')
    if is_made(output):
        return output
    copy = os.path.join(folder(compiler, kind), 'redis-source')
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(sources.unpacked('redis'), copy)
    util = os.path.join(copy, 'src', 'util.c')
    with open(util, encoding='utf-8') as file:
        text = file.read()
    # Seeds of hashes.
    write(util, text.replace('/dev/urandom', '/dev/zero'))
    objects = []
    for name in ('clock', 'hooks')[:1 + (kind == SLOW)]:
        objects.append(
            common.compile_c([os.path.join(HERE, name + '.c')], os.path.join(copy, name + '.o'),
                             ['-O2', '-c'], compiler))
    options = f'CC={compiler} MALLOC=libc OPT="{" ".join(flags)} -w" OPTIMIZATION="{flags[0]}" REDIS_CFLAGS="{" ".join(flags[1:])} -DREDIS_TEST" DEBUG=-g'
    sources.shell(
        f'make -C deps hiredis linenoise lua hdr_histogram CC={compiler} CFLAGS="-O1 -g0" && make -C src -j2 redis-server {options} LDFLAGS="{" ".join(objects)}"',
        copy, os.path.join(folder(compiler, kind), 'redis.log'))
    os.rename(os.path.join(copy, 'src', 'redis-server'), output)
    return output


def redis(compiler):
    made = [redis_build(compiler, FAST, OPTIMISED), redis_build(compiler, SLOW, COUNTING)]
    data = os.path.join(folder(compiler), 'data')
    os.makedirs(os.path.join(data, 'appendonlydir'), exist_ok=True)
    write(os.path.join(data, 'appendonlydir', 'aof.manifest'), 'file aof.1.incr.aof seq 1 type i\n')
    commands = (c.split(' ') for c in REDIS)
    write(os.path.join(data, 'appendonlydir', 'aof.1.incr.aof'),
          ''.join(f'*{len(c)}\r\n' + ''.join(f'${len(w)}\r\n{w}\r\n' for w in c) for c in commands))
    return made, f'--dir {data} --appendonly yes --appendfilename aof --save "" --port 0 --unixsocket {data}/socket --daemonize no --logfile {data}/log --enable-debug-command yes'


PROGRAMS = {'Lua': lua, 'SQLite': sqlite, 'Redis': redis}
