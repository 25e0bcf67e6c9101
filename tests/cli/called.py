# SPDX-License-Identifier: BSD-2-Clause
"""A program that logs its calls of functions that were inlined, and what BPF objects that count them
have in common."""
import os

from claims import compile_c, need, path_of, run, write

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
volatile long sink;
volatile double real;
struct node { long pad, value; };
struct wide { long a, b; };
__attribute__((noinline)) void far_away(long a, int b) { sink += a + b; }
static inline __attribute__((always_inline)) void put(long idx, int s, const char *name, struct node *n)
{
	printf("put %ld %d %s %ld\n", idx, s, name, n ? n->value : -1);
	far_away(idx, s);
}
static inline __attribute__((always_inline)) void only(signed char a, unsigned short b)
{
	printf("only %d %d - 0\n", a, b);
	sink += a;
}
static inline __attribute__((always_inline)) void lost(long a, int gone) { far_away(a, 5); }
static inline __attribute__((always_inline)) void by_value(struct wide w, long after) { far_away(w.a + after, 1); }
__attribute__((noinline)) void plain(long a, int b) { sink += a * b; }
__attribute__((noinline)) void work(long n, int s, struct node *at)
{
	put((n - 17) >> 4, s, "work", at);
	only((signed char)(n * 3), (unsigned short)(s + 250));
	lost(n, (int)(real * 1.5));
	by_value((struct wide){n, s}, n);
}
__attribute__((noinline)) void other(long *from, int k)
{
	put(*from, k * 2, "other", NULL);
	only(-5, 65000);
	plain(*from, k);
}
void (*volatile keep)(long, int, const char *, struct node *) = put;
int main(void)
{
	struct node nodes[4] = {{0, 1}, {0, 2}, {0, 3}, {0, 4}};
	long all[4] = {3, 1 << 20, -5, 7};

	for (int i = 0; i < 6; i++) {
		work(1000 + 100 * i, -7 - i, &nodes[i % 4]);
		other(&all[i % 4], i - 1);
		keep(i, 100 + i, "body", &nodes[i % 4]);
	}
	return 0;
}
"""
HEAD = r"""
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
struct call { long a, b, value; char function[8], name[8]; };
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, struct call);
	__type(value, long);
} run_calls SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, 4);
} events SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 4);
} others SEC(".maps");
struct node { long pad, value; };
char LICENSE[] SEC("license") = "GPL";

static __noinline int count(struct call *call)
{
	long one = 1, *n = bpf_map_lookup_elem(&run_calls, call);

	if (n)
		__sync_fetch_and_add(n, 1);
	else
		bpf_map_update_elem(&run_calls, call, &one, BPF_ANY);
	return 0;
}
"""


def compile_object(name, text, of=None):
    need("clang")
    text = text.replace("FILE", of or target())
    source = write(name + ".bpf.c", text)
    path = path_of(name + ".bpf.o")
    run("clang",
        "-O2",
        "-g",
        "-w",
        "-target",
        "bpf",
        "-D__TARGET_ARCH_x86",
        "-idirafter",
        f"/usr/include/{os.uname().machine}-linux-gnu",
        "-c",
        source,
        "-o",
        path,
        check=True)
    return path


def target():
    return compile_c("called", PROGRAM)
