#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn decode --map: maps and ring buffers of a BPF program that is loaded for this."""

import os
import re
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))

# noqa: E402
from claims import BUILD, Skip, cairn, claim, claim_each, expect, folder, main, need, need_root, run

# Each record tells whether it is whole: all words of the filler are the number, and twin is its
# complement.
PROGRAM = r"""
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

enum color { RED, GREEN, BLUE };
struct key { unsigned int a, b; };
struct lpm_key { unsigned int prefixlen; unsigned int address; };
struct value { enum color color; unsigned int low : 4, high : 28; struct key nested; char text[4]; };
struct event { unsigned int number, twin; unsigned int filler[30]; char comm[16]; };

#define MAP(NAME, TYPE, KEY, VALUE, N) \
	struct { __uint(type, TYPE); __uint(max_entries, N); __type(key, KEY); __type(value, VALUE); } NAME SEC(".maps")
MAP(hash, BPF_MAP_TYPE_HASH, struct key, struct value, 10000);
MAP(array, BPF_MAP_TYPE_ARRAY, unsigned int, struct value, 4);
MAP(lru, BPF_MAP_TYPE_LRU_HASH, struct key, struct value, 100);
MAP(percpu_hash, BPF_MAP_TYPE_PERCPU_HASH, struct key, unsigned int, 10);
MAP(percpu_array, BPF_MAP_TYPE_PERCPU_ARRAY, unsigned int, unsigned int, 3);
struct { __uint(type, BPF_MAP_TYPE_LPM_TRIE); __uint(max_entries, 10); __type(key, struct lpm_key);
	 __type(value, struct value); __uint(map_flags, BPF_F_NO_PREALLOC); } trie SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_QUEUE); __uint(max_entries, 10); __type(value, struct value); } queue SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_STACK); __uint(max_entries, 10); __type(value, struct value); } stack SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 10); __uint(key_size, 4); __uint(value_size, 8); } plain SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY); __uint(max_entries, 2); __uint(key_size, 4); __uint(value_size, 4); } perf SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 65536); } events SEC(".maps");

#define STORAGE(NAME, TYPE) \
	struct { __uint(type, TYPE); __uint(map_flags, BPF_F_NO_PREALLOC); __type(key, int); __type(value, struct value); } NAME SEC(".maps")
STORAGE(task, BPF_MAP_TYPE_TASK_STORAGE);
STORAGE(sk, BPF_MAP_TYPE_SK_STORAGE);
STORAGE(inode, BPF_MAP_TYPE_INODE_STORAGE);
STORAGE(cgrp, 32 /* BPF_MAP_TYPE_CGRP_STORAGE */);

/* The compiler writes BTF only of types that a global variable or a parameter mentions. */
const struct event *unused __attribute__((unused));
static unsigned int counter;
struct value setting = {.color = BLUE, .low = 5, .high = 1000, .nested = {1, 2}, .text = "abc"};
long limits[3] = {-1, 2, 3};
const volatile unsigned long long version = 0x0102030405060708ull;
const volatile char label[8] = "release";

SEC("socket")
int emit(struct __sk_buff *skb)
{
	struct value v;

	if (setting.low == 7 || limits[1] == 9 || version == 3 || label[0] == 'x')
		return 1;
	if (skb->mark == 12345) {
		bpf_map_peek_elem(&queue, &v);
		bpf_map_peek_elem(&stack, &v);
	}
	struct event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);

	if (!e)
		return 0;
	unsigned int n = __sync_fetch_and_add(&counter, 1);
	e->number = n;
	e->twin = ~n;
	for (int i = 0; i < 30; i++)
		e->filler[i] = n;
	__builtin_memcpy(e->comm, "emitter\0junkjun", 16);
	if (n % 10 == 9)
		bpf_ringbuf_discard(e, 0);
	else
		bpf_ringbuf_submit(e, 0);
	return 0;
}
char _license[] SEC("license") = "GPL";
"""

_holder = None


class Holder:
    """The process that keeps the maps, and does what it is told."""

    def __init__(self, path):
        helper = os.path.join(BUILD, "tests", "live", "decode_maps")
        if not os.path.exists(helper):
            raise Skip("tests/live/decode_maps is not built")
        self.process = subprocess.Popen([helper, path], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.DEVNULL)
        self.ids = {}
        for line in iter(self.process.stdout.readline, ""):
            if not line.strip():
                return
            if line.startswith("BPF objects"):
                raise Skip(line.strip())
            name, number = line.split()
            self.ids[name] = number
        raise Skip("BPF objects cannot be loaded here")

    def tell(self, words):
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        expect(not answer.startswith("failed"), words, answer)
        return answer

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def holder():
    global _holder
    need_root()
    need("clang")
    if not _holder:
        source, path = os.path.join(folder(), "maps.bpf.c"), os.path.join(folder(), "maps.bpf.o")
        with open(source, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        arch = run("gcc", "-print-multiarch").out.strip()
        run("clang", "-target", "bpf", "-mcpu=v3", "-g", "-O2", "-idirafter",
            f"/usr/include/{arch}", "-c", source, "-o", path, check=True)
        _holder = Holder(path)
    return _holder


def value(n):
    """What put fills a struct value with, as JSON."""
    text = n.to_bytes(4, "little").split(b"\0")[0].decode("latin-1")
    color = ["RED", "GREEN", "BLUE"][n] if n < 3 else n
    return {"color": color, "low": n & 15, "high": n >> 4, "nested": {"a": n, "b": n}, "text": text}


def entries(name, *words):
    r = cairn("decode", "--map", holder().ids[name], "--json", *words)
    expect(r.status == 0, r)
    return r.objects()


@claim_each("hash", "lru")
def entries_of_a_hash_are_decoded_by_the_map_s_btf(name):
    n = 50
    holder().tell(f"put {name} {n}")
    found = sorted(entries(name), key=lambda e: e["key"]["a"])
    expect(found == [{"key": {"a": i, "b": i}, "value": value(i)} for i in range(n)], found)


@claim
def a_hash_of_ten_thousand_is_listed_whole_and_once():
    holder().tell("put hash 10000")
    keys = [e["key"]["a"] for e in entries("hash")]
    expect(sorted(keys) == list(range(10000)), len(keys), len(set(keys)))


@claim
def entries_of_an_array_and_a_trie_are_decoded():
    holder().tell("put array 4")
    expect(entries("array") == [{"key": i, "value": value(i)} for i in range(4)], entries("array"))
    holder().tell("put trie 3")
    found = sorted(entries("trie"), key=lambda e: e["key"]["address"])
    expect(found == [{"key": {"prefixlen": 32, "address": i}, "value": value(i)} for i in range(3)],
           found)


@claim_each("percpu_hash", "percpu_array")
def values_per_cpu_are_a_list(name):
    holder().tell(f"put {name} 3")
    cpus = int(
        open("/sys/devices/system/cpu/possible",
             encoding="ascii").read().strip().split("-")[-1]) + 1
    for e in entries(name):
        key = e["key"] if isinstance(e["key"], int) else e["key"]["a"]
        # Eight bytes per processor, of which the first four are the value.
        expect(e["values"] == [key] * cpus, e)
    expect(len(entries(name)) == 3, entries(name))


@claim_each("queue", "stack")
def queues_and_stacks_show_the_next_and_are_taken_out_on_request(name):
    holder().tell(f"push {name} 3")
    order = [value(i) for i in ((0, 1, 2) if name == "queue" else (2, 1, 0))]
    for _ in range(2):
        # libbpf makes these without types.
        expect(entries(name, "struct value") == order[:1], entries(name))
    expect(entries(name, "struct value", "--consume") == order, name)
    expect(entries(name) == [], name)


@claim_each("task", "sk", "inode", "cgrp")
def values_of_owners_are_looked_up_at_all_that_there_are(name):
    expect(entries(name) == [], name)
    holder().tell(f"own {name}")
    pid = holder().process.pid
    program = os.path.join(BUILD, "tests", "live", "decode_maps")
    cgroup = "/sys/fs/cgroup/unified" if os.path.isdir(
        "/sys/fs/cgroup/unified") else "/sys/fs/cgroup"
    owner = {"task": ("task", pid, "decode_maps"),
             "inode": ("inode", os.stat(program).st_ino, os.path.realpath(program)),
             "cgrp": ("cgroup", os.stat(cgroup).st_ino, cgroup)}
    r = cairn("decode", "--map", holder().ids[name], "--json")
    found = r.objects()
    expect(r.status == 0 and [e["value"] for e in found] == [value(7)] and "1 value of" in r.err, r)
    said = found[0]["owner"], found[0]["id"], found[0]["name"]
    if name == "sk":
        fds = [os.path.join(f"/proc/{pid}/fd", n) for n in os.listdir(f"/proc/{pid}/fd")]
        sockets = {os.stat(f).st_ino for f in fds if os.readlink(f).startswith("socket:")}
        expect(
            said[0] == "socket" and said[1] in sockets
            and f"decode_maps {pid}, descriptor" in said[2], said)
    else:
        expect(said == owner[name], said, owner[name])
    text = cairn("decode", "--map", holder().ids[name], check=True).out
    expect(text.startswith(f'{said[0]} {said[1]} "') and ": {.color = 7, .low = 7" in text, text)
    r = cairn("decode", "--map", holder().ids[name], "--consume")
    expect(r.status == 3 and "not consumed" in r.err, r)


@claim
def what_cannot_be_listed_is_refused_with_the_reason():
    r = cairn("decode", "--map", holder().ids["perf"])
    expect(r.status == 3 and "perf_event_array" in r.err and "buffers" in r.err, r)
    r = cairn("decode", "--map", holder().ids["hash"], "--consume")
    expect(r.status == 3 and "not consumed" in r.err, r)
    r = cairn("decode", "--map", "4294967295")
    expect(r.status == 1 and "no BPF map" in r.err, r)
    r = cairn("decode", "--map", "no_such_map_")
    expect(r.status == 1 and "no_such_map_" in r.err, r)
    r = cairn("decode", "--map", holder().ids["events"])
    expect(r.status == 2 and "name it" in r.err, r)
    r = cairn("decode", "--map", holder().ids["events"], "no_such_type")
    expect(r.status == 1 and "1 uses map" in r.err and "Did you mean" not in r.err, r)
    for name, near in (("evnet", "event"), ("struct vlaue", "value")):
        r = cairn("decode", "--map", holder().ids["array"], name)
        expect(r.status == 1 and f"\nDid you mean: {near}" in r.err, r)
    # A number by any of its spellings, as in other sources of types.
    for name in ("unsigned", "unsigned int", "unsigned int "):
        r = cairn("decode", "--map", holder().ids["percpu_array"], name)
        expect(r.status == 0, r)


def section(name):
    """The number of a section's map, whose name begins with that of the object."""
    found = [number for of, number in holder().ids.items() if of.endswith(name)]
    expect(len(found) == 1, name, holder().ids)
    return found[0]


SETTING = {"color": "BLUE", "low": 5, "high": 1000, "nested": {"a": 1, "b": 2}, "text": "abc"}


@claim
def variables_of_sections_have_their_values():
    def of(name, *words):
        return cairn("decode", "--map", section(name), "--json", *words, check=True).objects()

    expect(of(".data") == [{"setting": SETTING, "limits": [-1, 2, 3]}] or
           of(".data") == [{"limits": [-1, 2, 3], "setting": SETTING}], of(".data"))
    rodata = of(".rodata")[0]
    expect(rodata["version"] == 0x0102030405060708 and rodata["label"] == "release", rodata)
    expect(
        of(".data", "setting") == [SETTING] and of(".data", "limits") == [[-1, 2, 3]],
        of(".data", "limits"))
    expect(
        of(".rodata", "label") == ["release"] and of(".rodata", "version") == [0x0102030405060708],
        "by name")
    before = of(".bss", "counter")[0]
    holder().tell("drain")
    holder().tell("run 30")
    holder().tell("drain")
    expect(
        of(".bss", "counter") == [before + 30] and of(".bss")[0]["counter"] == before + 30, before,
        of(".bss"))
    r = cairn("decode", "--map", section(".data"), "limits", check=True)
    expect(r.out == "{-1, 2, 3}\n", r)
    r = cairn("decode", "--map", section(".bss"), "no_such_variable")
    expect(r.status == 1 and "no_such_variable" in r.err and not r.out, r)
    # The kernel's own tool reads the same bytes.
    oracle = run("bpftool", "-j", "map", "dump", "id", section(".bss"))
    if oracle.status == 0:
        expect(f'"counter":{before + 30}' in oracle.out.replace(" ", ""), oracle, before)


@claim
def a_type_of_another_size_than_the_values_is_refused():
    for name, words in (("hash", ["struct key"]), ("hash", ["struct event"]), ("array", [
            "unsigned int"
    ]), (".data", ["struct key"]), ("task", ["struct key"])):
        number = section(name) if name[0] == "." else holder().ids[name]
        r = cairn("decode", "--map", number, *words)
        expect(
            r.status == 1 and re.search(r"the type has \d+ bytes, the values of map", r.err)
            and not r.out, name, words, r)
    path = os.path.join(folder(), "sizes.h")
    with open(path, "w", encoding="utf-8") as file:
        file.write("struct small { int x; }; struct open { int x; char rest[]; };\n")
    r = cairn("decode", "--map", holder().ids["hash"], path, "small")
    expect(r.status == 1 and "the type has 4 bytes" in r.err and not r.out, r)
    r = cairn("decode", "--map", holder().ids["hash"], path, "open")
    expect(r.status == 0, r)


@claim
def a_map_without_btf_shows_bytes_or_a_type_of_a_file():
    holder().tell("put plain 2")
    r = cairn("decode", "--map", holder().ids["plain"], "--json", check=True)
    found = sorted(r.objects(), key=lambda e: e["key"])
    expect(
        found == [{"key": "00000000", "value": "0000000000000000"},
                  {"key": "01000000", "value": "0100000001000000"}], r)
    expect("no BTF" in r.err, r)
    path = os.path.join(folder(), "pair.h")
    with open(path, "w", encoding="utf-8") as file:
        file.write("struct pair { int x, y; };\n")
    r = cairn("decode", "--map", holder().ids["plain"], path, "pair", "--json", check=True)
    expect(sorted(e["value"]["x"] for e in r.objects()) == [0, 1], r)


def whole(e):
    n = e["number"]
    return e["twin"] == ~n & 0xFFFFFFFF and e["filler"] == [n] * 30 and e["comm"] == "emitter"


@claim
def a_ring_buffer_is_looked_into_without_taking_anything_out():
    holder().tell("drain")
    holder().tell("run 100")
    shown = []
    for _ in range(3):
        r = cairn("decode", "--map", holder().ids["events"], "struct event", "--json", check=True)
        shown.append(r.objects())
        expect("90 records; 0 still being written, 10 discarded" in r.err, r)
    expect(shown[0] == shown[1] == shown[2] and len(shown[0]) == 90, len(shown[0]))
    expect(all(map(whole, shown[0])), shown[0][0])
    expect([e["number"] for e in shown[0]] == sorted(e["number"] for e in shown[0]), "not in order")
    expect(holder().tell("drain") == "90", "the reader missed records")
    expect(entries("events", "event") == [], "read records are shown")


@claim
def consume_takes_the_records_out():
    holder().tell("drain")
    holder().tell("run 20")
    expect(len(entries("events", "event", "--consume")) == 18, "consumed")
    expect(holder().tell("drain") == "0", "still there")


@claim
def records_of_another_length_are_told_and_not_shown():
    holder().tell("drain")
    holder().tell("run 5")
    r = cairn("decode", "--map", holder().ids["events"], "struct value")
    expect(r.status == 4 and not r.out and "144 bytes" in r.err, r)
    holder().tell("drain")


@claim
def no_torn_record_is_shown_while_others_write_and_read_at_full_speed():
    holder().tell("drain")
    records, looks, shown, overtaken = 0, 0, 0, 0
    # A busy machine lets us look less often: then it storms again.
    for _ in range(5):
        answer = []
        thread = threading.Thread(target=lambda out=answer: out.append(holder().tell("storm 4000")))
        thread.start()
        while thread.is_alive():
            r = cairn("decode", "--map", holder().ids["events"], "event", "--json")
            expect(r.status == 0, r)
            for e in r.objects():
                expect(whole(e), e)
                shown += 1
            overtaken += "reader overtook" in r.err and " 0 times" not in r.err
            looks += 1
        thread.join()
        records += int(answer[0])
        if looks > 10:
            break
    expect(records > 1000 and looks > 10, records, looks)
    print(
        f"# {looks} looks at a ring through which {records} records went: {shown} shown, overtaken in {overtaken}"
    )
    holder().tell("drain")


@claim
def the_holder_ends():
    holder().end()
    expect(_holder.process.returncode == 0, _holder.process.returncode)


main()
