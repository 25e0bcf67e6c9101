# SPDX-License-Identifier: BSD-2-Clause
"""Why a function has another number of events than of calls where no place says so: a proof, line
by line of its calls.

Witnesses are the debug information as libdw reads it (copies.c), the instructions and jumps that
the program executed (executed.py), and the calls of the counting build. A class stands for what
they show; where they show something else the difference is not explained.

    no-copy       the debug information has no copy with the line of the call in its caller, and the body was not called there instead
    recursion     the same of a call of the function by itself; and its body has a jump back, which was taken as often
    some-copies   some copies of the caller have a copy with this line, others of its copies, which were executed, have none
    only-places   of the copies with this line no instruction was executed on a way past their places: those calls left no code
    next-turn     the same, and after a place its copy's code was executed again: further turns of a loop, which nothing names as entries
    ahead         more events than calls: Clang names no entry, its copy's first instruction was executed as often
    entry-passed  more events than calls: an entry that GCC itself names (DW_AT_entry_pc, or a row of its marker) was executed as often
"""
import bisect
import collections
import os
import subprocess

import common
import executed
import lines

HERE = os.path.dirname(os.path.abspath(__file__))
Copy = collections.namedtuple('Copy', 'die parent name decl call entry ranges')


def copies_program():
    source, output = os.path.join(HERE, 'copies.c'), os.path.join(common.lab(), 'copies')
    if not os.path.exists(output) or os.path.getmtime(output) < os.path.getmtime(source):
        common.compile_c([source], output, ['-O2', '-Wall'], libraries=['-ldw'])
    return output


class Debug:
    """The functions of a program as libdw reads them, and its line table."""

    def __init__(self, program):
        self.copies, self.rows, self.by_name = {}, collections.defaultdict(
            set), collections.defaultdict(list)
        told = subprocess.run([copies_program(), program], stdin=subprocess.DEVNULL,
                              capture_output=True, check=True, timeout=600)
        for line in told.stdout.decode('utf-8', 'replace').splitlines():
            kind, *f = line.split('\t')
            if kind == 'row':
                self.rows[int(f[0], 16)].add((int(f[1]), int(f[2]), f[3] == '1'))
                continue
            ranges = [] if f[6] == '-' else [
                tuple(int(x, 16) for x in r.split('-')) for r in f[6].split(',')
            ]
            entry = None if f[5] == '-' else int(f[5], 16)
            copy = Copy(int(f[0], 16), int(f[1], 16), f[2], int(f[3]), int(f[4]), entry, ranges)
            self.copies[copy.die] = copy
            if copy.ranges or copy.entry is not None:
                self.by_name[copy.name].append(copy)

    def body_around(self, copy):
        while copy.parent:
            copy = self.copies[copy.parent]
        return copy


class Why:
    """Of one program."""

    def __init__(self, program, args, calls):
        """calls(key) gives {(line, caller): calls} of a function in the counting build."""
        self.program, self.calls = program, calls
        self.debug, self.ran = Debug(program), executed.Executed(program, args)
        self.steps, self.addresses = self.ran.steps(), sorted(self.ran.count)
        self.before = collections.defaultdict(set)
        for at, after in self.steps.items():
            for to in after:
                self.before[to].add(at)

    # ---- what was executed ----

    def code(self, copy):
        """Its instructions that were executed."""
        found = set()
        for lo, hi in copy.ranges:
            found.update(self.addresses[bisect.bisect_left(self.addresses, lo):bisect.
                                        bisect_left(self.addresses, hi)])
        return found

    def reached(self, start, within, without):
        found, to_do = set(), [a for a in start if a not in without]
        while to_do:
            at = to_do.pop()
            if at not in found:
                found.add(at)
                to_do += [to for to in self.steps.get(at, ()) if to in within and to not in without]
        return found

    def past_places(self, copy, places):
        """The copy's instructions that were come to from the function's entry without a place."""
        body = self.debug.body_around(copy)
        start = body.ranges[0][0] if body.entry is None else body.entry
        around = self.reached([start], self.code(body), places)
        return (self.code(copy) & around) - places

    def turns(self, copy, places):
        """Whether the copy's code was executed again after a place: its first statement is there,
        or other code led back to it."""
        own, body = self.code(copy), self.code(self.debug.body_around(copy))
        first = set().union(*(self.debug.rows[at] for at in places if at in own), set())
        if any(row in first and row[2]
               for at in own - places
               for row in self.debug.rows.get(at, ())):
            return True
        for at in own - places:
            before = (self.before[at] & body) - own
            if before and before & self.reached(self.steps.get(at, ()), body, places):
                return True
        return False

    # ---- one function ----

    def body_calls(self, bodies):
        """{(line, caller): calls} of the instructions that call a body."""
        at = {frm for (frm, to) in self.ran.calls if to in bodies}
        where = lines.source_lines(self.program, at) if at else {}
        found = collections.Counter()
        for (frm, to), n in self.ran.calls.items():
            if to in bodies:
                found[(where[frm][1], where[frm][0])] += n
        return found

    def hits(self, rows):
        """What a function's events should be: how often its places were executed."""
        return sum(
            self.ran.count.get(int(row['addr'], 16), 0)
            for row in rows
            if row['kind'] != 'part' and not row['hazard'] and 'merged' not in row['count_caveats'])

    def explain(self, key, rows):
        """({class: calls or events}, [what is not explained])"""
        rows = [row for row in rows if row['kind'] != 'part']
        bodies = {int(row['addr'], 16) for row in rows if not row['chain']}
        table = collections.defaultdict(lambda: [0, 0, []])
        for line, n in self.calls(key).items():
            table[line][0] = n
        for line, n in self.body_calls(bodies).items():
            table[line][1] = n
        for row in rows:
            if row['chain']:
                table[lines.key_of(row)][2].append(row)
        found, open_ = collections.Counter(), []
        without = collections.Counter()
        for line, (n_calls, n_body, places) in sorted(table.items()):
            copies = [
                c for c in self.debug.by_name[key[0]] if c.decl == key[1] and c.parent
                and str(c.call) == line[0] and self.caller_of(c) == line[1]
            ]
            n_missing = n_calls - n_body - sum(
                self.ran.count.get(int(row['addr'], 16), 0) for row in places)
            if {c.die for c in copies} != {int(row['die'], 16) for row in places}:
                open_.append(f'line {line[0]} in {line[1]}: libdw finds other copies')
            elif not copies:
                without['recursion' if line[1] == key[0] else 'no-copy'] += n_missing
            elif n_missing < 0:
                self.explain_more(line, copies, places, -n_missing, found, open_)
            elif n_missing:
                self.explain_fewer(line, copies, places, n_missing, found, open_)
        self.explain_without(bodies, without, found, open_)
        return found, open_

    def caller_of(self, copy):
        return self.debug.copies[copy.parent].name

    def explain_without(self, bodies, without, found, open_):
        """Lines without a copy. What the linker or compiler merged has the line of another call, so
        they are added up."""
        n_recursion = min(without['recursion'], sum(without.values()))
        if n_recursion > 0:
            bounds = [r for body in bodies for r in self.bounds(body)]
            turns = sum(n for (frm, to), n in self.ran.jumps.items()
                        if any(lo <= to < frm < hi for lo, hi in bounds))
            without['recursion'] -= n_recursion
            if turns >= n_recursion:
                found['recursion'] += n_recursion
            else:
                open_.append(
                    f'{n_recursion} calls of itself, and its body has not as many jumps back')
        n = sum(without.values())
        if n > 0:
            found['no-copy'] += n
        elif n < 0:
            open_.append(f'the body was called {-n} times more than its lines')

    def bounds(self, body):
        """The ranges of the function whose body begins at an address."""
        around = [
            c for c in self.debug.copies.values()
            if not c.parent and any(lo <= body < hi for lo, hi in c.ranges)
        ]
        return [r for c in around for r in c.ranges]

    def explain_fewer(self, line, copies, rows, n, found, open_):
        name = 'only-places'
        for copy in copies:
            places = {int(row['addr'], 16) for row in rows if int(row['die'], 16) == copy.die}
            past = self.past_places(copy, places)
            if past:
                open_.append(
                    f'line {line[0]} in {line[1]}: {min(past):#x} was executed without {", ".join(map(hex, sorted(places)))}'
                )
                return
            if self.turns(copy, places):
                name = 'next-turn'
        have = {copy.parent for copy in copies}
        if name == 'only-places' and any(c.die not in have and self.code(c)
                                         for c in self.debug.by_name[line[1]]):
            name = 'some-copies'
        found[name] += n

    def explain_more(self, line, copies, rows, n, found, open_):
        at = {int(row['addr'], 16) for row in rows}
        # GCC's own entries: of the DIE, or the row of its marker.
        named = {c.entry
                 for c in copies} | {
                     a
                     for a in at
                     if any(r[0] == rows[0]['line'] and r[2] for r in self.debug.rows.get(a, ()))
                 }
        by_rule = all(row['rule'] in ('entry-pc', 'entry-row') for row in rows)
        if by_rule and at <= named:
            found['entry-passed'] += n
        elif not any(row['rule'] in ('entry-pc', 'entry-row') for row in rows) and not any(self.past_places(c, at) for c in copies) \
                and at <= set().union(*(self.code(c) for c in copies)):
            found['ahead'] += n
        else:
            open_.append(
                f'line {line[0]} in {line[1]}: {n} events more, and no entry that the compiler names'
            )
