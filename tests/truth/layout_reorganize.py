#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn layout --reorganize, against every order that there is, as GCC lays it out; and against
what pahole claims.

    layout_reorganize.py [--count N] [--seed N]

N random structs of 2 to 7 groups of members: all their permutations are compiled, with sizeof taken
by the compiler, and the smallest must be the size that --reorganize --verify gives. Then pahole's
--reorganize of some hundred structs of the running kernel: GCC compiles what pahole writes, and
says which of the sizes that pahole claims are none.
"""
import argparse
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from common import CAIRN, claim, finish, skip  # noqa: E402

LAB = os.path.join(os.environ.get("CAIRN_LAB") or os.path.expanduser("~/.cache/cairn-lab"), "sid")
# Most take 0.1 s, some never end; so each is asked for alone.
PAHOLE_SECONDS = 10
SAMPLE = 7
# Seen to be claimed smaller than they can be.
KNOWN = ["task_struct", "net_aligned_data", "ptr_ring", "xdp_ring", "acomp_walk", "pm_qos_flags"]
ALIGNED = """struct al { int a; char b; int c __attribute__((aligned(16))); char d; } al;
"""
RUNNING = "/sys/kernel/btf/vmlinux"
PRELUDE = """
struct pair { char a; long long b; };
struct triple { short a[3]; };
union either { char c[5]; short s; };
struct __attribute__((packed)) tight { char a; int b; };
struct __attribute__((aligned(16))) wide { int a; };
typedef long long low __attribute__((aligned(2)));
"""
TYPES = [
    "char", "short", "int", "long", "float", "double", "void *", "long double", "_Bool", "__int128",
    "struct pair", "struct triple", "union either", "struct tight", "struct wide", "low",
    "_Atomic long long"
]
ABIS = {"x86-64": "-m64", "i386": "-m32"}


class Struct:
    """Groups of members as text; runs of bit-fields are groups of their own."""

    def __init__(self, rng, number, abi):
        self.name, self.flexible, self.n = f"s{number}", "", 0
        types = [t for t in TYPES if abi != "i386" or t != "__int128"]
        count = rng.choice([2, 3, 4, 4, 5, 5, 6, 6, 7])
        self.groups = []
        while len(self.groups) < count:
            # Two runs side by side would be one.
            if rng.random() < 0.3 and not (self.groups and self.groups[-1][0]):
                fields = [
                    f"{rng.choice(['int', 'unsigned char', 'short', 'long long'])} {self.member()} : "
                    f"{rng.randint(1, 8)};" for _ in range(rng.randint(1, 3))
                ]
                self.groups.append((True, " ".join(fields)))
                continue
            array = f"[{rng.randint(1, 9)}]" if rng.random() < 0.25 else ""
            kind = rng.choice(types)
            aligned = f" __attribute__((aligned({rng.choice([2, 8, 16, 32])})))" if rng.random(
            ) < 0.1 else ""
            self.groups.append(
                (False, f"{kind} {self.member()}{array if kind != 'low' else ''}{aligned};"))
        if rng.random() < 0.1:
            self.flexible = f"{rng.choice(['char', 'int'])} {self.member()}[];"
        self.attributes = rng.choice([" __attribute__((aligned(32)))"] + [""] * 12)

    def member(self):
        self.n += 1
        return f"m{self.n}"

    def text(self, order, name, merge):
        parts = []
        for i, group in enumerate(order):
            if group[0] and i and order[i - 1][0] and not merge:
                parts.append("char : 0;")
            parts.append(group[1])
        return f"struct {name} {{ {' '.join(parts)} {self.flexible} }}{self.attributes};"

    def smallest(self, option, merge):
        """Over all orders, as the compiler has their sizes."""
        lines = [PRELUDE]
        orders = list(itertools.permutations(self.groups))
        lines += [self.text(order, f"p{i}", merge) for i, order in enumerate(orders)]
        sizes = ", ".join(f"sizeof(struct p{i})" for i in range(len(orders)))
        lines.append(f"const unsigned int sizes[] = {{ {sizes} }};")
        done = subprocess.run(["gcc", option, "-w", "-S", "-o", "-", "-x", "c", "-"],
                              input="\n".join(lines), capture_output=True, text=True, check=True)
        return min(int(n) for n in re.findall(r"^\s*\.long\s+(\d+)$", done.stdout, re.M))


def compare(folder, rng, abi, merge, count):
    structs = [Struct(rng, i, abi) for i in range(count)]
    path = os.path.join(folder, "random.h")
    with open(path, "w", encoding="utf-8") as file:
        file.write(PRELUDE + "\n".join(s.text(s.groups, s.name, False) for s in structs) + "\n")
    command = [CAIRN, "layout", path, "s[0-9]*", "--abi", abi, "--reorganize", "--verify", "--json"]
    done = subprocess.run(command + (["--merge-bit-fields"] if merge else []), capture_output=True,
                          text=True, check=False)
    if done.returncode:
        print(done.stderr)
    ours = {o["name"]: o for o in map(json.loads, done.stdout.splitlines())}
    wrong = 0
    for s in structs:
        best = s.smallest(ABIS[abi], merge)
        mine = ours.get(s.name)
        if not mine or mine["size"] != best or not mine["proven"]:
            wrong += 1
            print(f"# {s.text(s.groups, s.name, False)}\n#   smallest: {best}, here: {mine}")
    what = "merged" if merge else "apart"
    saved = sum(o["saved"] > 0 for o in ours.values())
    claim(
        f"{abi}, bit-fields {what}: {count} structs, {saved} became smaller, {wrong} differ from all their orders",
        not wrong and not done.returncode and saved)


def pahole_orders(folder, names):
    """pahole's text of the kernel's structs in the order that it finds best. It does not end for
    some."""
    inside = os.path.join(folder, "input")
    subprocess.run(["cp", RUNNING, inside], check=True)
    texts, endless = {}, []
    for name in names:
        command = [
            "chroot", LAB, "pahole", "-F", "btf", "--reorganize", "-C", name, inside[len(LAB):]
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace",
                                  check=False, timeout=PAHOLE_SECONDS)
        except subprocess.TimeoutExpired:
            endless.append(name)
            continue
        if re.search(r"^\t/\* size: \d+,", done.stdout, re.M) and done.stdout.startswith("struct "):
            texts[name] = done.stdout
    return texts, endless


def sizes_in_c(texts):
    """What GCC gives the structs as pahole writes them; none for those that do not compile (other
    structs of that name)."""
    packed = {
        o["name"]: o["packed"]
        for o in map(
            json.loads,
            subprocess.run([CAIRN, "layout", "--running", "--json", *texts], capture_output=True,
                           text=True, check=True).stdout.splitlines())
    }
    bpftool = shutil.which("bpftool") or "/usr/sbin/bpftool"
    types = subprocess.run([bpftool, "btf", "dump", "file", RUNNING, "format", "c"],
                           capture_output=True, text=True, check=True).stdout
    lines = [types]
    for name, text in texts.items():
        # It calls some packed, because the size that it claims is possible only then. That is no
        # order.
        text = text if packed[name] else text.replace("__attribute__((__packed__))", "")
        lines.append(
            re.sub(rf"^struct {name} ", f"struct as_pahole_{name} ",
                   re.sub(r"/\*.*?\*/", "", text, flags=re.S)))
    names = list(texts)
    while names:
        source = "\n".join(
            [lines[0]] + [lines[1 + list(texts).index(n)] for n in names] +
            [f"const unsigned int size_{n} = sizeof(struct as_pahole_{n});" for n in names])
        done = subprocess.run(["gcc", "-w", "-S", "-o", "-", "-x", "c", "-"], input=source,
                              capture_output=True, text=True, check=False)
        if not done.returncode:
            return {
                n: int(v)
                for n, v in re.findall(r"^size_(\w+):\n\s*\.long\s+(\d+)$", done.stdout, re.M)
            }
        at = len(types.splitlines())
        bad, line = set(), at
        for n in names:
            n_lines = len(lines[1 + list(texts).index(n)].splitlines()) + 1
            if any(line <= int(e) <= line + n_lines
                   for e in re.findall(r"<stdin>:(\d+):\d+: error", done.stderr)):
                bad.add(n)
            line += n_lines
        if not bad:
            return {}
        names = [n for n in names if n not in bad]
    return {}


def claims_of_aligned():
    """What pahole says of a struct with aligned(16), what C gives that order, and what is smallest
    here."""
    with tempfile.TemporaryDirectory(dir=os.path.join(LAB, "tmp"), prefix="layout-") as folder:
        binary = os.path.join(folder, "al.o")
        subprocess.run(["gcc", "-g", "-c", "-o", binary, "-x", "c", "-"], input=ALIGNED, text=True,
                       check=True)
        text = subprocess.run(
            ["chroot", LAB, "pahole", "-F", "dwarf", "-R", "-C", "al", binary[len(LAB):]],
            capture_output=True, text=True, check=False).stdout
        mine = subprocess.run([CAIRN, "layout", binary, "al", "--reorganize", "--verify", "--json"],
                              capture_output=True, text=True, check=False).stdout
    body = re.sub(r"/\*.*?\*/", "", text, flags=re.S).strip()
    c = subprocess.run(["gcc", "-S", "-o", "-", "-x", "c", "-"],
                       input=f"{body}\nconst int n = sizeof(struct al);\n", capture_output=True,
                       text=True, check=False).stdout
    claimed, given = re.search(r"size: (\d+)", text), re.search(r"\.long\s+(\d+)", c)
    if not claimed or not given:
        skip("what pahole makes of aligned(16)",
             "its text was not understood: " + (text or "nothing")[:200])
        return
    ours = json.loads(mine)["size"]
    print(
        f"# aligned(16): pahole claims {claimed.group(1)}, C gives its order {given.group(1)}, the smallest is {ours}"
    )
    claim("the smallest size here is no larger than what C gives pahole's order",
          ours <= int(given.group(1)))


def against_pahole():
    if os.geteuid() or not os.path.exists(os.path.join(
            LAB, "usr/bin/pahole")) or not os.path.exists(RUNNING):
        skip("pahole --reorganize", "the lab has no pahole, the kernel no BTF, or this is not root")
        return
    claims_of_aligned()
    done = subprocess.run([CAIRN, "layout", "--running", "--reorganize", "--json"],
                          capture_output=True, text=True, check=False)
    ours = {}
    for o in map(json.loads, done.stdout.splitlines()):
        # Failures are lines, too: structs that are not laid out again.
        if "error" not in o:
            ours.setdefault(o["name"], o)
    # Some of what can be smaller, some of what cannot.
    names = sorted(n for n, o in ours.items() if o["saved"])[::SAMPLE] + sorted(ours)[::31 * SAMPLE]
    names = list(dict.fromkeys([n for n in KNOWN if n in ours] + names))
    with tempfile.TemporaryDirectory(dir=os.path.join(LAB, "tmp"), prefix="layout-") as folder:
        texts, endless = pahole_orders(folder, names)
    claimed = {
        n: int(re.search(r"^\t/\* size: (\d+),", text, re.M).group(1))
        for n, text in texts.items()
    }
    in_c = sizes_in_c(texts)
    false = [n for n in in_c if claimed[n] < in_c[n]]
    larger = [n for n in in_c if ours[n]["size"] < in_c[n]]
    smaller = [n for n in in_c if ours[n]["size"] > in_c[n]]
    proven = sum(o["proven"] for o in ours.values())
    print(
        f"# {len(ours)} structs of the kernel, {proven} proven; {len(names)} of them given to pahole: it does not end in "
        f"{PAHOLE_SECONDS} s for {len(endless)}, GCC compiles its order of {len(in_c)}")
    print(
        f"# of these it claims {len(false)} smaller than C makes them, and {len(larger)} are smaller here"
    )
    for name in false:
        print(
            f"#   struct {name}: {ours[name]['size_before']} bytes; pahole claims {claimed[name]}, C gives its order "
            f"{in_c[name]}, the smallest is {ours[name]['size']}")
    for name in smaller:
        print(
            f"#   struct {name}: {ours[name]} here, pahole has an order of {in_c[name]}:\n{texts[name]}"
        )
    claim("GCC shows that some of pahole's savings are none", false)
    claim("no order of pahole's is smaller than the one that is proven here", in_c and not smaller)
    checked = subprocess.run(
        [CAIRN, "layout", "--running", "--reorganize", "--verify", "--json", *false, *names[::7]],
        capture_output=True, text=True, check=False)
    verified = [o for o in map(json.loads, checked.stdout.splitlines()) if o["verified"]]
    claim(f"the compiler agrees with {len(verified)} structs in the order found here",
          checked.returncode == 0 and len(verified) >= len(set(false) | set(names[::7])))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cairn-layout-") as folder:
        for abi in ABIS:
            for merge in (False, True):
                compare(folder, random.Random(f"{args.seed} {abi} {merge}"), abi, merge, args.count)
    against_pahole()
    finish()


if __name__ == "__main__":
    main()
