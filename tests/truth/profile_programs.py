#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn profile on ten real programs without frame pointers, beside perf and bpftrace; every caller
and callee held against the code.

    profile_programs.py [SECONDS] [PROGRAM...]      4 seconds of each way, unless told otherwise

Each program is sampled from its exec on, and once more after it has run for a while. Claimed is of
each program whose code is described: the share of complete stacks; of each: that it is not below
that of perf with copies of the stack, that every stack has an end, that the samples are those of
its processor time (or as many less as perf's, where the kernel's clock is late), and that no return
address is contradicted by the code (profile_of_programs/code_of_files.py).
"""
import collections
import contextlib
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, 'profile_of_programs')]
import code_of_files as code  # noqa: E402
import common  # noqa: E402
import on_processor  # noqa: E402
import programs  # noqa: E402

HZ, PERF_HZ = 999, 99
BEGINNINGS = {
    '_start', 'start_thread', 'clone', 'clone3', '__clone', '__clone3', '__clone_internal',
    '_dl_start_user', '_dl_start'
}
# libc keeps no frame pointers: what has got to its first functions has all that matters.
LIBC = {
    '__libc_start_main', '__libc_start_call_main', '__libc_start_main_impl',
    '__libc_start_main_alias_2'
}
GOOD = ('complete', 'assumed', 'kernel-thread')


# ---- the tools ----

def read_summary(text):
    for line in text.splitlines():
        if line.startswith('{"summary"'):
            return json.loads(line)
    raise RuntimeError(text[-500:])


def profile(words, out):
    command = [common.CAIRN, 'profile', *words, '-F', str(HZ), '-o', out, '--json', '--no-cache']
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def targets(pids):
    return [word for pid in pids for word in ('-p', str(pid))]


def processor_ns(pids):
    """Of those that are there, and of their children that have ended."""
    ticks = 0
    for pid in pids:
        try:
            with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as file:
                words = file.read().rsplit(')', 1)[1].split()
        except OSError:
            continue
        ticks += sum(int(word) for word in words[11:15])
    return ticks * 1000000000 // os.sysconf('SC_CLK_TCK')


def begins(names):
    """Whether the two outermost names are those of a beginning; _start has no name in a stripped
    program."""
    return any(name.split('@')[0] in BEGINNINGS | LIBC for name in names)


def perf(pids, seconds, kind, folder):
    """(samples, complete ones) of perf; None when it cannot run."""
    data = os.path.join(folder, 'perf.data')
    code_, _, err = common.run([
        'perf', 'record', '-q', '-e', 'cpu-clock', '-F',
        str(PERF_HZ), '--call-graph', kind, '-p', ','.join(map(str, pids)), '-o', data, '--',
        'sleep',
        str(seconds)
    ], seconds + 60)
    if code_ is None or not os.path.exists(data):
        return None
    _, out, _ = common.run(['perf', 'script', '-i', data, '--no-inline', '-F', 'ip,sym'], 600)
    stacks = [part.strip().split('\n') for part in out.split('\n\n') if part.strip()]
    return len(stacks), sum(
        begins([line.split(None, 1)[-1]
                for line in stack[-2:]
                if line.strip()])
        for stack in stacks)


def bpftrace(pids, seconds):
    """The same of bpftrace, which follows frame pointers."""
    condition = ' || '.join(f'pid == {pid}' for pid in pids[:8])
    program = f'profile:hz:{PERF_HZ} /{condition}/ {{ @[ustack] = count(); }} interval:s:{seconds} {{ exit(); }}'
    _, out, _ = common.run(['bpftrace', '-e', program], seconds + 120)
    n = complete = 0
    for stack, count in re.findall(r'@\[([^\]]*)\]: (\d+)', out):
        lines = [line.strip() for line in stack.strip().splitlines()]
        n += int(count)
        complete += int(count) * begins([line.split('+')[0] for line in lines[-2:]])
    return n, complete


# ---- what was written ----

class Stacks:
    """All stacks of a file: their number, the ends, and each caller with its callee."""

    def __init__(self, path):
        self.n, self.ends, self.pairs = 0, collections.Counter(), collections.Counter()
        self.outermost = collections.Counter()
        with open(path, encoding='utf-8') as file:
            for line in file:
                o = json.loads(line)
                if 'stack' in o:
                    self.add(o)

    def add(self, o):
        n, end = o['values']['samples'], o['labels'].get('end', 'complete')
        frames = [f for f in o['stack'] if 'address' in f and f['module'][:1] == '/']
        self.n += n
        self.ends[end] += n
        if end == 'complete' and frames:
            self.outermost[frames[-1]['function'], frames[-1]['module'],
                           int(frames[-1]['address'], 16)] += n
        physical = [f for f in o['stack'] if 'address' in f]
        for callee, caller in zip(physical, physical[1:]):
            if any(f['module'][:1] != '/' for f in (callee, caller)):
                continue
            self.pairs[(caller['module'], int(caller['address'], 16)),
                       (callee['module'], int(callee['address'], 16))] += n


def judge(files, stacks):
    """How many pairs the code says what of."""
    verdicts, wrong = collections.Counter(), []
    for (caller, callee), n in stacks.pairs.items():
        if not os.path.exists(caller[0]) or not os.path.exists(callee[0]):
            continue
        # A handler returns to code that no one called, and that code to what was interrupted.
        if files.file(caller[0]).is_signal_return(caller[1]) or files.file(
                callee[0]).is_signal_return(callee[1]):
            continue
        word = files.judge(caller, callee)
        verdicts[word] += n
        if word.startswith('no '):
            wrong.append(
                f'{caller[0]}+{caller[1]:#x} calls {callee[0]}+{callee[1]:#x}: {word} ({n})')
    return verdicts, wrong


# ---- one program ----

def end(pids, by):
    """Of processes that we started; one may have ended by itself."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, by)


def run_below(tracer, program, seconds, folder):
    """(what it printed, time on a processor) of a tracer that started the program."""
    watch = on_processor.Watch(folder)
    pids = []
    try:
        programs.wait_until(lambda: len(programs.below(tracer.pid)) > 1 and program.is_ready() or
                            tracer.poll() is not None)
        program.work()
        time.sleep(seconds)
        pids = programs.below(tracer.pid)[1:]
        charged = processor_ns(pids)
    finally:
        program.rest()
        end(pids[:1], program.end_signal)
    try:
        text, err = tracer.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        end(programs.below(tracer.pid)[1:], signal.SIGKILL)
        text, err = tracer.communicate(timeout=120)
    watch.end()
    used = watch.ns_of(pids[0]) if pids else 0
    print(f'    from exec: {charged / 1e9:.2f} s are charged, {(used or 0) / 1e9:.2f} s on a processor',
          flush=True)
    return text, err, used or charged


def from_exec(program, seconds, folder):
    """(summary, stacks, time on a processor) of a run that cairn profile started."""
    out = os.path.join(folder, 'exec.json')
    tracer = profile(['-c', ' '.join(program.words)], out)
    text, err, used = run_below(tracer, program, seconds, folder)
    if tracer.returncode != 0:
        raise RuntimeError(err[-500:])
    return read_summary(text), Stacks(out), used


def clock_of_perf(program, seconds, folder):
    """(perf's samples at our rate, time on a processor). The kernel's clock is late in a virtual
    machine: its timer is set anew at each switch, and time between due and interrupt is no sample."""
    data = os.path.join(folder, 'clock.data')
    tracer = subprocess.Popen(
        ['perf', 'record', '-q', '-e', 'cpu-clock', '-F', str(HZ), '-o', data, '--', *program.words],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    _, _, used = run_below(tracer, program, seconds, folder)
    _, out, _ = common.run(['perf', 'script', '-i', data, '-F', 'tid'], 600)
    return len(out.splitlines()), used


def are_those_of(sampled, used, by_clock=1):
    expected = by_clock * used * HZ / 1e9
    return abs(sampled - expected) <= 0.05 * expected + 20


def attached(program, seconds, folder):
    """(summary, stacks, what the peers have) of one that ran already."""
    process = programs.start(program.words)
    try:
        programs.wait_until(lambda: process.poll() is None and program.is_ready())
        program.work()
        time.sleep(1)
        pids = programs.below(process.pid)
        out = os.path.join(folder, 'attached.json')
        tracer = profile([*targets(pids), '--duration', f'{seconds}s'], out)
        text, err = tracer.communicate(timeout=seconds + 120)
        if tracer.returncode != 0:
            raise RuntimeError(err[-500:])
        peers = perf(pids, seconds, 'dwarf', folder), perf(pids, seconds, 'fp', folder), bpftrace(
            pids, seconds)
        return read_summary(text), Stacks(out), peers
    finally:
        end(reversed(programs.below(process.pid)), signal.SIGKILL)
        process.wait()
        program.rest()


def share(part, whole):
    return 100 * part / whole if whole else 0


def good_of(summary):
    return share(sum(summary['ends'].get(end, 0) for end in GOOD), summary['samples'])


def show(peer):
    return f'{share(peer[1], peer[0]):6.2f} % of {peer[0]}' if peer else 'did not run'


def look_at(program, seconds, files, total):
    with tempfile.TemporaryDirectory(prefix='cairn-profile-') as folder:
        program.prepare()
        summary_e, stacks_e, used = from_exec(program, seconds, folder)
        summary_a, stacks_a, (dwarf, fp, bpf) = attached(program, seconds, folder)
        sampled, peer = summary_e['samples'] + summary_e['lost'], None
        if not are_those_of(sampled, used):
            peer = clock_of_perf(program, seconds, folder)
    name = program.name
    print(
        f'  {name}: from exec {good_of(summary_e):.2f} % of {summary_e["samples"]}, attached {good_of(summary_a):.2f} % of '
        f'{summary_a["samples"]} ({share(summary_a["ends"].get("assumed", 0), summary_a["samples"]):.2f} % by assumption); perf dwarf '
        f'{show(dwarf)}, perf fp {show(fp)}, bpftrace {show(bpf)}', flush=True)
    for summary, stacks, way in ((summary_e, stacks_e, 'from exec'), (summary_a, stacks_a,
                                                                      'attached')):
        cut = {end: n for end, n in summary['ends'].items() if n and end not in GOOD}
        if cut:
            print(f'    {way}, cut: {cut}', flush=True)
        common.claim(
            f'{name} {way}: every sample has a stack with an end', stacks.n == summary['samples']
            and sum(summary['ends'].values()) == summary['samples'])
        strange = {
            f: n
            for f, n in stacks.outermost.items()
            if f[0] not in BEGINNINGS and not files.file(f[1]).is_start(f[2])
        }
        if strange:
            print(f'    {way}, complete stacks that begin in: {strange}', flush=True)
        common.claim(f'{name} {way}: complete stacks begin where processes and threads do',
                     not strange)
        verdicts, wrong = judge(files, stacks)
        total.update(verdicts)
        for line in wrong[:10]:
            print(f'    {line}', flush=True)
        common.claim(
            f'{name} {way}: no caller is contradicted by the code ({sum(verdicts.values())} pairs)',
            not wrong)
    if program.is_described:
        common.claim(f'{name}: 97 % complete from exec', good_of(summary_e) >= 97)
        common.claim(f'{name}: 99.5 % complete, attached', good_of(summary_a) >= 99.5)
    if dwarf and dwarf[0] > 20:
        # Both are shares of samples: perf's few have an error that is larger than any difference.
        perf_share = share(dwarf[1], dwarf[0])
        error = 100 * math.sqrt(max(perf_share * (100 - perf_share), 0) / 1e4 / dwarf[0])
        common.claim(f'{name}: not below perf with copies of the stack',
                     good_of(summary_a) >= perf_share - 0.1 - 3 * error)
    beside = f'; perf: {peer[0]} of {peer[1] / 1e9:.2f} s' if peer else ''
    common.claim(
        f'{name}: samples are those of {used / 1e9:.2f} s on a processor ({sampled}{beside})',
        are_those_of(sampled, used, peer[0] / (peer[1] * HZ / 1e9) if peer else 1))


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    if os.geteuid() != 0:
        common.skip('profile', 'profiling needs root')
        common.finish()
    files, total = code.Files(), collections.Counter()
    for program in programs.programs():
        if sys.argv[2:] and program.name.split()[0] not in sys.argv[2:]:
            continue
        missing = program.missing()
        try:
            if missing:
                common.skip(program.name, f'{" ".join(missing)} is not installed')
            else:
                look_at(program, seconds, files, total)
        finally:
            program.close()
    print(f'  {sum(total.values())} pairs of caller and callee: {dict(total.most_common())}')
    common.finish()


if __name__ == '__main__':
    main()
