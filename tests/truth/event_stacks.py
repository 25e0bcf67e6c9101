#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Stacks at events against `cairn stack` and gdb of the process, stopped at the same hits.

    event_stacks.py [NAME...]     only these programs

Lua, SQLite, git, zstd and ninja, as they are built for other comparisons, Debian's Python without
debug information, and a JIT that makes its code anew and describes it to GDB. Functions that a first run has counted often enough, but not too often,
are traced with --stack, at their entries and their inlined copies. A BPF program of its own
(stacks/stop_at.c) sends the process SIGSTOP at the same addresses. So it stops after the one
instruction that was probed; a hit and a stop belong together by their times.

Every frame must be the same in both readings by Cairn: address, function, inlined calls, file,
line. The callers' addresses must be gdb's; where gdb differs, stacks.py tells when that is gdb's
error."""
import collections
import ctypes
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import common  # noqa: E402
import against_gdb  # noqa: E402
import sources  # noqa: E402
import stacks  # noqa: E402
import vars_against_gdb as programs  # noqa: E402

STOPS = 250  # of each program
SEEN = 12  # of each function, at most
LONGEST = 15  # an instruction
SECONDS = 150
STACKS_MIN = 1000
SHOWN = 6
PTRACE_TRACEME, PTRACE_DETACH = 0, 17
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

PYTHON = '''import json, re
def f(n): return n if n < 2 else f(n - 1) + f(n - 2)
d = {str(i): [i, i * 2.5, "x" * (i % 9)] for i in range(300)}
t = json.dumps(d, sort_keys=True)
print(f(12), len(json.loads(t)), len(re.findall(r"(\\d+)[.]5", t)), sorted(d, key=lambda k: -int(k))[:3])
'''


def lua(folder):
    return programs.Subject('Lua', sources.lua('gcc'),
                            [against_gdb.write(folder, 'w.lua', against_gdb.LUA)])


def sqlite(folder):
    return programs.Subject(
        'SQLite', sources.sqlite('gcc'),
        ['-init', against_gdb.write(folder, 'w.sql', against_gdb.SQL), ':memory:'])


def python(folder):
    found = os.path.realpath('/usr/bin/python3')
    if not os.path.exists(found):
        raise sources.Unavailable('python3 is not Debian\'s')
    return programs.Subject('Python', found,
                            ['-I', '-S', against_gdb.write(folder, 'w.py', PYTHON)])


def range_of(path, name):
    """(begin, end) of a function, as linked."""
    at, size = re.search(rf'(?m)^(\w+) (\w+) \w {name}$', common.run(['nm', '-S', path])[1]).groups()
    return int(at, 16), int(at, 16) + int(size, 16)


def jit(folder):
    """Made functions call one another, and the last one a compiled one that is called all the
    time. They are made anew at the same addresses, with frames of another size. In these are
    addresses of a function that is never called: gdb gets there by the rows of code that is gone.
    """
    path = common.compile_c([os.path.join(os.path.dirname(HERE), 'samples', 'jit_host.c')],
                            os.path.join(folder, 'jit_host'), ['-O2', '-g', '-w'])
    subject = programs.Subject('JIT', path, ['debug_frame', 'reuse', '20'])
    subject.functions = ['burn']
    subject.bait = range_of(path, 'bait')
    return subject


SUBJECTS = {
    'lua': lua,
    'jit': jit,
    'sqlite': sqlite,
    'python': python,
    **{name: programs.SUBJECTS[name]
       for name in ('git', 'zstd', 'ninja')}
}

# ---- a program that is stopped before its first instruction ----


def trace_me():
    LIBC.prctl(1, signal.SIGKILL)
    LIBC.ptrace(PTRACE_TRACEME, 0, None, None)


def start_stopped(subject):
    # pylint: disable=consider-using-with
    with open(subject.stdin, 'rb') as stdin:
        process = subprocess.Popen([subject.program, *subject.args],
                                   stdin=stdin,
                                   stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL,
                                   preexec_fn=trace_me)
    os.waitpid(process.pid, os.WUNTRACED)
    if LIBC.ptrace(PTRACE_DETACH, process.pid, None, ctypes.c_void_p(int(signal.SIGSTOP))):
        raise OSError(ctypes.get_errno(), 'ptrace')
    return process


def state_of(pid):
    try:
        with open(f'/proc/{pid}/stat', encoding='utf-8') as file:
            return file.read().rsplit(')', 1)[1].split()[0]
    except OSError:
        return 'X'


# ---- which functions ----


def chosen(subject, folder):
    """[site] of functions with about STOPS hits together."""
    if hasattr(subject, 'functions'):
        return subject.functions, sites_of(subject, subject.functions)
    counts, total, names = programs.counts_of(subject, folder), 0, []
    some = sorted(name for name, n in counts.items()
                  if 0 < n <= SEEN and re.fullmatch(r'[\w:~.]+', name))
    random.Random(7).shuffle(some)
    for name in some:
        if total < STOPS * 1.3:
            names.append(name)
            total += counts[name]
    return names, sites_of(subject, names)


def sites_of(subject, names):
    """Where they are probed. Names that several functions have are taken out of the list."""
    for _ in range(len(names)):
        _, out, err = common.run([
            common.CAIRN, 'trace', '--no-cache', '--dry-run', '--json', '--best-effort', '-c',
            subject.program, *names
        ], 300)
        several = re.search(r'has \d+ functions (\S+);', err)
        if not several:
            break
        names.remove(several[1])
    return [site for site in common.json_lines(out) if site.get('refused', True) is None]


# ---- hits and stops ----


def ask_cairn(pid):
    _, out, err = common.run([common.CAIRN, 'stack', '--json', str(pid)])
    for thread in common.json_lines(out):
        if thread.get('tid') == pid:
            return thread
    raise RuntimeError(f'cairn stack: {err}')


class Stops:
    """What both say at each stop: (before, after, thread of cairn stack, pcs of gdb)."""

    def __init__(self, pid, gdb):
        self.pid, self.gdb, self.found, self.last = pid, gdb, [], time.monotonic_ns()

    def wait(self):
        """False: the program has ended."""
        while True:
            state = state_of(self.pid)
            if state in 'XZ':
                return False
            if state == 'T':
                return True
            time.sleep(0.0005)

    def look(self):
        now = time.monotonic_ns()
        thread = ask_cairn(self.pid)
        pcs = self.gdb.ask('attach', self.pid)[self.pid]
        self.found.append((self.last, now, thread, pcs))

    def go_on(self):
        self.last = time.monotonic_ns()
        os.kill(self.pid, signal.SIGCONT)

    def run(self):
        end = time.monotonic() + SECONDS
        self.go_on()
        time.sleep(0.002)
        while time.monotonic() < end and len(self.found) < STOPS and self.wait():
            self.look()
            self.go_on()
            # Until it runs it is still seen as stopped.
            for _ in range(1000):
                if state_of(self.pid) != 'T' or time.monotonic_ns() - self.last > 5000000:
                    break


def start_stopper(subject, pid, sites, folder):
    """The process stops at all sites."""
    path = os.path.join(folder, 'stop_at')
    if not os.path.exists(path):
        common.compile_c([os.path.join(HERE, 'stacks', 'stop_at.c')], path,
                         ['-O2', '-I', os.path.dirname(HERE)])
    offsets = sorted({site['probed_offset'] for site in sites})
    # pylint: disable=consider-using-with
    process = subprocess.Popen([path, subject.program, str(pid), *offsets],
                               stdout=subprocess.PIPE,
                               stdin=subprocess.DEVNULL,
                               text=True)
    said = process.stdout.readline()
    if said != 'ready\n':
        raise RuntimeError(said)
    return process


def start_trace(subject, pid, names, folder):
    out, err = os.path.join(folder, 'events.json'), os.path.join(folder, 'trace.err')
    with open(err, 'wb') as file:
        # pylint: disable=consider-using-with
        process = subprocess.Popen([
            common.CAIRN, 'trace', '--json', '--stack', '--no-cache', '--best-effort',
            '--max-slowdown', 'off', '-o', out, '-p',
            str(pid), *(f'{subject.program}:{n}' for n in names)
        ],
                                   stdin=subprocess.DEVNULL,
                                   stderr=file)
    for _ in range(400):
        with open(err, encoding='utf-8') as file:
            text = file.read()
        if 'attached' in text:
            return process, out
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise RuntimeError(f'cairn trace: {text[-500:]}')


def end(process, *signals):
    for number in signals:
        if process.poll() is None:
            process.send_signal(number)
        try:
            return process.wait(20)
        except subprocess.TimeoutExpired:
            pass
    return None


def hits_and_stops(subject, folder, gdb):
    names, sites = chosen(subject, folder)
    if not names:
        raise RuntimeError('no function was called')
    process = start_stopped(subject)
    try:
        trace, out = start_trace(subject, process.pid, names, folder)
        stopper = start_stopper(subject, process.pid, sites, folder)
        stops = Stops(process.pid, gdb)
        try:
            stops.run()
        finally:
            end(trace, signal.SIGINT, signal.SIGKILL)
            end(stopper, signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    with open(out, encoding='utf-8') as file:
        events = [e for e in common.json_lines(file.read()) if 'stack' in e]
    return sites, events, stops.found


# ---- comparing ----


def frame(f):
    names = [(g['function'], g['name'], g['file'], g['line'], g['column']) for g in f['functions']]
    return (f['pc'], f['signal'], f['assumed'], f['path'], f.get('offset'), tuple(names))


def leaves_out(ours, theirs):
    """All of ours are among theirs, in the same order."""
    rest = iter(theirs)
    return all(pc in rest for pc in ours)


class Comparison:

    def __init__(self, subject):
        self.name, self.bait = subject.name, getattr(subject, 'bait', (0, 0))
        self.same, self.cut, self.frames, self.inlined = 0, 0, 0, 0
        self.moved = self.alone = self.looked_at = 0
        self.excused, self.wrong, self.ends = collections.Counter(), [], collections.Counter()

    def add(self, events, stop):
        before, after, thread, pcs = stop
        own = [e for e in events if before < e['time_ns'] < after]
        if not own:
            self.alone += 1
        for event in own:
            first = int(event['stack']['frames'][0]['pc'], 16) if event['stack']['frames'] else 0
            if not first <= pcs[0] <= first + LONGEST:
                # A jump, call or return was probed, or an earlier hit had no stop.
                self.moved += 1
                continue
            self.one(event, thread, pcs)

    def one(self, event, thread, pcs):
        stack = event['stack']
        ours, theirs = ([frame(f) for f in of['frames'][1:]] for of in (stack, thread))
        self.ends[stack['end']] += 1
        whole = stack['end'] in stacks.COMPLETE
        if not whole:
            self.cut += 1
            theirs = theirs[:len(ours)]
        what = f'{event["function"]} {event["address"]}'
        if ours != theirs:
            i = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b),
                     min(len(ours), len(theirs)))
            self.wrong.append(f'{what}: frame {i + 1}: event {ours[i:i + 1]}, cairn stack '
                              f'{theirs[i:i + 1]}')
            return
        bias = int(stack['frames'][0]['pc'], 16) - int(event['address'], 16)
        bait = [bias + at for at in self.bait]
        self.against_gdb(what, [int(f[0], 16) for f in ours], pcs[1:], (thread, whole, bait))
        self.inlined += sum(len(f[-1]) > 1 for f in ours)

    def against_gdb(self, what, ours, theirs, of):
        thread, whole, bait = of
        if any(bait[0] <= pc < bait[1] for pc in ours):
            self.wrong.append(f'{what}: a function that is never called: {ours}')
            return
        if ours == (theirs if whole else theirs[:len(ours)]):
            self.same += 1
            self.frames += len(ours)
            return
        code = stacks.Code([(0, 1 << 64)], (0, 0))
        why = stacks.excuse('gdb', ours, theirs, thread, code)
        if any(bait[0] <= pc < bait[1] for pc in theirs):
            why = 'gdb goes by the rows of code that is gone'
        if thread['end'] == 'assumed' and leaves_out(ours, theirs):
            why = 'code that nothing describes, said to be assumed: the stack leaves a caller out'
        if why:
            self.excused[why] += 1
        else:
            self.wrong.append(f'{what}: event {[hex(pc) for pc in ours]}, gdb '
                              f'{[hex(pc) for pc in theirs]}')

    def report(self):
        print(f'{self.name}: {self.same} stacks with {self.frames} callers, {self.inlined} of them '
              f'with inlined calls, are those of cairn stack and of gdb; {self.cut} were cut; not as '
              f'gdb\'s {dict(self.excused)}; {len(self.wrong)} differ; ends {dict(self.ends)}; '
              f'{self.moved} hits at jumps and {self.alone} stops without a hit are left out')
        for line in self.wrong[:SHOWN]:
            print(f'{self.name}: {line[:600]}')
        self.looked_at = self.same + sum(self.excused.values())
        common.claim(f'event_stacks: {self.name}: no stack differs, of {self.looked_at}',
                     not self.wrong and self.looked_at > 0)


def one(name, folder, gdb):
    subject = SUBJECTS[name](folder)
    _, events, stops = hits_and_stops(subject, folder, gdb)
    comparison = Comparison(subject)
    for stop in stops:
        comparison.add(events, stop)
    comparison.report()
    return comparison.looked_at


def main():
    missing = common.have('gdb', 'gcc', 'g++')
    reason = common.may_trace() or (missing and 'not installed: ' + ' '.join(missing))
    if reason:
        common.skip('event_stacks', reason)
        return common.finish()
    same, gdb, names = 0, stacks.start_gdb(), sys.argv[1:] or list(SUBJECTS)
    folder = tempfile.mkdtemp(prefix='cairn-event-stacks-')
    try:
        for name in names:
            try:
                same += one(name, folder, gdb)
            except sources.Unavailable as error:
                common.skip(f'event_stacks: {name}', str(error))
            except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
                print(error)
                common.not_ok(f'event_stacks: {name}')
    finally:
        gdb.close()
        shutil.rmtree(folder)
    if len(names) == len(SUBJECTS):
        common.claim(f'event_stacks: at least {STACKS_MIN} stacks ({same})', same >= STACKS_MIN)
    return common.finish()


if __name__ == '__main__':
    main()
