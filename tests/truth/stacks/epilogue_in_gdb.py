# SPDX-License-Identifier: BSD-2-Clause
"""Run by gdb: a core at each of the last instructions of a function, from where rbp is given back
on.

    gdb -batch -ex 'py FUNCTION, FOLDER = "realigned", "/tmp/x"' -x epilogue_in_gdb.py PROGRAM

Writes FOLDER/FUNCTION.0 and so on, all of one activation, and prints "core PATH THREAD PC" of each.
"""
import gdb


def last_instructions(function):
    """The addresses from the last "leave" or "pop %rbp" on."""
    begin = int(gdb.parse_and_eval(f'(long){function}'))
    end = gdb.block_for_pc(begin).end
    code = gdb.selected_frame().architecture()
    found = code.disassemble(begin, end - 1)
    first = max(
        i for i, insn in enumerate(found) if insn['asm'].split() in (['leave'], ['pop', '%rbp']))
    last = next(i for i in range(first, len(found)) if found[i]['asm'].startswith('ret'))
    return [insn['addr'] for insn in found[first:last + 1]]


def main():
    for setting in ('pagination off', 'confirm off', 'disable-randomization off'):
        gdb.execute(f'set {setting}')
    gdb.execute('break main')
    gdb.execute('run', to_string=True)
    gdb.execute('set scheduler-locking step')
    addresses = last_instructions(FUNCTION)  # noqa: F821 (set on gdb's command line)
    gdb.execute(f'tbreak *{addresses[0]:#x}')
    gdb.execute('continue', to_string=True)
    for number, at in enumerate(addresses):
        pc = int(gdb.parse_and_eval('(long)$pc'))
        if pc != at:
            raise gdb.GdbError(f'at {pc:#x} instead of {at:#x}')
        path = f'{FOLDER}/{FUNCTION}.{number}'  # noqa: F821
        gdb.execute(f'gcore {path}', to_string=True)
        print(f'core {path} {gdb.selected_thread().ptid[1]} {pc:#x}', flush=True)
        gdb.execute('stepi', to_string=True)
    gdb.execute('kill')


main()
