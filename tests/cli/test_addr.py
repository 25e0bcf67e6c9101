#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn addr with addresses from standard input: in any order, repeated, a few or very many, waited
for."""

import os
import random
import select
import subprocess

from claims import CAIRN, cairn, claim, compile_c, expect, folder, main, need, run

SOURCE = """\
static volatile int sink;
static inline __attribute__((always_inline)) int twice(int x) { sink = x; return 2 * x; }
__attribute__((noinline)) int outer(int x) { return twice(x) + twice(x + 1); }
int main(int argc, char **argv) { return outer(argc) & 1; }
"""


def sidecar():
    path = compile_c("addr", SOURCE)
    made = os.path.join(folder(), "addr.cairn")
    cairn("sidecar", path, "-o", made, check=True)
    return made


def addresses(made):
    entry = next(
        o for o in cairn("sites", made, "outer", "--json").objects() if o["kind"] == "out-of-line")
    start = int(entry["addr"], 16)
    return [f"{start + i:#x}" for i in range(-40, 60, 4)]


def ask(made, text, *options):
    return subprocess.run([CAIRN, "addr", made, *options], input=text, capture_output=True,
                          text=True, check=False)


@claim
def answers_come_in_the_order_of_the_input_whatever_it_is():
    made = sidecar()
    known = addresses(made)
    for options in ((), ("--json",), ("-r",)):
        single = {a: cairn("addr", made, *options, a).out for a in known}
        asked = [random.Random(1).choice(known)
                 for _ in range(3)] + list(reversed(known)) + known[:5] * 3
        done = ask(made, "\n".join(asked), *options)  # the last line has no end
        expect(done.stdout == "".join(single[a] for a in asked), options, done)


@claim
def more_addresses_than_are_answered_at_once_all_get_their_answer():
    made = sidecar()
    known = addresses(made)
    single = {a: cairn("addr", made, a).out for a in known}
    rng = random.Random(2)
    asked = [rng.choice(known) for _ in range(150_000)]
    done = ask(made, "".join(f"  {a} comm\n" for a in asked))
    expect(done.stdout == "".join(single[a] for a in asked), len(done.stdout))


@claim
def what_is_no_address_is_told_with_its_line_after_the_answers_before_it():
    made = sidecar()
    known = addresses(made)
    done = ask(made, f"{known[12]}\n\nnonsense\n{known[13]}\n")
    expect(done.returncode == 2 and "line 3: nonsense" in done.stderr, done)
    expect(done.stdout == cairn("addr", made, known[12]).out, done)
    done = ask(made, "1" * (1 << 21))
    expect(done.returncode == 2 and "line 1" in done.stderr, done.returncode)


@claim
def who_writes_an_address_and_waits_gets_the_answer():
    made = sidecar()
    known = addresses(made)
    with subprocess.Popen([CAIRN, "addr", made], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as child:
        for address in (known[15], known[12]):
            child.stdin.write(f"{address}\n".encode())
            child.stdin.flush()
            ready, _, _ = select.select([child.stdout], [], [], 30)
            expect(ready, "no answer to", address)
            answer = os.read(child.stdout.fileno(), 4096).decode()
            expect(answer == cairn("addr", made, address).out, answer)
        child.stdin.close()


SIZELESS = """
.text
.type first, %function
first: nop
nop
ret
.type second, %function
second: nop
.size second, .-second
nop
.type third, %function
.globl third
third: ret
nop
.section other, "ax"
nop
"""


@claim
def a_function_without_a_size_has_the_code_up_to_the_next_one():
    source, path = os.path.join(folder(), "sizeless.s"), os.path.join(folder(), "sizeless")
    with open(source, "w", encoding="utf-8") as file:
        file.write(SIZELESS)
    run(need("gcc"), "-nostdlib", "-static", "-Wl,-e,third", source, "-o", path, check=True)
    nm = {
        line.split()[2]: int(line.split()[0], 16)
        for line in run(need("nm"), path, check=True).lines()
    }
    lo = nm["first"]
    asked = [f"{lo + i:#x}" for i in range(-1, 9)]
    ours = [
        o["frames"][0]["function"] if o["frames"] else None
        for o in cairn("addr", "--json", path, *asked).objects()
    ]
    # The one with a size ends there, and a section is the end of all.
    expect(ours == [None, "first", "first", "first", "second", None, "third", "third", None, None],
           ours)
    theirs = run(need("llvm-symbolizer"), "--no-inlines", "--functions=linkage", f"--obj={path}",
                 *asked[1:4], *asked[6:8]).lines()[::3]
    expect(theirs == ["first"] * 3 + ["third"] * 2, theirs)
    # Where only the dynamic symbols are left the next function may have no name.
    library = path + ".so"
    run("gcc", "-shared", "-nostdlib", source, "-o", library, check=True)
    whole = int(
        next(line for line in run("nm", library).lines() if line.endswith(" third")).split()[0], 16)
    run(need("strip"), library, check=True)
    ours = [
        bool(o["frames"])
        for o in cairn("addr", "--json", library, f"{whole:#x}", f"{whole + 1:#x}").objects()
    ]
    expect(ours == [True, False], ours)


LABELS = """
.text
.type sized, %function
sized: nop
.globl within
within: ret
.size sized, .-sized
.type bare, %function
bare: nop
loop: jmp loop
.globl first
first: nop
inner: ret
.globl second
second: nop
nop
.type last, %function
last: ret
.size last, .-last
$x:
nop
.section other, "ax"
table: .byte 0xf3, 0x0f, 0x1e
.globl after
after: ret
"""


@claim
def a_label_without_a_type_and_a_size_has_the_code_that_no_function_has():
    source, path = os.path.join(folder(), "labels.s"), os.path.join(folder(), "labels")
    with open(source, "w", encoding="utf-8") as file:
        file.write(LABELS)
    run(need("gcc"), "-nostdlib", "-static", "-Wl,-e,first", source, "-o", path, check=True)
    nm = {
        line.split()[2]: int(line.split()[0], 16)
        for line in run(need("nm"), "-a", path, check=True).lines()
    }
    asked = [f"{nm['sized'] + i:#x}"
             for i in range(11)] + [f"{nm['table'] + i:#x}" for i in range(4)]

    def names(*how):
        return [
            o["frames"][0]["function"] if o["frames"] else None
            for o in cairn("addr", *how, "--json", path, *asked).objects()
        ]

    # A function with a size keeps its labels, one without keeps the local ones; a linker's mark is
    # no name.
    expect(
        names("--no-cache") == ["sized"] * 2 + ["bare"] * 3 + ["first"] * 2 + ["second"] * 2
        + ["last", None] + ["table"] * 3 + ["after"], names("--no-cache"))
    theirs = run(need("llvm-symbolizer"), "--no-inlines", "--functions=linkage", f"--obj={path}",
                 *asked[7:10], *asked[-4:]).lines()[::3]
    expect(theirs == ["second"] * 2 + ["last"] + ["table"] * 3 + ["after"], theirs)
    made = path + ".made"
    cairn("sidecar", path, "-o", made, check=True)
    expect(names("--sidecar", made) == names("--no-cache"), names("--sidecar", made))
    # What follows a local label may be a table: its bytes are not decoded.
    expect(
        cairn("sites", path, "--hazards").out == cairn("sites", path, "--sidecar", made,
                                                       "--hazards").out)
    expect("table" not in cairn("sites", path, "--hazards").out)


@claim
def an_address_of_an_object_file_is_told_from_what():
    source, path = os.path.join(folder(), "object.c"), os.path.join(folder(), "object.o")
    with open(source, "w", encoding="utf-8") as file:
        file.write(SOURCE)
    run(need("gcc"), "-O2", "-c", source, "-o", path, check=True)
    r = cairn("addr", path, "4")
    expect(
        r.status == 1 and "no addresses before it is linked" in r.err
        and ".text from 0x1000 on" in r.err, r)
    r = cairn("addr", path, "0x1004")
    expect(r.status == 0 and r.err == "" and "outer" in r.out, r)


def two_units():
    """Two units, in the second of which a DIE has a number that no abbreviation has; the second's
    function is missing."""
    need("readelf")
    second = os.path.join(folder(), "second.o")
    with open(os.path.join(folder(), "second.c"), "w", encoding="utf-8") as file:
        file.write(
            "volatile int other_sink;\n__attribute__((noinline)) int second(int x) { other_sink = x; return x + 1; }\n"
        )
    run("gcc", "-O2", "-g", "-gdwarf-5", "-c", os.path.join(folder(), "second.c"), "-o", second,
        check=True)
    text = SOURCE.replace("int main", "int second(int);\nint main").replace(
        "outer(argc) & 1", "outer(argc) + second(1) & 1")
    path = compile_c("damaged", text, "gcc", ("-O2", "-g", "-gdwarf-5", second))
    dump = run("readelf", "--debug-dump=info", path, check=True).out
    sections = run("readelf", "-SW", path, check=True).out
    info = next(line for line in sections.splitlines()
                if ".debug_info" in line).split(".debug_info")[1].split()
    die = next(
        line for line in dump[dump.index("second.c"):].splitlines() if "DW_TAG_variable" in line)
    at = int(info[2], 16) + int(die.split("<")[2].split(">")[0], 16)
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(b"\x7e")
    return path


@claim
def a_damaged_unit_is_left_out_and_told_and_the_others_answer():
    path = two_units()
    at = {
        words[2]: words[0]
        for words in (line.split() for line in run("nm", path, check=True).out.splitlines())
        if len(words) == 3
    }
    r = cairn("addr", path, at["outer"], at["second"])
    expect(r.status in (0, 1) and "1 damaged unit left out" in r.err and ".debug_info" in r.err, r)
    expect("outer" in r.out and "second" in r.out, r)
    whole, damaged = r.out.split("second")[0], r.out.split("second")[1]
    expect(".c:" in whole and "second.c" not in damaged, r)
    made = os.path.join(folder(), "damaged.cairn")
    r = cairn("sidecar", "--lines", path, "-o", made)
    expect(r.status == 0 and "1 damaged unit left out" in r.err, r)
    r = cairn("addr", made, at["outer"])
    expect("made without 1 damaged unit" in r.err and "outer" in r.out, r)
    cairn("sidecar", "--check", made, check=True)
    # Sites of functions cannot be told without knowing all copies.
    r = cairn("sidecar", path, "-o", made + "2")
    expect(r.status and not os.path.exists(made + "2"), r)


main()
