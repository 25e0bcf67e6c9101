#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Stacks through real JITs: how many are complete, how many of their JIT frames are named; beside
perf and gdb.

    jits.py [SAMPLES] [RUNTIME...]      10000 samples of each of them, unless told otherwise

Of each runtime one thread is looked at, the one that works. Cairn and gdb stop it at times that
have nothing to do with it; perf samples it when it has run for a while. In the same run, one after
the other. A stack is complete when its outermost frame is where the thread began; of perf and gdb
also when it is libc's function there. A frame is one of a JIT when its address is in executable
memory that is no file's, or in the file that libgccjit deleted. perf is tried with frame pointers
and with copies of the stack; the better result counts.
"""
import collections
import ctypes
import json
import os
import pwd
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import common  # noqa: E402

WORK = os.path.join(HERE, 'jits')
# libc keeps no frame pointers: what has got to its first functions has all that matters.
BEGINNINGS = {
    '_start', '__libc_start_main', '__libc_start_call_main', '__libc_start_main_impl',
    'start_thread', 'clone', 'clone3', '__clone', '__clone3', '__clone_internal'
}
PERF_SECONDS, GDB_ROUNDS = 6, 10
FOREVER = '100000'
libc = ctypes.CDLL(None)


class Stacks:
    """Counts of one tool."""

    def __init__(self):
        self.n = self.complete = self.jit = self.named = self.assumed = 0
        self.ends = collections.Counter()

    def add(self, frames, is_complete, end=None):
        """@frames: (is of a JIT, has a name, is assumed)"""
        self.n += 1
        self.complete += is_complete
        if not is_complete:
            self.ends[end] += 1
        for is_jit, is_named, is_assumed in frames:
            self.jit += is_jit
            self.named += is_jit and is_named
            self.assumed += is_assumed

    def text(self):
        share = lambda part, whole: f'{100 * part / whole:6.2f} %' if whole else '       -'
        return (
            f'{self.n:6} stacks, complete {share(self.complete, self.n)}; {self.jit:7} JIT frames, named '
            f'{share(self.named, self.jit)}; assumed frames {self.assumed}')


class Maps(threading.Thread):
    """Where code of JITs is, all the time that it is looked at."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.ranges, self.has_ended = pid, set(), threading.Event()
        self.look()
        self.start()

    def look(self):
        try:
            with open(f'/proc/{self.pid}/maps', encoding='utf-8') as file:
                for line in file:
                    words = line.split(None, 5)
                    path = words[5].strip() if len(words) > 5 else ''
                    if 'x' in words[1] and (path[:1] not in ('/', '[') or path == '[heap]'
                                            or 'libgccjit-' in path or '/dev/zero' in path):
                        self.ranges.add(tuple(int(w, 16) for w in words[0].split('-')))
        except OSError:
            pass

    def run(self):
        while not self.has_ended.wait(0.2):
            self.look()

    def sorted(self):
        self.has_ended.set()
        self.join()
        return sorted(self.ranges)


def is_in(ranges, at):
    return any(lo <= at < hi for lo, hi in ranges)


def die_with_parent():
    libc.prctl(1, signal.SIGKILL)


def start(words, **kwargs):
    return subprocess.Popen([str(w) for w in words], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            preexec_fn=die_with_parent, **kwargs)


def child_of(pid, comm, seconds=20):
    """The process below @pid that has this name."""
    for _ in range(seconds * 20):
        for name in os.listdir('/proc'):
            try:
                with open(f'/proc/{name}/stat', encoding='utf-8') as file:
                    text = file.read()
            except OSError:
                continue
            if f'({comm})' in text and (int(text.rsplit(')', 1)[1].split()[1]) == pid
                                        or int(name) == pid):
                return int(name)
        time.sleep(0.05)
    raise RuntimeError(f'no process {comm} below {pid}')


# ---- the tools ----

def by_cairn(runtime, pid, tid, n):
    """All stacks first: where JITs have code is known at the end."""
    found = []
    process = subprocess.Popen(
        [common.CAIRN, 'stack', '-s', '--no-cache', '--json', '-n',
         str(n), '-i', '1ms',
         str(pid)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        preexec_fn=die_with_parent)
    for line in process.stdout:
        if f'"tid":{tid},' not in line.replace(' ', '')[:80]:
            continue
        t = json.loads(line)
        frames = [(int(f['pc'], 16), bool(f['functions']), f['assumed']) for f in t['frames']]
        is_complete = t['end'] in ('outermost', 'assumed')
        why = '' if is_complete else runtime.why_incomplete(t['frames'],
                                                            re.sub('0x[0-9a-f]+', 'X', t['why']))
        found.append((frames, is_complete, why))
    process.wait()
    return found


def by_perf(pid, tid, kind, folder, inject):
    """[(frames, whether complete, its outermost function)]"""
    data = os.path.join(folder, f'perf-{kind}.data')
    mode = {'fp': 'fp', 'dwarf': 'dwarf,32768'}[kind]
    code, _, err = common.run([
        'perf', 'record', '-q', '-e', 'cpu-clock', '-F', '499', '-k', 'CLOCK_MONOTONIC',
        '--call-graph', mode, '-o', data, '-p',
        str(pid), '--', 'sleep',
        str(PERF_SECONDS)
    ], 120)
    if code != 0:
        raise RuntimeError(f'perf record: {err[-300:]}')
    if inject:
        common.run(['perf', 'inject', '--jit', '-i', data, '-o', data + '.jit'], 300)
        data = data + '.jit' if os.path.exists(data + '.jit') else data
    _, out, _ = common.run(
        ['perf', 'script', '-i', data, '--tid',
         str(tid), '-F', 'tid,ip,sym', '--no-inline'], 900)
    found = []
    for block in out.split('\n\n'):
        lines = [re.match(r'\s+([0-9a-f]+) (.*)$', line) for line in block.splitlines()]
        frames = [(int(m.group(1), 16), m.group(2))
                  for m in lines
                  if m and int(m.group(1), 16) < 1 << 63]
        if frames:
            last = frames[-1][1].split('+')[0]
            found.append(([(pc, name != '[unknown]', False) for pc, name in frames], last
                          in BEGINNINGS, last))
    return found


def by_gdb(pid, tid):
    environment = dict(os.environ, CAIRN_PID=str(pid), CAIRN_TID=str(tid),
                       CAIRN_ROUNDS=str(GDB_ROUNDS))
    _, out, _ = common.run(
        ['gdb', '-nx', '-q', '-batch', '-x',
         os.path.join(WORK, 'stacks_of_gdb.py')], 300, env=environment)
    found = []
    for line in out.splitlines():
        if line.startswith('stack '):
            stack = json.loads(line[6:])
            if not stack['frames']:
                continue
            last = stack['frames'][-1][1]
            found.append(([(pc, bool(name), False) for pc, name, _ in stack['frames']], last
                          in BEGINNINGS, last))
    return found


def count(found, ranges):
    s = Stacks()
    for frames, is_complete, end in found:
        s.add([(is_in(ranges, pc), named, assumed) for pc, named, assumed in frames], is_complete,
              end)
    return s


# ---- the runtimes ----

class Runtime:
    tools = ()
    inject = False
    wrong_rows = None  # why stacks may end early in a thousandth of the samples

    def __init__(self, folder):
        self.folder, self.children = folder, []

    def start(self, *words, **kwargs):
        self.children.append(start(words, **kwargs))
        return self.children[-1].pid

    def missing(self):
        return common.have(*self.tools)

    def before_samples(self):
        """When it has run for some time."""

    def why_incomplete(self, frames, why):
        return why

    def check(self, pid):
        """What else is claimed of it."""

    def stop(self):
        for c in self.children:
            c.kill()
            c.wait()


class Example(Runtime):
    """examples/jit: registers its code itself, and frees it all the time."""
    name, is_described = 'example', True

    def missing(self):
        path = os.path.join(os.path.dirname(common.CAIRN), 'examples', 'jit')
        return [] if os.path.exists(path) else [path]

    def open(self):
        pid = self.start(os.path.join(os.path.dirname(common.CAIRN), 'examples', 'jit'), FOREVER)
        return pid, pid


class LuaJit(Runtime):
    """Below `cairn code run`: its mcode areas are registered by __register_frame, without a rule.

    Its interpreter, 16 KB of assembler, has one row for all its instructions, also those where a
    trace is entered or left and the stack pointer is elsewhere
    (docs/findings/luajit-interpreter-rows.md). Who is stopped at such a one finds no caller.
    """
    name, is_described, tools = 'luajit', True, ('luajit', 'readelf')
    wrong_rows = 'in the interpreter, where its only row is wrong'

    def why_incomplete(self, frames, why):
        inner = frames[0]
        if len(frames) > 2 or not inner['path'] or not inner['path'].endswith('luajit'):
            return why
        _, out, _ = common.run(['readelf', '--debug-dump=frames', inner['path']])
        fdes = [
            tuple(int(at, 16)
                  for at in pair)
            for pair in re.findall(r'FDE .*pc=(\w+)\.\.(\w+)', out)
        ]
        lo, hi = max(fdes, key=lambda fde: fde[1] - fde[0])
        return self.wrong_rows if hi - lo > 0x1000 and lo <= int(inner['vaddr'], 16) < hi else why

    def open(self):
        pid = self.start(common.CAIRN, 'code', 'run', '--', 'luajit', os.path.join(
            WORK, 'work.lua'), FOREVER)
        pid = child_of(pid, 'luajit')
        return pid, pid


class GccJit(Runtime):
    """A library that is loaded and deleted: an ordinary file."""
    name, is_described, tools = 'libgccjit', True, ('gcc',)

    def missing(self):
        gone = common.have(*self.tools)
        _, out, _ = common.run(['gcc', '-print-file-name=libgccjit.so']) if not gone else (0, '',
                                                                                           '')
        self.library = out.strip()
        return gone or ([] if os.path.isabs(self.library) else ['libgccjit-12-dev'])

    def open(self):
        program = os.path.join(self.folder, 'gccjit')
        common.compile_c([os.path.join(WORK, 'gccjit.c'), self.library], program, ['-O2', '-g'])
        pid = self.start(program, FOREVER)
        return pid, pid


class Postgres(Runtime):
    """Below `cairn code run`, with GDB's list for names: LLVM registers .eh_frame, and frees it
    after each query."""
    name, is_described = 'postgresql', True
    binaries = '/usr/lib/postgresql/15/bin'

    def missing(self):
        files = [os.path.join(self.binaries, 'postgres'), '/usr/lib/postgresql/15/lib/llvmjit.so']
        return [f for f in files if not os.path.exists(f)] + common.have('setpriv', 'psql')

    def open(self):
        user = pwd.getpwnam('postgres')
        home = os.path.join(self.folder, 'pg')
        os.mkdir(home, 0o700)
        os.chown(home, user.pw_uid, user.pw_gid)
        os.chmod(self.folder, 0o755)
        become = ['setpriv', '--reuid', 'postgres', '--regid', 'postgres', '--clear-groups']
        environment = dict(os.environ, HOME=home)
        code, _, err = common.run(
            become + [f'{self.binaries}/initdb', '-D', f'{home}/db', '-A', 'trust'], cwd=home,
            env=environment)
        if code != 0:
            raise RuntimeError(f'initdb: {err[-300:]}')
        settings = [
            'listen_addresses=', 'jit=on', 'jit_above_cost=0', 'jit_optimize_above_cost=0',
            'jit_inline_above_cost=-1', 'jit_debugging_support=on', 'jit_profiling_support=on',
            'max_parallel_workers_per_gather=0', 'autovacuum=off'
        ]
        self.start(*become, common.CAIRN, 'code', 'run', '--', f'{self.binaries}/postgres', '-D',
                   f'{home}/db', '-k', home, *[word for s in settings for word in ('-c', s)],
                   cwd=home, env=environment)
        self.inject = True
        for _ in range(400):
            if os.path.exists(f'{home}/.s.PGSQL.5432') and self.ask(home, 'select 1')[0] == 0:
                break
            time.sleep(0.1)
        self.ask(home, 'create table t as select i a, i % 97 b, (i * 7) % 1000 c from '
                       'generate_series(1, 1000000) i')
        script = os.path.join(self.folder, 'queries.sql')
        with open(script, 'w', encoding='utf-8') as file:
            file.write(
                'select pg_backend_pid();\n' + 20000 * 'select sum(a * b + c), avg((a - b) '
                '* (c + 1)), count(*) filter '
                '(where (a % 7) * b > c) from t where a * 3 + b * 2 > c and b * c % 11 <> 5;\n')
        out = open(os.path.join(self.folder, 'answers'), 'w+b')
        self.children.append(
            subprocess.Popen(['psql', '-h', home, '-U', 'postgres', '-qAt', '-f', script],
                             stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL,
                             preexec_fn=die_with_parent))
        for _ in range(200):
            with open(out.name, encoding='utf-8') as file:
                line = file.readline().strip()
            if line:
                return int(line), int(line)
            time.sleep(0.1)
        raise RuntimeError('no backend')

    def ask(self, home, query):
        return common.run(['psql', '-h', home, '-U', 'postgres', '-qAt', '-c', query], 300)

    def stop(self):
        self.children[-1].kill()
        self.children[0].send_signal(signal.SIGQUIT)
        super().stop()


class Node(Runtime):
    """V8, with a map file: frame pointers, and builtins without rows."""
    name, is_described, tools = 'node', False, ('node',)

    def open(self):
        self.pid = self.start('node', '--perf-basic-prof', os.path.join(WORK, 'work.js'), FOREVER,
                              cwd=self.folder)
        return self.pid, self.pid

    def stop(self):
        super().stop()
        if os.path.exists(f'/tmp/perf-{self.pid}.map'):
            os.unlink(f'/tmp/perf-{self.pid}.map')


class Java(Runtime):
    """The JVM with frame pointers; its map file is written when it is asked for."""
    name, is_described, tools = 'openjdk', False, ('java', 'javac', 'jcmd')

    def open(self):
        common.run(['javac', '-d', self.folder, os.path.join(WORK, 'Work.java')], 300)
        self.pid = self.start('java', '-XX:+PreserveFramePointer', '-cp', self.folder, 'Work',
                              FOREVER)
        time.sleep(8)
        self.before_samples()
        for _ in range(50):
            for t in common.json_lines(
                    common.run([common.CAIRN, 'stack', '-s', '--no-cache', '--json',
                                str(self.pid)])[1]):
                if any('Work.main' in (g['name'] or '')
                       for f in t['frames']
                       for g in f['functions']):
                    return self.pid, t['tid']
            time.sleep(0.2)
        raise RuntimeError('no thread is in Work.main')

    def before_samples(self):
        common.run(['jcmd', str(self.pid), 'Compiler.perfmap'])

    def stop(self):
        super().stop()
        if os.path.exists(f'/tmp/perf-{self.pid}.map'):
            os.unlink(f'/tmp/perf-{self.pid}.map')


class Qemu(Runtime):
    """QEMU user: one symbol file of GDB's list, with .debug_frame, for all code."""
    name, is_described, tools = 'qemu', True, ('qemu-x86_64', 'gcc')

    def open(self):
        program = os.path.join(self.folder, 'work')
        common.compile_c([os.path.join(WORK, 'work.c')], program, ['-O1', '-static'])
        pid = self.start('qemu-x86_64', program)
        return pid, pid


class Php(Runtime):
    """opcache's JIT: a symbol file for each function, whose .eh_frame counts from its code."""
    name, is_described, tools = 'php', True, ('php8.2',)

    def open(self):
        options = [
            'opcache.enable_cli=1', 'opcache.file_update_protection=0',
            'opcache.jit_buffer_size=64M', 'opcache.jit=1205', 'opcache.jit_debug=256'
        ]
        pid = self.start('php8.2', *[word for o in options for word in ('-d', o)],
                         os.path.join(WORK, 'work.php'))
        return pid, pid


class Ruby(Runtime):
    """YJIT says nothing of its code and leaves rbp alone: what is on the stack leads on, as an
    assumption. Nobody may be left out."""
    name, is_described, tools = 'ruby', False, ('ruby',)

    def missing(self):
        return super().missing() or ([] if common.run(['ruby', '--yjit', '-e', '1'])[0] == 0 else
                                     ['ruby --yjit'])

    def open(self):
        pid = self.start('ruby', '--yjit', os.path.join(WORK, 'work.rb'))
        return pid, pid

    def check(self, pid):
        """In each stack the function that YJIT's code was called by: rb_vm_exec, or one of its own
        that the symbols do not name."""
        _, out, _ = common.run([
            common.CAIRN, 'stack', '-s', '--no-cache', '--json', '-n', '200', '-i', '2ms',
            str(pid)
        ], 120)
        threads = [t for t in common.json_lines(out) if any(f['path'] is None for f in t['frames'])]
        callers = []
        for t in threads:
            names = [f['functions'][-1]['name'] if f['functions'] else None for f in t['frames']]
            callers += [
                next((n for n in names[i + 1:] if n),
                     None) for i, f in enumerate(t['frames']) if f['path'] is None
            ]
        common.claim(
            f'ruby_code_was_called_by_rb_vm_exec: {len(callers)} of YJIT\'s frames in {len(threads)} stacks',
            bool(callers) and set(callers) == {'rb_vm_exec'})
        common.claim('ruby_stacks_are_complete_by_assumption_only',
                     all(t['end'] == 'assumed' for t in threads))


class OwnStack(Runtime):
    """Code with frames of its own, which nobody describes: its caller is looked for on the stack,
    as an assumption."""
    is_described, least = False, 0.97

    def command(self):
        return [*self.tools, os.path.join(WORK, self.work)]

    def open(self):
        pid = self.start(*self.command())
        return pid, pid

    def check(self, pid):
        _, out, _ = common.run([
            common.CAIRN, 'stack', '-s', '--no-cache', '--json', '-n', '200', '-i', '2ms',
            str(pid)
        ], 120)
        threads = [
            t for t in common.json_lines(out)
            if t['tid'] == pid and any(f['path'] is None for f in t['frames'])
        ]
        led = [t for t in threads if t['end'] == 'assumed']
        common.claim(
            f'{self.name}_leads_to_the_outermost_frame_by_assumption: {len(led)} of {len(threads)} stacks',
            len(threads) > 20 and len(led) >= self.least * len(threads))
        common.claim(f'{self.name}_code_is_nowhere_the_outermost_frame',
                     all(t['end'] != 'outermost' for t in threads))


class Guile(OwnStack):
    name, tools, work = 'guile', ('guile',), 'work.scm'

    def command(self):
        return ['guile', '--no-auto-compile', os.path.join(WORK, self.work)]


class Chez(OwnStack):
    name, tools, work = 'chez', ('scheme',), 'work.scm'

    def command(self):
        return ['scheme', '--script', os.path.join(WORK, self.work)]


class Racket(OwnStack):
    name, tools, work = 'racket', ('racket',), 'work.rkt'


class Mono(OwnStack):
    name, tools = 'mono', ('mono', 'mcs')

    def command(self):
        program = os.path.join(self.folder, 'Work.exe')
        common.run(['mcs', f'-out:{program}', os.path.join(WORK, 'Work.cs')], 120)
        return ['mono', program]


class PyPy(OwnStack):
    """Frames of one size, rbp in the heap, and code that calls code: each frame is left by the way
    to its return."""
    name, tools, work, least = 'pypy', ('pypy3',), 'work.py', 1.0


RUNTIMES = (Example, LuaJit, GccJit, Postgres, Node, Java, Qemu, Php, Ruby, Guile, Chez, Racket,
            Mono, PyPy)


# ---- comparing ----

def measure(runtime, n):
    """{tool: Stacks}"""
    found, why = {}, {}
    pid, tid = runtime.open()
    time.sleep(2)
    maps = Maps(pid)
    runtime.before_samples()
    found['cairn'] = by_cairn(runtime, pid, tid, n)
    for kind in ('fp', 'dwarf') if not common.have('perf') else ():
        try:
            found['perf ' + kind] = by_perf(pid, tid, kind, runtime.folder, runtime.inject)
        except RuntimeError as error:
            why['perf ' + kind] = str(error)
    if not common.have('gdb'):
        found['gdb'] = by_gdb(pid, tid)
    runtime.check(pid)
    ranges = maps.sorted()
    return {tool: count(stacks, ranges) for tool, stacks in found.items()}, why


def tell(name, results, why):
    for tool, s in results.items():
        print(f'  {name:11}{tool:11}{s.text()}', flush=True)
        for end, times in s.ends.most_common(3):
            print(f'  {"":22}{times:6} end: {end}')
    for tool, reason in why.items():
        print(f'  {name:11}{tool:11}{reason}')


def judge(runtime, results, n):
    ours = results['cairn']
    perf = [s for tool, s in results.items() if tool.startswith('perf') and s.n]
    common.claim(f'{runtime.name}_was_sampled_{n}_times', ours.n >= 0.99 * n and ours.jit > 0)
    if runtime.is_described:
        known = ours.ends[runtime.wrong_rows]
        common.claim(f'{runtime.name}_has_complete_stacks_only', ours.n > 0
                     and ours.complete + known == ours.n and known <= ours.n / 1000)
    if not perf:
        common.skip(f'{runtime.name}_beside_perf', 'perf is not installed, or has no samples')
        return
    share = lambda part, whole: part / whole if whole else 0
    common.claim(f'{runtime.name}_has_as_many_complete_stacks_as_perf',
                 share(ours.complete, ours.n) >= max(share(s.complete, s.n) for s in perf))
    common.claim(f'{runtime.name}_has_as_many_named_frames_as_perf',
                 share(ours.named, ours.jit) >= max(share(s.named, s.jit) for s in perf) - 0.001)


def compare(kind, n):
    with tempfile.TemporaryDirectory(prefix='cairn-jits-') as folder:
        runtime = kind(folder)
        missing = runtime.missing()
        if missing:
            common.skip(f'{kind.name}_stacks', 'missing: ' + ' '.join(missing))
            return
        try:
            results, why = measure(runtime, n)
        except RuntimeError as error:
            common.claim(f'{kind.name}_runs: {error}', False)
            return
        finally:
            runtime.stop()
        tell(kind.name, results, why)
        judge(kind, results, n)


def main():
    words = sys.argv[1:]
    n = int(words.pop(0)) if words and words[0].isdigit() else 10000
    why_not = common.may_trace()
    if why_not:
        common.skip('stacks_through_jits', why_not)
        common.finish()
    for kind in RUNTIMES:
        if not words or kind.name in words:
            compare(kind, n)
    common.finish()


main()
