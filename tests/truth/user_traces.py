# SPDX-License-Identifier: BSD-2-Clause
"""Traces of a program of user space in a guest: what they say has to be what they say here.

tests/kernels/profile.py boots the guests. The program does the same each time, so tables, results
and arguments are the same on each kernel. Of durations only the number of calls is."""
import base64
import collections
import gzip
import json
import os
import re
import subprocess

import common

SOURCE = r"""
#include <pthread.h>
enum { CALLS = 150 };
volatile long sink;
#define NO __attribute__((noinline, noclone))
#define IN static inline __attribute__((always_inline))
IN void mix(long n, const char *name) { sink = n; __asm__ volatile("" : : "r"(n), "r"(name) : "memory"); }
IN long pick(long n)
{
	sink = n;
	switch (n & 7) {
	case 0: sink += 5; break; case 1: sink -= n; break; case 2: sink += n; break;
	case 3: n *= 3; break; case 4: return 4; case 5: sink ^= n; break; default: sink++;
	}
	return n;
}
NO long twice(long n, unsigned short m) { mix(n, "twice"); return 2 * n + m; }
NO long picked(long n) { long r = pick(n); mix(r, "picked"); return r + 1; }
NO int deep(int n)
{
	int r = n ? deep(n - 1) : 0;
	__asm__ volatile("" : "+r"(r));
	return r + 2;
}
static void *work(void *from)
{
	for (long n = (long)from; n < (long)from + CALLS; n++) {
		mix(n % 9 - 4, n & 1 ? "odd" : "even");
		twice(n - 100, (unsigned short)(n % 3));
		picked(n);
	}
	sink = deep(20);
	return from;
}
int main(void)
{
	pthread_t other;
	pthread_create(&other, 0, work, (void *)1000);
	work(0);
	pthread_join(other, 0);
	return 0;
}
"""

ALL = '--count --sum n --avg n --min n --max n --hist n --lhist n,-100,100,10 --quantiles n'
# What is traced, and whether it has a time that no other run has.
COMMANDS = (
    (f'{ALL} --by name mix', False),
    ("--count --by '$caller,name:str' mix", False),
    ("--sum n --max n --by '$comm,n%5' 'mix if n > 3'", False),
    ("--sum '$ret' --min '$ret' --by m twice", False),
    ("--hist '$ret' deep", False),
    ("'twice(n, m, $ret) if $ret > 50'", False),
    ("'deep(n, $ret)' 'mix(n, name)'", False),
    ("--hist '$duration' twice pick", True),
    ("'pick(n, $duration)' 'deep(n, $duration)'", True),
)
WORDS = 'trace --no-cache --no-sidecar --max-slowdown off --ring 4096 --json -c'


def build(folder):
    """The path of the program, which needs nothing there."""
    path = os.path.join(folder, 'traced')
    with open(path + '.c', 'w', encoding='ascii') as file:
        file.write(SOURCE)
    subprocess.run(['gcc', '-O2', '-g', '-static', '-pthread', '-o', path, path + '.c'], check=True)
    return path


def script():
    """For a guest's shell that has the program as /bin/traced."""
    return ''.join(f"""
cairn {WORDS} /bin/traced {words} >/tmp/rows 2>/tmp/said
echo "begin trace-{i} $?"
/bin/busybox gzip -c /tmp/rows | /bin/busybox base64
echo "end trace"
/bin/busybox tail -n 3 /tmp/said
""" for i, (words, _) in enumerate(COMMANDS))


def without_time(value):
    """Of durations what is the same in each run: how many there are, and of what arguments."""
    if isinstance(value, dict):
        return {k: without_time(v) for k, v in value.items() if k != '$duration'}
    return [without_time(v) for v in value] if isinstance(value, list) else value


def facts(text, has_times):
    """Rows and events, in an order of their own: threads alternate as they like."""
    found = []
    for line in common.json_lines(text):
        for one in line['rows'] if 'rows' in line else [line]:
            if 'args' in one:
                one = [one['function'], one['args']]
            elif 'events' in one:
                one = {k: one[k] for k in ('events', 'lost', 'missed', 'unwound') if k in one}
            found.append(json.dumps(without_time(one) if has_times else one, sort_keys=True))
    return sorted(found)


def of_host(path):
    """What each command says here; [] where nothing may be traced."""
    if common.may_trace():
        return []
    return [
        facts(common.run(['/bin/sh', '-c', f'{common.CAIRN} {WORDS} {path} {words}'])[1], has_times)
        for words, has_times in COMMANDS
    ]


def of_guest(text, i):
    found = re.search(f'begin trace-{i} 0\n(.*?)end trace', text, re.S)
    try:
        return found and facts(gzip.decompress(base64.b64decode(found[1])).decode(), COMMANDS[i][1])
    except (ValueError, OSError):
        return None


def check(version, text, expected):
    for i, (words, _) in enumerate(COMMANDS):
        said = of_guest(text, i)
        name = words.split(' --')[0] if len(words) > 60 else words
        ok = said == expected[i] and len(said) > 1
        common.claim(f'{version}: trace {name}: as here ({len(said or [])} rows and events)', ok)
        if not ok:
            print(text[text.find(f'begin trace-{i}'):][:50].splitlines()[:1])
            here, there = collections.Counter(expected[i]), collections.Counter(said or [])
            print('only here:', list((here - there).items())[:8])
            print('only there:', list((there - here).items())[:8])
