# SPDX-License-Identifier: BSD-2-Clause
"""Random structs, random records of them, and what C says the members are.

A Structs is a header of structs. c_values() has a compiler read records through the structs
themselves and print each member; who else reads the same bytes has to come to the same. A member is
printed as one line,

    NAME [INDEX...] = VALUE

with VALUE a decimal integer, 0 or 1 of a bool, the bits of a float in decimal, and text in
hexadecimal. The members' names come from `cairn bind --json`; their values do not.
"""

import json
import os
import random
import re

from claims import cairn, folder, run

SCALARS = [
    "char", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned int",
    "long", "unsigned long", "long long", "unsigned long long", "float", "double", "_Bool",
    "void *", "enum color", "enum flags", "enum small", "u32"
]
BIT_TYPES = [
    "int", "unsigned int", "short", "unsigned char", "long long", "unsigned long long", "_Bool",
    "enum color", "signed char", "unsigned long"
]
BITS = {
    "int": 32, "unsigned int": 32, "short": 16, "unsigned char": 8, "long long": 64,
    "unsigned long long": 64, "_Bool": 1, "enum color": 32, "signed char": 8, "unsigned long": 32
}
PREAMBLE = """typedef unsigned int u32;
enum color { RED, GREEN, BLUE = 7, TEAL = -3 };
enum flags { F_NONE, F_A = 1, F_B = 2, F_C = 64, F_D = 0x8000 };
enum small { S_X = 1, S_Y = 200 } __attribute__((packed));
"""
ENUMS = {
    "RED": 0, "GREEN": 1, "BLUE": 7, "TEAL": -3, "F_NONE": 0, "F_A": 1, "F_B": 2, "F_C": 64, "F_D":
    0x8000, "S_X": 1, "S_Y": 200
}


class Structs:
    """A header with structs s0, s1, ..."""

    def __init__(self, count, seed, wide=True, order="", prefix="s"):
        self.random = random.Random(seed)
        self.wide = wide  # __int128, which 32-bit ABIs lack
        self.order = order  # of the bytes of scalars, where it is not the machine's; GCC only
        self.names = [f"{prefix}{i}" for i in range(count)]
        self.counter = 0
        pragma = f"#pragma scalar_storage_order {order}\n" if order else ""
        self.text = PREAMBLE + pragma + "".join(self.one(name) for name in self.names)
        self.path = os.path.join(folder(), f"structs-{seed}.h")
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(self.text)

    def append(self, text):
        """Further structs, of names that begin with s."""
        self.text += text
        self.names += re.findall(r"^struct (\w+) {", text, re.M)
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(self.text)

    @property
    def operands(self):
        """FILE TYPE... of a command line."""
        return [self.path, "struct s*"]

    def fresh(self):
        self.counter += 1
        return f"m{self.counter}"

    def scalar(self):
        if self.wide and self.random.random() < 0.05:
            return self.random.choice(["__int128", "unsigned __int128"])
        return self.random.choice(SCALARS)

    def member(self, depth):
        r = self.random
        kind = r.random()
        if kind < 0.15:
            base = r.choice(BIT_TYPES)
            if r.random() < 0.1:
                return f"{base} : {r.choice([0, 1, BITS[base]])};"
            return f"{base} {self.fresh()} : {r.randint(1, BITS[base])};"
        if kind < 0.25:
            return f"char {self.fresh()}[{r.randint(1, 20)}];"
        if kind < 0.33:
            return f"{self.scalar()} {self.fresh()}[{r.randint(1, 4)}];"
        if kind < 0.37:
            return f"{self.scalar()} {self.fresh()}[{r.randint(1, 3)}][{r.randint(1, 3)}];"
        if kind < 0.55 and depth < 3:
            name = "" if r.random() < 0.3 else self.fresh()
            array = f"[{r.randint(1, 3)}]" if name and r.random() < 0.3 else ""
            return f"{r.choice(['struct', 'union'])} {self.body(depth + 1)} {name}{array};"
        aligned = f" __attribute__((aligned({r.choice([2, 4, 8, 16])})))" if r.random(
        ) < 0.05 else ""
        return f"{self.scalar()} {self.fresh()}{aligned};"

    def body(self, depth):
        # One plain member, so that no struct is empty or without names; a number, as only numbers
        # tell their order in DWARF.
        members = [f"{'short' if self.order else self.scalar()} {self.fresh()};"]
        members += [self.member(depth) for _ in range(self.random.randint(1, 6 if depth else 10))]
        self.random.shuffle(members)
        packed = " __attribute__((packed))" if self.random.random() < 0.15 else ""
        return "{ " + " ".join(members) + " }" + packed

    def one(self, name):
        return f"struct {name} {self.body(0)};\n".replace(f"struct {name} {{", f"struct {name} {{",
                                                          1)

    def fields(self, *words):
        """Each struct's members as `cairn bind --json` has them, by the struct's name."""
        found = cairn("bind", "--json", *self.operands, *words, check=True).objects()
        return {o["name"]: o for o in found if "fields" in o}

    def records(self, layouts, each):
        """@each random records of each struct: text is ASCII, and bytes of bools are 0 or 1, as C
        demands."""
        data = {}
        for name in self.names:
            layout = layouts[name]
            data[name] = [self.record(layout) for _ in range(each)]
        return data

    def record(self, layout):
        r = self.random
        record = bytearray(r.randbytes(layout["size"]))
        little = not layout["big_endian"]
        # Arms of unions overlap: what must not be anything comes last.
        for field in layout["fields"]:
            for at, _ in sites(field):
                # Small numbers are what makes enums and flags have names.
                if field["kind"] == "int" and field[
                        "size"] == 4 and "bits" not in field and r.random() < 0.3:
                    record[at:at + 4] = r.choice([0, 1, 2, 3, 7, 64, 66, 0x8001]).to_bytes(
                        4, "little" if little else "big")
        for field in layout["fields"]:
            for at, _ in sites(field):
                if field["kind"] == "text":
                    text = bytes(
                        r.choice(b"abcXYZ 09\"\\/<&'\t\n\x01~")
                        for _ in range(r.randint(0, field["size"])))
                    record[at:at + field["size"]] = text.ljust(field["size"], b"\0")
        for field in layout["fields"]:
            for at, _ in sites(field):
                if field["kind"] == "bool" and "bits" not in field:
                    record[at] &= 1
        return bytes(record)


def sites(field):
    """(offset, indices) of each element of a field."""
    found = [(field["offset"], ())]
    for dim in field["dims"]:
        found = [(at + i * dim["stride"], (*indices, i))
                 for at, indices in found
                 for i in range(dim["count"])]
    return found


PRINTERS = r"""
#include <stdio.h>
#include <string.h>
#ifdef __SIZEOF_INT128__
static inline void put_wide(unsigned __int128 v, int negative)
{
	char text[48], *at = text + 47;
	*at = 0;
	do *--at = '0' + (int)(v % 10); while (v /= 10);
	printf("%s%s\n", negative ? "-" : "", at);
}
#endif
static inline void put_text(const char *s, unsigned long n)
{
	for (unsigned long i = 0; i < n && s[i]; i++) printf("%02x", (unsigned char)s[i]);
	puts("");
}
static inline void put_float(float f) { unsigned int v; memcpy(&v, &f, 4); printf("%u\n", v); }
static inline void put_double(double f) { unsigned long long v; memcpy(&v, &f, 8); printf("%llu\n", v); }
"""


def c_print(field):
    """C that prints all elements of one field of `r`."""
    path, indices, out = field["path"], [], []
    for k, dim in enumerate(field["dims"]):
        path = path.replace("[0]", f"[i{k}]", 1)
        indices.append(f"i{k}")
        out.append(f"for (int i{k} = 0; i{k} < {dim['count']}; i{k}++)")
    show = " ".join("%d" for _ in indices)
    head = f'printf("{field["name"]}{" " + show if show else ""} = "{"".join(", " + i for i in indices)});'
    value = f"r.{path}"
    if field["kind"] == "text":
        put = f"put_text({value}, {field['size']});"
    elif field["kind"] == "float":
        put = f"put_{'float' if field['size'] == 4 else 'double'}({value});"
    elif field["kind"] == "bool" or field["size"] < 16 and "bits" not in field or "bits" in field:
        # The usual conversions keep the value of everything of 64 bits.
        cast = "(long long)" if field["signed"] else "(unsigned long long)"
        # GCC extends pointers of 32 bits by their sign.
        mask = "" if field[
            "signed"] or field["size"] > 7 else f" & {(1 << 8 * field['size']) - 1}ull"
        put = f'printf("%{"lld" if field["signed"] else "llu"}\\n", {cast}{value}{mask});'
    else:
        put = f"put_wide({value} < 0 ? -(unsigned __int128){value} : (unsigned __int128){value}, {value} < 0);"
    return f"\t\t{' '.join(out)} {{ {head} {put} }}\n"


def c_values(structs, layouts, data, compiler="gcc", flags=(), runner=(), printers=PRINTERS):
    """What the compiler reads: {struct: [[(member, value)] per record]}."""
    text = printers + structs.text + "int main(void)\n{\n"
    for name in structs.names:
        text += f"\tfor (int n = 0; n < {len(data[name])}; n++) {{\n\t\tstruct {name} r;\n"
        text += '\t\tif (fread(&r, sizeof(r), 1, stdin) != 1) return 1;\n\t\tputs("-");\n'
        text += "".join(
            c_print(f) for f in layouts[name]["fields"] if f["kind"] != "bytes") + "\t}\n"
    text += "\treturn 0;\n}\n"
    source, program = os.path.join(folder(), "values.c"), os.path.join(
        folder(), "values-" + os.path.basename(compiler))
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    run(compiler, "-w", "-g", "-fno-strict-aliasing", *flags, "-o", program, source, check=True,
        seconds=300)
    return program, read_values(structs, data, [*runner, program])


def read_values(structs, data, command, **kwargs):
    """The lines that a program prints for the records in the order of the structs."""
    path = os.path.join(folder(), "records.bin")
    with open(path, "wb") as file:
        for name in structs.names:
            file.write(b"".join(data[name]))
    import subprocess
    with open(path, "rb") as file:
        done = subprocess.run(command, stdin=file, capture_output=True, text=True, check=False,
                              timeout=300, **kwargs)
    if done.returncode:
        raise AssertionError(f"{command}: exit status {done.returncode}\n{done.stderr[-3000:]}")
    blocks = done.stdout.split("-\n")[1:] if done.stdout.startswith("-\n") else re.split(
        r"^-\n", done.stdout, flags=re.M)[1:]
    blocks = re.split(r"^-\n", done.stdout, flags=re.M)[1:]
    found, at = {}, 0
    for name in structs.names:
        n = len(data[name])
        found[name] = [[
            tuple(line.split(" = ")) if " = " in line else (line[:-2], "")
            for line in block.splitlines()
        ]
                       for block in blocks[at:at + n]]
        at += n
    return found


# ---- JSON of cairn decode ----

def at_path(value, field, indices):
    """The element of decoded JSON that a field's path leads to."""
    indices = list(indices)
    for step in re.findall(r"\w+|\[0\]", field["path"]):
        value = value[indices.pop(0)] if step == "[0]" else value[step]
    return value


def number_of(value, field):
    """What was decoded as the number that C prints."""
    import struct
    if field["kind"] == "text":
        return value.encode("utf-8").hex()
    if field["kind"] == "float":
        size = "f" if field["size"] == 4 else "d"
        if value == "NaN":
            return "NaN"
        number = {"Infinity": float("inf"), "-Infinity": float("-inf")}.get(value, value)
        return str(int.from_bytes(struct.pack("<" + size, float(number)), "little"))
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, str) and value.startswith("0x"):
        return str(int(value, 16))
    if isinstance(value, str) and re.fullmatch(
            r"(\w+\|)*\w+", value) and not (len(value) == 1 and field["size"] == 1):
        names = [int(n, 16) if n.startswith("0x") else ENUMS[n] for n in value.split("|")]
        number = 0
        for n in names:
            number |= n
        return str(number if number < 0 or field["signed"] or number >= 0 else number)
    if isinstance(value, str):
        return str(ord(value))
    return str(value)


def is_nan(field, text):
    bits = int(text)
    return field["kind"] == "float" and (bits & 0x7fffffff > 0x7f800000 if field["size"] == 4
                                         else bits & (1 << 63) - 1 > 0x7ff << 52)


def differences(layouts, values, decoded):
    """Members of which decoded JSON and C do not say the same; and how many were compared."""
    wrong, count = [], 0
    for name, records in values.items():
        fields = {f["name"]: f for f in layouts[name]["fields"]}
        for said, value in zip(records, decoded[name]):
            for member, text in said:
                words = member.split(" ")
                field = fields[words[0]]
                ours = number_of(at_path(value, field, map(int, words[1:])), field)
                count += 1
                if ours != text and not (ours == "NaN" and is_nan(field, text)):
                    wrong.append((name, field, member, text, ours))
    return wrong, count


def parse_decoded(out, names, data):
    lines, found, at = out.splitlines(), {}, 0
    for name in names:
        found[name] = [json.loads(line) for line in lines[at:at + len(data[name])]]
        at += len(data[name])
    return found


def accounted_bits(layout):
    """Bits of a struct of `cairn layout --json` that members, holes and padding account for: all of
    them."""
    members = sum(m.get("bits", 8 * m["size"]) for m in layout["members"])
    return members + 8 * (
        layout["sum_holes"] + layout["padding"]) + layout["sum_bit_holes"] + layout["bit_padding"]
