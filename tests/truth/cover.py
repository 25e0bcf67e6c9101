#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn run --cover-inlined, against the calls that a program logs.

	cover.py [FUNCTIONS]

A uprobe program for each argument of each function reads it from the register of the calling
convention. The functions are inlined, so that all that it sees comes from locations. Programs of gcc
and clang at two levels. Needs root.
"""
import collections
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, '..', 'live'))
import common  # noqa: E402
import loc_calls  # noqa: E402

TARGETS = (('gcc', '-O2'), ('gcc', '-O1'), ('clang', '-O2'), ('clang', '-O1'))
REGISTERS = 6
MAP = 'cover_truth'
HEAD = f"""
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <bpf/bpf_helpers.h>
struct read {{ unsigned long function, arg, value; }};
struct {{
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct read);
	__type(value, unsigned long);
}} {MAP} SEC(".maps");
char LICENSE[] SEC("license") = "GPL";
static __attribute__((noinline)) int count(unsigned long function, unsigned long arg, unsigned long value)
{{
	struct read key = {{function, arg, value}};
	unsigned long one = 1, *n = bpf_map_lookup_elem(&{MAP}, &key);

	if (n)
		__sync_fetch_and_add(n, 1);
	else
		bpf_map_update_elem(&{MAP}, &key, &one, BPF_ANY);
	return 0;
}}
"""
NAMES = ('rdi', 'rsi', 'rdx', 'rcx', 'r8', 'r9')


def in_registers(function):
    """The arguments that are integers in one register, as long as that is simple to tell."""
    found = []
    for i, (type_, size, _) in enumerate(function.params):
        if type_.startswith('struct') or size > 8 or len(found) == REGISTERS:
            break
        found.append(i)
    return found


def bpf_object(functions, program):
    text = HEAD
    for f in functions:
        for k, i in enumerate(in_registers(f)):
            text += (
                f'SEC("uprobe/{program}:copy_{f.number}") int on_{f.number}_{i}(struct pt_regs *ctx) '
                f'{{ return count({f.number}, {i}, ctx->{NAMES[k]}); }}\n')
    return text


def logged(path, functions):
    """{(function, argument): {value: calls}} of the inlined calls."""
    found = collections.defaultdict(collections.Counter)
    with open(path, encoding='utf-8') as file:
        for line in file:
            words = line.split()
            number, kind = divmod(int(words[0]), 2)
            for i in in_registers(functions[number]) if kind else ():
                value = bytes.fromhex(words[3 + i].lstrip('='))[:8]
                found[number, i][int.from_bytes(value, 'little')] += 1
    return found


def make(into, functions, target):
    program, source = os.path.join(into,
                                   'calls'), os.path.join(into, 'cover.bpf')
    with open(program + '.c', 'w', encoding='utf-8') as file:
        file.write(loc_calls.program(functions, 7))
    subprocess.run([*target, '-g', '-w', program + '.c', '-o', program],
                   check=True)
    with open(source + '.c', 'w', encoding='utf-8') as file:
        file.write(bpf_object(functions, program))
    subprocess.run([
        'clang', '-O2', '-g', '-w', '-target', 'bpf', '-idirafter',
        f'/usr/include/{os.uname().machine}-linux-gnu', '-c', source + '.c',
        '-o', source + '.o'
    ],
                   check=True)
    return program, source + '.o'


def watch(programs, program, log, said):
    """(the rows of the programs, the entries of the map)."""
    with open(said, 'w', encoding='utf-8') as err:
        tool = subprocess.Popen([
            common.CAIRN, 'run', '--cover-inlined', '--best-effort', '--json',
            '--no-cache', programs
        ],
                                stdout=subprocess.PIPE,
                                stderr=err,
                                text=True)
        while tool.poll() is None and '\nattached\n' not in open(
                said, encoding='utf-8').read():
            time.sleep(.05)
        if tool.poll() is None:
            subprocess.run([program, log], check=True)
        entries = subprocess.run(
            [common.CAIRN, 'decode', '--json', '--map', MAP],
            stdout=subprocess.PIPE,
            text=True,
            check=False).stdout
        tool.send_signal(signal.SIGINT)
        out = tool.communicate()[0]
    rows = [json.loads(line) for line in out.splitlines()]
    return {row['program']: row
            for row in rows}, [json.loads(e) for e in entries.splitlines()]


def measure(functions, target):
    with tempfile.TemporaryDirectory() as into:
        program, programs = make(into, functions, target)
        log, said = os.path.join(into, 'log'), os.path.join(into, 'said')
        rows, entries = watch(programs, program, log, said)
        want = logged(log, functions)
    seen = collections.defaultdict(collections.Counter)
    for entry in entries:
        key = entry['key']
        seen[key['function'],
             key['arg']][key['value'] & (1 << 64) - 1] += entry['value']
    right, left_out, wrong, why = 0, 0, [], collections.Counter()
    for (number, i), values in want.items():
        row = rows[f'on_{number}_{i}']
        if row['left_out'] or row['why']:
            left_out += sum(values.values())
            why[(row['why'] or '').split(': ')[-1]] += 1
            # Of some sites, then: nothing but what was passed.
            if seen[number, i] - values:
                wrong.append((number, i, dict(values), dict(seen[number, i])))
        elif seen[number, i] == values:
            right += sum(values.values())
        else:
            wrong.append((number, i, dict(values), dict(seen[number, i])))
    return right, left_out, wrong, why


def main():
    functions = loc_calls.functions(
        int(sys.argv[1]) if len(sys.argv) > 1 else 60, 5)
    if os.geteuid():
        common.skip('programs at inlined functions', 'needs root')
        common.finish()
    for target in TARGETS:
        right, left_out, wrong, why = measure(functions, target)
        common.claim(
            f'{" ".join(target)}: {right} arguments are what the program passed, {left_out} are left out '
            f'({dict(why)}), wrong: {len(wrong)} {wrong[:3]}',
            not wrong and (right > left_out or target[0] == 'clang'))
    common.finish()


if __name__ == '__main__':
    main()
