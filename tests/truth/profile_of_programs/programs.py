# SPDX-License-Identifier: BSD-2-Clause
"""Real programs without frame pointers, each with work that goes on until it is ended."""
import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import common


def end_with_parent():
    """Called in the child: what a killed run leaves is ended by the kernel."""
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def start(words, **kwargs):
    options = {
        'stdin': subprocess.DEVNULL, 'stdout': subprocess.DEVNULL, 'stderr': subprocess.DEVNULL,
        **kwargs
    }
    return subprocess.Popen([str(word) for word in words], preexec_fn=end_with_parent, **options)


def below(pid):
    """The process and all that descend from it."""
    parents = {}
    for name in filter(str.isdigit, os.listdir('/proc')):
        with contextlib.suppress(OSError), open(f'/proc/{name}/stat', encoding='utf-8',
                                                errors='replace') as file:
            parents[int(name)] = int(file.read().rsplit(')', 1)[1].split()[1])
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def wait_until(happens, seconds=30):
    for _ in range(seconds * 20):
        if happens():
            return
        time.sleep(0.05)
    raise RuntimeError('the program did not get ready')


class Program:
    """A program that works by itself."""
    tools = ()
    # All code that it runs has unwind data.
    is_described = True
    end_signal = signal.SIGTERM

    def __init__(self, name, *words, tools=(), is_described=True):
        self.name, self.words = name, list(words)
        self.tools = tools or words[:1]
        self.is_described = is_described
        self.folder = tempfile.mkdtemp(prefix='cairn-profile-')
        self.client = None

    def missing(self):
        return [tool for tool in self.tools if not (os.path.exists(tool) or shutil.which(tool))]

    def prepare(self):
        """Once, before the first start."""

    def work(self):
        """When it is ready: give it something to do."""

    def is_ready(self):
        return True

    def rest(self):
        if self.client:
            self.client.kill()
            self.client.wait()
            self.client = None

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class Server(Program):
    """One that a client gives work."""

    def __init__(self, name, port, words, client, tools):
        super().__init__(name, *words, tools=tools)
        self.port, self.client_words = port, client

    def is_ready(self):
        with socket.socket() as s:
            return s.connect_ex(('127.0.0.1', self.port)) == 0

    def work(self):
        self.client = start(self.client_words)


class Nginx(Server):
    def __init__(self, port):
        super().__init__('nginx', port, [],
                         ['wrk', '-t1', '-c8', '-d600', f'http://127.0.0.1:{port}/index.html'],
                         ('/usr/sbin/nginx', 'wrk'))
        conf = os.path.join(self.folder, 'nginx.conf')
        with open(conf, 'w', encoding='utf-8') as file:
            file.write(
                f'daemon off; worker_processes 1; pid {self.folder}/pid; error_log {self.folder}/error.log;\n'
                'events { worker_connections 64; }\n'
                f'http {{ access_log off; gzip on; gzip_min_length 1; gzip_types *;\n'
                f'  server {{ listen 127.0.0.1:{port}; root {self.folder}; }} }}\n')
        with open(os.path.join(self.folder, 'index.html'), 'w', encoding='utf-8') as file:
            file.write('\n'.join(f'<p>{i * 7919 % 10007}</p>' for i in range(2000)))
        os.chmod(self.folder, 0o755)
        self.words = ['/usr/sbin/nginx', '-p', self.folder, '-c', conf]


class Postgres(Program):
    """Queries that are compiled, and some that are not."""
    binaries = '/usr/lib/postgresql/15/bin'
    # At once, whoever is connected.
    end_signal = signal.SIGINT

    def __init__(self):
        super().__init__('postgresql', tools=(f'{self.binaries}/postgres', 'setpriv', 'psql'))
        self.home = os.path.join(self.folder, 'pg')
        self.become = ['setpriv', '--reuid', 'postgres', '--regid', 'postgres', '--clear-groups']
        settings = [
            'listen_addresses=', 'jit=on', 'jit_above_cost=0', 'jit_debugging_support=on',
            'autovacuum=off', 'max_parallel_workers_per_gather=0'
        ]
        self.words = self.become + [
            f'{self.binaries}/postgres', '-D', f'{self.home}/db', '-k', self.home,
            *[word for setting in settings for word in ('-c', setting)]
        ]

    def prepare(self):
        user = pwd.getpwnam('postgres')
        os.mkdir(self.home, 0o700)
        os.chown(self.home, user.pw_uid, user.pw_gid)
        os.chmod(self.folder, 0o755)
        code, _, err = common.run(
            self.become + [f'{self.binaries}/initdb', '-D', f'{self.home}/db', '-A', 'trust'],
            cwd=self.home, env=dict(os.environ, HOME=self.home))
        if code != 0:
            raise RuntimeError(f'initdb: {err[-300:]}')

    def ask(self, *words):
        return ['psql', '-h', self.home, '-U', 'postgres', '-qAt', *words]

    def is_ready(self):
        return os.path.exists(f'{self.home}/.s.PGSQL.5432') and common.run(
            self.ask('-c', 'select 1'))[0] == 0

    def work(self):
        script = os.path.join(self.folder, 'queries.sql')
        query = (
            'select sum(a * b + c), avg((a - b) * (c + 1)), count(*) filter (where '
            '(a % 7) * b > c) from '
            '(select i a, i % 97 b, (i * 7) % 1000 c from generate_series(1, 200000) i) t where a * 3 + b * 2 > c;\n'
        )
        with open(script, 'w', encoding='utf-8') as file:
            file.write(20000 * query)
        self.client = start(self.ask('-f', script))


PYTHON = """
import json, re
while True:
    text = json.dumps([{"a": i, "b": str(i) * 3, "c": [i] * 4} for i in range(2000)])
    sorted(re.findall(r"\\d+", text), key=lambda w: w[::-1])
    json.loads(text)
"""
LUA = """
local function word(i) return ("%d:%s"):format(i, ("x"):rep(i % 7)) end
while true do
  local t = {}
  for i = 1, 20000 do t[i] = word(i) end
  table.sort(t)
  local s = 0
  for i = 1, #t do s = s + #t[i] * i % 7 end
end
"""
NODE = """
function make(i) { return { a: i, b: String(i).repeat(3), c: [i, i + 1] }; }
for (;;) {
  const text = JSON.stringify(Array.from({ length: 2000 }, (_, i) => make(i)));
  text.match(/\\d+/g).sort((x, y) => x.localeCompare(y));
  JSON.parse(text);
}
"""
SQL = """
create table t(a integer primary key, b text, c integer);
with recursive n(i) as (select 1 union all select i + 1 from n limit 50000)
insert into t select i, printf('%d-%d', i, i * 7919 % 1009), i % 97 from n;
""" + 2000 * "select c, count(*), max(b), sum(length(b)) from t where b like '%9%' group by c order by 3 desc limit 5;\n"


def programs():
    """The ten, with what they are given."""
    root = os.path.abspath(os.path.join(common.TOP))
    folder = tempfile.mkdtemp(prefix='cairn-profile-')
    files = {}
    for name, text in (('work.py', PYTHON), ('work.lua', LUA), ('work.js', NODE), ('work.sql', SQL),
                       ('work.c', '#include <stdio.h>\n' + ''.join(
                           f'int f{i}(int a, int b) {{ int s = 0; for (int k = 0; k < a; k++) '
                           f's += (k * {i} ^ b) % (a + {i + 1}); return s; }}\n'
                           for i in range(20000)))):
        files[name] = os.path.join(folder, name)
        with open(files[name], 'w', encoding='utf-8') as file:
            file.write(text)
    redis = ['redis-server', '--port', '7931', '--save', '', '--appendonly', 'no']
    return [
        Program('sqlite3', 'sqlite3', '-init', files['work.sql'], ':memory:', '.exit'),
        Server('redis', 7931, redis, [
            'redis-benchmark', '-p', '7931', '-l', '-q', '-n', '200000', '-t',
            'set,get,lpush,sadd,hset,zadd,lrange_100'
        ], ('redis-server', 'redis-benchmark')),
        Program('python3', 'python3', files['work.py']),
        Postgres(),
        Program('node', 'node', files['work.js'], is_described=False),
        Program('luajit', 'luajit', files['work.lua'], is_described=False),
        Nginx(7932),
        Program('git', 'git', '-C', root, 'log', '-p', '--stat', '-M', '-C',
                '--find-copies-harder'),
        Program('ripgrep (Rust)', 'rg', '-j2', '-a', '-c', r'(\w+ing)\s+(\w+ed)\s+(\w+ly)\W+x',
                '/usr'),
        Program('clang (C++)', 'clang', '-O2', '-c', '-o', '/dev/null', files['work.c']),
    ]
