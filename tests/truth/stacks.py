#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn stack against gdb and eu-stack: the same program counters of every frame of every thread.

    stacks.py [STOPS] [SEED]      1000 stops, unless told otherwise

Running threads: threads.c is stopped by SIGSTOP at random times, and each of the three is asked. Crashed ones: the kernel's
cores of threads.c's crashes, and gcore's of a running one.

A difference counts as gdb's or eu-stack's error only where this is shown here: see excuse().
"""
import collections
import glob
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import common  # noqa: E402

CRASHES = ['null', 'abort', 'overflow', 'handler', 'call-in-handler', 'bad-pointer', 'data', 'trap', 'noncanonical', 'zero']
DEEPEST = 100000


class Gdb:
    """One gdb for all questions; it is not attached between them."""

    def __init__(self):
        self.process = subprocess.Popen(['gdb', '-nx', '-q', '-batch', '-x', os.path.join(HERE, 'stacks', 'frames_of_gdb.py')],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def ask(self, *words):
        self.process.stdin.write(' '.join(map(str, words)) + '\n')
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith('frames '):
                found = json.loads(line[7:])
                if 'error' in found:
                    raise RuntimeError(f'gdb {words}: {found["error"]}')
                return {int(tid): pcs for tid, pcs in found.items()}
        raise RuntimeError(f'gdb ended at {words}')

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def ask_cairn(what):
    """{tid: the thread's object}"""
    _, out, err = common.run([common.CAIRN, 'stack', '--symbols', '--no-cache', '--json', '--max-frames', str(DEEPEST), str(what)])
    threads = common.json_lines(out)
    if not threads:
        raise RuntimeError(f'cairn stack {what}: {err}')
    return {t['tid']: t for t in threads}


def ask_eu_stack(*what):
    _, out, _ = common.run(['eu-stack', '-n', '0', *map(str, what)])
    found, pcs = {}, None
    for line in out.splitlines():
        head = re.match(r'TID (\d+):', line)
        frame = re.match(r'#\d+\s+(0x[0-9a-f]+)', line)
        if head:
            pcs = found.setdefault(int(head.group(1)), [])
        elif frame:
            pcs.append(int(frame.group(1), 16))
    return found


def pcs_of(thread):
    return [int(f['pc'], 16) for f in thread['frames']]


def code_of_process(pid):
    """[(from, to)] of what can be run"""
    with open(f'/proc/{pid}/maps', encoding='utf-8') as file:
        words = [line.split() for line in file]
    return [tuple(int(end, 16) for end in w[0].split('-')) for w in words if 'x' in w[1]]


def code_of_core(core):
    _, out, _ = common.run(['readelf', '-lW', core])
    loads = re.findall(r'LOAD +0x\w+ (0x\w+) 0x\w+ 0x\w+ (0x\w+) [R ][W ]E', out)
    return [(int(at, 16), int(at, 16) + int(size, 16)) for at, size in loads]


def excuse(peer, ours, theirs, thread, code):
    """Why a difference is the peer's, or None."""
    same = len(os.path.commonprefix([ours, theirs]))
    if same < len(theirs) and not any(lo <= theirs[same] - 1 < hi for lo, hi in code):
        return f'{peer} goes on to an address that is no code'
    if same == len(theirs) and thread['end'] == 'outermost':
        return f'{peer} ends early, and the rest leads to the outermost frame'
    return None


def begins(thread):
    """A thread that has not run yet is in clone3(), behind whose system call glibc describes nothing."""
    functions = [f['function'] for frame in thread['frames'] for f in frame['functions']]
    return thread['end'] == 'undescribed' and functions == ['clone3']


class Tally:
    def __init__(self):
        self.stops = self.threads = self.frames = 0
        self.same = collections.Counter()
        self.excused = collections.Counter()
        self.wrong = collections.Counter()
        self.ends = collections.Counter()

    def add(self, peer, ours, theirs, where, code):
        for tid, thread in ours.items():
            if tid not in theirs:
                self.wrong[peer] += 1
                print(f'    {where}: {peer} does not know thread {tid}')
                continue
            mine = pcs_of(thread)
            if mine == theirs[tid]:
                self.same[peer] += 1
                continue
            why = excuse(peer, mine, theirs[tid], thread, code)
            if why:
                self.excused[why] += 1
                continue
            self.wrong[peer] += 1
            if self.wrong[peer] <= 10:
                show(where, peer, thread, mine, theirs[tid])

    def count(self, ours):
        self.stops += 1
        self.threads += len(ours)
        self.frames += sum(len(t['frames']) for t in ours.values())
        self.ends.update('begins' if begins(t) else t['end'] for t in ours.values())

    def tell(self, name):
        print(f'    {name}: {self.stops} stops, {self.threads} stacks, {self.frames} frames; the same as ' +
              ', '.join(f'{peer} {n}' for peer, n in self.same.items()) + f'; ends {dict(self.ends)}')
        for why, n in self.excused.items():
            print(f'    {n} times: {why}')


def show(where, peer, thread, mine, theirs):
    same = len(os.path.commonprefix([mine, theirs]))
    part = slice(max(same - 2, 0), same + 3)
    names = [(f['functions'] or [{}])[0].get('function') for f in thread['frames'][part]]
    print(f'    {where}: thread {thread["tid"]} {thread["comm"]} from frame {part.start} on: {[hex(p) for p in mine[part]]} {names}, '
          f'{peer} {[hex(p) for p in theirs[part]]}; {thread["why"]}')


# ---- running threads ----

def start(program, *words, folder=None):
    process = subprocess.Popen([program, *map(str, words)], stdout=subprocess.PIPE, cwd=folder, text=True)
    process.stdout.readline()
    return process


def is_stopped(pid):
    for path in glob.glob(f'/proc/{pid}/task/*/stat'):
        with open(path, encoding='utf-8', errors='replace') as file:
            if file.read().rsplit(')', 1)[1].split()[0] not in 'Tt':
                return False
    return True


def comes_to_a_stop(pid):
    """A stopped thread that a tracer leaves goes back to being stopped, which takes a moment."""
    for _ in range(10000):
        if is_stopped(pid):
            return True
        time.sleep(0.001)
    return False


def stop(pid):
    os.kill(pid, signal.SIGSTOP)
    if not comes_to_a_stop(pid):
        raise RuntimeError(f'process {pid} does not stop')


def random_stops(program, gdb, n, seed, has_eu_stack):
    rng, tally = random.Random(seed), Tally()
    left_stopped = True
    per_process = 100
    for first in range(0, n, per_process):
        process = start(program, rng.randrange(1, 1 << 20))
        for number in range(first, min(first + per_process, n)):
            time.sleep(rng.uniform(0.0005, 0.02))
            stop(process.pid)
            ours = ask_cairn(process.pid)
            left_stopped &= comes_to_a_stop(process.pid)
            tally.count(ours)
            code = code_of_process(process.pid)
            tally.add('gdb', ours, gdb.ask('attach', process.pid), f'stop {number}', code)
            if has_eu_stack:
                tally.add('eu-stack', ours, ask_eu_stack('-p', process.pid), f'stop {number}', code)
            os.kill(process.pid, signal.SIGCONT)
        process.kill()
        process.wait()
    tally.tell('running threads')
    common.claim(f'stacks: {tally.threads} stacks at {tally.stops} random stops are the same as gdb\'s', tally.wrong['gdb'] == 0 and tally.same['gdb'] > tally.threads * 0.9)
    if has_eu_stack:
        common.claim('stacks: and as those of eu-stack', tally.wrong['eu-stack'] == 0 and tally.same['eu-stack'] > tally.threads * 0.5)
    common.claim('stacks: all of them are complete', tally.ends['outermost'] + tally.ends['begins'] == tally.threads)
    common.claim('stacks: a process that was stopped stays stopped', left_stopped)


# ---- cores ----

def crash(program, how, folder):
    """The kernel's core, or None where it writes none."""
    where = os.path.join(folder, how)
    os.mkdir(where)
    process = subprocess.Popen([program, '5', how], stdout=subprocess.DEVNULL, cwd=where,
                               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2))
    process.wait()
    cores = glob.glob(os.path.join(where, 'core*'))
    return cores[0] if cores else None


def compare_core(program, gdb, core, how, tally, has_eu_stack):
    ours = ask_cairn(core)
    tally.count(ours)
    code = code_of_core(core)
    tally.add('gdb', ours, gdb.ask('core', program, core), how, code)
    if has_eu_stack:
        tally.add('eu-stack', ours, ask_eu_stack(f'--core={core}', f'--executable={program}'), how, code)
    return ours


def cores(program, gdb, folder, has_eu_stack):
    tally = Tally()
    for how in CRASHES:
        core = crash(program, how, folder)
        if core is None:
            common.skip(f'stacks: core of {how}', 'the kernel writes no core here: see /proc/sys/kernel/core_pattern')
            continue
        ours = compare_core(program, gdb, core, how, tally, has_eu_stack)
        crashed = next(iter(ours.values()))
        names = [f['function'] for frame in crashed['frames'] for f in frame['functions']]
        common.claim(f'stacks: core of {how}: the crashed thread is first, from its signal {crashed.get("signal")} to the outermost frame',
                     'sink_deep' in names and 'do_crash' in names and crashed['end'] == 'outermost' and crashed.get('signal', 0) > 0)
        assumed = sum(f['assumed'] for f in crashed['frames'])
        common.claim(f'stacks: core of {how}: {assumed} assumption', assumed == (how in ('call-in-handler', 'bad-pointer', 'data', 'zero')))
        os.unlink(core)
    process = start(program, 9)
    if shutil.which('gcore'):
        common.run(['gcore', '-o', os.path.join(folder, 'g'), str(process.pid)])
        compare_core(program, gdb, os.path.join(folder, f'g.{process.pid}'), 'gcore', tally, has_eu_stack)
    process.kill()
    process.wait()
    tally.tell('cores')
    common.claim(f'stacks: {tally.threads} stacks of {tally.stops} cores are the same as gdb\'s', tally.wrong['gdb'] == 0 and tally.same['gdb'] > 0)
    if has_eu_stack:
        common.claim('stacks: and as those of eu-stack', tally.wrong['eu-stack'] == 0)


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    reason = common.may_trace() or ('gdb is not installed' if not shutil.which('gdb') else None)
    if reason:
        common.skip('stacks', reason)
        common.finish()
    has_eu_stack = shutil.which('eu-stack') is not None
    if not has_eu_stack:
        common.skip('stacks: eu-stack', 'it is not installed')
    with tempfile.TemporaryDirectory(prefix='cairn-stacks-') as folder:
        program = common.compile_c([os.path.join(HERE, 'stacks', 'threads.c')], os.path.join(folder, 'threads'), ['-O2', '-g', '-pthread', '-w'])
        gdb = Gdb()
        cores(program, gdb, folder, has_eu_stack)
        random_stops(program, gdb, n, seed, has_eu_stack)
        gdb.close()
    common.finish()


main()
