#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Holds the stacks of `cairn profile` against what is known of the programs, and against their instructions.

    profile.py [--seconds N] [--name NAME]

    shares    a program whose functions burn known shares, by recursion, inlined leaves, tail calls, signal handlers, threads and a library
              that is loaded at run time: each share within 3 standard errors, and no stack that its call graph does not have
    jit       code that is freed and made again every few milliseconds: no stack that never was
    programs  SQLite, Redis, python3, node, LuaJIT, C++ and Rust, attached while they work: at least 99.5 % of the
              stacks complete where there are unwind data, else as many as `perf record --call-graph dwarf` has, which runs beside it. Each pair of a caller and its callee in
              files: a call stands before the return address, and a direct call leads to the callee, by tail jumps, too (objdump's words)
"""
import argparse
import bisect
import collections
import contextlib
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common   # noqa: E402

SHARES = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
volatile unsigned long sink;
static unsigned long unit;
static inline __attribute__((always_inline)) void burn(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += i; }
#define LEAF(name, weight) __attribute__((noinline)) void name(void) { burn(weight * unit); __asm__ volatile(""); }
LEAF(by_recursion, 4)
LEAF(by_tail_call, 3)
LEAF(by_signal, 2)
__attribute__((noinline)) void recurse(int n) { if (n) recurse(n - 1); else by_recursion(); __asm__ volatile(""); }
__attribute__((noinline)) void jumps(void) { by_tail_call(); }
__attribute__((noinline)) void on_signal(int sig) { by_signal(); __asm__ volatile(""); }
static void (*loaded)(unsigned long);
__attribute__((noinline)) void round_of_all(void)
{
	recurse(9);
	jumps();
	__asm__ volatile("");
	raise(SIGUSR1);
	loaded(unit);
	__asm__ volatile("");
}
static double seconds;
static double used(void) { struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec / 1e9; }
static void *run(void *arg)
{
	unsigned int random = 1;
	for (double begin = used(); used() - begin < seconds;) {
		random = random * 1103515245u + 12345u;
		unit = 3000 + (random >> 8) % 30000;
		round_of_all();
	}
	return arg;
}
int main(int argc, char **argv)
{
	pthread_t thread;
	seconds = atof(argv[2]);
	signal(SIGUSR1, on_signal);
	loaded = (void (*)(unsigned long))dlsym(dlopen(argv[1], RTLD_NOW), "by_library");
	pthread_create(&thread, NULL, run, NULL);
	pthread_join(thread, NULL);
	return 0;
}
"""
LIBRARY = r"""
static volatile unsigned long sink;
__attribute__((noinline)) void by_library(unsigned long unit) { for (unsigned long i = 0; i < unit; i++) sink += i; __asm__ volatile(""); }
"""
WEIGHTS = {'by_recursion': 4, 'by_tail_call': 3, 'by_signal': 2, 'by_library': 1}
START = ['round_of_all', 'run']
# The callers of each leaf, the innermost first; the C library's own frames are left out.
CALLERS = {'by_recursion': ['recurse'] * 10 + START, 'by_tail_call': START, 'by_signal': ['on_signal'] + START, 'by_library': START}
OURS = set(WEIGHTS) | {'recurse', 'jumps', 'on_signal', 'round_of_all', 'run', 'main'}


def profile(words, folder, name, rate=999, seconds=600):
    """(summary, stacks) of a run; None: it failed."""
    out = os.path.join(folder, name + '.json')
    code, text, err = common.run([common.CAIRN, 'profile', '-F', str(rate), '--json', '-o', out, *words], seconds)
    if code != 0:
        print(f'# {name}: exit {code}: {err[-300:]}')
        return None
    s = next(json.loads(line) for line in text.splitlines() if '"summary"' in line)
    with open(out, encoding='utf-8') as file:
        return s, [o for o in map(json.loads, file) if 'stack' in o]


def names(stack):
    return [f.get('function') or '' for f in stack['stack']]


# ---- known shares ----

def check_shares(folder, seconds):
    program, library = os.path.join(folder, 'shares'), os.path.join(folder, 'library.so')
    for text, path, flags in ((SHARES, program, []), (LIBRARY, library, ['-shared', '-fPIC'])):
        with open(path + '.c', 'w', encoding='ascii') as file:
            file.write(text)
        common.compile_c([path + '.c'], path, ['-O2', '-g', '-fomit-frame-pointer', '-pthread', *flags])
    found = profile(['-c', f'{program} {library} {seconds}'], folder, 'shares')
    if not common.claim('shares: the program is sampled', found is not None):
        return
    _, stacks = found
    leaves, wrong = collections.Counter(), collections.Counter()
    for s in stacks:
        mine = [n for n in names(s) if n in OURS]
        end = s['labels'].get('end', 'complete')
        if not mine or mine[0] not in WEIGHTS:
            continue
        leaves[mine[0]] += s['values']['samples']
        expected = CALLERS[mine[0]]
        if mine[1:] != (expected if end in ('complete', 'assumed') else expected[:len(mine) - 1]):
            wrong[tuple(mine)] += s['values']['samples']
    n = sum(leaves.values())
    for leaf, weight in WEIGHTS.items():
        share, truth = leaves[leaf] / max(n, 1), weight / sum(WEIGHTS.values())
        error = math.sqrt(truth * (1 - truth) / max(n, 1))
        common.claim(f'shares: {leaf} has {100 * share:.2f} % of {n} samples, in truth {100 * truth:.0f} % ({(share - truth) / error:+.1f} errors)',
                     abs(share - truth) <= 3 * error)
    common.claim(f'shares: no stack that the call graph does not have ({sum(wrong.values())} of {n}) {wrong.most_common(2) or ""}', not wrong)


def check_jit(folder, seconds):
    """Functions of examples/jit call one another: 64 bytes apart, from the last one to the first."""
    path = os.path.join(os.path.dirname(os.path.abspath(common.CAIRN)), 'examples', 'jit')
    if not os.path.exists(path):
        common.skip('jit', 'examples/jit is not built')
        return
    with subprocess.Popen([path, str(seconds + 60)], stdout=subprocess.DEVNULL) as process:
        time.sleep(1)
        found = profile(['-p', str(process.pid), '--duration', str(seconds)], folder, 'jit', 4999)
        process.kill()
    if not common.claim('jit: the program is sampled', found is not None):
        return
    n = wrong = whole = 0
    for s in found[1]:
        count = s['values']['samples']
        n += count
        if 'call_back' not in names(s) or s['labels'].get('end', 'complete') not in ('complete', 'assumed'):
            continue
        made = [int(f['address'], 16) & 0x1ff for f in s['stack'] if f.get('code') == 'jit']
        whole += count
        wrong += count * (made != [0x15 + 64 * i for i in range(8)] or 'main' not in names(s))
    common.claim(f'jit: no stack that never was ({wrong} of {whole}; {n} samples)', whole and not wrong)


# ---- instructions ----

class Code:
    """Functions of a file by the ranges of its FDEs, their direct jumps to others, and the calls before return addresses."""

    def __init__(self, path):
        frames = subprocess.run(['readelf', '-W', '--debug-dump=frames', path], capture_output=True, text=True, check=False).stdout
        self.ranges = sorted({(int(a, 16), int(b, 16)) for a, b in re.findall(r'FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)', frames)})
        self.calls, self.jumps, self.indirect, self.plt = {}, collections.defaultdict(set), set(), set()
        text = subprocess.run(['objdump', '-d', '--no-show-raw-insn', '-w', path], capture_output=True, text=True, errors='replace', check=False).stdout
        before, in_plt = None, False
        for line in text.splitlines():
            if line.startswith('Disassembly of section'):
                in_plt = '.plt' in line
            m = re.match(r'\s*([0-9a-f]+):\t(?:(?:bnd|notrack|cs|ds|data16|rex\.?\w*|addr32) )*(\S+)\s*(.*)$', line)
            if not m:
                continue
            at = int(m.group(1), 16)
            if before is not None:
                self.calls[at] = before
            if in_plt:
                self.plt.add(at)
            before = None
            target = re.match(r'([0-9a-f]+)\b', m.group(3))
            if m.group(2).startswith('call'):
                before = int(target.group(1), 16) if target else 'indirect'
            elif m.group(2).startswith('j'):
                here = self.of(at)
                to = self.of(int(target.group(1), 16)) if target else None
                if not target and here:
                    self.indirect.add(here)
                elif target and here and (to or int(target.group(1), 16)) != here:
                    self.jumps[here].add(to or int(target.group(1), 16))

    def of(self, at):
        i = bisect.bisect(self.ranges, (at, 1 << 64)) - 1
        return self.ranges[i] if i >= 0 and self.ranges[i][0] <= at < self.ranges[i][1] else None

    def leads(self, start, wanted):
        """Whether direct jumps lead from one range to another: True, False, or None by an indirect jump."""
        seen, todo, unsure = {start}, [start], False
        while todo:
            here = todo.pop()
            if here == wanted:
                return True
            unsure |= here in self.indirect or not isinstance(here, tuple) or here[0] in self.plt
            for to in self.jumps.get(here, ()):
                if to not in seen:
                    seen.add(to)
                    todo.append(to)
        return None if unsure else False


CODES = {}


def code_of(path):
    if path not in CODES:
        CODES[path] = Code(path) if os.path.exists(path) else None
    return CODES[path]


def raw_stacks(path):
    """(samples, [(file, address)], end) of a pprof file, by go tool pprof."""
    text = subprocess.run(['go', 'tool', 'pprof', '-raw', path], capture_output=True, text=True, check=False).stdout
    part, mappings, locations, stacks = '', {}, {}, []
    for line in text.splitlines():
        if line in ('Samples:', 'Locations', 'Mappings'):
            part = line
        elif part == 'Samples:':
            m = re.match(r'\s+(\d+)\s+\d+: ((?:\d+ )*)$', line)
            if m:
                stacks.append([int(m.group(1)), m.group(2).split(), 'complete'])
            elif stacks and 'end:[' in line:
                stacks[-1][2] = re.search(r'end:\[([^]]*)', line).group(1)
        elif part == 'Locations':
            m = re.match(r'\s+(\d+): 0x([0-9a-f]+) (?:M=(\d+) )?', line)
            if m:
                locations[m.group(1)] = (m.group(3), int(m.group(2), 16))
        elif part == 'Mappings':
            m = re.match(r'(\d+): 0x\w+/0x\w+/0x\w+ (\S+)', line)
            if m:
                mappings[m.group(1)] = m.group(2)
    return [(n, [(mappings.get(locations.get(i, (None, 0))[0]), locations.get(i, (None, 0))[1]) for i in stack], end) for n, stack, end in stacks]


def check_pair(callee, caller):
    """In words; what is after "no" contradicts it."""
    file, at = caller
    code = code_of(file)
    if code is None or not code.ranges:
        return 'no file'
    ra = at + 1
    target = code.calls.get(ra)
    if target is None:
        # A signal's frame is the instruction that was interrupted, and its trampoline no caller.
        return 'no call'
    if target == 'indirect':
        return 'indirect'
    if callee[0] != file:
        # By the PLT, or by a function that ends with a jump there.
        away = target in code.plt or code.leads(code.of(target) or target, None) is None
        return 'another file' if away else 'contradicted: a direct call into another file'
    to, wanted = code.of(target), code.of(callee[1])
    if target in code.plt or to is None or wanted is None:
        return 'plt'
    return {True: 'direct', None: 'by an indirect jump', False: 'contradicted'}[code.leads(to, wanted)]


def check_pairs(name, pprof):
    counts, seen, examples = collections.Counter(), {}, []
    for n, frames, _ in raw_stacks(pprof):
        files = [(m, a) for m, a in frames]
        for callee, caller in zip(files, files[1:]):
            if not (callee[0] and caller[0] and callee[0].startswith('/') and caller[0].startswith('/')):
                continue
            key = callee, caller
            if key not in seen:
                seen[key] = check_pair(callee, caller)
                if seen[key].startswith('contradicted') or seen[key] == 'no call':
                    examples.append((seen[key], callee[0], hex(callee[1]), caller[0], hex(caller[1])))
            counts[seen[key]] += n
    return counts, examples


# ---- real programs ----

class Programs:
    """Each: what runs, and what makes it work, as [command, ...]; the first is sampled."""
    SQL = 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c LIMIT 100000000) SELECT count(*), sum(x*x % 7), max(abs(x-5)) FROM c;'
    PYTHON = 'import json\nwhile True: json.loads(json.dumps([{"a": i, "b": [str(i)]*3} for i in range(200)])); sorted(str(i) for i in range(999))'
    NODE = 'function f(n){return n<2?n:f(n-1)+f(n-2)} for(;;){f(25); JSON.parse(JSON.stringify([...Array(500).keys()].map(String)))}'
    LUA = 'local function f(n) if n<2 then return n end return f(n-1)+f(n-2) end while true do f(24); local t={} for i=1,999 do t[i]=tostring(i) end table.sort(t) end'


def commands(folder):
    found = {}
    if shutil.which('sqlite3'):
        found['sqlite3'] = ['sqlite3', ':memory:', Programs.SQL]
    found['python3'] = [os.path.realpath(sys.executable), '-c', Programs.PYTHON]
    for tool, text, option in (('node', Programs.NODE, '-e'), ('luajit', Programs.LUA, '-e')):
        if shutil.which(tool):
            found[tool] = [tool, option, text]
    cxx = os.path.join(folder, 'cxx')
    with open(cxx + '.cc', 'w', encoding='ascii') as file:
        file.write('#include <map>\n#include <string>\n#include <algorithm>\n#include <vector>\nint main() { for (;;) { std::map<std::string, int> m;'
                   'for (int i = 0; i < 2000; i++) m[std::to_string(i * 7919 % 2000)] += i; std::vector<std::string> v; for (auto &p : m) v.push_back(p.first);'
                   'std::sort(v.begin(), v.end(), [](auto &a, auto &b) { return a.size() != b.size() ? a.size() < b.size() : a < b; }); } }\n')
    if shutil.which('g++'):
        common.compile_c([cxx + '.cc'], cxx, ['-O2', '-fomit-frame-pointer'], compiler='g++')
        found['C++'] = [cxx]
    rust = os.path.join(folder, 'rust')
    with open(rust + '.rs', 'w', encoding='ascii') as file:
        file.write('use std::collections::BTreeMap;\nfn main() { loop { let mut m = BTreeMap::new(); for i in 0..2000u64 { *m.entry(format!("{}", i * 7919 % 2000))'
                   '.or_insert(0) += i; } let mut v: Vec<_> = m.into_iter().collect(); v.sort_by(|a, b| b.1.cmp(&a.1)); std::hint::black_box(v); } }\n')
    if shutil.which('rustc') and subprocess.run(['rustc', '-O', rust + '.rs', '-o', rust], capture_output=True, check=False).returncode == 0:
        found['Rust'] = [rust]
    return found


@contextlib.contextmanager
def working(words):
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(2)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def redis(folder):
    port = '7391'
    words = ['redis-server', '--port', port, '--save', '', '--dir', folder]
    with working(words) as pid:
        load = subprocess.Popen(['redis-benchmark', '-p', port, '-q', '-l', '-t', 'set,get,lpush,lrange', '-c', '10'], stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
        time.sleep(1)
        try:
            yield pid
        finally:
            load.kill()
            load.wait()


def perf_share(pid, folder, seconds):
    """Share of stacks that end in a beginning, of perf's copies of the stack; None: there is no perf."""
    if not shutil.which('perf'):
        return None
    data = os.path.join(folder, 'perf.data')
    common.run(['perf', 'record', '-q', '-e', 'cpu-clock', '-F', '199', '-o', data, '--call-graph', 'dwarf', '-p', str(pid), '--', 'sleep', str(seconds)], 120)
    _, text, _ = common.run(['perf', 'script', '-i', data, '-F', 'ip,sym'], 300)
    stacks = [s.splitlines() for s in text.strip().split('\n\n') if s.strip()]
    whole = sum(bool(re.search(r' (_start|__libc_start\S*|_?_?clone3?|thread_start|start_thread|main)\b', s[-1])) for s in stacks)
    return 100 * whole / len(stacks) if stacks else None


def needed(name, beside):
    """The share that has to be complete. Code that LuaJIT and node make has no unwind data: as much as perf has, but for chance."""
    return max(0, (beside or 0) - 4) if name in ('node', 'luajit') else 99.5


def check_program(name, pid, folder, seconds):
    pprof = os.path.join(folder, name.replace('/', '') + '.pb.gz')
    found = profile(['-p', str(pid), '--duration', str(seconds), '-o', pprof], folder, 'program')
    if not common.claim(f'{name}: is sampled', found is not None):
        return
    s, _ = found
    ends = s['ends']
    whole = ends['complete'] + ends['assumed'] + ends['kernel-thread']
    share = 100 * whole / max(s['samples'], 1)
    beside = perf_share(pid, folder, min(seconds, 5))
    others = ', '.join(f'{end} {n}' for end, n in ends.items() if n and end not in ('complete', 'assumed', 'kernel-thread'))
    common.claim(f'{name}: {share:.2f} % of {s["samples"]} stacks complete, {100 * ends["assumed"] / max(s["samples"], 1):.2f} % of all with assumed frames '
                 f'({others or "no other"}); perf dwarf {"-" if beside is None else f"{beside:.2f} %"}', share >= needed(name, beside))
    common.claim(f'{name}: samples are stacks and losses ({s["samples"]}, {s["lost"]} lost)', sum(ends.values()) == s['samples'])
    if not shutil.which('go'):
        common.skip(f'{name}: pairs', 'go tool pprof reads the addresses')
        return
    counts, examples = check_pairs(name, pprof)
    wrong = sum(n for what, n in counts.items() if what.startswith('contradicted'))
    common.claim(f'{name}: {sum(counts.values())} pairs: {dict(counts.most_common())}; {wrong} contradicted {examples[:2] if wrong else ""}',
                 counts and not wrong)
    if counts['no call']:
        print(f'# {name}: no call before: {[e for e in examples if e[0] == "no call"][:3]}')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--seconds', type=int, default=20)
    parser.add_argument('--name')
    args = parser.parse_args()
    if os.geteuid() != 0:
        common.skip('profile', 'sampling needs root')
        common.finish()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory() as folder:
        if args.name in (None, 'shares'):
            check_shares(folder, args.seconds)
        if args.name in (None, 'jit'):
            check_jit(folder, args.seconds)
        for name, words in commands(folder).items():
            if args.name in (None, name):
                with working(words) as pid:
                    check_program(name, pid, folder, args.seconds)
        if args.name in (None, 'redis') and not common.have('redis-server', 'redis-benchmark'):
            with redis(folder) as pid:
                check_program('redis', pid, folder, args.seconds)
    common.finish()


if __name__ == '__main__':
    main()
