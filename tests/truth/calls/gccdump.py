# SPDX-License-Identifier: BSD-2-Clause
"""Finds in GCC's own dumps why it describes an argument wrongly.

Eight bugs leave traces there, and each is looked for at the very copies that a wrong value was read
in:

    dead name   the argument is described by an SSA name that no code needs any more, and that has one register
                together with other names: what the register holds is the value of one of those
                (docs/findings/gcc-dead-name-shares-register.md)
    removed     the argument is read from a debug temporary that has several bindings, or none: it is another call's
                (docs/findings/gcc-removed-parameter-value.md)
    before loop the argument is a variable that has several values here, depending on the way that was taken, and is described by
                one of them (docs/findings/gcc-value-before-loop.md)
    one arm     the argument is read from a debug temporary that two arms of a condition bind, and an if-conversion deleted one of the
                bindings with its arm (docs/findings/gcc-conditional-move-keeps-one-arm.md)
    later       the argument has no value at the entry, and is described by the constant that the function assigns to it
                (docs/findings/gcc-constant-of-a-later-statement.md)
    after store  the argument is read from memory that was written between the call's computing it and the copy
                (docs/findings/gcc-memory-read-after-store.md)
    bool        the argument is computed from a condition's opposite, ~x of a comparison, which was made of eight bits
                (docs/findings/gcc-bool-has-eight-bits.md)
    web         the argument is described by a register that was divided among several variables, see gccweb.py
                (docs/findings/gcc-web-leaves-debug-register.md)

The dumps are those of the last pass on SSA names, with the debug statements
(-fdump-tree-optimized), of the one that gives names their registers (-fdump-rtl-expand-details),
and of the if-conversions (-fdump-rtl-ce1). They are made by compiling the program once more, with
the same options, which writes the same code.
"""
import functools
import glob
import itertools
import os
import re
import subprocess

import gccweb

BOOL = 'gcc-bool-has-eight-bits'
DEAD_NAME = 'gcc-dead-name-shares-register'
LATER = 'gcc-constant-of-a-later-statement'
ONE_ARM = 'gcc-conditional-move-keeps-one-arm'
REMOVED = 'gcc-removed-parameter-value'
BEFORE_LOOP = 'gcc-value-before-loop'
AFTER_STORE = 'gcc-memory-read-after-store'

FUNCTION = re.compile(r'^;; Function \S+ \(([^,]+),')
BLOCK = re.compile(r'^\s*<bb (\d+)>')
LABEL = re.compile(r'^\s*(?:\w+ )?<(L\d+)>')
GOTO = re.compile(r'goto <bb (\d+)>')
NAME = re.compile(
    r'(?<![\w.#])[A-Za-z_][\w.$]*?_(\d+)(?:\(D\))?(?![\w.])|(?<![\w.#])_(\d+)(?:\(D\))?(?![\w.])')
BIND = re.compile(r'^\s*# DEBUG (\S+) (s?=>) (.*)$')
ENTRY = re.compile(r'^\s*# DEBUG INLINE_ENTRY (\w+)')
PHI = re.compile(r'^\s*# (\S+) = PHI <(.*)>')
JOINED = re.compile(r'([^,]+)\((\d+)\)(?:,|$)')
DEFINITION = re.compile(r'^\s*([\w.$]*_\d+)(?:\(D\))? = ')
STORE = re.compile(r'^\s*\*?(?:\(.*?\))?([A-Za-z]\w*)\b[^=(]* =(?:\{v\})? ')
SUM = re.compile(r'(-?\d+) \+ (-?\d+)$')
TEMPORARY = re.compile(r'D#\d+')
OPPOSITE = re.compile(r'~(D#\d+)$')
COMPARISON = re.compile(r'\S+ (?:==|!=|<|<=|>|>=) \S+$')
POSITION = re.compile(r'\[([^\s\[\]:]+):(\d+):\d+(?: discrim \d+)?\] ')
DEBUG_INSN = re.compile(r'\(debug_insn (\d+) .*?\(var_location:\S* (\S+) ', re.S)
INSN_POSITION = re.compile(r'"([^"]+)":(\d+):\d+')
DELETED = re.compile(r'deleting insn with uid = (\d+)\.')
PARTITION = re.compile(r'^Partition (\d+) \((.*) - (.*)\)')


def versions(text):
    """The numbers of the SSA names in it."""
    return {int(a or b) for a, b in NAME.findall(text)}


IF_CONVERSIONS = ('ce1', 'ce2', 'ce3')


class Arms:
    """What a function's if-conversions did to the debug instructions in the arms of conditions."""

    def __init__(self):
        self.binds = {}     # number of the instruction: (variable or temporary, value, position)
        self.deleted = set()

    def read(self, text):
        """One debug instruction, with what it binds."""
        match = DEBUG_INSN.match(text)
        if match:
            at = INSN_POSITION.search(text)
            self.binds[int(
                match.group(1))] = (match.group(2), text[match.end():], at
                                    and (os.path.basename(at.group(1)), int(at.group(2))))

    @functools.cached_property
    def halved(self):
        """Temporaries of which one arm's binding is gone, and another one's is left."""
        of = {}
        for number, (variable, _, _) in self.binds.items():
            of.setdefault(variable, set()).add(number)
        return {
            v
            for v, numbers in of.items()
            if v.startswith('D#') and numbers & self.deleted and numbers - self.deleted
        }

    def is_halved(self, parameter, call):
        """Whether the parameter, bound where the call is, comes from one of those."""
        todo = [
            value for variable, value, at in self.binds.values()
            if variable == parameter and at == call
        ]
        seen = set()
        while todo:
            for temporary in set(TEMPORARY.findall(todo.pop())) - seen:
                seen.add(temporary)
                todo += [
                    value for variable, value, _ in self.binds.values() if variable == temporary
                ]
        return bool(seen & self.halved)


class Function:
    """One function of the dump: blocks of statements, and what each name shares its register with.
    """

    def __init__(self):
        self.blocks, self.order, self.labels = {}, [], {}
        self.positions = {}  # of the lines of each block, where they are told
        self.partition = {}
        self.arms = Arms()
        self.webs = gccweb.Webs()

    def add(self, line, block):
        """A line in which statements and parts of them have their positions in the source in front.
        """
        first = POSITION.match(line.lstrip())
        self.positions[block].append(first
                                     and (os.path.basename(first.group(1)), int(first.group(2))))
        self.blocks[block].append(POSITION.sub('', line))

    def successors(self, number):
        lines = self.blocks[number]
        found = {int(n) for line in lines for n in GOTO.findall(line)}
        for line in lines:
            if re.match(r'\s*switch \(', line):
                found |= {self.labels[l] for l in re.findall(r'<(L\d+)>', line) if l in self.labels}
        code = [l for l in lines if l.strip() and '# DEBUG' not in l]
        last = code[-1].strip() if code else ''
        if not re.match(r'(goto|return|switch)|.*\bgoto <bb', last):
            here = self.order.index(number)
            found |= set(self.order[here + 1:here + 2])
        return found & set(self.blocks)

    def effect(self, line):
        """(names read, names written) by one line; debug statements read nothing, and what a PHI
        reads is read on the way to it."""
        if '# DEBUG' in line:
            return set(), set()
        phi = PHI.match(line)
        if phi:
            return set(), versions(phi.group(1))
        definition = DEFINITION.match(line)
        if definition:
            return versions(line[definition.end():]), versions(definition.group(1))
        return versions(line), set()

    @functools.cached_property
    def live_after(self):
        """{block: names that code after it needs}"""
        before = {n: set() for n in self.blocks}
        after = {n: set() for n in self.blocks}
        successors = {n: self.successors(n) for n in self.blocks}
        on_way = {(source, n): names
                  for n in self.blocks for source, names in self.joined(n).items()}
        changed = True
        while changed:
            changed = False
            for number in reversed(self.order):
                live = set()
                for s in successors[number]:
                    live |= before[s] | on_way.get((number, s), set())
                after[number] = set(live)
                for line in reversed(self.blocks[number]):
                    reads, writes = self.effect(line)
                    live = (live - writes) | reads
                if live != before[number]:
                    before[number], changed = live, True
        return after

    def joined(self, number):
        """{block in front: names that PHIs of the block read when coming from there}"""
        found = {}
        for phi in filter(None, map(PHI.match, self.blocks[number])):
            for text, source in JOINED.findall(phi.group(2)):
                found.setdefault(int(source), set()).update(versions(text))
        return found

    @functools.cached_property
    def predecessors(self):
        found = {n: set() for n in self.blocks}
        for number in self.blocks:
            for successor in self.successors(number):
                found[successor].add(number)
        return found

    def reached(self, block, edges, without):
        """Blocks that edges lead to from after one."""
        seen, todo = set(), [block]
        while todo:
            for n in edges(todo.pop()) - seen - without:
                seen.add(n)
                todo.append(n)
        return seen

    def loop_around(self, block, without):
        """The blocks of loops around one that do not pass others; empty when there is none."""
        return self.reached(block, self.successors, without) & self.reached(
            block, self.predecessors.get, without)

    def values_at(self, variable, block, index):
        """What a variable is bound to before a line, by any way that leads there."""
        values, seen, todo = set(), set(), [(block, self.blocks[block][:index])]
        while todo:
            number, lines = todo.pop()
            last = [m.group(3) for m in map(BIND.match, lines) if m and m.group(1) == variable]
            if last:
                values.add(last[-1])
                continue
            for before in self.predecessors[number] - seen:
                seen.add(before)
                todo.append((before, self.blocks[before]))
        return values

    def holders_at(self, names, block, index):
        """Which of several names with one register was written last before a line, by any way that
        leads there; None: none was."""
        holders, seen, todo = set(), set(), [(block, self.blocks[block][:index])]
        while todo:
            number, lines = todo.pop()
            last = next((w for line in reversed(lines) if (w := self.effect(line)[1] & names)),
                        None)
            if last:
                holders |= last
                continue
            if not self.predecessors[number]:
                holders.add(None)
            for before in self.predecessors[number] - seen:
                seen.add(before)
                todo.append((before, self.blocks[before]))
        return holders

    @functools.cached_property
    def binds(self):
        """(variable, how, value) of every debug statement that binds one."""
        found = (BIND.match(line)
                 for lines in self.blocks.values()
                 for line in lines
                 if '# DEBUG' in line)
        return [m.groups() for m in found if m]

    @functools.cached_property
    def bound_to(self):
        """{value: the variables that are somewhere bound to just this}"""
        found = {}
        for variable, _, value in self.binds:
            if not variable.startswith('D#'):
                found.setdefault(value, set()).add(variable)
        return found

    @functools.cached_property
    def temporaries(self):
        """{temporary: [(how, value)]}"""
        found = {}
        for variable, how, value in self.binds:
            if variable.startswith('D#'):
                found.setdefault(variable, []).append((how, value))
        return found


def parse_blocks(path):
    """{assembler name: Function}"""
    functions, current, block = {}, None, None
    with open(path, encoding='utf-8', errors='replace') as file:
        for line in file:
            start = FUNCTION.match(line)
            if start:
                current, block = functions.setdefault(start.group(1), Function()), None
                continue
            at = BLOCK.match(line)
            if at and current is not None:
                block = int(at.group(1))
                current.blocks[block], current.positions[block] = [], []
                current.order.append(block)
            elif block is not None and current is not None:
                if line.startswith('}'):
                    block = None
                    continue
                label = LABEL.match(line)
                if label:
                    current.labels[label.group(1)] = block
                current.add(line, block)
    return functions


def parse_arms(path, functions):
    """Fills Function.arms from the dump of an if-conversion: the instructions before it, what it
    deletes, and those after it."""
    current, pending = None, ''
    with open(path, encoding='utf-8', errors='replace') as file:
        for line in itertools.chain(file, ['(']):
            if pending and line.startswith('('):
                current.read(pending)
                pending = ''
            start = FUNCTION.match(line)
            if start:
                current = functions[start.group(1)].arms if start.group(1) in functions else None
            elif current is not None and line.startswith('(debug_insn'):
                pending = line
            elif pending:
                pending += line
            elif current is not None and (gone := DELETED.match(line)):
                current.deleted.add(int(gone.group(1)))


def parse_partitions(path, functions):
    """Fills Function.partition: {name: all that have its register}, from the last map of each
    function."""
    current = None
    with open(path, encoding='utf-8', errors='replace') as file:
        for line in file:
            start = FUNCTION.match(line)
            if start:
                current = functions.get(start.group(1))
            elif current is not None and line.startswith('Partition map'):
                current.partition = {}
            elif current is not None:
                match = PARTITION.match(line)
                if match:
                    members = {int(n) for n in match.group(3).split()}
                    current.partition.update(dict.fromkeys(members, members))


class Copy:
    """The debug statements before one entry of an inlined copy."""

    def __init__(self, function, block, index, binds, live):
        self.function, self.block, self.index = function, block, index
        self.binds, self.live = binds, live

    def is_one_of_several(self, value, parameter):
        """Whether the value is that of a variable which may have another one here, though it has
        the parameter's name."""
        for variable in self.function.bound_to.get(value, set()):
            index = self.index if variable != parameter else self.bound_at(parameter)
            values = self.function.values_at(variable, self.block, index)
            if value in values and len(values - {'NULL'}) > 1:
                return True
        return False

    def is_lost_number(self, value):
        """ Whether the value is a sum of two numbers, and that of a variable before a loop after
        which the variable is lost: `n--` of a 4, told as 4 + -1 after the loop.
        """
        function, match = self.function, SUM.match(value)
        number = match and str(int(match.group(1)) + int(match.group(2)))
        for variable in function.bound_to.get(number, set()):
            lost = {
                n
                for n in function.predecessors[self.block]
                if n in function.successors(n) and (
                    variable, 'NULL') in {(m.group(1), m.group(3))
                                          for m in map(BIND.match, function.blocks[n]) if m}
            }
            in_front = {
                b
                for n in lost
                for b in function.predecessors[n] - {n}
                if number in function.values_at(variable, b, None)
            }
            if in_front and function.values_at(variable, self.block, self.index) == {'NULL'}:
                return True
        return False

    def is_of_first_pass(self, temporary, value):
        """ Whether the temporary was bound before a loop around the copy, to the number that a
        variable of the loop begins with: it is written as a conversion of that number, which stands
        there for the variable.
        """
        function = self.function
        number = re.search(r'\([\w ]+\) (-?\d+)$', value)
        bound_in = {
            n
            for n, lines in function.blocks.items()
            for m in map(BIND.match, lines)
            if m and m.group(1) == temporary
        }
        if not number or self.block in bound_in:
            return False
        loop = function.loop_around(self.block, bound_in)
        return any(text.strip() == number.group(1) and int(source) not in loop for n in loop
                   for phi in filter(None, map(PHI.match, function.blocks[n]))
                   for text, source in JOINED.findall(phi.group(2)))

    def is_told_later(self, parameter):
        """Whether the parameter has no value at the entry and gets a number after a later
        statement, with no code before it."""
        if self.binds.get(parameter, 'NULL') != 'NULL':
            return False
        for line in itertools.takewhile(lambda l: '# DEBUG' in l,
                                        self.function.blocks[self.block][self.index:]):
            match = BIND.match(line)
            if match and match.group(1) == parameter and re.fullmatch(r'-?\d+', match.group(3)):
                return True
        return False

    def bound_at(self, parameter):
        """Where the parameter itself is bound: what stands in front has only its name."""
        lines = self.function.blocks[self.block][:self.index]
        return max(
            (i for i, l in enumerate(lines) if (m := BIND.match(l)) and m.group(1) == parameter),
            default=self.index)

    def is_overwritten(self, temporary, value):
        """Whether what the temporary reads from memory is written after its binding, in the block
        of the copy."""
        lines = self.function.blocks[self.block][:self.index]
        bound_at = max(
            (i for i, l in enumerate(lines) if (m := BIND.match(l)) and m.group(1) == temporary),
            default=None)
        if bound_at is None:
            return False
        stores = {
            m.group(1)
            for m in map(STORE.match, lines[bound_at:])
            if m and not NAME.fullmatch(m.group(1))
        }
        return any(re.search(rf'(?<![&\w.]){root}\b', value) for root in stores)

    def bound_last(self, temporary):
        """What a temporary was bound to last in the block of the copy."""
        lines = self.function.blocks[self.block][:self.index]
        return next(
            (m.group(3) for m in map(BIND.match, reversed(lines)) if m and m.group(1) == temporary),
            '')

    def is_eight_bits(self, value):
        """Whether it is made from the opposite of a comparison."""
        todo, seen = [value], set()
        while todo:
            text = todo.pop()
            opposite = OPPOSITE.match(text)
            if opposite and COMPARISON.match(self.bound_last(opposite.group(1))):
                return True
            new = set(TEMPORARY.findall(text)) - seen
            seen |= new
            todo += [self.bound_last(t) for t in new]
        return False

    def bug(self, parameter):
        """The page that explains a wrong value of the parameter here; None when the dump shows
        nothing."""
        todo, seen, names = [self.binds.get(parameter, '')], set(), set()
        # Of numbers nothing tells whose they are; an address, or what was computed, is one
        # variable's.
        if re.match(r'&|.* [-+*] ', todo[0]) and self.is_one_of_several(todo[0], parameter):
            return BEFORE_LOOP
        if self.is_lost_number(todo[0]):
            return BEFORE_LOOP
        if self.is_told_later(parameter):
            return LATER
        if self.is_eight_bits(todo[0]):
            return BOOL
        while todo:
            text = todo.pop()
            for name in versions(text):
                sharers = self.function.partition.get(name, {name})
                # Two names of one register in one description: one of them is not there any more.
                if name not in self.live and len(sharers) > 1 or (names & sharers) - {name}:
                    return DEAD_NAME
                if self.function.holders_at(sharers, self.block, self.index) - {name, None}:
                    return DEAD_NAME
                names.add(name)
            for temporary in set(TEMPORARY.findall(text)) - seen:
                seen.add(temporary)
                found = self.function.temporaries.get(temporary, [])
                if self.is_one_of_several(temporary, parameter):
                    return BEFORE_LOOP
                if len(found) != 1 or found[0][0] == 's=>':
                    return REMOVED
                if self.is_of_first_pass(temporary, found[0][1]):
                    return BEFORE_LOOP
                if self.is_overwritten(temporary, found[0][1]):
                    return AFTER_STORE
                todo.append(found[0][1])
        return None


def is_before_statement(line):
    return '# DEBUG' in line and 'BEGIN_STMT' not in line


def bound(lines):
    """(variable, value) of each binding."""
    for match in map(BIND.match, lines):
        if match and not match.group(1).startswith('D#'):
            yield match.group(1), match.group(3)


def is_called_at(function, number, index, call):
    """Whether the arguments before an entry are bound where the call is, if that is told."""
    from_ = index
    while from_ and '# DEBUG' in function.blocks[number][from_ - 1]:
        from_ -= 1
    positions = {
        p
        for p, line in zip(function.positions[number][from_:index], function.blocks[number]
                           [from_:index])
        if p and BIND.match(line)
    }
    return not positions or call is None or call in positions


def copies(function, name, call):
    """Every entry of an inlined copy of a function in another, called at (file, line)."""
    after = function.live_after
    for number in function.order:
        lines = function.blocks[number]
        for i, line in enumerate(lines):
            entry = ENTRY.match(line)
            if not entry or entry.group(1) != name or not is_called_at(function, number, i, call):
                continue
            live = set(after[number])
            for later in reversed(lines[i:]):
                reads, writes = function.effect(later)
                live = (live - writes) | reads
            # An argument is bound before the entry; one that was removed, after it and before the
            # first statement. What stands before that one has only its name: it belongs to another
            # function's parameter.
            binds = dict(bound(lines[:i]))
            binds.update(bound(itertools.takewhile(is_before_statement, lines[i:])))
            yield Copy(function, number, i, binds, live)


class Dumps:
    """The dumps of one build, made when they are asked for."""

    def __init__(self, folder, flags):
        self.folder, self.flags, self.functions = folder, flags, None

    def load(self):
        self.functions = {}
        for unit in ('a', 'b'):
            base = os.path.join(self.folder, unit + '.dump')
            cmd = [
                'gcc', *[f for f in self.flags if not f.startswith(('-fuse-ld', '-Wl,'))], '-w',
                '-c', unit + '.c', '-o', base + '.o', f'-fdump-tree-optimized-lineno={base}.tree',
                f'-fdump-rtl-expand-details={base}.expand',
                *[f'-fdump-rtl-{p}={base}.{p}' for p in (*IF_CONVERSIONS, 'web')]
            ]
            done = subprocess.run(cmd, cwd=self.folder, stdin=subprocess.DEVNULL,
                                  capture_output=True, check=False, timeout=300)
            if done.returncode == 0:
                functions = parse_blocks(base + '.tree')
                parse_partitions(base + '.expand', functions)
                for name in IF_CONVERSIONS:
                    parse_arms(f'{base}.{name}', functions)
                webs = gccweb.parse(f'{base}.web')
                for name, function in functions.items():
                    function.webs = webs.get(name, function.webs)
                    self.functions.setdefault(name, []).append(function)
            for path in glob.glob(glob.escape(base) + '.*'):
                os.unlink(path)

    def bug(self, symbol, function, call, parameters):
        """Why a copy of a function in the code of a symbol has a wrong value of one of the
        parameters; it is called at (file, line), None: anywhere."""
        if self.functions is None:
            self.load()
        found = set()
        # A static function of this name may be in both units; only one of them is called from that
        # line, mostly.
        for container in self.functions.get((symbol or '').removesuffix('.cold'), []):
            found |= {copy.bug(p) for copy in copies(container, function, call) for p in parameters}
            found |= {gccweb.PAGE for p in parameters if container.webs.has_wrong(p, call)}
            found |= {ONE_ARM for p in parameters if container.arms.is_halved(p, call)}
        return min(found - {None}, default=None)
