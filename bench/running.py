#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`cairn sites --running FUNC` from a kernel's sidecar, beside `perf probe -D FUNC`, which reads the
kernel's debug information.

    running.py [FUNC...]      default: a function, one with many inlined copies, and list_add

Kernels: those of tests/truth/guests.py. They do not run: what Cairn reads of a running kernel, its
release, its notes and its symbols, is written into a folder, as its own files would say it, moved
by a slide as with KASLR. Commands run in turn; the median of the wall times is shown, from the
start of the program to its end. The aim is 10 ms.
"""
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'tests', 'truth'))
import common  # noqa: E402
import guests  # noqa: E402

ROUNDS = int(os.environ.get('ROUNDS', '31'))
SLIDE = 0x1400000
FUNCTIONS = sys.argv[1:] or ['vfs_read', 'tcp_ack', 'list_add']


def root_of(vmlinux, folder):
    """A root directory in which that kernel runs."""
    for name in ('proc/sys/kernel', 'sys/kernel'):
        os.makedirs(os.path.join(folder, name))
    with open(os.path.join(folder, 'proc/sys/kernel/osrelease'), 'w', encoding='ascii') as file:
        print('of-a-file', file=file)
    listed = subprocess.run(['nm', '-n', vmlinux], capture_output=True, text=True,
                            check=True).stdout
    with open(os.path.join(folder, 'proc/kallsyms'), 'w', encoding='ascii') as file:
        for line in listed.splitlines():
            at, _, rest = line.partition(' ')
            at = int(at, 16)
            file.write(f'{at + SLIDE if at >> 63 else at:016x} {rest}\n')
    subprocess.run([
        'objcopy', '--dump-section', '.notes=' + os.path.join(folder, 'sys/kernel/notes'), vmlinux,
        os.path.join(folder, 'unused')
    ], check=True)
    return dict(os.environ, CAIRN_KERNEL_ROOT=folder)


def timed(words, env):
    """Milliseconds, and lines of output."""
    before = time.perf_counter()
    out = subprocess.run(words, env=env, capture_output=True, check=True).stdout
    return (time.perf_counter() - before) * 1000, out.count(b'\n')


def measure(function, commands):
    times = {name: [] for name in commands}
    lines = {}
    for i in range(ROUNDS):
        for name, (words, env) in commands.items():
            # The peer takes seconds.
            if name == 'cairn' or i < 3:
                took, lines[name] = timed(words + [function], env)
                times[name].append(took)
    ours = statistics.median(times['cairn'])
    print(f'  {function:24} cairn {ours:8.1f} ms, {lines["cairn"]} lines', end='')
    if 'perf' in commands:
        theirs = statistics.median(times['perf'])
        print(f'; perf probe -D {theirs:8.1f} ms, {lines["perf"]} lines: {theirs / ours:.0f} '
              'times as long', end='')
    print()


def main():
    if not guests.pairs():
        print('no kernel with a vmlinux: scripts/kernels.sh fetches them')
        return 77
    if not shutil.which('perf'):
        print('perf is not installed: scripts/deps.sh --bench installs it')
    for _, vmlinux in guests.pairs():
        with tempfile.TemporaryDirectory() as folder:
            env, made = root_of(vmlinux, folder), os.path.join(folder, 'kernel.cairn')
            subprocess.run([common.CAIRN, 'sidecar', vmlinux, '-o', made], check=True,
                           capture_output=True)
            commands = {
                'cairn': ([
                    common.CAIRN, 'sites', '--running', '--sidecar', made, '--no-cache', '--sites'
                ], env)
            }
            if shutil.which('perf'):
                commands['perf'] = (['perf', 'probe', '-q', '-k', vmlinux, '-D'], None)
            print(vmlinux)
            for function in FUNCTIONS:
                measure(function, commands)
    return 0


if __name__ == '__main__':
    sys.exit(main())
