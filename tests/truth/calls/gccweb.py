# SPDX-License-Identifier: BSD-2-Clause
"""Finds debug instructions that GCC's pass web left with a register which is another variable's
now.

The pass divides a register that several definitions write into one for each, in instructions only
(docs/findings/gcc-web-leaves-debug-register.md). It runs with -fweb, which -funroll-loops brings
with it. Its dump (-fdump-rtl-web) lists what was divided, and all instructions after that.
"""
import os
import re

PAGE = 'gcc-web-leaves-debug-register'

FUNCTION = re.compile(r'^;; Function \S+ \(([^,]+),')
DIVIDED = re.compile(r'^Web oldreg=(\d+) newreg=(\d+)')
INSN = re.compile(r'^\((\w+) \d+ \d+ \d+ (\d+) ')
BINDS = re.compile(r'\(var_location:\S* (\S+) ')
MARKER = re.compile(r'\(debug_marker:BLK\)')
REGISTER = re.compile(r'\(reg(?:/\w+)*:\w+ (\d+)')
WRITTEN = re.compile(r'\((?:set|clobber) \(reg(?:/\w+)*:\w+ (\d+)')
POSITION = re.compile(r'"([^"]+)":(\d+):\d+')


class Webs:
    """Of one function: which of its parameters' bindings before a copy's entry name a register's
    wrong part."""

    def __init__(self):
        self.parts = {}   # register: all it was divided into, itself among them
        # registers written in the block at hand, the last one after
        self.block, self.written = None, []
        # bound wrongly since the last marker; positions of the bindings
        self.group, self.positions = set(), set()
        self.wrong = []   # (parameter, positions)

    def divide(self, old, new):
        parts = self.parts.setdefault(old, {old})
        parts.add(new)
        self.parts[new] = parts

    def is_left_behind(self, register):
        parts = self.parts.get(register)
        last = next((r for r in reversed(self.written) if parts and r in parts), None)
        return last is not None and last != register

    def insn(self, text):
        match = INSN.match(text)
        if not match:
            return
        if match.group(2) != self.block:
            self.block, self.written, self.group, self.positions = match.group(2), [], set(), set()
        if match.group(1) != 'debug_insn':
            self.written += [int(r) for r in WRITTEN.findall(text)]
            return
        binds = BINDS.search(text)
        if binds:
            if any(self.is_left_behind(int(r)) for r in REGISTER.findall(text)):
                self.group.add(binds.group(1))
            self.positions |= {(os.path.basename(f), int(l)) for f, l in POSITION.findall(text)}
        elif MARKER.search(text):
            self.wrong += [(p, self.positions) for p in self.group]
            self.group, self.positions = set(), set()

    def has_wrong(self, parameter, call):
        return any(
            p == parameter and (call is None or not at or call in at) for p, at in self.wrong)


def parse(path):
    """{assembler name: Webs}; none where the pass did not run"""
    functions, current, pending = {}, None, ''
    if not os.path.exists(path):
        return functions
    with open(path, encoding='utf-8', errors='replace') as file:
        for line in file:
            start = FUNCTION.match(line)
            divided = DIVIDED.match(line)
            if pending and (start or line.startswith('(')):
                current.insn(pending)
                pending = ''
            if start:
                current = functions.setdefault(start.group(1), Webs())
            elif divided and current is not None:
                current.divide(int(divided.group(1)), int(divided.group(2)))
            elif current is not None and (pending or line.startswith('(')):
                pending += line
    if pending:
        current.insn(pending)
    return functions
