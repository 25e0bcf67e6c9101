# SPDX-License-Identifier: BSD-2-Clause
"""Runs inside gdb: stops at given addresses and says what gdb believes the arguments are.

    gdb -batch -x gdb_values.py      with GDB_VALUES_JOB=FILE, a JSON object:
        {"program": PATH, "args": [...], "output": PATH, "max_hits": N or 0,
         "module": path of the library that has the sites, without it the program itself,
         "symbols": {NAME: link-time address}, for locations that name one,
         "sites": [{"id": ANY, "at": link-time address, "function": NAME, "locs": {NAME: location as Cairn prints it}}, ...]}
                    with "after": true, gdb's values are those of the second line's first address: code at -O0 describes its
                    parameters for the time after they were stored)

Writes one JSON object per hit and site: {"id", "function", "hit", "args": {NAME: VALUE}, "why":
{NAME: TEXT}, "sizes": {NAME: BYTES}, "cairn": {NAME: VALUE}}. Integers are numbers, pointers and
char too; floats are numbers; structs objects; char pointers [address, text].

gdb hides an inlined frame when it stops on its first instruction, so frames are not asked: the
block of the wanted function that covers the address is found in the block tree, and its parameters
are read in the newest frame, whose registers are the same.
"""
import json
import os
import re
import sys

import gdb

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import loc_text  # noqa: E402

STRING_MAX = 64


class Unavailable(Exception):
    pass


def to_json(value):
    if value.is_optimized_out:
        raise Unavailable('optimized out')
    t = value.type.strip_typedefs()
    code = t.code
    if code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
        # A static member is no part of the value.
        return {f.name or '': to_json(value[f]) for f in t.fields() if hasattr(f, 'bitpos')}
    if code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
        return int(value.referenced_value().address)
    if code in (gdb.TYPE_CODE_METHODPTR, gdb.TYPE_CODE_MEMBERPTR):
        return str(value)
    if code == gdb.TYPE_CODE_ARRAY:
        lo, hi = t.range()
        return [to_json(value[i]) for i in range(lo, hi + 1)]
    if code == gdb.TYPE_CODE_FLT:
        return float(value)
    if code == gdb.TYPE_CODE_PTR:
        address = int(value)
        target = t.target().strip_typedefs()
        if target.code == gdb.TYPE_CODE_INT and target.sizeof == 1 and t.target().unqualified(
        ).name == 'char':
            try:
                return [address, value.string('latin-1', 'replace', -1)[:STRING_MAX]]
            except (gdb.error, gdb.MemoryError):
                return [address, None]
        return address
    if t.sizeof > 8:
        return int(value.format_string(format='x'), 16)
    return int(value)


def is_function(symbol, name):
    """C++'s names have their parameters in gdb, and tags of the ABI."""
    return symbol.name == name or re.sub(r'\[abi:\w+\]', '', symbol.name).startswith(name + '(')


def block_of(pc, function):
    """The innermost block of function (a copy or its body) that covers pc."""
    block = gdb.block_for_pc(pc)
    while block is not None and not block.is_static and not block.is_global:
        if block.function is not None and is_function(block.function, function):
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
        except (gdb.error, gdb.MemoryError, Unavailable, RuntimeError, OverflowError,
                ValueError) as error:
            why[symbol.name] = str(error) or 'error'
    return args, why


class Machine:
    """What Cairn's locations are evaluated on: the same registers and memory that gdb sees."""

    def __init__(self, frame, state):
        self.frame, self.state = frame, state

    def register(self, name):
        return int(self.frame.read_register(name)) & loc_text.MASK

    def memory(self, address, size):
        return bytes(gdb.selected_inferior().read_memory(address, size))

    def symbol(self, name):
        """Run-time address of a symbol, or of a link-time address."""
        at = name if isinstance(name, int) else self.state['symbols'].get(name)
        if at is None:
            raise loc_text.Unknown(f'no symbol {name}')
        return at + self.state['bias']


def by_location(block, frame, locs, state):
    """The arguments as Cairn's locations give them, printed by the same code as gdb's own."""
    args = {}
    for symbol in block:
        text = locs.get(symbol.name) if symbol.is_argument else None
        if text is None:
            continue
        try:
            size = symbol.type.strip_typedefs().sizeof
            args[symbol.name] = to_json(
                gdb.Value(loc_text.evaluate(text, size, Machine(frame, state)), symbol.type))
        except (gdb.error, gdb.MemoryError, loc_text.Unknown, RuntimeError, OverflowError,
                ValueError) as error:
            args[symbol.name] = {'error': str(error)}
    return args


class After(gdb.Breakpoint):
    """After a function's prologue: what gdb says there belongs to what was seen at the entry."""
    def __init__(self, at, state):
        super().__init__(f'*{at:#x}', type=gdb.BP_BREAKPOINT, internal=True)
        self.silent = True
        self.state, self.at, self.waiting = state, at, []

    def stop(self):
        frame = gdb.newest_frame()
        for record in self.waiting:
            block = block_of(self.at, record['function'])
            # Of this call: what is pushed first at -O0 is the frame pointer.
            if block is not None and int(
                    frame.read_register('rbp')) & loc_text.MASK == record['sp'] - 8:
                record['args'], record['why'] = parameters(block, frame)
                self.state['out'].write(json.dumps(record) + '\n')
        self.waiting.clear()
        return False


def after_prologue(at):
    """Where the second line of a function begins, or None."""
    line = gdb.find_pc_line(at)
    return line.last + 1 if line.symtab is not None and line.pc == at and line.last else None


class Stop(gdb.Breakpoint):
    def __init__(self, at, sites, state):
        super().__init__(f'*{at:#x}', type=gdb.BP_BREAKPOINT, internal=True)
        self.silent = True
        self.sites, self.state, self.at, self.hits = sites, state, at, 0
        after = after_prologue(at) if any(p.get('after') for p in sites) else None
        self.after = state['after'].setdefault(after, None) or After(after,
                                                                     state) if after else None
        state['after'][after] = self.after

    def stop(self):
        self.hits += 1
        if self.state['max_hits'] and self.hits >= self.state['max_hits']:
            self.state['done'].append(self)
        frame = gdb.newest_frame()
        for site in self.sites:
            block = block_of(self.at, site['function'])
            record = {'id': site['id'], 'function': site['function'], 'hit': self.hits,
                      'block': None if block is None else block.start}
            record['sizes'] = {} if block is None else {
                s.name: s.type.strip_typedefs().sizeof
                for s in block
                if s.is_argument
            }
            record['cairn'] = {} if block is None else by_location(block, frame, site.get(
                'locs', {}), self.state)
            if site.get('after') and self.after:
                record['sp'] = int(frame.read_register('rsp')) & loc_text.MASK
                self.after.waiting.append(record)
                continue
            record['args'], record['why'] = ({}, {}) if block is None else parameters(block, frame)
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
    if job.get('library_path'):
        gdb.execute('set environment LD_LIBRARY_PATH ' + job['library_path'])
    gdb.execute('starti', to_string=True)


def bias_of(job):
    """How far the program or the module is loaded from its link-time addresses."""
    if job.get('module'):
        return bias_of_module(os.path.realpath(job['module']))
    entry = int(job.get('entry', 0))
    with open(f'/proc/{gdb.selected_inferior().pid}/auxv', 'rb') as file:
        data = file.read()
    pairs = [int.from_bytes(data[i:i + 8], 'little') for i in range(0, len(data), 8)]
    auxv = dict(zip(pairs[::2], pairs[1::2]))
    return auxv[9] - entry


def bias_of_module(path):
    gdb.execute('set stop-on-solib-events 1')
    while gdb.selected_inferior().pid:
        with open(f'/proc/{gdb.selected_inferior().pid}/maps', encoding='utf-8') as file:
            starts = [int(line.split('-')[0], 16) for line in file if line.rstrip().endswith(path)]
        if starts:
            gdb.execute('set stop-on-solib-events 0')
            return min(starts)
        gdb.execute('continue', to_string=True)
    raise RuntimeError(f'{path} was never mapped')


def go(job):
    start(job)
    bias = bias_of(job)
    with open(job['output'], 'w', encoding='utf-8') as out:
        state = {
            'out': out, 'bias': bias, 'symbols': job.get('symbols', {}), 'max_hits': job.get(
                'max_hits', 0), 'done': [], 'after': {}
        }
        by_address = {}
        for site in job['sites']:
            by_address.setdefault(site['at'] + bias, []).append(site)
        for at, sites in by_address.items():
            Stop(at, sites, state)
        while True:
            gdb.execute('continue', to_string=True)
            # A site seen often enough is no longer worth its stops.
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
