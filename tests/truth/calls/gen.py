# SPDX-License-Identifier: BSD-2-Clause
"""Generates C programs whose every call can be checked, one by one.

The same seed gives the same program, byte for byte; emit.py writes it down.

The idea. Each call carries a serial number, an ordinary parameter that the compiler may optimise
like any other, and most functions store it in a volatile first of all, so that it is needed at the
entry. Built with -DLOG (at -O0) the first statement of every function writes function, serial and
all arguments to a log. Built without, and optimised, the program does exactly the same calls with
exactly the same arguments, as far as the C standard is concerned. So what a tracer prints for a
call of the optimised program can be looked up in the log by its serial.

To make that true the programs have defined behaviour only: arithmetic in unsigned long and a cast
back, masked indices, no side effect inside an argument list, no uninitialised value. Both builds
print the same checksum, which is tested.

A serial is made in two ways. Counted: ++serial_counter, which ties calls to their order. Derived:
serial * 37 + K, K being unique to the call site, so that nothing but the arguments orders calls and
constants propagate through them.

The number of calls is bounded when the program is made: a function's cost is one plus the cost of
what it calls, times the trips of the loops around, and callees are chosen that fit the budget.
Functions call only functions with a greater number (and themselves, with a depth that counts down),
so that main and f0 are the outermost ones.
"""
import json
import random

import ctypes_gen as ct

FUNCTION_COST_MAX = 48
# An upper bound; branches not taken and early returns leave a third to a half of it.
CALLS_PER_PROGRAM = 5000
WORDS = [
    'cairn', 'trail', 'a', '', 'stone pile', 'quo"te', 'back\\slash', 'tab\tbed',
    'longer text, still short'
]


def c_string(text):
    return json.dumps(text)


class Param:
    def __init__(self, name, t, role='plain', fixed=None):
        self.name, self.t, self.role, self.fixed = name, t, role, fixed


class Function:
    def __init__(self, index, name):
        self.index, self.name = index, name
        self.params, self.body = [], []
        self.cost = 1
        self.unit, self.linkage, self.attrs = 'a', 'static', []
        self.ret = None
        self.shape = 'plain'
        self.twin = None
        self.called = False

    def signature(self):
        args = ', '.join(p.t.spell(p.name) for p in self.params)
        ret = self.ret.spell('') if self.ret else 'void '
        words = [self.linkage] if self.linkage else []
        words += self.attrs
        return ' '.join(words + [f'{ret.strip()} {self.name}({args})'])


class Scope:
    """What an expression may use: variables by type kind."""

    def __init__(self, parent=None):
        self.vars = list(parent.vars) if parent else []
        self.trips = parent.trips if parent else 1
        self.loop_vars = list(parent.loop_vars) if parent else []
        # Never written to: they bound a loop or a recursion, or identify the call.
        self.frozen = set(parent.frozen) if parent else {'serial', 'n', 'depth'}


class Generator:
    def __init__(self, seed, n_functions=64):
        self.rng = random.Random(seed)
        self.seed, self.n = seed, n_functions
        self.counter = 0
        self.functions = []
        self.make_types()

    def fresh(self, prefix):
        self.counter += 1
        return f'{prefix}{self.counter}'

    # Types and objects

    def make_types(self):
        rng = self.rng
        self.enum = ct.enum_type('color', {'RED': 0, 'GREEN': 1, 'BLUE': 5, 'BLACK': 1000})
        self.senum = ct.enum_type('level', {'LOW': -2, 'MID': 0, 'HIGH': 7})
        self.ints = {c: ct.int_type(c) for c in ct.INTS}
        self.structs = [ct.random_struct(rng, f's{i}', self.enum, size)
                        for i, size in enumerate(['reg', 'reg', 'pair', 'pair', 'mem', 'mem'])]
        self.elems = [self.ints[c] for c in ('int', 'unsigned char', 'short', 'long')]
        self.objects = [('arr_' + t.c.replace(' ', '_'), t, 4096) for t in self.elems]
        self.objects += [('pool_' + s.tag, s, 512) for s in self.structs]

    def object_of(self, elem):
        return next(name for name, t, _ in self.objects if t.c == elem.c)

    def random_type(self):
        rng, pick = self.rng, self.rng.random()
        if pick < 0.50:
            common = ['int', 'unsigned', 'long', 'unsigned long']
            return self.ints[rng.choice(common if rng.random() < 0.6 else list(ct.INTS))]
        if pick < 0.56:
            return ct.BOOL
        if pick < 0.62:
            return rng.choice([self.enum, self.senum])
        if pick < 0.67:
            return rng.choice([ct.DOUBLE, ct.FLOAT])
        if pick < 0.73:
            return ct.CSTR
        if pick < 0.83:
            return ct.pointer_to(rng.choice(self.elems), rng.random() < 0.4)
        if pick < 0.91:
            return ct.pointer_to(rng.choice(self.structs), rng.random() < 0.4)
        return rng.choice(self.structs)

    # Expressions: unsigned long unless said otherwise

    def constant(self):
        rng = self.rng
        return rng.choice([
            str(rng.randint(0, 9)) + 'ul',
            str(rng.randint(10, 300)) + 'ul',
            hex(rng.getrandbits(33)) + 'ul'
        ])

    def member_atom(self, base, struct):
        plain = [(n, t) for n, t, _ in struct.members if t.kind in ('int', 'bool', 'enum')]
        if not plain:
            return self.constant()
        return f'(unsigned long){base}{self.rng.choice(plain)[0]}'

    def atom(self, scope):
        if not scope.vars or self.rng.random() < 0.18:
            return self.constant()
        name, t = self.rng.choice(scope.vars)
        if t.kind in ('int', 'bool', 'enum'):
            return f'(unsigned long){name}'
        if t.kind == 'float':
            return f'(unsigned long)(long){name}'
        if t.kind == 'cstr':
            return f'(unsigned long){name}[0]'
        if t.kind == 'struct':
            return self.member_atom(name + '.', t)
        if t.elem.kind == 'struct':
            return self.member_atom(name + '->', t.elem)
        return f'(unsigned long){name}[{self.rng.randint(0, 3)}]'

    def expr(self, scope, depth=2):
        rng = self.rng
        if depth == 0 or rng.random() < 0.25:
            return self.atom(scope)
        a, b = self.expr(scope, depth - 1), self.expr(scope, depth - 1)
        pick = rng.random()
        if pick < 0.6:
            return f'({a} {rng.choice(["+", "-", "*", "^", "&", "|"])} {b})'
        if pick < 0.8:
            return f'({a} {rng.choice([">>", "<<"])} {rng.randint(1, 13)})'
        if pick < 0.9:
            return f'({a} {rng.choice(["<", ">", "==", "!="])} {b} ? {a} : {self.constant()})'
        return f'({a} % {rng.randint(3, 97)}ul)'

    def condition(self, scope):
        kind = self.rng.random()
        if kind < 0.4:
            return f'{self.expr(scope, 1)} & {self.rng.choice([1, 2, 3])}ul'
        if kind < 0.7:
            return f'(long){self.expr(scope, 1)} {self.rng.choice(["<", ">", "!="])} {self.rng.randint(-3, 40)}'
        return f'{self.expr(scope, 1)} % {self.rng.randint(2, 7)}ul != {self.rng.randint(0, 2)}ul'

    def variable_of(self, t, scope):
        same = [name for name, vt in scope.vars if vt.c == t.c]
        if t.kind == 'ptr' and t.const:
            same += [name for name, vt in scope.vars
                     if vt.kind == 'ptr' and vt.elem.c == t.elem.c]
        return self.rng.choice(same) if same else None

    def value(self, t, scope):
        """A C expression of type t."""
        rng = self.rng
        var = self.variable_of(t, scope)
        if var and rng.random() < 0.45:
            if t.kind == 'ptr' and rng.random() < 0.3:
                return f'{var} + {rng.randint(1, 2)}'
            return var
        if t.kind == 'int':
            return f'({t.c}){rng.randint(-9, 100)}' if rng.random(
            ) < 0.25 else f'({t.c}){self.expr(scope)}'
        if t.kind == 'bool':
            return rng.choice(['1', '0', f'({self.condition(scope)}) != 0'])
        if t.kind == 'enum':
            a, b = rng.choice(list(t.names)), rng.choice(list(t.names))
            return rng.choice([a, f'({self.condition(scope)}) ? {a} : {b}'])
        if t.kind == 'float':
            return rng.choice([
                f'({t.c}){rng.randint(-8, 8)}.25',
                f'({t.c})(int)({self.expr(scope)} & 0xfffful) * ({t.c})0.5'
            ])
        if t.kind == 'cstr':
            a, b = c_string(rng.choice(WORDS)), c_string(rng.choice(WORDS))
            return rng.choice([a, f'({self.condition(scope)}) ? {a} : {b}'])
        if t.kind == 'ptr':
            mask = 7 if t.elem.kind == 'struct' else 31
            index = str(rng.randint(0,
                                    mask)) if rng.random() < 0.3 else f'{self.expr(scope)} & {mask}'
            return f'&{self.object_of(t.elem)}[{index}]'
        return self.struct_value(t, scope)

    def struct_value(self, t, scope):
        pointers = [n for n, vt in scope.vars if vt.kind == 'ptr' and vt.elem.c == t.c]
        pick = self.rng.random()
        if pointers and pick < 0.3:
            return '*' + self.rng.choice(pointers)
        if pick < 0.5:
            return f'{self.object_of(t)}[{self.expr(scope)} & 7]'
        return self.compound(t, scope)

    def compound(self, t, scope):
        parts = []
        for name, mt, _ in t.members:
            if mt.kind == 'array':
                items = ', '.join(self.value(mt.elem, scope) for _ in range(mt.n))
                parts.append(f'.{name} = {{{items}}}')
            else:
                parts.append(f'.{name} = {self.value(mt, scope)}')
        return f'({t.c}){{{", ".join(parts)}}}'

    # Statements: lists of lines

    def declare(self, scope):
        t = self.random_type()
        name = self.fresh('v')
        line = f'{t.spell(name)} = {self.value(t, scope)};'
        scope.vars.append((name, t))
        return [line]

    def modify(self, scope):
        """Change a variable, parameters not excepted."""
        candidates = [(n, t) for n, t in scope.vars if n not in scope.frozen]
        if not candidates:
            return self.sink(scope)
        name, t = self.rng.choice(candidates)
        step = self.rng.choice(['++', '--'])
        if t.kind == 'int' and self.rng.random() < 0.5:
            if not t.signed:
                return [f'{name}{step};']
            return [f'{name} = ({t.c})((unsigned long){name} {step[0]} 1);']
        if t.kind == 'ptr':
            return [f'{name}++;']
        if t.kind == 'struct':
            return self.member_write(name + '.', t, scope)
        return [f'{name} = {self.value(t, scope)};']

    def member_write(self, base, struct, scope):
        plain = [(n, t) for n, t, _ in struct.members if t.kind != 'array']
        name, t = self.rng.choice(plain)
        return [f'{base}{name} = {self.value(t, scope)};']

    def write(self, scope):
        pointers = [(n, t) for n, t in scope.vars if t.kind == 'ptr' and not t.const]
        if not pointers:
            return self.sink(scope)
        name, t = self.rng.choice(pointers)
        if t.elem.kind == 'struct':
            return self.member_write(name + '->', t.elem, scope)
        return [f'{name}[{self.rng.randint(0, 3)}] = ({t.elem.c}){self.expr(scope)};']

    def sink(self, scope):
        return [f'sink += {self.expr(scope)};']

    def branch(self, f, scope, depth):
        lines = [f'if ({self.condition(scope)}) {{'] + self.block(f, Scope(scope), depth - 1,
                                                                  self.rng.randint(1, 2)) + ['}']
        if self.rng.random() < 0.4:
            lines[-1] = '} else {'
            lines += self.block(f, Scope(scope), depth - 1, self.rng.randint(1, 2)) + ['}']
        return lines

    def loop(self, f, scope, depth):
        trips = self.rng.randint(2, 5)
        i = self.fresh('i')
        bound = str(trips) if self.rng.random() < 0.6 else f'(int)({self.expr(scope)} % {trips}ul)'
        inner = Scope(scope)
        inner.trips *= trips
        inner.vars.append((i, self.ints['int']))
        inner.loop_vars.append(i)
        inner.frozen.add(i)
        limit = self.fresh('n')
        lines = [f'int {limit} = {bound};', f'for (int {i} = 0; {i} < {limit}; {i}++) {{']
        return lines + self.block(f, inner, depth - 1, self.rng.randint(1, 3)) + ['}']

    def switch(self, f, scope, depth):
        n = self.rng.randint(3, 6)
        lines = [f'switch ({self.expr(scope)} % {n + 1}ul) {{']
        for k in range(n):
            lines += [f'case {k}:'] + [
                '\t' + x for x in ['{'] + self.block(f, Scope(scope), 0, 1) + ['}', 'break;']
            ]
        return lines + ['}']

    def serial_for(self, callee, scope, lines):
        t = callee.params[self.serial_index(callee)].t
        if self.rng.random() < 0.35:
            name = self.fresh('s')
            lines.append(f'unsigned {name} = ++serial_counter;')
            return f'({t.c}){name}'
        salt = self.rng.randint(1, 0xffffff)
        text = f'({t.c})serial * 37u + {salt}u' if scope.vars and scope.vars[0][
            0] == 'serial' else f'{hex(salt << 7)}u'
        for k, i in enumerate(scope.loop_vars):
            text += f' + ({t.c}){i} * {1000003 + 2 * k}u'
        return text

    @staticmethod
    def serial_index(f):
        return next(i for i, p in enumerate(f.params) if p.name == 'serial')

    def reachable(self, f, scope):
        room = FUNCTION_COST_MAX - f.cost
        def visible(g):
            if f.unit == 'h':
                return g.unit == 'h'
            return g.unit in ('h', f.unit) or g.linkage == ''
        return [g for g in self.functions if g.index > f.index and visible(g)
                and g.cost * scope.trips <= room]

    def call(self, f, scope, tail=False):
        callees = self.reachable(f, scope)
        if not callees:
            return self.sink(scope)
        # Near ones first, so that calls nest; and often the same ones, so that they have several
        # copies.
        near = sorted(callees, key=lambda g: g.index)[:14]
        g = self.rng.choice(near if self.rng.random() < 0.7 else callees)
        f.cost += g.cost * scope.trips
        return self.call_of(g, scope, tail)

    def call_of(self, g, scope, tail=False, overrides=None):
        g.called = True
        lines, args = [], []
        serial = self.serial_for(g, scope, lines)
        for p in g.params:
            if overrides and p.name in overrides:
                args.append(overrides[p.name])
            elif p.name == 'serial':
                args.append(serial)
            elif p.fixed is not None:
                args.append(p.fixed)
            elif p.role in ('count', 'depth'):
                args.append(f'({p.t.c})({self.expr(scope)} & {7 if p.role == "count" else 3}ul)')
            else:
                args.append(self.value(p.t, scope))
        return lines + self.use_result(g, f'{g.name}({", ".join(args)})', scope, tail)

    def use_result(self, g, text, scope, tail):
        if tail:
            return [f'return {text};']
        if g.ret is None or self.rng.random() < 0.2:
            return [f'{text};']
        if g.ret.kind == 'struct' or self.rng.random() < 0.5:
            name = self.fresh('v')
            scope.vars.append((name, g.ret))
            return [f'{g.ret.spell(name)} = {text};']
        if g.ret.kind == 'float':
            return [f'sink += (unsigned long)(long){text};']
        return [f'sink += (unsigned long){text};']

    def block(self, f, scope, depth, n):
        lines = []
        for _ in range(n):
            pick = self.rng.random()
            if pick < 0.34:
                lines += self.call(f, scope)
            elif pick < 0.46:
                lines += self.modify(scope)
            elif pick < 0.58:
                lines += self.declare(scope)
            elif pick < 0.68:
                lines += self.write(scope)
            elif pick < 0.78 or depth <= 0:
                lines += self.sink(scope)
            elif pick < 0.88:
                lines += self.branch(f, scope, depth)
            elif pick < 0.96:
                lines += self.loop(f, scope, depth)
            else:
                lines += self.switch(f, scope, depth)
        return ['\t' + line for line in lines]

    # Functions

    def make_params(self, f):
        rng = self.rng
        if f.shape == 'walk':
            elem = rng.choice(self.elems)
            f.params = [
                Param('p', ct.pointer_to(elem, True)),
                Param('n', self.ints[rng.choice(['int', 'unsigned', 'long'])], 'count')
            ]
        elif f.shape == 'recursive':
            f.params = [
                Param('depth', self.ints[rng.choice(['int', 'unsigned', 'unsigned char'])], 'depth')
            ]
        while len(f.params) < 1 or rng.random() < 0.72:
            if len(f.params) >= 8:
                break
            t = self.random_type()
            fixed = self.value(t,
                               Scope()) if rng.random() < 0.1 and t.kind in ('int', 'enum', 'cstr',
                                                                             'float') else None
            f.params.append(Param(self.fresh('a'), t, 'plain', fixed))
        serial = Param('serial', self.ints['unsigned long' if rng.random() < 0.2 else 'unsigned'])
        f.params.insert(rng.choice([0, 0, rng.randint(0, len(f.params))]), serial)

    def choose_linkage(self, f):
        rng, pick = self.rng, self.rng.random()
        if pick < 0.35:
            f.linkage, f.unit = 'static inline', 'h'
            if rng.random() < 0.25 and f.shape != 'recursive':
                f.attrs = ['__attribute__((always_inline))']
        elif pick < 0.72:
            f.linkage, f.unit = 'static', rng.choice('ab')
        else:
            f.linkage, f.unit = '', rng.choice('ab')
        if f.unit != 'h' and rng.random() < 0.15:
            f.attrs = ['__attribute__((noinline))']
        if rng.random() < 0.05:
            f.attrs.append('__attribute__((cold))')

    def scope_of(self, f):
        scope = Scope()
        scope.vars = [('serial', f.params[self.serial_index(f)].t)]
        scope.vars += [(p.name, p.t)
                       for p in f.params
                       if p.name != 'serial' and self.rng.random() < 0.85]
        return scope

    def returned(self, f, scope):
        if f.ret is None:
            return ['return;']
        return [f'return {self.value(f.ret, scope)};']

    def prologue(self, f, scope):
        """What comes before the store of the serial: parameters change there."""
        lines = []
        while self.rng.random() < 0.3:
            lines += self.modify(scope)
        if self.rng.random() < 0.85:
            lines.append('current_serial = serial;')
        return lines

    def body_pure(self, f, scope):
        lines = self.modify(scope) if self.rng.random() < 0.4 else []
        while self.rng.random() < 0.5:
            lines += self.declare(scope)
        return lines + self.returned(f, scope)

    def body_walk(self, f, scope):
        lines = self.prologue(f, scope) + ['unsigned long sum = 0;']
        test = 'n--' if self.rng.random() < 0.5 else '(long)n-- > 0'
        lines += [f'while ({test})', '\tsum += (unsigned long)*p++;', 'sink += sum;']
        scope.vars.append(('sum', self.ints['unsigned long']))
        return lines + [x[1:] for x in self.block(f, scope, 1, 1)] + self.returned(f, scope)

    def body_recursive(self, f, scope):
        lines = self.prologue(f, scope) + ['if (depth == 0)', '\t' + self.returned(f, scope)[0]]
        lines += [x[1:] for x in self.block(f, scope, 1, 1)]
        call = self.call_of(f, scope, self.rng.random() < 0.5 and f.ret is not None,
                            {'depth': f'({f.params_by_name["depth"].c})(depth - 1)'})
        f.cost *= 4
        return lines + call + ([] if call[-1].startswith('return') else self.returned(f, scope))

    def body_early(self, f, scope):
        lines = [f'if ({self.condition(scope)})', '\t' + self.returned(f, Scope(scope))[0]]
        lines += self.prologue(f, scope) if self.rng.random() < 0.8 else []
        return lines + [x[1:] for x in self.block(f, scope, 2, self.rng.randint(4, 8))
                        ] + self.returned(f, scope)

    def body_wrap(self, f, scope):
        lines = self.prologue(f, scope) if self.rng.random() < 0.5 else []
        same = [
            g for g in self.reachable(f, scope)
            if f.ret is not None and g.ret is not None and g.ret.c == f.ret.c
        ]
        if same:
            g = self.rng.choice(same)
            f.cost += g.cost
            return lines + self.call_of(g, scope, True)
        return lines + self.call(f, scope) + self.returned(f, scope)

    def body_plain(self, f, scope):
        lines = self.prologue(f, scope)
        lines += [x[1:] for x in self.block(f, scope, 2, self.rng.randint(1, 5))]
        return lines + self.returned(f, scope)

    def make_function(self, index):
        rng = self.rng
        f = Function(index, f'f{index}')
        f.shape = rng.choice(
            ['plain'] * 5 + ['early', 'early', 'walk', 'wrap', 'wrap', 'recursive', 'pure', 'pure'])
        f.ret = None if rng.random() < 0.25 and f.shape != 'pure' else rng.choice(
            [self.ints['int']] * 3 + [
                self.ints['long'], self.ints['unsigned'], ct.BOOL, self.enum, ct.DOUBLE,
                self.structs[0], self.structs[2], self.structs[4], self.ints['short']
            ])
        self.make_params(f)
        f.params_by_name = {p.name: p.t for p in f.params}
        self.choose_linkage(f)
        f.body = getattr(self, 'body_' + f.shape)(f, self.scope_of(f))
        self.add_promise(f)
        self.functions.append(f)
        return f

    def add_promise(self, f):
        """Attributes that let calls be merged and moved: const only where no memory is read."""
        if f.shape != 'pure' or self.rng.random() < 0.6:
            return
        reads_memory = any(c in line for line in f.body for c in ('[', '->', 'return *', '= *'))
        promise = 'ATTR_PURE' if reads_memory else self.rng.choice(['ATTR_CONST', 'ATTR_PURE'])
        # One with nothing to modify has a sink instead, and keeps no promise.
        if not any('sink' in line for line in f.body):
            f.attrs.append(promise)

    def make_twin(self, f, index):
        """A second function with the same code, for the linkers and compilers that merge them."""
        g = Function(index, f'f{index}')
        g.__dict__.update(
            {k: v
             for k, v in f.__dict__.items()
             if k not in ('index', 'name', 'called')})
        f.twin = g.twin = f.name
        f.attrs = g.attrs = ['__attribute__((noinline))']
        self.functions.append(g)

    def generate(self):
        index = self.n - 1
        while index >= 0:
            f = self.make_function(index)
            index -= 1
            if f.shape in ('plain', 'early',
                           'wrap') and f.unit != 'h' and index > 0 and self.rng.random() < 0.15:
                self.make_twin(f, index)
                index -= 1
        self.main = self.make_main()

    def make_main(self):
        rng, lines, total = self.rng, [], 0
        scope = Scope()
        todo = [g for g in self.functions if g.unit in 'ha' or g.linkage == '']
        order = [g for g in todo if not g.called] + [rng.choice(todo) for _ in range(250)]
        for g in order:
            trips = rng.randint(1, 9)
            if total + g.cost * trips > CALLS_PER_PROGRAM:
                trips = 1
            if total + g.cost * trips > CALLS_PER_PROGRAM:
                continue
            total += g.cost * trips
            if trips == 1:
                lines += ['{'] + ['\t' + x for x in self.call_of(g, Scope(scope))] + ['}']
                continue
            inner, i = Scope(), self.fresh('i')
            inner.vars, inner.loop_vars = [(i, self.ints['int'])], [i]
            bound = str(trips) if rng.random() < 0.5 else f'volatile_{trips}'
            lines += [f'for (int {i} = 0; {i} < {bound}; {i}++) {{'
                      ] + ['\t' + x for x in self.call_of(g, inner)] + ['}']
        return lines
