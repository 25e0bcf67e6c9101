# SPDX-License-Identifier: BSD-2-Clause
"""The C types that generated programs pass around.

A type knows three things: how C spells it, how a call log prints a value of it, and what kind of
value it is (its description for the comparison, plain data that goes into meta.json):

    {"k": "int", "bits": 16, "signed": true}       any integer, plain char too
    {"k": "bool"}
    {"k": "enum", "names": {"RED": 0, ...}, "bits": 32, "signed": false}
    {"k": "float", "bits": 32 | 64}
    {"k": "ptr", "str": false}                     logged as [object, offset in bytes]
    {"k": "struct", "members": [["x", desc], ...]} unions too, when every member can be logged
    {"k": "array", "n": 4, "elem": desc}
"""

INTS = {
    'signed char': (8, True), 'unsigned char': (8, False), 'char': (8, True),
    'short': (16, True), 'unsigned short': (16, False),
    'int': (32, True), 'unsigned': (32, False),
    'long': (64, True), 'unsigned long': (64, False), 'long long': (64, True),
}


class Type:
    """One C type; spell(name) declares a name of it."""

    def __init__(self, c, desc, kind, **extra):
        self.c = c
        self.desc = desc
        self.kind = kind
        self.__dict__.update(extra)

    def spell(self, name):
        if self.kind == 'array':
            return f'{self.elem.spell(name)}[{self.n}]'
        return self.c + ('' if self.c.endswith('*') else ' ') + name


def int_type(c):
    bits, signed = INTS[c]
    return Type(c, {'k': 'int', 'bits': bits, 'signed': signed}, 'int', bits=bits, signed=signed)


BOOL = Type('_Bool', {'k': 'bool'}, 'bool')
DOUBLE = Type('double', {'k': 'float', 'bits': 64}, 'float')
FLOAT = Type('float', {'k': 'float', 'bits': 32}, 'float')
CSTR = Type('const char *', {'k': 'ptr', 'str': True}, 'cstr')


def enum_type(tag, names):
    signed = min(names.values()) < 0
    desc = {'k': 'enum', 'names': names, 'bits': 32, 'signed': signed}
    return Type('enum ' + tag, desc, 'enum', names=names)


def pointer_to(elem, const=False):
    return Type(('const ' if const else '') + elem.c + ' *', {'k': 'ptr', 'str': False}, 'ptr',
                elem=elem, const=const)


def array_of(elem, n):
    return Type(None, {'k': 'array', 'n': n, 'elem': elem.desc}, 'array', elem=elem, n=n)


def struct_type(tag, members):
    """members: (name, Type, width of a bit-field or 0)"""
    desc = {'k': 'struct', 'members': [[n, t.desc] for n, t, _ in members]}
    return Type('struct ' + tag, desc, 'struct', tag=tag, members=members)


def struct_definition(struct):
    lines = [f'struct {struct.tag} {{']
    for name, t, width in struct.members:
        lines.append('\t' + t.spell(name) + (f' : {width}' if width else '') + ';')
    return '\n'.join(lines + ['};'])


def random_struct(rng, tag, enum, size_class):
    """size_class: 'reg' fits one register, 'pair' two, 'mem' is passed in memory"""
    small = ['signed char', 'unsigned char', 'short', 'unsigned short', 'int', 'unsigned', 'char']
    budget = {'reg': 2, 'pair': 3, 'mem': 6}[size_class]
    members = []
    for i in range(rng.randint(2, budget)):
        pick = rng.random()
        name = 'abcdefgh'[i]
        if pick < 0.45:
            members.append((name, int_type(rng.choice(small)), 0))
        elif pick < 0.65:
            members.append((name, int_type(rng.choice(['int', 'unsigned'])), rng.randint(1, 20)))
        elif pick < 0.72:
            members.append((name, enum, 0))
        elif pick < 0.80 and size_class != 'reg':
            members.append((name, rng.choice([DOUBLE, FLOAT]), 0))
        elif pick < 0.90 and size_class != 'reg':
            members.append((name, int_type(rng.choice(['long', 'unsigned long'])), 0))
        elif size_class == 'mem':
            members.append((name, array_of(int_type(rng.choice(['short', 'int'])), rng.randint(
                2, 4)), 0))
        else:
            members.append((name, BOOL, 0))
    if size_class == 'mem':
        members.append(('z', int_type('long'), 0))
        members.append(('y', int_type('long'), 0))
    return struct_type(tag, members)


def log_value(t, expr):
    """C statements that print the value of expr as JSON."""
    if t.kind == 'int':
        cast = '(long long)' if t.signed else '(unsigned long long)'
        return f'log_{"i" if t.signed else "u"}({cast}({expr}));'
    if t.kind in ('bool', 'enum'):
        return f'log_i((long long)({expr}));'
    if t.kind == 'float':
        return f'log_d({expr});'
    if t.kind == 'cstr':
        return f'log_s({expr});'
    if t.kind == 'ptr':
        return f'log_p({expr});'
    if t.kind == 'struct':
        return f'log_{t.tag}(&({expr}));'
    if t.kind == 'array':
        return (f'log_raw("["); for (int i_ = 0; i_ < {t.n}; i_++) {{ if (i_) log_raw(","); '
                + log_value(t.elem, f'({expr})[i_]') + ' } log_raw("]");')
    raise AssertionError(t.kind)


def struct_logger(struct):
    lines = [
        f'static inline void log_{struct.tag}(const struct {struct.tag} *s)', '{', '\tlog_raw("{");'
    ]
    for i, (name, t, _) in enumerate(struct.members):
        lines.append(f'\tlog_raw("{"," if i else ""}\\"{name}\\":"); {log_value(t, "s->" + name)}')
    return '\n'.join(lines + ['\tlog_raw("}");', '}'])
