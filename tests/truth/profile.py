#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Holds the stacks of `cairn profile` against what is known of the programs that are sampled.

    profile.py [--seconds N] [--name NAME]

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

def check_shares(folder, seconds):
    program, library = os.path.join(folder, 'shares'), os.path.join(folder, 'library.so')
    for text, path, flags in ((SHARES, program, []), (LIBRARY, library, ['-shared', '-fPIC'])):
        with open(path + '.c', 'w', encoding='ascii') as file:
            file.write(text)
        common.compile_c([path + '.c'], path,
                         ['-O2', '-g', '-fomit-frame-pointer', '-pthread', *flags])
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
        common.claim(
            f'shares: {leaf} has {100 * share:.2f} % of {n} samples, in truth {100 * truth:.0f} % ({(share - truth) / error:+.1f} errors)',
            abs(share - truth) <= 3 * error)
    common.claim(
        f'shares: no stack that the call graph does not have ({sum(wrong.values())} of {n}) {wrong.most_common(2) or ""}',
        not wrong)


def check_jit(folder, seconds):
    """Functions of examples/jit call one another: 64 bytes apart, from the last one to the first.
    """
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
        if 'call_back' not in names(s) or s['labels'].get(
                'end', 'complete') not in ('complete', 'assumed'):
            continue
        made = [int(f['address'], 16) & 0x1ff for f in s['stack'] if f.get('code') == 'jit']
        whole += count
        wrong += count * (made != [0x15 + 64 * i for i in range(8)] or 'main' not in names(s))
    common.claim(f'jit: no stack that never was ({wrong} of {whole}; {n} samples)', whole
                 and not wrong)


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
    common.finish()


if __name__ == '__main__':
    main()
