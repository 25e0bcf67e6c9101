/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What it costs to say what code there is
 *
 *	bench_codectl functions [N]	per function of three rows, N of them (100,000), beside what JITs do now
 *	bench_codectl rows [N]		only rows, for whoever counts system calls
 *	bench_codectl objects		register and unregister one object, with path, build-id and debug link
 *
 * Processor time of this thread, the best of several rounds. Peers take turns in each round. A
 * program registers most functions once, in memory that it never touched: the ratio of the first
 * round is of that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cairn/jit/codectl.h>
#include <cairn/jit/jit.h>

#include "codectl_peers.h"

enum { ROUNDS = 5, N_DEFAULT = 100000, NAME_BYTES = 32, OBJECT_ROUNDS = 200000, OBJECTS = 200 };

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- functions ---- */

struct result {
	double publish_s, withdraw_s; /* each the best */
	double first_s;               /* of both together: in memory that was not touched before */
};

static uint8_t *code;
static char *names;

static void run_once(const struct peer *peer, size_t n, struct result *best)
{
	peer->open(n);
	double t = now_s();
	for (size_t i = 0; i < n; i++)
		peer->publish(i, code + i * FUNCTION_BYTES, names + i * NAME_BYTES);
	double publish = now_s() - t;
	t = now_s();
	for (size_t i = 0; peer->withdraw && i < n; i++)
		peer->withdraw(i);
	double withdraw = now_s() - t;
	peer->close();
	if (!best->first_s)
		best->first_s = publish + withdraw;
	if (publish < best->publish_s)
		best->publish_s = publish;
	if (withdraw < best->withdraw_s)
		best->withdraw_s = withdraw;
}

/* What is said without a way to take it back is compared without that. */
static double compared(const struct peer *peer, const struct result *r)
{
	return r->publish_s + (peer->withdraw ? r->withdraw_s : 0);
}

/* "9.1": how many times what we take. The first rounds can be compared where both take back. */
static void put_ratio(const struct peer *peer, const struct result *r, const struct result *own)
{
	printf(" %8.1f", compared(peer, r) / compared(peer, own));
	if (peer->withdraw)
		printf(" %8.1f", r->first_s / own->first_s);
	else
		printf(" %8s", "");
}

static void functions(size_t n)
{
	/* clang-format off */
	static const struct {
		const struct peer *peer, *ours;
		unsigned rounds, asked;
	} peers[] = {
		{&codectl_rows, NULL, ROUNDS, 0},	     {&codectl_named, NULL, ROUNDS, 0},
		{&register_frame, &codectl_rows, 1, 4},	     {&jitdump_unwind, &codectl_named, ROUNDS, 20},
		{&jitdump, &codectl_named, ROUNDS, 20},	     {&perf_map, &codectl_named, ROUNDS, 20},
		{&perf_map_buffered, &codectl_named, ROUNDS, 0}, {&gdb_list, &codectl_named, ROUNDS, 20},
#ifdef WITH_LLVM
		{&llvm_list, &codectl_named, ROUNDS, 20},
#endif
	};
	/* clang-format on */
	enum { N_PEERS = sizeof(peers) / sizeof(peers[0]) };
	struct result best[N_PEERS];
	for (size_t p = 0; p < N_PEERS; p++)
		best[p] = (struct result){1e9, 1e9, 0};
	for (unsigned round = 0; round < ROUNDS; round++)
		for (size_t p = 0; p < N_PEERS; p++)
			if (round < peers[p].rounds)
				run_once(peers[p].peer, n, &best[p]);
	printf("%zu functions of three rows, ns of processor time for each (published in order, "
	       "withdrawn in the same order)\n",
	       n);
	printf("  %-26s %10s %10s %8s %8s %6s  %s\n", "", "publish", "withdraw", "ratio", "first",
	       "asked", "others learn");
	for (size_t p = 0; p < N_PEERS; p++) {
		const struct peer *peer = peers[p].peer;
		char withdraw[32] = "never", asked[32] = "";
		if (peer->withdraw)
			snprintf(withdraw, sizeof(withdraw), "%.1f",
				 best[p].withdraw_s / (double)n * 1e9);
		if (peers[p].asked)
			snprintf(asked, sizeof(asked), "%u", peers[p].asked);
		printf("  %-26s %10.1f %10s", peer->name, best[p].publish_s / (double)n * 1e9,
		       withdraw);
		if (peers[p].ours)
			put_ratio(peer, &best[p], &best[peers[p].ours == &codectl_rows ? 0 : 1]);
		else
			printf(" %8s %8s", "", "");
		printf(" %6s  %s\n", asked, peer->says);
	}
#ifndef WITH_LLVM
	puts("  GDB's list, by LLVM: not measured, g++ and llvm-dev were missing when this was "
	     "built");
#endif
}

/* ---- rows: as many as fit a function, so that what is per function does not count ---- */

enum { ROWS = 48 };

static double append_rows(struct cairn_jit *jit, size_t n_functions)
{
	double t = now_s();
	for (size_t i = 0; i < n_functions; i++) {
		const uint8_t *start = code + i * FUNCTION_BYTES;
		struct cairn_jit_frame frame;
		cairn_jit_begin(&frame, start);
		for (int row = 1; row < ROWS; row++)
			cairn_jit_cfa(&frame, start + row, CAIRN_JIT_SP, 8 + 8 * (row & 1));
		if (cairn_jit_publish(jit, &frame, start + FUNCTION_BYTES, NULL) < 0)
			exit(1);
	}
	return now_s() - t;
}

static void rows(size_t n)
{
	size_t n_functions = n / ROWS;
	double first = 1e9, again = 1e9;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct cairn_jit *jit;
		if (cairn_jit_open(code, n_functions * FUNCTION_BYTES, NULL, &jit) < 0)
			exit(1);
		double t = append_rows(jit, n_functions);
		first = t < first ? t : first;
		cairn_jit_withdraw(jit, code, code + n_functions * FUNCTION_BYTES);
		t = append_rows(jit, n_functions);
		again = t < again ? t : again;
		cairn_jit_close(jit);
	}
	double scale = 1e9 / (double)(n_functions * ROWS);
	printf("append a row, described and published (%zu rows, functions of %d): %.2f ns (asked: "
	       "5); with the first touch of its memory %.2f ns\n",
	       n_functions * ROWS, ROWS, again * scale, first * scale);
}

/* ---- objects ---- */

static long change(unsigned int option, uint64_t at)
{
	static const char path[] = "/usr/lib/x86_64-linux-gnu/libexample.so.1.2.3",
			  link[] = "0123456789abcdef0123456789abcdef012345.debug";
	static const uint8_t build_id[20] = {1, 2, 3};
	/* clang-format off */
	struct code_elf_info elf = {
		.elf_start = at, .elf_end = at + 0x100000, .text_start = at + 0x1000, .text_end = at + 0x80000,
		.pathname = (uintptr_t)path, .build_id = (uintptr_t)build_id, .build_id_len = sizeof(build_id),
		.debug_link_pathname = (uintptr_t)link, .debug_link_crc = 7,
	};
	/* clang-format on */
	struct code_unregister_info range = {elf.text_start, elf.text_end};
	return option == CODE_UNREGISTER ? codectl(option, &range, sizeof(range), 0)
					 : codectl(option, &elf, sizeof(elf), 0);
}

static void objects(void)
{
	double best = 1e9;
	for (uint64_t i = 1; i <= OBJECTS; i++)
		change(CODE_REGISTER_ELF, i << 32);
	for (unsigned round = 0; round < ROUNDS; round++) {
		double t = now_s();
		for (unsigned i = 0; i < OBJECT_ROUNDS; i++)
			if (change(CODE_REGISTER_ELF, ((uint64_t)OBJECTS / 2 << 32) + 0x10000000) ||
			    change(CODE_UNREGISTER, ((uint64_t)OBJECTS / 2 << 32) + 0x10000000))
				exit(1);
		t = now_s() - t;
		best = t < best ? t : best;
	}
	printf("register and unregister an object, beside %d others: %.0f ns (asked: 1000)\n",
	       OBJECTS, best / OBJECT_ROUNDS * 1e9);
}

int main(int argc, char **argv)
{
	size_t n = argc > 2 ? strtoul(argv[2], NULL, 0) : N_DEFAULT;
	if (argc < 2)
		return 2;
	code = calloc(n, FUNCTION_BYTES);
	names = malloc(n * NAME_BYTES);
	if (!code || !names)
		return 1;
	for (size_t i = 0; i < n; i++)
		snprintf(names + i * NAME_BYTES, NAME_BYTES, "function_%zu", i);
	if (!strcmp(argv[1], "functions"))
		functions(n);
	else if (!strcmp(argv[1], "rows"))
		rows(n);
	else
		objects();
	return 0;
}
