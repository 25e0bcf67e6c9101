# SPDX-License-Identifier: BSD-2-Clause
"""Functions with known arguments: a program that logs its own calls, and BPF programs that read
the arguments at each of them.

Each function has a body and an inlined copy. Its arguments are of all sizes: integers, pointers,
structs by value. The program logs the bytes of what it passes, before each call.
"""
import random

PRELUDE = """
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
enum mood { GLAD = -3, SAD = 4 };
static FILE *log_;
static volatile unsigned long sink;
static void log_bytes(const void *from, unsigned size, int is_signed)
{
	unsigned char bytes[16] = {0};
	memcpy(bytes, from, size);
	if (is_signed && size <= 8 && bytes[size - 1] & 0x80)
		memset(bytes + size, 0xff, 16 - size);
	fputs(" =", log_);
	for (int i = 0; i < 16; i++) fprintf(log_, "%02x", bytes[i]);
}
/* Reads the bytes, so that they are passed, and changes the caller's knowledge of them. */
static __attribute__((noinline)) void eat(const void *p, unsigned size)
{
	for (unsigned i = 0; i < size; i++) sink += ((const volatile unsigned char *)p)[i];
}
"""

SCALARS = [("signed char", 1, 1), ("unsigned char", 1, 0), ("bool", 1, 0),
           ("short", 2, 1), ("unsigned short", 2, 0), ("int", 4, 1),
           ("unsigned", 4, 0), ("enum mood", 4, 1), ("long", 8, 1),
           ("unsigned long", 8, 0), ("const char *", 8, 0),
           ("unsigned __int128", 16, 0)]


def struct_of(size, shape):
    if shape == "bytes":
        return f"struct b{size} {{ unsigned char b[{size}]; }};"
    n, rest = divmod(size, shape)
    tail = f" unsigned char t[{rest}];" if rest else ""
    word = {2: "short", 4: "int", 8: "long"}[shape]
    return f"struct w{size}_{shape} {{ {word} w[{n}];{tail} }} __attribute__((packed));"


def structs():
    """Of all sizes from 1 to 16, and one that is too large."""
    ret = [(f"struct b{size}", size, struct_of(size, "bytes"))
           for size in range(1, 18)]
    ret += [(f"struct w{size}_{word}", size, struct_of(size, word))
            for word, size in ((2, 4), (2, 6), (4, 8), (4, 12), (8, 16))]
    return ret


class Function:

    def __init__(self, number, params):
        self.number = number
        self.params = params  # (type, size, is_signed)

    def name(self, kind):
        return f"{kind}_{self.number}"

    def args(self):
        return ", ".join(f"p{i}" for i in range(len(self.params)))

    def define(self, qualifier):
        """The copy passes all on to the body."""
        params = ", ".join(f"{p[0]} {qualifier} p{i}"
                           for i, p in enumerate(self.params))
        eats = "".join(f"\teat(&p{i}, sizeof(p{i}));\n"
                       for i in range(len(self.params)))
        return (
            f"static __attribute__((noinline, noipa)) void body_{self.number}({params})\n"
            f"{{\n{eats}}}\n"
            f"static inline __attribute__((always_inline)) void copy_{self.number}({params})\n"
            f"{{\n\tbody_{self.number}({self.args()});\n}}\n")

    def log(self, kind):
        text = f'\t\tfprintf(log_, "{self.id(kind)} {len(self.params)} 0");\n'
        for i, (_, size, is_signed) in enumerate(self.params):
            if size > 16:
                text += '\t\tfputs(" -7", log_);\n'
            else:
                text += f"\t\tlog_bytes(v{i}, {size}, {is_signed});\n"
        return text + "\t\tfputc('\\n', log_);\n"

    def call(self, rand):
        """Half of the calls pass what the compiler does not know, the others may be constants."""
        is_known = rand.random() < .5
        text = "\t{\n"
        for i, (type_, size, is_signed) in enumerate(self.params):
            bytes_ = bytes(
                rand.randrange(2 if type_ == "bool" else 256)
                for _ in range(size))
            words = ", ".join(str(b) for b in bytes_)
            text += (
                f"\t\tstatic unsigned char v{i}[] __attribute__((aligned(16))) = {{{words}}};"
                f" {type_} p{i} = ")
            if is_known and not type_.startswith("struct") and size <= 8:
                suffix = "" if is_signed else "u"
                number = int.from_bytes(bytes_,
                                        "little",
                                        signed=bool(is_signed))
                text += f"({type_}){number}{suffix};\n"
            else:
                text += f"*({type_} const volatile *)v{i};\n"
        return (text + self.log("copy") + self.log("body") +
                f"\t\tcopy_{self.number}({self.args()});\n\t}}\n")

    def id(self, kind):
        return self.number * 2 + (kind == "copy")

    def bpf(self, kind, path):
        reads = ""
        for i in range(len(self.params)):
            reads += f"\tr->args[{i}].error = bpf_loc_arg(ctx, {i}, (union bytes *)r->args[{i}].bytes);\n"
        name = self.name(kind)
        return f"""
SEC("uloc/{path}:{name}")
int on_{name}(struct pt_regs *ctx)
{{
	struct loc_record *r = begin(ctx, {self.id(kind)});

	if (!r)
		return 0;
{reads}	bpf_ringbuf_submit(r, 0);
	return 0;
}}
"""


def functions(n, seed, counts=(0, 1, 2, 4, 6, 7, 9, 12, 13, 15)):
    """@counts: of arguments after the first."""
    rand = random.Random(seed)
    kinds = [(t, size, s)
             for t, size, s in SCALARS] + [(t, size, 0)
                                           for t, size, _ in structs()]
    ret = []
    for number in range(n):
        # All kinds first, one each; then any.
        params = [kinds[number % len(kinds)]]
        for _ in range(counts[number % len(counts)]):
            params.append(
                rand.choice(kinds if rand.random() < .4 else SCALARS))
        ret.append(Function(number, params))
    return ret


def program(list_, seed, rounds=2, qualifier=""):
    """@qualifier: of the parameters. What Clang says of one is believed if it is const."""
    rand = random.Random(seed)
    text = PRELUDE + "\n".join(s[2] for s in structs()) + "\n"
    for f in list_:
        text += f.define(qualifier)
    for f in list_:
        text += f"static __attribute__((noinline)) void call_{f.number}(void)\n{{\n"
        for _ in range(rounds):
            text += f.call(rand)
        text += "}\n"
    calls = "".join(f"\tcall_{f.number}();\n" for f in list_)
    return text + f"int main(int argc, char **argv)\n{{\n\tlog_ = fopen(argv[1], \"w\");\n{calls}\treturn fclose(log_);\n}}\n"


def bpf_object(list_, path, header):
    text = f"""
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <cairn/loc.bpf.h>
#include "{header}"
struct {{ __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 1 << 22); }} records SEC(".maps");
char LICENSE[] SEC("license") = "Dual BSD/GPL";
union bytes {{ unsigned char b[16]; }};

static __attribute__((always_inline)) struct loc_record *begin(void *ctx, unsigned int id)
{{
	struct loc_record *r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);

	if (!r)
		return 0;
	r->id = id;
	r->n = bpf_loc_arg_cnt(ctx);
	r->cookie = bpf_loc_cookie(ctx);
	return r;
}}
"""
    return text + "".join(
        f.bpf(kind, path) for f in list_ for kind in ("body", "copy"))


def compare(logged, seen):
    """Counts (right, unavailable, wrong, missing calls, invented calls)."""
    right = unavailable = wrong = 0
    bad = []
    for want, got in zip(logged, seen):
        want, got = want.split(), got.split()
        if want[:3] != got[:3] or len(want) != len(got):
            return right, unavailable, wrong + 1, [(want, got)]
        for i, (a, b) in enumerate(zip(want[3:], got[3:])):
            if a == b:
                right += 1
            elif b == "-2":
                unavailable += 1
            else:
                wrong += 1
                bad.append((want[0], i, a, b))
    if len(logged) != len(seen):
        bad.append(("calls", len(logged), "events", len(seen)))
        wrong += 1
    return right, unavailable, wrong, bad
