# SPDX-License-Identifier: BSD-2-Clause
"""What a program executed, instruction by instruction and jump by jump, counted by Valgrind's
callgrind; the code by objdump.

Nothing here comes from Cairn, nor from a probe. Callgrind 3.19 cannot read Clang's DWARF 5, and
names what it finds by the object and the address in it, so the program runs without its debug
information.
"""
import collections
import os
import re

import common

# "  5f3a: jne    5f80 <f+0x10>"
LISTED = re.compile(r'^\s*([0-9a-f]+):\s+(?:(?:bnd|notrack|lock|rep[nz]*|data16) )*(\S+)')
ENDS = ('jmp', 'ret', 'ud2', 'hlt')
NAMED = re.compile(r'^c?ob=\((\d+)\)(?: (.*))?$')


class Executed:
    """count: {address: times}; jumps: {(from, to): times}; calls: {(from, to): times}, tail calls
    among them."""

    def __init__(self, program, words):
        bare = os.path.join(os.path.dirname(os.path.dirname(program)), 'bare',
                            os.path.basename(program))
        os.makedirs(os.path.dirname(bare), exist_ok=True)
        out = bare + '.callgrind'
        for command in (['strip', '-g', '-o', bare, program],
                        ['setarch', '-R', '/bin/sh', '-c', 'exec valgrind -q --tool=callgrind '
                                                           '--dump-instr=yes --collect-jumps=yes '
                                                           '--skip-plt=no --compress-pos=no '
                         f'--callgrind-out-file={out} {bare} {words}']):
            code, _, err = common.run(command, 1800)
        if not os.path.exists(out) or not os.path.getsize(out):
            raise RuntimeError(f'callgrind {bare}: exit code {code}: {err[-300:]}')
        self.count, self.jumps, self.calls = (collections.Counter() for _ in range(3))
        with open(out, encoding='utf-8', errors='replace') as file:
            self.read(file, bare)
        os.unlink(out)
        self.next = self.listing(program)

    def read(self, file, bare):
        objects, here, there, pending = {}, None, None, None
        for line in file:
            if line[0] == '0':
                at, _, n = (line.split() + ['0'])[:3]
                at = int(at, 16)
                if pending:
                    kind, n_taken, to = pending
                    if here == bare:
                        kind[(at, to)] += n_taken
                    pending = None
                elif here == bare:
                    self.count[at] += int(n)
                continue
            named = NAMED.match(line)
            if named:
                objects.setdefault(named[1], named[2])
                there = objects[named[1]]
                if line[0] == 'o':
                    here = there
            elif line.startswith(('jump=', 'jcnd=')):
                n, to = line[5:].split()[:2]
                pending = (self.jumps, int(n.split('/')[0]), int(to, 16))
            elif line.startswith('calls='):
                n, to = line[6:].split()[:2]
                # A call of another object's function has no "cob" line of its own only when it is
                # of this one.
                pending = (self.calls, int(n), int(to, 16) if there == here else None)
                there = here
            elif line.startswith('fn='):
                there = here

    @staticmethod
    def listing(program):
        """{address: (what is after it in memory, whether it can continue there, mnemonic)}"""
        code, out, err = common.run(['objdump', '-d', '--no-show-raw-insn', '-w', program], 600)
        if code != 0:
            raise RuntimeError(f'objdump {program}: {err[-300:]}')
        found, last = {}, None
        for line in out.splitlines():
            listed = LISTED.match(line)
            if not listed:
                continue
            at = int(listed[1], 16)
            if last:
                found[last[0]] = (at, not last[1].startswith(ENDS), last[1])
            last = (at, listed[2])
        return found

    def steps(self):
        """{address: {where execution went from there: times}}; a call is taken to return."""
        found = collections.defaultdict(collections.Counter)
        left = collections.Counter(self.count)
        for (at, to), n in self.jumps.items():
            found[at][to] += n
            left[at] -= n
        for (at, to), n in self.calls.items():
            # A jump to what has another symbol: a tail call, or a cold part.
            if self.next.get(at, (0, True, ''))[2].startswith('j') and to is not None:
                found[at][to] += n
                left[at] -= n
        for at, n in left.items():
            after, continues, _ = self.next.get(at, (None, False, ''))
            if n > 0 and continues and self.count.get(after):
                found[at][after] += n
        return found
