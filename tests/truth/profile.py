#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Holds the stacks of `cairn profile` against what is known of the programs that are sampled.

    profile.py [--seconds N] [--rate HZ] [--stacks N] [--wait FACTOR] [--name NAME]

    --stacks 1000000 --rate 19999: so many stacks of each program, in some minutes; the default is a
    short run of the same

    shares    a program whose functions burn known shares, by recursion, inlined leaves, tail calls, signal handlers, threads and a library
              that is loaded at run time: each share within 3 standard errors, and no stack that its call graph does not have
    jit       code that is freed and made again every few milliseconds: no stack that never was
"""
import argparse
import collections
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, 'profile_of_programs')]
import code_of_files as code   # noqa: E402
import common   # noqa: E402

SHARES = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
volatile unsigned long sink;
static unsigned long unit;
/* Each multiplication waits for the one before: so all copies of the loop take the same time. */
static inline __attribute__((always_inline)) void burn(unsigned long n)
{
	unsigned long x = n;
	for (unsigned long i = 0; i < n; i++) {
		x *= 6364136223846793005;
		__asm__ volatile("" : "+r"(x));
	}
	sink = x;
}
static double used(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
/* A function's time: a percent more or less than its weight, by where its loop happens to be. */
#define LEAF(name, weight) static double in_##name; \
	__attribute__((noinline)) void name(void) \
	{ \
		double begin = used(); \
		burn(weight * unit); \
		in_##name += used() - begin; \
		__asm__ volatile(""); \
	}
LEAF(by_recursion, 4)
LEAF(by_tail_call, 3)
LEAF(by_signal, 2)
__attribute__((noinline)) void recurse(int n) { if (n) recurse(n - 1); else by_recursion(); __asm__ volatile(""); }
__attribute__((noinline)) void jumps(void) { by_tail_call(); }
__attribute__((noinline)) void on_signal(int sig) { by_signal(); __asm__ volatile(""); }
static double (*loaded)(unsigned long);
static double in_by_library;
__attribute__((noinline)) void round_of_all(void)
{
	recurse(9);
	jumps();
	__asm__ volatile("");
	raise(SIGUSR1);
	in_by_library += loaded(unit);
	__asm__ volatile("");
}
static double seconds;
static void *run(void *arg)
{
	unsigned int random = 1;
	for (double begin = used(); used() - begin < seconds;) {
		random = random * 1103515245u + 12345u;
		unit = 30000 + (random >> 8) % 300000;
		round_of_all();
	}
	return arg;
}
int main(int argc, char **argv)
{
	pthread_t thread;
	seconds = atof(argv[2]);
	signal(SIGUSR1, on_signal);
	loaded = (double (*)(unsigned long))dlsym(dlopen(argv[1], RTLD_NOW), "by_library");
	pthread_create(&thread, NULL, run, NULL);
	pthread_join(thread, NULL);
	FILE *file = fopen(argv[3], "w");
	fprintf(file, "{\"by_recursion\": %.6f, \"by_tail_call\": %.6f, ", in_by_recursion, in_by_tail_call);
	fprintf(file, "\"by_signal\": %.6f, \"by_library\": %.6f}", in_by_signal, in_by_library);
	fclose(file);
	return 0;
}
"""
LIBRARY = r"""
#include <time.h>
static volatile unsigned long sink;
static double used(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
__attribute__((noinline)) double by_library(unsigned long unit)
{
	double begin = used();
	unsigned long x = unit;
	for (unsigned long i = 0; i < unit; i++) {
		x *= 6364136223846793005;
		__asm__ volatile("" : "+r"(x));
	}
	sink = x;
	__asm__ volatile("");
	return used() - begin;
}
"""
WEIGHTS = {'by_recursion': 4, 'by_tail_call': 3, 'by_signal': 2, 'by_library': 1}
START = ['round_of_all', 'run']
# The callers of each leaf, the innermost first; the C library's own frames are left out.
CALLERS = {
    'by_recursion': ['recurse'] * 10 + START, 'by_tail_call': START, 'by_signal':
    ['on_signal'] + START, 'by_library': START
}
OURS = set(WEIGHTS) | {'recurse', 'jumps', 'on_signal', 'round_of_all', 'run', 'main'}


def profile(words, folder, name, rate=999, seconds=600):
    """(summary, stacks) of a run; None: it failed."""
    out = os.path.join(folder, name + '.json')
    code, text, err = common.run(
        [common.CAIRN, 'profile', '-F',
         str(rate), '--json', '-o', out, *words], seconds)
    if code != 0:
        print(f'# {name}: exit {code}: {err[-300:]}')
        return None
    s = next(json.loads(line) for line in text.splitlines() if '"summary"' in line)
    with open(out, encoding='utf-8') as file:
        return s, [o for o in map(json.loads, file) if 'stack' in o]


def names(stack):
    return [f.get('function') or '' for f in stack['stack']]


# ---- known shares ----

def judge_pairs(stacks):
    """All pairs of caller and callee by what the code says, and those that it contradicts."""
    files, pairs = code.Files(), collections.Counter()
    for s in stacks:
        frames = [f for f in s['stack'] if 'address' in f]
        for callee, caller in zip(frames, frames[1:]):
            if callee['module'][:1] == caller['module'][:1] == '/':
                pair = tuple((f['module'], int(f['address'], 16)) for f in (caller, callee))
                pairs[pair] += s['values']['samples']
    verdicts, wrong = collections.Counter(), collections.Counter()
    for (caller, callee), n in pairs.items():
        # Also in the middle of it: in the kernel, which is about to go on with what was interrupted.
        if any(files.file(path).is_signal_return(at - n) for path, at in (caller, callee)
               for n in (0, 7, 8)):
            continue
        word = files.judge(caller, callee)
        verdicts[word] += n
        if word.startswith('no '):
            wrong[caller, callee, word] += n
    return verdicts, wrong


def check_shares(folder, seconds, rate, n_stacks):
    program, library = os.path.join(folder, 'shares'), os.path.join(folder, 'library.so')
    for text, path, flags in ((SHARES, program, []), (LIBRARY, library, ['-shared', '-fPIC'])):
        with open(path + '.c', 'w', encoding='ascii') as file:
            file.write(text)
        common.compile_c([path + '.c'], path,
                         ['-O2', '-g', '-fomit-frame-pointer', '-pthread', *flags])
    said = os.path.join(folder, 'said.json')
    command = f'{program} {library} {seconds} {said}'
    found = profile(['-c', command], folder, 'shares', rate, 3600)
    if not common.claim('shares: the program is sampled', found is not None):
        return
    _, stacks = found
    leaves, wrong, n = collections.Counter(), collections.Counter(), 0
    for s in stacks:
        mine = [n for n in names(s) if n in OURS]
        end = s['labels'].get('end', 'complete')
        if not mine or mine[0] not in WEIGHTS:
            continue
        n += s['values']['samples']
        # What a leaf calls to know the time is not in that time.
        innermost = next((f.get('function') for f in s['stack'] if f.get('code') != 'kernel'), '')
        if innermost in ('burn', mine[0]):
            leaves[mine[0]] += s['values']['samples']
        expected = CALLERS[mine[0]]
        if mine[1:] != (expected if end in ('complete', 'assumed') else expected[:len(mine) - 1]):
            wrong[tuple(mine)] += s['values']['samples']
    n_leaves = sum(leaves.values())
    with open(said, encoding='ascii') as file:
        times = json.load(file)
    for leaf, weight in WEIGHTS.items():
        share, truth = leaves[leaf] / max(n_leaves, 1), times[leaf] / sum(times.values())
        common.claim(f'shares: {leaf} takes the time of its weight, about',
                     abs(truth - weight / sum(WEIGHTS.values())) < 0.03)
        error = math.sqrt(truth * (1 - truth) / max(n_leaves, 1))
        common.claim(
            f'shares: {leaf} has {100 * share:.2f} % of {n_leaves} samples, in truth {100 * truth:.2f} % ({(share - truth) / error:+.1f} errors)',
            abs(share - truth) <= 3 * error)
    common.claim(
        f'shares: no stack that the call graph does not have ({sum(wrong.values())} of {n}) {wrong.most_common(2) or ""}',
        not wrong)
    common.claim(f'shares: {n} stacks are compared', n >= n_stacks)
    verdicts, wrong = judge_pairs(stacks)
    count = f'{sum(wrong.values())} of {sum(verdicts.values())} pairs'
    common.claim(
        f'shares: no caller is contradicted by the code ({count}) {wrong.most_common(2) or ""}',
        verdicts and not wrong)


def check_jit(folder, seconds, rate, n_stacks):
    """Functions of examples/jit call one another: 64 bytes apart, from the last one to the first.
    """
    path = os.path.join(os.path.dirname(os.path.abspath(common.CAIRN)), 'examples', 'jit')
    if not os.path.exists(path):
        common.skip('jit', 'examples/jit is not built')
        return
    with subprocess.Popen([path, str(seconds + 60)], stdout=subprocess.DEVNULL) as process:
        time.sleep(1)
        words = ['-p', str(process.pid), '--duration', str(seconds)]
        found = profile(words, folder, 'jit', rate, 3600)
        process.kill()
    if not common.claim('jit: the program is sampled', found is not None):
        return
    n = wrong = whole = 0
    for s in found[1]:
        count = s['values']['samples']
        n += count
        if 'call_back' not in names(s) or s['labels'].get(
                'end', 'complete') not in ('complete', 'assumed'):
            continue
        made = [int(f['address'], 16) & 0x1ff for f in s['stack'] if f.get('code') == 'jit']
        whole += count
        wrong += count * (made != [0x15 + 64 * i for i in range(8)] or 'main' not in names(s))
    common.claim(f'jit: no stack that never was ({wrong} of {whole}; {n} samples)', whole
                 and not wrong)
    common.claim(f'jit: {n} stacks are compared', n >= n_stacks)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--seconds', type=int, default=20)
    parser.add_argument('--rate', type=int, default=0)
    parser.add_argument('--stacks', type=int, default=0)
    # How much longer than its processor time the program with a JIT takes beside others.
    parser.add_argument('--wait', type=float, default=1.2)
    parser.add_argument('--name')
    args = parser.parse_args()
    if os.geteuid() != 0:
        common.skip('profile', 'sampling needs root')
        common.finish()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory() as folder:
        if args.name in (None, 'shares'):
            rate = args.rate or 999
            seconds = max(args.seconds, int(args.stacks * 1.1 / rate))
            check_shares(folder, seconds, rate, args.stacks)
        if args.name in (None, 'jit'):
            rate = args.rate or 4999
            seconds = max(args.seconds, int(args.stacks * args.wait / rate))
            check_jit(folder, seconds, rate, args.stacks)
    common.finish()


if __name__ == '__main__':
    main()
