#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Arguments that BPF programs read with cairn/loc.bpf.h, against the calls that a program logs.

	loc.py [FUNCTIONS [CLANG...]]

Programs of gcc and clang at two levels; BPF objects of each CLANG (clang). HOLDER is the loader; one
that is linked with another libbpf may be given. Needs root.
"""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, '..', '..')
sys.path.append(os.path.join(HERE, '..', 'live'))
import loc_calls  # noqa: E402

BUILD = os.environ.get('BUILD', os.path.join(SOURCE, 'build'))
HOLDER = os.environ.get('HOLDER',
                        os.path.join(BUILD, 'tests', 'live', 'loc_programs'))
# Compilers, and what the parameters are: without "const" it is not known of Clang's locations
# whether the function has changed a parameter already.
TARGETS = ((('gcc', '-O2'), ''), (('gcc', '-O1'), ''), (('clang', '-O2'), ''),
           (('clang', '-O2'), 'const'), (('clang', '-O1'), 'const'))


def write(path, text):
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)


def make(into, functions, target, qualifier, clang):
    program, source = os.path.join(into,
                                   'calls'), os.path.join(into, 'calls.bpf')
    write(program + '.c', loc_calls.program(functions, 7, qualifier=qualifier))
    subprocess.run([*target, '-g', '-w', program + '.c', '-o', program],
                   check=True)
    header = os.path.abspath(
        os.path.join(SOURCE, 'tests', 'live', 'loc_record.h'))
    write(source + '.c', loc_calls.bpf_object(functions, program, header))
    subprocess.run([
        *clang.split(), '-O2', '-g', '-target', 'bpf', '-I',
        os.path.join(SOURCE, 'include'), '-idirafter',
        f'/usr/include/{os.uname().machine}-linux-gnu', '-c', source + '.c',
        '-o', source + '.o'
    ],
                   check=True)
    return program, source + '.o'


def measure(functions, target, qualifier, clang):
    with tempfile.TemporaryDirectory() as into:
        program, programs = make(into, functions, target, qualifier, clang)
        log = os.path.join(into, 'log')
        ran = subprocess.run([*HOLDER.split(), programs, program, log],
                             capture_output=True,
                             text=True,
                             check=False)
        if ran.returncode:
            sys.exit(f'{target} {clang}: {ran.returncode} {ran.stderr}')
        with open(log, encoding='utf-8') as file:
            return loc_calls.compare(file.read().splitlines(),
                                     ran.stdout.splitlines())


def main():
    functions = loc_calls.functions(
        int(sys.argv[1]) if len(sys.argv) > 1 else 60, 5)
    failed = False
    for clang in sys.argv[2:] or ['clang']:
        for target, qualifier in TARGETS:
            right, unavailable, wrong, bad = measure(functions, target,
                                                     qualifier, clang)
            print(
                f'{" ".join(target)} {qualifier}, BPF by {clang}: {right} right, {unavailable} unavailable, '
                f'{wrong} wrong {bad[:5]}',
                flush=True)
            failed |= bool(wrong)
    sys.exit(failed)


main()
