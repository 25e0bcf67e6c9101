#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn stack against gdb, eu-stack and libunwind: the same program counters of every frame of
every thread.

    stacks.py [STOPS] [SEED]      1000 stops, unless told otherwise

Running threads: threads.c is stopped by SIGSTOP at random times, and each of the four is asked.
Crashed ones: the kernel's cores of threads.c's crashes, and gcore's of a running one.

A difference counts as a peer's error only where this is shown here: see excuse(). Each kind is
listed with its number.
"""
import collections
import glob
import itertools
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

CRASHES = [
    'null', 'abort', 'overflow', 'handler', 'call-in-handler', 'bad-pointer', 'data', 'trap',
    'noncanonical', 'zero'
]
DEEPEST = 100000


class Peer:
    """One process for all questions; it is not attached between them."""

    def __init__(self, *command):
        self.name = command[0]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)

    def ask(self, *words):
        self.process.stdin.write(' '.join(map(str, words)) + '\n')
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith('frames '):
                found = json.loads(line[7:])
                if 'error' in found:
                    raise RuntimeError(f'{self.name} {words}: {found["error"]}')
                return {int(tid): pcs for tid, pcs in found.items()}
        raise RuntimeError(f'{self.name} ended at {words}')

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def start_gdb():
    return Peer('gdb', '-nx', '-q', '-batch', '-x', os.path.join(HERE, 'stacks',
                                                                 'frames_of_gdb.py'))


def start_libunwind(folder):
    """None when it cannot be built."""
    program = os.path.join(folder, 'frames_of_libunwind')
    try:
        common.compile_c([os.path.join(HERE, 'stacks', 'frames_of_libunwind.c')], program, ['-O2'],
                         timeout=120, libraries=['-lunwind-ptrace', '-lunwind-x86_64', '-lunwind'])
    except RuntimeError as error:
        common.skip('stacks: libunwind', f'{str(error)[-200:]}: libunwind-dev is not installed?')
        return None
    return Peer(program)


def ask_cairn(what):
    """{tid: the thread's object}"""
    _, out, err = common.run([
        common.CAIRN, 'stack', '--symbols', '--no-cache', '--json', '--max-frames',
        str(DEEPEST),
        str(what)
    ])
    threads = common.json_lines(out)
    if not threads:
        raise RuntimeError(f'cairn stack {what}: {err}')
    return {t['tid']: t for t in threads}


def ask_eu_stack(how, *what):
    words = ['-p', str(what[0])
             ] if how == 'attach' else [f'--core={what[1]}', f'--executable={what[0]}']
    _, out, _ = common.run(['eu-stack', '-n', '0', *words])
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


# GCC's last instructions of a function that realigned its stack: rbp is the caller's, and then rsp
# (docs/findings/gcc-realigned-epilogue.md).
GIVES_RBP_BACK = re.compile(rb'[\x5d\xc9]\Z')  # pop %rbp, leave
GIVES_RSP_BACK = b'\x49\x8d\x62\xf8'  # lea -8(%r10),%rsp
RET = b'\xc3'


class Code:
    """What can be run, where the vDSO is, and of a process the instructions."""

    def __init__(self, ranges, vdso, pid=None):
        self.ranges, self.vdso, self.pid = ranges, vdso, pid

    def has(self, at):
        return any(lo <= at < hi for lo, hi in self.ranges)

    def around(self, at):
        """Eight bytes before @at, and eight from there on."""
        if self.pid is None:
            return b'', b''
        with open(f'/proc/{self.pid}/mem', 'rb') as file:
            file.seek(at - 8)
            both = file.read(16)
        return both[:8], both[8:]

    def has_left_realigned_frame(self, at):
        """The instruction at @at runs with the caller's rbp, in a function of which the rows still
        say that it is in memory at rbp."""
        before, after = self.around(at)
        if after.startswith(RET) and before.endswith(GIVES_RSP_BACK):
            before, after = before[:-len(GIVES_RSP_BACK)], GIVES_RSP_BACK + after
        return after.startswith(GIVES_RSP_BACK + RET) and GIVES_RBP_BACK.search(before) is not None


def code_of_process(pid):
    with open(f'/proc/{pid}/maps', encoding='utf-8') as file:
        words = [line.split() for line in file]
    ranges = {tuple(int(end, 16) for end in w[0].split('-')): w[-1] for w in words if 'x' in w[1]}
    return Code(list(ranges), next((r for r, name in ranges.items() if name == '[vdso]'), (0, 0)),
                pid)


def code_of_core(core):
    _, out, _ = common.run(['readelf', '-lW', core])
    loads = re.findall(r'LOAD +0x\w+ (0x\w+) 0x\w+ 0x\w+ (0x\w+) [R ][W ]E', out)
    return Code([(int(at, 16), int(at, 16) + int(size, 16)) for at, size in loads], (0, 0))


def left_one_out(ours, theirs, thread, code):
    """@theirs lacks one frame of @ours, above an instruction at which the rows as written lead to
    the caller's caller."""
    same = len(os.path.commonprefix([ours, theirs]))
    exact = [at for i, at in enumerate(ours[:same]) if i == 0 or thread['frames'][i - 1]['signal']]
    return ours[:same] + ours[same + 1:] == theirs and any(
        code.has_left_realigned_frame(at) for at in exact)


# A stack that ends there, by the rows alone or by an assumption that is shown, leaves nothing out.
COMPLETE = ('outermost', 'assumed')
ASSUMED = ('call-in-handler', 'bad-pointer', 'data', 'zero')


def excuse(peer, ours, theirs, thread, code):
    """Why a difference is the peer's, or None."""
    same = len(os.path.commonprefix([ours, theirs]))
    if peer == 'libunwind' and any(code.vdso[0] <= pc < code.vdso[1]
                                   for pc in ours[:same]) and thread['end'] in COMPLETE:
        return 'libunwind-ptrace has no rows of the vDSO, and ends there or goes on by the frame pointer, from the stack of before'
    if same < len(theirs) and not code.has(theirs[same] - 1):
        return f'{peer} goes on to an address that is no code'
    if same == len(theirs) and thread['end'] in COMPLETE:
        return f'{peer} ends early, and the rest leads to the outermost frame'
    if thread['end'] in COMPLETE and left_one_out(ours, theirs, thread, code):
        return f"{peer} goes by the rows of GCC's epilogue of a realigned stack, and leaves a frame out"
    return None


def begins(thread):
    """A thread that has not run yet is in clone3(), after whose system call glibc describes
    nothing."""
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
        print(
            f'    {name}: {self.stops} stops, {self.threads} stacks, {self.frames} frames; the same as '
            + ', '.join(f'{peer} {n}'
                        for peer, n in self.same.items()) + f'; ends {dict(self.ends)}')
        for why, n in self.excused.items():
            print(f'    {n} times: {why}')


def show(where, peer, thread, mine, theirs):
    same = len(os.path.commonprefix([mine, theirs]))
    part = slice(max(same - 2, 0), same + 3)
    names = [(f['functions'] or [{}])[0].get('function') for f in thread['frames'][part]]
    print(
        f'    {where}: thread {thread["tid"]} {thread["comm"]} from frame {part.start} on: {[hex(p) for p in mine[part]]} {names}, '
        f'{peer} {[hex(p) for p in theirs[part]]}; {thread["why"]}')


# ---- running threads ----

def start(program, *words, folder=None):
    process = subprocess.Popen([program, *map(str, words)], stdout=subprocess.PIPE, cwd=folder,
                               text=True)
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


def random_stops(program, peers, n, seed):
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
            for peer, ask in peers.items():
                tally.add(peer, ours, ask('attach', process.pid), f'stop {number}', code)
                left_stopped &= comes_to_a_stop(process.pid)
            os.kill(process.pid, signal.SIGCONT)
        process.kill()
        process.wait()
    tally.tell('running threads')
    for peer in peers:
        common.claim(
            f'stacks: {tally.threads} stacks at {tally.stops} random stops are those of {peer}',
            tally.wrong[peer] == 0 and tally.same[peer] > tally.threads * 0.5)
    common.claim('stacks: all of them are complete',
                 tally.ends['outermost'] + tally.ends['begins'] == tally.threads)
    common.claim('stacks: a process that was stopped stays stopped', left_stopped)


# ---- cores ----

def crash(program, how, folder, has_all):
    """The kernel's core, or None where it writes none. @has_all: with what is in files, too."""
    def prepare():
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)
        if has_all:
            with open('/proc/self/coredump_filter', 'w', encoding='ascii') as file:
                file.write('0x7f')

    where = os.path.join(folder, f'{how}-{has_all}')
    os.mkdir(where)
    process = subprocess.Popen([program, '5', how], stdout=subprocess.DEVNULL, cwd=where,
                               preexec_fn=prepare)
    process.wait()
    cores = glob.glob(os.path.join(where, 'core*'))
    return cores[0] if cores else None


def compare_core(program, core, how, tally, peers):
    ours = ask_cairn(core)
    tally.count(ours)
    code = code_of_core(core)
    for peer, ask in peers.items():
        tally.add(peer, ours, ask('core', program, core), how, code)
    return ours


def check_crash(how, ours):
    crashed = next(iter(ours.values()))
    names = [f['function'] for frame in crashed['frames'] for f in frame['functions']]
    end = 'assumed' if how.split(',')[0] in ASSUMED else 'outermost'
    common.claim(
        f'stacks: core of {how}: the crashed thread is first, from its signal {crashed.get("signal")} to the end {end}',
        'sink_deep' in names and 'do_crash' in names and crashed['end'] == end
        and crashed.get('signal', 0) > 0)
    assumed = sum(f['assumed'] for f in crashed['frames'])
    common.claim(f'stacks: core of {how}: {assumed} assumption', assumed == (how.split(',')[0]
                                                                             in ASSUMED))


def cores(program, peers, folder):
    """Those that have all are for libunwind, which is handed nothing else; the others are as the
    kernel writes them unasked."""
    tally = Tally()
    for how, has_all in itertools.product(CRASHES, (False, True)):
        core = crash(program, how, folder, has_all)
        if core is None:
            common.skip(f'stacks: core of {how}', 'the kernel writes no core here: see '
                                                  '/proc/sys/kernel/core_pattern')
            continue
        asked = {peer: ask for peer, ask in peers.items() if has_all or peer != 'libunwind'}
        check_crash(f'{how}, with all files' if has_all else how,
                    compare_core(program, core, how, tally, asked))
        os.unlink(core)
    process = start(program, 9)
    if shutil.which('gcore'):
        common.run(['gcore', '-o', os.path.join(folder, 'g'), str(process.pid)])
        compare_core(program, os.path.join(folder, f'g.{process.pid}'), 'gcore', tally,
                     {peer: ask
                      for peer, ask in peers.items()
                      if peer != 'libunwind'})
    process.kill()
    process.wait()
    tally.tell('cores')
    for peer in peers:
        common.claim(f'stacks: {tally.threads} stacks of {tally.stops} cores are those of {peer}',
                     tally.wrong[peer] == 0 and tally.same[peer] > 0)


# ---- GCC's epilogues of realigned stacks ----

def epilogues(program, gdb, folder):
    """From where rbp is given back on, instruction by instruction: the callers stay those that gdb
    saw before."""
    for function in ('realigned', 'realigned_alloca'):
        _, out, err = common.run([
            'gdb', '-nx', '-q', '-batch', '-ex', f'py FUNCTION, FOLDER = "{function}", "{folder}"',
            '-x',
            os.path.join(HERE, 'stacks', 'epilogue_in_gdb.py'), program
        ])
        found = [
            (core, int(tid), int(pc, 16))
            for core, tid, pc in re.findall(r'^core (\S+) (\d+) (0x[0-9a-f]+)$', out, re.MULTILINE)
        ]
        if len(found) < 3:
            raise RuntimeError(f'gdb at the epilogue of {function}: {out[-500:]} {err[-500:]}')
        callers = gdb.ask('core', program, found[0][0])[found[0][1]][1:]
        right, short = 0, 0
        for core, tid, pc in found:
            right += pcs_of(ask_cairn(core)[tid]) == [pc] + callers
            short += gdb.ask('core', program, core)[tid] != [pc] + callers
            os.unlink(core)
        common.claim(
            f'stacks: {function}: at its last {len(found)} instructions the callers are those of before (not by gdb at {short})',
            right == len(found) and len(callers) > 5)


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    reason = common.may_trace() or ('gdb is not installed' if not shutil.which('gdb') else None)
    if reason:
        common.skip('stacks', reason)
        common.finish()
    with tempfile.TemporaryDirectory(prefix='cairn-stacks-') as folder:
        program = common.compile_c([os.path.join(HERE, 'stacks', 'threads.c')],
                                   os.path.join(folder, 'threads'), ['-O2', '-g', '-pthread', '-w'])
        gdb, libunwind = start_gdb(), start_libunwind(folder)
        peers = {'gdb': gdb.ask}
        if libunwind:
            peers['libunwind'] = libunwind.ask
        if shutil.which('eu-stack'):
            peers['eu-stack'] = ask_eu_stack
        else:
            common.skip('stacks: eu-stack', 'it is not installed')
        cores(program, peers, folder)
        epilogues(program, gdb, folder)
        random_stops(program, peers, n, seed)
        for peer in filter(None, (gdb, libunwind)):
            peer.close()
    common.finish()


if __name__ == '__main__':
    main()
