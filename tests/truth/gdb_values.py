# SPDX-License-Identifier: BSD-2-Clause
"""Runs inside gdb: stops at given addresses and says what gdb believes the arguments are.

    gdb -batch -x gdb_values.py      with GDB_VALUES_JOB=FILE, a JSON object:
        {"program": PATH, "args": [...], "output": PATH, "max_hits": N or 0,
         "places": [{"id": ANY, "at": link-time address, "function": NAME, "die_level": ...}, ...]}

Writes one JSON object per hit and place: {"id", "function", "hit", "args": {NAME: VALUE}, "why": {NAME: TEXT},
"registers": [16 general registers in DWARF order], "bias": N}. Integers are numbers, pointers and char too; floats are
numbers; structs objects; char pointers [address, text].

gdb hides an inlined frame when it stops on its first instruction, so frames are not asked: the block of the wanted
function that covers the address is found in the block tree, and its parameters are read in the newest frame, whose
registers are the same.
"""
import json
import os

import gdb

REGISTERS = ['rax', 'rdx', 'rcx', 'rbx', 'rsi', 'rdi', 'rbp', 'rsp', 'r8', 'r9', 'r10', 'r11', 'r12', 'r13', 'r14', 'r15']
STRING_MAX = 64


class Unavailable(Exception):
    pass


def to_json(value):
    if value.is_optimized_out:
        raise Unavailable('optimized out')
    t = value.type.strip_typedefs()
    code = t.code
    if code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
        return {f.name or '': to_json(value[f]) for f in t.fields()}
    if code == gdb.TYPE_CODE_ARRAY:
        lo, hi = t.range()
        return [to_json(value[i]) for i in range(lo, hi + 1)]
    if code == gdb.TYPE_CODE_FLT:
        return float(value)
    if code == gdb.TYPE_CODE_PTR:
        address = int(value)
        target = t.target().strip_typedefs()
        if target.code == gdb.TYPE_CODE_INT and target.sizeof == 1 and t.target().unqualified().name == 'char':
            try:
                return [address, value.string('latin-1', 'replace', -1)[:STRING_MAX]]
            except (gdb.error, gdb.MemoryError):
                return [address, None]
        return address
    return int(value)


def block_of(pc, function):
    """The innermost block of function (a copy or its body) that covers pc."""
    block = gdb.block_for_pc(pc)
    while block is not None and not block.is_static and not block.is_global:
        if block.function is not None and block.function.name == function:
            return block
        block = block.superblock
    return None


def parameters(block, frame):
    args, why = {}, {}
    for symbol in block:
        if not symbol.is_argument:
            continue
        try:
            args[symbol.name] = to_json(symbol.value(frame))
        except (gdb.error, gdb.MemoryError, Unavailable, RuntimeError, OverflowError, ValueError) as error:
            why[symbol.name] = str(error) or 'error'
    return args, why


class Stop(gdb.Breakpoint):
    def __init__(self, at, places, state):
        super().__init__(f'*{at:#x}', type=gdb.BP_BREAKPOINT, internal=True)
        self.silent = True
        self.places, self.state, self.at, self.hits = places, state, at, 0

    def stop(self):
        self.hits += 1
        if self.state['max_hits'] and self.hits >= self.state['max_hits']:
            self.state['done'].append(self)
        frame = gdb.newest_frame()
        registers = [int(frame.read_register(r)) & (2 ** 64 - 1) for r in REGISTERS]
        for place in self.places:
            block = block_of(self.at, place['function'])
            record = {'id': place['id'], 'function': place['function'], 'hit': self.hits, 'registers': registers,
                      'bias': self.state['bias'], 'block': None if block is None else block.start}
            record['args'], record['why'] = ({}, {}) if block is None else parameters(block, frame)
            record['extra'] = self.state['hook'](place, registers) if self.state.get('hook') else None
            self.state['out'].write(json.dumps(record) + '\n')
        return bool(self.state['done'])


def start(job):
    gdb.execute('set pagination off')
    gdb.execute('set confirm off')
    gdb.execute('set breakpoint pending off')
    gdb.execute('set startup-with-shell off')
    gdb.execute('set print frame-arguments none')
    gdb.execute('set auto-load safe-path /nonexistent')
    gdb.execute(f'file {job["program"]}', to_string=True)
    if job.get('args'):
        gdb.execute('set args ' + ' '.join(job['args']))
    gdb.execute('starti > /dev/null 2>&1' if job.get('shell') else 'starti', to_string=True)


def bias_of(job):
    """How far the program is loaded from its link-time addresses."""
    entry = int(job.get('entry', 0))
    with open(f'/proc/{gdb.selected_inferior().pid}/auxv', 'rb') as file:
        data = file.read()
    pairs = [int.from_bytes(data[i:i + 8], 'little') for i in range(0, len(data), 8)]
    auxv = dict(zip(pairs[::2], pairs[1::2]))
    return auxv[9] - entry


def go(job, hook=None):
    start(job)
    bias = bias_of(job)
    with open(job['output'], 'w', encoding='utf-8') as out:
        state = {'out': out, 'bias': bias, 'max_hits': job.get('max_hits', 0), 'done': [], 'hook': hook}
        by_address = {}
        for place in job['places']:
            by_address.setdefault(place['at'] + bias, []).append(place)
        for at, places in by_address.items():
            Stop(at, places, state)
        while True:
            gdb.execute('continue', to_string=True)
            # A place seen often enough is no longer worth its stops.
            for stop in state['done']:
                stop.enabled = False
            finished = not state['done']
            state['done'].clear()
            if finished or gdb.selected_inferior().pid == 0:
                break
    if gdb.selected_inferior().pid:
        gdb.execute('kill', to_string=True)


if __name__ == '__main__' and 'GDB_VALUES_JOB' in os.environ:
    with open(os.environ['GDB_VALUES_JOB'], encoding='utf-8') as job_file:
        go(json.load(job_file))
