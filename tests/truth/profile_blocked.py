#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Holds 1,000 stacks of `cairn profile --off-cpu` against those that gdb and `cairn stack` show of
the same moments.

    profile_blocked.py [--threads N] [--rounds N] [--seed N]

A generated program without frame pointers has threads that block at the end of chains of calls
which differ for each thread and round. While all of them are blocked, gdb and `cairn stack` unwind
them. Then they are woken, and so the profile has the stack by which each was blocked.
"""
import argparse
import collections
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common   # noqa: E402

FUNCTIONS = 64
DEEPEST = 40

HEAD = r"""
#include <alloca.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
typedef unsigned long u64;
static int pipes[4096][2];
static __thread int me;
volatile u64 sink;
static u64 next_of(u64 seed) { return seed * 6364136223846793005ul + 1442695040888963407ul; }
__attribute__((noinline)) u64 block_here(u64 seed)
{
	char c;
	if (read(pipes[me][0], &c, 1) != 1)
		_exit(1);
	__asm__ volatile("");
	return seed;
}
"""
TAIL = r"""
static int rounds;
static void *run(void *arg)
{
	me = (int)(long)arg;
	for (int i = 0; i <= rounds; i++)
		sink += f0(next_of(next_of(me * 1000003ul + i)), 5 + (me * 7 + i * 13) % %DEEPEST%);
	return NULL;
}
int main(int argc, char **argv)
{
	int n = atoi(argv[1]);
	rounds = atoi(argv[2]);
	pthread_attr_t attr;
	pthread_t thread;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 1 << 18);
	for (long i = 0; i < n; i++)
		if (pipe(pipes[i]) || pthread_create(&thread, &attr, run, (void *)i))
			return 1;
	puts("ready");
	fflush(stdout);
	for (int c; (c = getchar()) != EOF;)
		for (int i = 0; i < n && c == 'w'; i++)
			if (write(pipes[i][1], "", 1) != 1)
				return 1;
	_exit(argc == 0);
}
"""
# What gdb prints of each thread: its id and the program counters, without inlined frames.
GDB = r"""
import gdb
for t in gdb.selected_inferior().threads():
    t.switch()
    f, pcs = gdb.newest_frame(), []
    while f is not None and f.is_valid():
        if f.type() != gdb.INLINE_FRAME:
            pcs.append(f.pc())
        f = f.older()
    print('STACK', t.ptid[1], *pcs)
"""


def function(number, rng):
    """Frames of many sizes: saved registers, arrays, variable arrays; the next function is chosen
    by the seed."""
    room = rng.choice([0, 0, 8, 40, 136, 1000])
    body = [f'__attribute__((noinline)) u64 f{number}(u64 seed, int depth)', '{']
    if room:
        body.append(
            f'\tchar room[{room}]; memset(room, (int)seed, sizeof(room)); __asm__ volatile("" :: "r"(room) : "memory");'
        )
    if rng.random() < 0.2:
        body.append(
            '\tchar *more = alloca(16 + seed % 64); __asm__ volatile("" :: "r"(more) : "memory");')
    kept = rng.randrange(0, 5)
    for k in range(kept):
        body.append(
            f'\tu64 k{k} = seed ^ {rng.getrandbits(32)}ul * (u64)depth; __asm__ volatile("" : "+r"(k{k}));'
        )
    body += ['\tu64 r, s = next_of(seed);', '\tif (depth <= 0) r = block_here(s);']
    targets = [rng.randrange(FUNCTIONS) for _ in range(4)]
    body.append('\telse switch (s >> 33 & 3) {')
    for k, target in enumerate(targets):
        body.append(f'\tcase {k}: r = f{target}(s, depth - 1); __asm__ volatile(""); break;')
    body += ['\tdefault: r = 0; }', '\t__asm__ volatile("" : "+r"(r));',
             '\treturn r' + ''.join(f' + k{k}' for k in range(kept)) + ';', '}']
    return '\n'.join(body)


def program(folder, seed):
    rng = random.Random(seed)
    path = os.path.join(folder, 'blocked')
    with open(path + '.c', 'w', encoding='ascii') as file:
        file.write(HEAD + ''.join(f'u64 f{i}(u64, int);\n' for i in range(FUNCTIONS)))
        file.write('\n'.join(function(i, rng)
                             for i in range(FUNCTIONS)) + TAIL.replace('%DEEPEST%', str(DEEPEST)))
    return common.compile_c([path + '.c'], path, ['-O2', '-g', '-fomit-frame-pointer', '-pthread'])


# ---- the process ----

def threads_of(pid):
    return [int(t) for t in os.listdir(f'/proc/{pid}/task') if int(t) != pid]


def in_read(pid, tid):
    with open(f'/proc/{pid}/task/{tid}/syscall', encoding='ascii') as file:
        return file.read().split()[0] == '0'


def wait_blocked(pid, n, seconds=120):
    """A thread that was just woken may still be in the read() of the round before: its count of
    switches has to stand still, too."""
    before, end = None, time.monotonic() + seconds
    while time.monotonic() < end:
        tids = threads_of(pid)
        now = []
        for tid in tids:
            with open(f'/proc/{pid}/task/{tid}/status', encoding='ascii') as file:
                now.append([line for line in file if 'ctxt_switches' in line])
        if len(tids) == n and all(in_read(pid, t) for t in tids) and now == before:
            return True
        before = now
        time.sleep(0.3)
    return False


class Files:
    """Addresses of a process by file and link-time address, as its program headers have them."""
    def __init__(self, pid):
        self.maps, self.heads = [], {}
        with open(f'/proc/{pid}/maps', encoding='utf-8') as file:
            for line in file:
                part = line.split(None, 5)
                if 'x' in part[1] and len(part) > 5 and part[5].startswith('/'):
                    lo, hi = (int(x, 16) for x in part[0].split('-'))
                    self.maps.append((lo, hi, int(part[2], 16), part[5].strip()))

    def load(self, path):
        if path not in self.heads:
            _, out, _ = common.run(['readelf', '-lW', path])
            rows = [line.split() for line in out.splitlines() if line.split()[:1] == ['LOAD']]
            self.heads[path] = [(int(r[1], 16), int(r[2], 16), int(r[4], 16)) for r in rows]
        return self.heads[path]

    def link_time(self, pc):
        for lo, hi, off, path in self.maps:
            if lo <= pc < hi:
                at = pc - lo + off
                for file_off, vaddr, size in self.load(path):
                    if file_off <= at < file_off + size:
                        return path, at - file_off + vaddr
        return None, pc


def by_gdb(pid, folder, files):
    script = os.path.join(folder, 'stacks.gdb.py')
    with open(script, 'w', encoding='ascii') as file:
        file.write(GDB)
    _, out, _ = common.run(
        ['gdb', '-nx', '-batch', '-p', str(pid), '-x', script], 600,
        env={**os.environ, 'DEBUGINFOD_URLS': ''})
    rows = [
        list(map(int,
                 line.split()[1:])) for line in out.splitlines() if line.startswith('STACK ')
    ]
    return {r[0]: [files.link_time(pc) for pc in r[1:]] for r in rows if r[0] != pid}


def by_stack(pid):
    _, out, _ = common.run([common.CAIRN, 'stack', str(pid), '--json'], 600)
    rows = [o for o in common.json_lines(out) if 'frames' in o and o['tid'] != pid]
    return {o['tid']: tuple((f['path'], int(f['vaddr'], 16)) for f in o['frames']) for o in rows}


# ---- the profile ----

def begin_profile(pid, out):
    log = open(out + '.log', 'w', encoding='utf-8')   # pylint: disable=consider-using-with
    return subprocess.Popen(
        [common.CAIRN, 'profile', '--off-cpu', '-p',
         str(pid), '-o', out, '--duration', '900s'], stdin=subprocess.DEVNULL, stdout=log,
        stderr=log)


def end_profile(process):
    process.send_signal(signal.SIGINT)
    try:
        return process.wait(300)
    except subprocess.TimeoutExpired:
        process.kill()
        return None


def stacks_of(path):
    """{thread: its stacks}, of whole ones."""
    found = collections.defaultdict(set)
    with open(path, encoding='utf-8') as file:
        for o in map(json.loads, file):
            if 'stack' not in o or 'end' in o['labels']:
                continue
            user = [f for f in o['stack'] if f.get('code') != 'kernel' and not f.get('inlined')]
            found[int(o['labels']['tid'])].add(
                tuple((f.get('module'), int(f['address'], 16)) for f in user))
    return found


def as_calls(stack):
    """Callers by the byte before their return address."""
    return tuple((path, at - (i > 0)) for i, (path, at) in enumerate(stack))


def check(folder, args):
    path, out = program(folder, args.seed), os.path.join(folder, 'p.json')
    with subprocess.Popen([path, str(args.threads), str(args.rounds + 1)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        try:
            process.stdout.readline()
            files, expected, by_own = Files(process.pid), [], []
            blocked = wait_blocked(process.pid, args.threads)
            profile = begin_profile(process.pid, out)
            time.sleep(3)
            for _ in range(args.rounds):
                process.stdin.write(b'w')
                process.stdin.flush()
                blocked = blocked and wait_blocked(process.pid, args.threads)
                expected.append(by_gdb(process.pid, folder, files))
                by_own.append(by_stack(process.pid))
            process.stdin.write(b'w')
            process.stdin.flush()
            wait_blocked(process.pid, args.threads)
            code = end_profile(profile)
        finally:
            process.kill()
    if not common.claim('every thread blocks in every round', blocked) or not common.claim(
            f'the profile ends by itself ({code})', code == 0):
        with open(out + '.log', encoding='utf-8') as file:
            print('# ' + file.read()[-500:].replace('\n', '\n# '))
        return
    compare(stacks_of(out), expected, by_own, args)


def compare(found, expected, by_own, args):
    n = same = other = 0
    whole = collections.defaultdict(set)
    for gdb, own in zip(expected, by_own):
        for tid, stack in gdb.items():
            n += 1
            whole[tid].add(as_calls(stack))
            same += as_calls(stack) in found[tid]
            if as_calls(stack) not in found[tid] and n - same < 3:
                print(f'# {tid}: gdb {[hex(a) for _, a in as_calls(stack)][:60]}')
                for one in found[tid]:
                    print(f'#   profile {[hex(a) for _, a in one][:60]}')
            if own.get(tid) != as_calls(stack):
                other += 1
                if other < 3:
                    print(f'# {tid}: gdb {as_calls(stack)}\n#   stack {own.get(tid)}')
    common.claim(f'gdb unwinds {n} stacks of {args.threads} threads in {args.rounds} rounds',
                 n == args.threads * args.rounds)
    common.claim(
        f'the stacks differ: {sum(map(len, whole.values()))} of {n}, {len(set().union(*whole.values()))} of all threads',
        sum(map(len, whole.values())) == n)
    common.claim(f'the profile has each of them, frame for frame ({same} of {n})', same == n)
    common.claim(f'cairn stack shows the same ({n - other} of {n})', not other)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--threads', type=int, default=200)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seed', type=int, default=1)
    args = parser.parse_args()
    if os.geteuid() != 0 or common.have('gdb', 'readelf'):
        common.skip('profile_blocked', 'needs root and gdb')
        common.finish()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory() as folder:
        check(folder, args)
    common.finish()


if __name__ == '__main__':
    main()
