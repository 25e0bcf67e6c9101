# SPDX-License-Identifier: BSD-2-Clause
"""The ways a generated program is built, and its call log.

A configuration is a name, a compiler and its flags. CORE is what every seed is tried with; of EXTRA
each seed takes two in turn, so that a run over many seeds has seen them all.
"""
import json
import os
import subprocess

LLD_ICF = ['-ffunction-sections', '-fuse-ld=lld', '-Wl,--icf=all']
GOLD_ICF = ['-ffunction-sections', '-fuse-ld=gold', '-Wl,--icf=all']

CORE = [(f'{cc}{o}', cc, [o, '-g'])
        for cc in ('gcc', 'clang')
        for o in ('-O1', '-O2', '-O3', '-Os')]
EXTRA = [('gcc-O2-flto', 'gcc', ['-O2', '-g', '-flto']),
         ('clang-O2-flto', 'clang', ['-O2', '-g', '-flto', '-fuse-ld=lld']),
         ('gcc-O2-dwarf4', 'gcc', ['-O2', '-g', '-gdwarf-4']),
         ('clang-O2-dwarf4', 'clang', ['-O2', '-g', '-gdwarf-4']),
         ('gcc-O2-icf', 'gcc', ['-O2', '-g'] + GOLD_ICF),
         ('clang-O2-icf', 'clang', ['-O2', '-g'] + LLD_ICF),
         ('gcc-O3-flto', 'gcc', ['-O3', '-g', '-flto']),
         ('clang-O3-flto', 'clang', ['-O3', '-g', '-flto', '-fuse-ld=lld']),
         ('gcc-O2-no-pie', 'gcc', ['-O2', '-g', '-no-pie', '-fno-pie']),
         ('clang-O2-no-pie', 'clang', ['-O2', '-g', '-no-pie', '-fno-pie']),
         ('gcc-Og', 'gcc', ['-Og', '-g']),
         ('gcc-O2-frame-pointer', 'gcc', ['-O2', '-g', '-fno-omit-frame-pointer']),
         ('gcc-O2-native', 'gcc', ['-O3', '-g', '-march=native', '-funroll-loops']),
         ('clang-O3-dwarf4-fp', 'clang', ['-O3', '-g', '-gdwarf-4', '-fno-omit-frame-pointer']),
         ('gcc-O2-cf-protection', 'gcc',
          ['-O2', '-g', '-fcf-protection=full', '-fpatchable-function-entry=5']),
         ('gcc-O2-pg-dwarf5', 'gcc', ['-O2', '-g', '-gdwarf-5', '-fno-inline-small-functions']),]


def configs_for(seed):
    first = (2 * seed) % len(EXTRA)
    return CORE + EXTRA[first:first + 2]


def by_name(name):
    return next(c for c in CORE + EXTRA if c[0] == name)


def compile_program(folder, output, compiler, flags):
    cmd = [compiler, *flags, '-w', 'a.c', 'b.c', '-o', output]
    done = subprocess.run(cmd, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                          check=False, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(f'{" ".join(cmd)}: {done.stderr.decode("utf-8", "replace")[-1500:]}')


def run_program(folder, program, *args):
    done = subprocess.run([os.path.join(folder, program), *args], cwd=folder,
                          stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60)
    if done.returncode != 0:
        raise RuntimeError(f'{program}: exit code {done.returncode}')


def read_report(path):
    """(checksum line, {object: address})"""
    with open(path, encoding='utf-8') as file:
        lines = file.read().splitlines()
    return lines[0], {l.split()[1]: int(l.split()[2], 16) for l in lines[1:]}


def call_log(folder):
    """Builds at -O0 with the log, runs, returns (checksum, calls in order)."""
    compile_program(folder, 'p.log', 'gcc', ['-O0', '-g', '-DLOG'])
    run_program(folder, 'p.log', 'log.report', 'log.calls')
    checksum, _ = read_report(os.path.join(folder, 'log.report'))
    with open(os.path.join(folder, 'log.calls'), encoding='utf-8') as file:
        return checksum, [json.loads(line) for line in file]
