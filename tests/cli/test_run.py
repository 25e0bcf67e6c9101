#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn run --cover-inlined: BPF programs that know nothing of inlined copies see all calls.

The traced program logs its own calls. The object's programs count them in a map, by what they read
from their registers. Kernel functions: tests/truth/kernel_cover.py; more functions: cover.py.
"""
import collections
import json
import os
import signal
import subprocess
import time

from called import HEAD, compile_object, target
from claims import (CAIRN, Skip, cairn, claim, claim_each, compile_c, expect, folder, main,
                    need_root, path_of, run)

# GCC tests the first condition of is_equal() before *e: the loop's last pass is no call.
CHAIN = r"""
#include <stddef.h>
struct ent { struct ent *next; unsigned hash; };
struct map { struct ent **table; int (*cmp)(const void *, const struct ent *, const struct ent *, const void *); const void *data; unsigned size; };
static inline int is_equal(const struct map *m, const struct ent *e1, const struct ent *e2, const void *k)
{
	return e1 == e2 || (e1->hash == e2->hash && !m->cmp(m->data, e1, e2, k));
}
static inline struct ent **find(const struct map *m, const struct ent *key, const void *k)
{
	struct ent **e = &m->table[key->hash & (m->size - 1)];
	while (*e && !is_equal(m, *e, key, k))
		e = &(*e)->next;
	return e;
}
__attribute__((noinline)) struct ent *get(const struct map *m, const struct ent *key, const void *k)
{
	return m->table ? *find(m, key, k) : NULL;
}
int main(void) { return 0; }
"""
SEEN = HEAD + r"""
static __noinline int send(struct pt_regs *ctx)
{
	long idx = PT_REGS_PARM1(ctx);

	return bpf_perf_event_output(ctx, &events, BPF_F_CURRENT_CPU, &idx, sizeof(idx));
}
static long twice(unsigned int i, void *ctx)
{
	*(long *)ctx += i;
	return 0;
}
SEC("uprobe/FILE:put")
int BPF_KPROBE(on_put, long idx, int s, const char *name, struct node *n)
{
	struct call call = {.a = idx, .b = s, .value = -1, .function = "put"};

	bpf_probe_read_user_str(call.name, sizeof(call.name), name);
	if (n)
		bpf_probe_read_user(&call.value, 8, &n->value);
	send(ctx);
	return count(&call);
}
SEC("uprobe/FILE:only")
int on_only(struct pt_regs *ctx)
{
	struct call call = {.name = "-", .function = "only"};
	long b = 0, sum = 0;

	call.a = (signed char)PT_REGS_PARM1(ctx);
	bpf_probe_read_kernel(&b, sizeof(b), &PT_REGS_PARM2(ctx));
	bpf_loop(3, twice, &sum, 0);
	call.b = (unsigned short)b + sum - 3;
	return count(&call);
}
"""
NOT_SEEN = {
    "returns": ("uretprobe", "put", "return bpf_get_prandom_u32() & 0;",
                "it runs at the return"),
    "sleeps": ("uprobe.s", "put", "return 0;", "it may sleep"),
    "tail_calls": ("uprobe", "put",
                   "bpf_tail_call(ctx, &others, 0); return 0;", "tail-calls"),
    "asks_where": ("uprobe", "put", "return !bpf_get_func_ip(ctx);",
                   "the function's address"),
    "reads_stack":
    ("uprobe", "put", "return !PT_REGS_SP(ctx);", "it reads %rsp"),
    "reads_more": ("uprobe", "put", "return !ctx->r9;", "it reads %r9"),
    "reads_gone":
    ("uprobe", "lost", "return !PT_REGS_PARM2(ctx);", "argument gone"),
    "reads_after": ("uprobe", "by_value", "return !PT_REGS_PARM3(ctx);",
                    "a struct is passed"),
    "stores":
    ("uprobe", "put",
     "struct pt_regs *volatile kept = ctx; struct call c = {}; "
     "count(&c); return !PT_REGS_PARM1(kept);", "keeps its context in memory"),
}
# Programs whose function has nothing that they would miss, or of which they read nothing else.
WHOLE = {
    "plain_return": ("uretprobe", "plain", "return 0;"),
    "plain_stack": ("uprobe", "plain", "return !PT_REGS_SP(ctx);"),
    "no_argument": ("uprobe", "lost", "return !PT_REGS_IP(ctx);"),
    "first_alone": ("uprobe", "lost", "return !PT_REGS_PARM1(ctx);"),
}


def programs(of):
    return HEAD + "".join(
        f'SEC("{row[0]}/FILE:{row[1]}") int {name}(struct pt_regs *ctx) {{ {row[2]} }}\n'
        for name, row in of.items())


class Running:
    """cairn run, until the end of the block; then out, err and status."""

    def __init__(self, *words):
        need_root()
        self.words = [CAIRN, "run", "--cover-inlined", "--no-cache", *words]

    def __enter__(self):
        self.file = open(path_of("said"), "w+", encoding="utf-8")
        self.process = subprocess.Popen(self.words,
                                        stdout=subprocess.PIPE,
                                        stderr=self.file,
                                        text=True)
        end = time.monotonic() + 60
        while "attached\n" not in self.said().replace(
                ", attached", "") and self.process.poll() is None:
            if time.monotonic() > end:
                break
            time.sleep(0.02)
        return self

    def said(self):
        with open(self.file.name, encoding="utf-8") as file:
            return file.read()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.out = self.process.communicate(timeout=60)[0]
        self.err = self.said()
        self.status = self.process.returncode
        self.rows = {
            row["program"]: row
            for row in map(json.loads, self.out.splitlines())
            if "program" in row
        }
        self.file.close()
        if "Operation not permitted" in self.err:
            raise Skip("BPF objects cannot be loaded here")


def counted(map_name="run_calls"):
    lines = cairn("decode", "--json", "--map", map_name,
                  check=True).out.splitlines()
    found = {}
    for entry in map(json.loads, lines):
        key = entry["key"]
        found[key["function"], key["a"], key["b"], key["name"],
              key["value"]] = entry["value"]
    return found


def logged():
    found = collections.Counter()
    for line in run(target(), check=True).out.splitlines():
        function, a, b, name, value = line.split()
        found[function, int(a), int(b), name, int(value)] += 1
    return dict(found)


@claim
def all_calls_are_seen_at_the_body_and_at_copies():
    with Running("--json", compile_object("seen", SEEN)) as r:
        log = logged()
        seen = counted()
    expect(r.status == 0 and seen == log and len(log) > 20, seen, log, r.err)
    rows = {
        name: (row["attached"], row["covered"], row["left_out"], row["lost"],
               row["missed"])
        for name, row in r.rows.items()
    }
    expect(
        rows == {
            "on_put": (True, 2, 0, 0, 0),
            "on_only": (False, 2, 0, 0, 0)
        }, rows, r.err)


@claim
def without_a_symbol_and_without_copies_it_is_an_error():
    path = compile_object("nowhere", SEEN.replace(":only", ":nowhere"))
    with Running(path) as r:
        pass
    expect(r.status == 1 and "nowhere" in r.err and not r.out, r.err)


@claim
def what_is_not_covered_has_its_reason():
    with Running("--json", "--best-effort",
                 compile_object("reasons", programs(NOT_SEEN))) as r:
        pass
    expect(r.status == 0, r.err)
    for name, (_, _, _, why) in NOT_SEEN.items():
        row = r.rows[name]
        expect(
            row["why"] and why in row["why"] and row["why"] in r.err
            and row["left_out"] >= 1, name, row)


@claim
def what_has_nothing_to_miss_is_attached():
    with Running("--json", compile_object("whole", programs(WHOLE))) as r:
        pass
    expect(
        r.status == 0 and all(row["why"] is None for row in r.rows.values()),
        r.rows, r.err)
    expect({n: row["covered"]
            for n, row in r.rows.items()} == {
                "plain_return": 0,
                "plain_stack": 0,
                "no_argument": 1,
                "first_alone": 1
            }, r.rows)


@claim
def a_site_where_hits_may_not_be_calls_is_told():
    chain = compile_c("chain", CHAIN)
    path = compile_object(
        "caveats",
        programs({
            "compares": ("uprobe", "is_equal", "return 0;"),
            "finds": ("uprobe", "find", "return 0;")
        }), chain)
    with Running("--json", path) as r:
        pass
    sites = cairn("sites", "--json", chain, "is_equal", "find",
                  check=True).objects()
    for name, function in (("compares", "is_equal"), ("finds", "find")):
        n = sum(
            bool(s["count_caveats"]) for s in sites
            if s.get("function") == function)
        expect(
            r.rows[name]["caveats"] == n
            and bool(r.rows[name]["caveat"]) == bool(n), r.rows, sites)
    expect(
        r.status == 0 and r.rows["compares"]["caveats"]
        and "hits may not be calls at" in r.err
        and "may be hit without a call" in r.err, r.rows, r.err)


@claim
def all_or_none():
    one = {"reads_stack": NOT_SEEN["reads_stack"]}
    with Running(
            "--json",
            compile_object("none",
                           SEEN + programs(one).replace(HEAD, ""))) as r:
        pass
    expect(
        r.status == 1 and "reads_stack" in r.err and "it reads %rsp" in r.err,
        r.err)


@claim
def a_target_that_sec_does_not_say_is_given():
    path = compile_object("given", SEEN.replace("uprobe/FILE:only", "uprobe"))
    with Running("--json", "--attach", f"on_only={target()}:only", path) as r:
        log = logged()
        seen = counted()
    expect(r.status == 0 and seen == log, seen, log, r.err)
    with Running(path) as r:
        pass
    expect(r.status == 0 and "its SEC() does not say to what" in r.err, r.err)
    with Running("--attach", "on_put=x:y", path) as r:
        pass
    expect(r.status == 2 and "SEC() without a target" in r.err, r.err)


@claim
def maps_are_pinned_as_long_as_it_runs():
    if not os.path.ismount("/sys/fs/bpf"):
        raise Skip("/sys/fs/bpf is not mounted")
    where = f"/sys/fs/bpf/{os.path.basename(folder())}"
    with Running("--pin", where, compile_object("pinned", SEEN)) as r:
        end = time.monotonic() + 20
        while not os.path.exists(where +
                                 "/run_calls") and time.monotonic() < end:
            time.sleep(0.02)
        found = sorted(os.listdir(where))
    left = os.listdir(where)
    os.rmdir(where)
    expect(
        r.status == 0 and found == ["events", "others", "run_calls"]
        and not left, found, left, r.err)


@claim_each(("run", "x.bpf.o", 2, "--cover-inlined"),
            ("run --cover-inlined", "/nonexistent.o", 2, "/nonexistent.o"),
            ("run --cover-inlined", "/etc/passwd", 4, "/etc/passwd"),
            ("run --cover-inlined a.o", "b.o", 2, "one object"))
def a_command_line_that_makes_no_sense_is_told(row):
    words, operand, status, text = row
    r = cairn(*words.split(), operand)
    expect(r.status == status and text in r.err and not r.out, r)


if __name__ == "__main__":
    main()
