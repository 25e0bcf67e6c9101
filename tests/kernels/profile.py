#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn profile in kernels that QEMU boots: one program for all of them, and whole stacks.

Kernels: those of scripts/kernels.sh, and the lab's ($CAIRN_LAB/kernels/7.x). They are emulated:
what is counted is how stacks end, and what is in them; times mean nothing. In each guest a
recursion of known depth, a JIT with a new generation of its code every few milliseconds, threads
that wait, calls of an inlined function and tracepoints are sampled; the program that runs is this
build's. The same guests run traces of a program (truth/user_traces.py).
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'truth'))
import common  # noqa: E402
import user_traces  # noqa: E402
from guests import add  # noqa: E402

BUILD = os.path.dirname(os.path.abspath(common.CAIRN))
DEPTH = 30
# Its stack of 40 levels is dropped again and again; not so often that an emulated walk is too slow.
LATE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'samples', 'dropped_stack.c')
LATE_DEPTH = 40
RECURSION = f"""
volatile unsigned long sink;
static void spin(unsigned long n) {{ for (unsigned long i = 0; i < n; i++) sink += i; }}
__attribute__((noinline)) int descend(int depth, unsigned long n)
{{
	if (!depth) {{ spin(n); return 1; }}
	int r = descend(depth - 1, n);
	__asm__ volatile("" : "+r"(r));
	return r + 1;
}}
int main(void) {{ for (;;) descend({DEPTH} - 1, 1000000); }}
"""
# An inlined function that is called from two others, each so often, with known numbers.
N_CALLS = 200
CALLS = f"""
#include <sys/syscall.h>
#include <unistd.h>
volatile unsigned long sum;
static inline __attribute__((always_inline)) void take(unsigned long n) {{ sum += n; }}
__attribute__((noinline)) void first(unsigned long n) {{ take(n); __asm__ volatile(""); }}
__attribute__((noinline)) void second(unsigned long n) {{ take(n * 3); __asm__ volatile(""); }}
__attribute__((noinline)) void ask(void) {{ syscall(SYS_getpgid, 0); __asm__ volatile(""); }}
int main(void) {{ for (unsigned long i = 1; i <= {N_CALLS}; i++) {{ first(i); second(i); ask(); }} return 0; }}
"""
INIT = """#!/bin/busybox sh
export PATH=/bin HOME=/tmp
/bin/busybox mkdir -p /proc /sys /dev /tmp
/bin/busybox mount -t proc none /proc
/bin/busybox mount -t sysfs none /sys
/bin/busybox mount -t devtmpfs none /dev
/bin/busybox mount -t tmpfs none /tmp
echo "kernel $(/bin/busybox uname -r)"
run()
{
	cairn profile "$@" --no-cache -o /tmp/out.json >/tmp/text 2>&1
	echo "begin $name $?"
	/bin/busybox cat /tmp/out.json
	echo "end"
	/bin/busybox head -8 /tmp/text
	/bin/busybox rm -f /tmp/out.json
}
recursion & pid=$!
/bin/busybox sleep 1
name=recursion run -p $pid -F 99 --duration 4s
/bin/busybox kill $pid
jit 60 & pid=$!
/bin/busybox sleep 1
name=jit run -p $pid -F 99 --duration 4s
/bin/busybox kill $pid
name=late run -c 'late 3000 100' -F 99
name=off-cpu run --off-cpu -a --duration 3s
name=calls run -c calls --event 'take(n:bytes) if n'
name=by-name run -c calls --event raw_syscalls:sys_enter
/bin/busybox mount -t tracefs none /sys/kernel/tracing
name=tracepoint run -c calls --event syscalls:sys_enter_getpgid
""" + user_traces.script() + '/bin/busybox poweroff -f\n'


def make_guest(folder):
    os.makedirs(os.path.join(folder, 'bin'))
    for name, text in (('recursion', RECURSION), ('calls', CALLS)):
        source = os.path.join(folder, name + '.c')
        with open(source, 'w', encoding='ascii') as file:
            file.write(text)
        subprocess.run(
            ['gcc', '-g', '-O2', '-fomit-frame-pointer', source, '-o',
             os.path.join(folder, name)], check=True)
        add(folder, os.path.join(folder, name), name)
    subprocess.run(['gcc', '-g', '-O2', '-pthread', LATE, '-o', os.path.join(folder, 'late')],
                   check=True)
    add(folder, os.path.join(folder, 'late'), 'late')
    subprocess.run(['strip', '-o', os.path.join(folder, 'cairn'), common.CAIRN], check=True)
    add(folder, os.path.join(folder, 'cairn'), 'cairn')
    add(folder, os.path.join(BUILD, 'examples', 'jit'), 'jit')
    traced = user_traces.build(folder)
    add(folder, traced, 'traced')
    shutil.copy(shutil.which('busybox') or '/bin/busybox', os.path.join(folder, 'bin', 'busybox'))
    with open(os.path.join(folder, 'init'), 'w', encoding='ascii') as file:
        file.write(INIT)
    os.chmod(os.path.join(folder, 'init'), 0o755)
    return user_traces.of_host(traced)


def boot(kernel, folder):
    with tempfile.NamedTemporaryFile(suffix='.cpio.gz') as archive:
        subprocess.run(f'find . | cpio -o -H newc 2>/dev/null | gzip -1 >{archive.name}',
                       shell=True, cwd=folder, check=True)
        # With a thread of QEMU's for each processor, a signal may end programs with threads and
        # uprobes (docs/findings/qemu-threads-run-stale-steps.md).
        r = subprocess.run([
            'qemu-system-x86_64', '-accel', 'tcg,thread=single', '-cpu', 'max', '-smp', '2', '-m',
            '1536', '-nographic', '-no-reboot', '-kernel', kernel, '-initrd', archive.name,
            '-append', 'console=ttyS0 quiet panic=-1 noapic no_timer_check'
        ], stdin=subprocess.DEVNULL, capture_output=True, timeout=1200, check=False)
    return r.stdout.decode('utf-8', 'replace').replace('\r', '')


def runs(text):
    """name -> (exit status, stacks) of each run in the guest."""
    found = {}
    for name, status, lines in re.findall(r'^begin (\S+) (\d+)\n(.*?)^end$', text, re.M | re.S):
        stacks = [json.loads(line) for line in lines.splitlines() if line.startswith('{')]
        found[name] = int(status), [s for s in stacks if 'stack' in s]
    return found


def samples(stacks, wanted=lambda s: True):
    return sum(s['values']['samples'] for s in stacks if wanted(s))


def names(stack):
    return [frame.get('function') or '' for frame in stack['stack']]


def is_complete(stack):
    return not names(stack)[-1].startswith('[cut: ')


def check_recursion(version, status, stacks):
    whole = [s for s in stacks if is_complete(s)]
    common.claim(
        f'{version}: the recursion is sampled ({samples(stacks)} samples, {samples(whole)} complete, exit {status})',
        status == 0 and samples(whole) > 50)
    leaves = [s for s in whole if 'spin' in names(s)]
    wrong = [s for s in leaves if names(s).count('descend') != DEPTH]
    common.claim(
        f'{version}: each complete stack of the leaf has {DEPTH} levels ({samples(leaves)} samples, {samples(wrong)} differ)',
        leaves and not wrong)


def check_jit(version, status, stacks):
    """Its functions call one another: 64 bytes apart, from the last one to the first."""
    whole = [s for s in stacks if is_complete(s) and 'call_back' in names(s)]
    wrong = []
    for s in whole:
        made = [
            int(frame['address'], 16) & 0x1ff for frame in s['stack'] if frame.get('code') == 'jit'
        ]
        if made != [0x15 + 64 * i for i in range(8)] or 'main' not in names(s):
            wrong.append(s)
    n, n_whole = samples(stacks), samples(stacks, is_complete)
    common.claim(
        f'{version}: stacks lead through code of a JIT ({n} samples, {n_whole} complete, exit {status})',
        status == 0 and n_whole > 50)
    common.claim(
        f'{version}: no stack through its code that never was ({samples(whole)} samples, {samples(wrong)} differ)',
        whole and not wrong)


def check_late(version, status, stacks):
    """From 6.18 on the task reads the pages; before, such stacks are cut."""
    burned = [s for s in stacks if 'burn' in names(s)]
    whole = [s for s in burned if names(s).count('descend') == LATE_DEPTH]
    n, n_whole = samples(burned), samples(whole)
    major, minor = (int(word) for word in version.split('-')[0].split('.')[:2])
    common.claim(
        f'{version}: a stack that is not in memory ({n} samples, {n_whole} whole, exit {status})',
        status == 0 and n > 50 and (n_whole > 0.95 * n or (major, minor) < (6, 18)))
    common.claim(f'{version}: none is deeper than the program',
                 not any(names(s).count('descend') > LATE_DEPTH for s in burned))


def check_off_cpu(version, status, stacks):
    common.claim(
        f'{version}: waiting threads are sampled ({samples(stacks)} samples, exit {status})',
        status == 0 and samples(stacks) > 0)
    common.claim(f'{version}: no stack begins in the program that takes it',
                 not any('bpf' in n for s in stacks for n in names(s)[:1]))


def check_calls(version, status, stacks):
    """All that were made, and what they weigh."""
    sums = {}
    for s in stacks:
        at = names(s).index('main') if 'main' in names(s) else 0
        key = ';'.join(reversed(names(s)[:at + 1]))
        hits, size = sums.get(key, (0, 0))
        sums[key] = hits + s['values']['hits'], size + s['values']['n']
    total = N_CALLS * (N_CALLS + 1) // 2
    common.claim(
        f'{version}: each call of an inlined function is a sample with its stack and its number ({sums}, exit {status})',
        status == 0
        and sums == {'main;first;take': (N_CALLS, total), 'main;second;take': (N_CALLS, 3 * total)})


def check_events(version, name, status, stacks):
    n = sum(sum(s['values'].values()) for s in stacks if 'ask' in names(s) and 'main' in names(s))
    common.claim(
        f'{version}: a tracepoint has each event with its stack ({name}: {n} events, exit {status})',
        status == 0 and n == N_CALLS)


def main():
    kernels = sorted(glob.glob(os.path.expanduser('~/.cache/cairn-kernels/*/vmlinuz')))
    kernels += glob.glob(
        os.path.join(
            os.environ.get('CAIRN_LAB') or os.path.expanduser('~/.cache/cairn-lab'), 'kernels',
            '7.x', 'vmlinuz'))
    if not kernels or common.have('qemu-system-x86_64', 'cpio'):
        common.skip('profiles in other kernels', 'no kernel, or no QEMU: '
                                                 'scripts/kernels.sh fetches them')
        common.finish()
    with tempfile.TemporaryDirectory() as folder:
        expected = make_guest(folder)
        for kernel in kernels:
            text = boot(kernel, folder)
            version = (re.findall(r'^(?:.*)kernel (\d\S*)$', text, re.M) or ['?'])[0]
            found = runs(text)
            for name, check in (
                ('recursion', check_recursion), ('jit', check_jit), ('late', check_late),
                ('off-cpu', check_off_cpu),
                ('calls', check_calls),
                ('by-name',
                 lambda version, *run: check_events(version, 'raw_syscalls:sys_enter', *run)),
                ('tracepoint',
                 lambda version, *run: check_events(version, 'syscalls:sys_enter_getpgid', *run))):
                if name in found:
                    check(version, *found[name])
                else:
                    common.not_ok(f'{kernel}: no run of {name}\n{text[-2000:]}')
            if expected:
                user_traces.check(version, text, expected)
    common.finish()


if __name__ == '__main__':
    main()
