# SPDX-License-Identifier: BSD-2-Clause
"""Programs whose parameters tell themselves whether a value is theirs.

A program is generated from a seed: functions that call each other, inlined or not, recursively,
through pointers, as tail calls, with loops and switches, and that change their parameters. Each
parameter has a number of its own, and whatever value it holds is that number modulo 1009. So a
value that belongs to something else is found with a probability of 1008 in 1009, without asking a
debugger.

Addresses of parameters are given to a function that does not read there, so that GCC removes their
stores; remainders leave quotients in registers, which GCC's -fweb confuses with them.
"""
import random

MODULUS = 1009
SMALL = 97  # of a char
TYPES = [
    'int', 'long', 'unsigned', 'short', 'char', 'unsigned long', 'struct two', 'struct big',
    'double'
]
HEAD = """
#include <alloca.h>
#include <sys/prctl.h>
#include <unistd.h>
struct two { long a; int b; };
struct big { long a[5]; int b; };
static volatile unsigned long state = 88172645463325252ul;
static volatile long sink;
static unsigned long rnd(void) { unsigned long x = state; x ^= x << 13; x ^= x >> 7; x ^= x << 17; return state = x; }
#define R(n) ((long)(rnd() % (n)))
__attribute__((noinline)) static void touch(void *p) { sink += (long)p; }
"""


class Program:
    """The source, and the number of each parameter."""

    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.n = 24
        self.params = [[rng.choice(TYPES)
                        for _ in range(rng.randrange(1, 8))]
                       for _ in range(self.n)]
        self.kinds = [
            rng.choice(['noinline', 'noinline', 'noinline', '', 'always_inline'])
            for _ in range(self.n)
        ]

    def number(self, j, k):
        return j * 8 + k + 1

    def value(self, j, k):
        """An expression with the parameter's number, of its type."""
        kind, n = self.params[j][k], self.number(j, k)
        more = self.rng.choice(['0', 'R(15)', 'R(15)', 'i % 13'])
        if kind == 'char':
            return str(n % SMALL)
        if kind == 'struct two':
            return f'(struct two){{{n} + {MODULUS}l * ({more}), {n} + {MODULUS} * 3}}'
        if kind == 'struct big':
            return f'(struct big){{{{{n} + {MODULUS}l * ({more}), {n}, {n}, {n}, {n}}}, {n}}}'
        return f'{n} + {MODULUS} * ({more})'

    def prototype(self, j):
        kind = self.kinds[j]
        attribute = {'': 'static', 'noinline': '__attribute__((noinline)) static',
                     'always_inline': 'static inline __attribute__((always_inline))'}[kind]
        return f'{attribute} long f{j}(' + ', '.join(f'{t} p{k}'
                                                     for k, t in enumerate(self.params[j])) + ')'

    def call(self, j, callee):
        """A call of a later function, or of any that counts the depth down."""
        args = []
        for k, t in enumerate(self.params[callee]):
            same = [i for i, u in enumerate(self.params[j])
                    if u == t and self.rng.random() < 0.4] if t in ('int', 'long', 'unsigned',
                                                                    'unsigned long') else []
            args.append(f'p{same[0]} + {self.number(callee, k) - self.number(j, same[0])}'
                        if same else self.value(callee, k))
        return f'f{callee}(' + ', '.join(args) + ')'

    def body(self, j):
        rng, lines = self.rng, ['long i = R(7), r = 0;']
        for k, t in enumerate(self.params[j]):
            use = {'struct two': f'p{k}.a + p{k}.b', 'struct big': f'p{k}.a[i % 5] + p{k}.b'}.get(
                t, f'p{k}')
            choice = rng.randrange(8)
            if choice == 0:
                lines.append(f'sink += (long)({use});')
            elif choice == 1:
                lines.append(f'touch(&p{k});')
            elif choice == 2 and t in ('int', 'long', 'unsigned'):
                lines.append(f'if (i & 1) p{k} += {MODULUS};')
            elif choice == 3:
                lines.append(f'r += (long)({use}) * i;')
            elif choice >= 6 and t in ('int', 'long', 'unsigned'):
                lines.append(f'p{k} %= {MODULUS} * {rng.choice([3, 7, 11, 1000])};')
            elif choice == 4 and t in ('int', 'long'):
                lines.append(
                    f'for (int q = 0; q < i; q++) {{ p{k} += {MODULUS}; sink += p{k} >> q; }}')
        later = [c for c in range(j + 1, self.n)]
        for callee in rng.sample(later, min(len(later), rng.randrange(0, 4))):
            lines.append(
                rng.choice([
                    f'r += {self.call(j, callee)};', f'if (R(3)) r += {self.call(j, callee)};',
                    f'for (i = 0; i < 2; i++) r += {self.call(j, callee)};'
                ]))
        if rng.random() < 0.3:
            lines.append(
                'switch (i) { case 0: r += 3; break; case 1: sink--; break; case 2: r ^= 5; break; case 3: sink *= 3; break; case 4: r--; break; default: sink++; }'
            )
        # Inlined into a loop it would take more and more of the stack.
        if rng.random() < 0.2 and self.kinds[j] == 'noinline':
            lines.append('touch(alloca(16 + (i & 7) * 16));')
        if later and rng.random() < 0.4:
            lines.append(f'return {self.call(j, rng.choice(later))};')
        else:
            lines.append('return r + sink;')
        rng.shuffle(lines[1:-1])
        return self.prototype(j) + '\n{\n\t' + '\n\t'.join(lines) + '\n}\n'

    def source(self):
        text = HEAD + ''.join(self.prototype(j) + ';\n' for j in range(self.n))
        text += ''.join(self.body(j) for j in range(self.n))
        calls = '\n\t\t'.join(
            f'case {j}: sink += {self.call_from_main(j)}; break;' for j in range(self.n))
        return text + f'int main(void)\n{{\n\tprctl(PR_SET_PDEATHSIG, 9);\n\tfor (long i = 0;; i++)\n\t\tswitch (R({self.n})) {{\n\t\t{calls}\n\t\t}}\n}}\n'

    def call_from_main(self, j):
        return f'f{j}(' + ', '.join(self.value(j, k) for k in range(len(self.params[j]))) + ')'

    def is_right(self, function, name, value):
        j, k = int(function[1:]), int(name[1:])
        n, kind = self.number(j, k), self.params[j][k]
        if kind == 'char':
            return value == chr(n % SMALL) or value == n % SMALL
        if kind == 'struct two':
            return value['a'] % MODULUS == n and value['b'] % MODULUS == n
        if kind == 'struct big':
            return all(a % MODULUS == n for a in value['a']) and value['b'] == n
        return value % MODULUS == n
