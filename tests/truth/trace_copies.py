#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""$duration of the inlined copies of generated programs, against what the programs log.

    trace_copies.py [SEED...]     ten programs unless told otherwise, each by GCC and Clang, -O1 to -O3

Every call has a number. A program notes how many times it had read the clock at the first and at
the last statement of each call. So the readings around the call and in it are bounds of its
duration. Calls are left by longjmp(), also out of a signal's handler; they are in loops, in
conditions, in each other, and their functions around them recurse.
"""
import collections
import os
import random
import re
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import common  # noqa: E402

SEEDS = range(1, 11)
LEVELS = ['-O1', '-O2', '-O3']
CALLS = 3000
FUNCTIONS = CONTAINERS = 10

HEAD = r"""
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
enum { MAX = 400000, READS = 4000000, POINTS = 8, DEPTH = 5 };
struct call { int function; volatile long first, last; };
static struct call calls[MAX];
static uint64_t reads[READS];
static volatile long n_reads, n_calls = 1;
static jmp_buf points[POINTS];
static volatile int n_points;
static volatile long sink;
static uint64_t seed = 88172645463325252ull;
static int depth;
#define NO __attribute__((noinline, noclone))
#define IN static inline __attribute__((always_inline))
static NO void tick(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	reads[n_reads] = t.tv_sec * 1000000000ull + t.tv_nsec;
	if (++n_reads == READS)
		abort();
}
static NO unsigned draw(unsigned n)
{
	seed ^= seed << 13; seed ^= seed >> 7; seed ^= seed << 17;
	return (seed >> 33) % n;
}
static NO long next(int function)
{
	long id = n_calls++;
	if (id >= MAX)
		abort();
	calls[id].function = function;
	tick();
	return id;
}
static NO void leave(int how)
{
	if (n_points && !draw(how)) {
		n_points = draw(n_points);
		longjmp(points[n_points], 1);
	}
}
static NO void on_signal(int n) { tick(); leave(3); (void)n; }
static NO void fatal(void) { exit(3); }
#define FIRST calls[id].first = n_reads
#define LAST calls[id].last = n_reads
"""

SWITCH = ('switch (n & 7) { case 0: sink = 5; break; case 1: tick(); break; case 2: sink += n; break; '
          'case 3: n *= 3; break; case 4: LAST; return 4; case 5: sink -= n; break; '
          'default: tick(); sink++; }')
STATEMENTS = [
    'for (int i = 0; i < (n & 7); i++) sink += i * n;',
    'if (n & 1) { LAST; return sink + n; }',
    'tick();',
    'if (n == 0x7654321) fatal();',
    'if (n % 3 == 0) tick(); else sink ^= n;',
    'leave(20);',
    SWITCH,
    'while (n > 10) { sink = n; n /= 3; }',
    'if (!(n & 15)) raise(SIGUSR1);',
    'sink = n * 7;',
]
MAIN = r"""
int main(int argc, char **argv)
{
	long wanted = atol(argv[2]);
	struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_NODEFER};
	sigaction(SIGUSR1, &a, 0);
	tick();
	while (n_calls < wanted && n_reads < READS - 100000) {
		if (setjmp(points[0]))
			tick();
		n_points = 1;
		depth = 0;
		containers[draw(sizeof(containers) / sizeof(containers[0]))](draw(100));
	}
	tick();
	FILE *out = fopen(argv[1], "w");
	fprintf(out, "[");
	for (long i = 0; i < n_reads; i++)
		fprintf(out, "%s%lu", i ? "," : "", reads[i]);
	fprintf(out, "]\n");
	for (long i = 1; i < n_calls; i++)
		fprintf(out, "[%ld,%d,%ld,%ld]\n", i, calls[i].function, calls[i].first, calls[i].last);
	return fclose(out);
}
"""


def statement(r, k):
    """Of an inline function; it may inline those before it."""
    kind = r.randrange(len(STATEMENTS) + 2)
    if kind == len(STATEMENTS):
        return f'if (depth < DEPTH) n += c{r.randrange(CONTAINERS)}(n);'
    if kind > len(STATEMENTS):
        callee = r.randrange(k) if k else None
        return 'sink++;' if callee is None else f'n += f{callee}(next({callee}), n + 1);'
    return STATEMENTS[kind]


def function(r, k):
    body = '\n\t'.join(statement(r, k) for _ in range(r.randint(1, 3)))
    last = 'LAST;\n\ttick();\n\tLAST;\n\treturn n;' if r.random() < .3 else (
        f'LAST;\n\treturn {r.choice(["n", "n * 3", "sink", "7"])};')
    return f'IN long f{k}(long id, long n)\n{{\n\tFIRST;\n\t{body}\n\t{last}\n}}\n'


def call(r):
    k = r.randrange(FUNCTIONS)
    argument = r.choice(['n', 'n + 1', 'r', 'n ^ 5', '3', 'sink'])
    return f'f{k}(next({k}), {argument})'


def use(r, level):
    """A statement of a function that has copies; @level more may be in it."""
    kind = r.randrange(8 if level else 7)
    if kind == 7:
        return f'if (draw(3)) {{ {use(r, level - 1)} }} else {{ {use(r, level - 1)} }}'
    return [
        f'r += {call(r)};',
        f'if (draw(2)) r += {call(r)};',
        f'for (int i = draw(4); i > 0; i--) r ^= {call(r)};',
        f'if (n & 1) {{ {call(r)}; }} else {{ {call(r)}; tick(); }}',
        f'while (draw(3)) {{ if (r & 1) r += {call(r)}; r++; {use(r, level - 1) if level else ""} }}',
        f'if (r & 2) return {call(r)};',
        f'{call(r)};',
    ][kind]


SETJMP = """volatile int was = n_points, deep = depth;
	if (n_points < POINTS) { n_points = was + 1; if (setjmp(points[was])) { depth = deep; tick(); } }
	"""


def container(r, k):
    catches = r.random() < .15
    uses = '\n\t'.join(use(r, 1) for _ in range(r.randint(1, 3)))
    if catches:
        uses = SETJMP + uses.replace('return', 'r +=') + '\n\tn_points = was;'
    qualifier = 'volatile ' if catches else ''
    tick = 'tick();' if r.random() < .3 else ''
    return (f'static NO long c{k}(long n)\n{{\n\t{qualifier}long r = n;\n\tdepth++;\n\t{uses}\n'
            f'\tdepth--;\n\t{tick}\n\treturn r;\n}}\n')


def source(seed):
    r = random.Random(seed)
    names = ', '.join(f'c{k}' for k in range(CONTAINERS))
    return HEAD + ''.join(
        [f'static long c{k}(long n);\n' for k in range(CONTAINERS)] +
        [function(r, k) for k in range(FUNCTIONS)] + [container(r, k) for k in range(CONTAINERS)] +
        [f'static long (*const containers[])(long) = {{{names}}};\n', MAIN])


class Tally:

    def __init__(self):
        self.right = self.wrong = self.calls = 0
        self.missing = collections.Counter()

    def add(self, build, event, bounds, seen):
        """@bounds  by number: function, least and largest duration."""
        duration, number = event['args']['$duration'], event['args']['id']
        if isinstance(duration, dict):
            self.missing[re.sub(r',? at 0x\w+', '', duration['unavailable'])] += 1
            return
        function_, least, largest = bounds[number]
        is_right = (event['function'] == f'f{function_}' and number not in seen
                    and least <= duration <= largest)
        seen.add(number)
        self.right += is_right
        self.wrong += not is_right
        if not is_right:
            print(f'    {build}: {event}: {least} to {largest} ns')


def read_log(path):
    with open(path, encoding='utf-8') as file:
        reads, *calls = common.json_lines(file.read())
    bounds = {}
    for number, function_, first, last in calls:
        least = reads[last - 1] - reads[first] if last > first else 0
        largest = reads[last] - reads[first - 1] if 0 < last < len(reads) else 0
        bounds[number] = function_, least, largest
    return bounds


def check(build, path, tally):
    log = path + '.log'
    _, out, err = common.run([
        common.CAIRN, 'trace', '--no-cache', '--best-effort', '--max-slowdown', 'off',
        '--assume-unmodified', '--json', '--ring', '65536', '-c', f'{path} {log} {CALLS}',
        'f?(id, $duration)'
    ], timeout=120)
    *events, summary = common.json_lines(out)
    if 'lost' not in summary or summary['lost'] or summary['missed']:
        raise RuntimeError(f'{build}: {err}')
    bounds, seen = read_log(log), set()
    tally.calls += len(bounds)
    for event in events:
        tally.add(build, event, bounds, seen)


def main():
    seeds = [int(seed) for seed in sys.argv[1:]] or SEEDS
    reason = common.may_trace()
    if reason:
        common.skip('trace_copies', reason)
        common.finish()
    totals = {}
    with tempfile.TemporaryDirectory(prefix='cairn-trace-copies-') as folder:
        for seed in seeds:
            text = os.path.join(folder, f'p{seed}.c')
            with open(text, 'w', encoding='utf-8') as file:
                file.write(source(seed))
            for compiler in filter(shutil.which, ('gcc', 'clang')):
                for level in LEVELS:
                    path = common.compile_c([text], os.path.join(folder, f'p{seed}'),
                                            ['-g', '-w', level], compiler)
                    check(f'seed {seed} {compiler} {level}', path,
                          totals.setdefault((compiler, level), Tally()))
    for (compiler, level), t in totals.items():
        print(f'    {compiler} {level}: {t.calls} calls, {t.right} right, {t.wrong} wrong; ' +
              'not available: ' + ', '.join(f'{why} {n}' for why, n in t.missing.most_common()))
        common.claim(f'trace_copies: {compiler} {level}: no duration is wrong',
                     t.wrong == 0 and t.right > t.calls // 3)
    common.finish()


if __name__ == '__main__':
    main()
