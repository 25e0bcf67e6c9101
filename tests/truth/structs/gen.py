# SPDX-License-Identifier: BSD-2-Clause
"""Generates structs with all that C layout has to offer, and a program that prints each field of
one object of each.

A type is (declaration text with %s for the name, description); the description says how the value
is printed by the program and compared afterwards: ('int', bits, signed), ('char',), ('bool',),
('enum', {name: value}, bits, signed), ('float', bits), ('ptr',), ('text', n), ('array', n,
description), ('struct', [(name or None, description)]). A member without a name is an anonymous
struct or union: its members belong to the object around it.
"""
INTS = [('signed char', 8, True), ('unsigned char', 8, False), ('short', 16, True),
        ('unsigned short', 16, False), ('int', 32, True), ('unsigned int', 32, False),
        ('long', 64, True), ('unsigned long', 64, False), ('long long', 64, True),
        ('int64_t', 64, True), ('uint8_t', 8, False), ('int16_t', 16, True),
        ('uint32_t', 32, False), ('size_t', 64, False)]
ENUMS = {
    'plain': ({'ZERO': 0, 'ONE': 1, 'TWO': 2, 'MANY': 1000}, 32, False),
    'with_sign': ({'MINUS': -5, 'NIL': 0, 'PLUS': 5}, 32, True),
    'flags': ({'READ': 1, 'WRITE': 2, 'EXEC': 4, 'SYNC': 8}, 32, False),
    'small': ({'S_A': 0, 'S_B': 1, 'S_C': 200}, 8, False),
}


class Generator:
    def __init__(self, rng):
        self.rng, self.counter = rng, 0

    def name(self):
        self.counter += 1
        return f'm{self.counter}'

    def scalar(self, in_union):
        rng, pick = self.rng, self.rng.random()
        if pick < 0.50:
            c, bits, signed = rng.choice(INTS)
            return f'{c} %s', ('int', bits, signed)
        if pick < 0.58:
            return 'char %s', ('char',)
        if pick < 0.64 and not in_union:
            return '_Bool %s', ('bool',)
        if pick < 0.74:
            tag = rng.choice(list(ENUMS))
            return f'enum {tag} %s', ('enum', *ENUMS[tag])
        if pick < 0.84:
            return rng.choice([('float %s', ('float', 32)), ('double %s', ('float', 64))])
        if pick < 0.90:
            return rng.choice(
                ['void *%s', 'struct other *%s', 'int (*%s)(int)',
                 'const long *const *%s']), ('ptr',)
        if pick < 0.95:
            n = rng.randint(1, 12)
            return f'char %s[{n}]', ('text', n)
        return rng.choice([('__int128 %s', ('int', 128, True)),
                           ('unsigned __int128 %s', ('int', 128, False))])

    def bit_field(self):
        c, bits, signed = self.rng.choice(INTS)
        width = self.rng.randint(1, bits)
        return f'{c} %s : {width}', ('int', width, signed)

    def array(self, depth, in_union):
        n = self.rng.randint(1, 4)
        text, desc = self.member_type(depth - 1, in_union)
        if ' : ' in text or desc[0] in ('text', 'char'):
            # An array of char is a text, which scalar() makes.
            text, desc = 'short %s', ('int', 16, True)
        return text.replace('%s', f'%s[{n}]', 1) if '(*' not in text else 'int %s[%d]' % ('%s', n), \
            ('array', n, desc if '(*' not in text else ('int', 32, True))

    def aggregate(self, depth, union):
        rng = self.rng
        members, lines = [], []
        for _ in range(rng.randint(1, 5)):
            if rng.random() < 0.08:
                lines.append('unsigned int : %d;' % rng.choice([0, 0, 3, 7]))
            text, desc = self.member_type(depth - 1, union)
            anonymous = desc[0] == 'struct' and text.endswith('} %s') and rng.random() < 0.4
            name = None if anonymous else self.name()
            lines.append((text.replace('%s', name or '', 1)).rstrip() +
                         (self.alignment() if name else '') + ';')
            members.append((name, desc))
        packed = ' __attribute__((packed))' if rng.random() < 0.25 else ''
        return f'{"union" if union else "struct"}{packed} {{ ' + ' '.join(lines) + ' }', ('struct',
                                                                                          members)

    def alignment(self):
        return ' __attribute__((aligned(%d)))' % self.rng.choice(
            [2, 8, 16]) if self.rng.random() < 0.04 else ''

    def member_type(self, depth, in_union):
        pick = self.rng.random()
        if depth > 0 and pick < 0.18:
            union = self.rng.random() < 0.4
            text, desc = self.aggregate(depth, union or in_union)
            return ('union' + text[6:]
                    if union and text.startswith('struct') else text) + ' %s', desc
        if depth > 0 and pick < 0.28:
            return self.array(depth, in_union)
        if pick < 0.45:
            return self.bit_field()
        return self.scalar(in_union)

    def struct(self, tag):
        """(C definition, description)"""
        members, lines = [], []
        for _ in range(self.rng.randint(2, 9)):
            text, desc = self.member_type(3, False)
            name = self.name()
            lines.append('\t' + text.replace('%s', name, 1) +
                         (self.alignment() if ' : ' not in text.split('%s')[-1] else '') + ';')
            members.append((name, desc))
        packed = ' __attribute__((packed))' if self.rng.random() < 0.2 else ''
        return f'struct{packed} {tag} {{\n' + '\n'.join(lines) + '\n};\n', ('struct', members)


def fix(desc, place):
    """C statements that give a value a sane content where random bytes would have none."""
    kind = desc[0]
    if kind == 'bool':
        return [f'{place} = next() & 1;']
    if kind == 'text':
        return [f'fill_text({place}, {desc[1]});']
    if kind == 'array':
        return [line for i in range(desc[1]) for line in fix(desc[2], f'{place}[{i}]')]
    if kind == 'struct':
        return [
            line for name, d in desc[1]
            for line in fix(d, place if name is None else f'{place}.{name}')
        ]
    return []


def show(desc, place):
    """C statements that print a value as JSON."""
    kind = desc[0]
    if kind in ('int', 'enum'):
        bits, signed = (desc[1], desc[2]) if kind == 'int' else (desc[2], desc[3])
        return [f'show_int((__int128)({place}), {1 if signed else 0});'
                ] if bits < 128 or signed else [f'show_u128({place});']
    if kind == 'char':
        return [f'show_int((unsigned char)({place}), 0);']
    if kind == 'bool':
        return [f'show_int({place}, 0);']
    if kind == 'float':
        return [f'show_double({place});']
    if kind == 'ptr':
        return [f'show_u128((unsigned long)({place}));']
    if kind == 'text':
        return [f'show_text({place}, {desc[1]});']
    if kind == 'array':
        lines = ['raw("[");']
        for i in range(desc[1]):
            lines += (['raw(",");'] if i else []) + show(desc[2], f'{place}[{i}]')
        return lines + ['raw("]");']
    lines = ['raw("{");']
    return lines + show_members(desc, place, [True]) + ['raw("}");']


def show_members(desc, place, first):
    lines = []
    for name, d in desc[1]:
        if name is None:
            lines += show_members(d, place, first)
            continue
        lines.append(f'raw("{"" if first[0] else ","}\\"{name}\\":");')
        first[0] = False
        lines += show(d, f'{place}.{name}')
    return lines


RUNTIME = r'''
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static FILE *out;
static uint64_t state = SEED;
volatile long sink;

static unsigned next(void)
{
	state = state * 6364136223846793005ul + 1442695040888963407ul;
	return state >> 40;
}

static void raw(const char *text) { fputs(text, out); }

static void show_u128(unsigned __int128 v)
{
	char digits[48], *p = digits + sizeof(digits) - 1;

	*p = 0;
	do
		*--p = '0' + (int)(v % 10);
	while (v /= 10);
	raw(p);
}

static void show_int(__int128 v, int is_signed)
{
	if (is_signed && v < 0) {
		raw("-");
		show_u128(-(unsigned __int128)v);
		return;
	}
	show_u128((unsigned __int128)v);
}

static void show_double(double v) { fprintf(out, "\"%a\"", v); }

static void show_text(const char *s, int n)
{
	raw("\"");
	for (int i = 0; i < n && s[i]; i++)
		fprintf(out, "\\u%04x", (unsigned char)s[i]);
	raw("\"");
}

static void fill_text(char *s, int n)
{
	int len = (int)(next() % (unsigned)(n + 1));

	memset(s, 0, (size_t)n);
	for (int i = 0; i < len; i++)
		s[i] = (char)(' ' + next() % 95);
}

static void fill(void *p, size_t n)
{
	int style = (int)(next() % 4);

	for (size_t i = 0; i < n; i++)
		((unsigned char *)p)[i] = style == 0 ? 0 : style == 1 && i % 4 ? 0 : (unsigned char)next();
}
'''


def program(structs, seed):
    """The C text for [(tag, definition, description)]."""
    parts = [RUNTIME.replace('SEED', str(seed))]
    for tag, (names, bits, _) in ENUMS.items():
        packed = ' __attribute__((packed))' if bits == 8 else ''
        parts.append(f'enum{packed} {tag} {{ ' + ', '.join(f'{n} = {v}'
                                                           for n, v in names.items()) + ' };\n')
    for tag, definition, desc in structs:
        parts.append(definition)
        parts.append(f'''
__attribute__((noinline)) void see_{tag}(int round, const struct {tag} *p)
{{
	sink += round + *(const unsigned char *)p;
	__asm__ volatile("" ::: "memory");
}}

static void print_{tag}(const struct {tag} *p)
{{
	fprintf(out, "{{\\"struct\\":\\"{tag}\\",\\"size\\":%zu,\\"fields\\":", sizeof(*p));
	''' + '\n\t'.join(show(desc, '(*p)')) + '''
	raw("}\\n");
}
''')
    parts.append(
        'int main(int argc, char **argv)\n{\n\tif (argc < 2 || !(out = fopen(argv[1], "w")))\n\t\treturn 2;\n'
    )
    for tag, _, desc in structs:
        parts.append(
            f'\tfor (int i = 0; i < 3; i++) {{\n\t\tstatic struct {tag} x;\n\t\tfill(&x, sizeof(x));\n'
            + ''.join(f'\t\t{line}\n' for line in fix(desc, 'x')) +
            f'\t\tsee_{tag}(i, &x);\n\t\tprint_{tag}(&x);\n\t}}\n')
    return ''.join(parts) + '\treturn fclose(out) != 0;\n}\n'
