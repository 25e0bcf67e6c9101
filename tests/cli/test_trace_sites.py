#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn trace at instructions and copies where a probe would do harm, or where events would not be
calls."""

import os
import subprocess
import time

import tracing
from claims import (Skip, cairn, claim, claim_each, compile_c, expect, folder, main, need,
                    need_root, run)


def trace(*words):
    """cairn trace of the debug information, or skip where tracing is not possible."""
    r = tracing.trace("--no-sidecar", *words)
    return r


# ---- instructions ----

PUSHF = """\
__attribute__((naked,noinline)) unsigned long flags(void) { __asm__("pushfq; popfq; xor %eax, %eax; ret"); }
int main(void) { return flags(); }
"""


@claim
def what_shows_the_single_step_is_refused_and_the_program_lives():
    path = compile_c("pushf", PUSHF, flags=("-O1", "-g"))
    r = trace("-c", path, "flags")
    expect(r.status == 1 and "the kernel's single step" in r.err, r)
    hazards = cairn("sites", "--hazards", path, "--json").objects()
    expect(("sees-step", "flags") in [(h["hazard"], h["symbol"]) for h in hazards], hazards)
    expect("left out: " in cairn("sites", path, "flags", "--emit", "bpftrace").out, path)


# clear's arguments are in the registers that rep stosb counts in; SETUP stands between their
# loading and the instruction.
REP = """\
static inline __attribute__((always_inline)) void clear(char *p, long n)
{
	__asm__ volatile("rep stosb" : "+D"(p), "+c"(n) : : "memory");
}
__attribute__((noinline)) void wipe(char *p, long n)
{
	__asm__ volatile("" : "+D"(p), "+c"(n));
	__asm__ volatile(SETUP : "+c"(n) : : "rdx");
	clear(p, n);
}
int main(void)
{
	char b[64];
	for (long i = 0; i < 3; i++)
		wipe(b, 20 + i);
	return 0;
}
"""


def repeats(name, setup):
    path = compile_c(name, REP.replace("SETUP", f'"{setup}"'))
    site = cairn("sites", "--no-sidecar", "--json", path, "clear").objects()[0]
    expect(site["hazard"] == "repeats", site)
    hazards = cairn("sites", "--hazards", path, "--json").objects()
    expect(("repeats", "wipe") in [(h["hazard"], h["symbol"]) for h in hazards], hazards)
    return path


@claim
def a_repeated_string_instruction_is_probed_before_it_and_gives_one_event():
    path = repeats("ahead", "xor %%edx, %%edx")
    r = trace("--json", "-c", path, "clear")
    *events, summary = r.objects()
    expect([e["args"]["n"] for e in events] == [20, 21, 22] and summary["refused"] == 0, r)
    r = trace("--no-move", "-c", path, "clear")
    expect(r.status == 1 and "one event for each repetition" in r.err, r)


@claim
def a_repeated_string_instruction_is_refused_where_nothing_before_it_will_do():
    r = trace("-c", repeats("at_once", "dec %%rcx"), "clear")
    expect(r.status == 1 and "one event for each repetition" in r.err, r)


# ---- copies ----

# As git's xdl_hash_record(). Both functions end in "*data = ...; return ha;", which GCC shares, and
# the copy's first range is that end.
SHARED_END = r"""
extern const unsigned char sane[256];
#define isspace(x) (sane[(unsigned char)(x)] & 1)
#define WS 6
static unsigned long with_whitespace(char const **data, char const *top, long flags)
{
	unsigned long ha = 5381;
	char const *ptr = *data;
	int cr_at_eol_only = (flags & WS) == 2;
	for (; ptr < top && *ptr != '\n'; ptr++) {
		if (cr_at_eol_only) {
			if (*ptr == '\r' && (ptr + 1 < top && ptr[1] == '\n'))
				continue;
		} else if (isspace(*ptr)) {
			const char *ptr2 = ptr;
			int at_eol;
			while (ptr + 1 < top && isspace(ptr[1]) && ptr[1] != '\n')
				ptr++;
			at_eol = (top <= ptr + 1 || ptr[1] == '\n');
			if (flags & 4 && !at_eol) {
				ha += (ha << 5);
				ha ^= (unsigned long)' ';
			} else if (flags & 8 && !at_eol) {
				while (ptr2 != ptr + 1) {
					ha += (ha << 5);
					ha ^= (unsigned long)*ptr2;
					ptr2++;
				}
			}
			continue;
		}
		ha += (ha << 5);
		ha ^= (unsigned long)*ptr;
	}
	*data = ptr < top ? ptr + 1 : ptr;
	return ha;
}
unsigned long hash_record(char const **data, char const *top, long flags)
{
	unsigned long ha = 5381;
	char const *ptr = *data;
	if (flags & WS)
		return with_whitespace(data, top, flags);
	for (; ptr < top && *ptr != '\n'; ptr++) {
		ha += (ha << 5);
		ha ^= (unsigned long)*ptr;
	}
	*data = ptr < top ? ptr + 1 : ptr;
	return ha;
}
int main(void)
{
	const char *text = "one\ntwo\nthree\n", *end = text + 14;
	__asm__ volatile("" : "+r"(text));
	while (text < end)
		hash_record(&text, end, 0);
	return 0;
}
const unsigned char sane[256] = {[9]=1,[10]=1,[13]=1,[32]=1};
"""


@claim
def an_end_that_a_copy_shares_with_its_caller_is_no_entry():
    for level in ("-O2", "-O3", "-Os"):
        path = compile_c("end" + level, SHARED_END, flags=(level, "-g"))
        sites = cairn("sites", "--no-sidecar", "--json", path, "with_whitespace").objects()
        found = [p for p in sites if "addr" in p]
        expect(found and all("no-entry" in p["count_caveats"] for p in found), level, found)
        r = trace("-c", path, "with_whitespace")
        expect(r.status == 1 and not r.out and "no entry in the debug information" in r.err, level,
               r)


# The shape of every chained hash table. Both conditions of the loop leave it, and GCC tests
# entry_equals' first one before *e.
HASH_CHAIN = r"""
#include <stddef.h>
struct ent { struct ent *next; unsigned hash; };
struct map { struct ent **table; int (*cmp)(const void *, const struct ent *, const struct ent *, const void *); const void *data; unsigned size; };
static inline int entry_equals(const struct map *m, const struct ent *e1, const struct ent *e2, const void *k)
{
	return e1 == e2 || (e1->hash == e2->hash && !m->cmp(m->data, e1, e2, k));
}
static inline struct ent **find(const struct map *m, const struct ent *key, const void *k)
{
	struct ent **e = &m->table[key->hash & (m->size - 1)];
	while (*e && !entry_equals(m, *e, key, k))
		e = &(*e)->next;
	return e;
}
__attribute__((noinline)) struct ent *get(const struct map *m, const struct ent *key, const void *k)
{
	if (!m->table)
		return NULL;
	return *find(m, key, k);
}
static int cmp(const void *d, const struct ent *a, const struct ent *b, const void *k) { return 0; }
int main(void)
{
	struct ent a = {NULL, 1}, *t[4] = {NULL, &a, NULL, NULL};
	struct map m = {t, cmp, NULL, 4};
	for (unsigned i = 0; i < 8; i++) {	/* buckets 0, 2, 3 are empty: entry_equals is called twice: i = 1, 5 */
		struct ent key = {NULL, i};
		get(&m, &key, &key);
	}
	return 0;
}
"""

# The function's own test for NULL stands before it looks at anything: each pass is a call.
OWN_TEST = r"""
struct e { struct e *next; int key; };
static inline int is_key(const struct e *e, int key) { return e && e->key == key; }
__attribute__((noinline)) int count(const struct e *e, int key)
{
	int n = 0;
	for (int i = 0; i < key; i++) {
		n += is_key(e, i);
		if (e)
			e = e->next;
	}
	return n;
}
int main(void) { struct e a = { 0, 1 }, b = { &a, 2 }; return count(&b, 3) == 9; }
"""


@claim
def a_loop_whose_condition_is_tested_after_the_call_is_announced():
    path = compile_c("chain", HASH_CHAIN)
    found = doubts(path, "entry_equals")
    expect(found and all("before-test" in d for d in found), found)
    # What BTF says of the arguments there is what cairn sites says: nothing.
    encoded, = cairn("btf", "encode", path, "-o", path + ".btf", "--json", check=True).objects()
    expect(encoded["unavailable"].get("without-call", 0) >= 2 * len(found), encoded)
    r = trace("-c", path, "entry_equals")
    expect(r.status == 0 and "may be hit without a call" in r.err, r)
    found = doubts(compile_c("own_test", OWN_TEST), "is_key")
    expect(found and not any("before-test" in d for d in found), found)


VECTORISED_CALLS = r"""
struct st { unsigned v1, v2, v3, v4; };
static unsigned rd(const unsigned *p) { return *p; }
static unsigned rnd(unsigned seed, unsigned in) { seed += in * 2246822519u; seed = seed << 13 | seed >> 19; seed *= 2654435761u; return seed; }
__attribute__((noinline)) void upd(struct st *s, const unsigned *p, const unsigned *e)
{
	unsigned v1 = s->v1, v2 = s->v2, v3 = s->v3, v4 = s->v4;
	do {
		v1 = rnd(v1, rd(p)); p++;
		v2 = rnd(v2, rd(p)); p++;
		v3 = rnd(v3, rd(p)); p++;
		v4 = rnd(v4, rd(p)); p++;
	} while (p < e);
	s->v1 = v1; s->v2 = v2; s->v3 = v3; s->v4 = v4;
}
int main(void) { unsigned a[40]; struct st s = { 1, 2, 3, 4 }; for (int i = 0; i < 40; i++) a[i] = i; asm volatile("" :: "r"(a) : "memory"); upd(&s, a, a + 40); return s.v1 == 5; }
"""

VECTORISED_LOOPS = r"""
#define NI __attribute__((noinline))
static inline int sq(int x) { return x * x; }
NI int sum(const int *a, int n) { int s = 0; for (int i = 0; i < n; i++) s += sq(a[i]); return s; }
NI void map(int *restrict d, const int *restrict a, int n) { for (int i = 0; i < n; i++) d[i] = sq(a[i]); }
static inline unsigned rd(unsigned acc, unsigned in) { acc += in * 7u; acc = acc << 13 | acc >> 19; return acc * 5u; }
NI void four(unsigned *v, const unsigned *p) { v[0] = rd(v[0], p[0]); v[1] = rd(v[1], p[1]); v[2] = rd(v[2], p[2]); v[3] = rd(v[3], p[3]); }
int main(void) { int a[40], d[40]; unsigned v[4] = {1,2,3,4}, p[4] = {5,6,7,8}; for (int i = 0; i < 40; i++) a[i] = i; int s = sum(a, 40); map(d, a, 40); four(v, p); asm volatile("" :: "r"(d), "r"(s), "r"(v) : "memory"); return 0; }
"""

# The same with the loop inside: its turns are no calls.
VECTORS_INSIDE = r"""
static inline int sum(const int *a, int n) { int s = 0; for (int i = 0; i < n; i++) s += a[i] * a[i]; return s; }
__attribute__((noinline)) int use(const int *a, int n) { return sum(a, n) + 1; }
int main(int argc, char **argv) { int a[40]; for (int i = 0; i < 40; i++) a[i] = i * argc; return use(a, 40) == 7; }
"""


def doubts(path, function):
    sites = cairn("sites", "--no-sidecar", "--json", path, function).objects()
    return [p["count_caveats"] for p in sites if "addr" in p]


@claim
def calls_that_a_vector_instruction_makes_together_are_announced():
    straight = compile_c("straight", VECTORISED_CALLS, flags=("-O2", "-g"))
    loops = compile_c("loops", VECTORISED_LOOPS, flags=("-O3", "-g"))
    for path, function in ((straight, "rnd"), (loops, "sq")):
        found = doubts(path, function)
        expect(found and all("vectorised" in d for d in found), function, found)
        r = trace("-c", path, function)
        expect(r.status == 0 and "one event may stand for several calls" in r.err, r)
    expect(not any("vectorised" in d for d in doubts(loops, "rd")), "scalar calls",
           doubts(loops, "rd"))


@claim
def a_loop_that_was_vectorised_inside_of_a_copy_is_one_call():
    found = doubts(compile_c("inside", VECTORS_INSIDE, flags=("-O3", "-g")), "sum")
    expect(found and not any("vectorised" in d for d in found), found)


# ---- files ----

# GCC puts both stores of 4 bytes to one address, and its DIEs are not in the order of the calls
# (libpng's png_write_IHDR).
TWO_CALLS = """\
#include <stdint.h>
static inline void put32(unsigned char *b, uint32_t v) { b[0] = v >> 24; b[1] = v >> 16; b[2] = v >> 8; b[3] = v; }
__attribute__((noinline)) void use(unsigned char *b) { asm volatile("" :: "r"(b) : "memory"); }
__attribute__((noinline)) void head(uint32_t w, uint32_t h, int d)
{
	unsigned char b[16];
	put32(b, w);
	put32(b + 4, h);
	b[8] = d;
	put32(b + 9, w ^ h);
	use(b);
}
int main(void) { head(1, 2, 3); head(7, 8, 9); return 0; }
"""


@claim_each("debug information", "sidecar")
def calls_that_begin_at_one_address_come_in_their_order(by):
    path = compile_c("two-calls", TWO_CALLS, "gcc", ("-O2", "-g"))
    words = ("--no-sidecar",)
    if by == "sidecar":
        cairn("sidecar", path, "-o", path + ".cairn", check=True)
        words = ("--sidecar", path + ".cairn")
    found = cairn("sites", path, "put32", "--json", *words, check=True).objects()
    expect(
        len({o["addr"]
             for o in found
             if o["kind"] == "inlined"}) < 3,
        "no two calls share an address: the program no longer shows it")
    expect([o["call"]["line"] for o in found if o["kind"] == "inlined"] == [7, 8, 10], found)
    need_root()
    r = cairn("trace", *words, "--json", "-c", path, "put32")
    if r.status == 3 and "CONFIG_" in r.err:
        raise Skip(" ".join(r.err.split()))
    events = [o["args"]["v"] for o in r.objects() if "args" in o]
    expect(events == [1, 2, 3, 7, 8, 15], events, r)


@claim
def a_kernel_image_and_a_module_get_no_user_probes():
    files = {}
    source = os.path.join(folder(), "kernel.s")
    with open(source, "w", encoding="utf-8") as file:
        file.write(
            ".globl tcp_ack\n.type tcp_ack, @function\ntcp_ack: nop\nret\n.size tcp_ack, . - tcp_ack\n"
        )
    files["vmlinux"] = os.path.join(folder(), "vmlinux")
    run(need("gcc"), "-nostdlib", "-static", "-no-pie", "-g",
        "-Wl,-Ttext=0xffffffff81000000,-e,tcp_ack", "-o", files["vmlinux"], source, check=True)
    files["vmlinux.debug"] = files["vmlinux"] + ".debug"
    run(need("objcopy"), "--only-keep-debug", files["vmlinux"], files["vmlinux.debug"], check=True)
    with open(source, "a", encoding="utf-8") as file:
        file.write('.section .modinfo,"a"\n.string "license=GPL"\n')
    files["x.ko"] = os.path.join(folder(), "x.ko")
    run("gcc", "-g", "-c", "-o", files["x.ko"], source, check=True)
    for name, path in files.items():
        r = cairn("trace", "--no-sidecar", path + ":tcp_ack")
        expect(
            r.status == 3 and not r.out and "user probes never fire" in r.err and "trace -k" in r.err,
            name, r)
        r = cairn("sites", "--no-sidecar", path, "tcp_ack", "--emit", "perf")
        expect(r.status == 3 and not r.out and "user probes" in r.err and "kprobe" in r.err, name,
               r)
    r = cairn("sites", "--no-sidecar", files["vmlinux"], "tcp_ack")
    expect(r.status == 0 and "0xffffffff81000000" in r.out, r)


# ---- patterns and processes ----

PATTERN = PUSHF.replace(
    "{ return flags(); }", "{ flag_one(1); flag_two(2); return flags(); }"
).replace(
    "int main",
    "__attribute__((noinline)) void flag_one(int n) { __asm__ volatile(\"\" : : \"r\"(n)); }\n"
    "__attribute__((noinline)) void flag_two(int n) { __asm__ volatile(\"\" : : \"r\"(n)); }\nint main"
)


@claim
def a_bad_site_leaves_a_pattern_and_stops_a_name():
    path = compile_c("pattern", PATTERN, flags=("-O1", "-g"))
    r = trace("--json", "-c", path, "flag*")
    *events, summary = r.objects()
    expect([e["args"]["n"] for e in events] == [1, 2] and summary["refused"] == 1, r)
    expect("  flags " in r.err and "the kernel's single step" in r.err, r)
    r = cairn("trace", "--no-sidecar", "--dry-run", "-c", path, "flag*")
    expect(r.status == 0 and "nothing would be attached" not in r.err, r)
    r = trace("-c", path, "flag_*", "flags")
    expect(
        r.status == 1 and not r.out and "1 of 3 sites" in r.err
        and "\n--best-effort attaches the others\n" in r.err, r)
    r = trace("-c", path, "flags*")
    expect(r.status == 1 and not r.out, r)


MASTER = """\
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) void work(int n) { __asm__ volatile("" : : "r"(n) : "memory"); }
static void worker(int n)
{
	if (n == 2 && fork() == 0)
		n = 3;
	for (int i = 0; i < 3000; i++) {
		work(n);
		usleep(10000);
	}
	_exit(0);
}
int main(void)
{
	for (int n = 1; n <= 2; n++)
		if (fork() == 0)
			worker(n);
	write(1, "started", 7);
	while (wait(0) > 0)
		;
	return 0;
}
"""


def of_running_workers(*words):
    """Trace a master whose three workers run since before, one of them the child of another."""
    need_root()
    with subprocess.Popen([compile_c("master", MASTER)], stdout=subprocess.PIPE,
                          start_new_session=True) as process:
        try:
            process.stdout.read(7)
            time.sleep(0.5)
            return trace("--json", "-p", str(process.pid), "--duration", "1s", "work", *words)
        finally:
            os.killpg(process.pid, 9)


@claim
def children_that_run_already_are_followed():
    r = of_running_workers("-f")
    *events, summary = r.objects()
    expect({e["args"]["n"] for e in events} == {1, 2, 3} and summary["children"] == 3, r)
    expect("3 child processes that run already are traced, too" in r.err, r)


@claim
def children_that_run_already_and_are_not_followed_are_said():
    r = of_running_workers()
    expect([o for o in r.objects() if "summary" not in o] == [] and "-f follows" in r.err, r)


if __name__ == "__main__":
    main()
