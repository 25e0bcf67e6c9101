#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every instruction of running programs is unwound one frame, and compared with a shadow stack kept
from calls and returns.

unwind/steps.c does it; see there. A caller's pc, stack pointer or callee-saved register that is not
what it was is wrong, and the claim is that none is, but for functions that are proven not to keep
the ABI: those are listed with their registers. What no row describes is counted: hand-written
assembler, code made at run time.
"""
import os
import re
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import common  # noqa: E402

STEPS = 200000  # at least, of each program
FUNCTIONS = 2000  # as many different ones, or all windows are used up
SQL = '''create table if not exists t(a integer primary key, b text, c real);
create virtual table if not exists f using fts5(b, c); create virtual table if not exists box using rtree(id, x0, x1, y0, y1);
create table if not exists child(id integer primary key, t references t(a) on delete cascade, at text default current_timestamp,
 twice generated always as (id * 2) stored, check (id > 0));
create trigger if not exists after_update after update on t begin insert into child(t) values (new.a); end;
with recursive n(i) as (select 1 union all select i + 1 from n where i < 12)
insert into t select null, hex(randomblob(i % 50)), i * 1.5 from n;
insert into f select b, c from t limit 50; insert into f(f) values('optimize'); select snippet(f, 0, '<', '>', '.', 5), rank from f where f match 'A* OR 1*' order by rank;
insert into box select abs(random() % 1000000000), i, i + 5, i * 2, i * 2 + 3 from (select a i from t limit 60) ; select count(*) from box where x0 > 5 and y1 < 90; delete from box;
create index if not exists tb on t(b collate nocase) where c > 9; create view if not exists v as select b, count(*) k from t group by substr(b, 1, 2);
select * from t where b like '%A%' order by c desc limit 100; select sum(c), avg(a), max(b), total(c), group_concat(a, '-') from t;
select t.a, u.b from t join t u on t.a = u.a + 1 left join child on child.t = u.a where u.c > 100 order by u.b collate rtrim;
select a, row_number() over w, lag(b, 1, 'x') over w, ntile(4) over w, percent_rank() over w, first_value(c) over (order by a rows between 3 preceding and 2 following) from t window w as (partition by a % 5 order by c);
update t set b = upper(b) || 'x', c = c + 1 where a % 30 = 0; pragma foreign_keys = on; delete from t where a % 7 = 0; delete from child;
select k, json_group_array(b) from v group by k; explain query plan select * from v where k > 2; explain select * from t, child where t.a = child.t;
select json_extract('{"a":[1,2,{"b":null}]}', '$.a[2].b'), json_patch('{"a":1}', '{"b":[2]}'), json_set('{}', '$.x', json('[1]')); select * from json_tree('{"a":[1,2,{"b":3.5e3}]}');
select printf('%d %s %f %x %e %g %q %w', a, b, c, a, c, c, b, b), date('now', '+' || (a % 9) || ' days', 'start of month', 'weekday 3') , julianday('2001-02-03'), strftime('%J %W %s', 'now') from t limit 40;
select instr(b, 'A'), replace(b, 'A', 'b'), trim(b, '0'), quote(b), unicode(b), char(65, a), round(c, 1), b glob '*A*', typeof(a), nullif(a, 3), coalesce(null, b), iif(a > 3, 1, 2), likely(a > 1), soundex(b), cast(b as integer), b in (select b from t where a < 9), exists (select 1 from child where t = a), case a % 3 when 0 then 'x' else 'y' end from t;
select a from t where c between 5 and 50 union select id from child intersect select a from t except select 3 order by 1; select distinct substr(b, 2, 3) from t;
begin; savepoint s; insert or replace into t values(5, x'0102', 1e300); insert into t values(5, 'y', 2) on conflict(a) do update set b = excluded.b returning a, b; rollback to s; release s; commit;
select * from pragma_table_info('t'), pragma_index_list('t'); select name, sql from sqlite_schema; select * from dbstat limit 5; pragma integrity_check; analyze; reindex; alter table child rename to kind; alter table kind add column more text; alter table kind drop column more; alter table kind rename to child;
attach ':memory:' as other; create table other.o as select * from t; vacuum; detach other; select load_extension('none'); select nothing from nowhere; select (;
create temp table w(a primary key, b unique) without rowid; insert into w select a, b || a from t; select * from w where a > 5 order by b desc limit 3 offset 2; drop table w;
.mode box
select a, b, c from t limit 5;
.mode json
select a, b, c from t limit 5;
.mode csv
select a, b, c from t limit 5;
.mode insert
select a, b, c from t limit 5;
.mode list
.dump child
.schema
.stats on
.indexes
.eqp full
select * from t where a = 5 or b = 'x';
.eqp off
.stats off
pragma journal_mode = wal; insert into t(b) values('in wal'); pragma wal_checkpoint(truncate); pragma journal_mode = delete; pragma auto_vacuum = incremental; pragma incremental_vacuum; pragma cache_spill; pragma mmap_size = 65536; pragma secure_delete = on; pragma user_version = 3; pragma quick_check; pragma foreign_key_check; pragma optimize; pragma compile_options; pragma function_list; pragma collation_list; pragma database_list; pragma encoding; pragma page_size; pragma freelist_count; pragma data_version;
create virtual table if not exists g using fts4(b, tokenize=porter); insert into g select b from t limit 20; select matchinfo(g), offsets(g), snippet(g) from g where b match 'A* NEAR 0*'; insert into g(g) values('optimize'); insert into g(g) values('integrity-check'); drop table g;
create trigger if not exists instead instead of delete on v begin select raise(ignore); end; delete from v where k > 0; drop trigger instead; create unique index if not exists u on t(a desc, b) where b is not null; select * from t indexed by u where b is not null and a > 3 order by a desc limit 3; drop index u;
select * from (select a, avg(c) over (order by a groups between 1 preceding and unbounded following exclude ties) m from t) where m > 3 group by a having count(*) > 0 order by m nulls last limit 5; select dense_rank() over (order by b), cume_dist() over (order by b), nth_value(a, 2) over (order by b), last_value(a) over (order by b), lead(a) over (order by b), rank() over (order by b) from t limit 9;
with recursive fib(a, b) as (values (0, 1) union all select b, a + b from fib limit 20) select group_concat(a) from fib; values (1, 2), (3, 4); select * from t natural join child; select * from t full join child on t.a = child.t limit 4; select (select max(a) from t where t.b > u.b) from t u limit 9; select a from t where (a, b) in (select a, b from t) and a not between 3 and 5 or b is not distinct from 'x' limit 5;
create table if not exists s(a integer primary key autoincrement, b text check (length(b) < 500) unique on conflict replace, c real default (1 + 2), d blob not null default x'00', foreign key (a) references t(a) deferrable initially deferred) strict; insert or ignore into s(b) select b from t limit 5; update or fail s set (b, c) = (select 'q', 3.5) where a = 1; update s set c = t.c from t where t.a = s.a; delete from s order by a limit 2; replace into s(b) values ('z'); drop table s;
select hex(zeroblob(5)), randomblob(3) is null, last_insert_rowid(), changes(), total_changes(), sqlite_version(), sqlite_source_id(), like('a%', 'abc'), ltrim('  a'), rtrim('a  '), sign(-3), abs(-3), min(1, 2), max(1, 2), format('%05d', 3), 1 from t limit 1; select acos(0.5), sin(1), pow(2, 3), ln(2), log(10), exp(1), mod(7, 3), ceil(1.2), floor(1.2), trunc(1.7), sqrt(2), degrees(1), radians(90), pi(), atan2(1, 2);
select time('now', 'localtime'), datetime('2020-01-31', '+1 month', 'utc'), unixepoch('now'), date('now', 'unixepoch'), strftime('%s %f %H %M %w %Y', 'now', '-3 hours'), date('2020-02-30', 'auto'), json_each.value, json_type('[1]', '$[0]'), json_valid('{'), json_quote('x'), json_remove('[1,2]', '$[0]'), json_array_length('[1]'), json_insert('[1]', '$[1]', 2), json_replace('{"a":1}', '$.a', 2), json_object('a', 1), json_group_object('a', 2), '{"a":{"b":1}}' -> '$.a' ->> 'b' from json_each('[1,2]');
.backup main /dev/shm/cairn-steps-backup
.restore main /dev/shm/cairn-steps-backup
.tables
.databases
.dbinfo
.fullschema
.sha3sum
.lint fkey-indexes
.limit
.show
.timer on
.width 5 5
.mode column
select a, b from t limit 3;
.mode markdown
select a, b from t limit 3;
.mode html
select a, b from t limit 3;
.mode tcl
select a, b from t limit 3;
.mode quote
select a, b from t limit 3;
.mode line
select a, b from t limit 3;
.mode list
.timer off
.parameter set :x 5
.parameter list
select :x;
.expert
select * from t where c = 5 and b = 'x';
.selftest --init
.recover
.scanstats on
.explain on
explain select 1;
.nullvalue NULL
.print hello
.headers on
.changes on
.filectrl size_limit
.vfslist
.progress 100
select count(*) from t, t u, t w;
.progress 0
.archive --list
.help
drop view v; delete from t; delete from f; drop table child; drop trigger if exists after_update;
'''
PYTHON = r'''
import json, re, collections, decimal, datetime, hashlib, itertools, io, zlib, struct, textwrap, random, ast, difflib
import array, asyncio, base64, bisect, bz2, calendar, codecs, contextlib, copy, csv, dataclasses, enum, fractions, functools, heapq, lzma, math, mmap, operator, os
import pickle, select, socket, sqlite3, statistics, string, subprocess, tempfile, threading, time, tokenize, traceback, unicodedata, urllib.parse, uuid, weakref, xml.etree.ElementTree as et, ctypes, locale, gc, queue, html.parser
def a(i):
    d = {str(k): [k, k * 1.5, None, "x" * (k % 9)] for k in range(i % 40)}
    json.loads(json.dumps(d)); re.findall(r"(a+)(b|c)*d", "aaabcbcd" * (i % 9)); sorted(d, key=lambda s: s[::-1])
    decimal.Decimal(i).sqrt(); datetime.datetime.fromtimestamp(i).isoformat(); hashlib.sha256(str(i).encode()).hexdigest()
    list(itertools.permutations("abc")); zlib.decompress(zlib.compress(bytes(i % 300))); struct.pack("<iq", i % 99, i)
def b(i):
    "%s %r %d" % (i, str(i), i); f"{i:>10}{i!r}"; random.sample(range(50), 5); ast.parse("x = [a for a in b if c]")
    difflib.unified_diff(["a", str(i)], ["b"]); collections.Counter("hello"); textwrap.fill("words " * 20)
    try:
        {}[i]
    except KeyError:
        traceback.format_exc()
    int(str(i) * 20) ** 3 % 1000003; b"x".join([b"a"] * 4); set(range(i % 30)) & {1, 2}; complex(i, 1) * 2j
def c(i):
    exec(compile("class A:\n  x: int = 3\n  def f(self, *a, k=2, **b):\n    with open('/dev/null') as f: yield from a\n    match k:\n      case [1, *r]: pass\n      case {'a': 1}: pass\n    return lambda: (yield)\nasync def g():\n  async for i in x: await i\n", "x", "exec"), {})
    pickle.loads(pickle.dumps([i, {"a": (1, 2.5, b"x")}, {3}])); copy.deepcopy([[1], {2: 3}]); fractions.Fraction(i, 7) + 1; math.gcd(i, 12); math.factorial(i % 50); math.erf(.3); statistics.mean([1, 2, i])
    db = sqlite3.connect(":memory:"); db.execute("create table t(a)"); db.executemany("insert into t values(?)", [(1,), (i,)]); list(db.execute("select * from t where a > 0")); db.close()
def d(i):
    et.fromstring("<a b='c'><d>&amp;text</d></a>"); unicodedata.normalize("NFD", "\u00e9\u1e9b"); "\u00e9a".encode("utf-16").decode("utf-16"); codecs.encode("a\u00e9", "idna"); "stra\u00dfe".casefold().title().center(30).expandtabs().partition("a")
    bz2.decompress(bz2.compress(b"abc" * 99)); lzma.decompress(lzma.compress(b"abc")); base64.b64encode(b"abc"); array.array("d", [1, 2]).tobytes(); memoryview(bytearray(9))[1:5].cast("B").tolist(); heapq.nsmallest(3, [5, 1, i]); bisect.insort([1, 3], 2)
    s, t = socket.socketpair(); s.send(b"x"); t.recv(1); s.close(); t.close(); select.select([], [], [], 0); os.stat("/"); os.listdir("/proc"); os.environ.get("A"); time.strftime("%c"); calendar.month(2020, 1 + i % 12); locale.localeconv()
def e(i):
    async def work():
        await asyncio.gather(*[asyncio.sleep(0) for _ in range(3)])
    asyncio.run(work()); gc.collect(); weakref.ref(e); uuid.uuid4(); urllib.parse.urlsplit("http://a/b?c=d"); list(csv.reader(io.StringIO("a,b\n1,'2'"))); ctypes.CDLL(None).strlen(b"abc"); ctypes.c_int(5).value
    list(tokenize.generate_tokens(io.StringIO("a = 1 + b").readline)); functools.lru_cache(None)(len)("abc"); functools.reduce(operator.add, [1, 2]); enum.Enum("E", "a b"); dataclasses.make_dataclass("P", ["x"])(1); io.TextIOWrapper(io.BytesIO(b"a\nb")).readlines(); mmap.mmap(-1, 10)[:3]; 10 ** 40 // 3 ** 20; float.fromhex("0x1.8p3"); (5).to_bytes(3, "big"); 3.7.as_integer_ratio(); divmod(i, 7); pow(i, 5, 13); f"{3.14159:,.3e}{i:#x}"; "a {x}".format_map({"x": 1}); str.maketrans("a", "b"); [*range(9)][::-2]; slice(1, 2).indices(5); type("T", (dict,), {"__slots__": ()})(); frozenset([1]) ^ {2}; collections.OrderedDict(a=1).move_to_end("a"); collections.deque([1, 2], 3).rotate(1); zip([1], strict=True); hash((1, "a")); bytes.fromhex("00ff"); isinstance(3, int | str)
for i in itertools.count():
    for f in a, b, c, d, e:
        f(i)
'''
NODE = r'''let a = {}; const vm = require("vm"), fs = require("fs"), util = require("util"), url = require("url"), crypto = require("crypto"), zlib = require("zlib");
const steps = [
 i => { a["k" + i % 100] = JSON.stringify({ i, b: [1, 2.5, "x".repeat(i % 100), null, { c: true }] }); JSON.parse(a["k" + i % 100], (k, v) => v); },
 i => { [3, 1, 2].sort(); /a+b(?<n>c|d)*?\u{61}/u.exec("aaabcd" + i); "a,b".split(/,/); "abc".replace(/b/g, x => x + i); "x".localeCompare("y"); "\u00e9".normalize("NFD"); },
 i => { new Map([[i, a]]); new WeakMap([[a, i]]); BigInt(i) ** 30n / 7n % 5n; BigInt("0x" + i); new Date(i).toISOString(); new Date("2001-02-03").toLocaleString(); Date.parse("Mon, 1 Jan 2001"); },
 i => { Buffer.from("x" + i).toString("base64"); crypto.createHash("sha256").update("" + i).digest("hex"); crypto.createHmac("md5", "k").update("x").digest(); crypto.randomBytes(9); crypto.pbkdf2Sync("a", "b", 1, 9, "sha1"); crypto.createCipheriv("aes-128-cbc", "0123456789abcdef", "0123456789abcdef").update("x"); },
 i => { zlib.deflateSync("abc".repeat(50)); zlib.gunzipSync(zlib.gzipSync("x")); zlib.brotliDecompressSync(zlib.brotliCompressSync("abcabc", { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 3 } })); },
 i => { try { null.x } catch (e) { e.stack } try { eval("var )" + i) } catch (e) { "" + e } encodeURIComponent("a b" + i); structuredClone({ a: [1, new Date(), new Map()] }); },
 i => { new Function("b", "class A" + i + " extends Object { #p = 3; static s = 1; get x() { return this.#p } async *g() { for await (const q of b) yield* q; } } let {c, ...d} = {c: b, e: `t${b}`}; label: for (const k in d) { switch (k) { case 1: break label; default: continue } } try { throw d } catch ({m}) { } finally { } return () => b?.c ?? 3")(i); },
 i => { vm.runInNewContext("x = 1 + y", { y: i }); new vm.Script("1+" + i).runInThisContext(); new Proxy({}, { get() { return 1 } }).x; Reflect.ownKeys(a); Object.defineProperty({}, "x", { get() {} }); Symbol("x").description; },
 i => { fs.statSync("/"); fs.readdirSync("/proc"); fs.writeFileSync("/dev/null", "x"); new url.URL("http://a:1/b?c=d#e"); util.inspect(a, { depth: 1 }); util.format("%s %d %j", 1, 2, {}); process.memoryUsage(); process.hrtime(); },
 i => { new Intl.NumberFormat("en", { style: "currency", currency: "EUR" }).format(i); new Intl.DateTimeFormat("en").format(0); new Intl.PluralRules("en").select(i); (12345.678).toLocaleString(); i.toFixed(3); (i / 7).toString(3); parseFloat("1.5e3"); },
 i => { new Float64Array(9).fill(i).map(x => x * 2).sort(); new DataView(new ArrayBuffer(9)).setFloat32(0, i); Atomics.add(new Int32Array(new SharedArrayBuffer(8)), 0, 1); new TextDecoder("utf-16le").decode(new Uint8Array([65, 0])); new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])); },
 i => { Promise.resolve(i).then(x => x); setImmediate(() => 0); queueMicrotask(() => 0); (async () => { for await (const x of [1, 2]); })(); function* g() { yield* [1, 2] } [...g()]; new (require("events"))().on("x", () => 0).emit("x"); new FinalizationRegistry(() => 0).register({}, 1); },
];
let i = 0; function round() { const until = Date.now() + 200; while (Date.now() < until) for (const s of steps) { i++; try { s(i) } catch (e) { } } setImmediate(round) } round()'''


GDB = r'''set pagination off
python
import gdb
work = """
set $i = $i + 1
info functions ^str
info types ^_
info line main
info scope main
info source
info files
info symbol main
info address main
disassemble /s main
x/20i main
x/8xg main
list main
ptype main
whatis 1.5f + 2
maint print type int
maint info sections
maint print msymbols
maint print c-tdesc
print/x $i * 3 + sizeof(long) % 7
print 1.0 / 3 + (char)65
print {1, 2, 3}
print "abc"
print $_siginfo
print (long)&main & ~0xfff
printf "%d %s %f %c\n", $i, "x", 1.5, 65
eval "echo %d\n", $i
output/t $i
explore 1
help breakpoints
apropos ^thread
show version
show convenience
break main
tbreak main if $i > 3
info breakpoints
delete
complete info s
macro define A(x) x + 1
print A(3)
set language ada
print 16#ff# + 1
set language rust
print 1 as u8
set language c++
print sizeof(int) == 4 && true || !false
ptype struct nothing
add-symbol-file /bin/true 0x10000
remove-symbol-file -a 0x10000
"""
while True:
    for command in work.splitlines():
        try:
            gdb.execute(command, to_string=True)
            [str(s.type) for s in gdb.lookup_static_symbols("main")]
        except gdb.error:
            pass
end
'''


# What has been called once by "openssl speed" is a part of what openssl has.
OPENSSL = '''
req -x509 -newkey rsa:2048 -nodes -subj /C=XX/CN=a.example/emailAddress=a@b -addext subjectAltName=DNS:a,IP:1.2.3.4 -keyout {0}/rsa.pem -out {0}/rsa.crt
genpkey -algorithm ec -pkeyopt ec_paramgen_curve:P-256 -out {0}/ec.pem
genpkey -algorithm ed25519 -out {0}/ed.pem
list -all-algorithms
x509 -in {0}/rsa.crt -text -noout -purpose -fingerprint -C
pkcs12 -export -in {0}/rsa.crt -inkey {0}/rsa.pem -passout pass:x -out {0}/a.p12
pkcs12 -in {0}/a.p12 -passin pass:x -nodes
cms -sign -in {0}/rsa.crt -signer {0}/rsa.crt -inkey {0}/rsa.pem -out {0}/a.cms
cms -encrypt -aes128 -in {0}/rsa.crt {0}/rsa.crt
dgst -sha512 -sign {0}/ec.pem {0}/rsa.crt
pkeyutl -sign -rawin -inkey {0}/ed.pem -in {0}/rsa.crt
enc -aes-256-ctr -pbkdf2 -k x -a -in {0}/rsa.crt
verify -CAfile {0}/rsa.crt {0}/rsa.crt
asn1parse -in {0}/rsa.crt -i
crl2pkcs7 -nocrl -certfile {0}/rsa.crt
ciphers -v ALL
prime -generate -bits 128
kdf -keylen 20 -kdfopt digest:SHA2-256 -kdfopt key:x -kdfopt salt:y HKDF
rsa -in {0}/rsa.pem -text -check
ec -in {0}/ec.pem -text -pubout
smime -sign -in {0}/rsa.crt -signer {0}/rsa.crt -inkey {0}/rsa.pem
dhparam -dsaparam 512
ecparam -list_curves
'''


def ls():
    """A long listing, and what other listings call."""
    words = ['ls', '-lRZ', '--color', '--full-time', '/usr/lib', '/usr/share', '/etc', '/proc']
    for line in ('-la --color=always /usr/bin /dev', '-C -w 80 --sort=version -F /usr/lib',
                 '--help', '--version', '-m -Q -i -s -h --sort=time /etc',
                 '-l --time-style=+%Y-%j --block-size=K --author -n /tmp',
                 '-x --quoting-style=locale --ignore=*.h -b --dired -l --hyperlink /usr',
                 '-l /none --nothing', '-R -f -U /etc'):
        words += ['+', 'ls'] + line.split()
    return words


def openssl(folder):
    """The workload, and after it commands that end soon."""
    words = ['openssl', 'speed', '-seconds', '1']
    for line in OPENSSL.format(folder).splitlines()[1:]:
        words += ['+', 'openssl'] + line.split()
    return words


def compiled(compiler, flags, sources, output):
    """None, or why it is not there"""
    code, _, err = common.run([
        compiler, '-O2', *flags, *(os.path.join(HERE, 'unwind', s) for s in sources), '-o', output
    ], 300)
    return None if code == 0 else err[-200:]


def written(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    return path


def programs(folder):
    """name: (windows at most, instructions in each, windows where something new is called at most,
    what has to be seen in it, command), or why it cannot be run"""
    sql, python = written(folder, 'work.sql', SQL * 400), written(folder, 'work.py', PYTHON)
    exceptions, lazy, library = (os.path.join(folder, name)
                                 for name in ('exceptions', 'lazy', 'liblazy.so'))
    why_not = compiled('g++', ['-ftemplate-depth=3000', '-Wl,-z,lazy'], ['exceptions.cc'],
                       exceptions)
    why_not_lazy = compiled('gcc', ['-ldl'], ['lazy.c'], lazy) or compiled(
        'gcc',
        ['-DLIBRARY', '-fno-builtin', '-shared', '-fPIC', '-Wl,-z,lazy,--no-as-needed', '-lm'],
        ['lazy.c'], library)
    return {
        'ls': (200, 3000, 1000, (), ls()), 'sqlite3': (200, 1500, 3000, ('functions',), [
            'sqlite3', os.path.join(folder, 'work.db'), f'.read {sql}'
        ]), 'python3': (300, 1500, 4000, ('functions',), ['/usr/bin/python3', python]), 'openssl':
        (600, 1500, 4000, ('functions',), openssl(folder)), 'node':
        (3000, 1500, 0, ('functions',), ['node', '--jitless', '-e', NODE]), 'node with its JIT':
        (3000, 1500, 0, ('functions',), ['node', '-e', NODE]), 'C++ exceptions':
        why_not or (300, 3000, 4000, ('functions', 'signals', 'jumps'), [exceptions]),
        'lazy binding':
        why_not_lazy or (150, 6000, 100, ('bound',), [lazy, library]), 'gdb':
        (200, 1500, 4000, (), [
            'gdb', '-batch', '-nx', '-x',
            written(folder, 'work.gdb', GDB), exceptions
        ]),
    }


def steps_program():
    path = os.path.join(os.path.dirname(os.path.realpath(common.CAIRN)), 'tests', 'truth',
                        'unwind_steps')
    if not os.path.exists(path):
        raise SystemExit(f'{path}: not built')
    return path


def compare(steps, name, windows, length, fresh, has, command, seed):
    if shutil.which(command[0]) is None:
        common.skip(f'unwind_steps {name}', f'{command[0]} is not installed')
        return
    code, out, err = common.run(
        [steps, str(seed),
         str(windows),
         str(length),
         str(fresh),
         str(FUNCTIONS),
         str(STEPS)] + command, 1800)
    found = re.search(r'^counts (.*)$', out, re.M)
    if code != 0 or not found:
        common.not_ok(f'unwind_steps {name}: {code} {err[-300:]}')
        return
    words = found.group(1).split()
    counts = {words[i]: int(words[i + 1]) for i in range(0, len(words), 2)}
    compared = counts['right'] + counts['wrong']
    known = compared + counts['undescribed']
    has_no_more = fresh and counts['exhausted'] and counts['functions'] < FUNCTIONS
    print(
        f'    {name}: {counts["steps"]} instructions in {counts["windows"]} windows at random times and {counts["fresh"]} where something new is called, {counts["functions"]} functions'
        f'{" (it calls no others)" if has_no_more else ""}, '
        f'{counts["signals"]} signals, {counts["jumps"]} jumps off the stack, {counts["bound"]} calls bound; right {100 * counts["right"] / max(known, 1):.3f} %, not described '
        f'{100 * counts["undescribed"] / max(known, 1):.3f} %, wrong {counts["wrong"]}; {counts["proven"]} proven bugs of functions; '
        f'registers lost by their row and indeed in {counts["lost"]} steps, needlessly in {counts["needless"]}'
    )
    for line in out.splitlines():
        if line.split(' ')[0] in ('wrong', 'disproved', 'bug'):
            print('    ' + line)
    common.claim(f'unwind_steps {name}: none of {compared} callers is wrong', counts['wrong'] == 0
                 and counts['steps'] >= STEPS and compared > STEPS // 3)
    for what in has:
        least = FUNCTIONS if what == 'functions' else 1
        common.claim(f'unwind_steps {name}: {what}: {counts[what]} of {least} at least',
                     counts[what] >= least)


def main():
    """unwind_steps.py [SEED [NAME...]]"""
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    steps = steps_program()
    with tempfile.TemporaryDirectory(prefix='cairn-steps-') as folder:
        for name, what in programs(folder).items():
            if sys.argv[2:] and name not in sys.argv[2:]:
                continue
            if isinstance(what, str):
                common.skip(f'unwind_steps {name}', what)
            else:
                compare(steps, name, *what, seed)
    common.finish()


main()
