/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Walking one's own stack of 46 frames, each of another function, without frame pointers; making
 * and searching tables
 *
 *	bench_unwind walk            ours warm and cold, glibc backtrace(), _Unwind_Backtrace(); not linked with libunwind,
 *	                             which replaces the last two
 *	bench_unwind table [FILE]    rows from call frame information, size, lookups
 *
 * Processor time of this thread, best of 9 rounds.
 */
#include <execinfo.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unwind.h>

#include <cairn/backtrace.h>
#include <cairn/unwind.h>

#include "bench_unwind.h"
#include "unwind/backtrace_object.h"

static struct cairn_addr pcs[MAX_FRAMES];
static void *addresses[MAX_FRAMES];

static size_t ours(void)
{
	struct cairn_backtrace walk;
	return cairn_backtrace(pcs, MAX_FRAMES, &walk);
}

static size_t theirs(void)
{
	return (size_t)backtrace(addresses, MAX_FRAMES);
}

static _Unwind_Reason_Code count_frame(struct _Unwind_Context *context, void *ctx)
{
	size_t *n = ctx;
	if (*n == MAX_FRAMES)
		return _URC_END_OF_STACK;
	addresses[(*n)++] = (void *)_Unwind_GetIP(context);
	return _URC_NO_REASON;
}

static size_t libgcc(void)
{
	size_t n = 0;
	_Unwind_Backtrace(count_frame, &n);
	return n;
}

static void walks(void)
{
	struct cairn_err err = {0};
	int n = cairn_backtrace_prepare(&err);
	if (n < 0) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
	printf("objects with a table: %d\n", n);
	measure("cairn_backtrace, warm", ours, 20000);
	backtrace_cache_use(false);
	measure("cairn_backtrace, every address as if new", ours, 2000);
	backtrace_cache_use(true);
	measure("glibc backtrace()", theirs, 1000);
	measure("_Unwind_Backtrace()", libgcc, 1000);
}

/* ---- tables ---- */

/* Among @n_places places, each of which is asked for again and again. */
static double lookup_ns(const struct cairn_unwind *table, uint64_t lo, uint64_t hi,
			uint64_t n_places)
{
	enum { N = 1 << 20, ROUNDS = 5 };
	uint64_t step = (hi - lo) / n_places;
	double best = 1e9;
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t x = 88172645463325252u, sum = 0;
		double start = thread_seconds();
		for (int i = 0; i < N; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			/*
			 * The next address depends on the last rule: the time of one, not of many
			 * at once.
			 */
			uint64_t at =
				lo +
				(uint64_t)((unsigned __int128)(x + sum) * n_places >> 64) * step;
			sum += cairn_unwind_find(table, (struct cairn_vaddr){at})->cfa;
		}
		double ns = (thread_seconds() - start) * 1e9 / N;
		best = ns < best ? ns : best;
	}
	return best;
}

/*
 * Bytes of code up to the next row: functions of random length with short rows where they begin and
 * end, 11 on the average.
 */
static uint32_t next_gap(uint32_t row, uint64_t *random)
{
	*random = *random * 6364136223846793005u + 1442695040888963407u;
	uint32_t r = (uint32_t)(*random >> 33);
	return row % 8 == 5 ? 1 + r % 125 : 1 + r % 6;
}

/* A table of @n rows of two rules. */
static void curve(uint32_t n)
{
	enum { MOST_BYTES = 13, RULES = 9 };
	uint64_t base = 0x400000, pages = ((uint64_t)n * MOST_BYTES >> CAIRN_UNWIND_PAGE_SHIFT) + 2,
		 random = 1, off = 0;
	size_t size = sizeof(struct cairn_unwind_header) +
		      (pages + 1) * sizeof(struct cairn_unwind_page) +
		      (size_t)n * sizeof(struct cairn_unwind_row) + RULES * sizeof(uint32_t);
	uint8_t *bytes = calloc(1, size);
	struct cairn_unwind_header *h = (struct cairn_unwind_header *)bytes;
	if (!bytes)
		return;
	memcpy(h->magic, CAIRN_UNWIND_MAGIC, sizeof(h->magic));
	h->version = CAIRN_UNWIND_VERSION;
	h->header_size = sizeof(*h);
	h->machine = EM_X86_64;
	h->base = base;
	h->n_pages = (uint32_t)pages;
	h->n_rows = n;
	h->rules_size = RULES * sizeof(uint32_t);
	struct cairn_unwind_page *page = (struct cairn_unwind_page *)(h + 1);
	struct cairn_unwind_row *row = (struct cairn_unwind_row *)(page + pages + 1);
	uint32_t last = UINT32_MAX;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t p = (uint32_t)(off >> CAIRN_UNWIND_PAGE_SHIFT);
		if (p != last)
			page[p] = (struct cairn_unwind_page){p, i};
		last = p;
		row[i] = (struct cairn_unwind_row){(uint16_t)off, i + 1 == n ? 0 : i & 1 ? 3 : 6};
		off += next_gap(i, &random);
	}
	h->n_pages = last + 1;
	if (last + 1 < pages)
		memmove(page + last + 2, page + pages + 1,
			n * sizeof(*row) + RULES * sizeof(uint32_t));
	page[last + 1] = (struct cairn_unwind_page){UINT32_MAX, n};
	row = (struct cairn_unwind_row *)(page + last + 2);
	struct cairn_unwind_rule *rules = (struct cairn_unwind_rule *)(row + n);
	rules[1] = (struct cairn_unwind_rule){.cfa = CAIRN_UNWIND_CFA_REG, .reg = 7, .off = 8};
	rules[2] = (struct cairn_unwind_rule){.cfa = CAIRN_UNWIND_CFA_REG, .reg = 7, .off = 16};
	struct cairn_unwind *table;
	struct cairn_err err = {0};
	if (cairn_unwind_open_mem(bytes, size, "made", &table, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
	uint64_t end = base + off;
	printf("lookup among %8u rows: %6.1f ns of 1,000 addresses, warm; %6.1f ns of all\n", n,
	       lookup_ns(table, base, end, 1000), lookup_ns(table, base, end, n));
	cairn_unwind_close(table);
	free(bytes);
}

static void of_file(const char *path)
{
	enum { ROUNDS = 3 };
	struct cairn_binary *bin;
	struct cairn_err err = {0};
	struct cairn_unwind *table = NULL;
	double best = 1e9;
	if (cairn_binary_open(path, NULL, &bin, &err) < 0) {
		printf("%s: %s\n", path, err.msg);
		return;
	}
	for (int i = 0; i < ROUNDS; i++) {
		cairn_unwind_close(table);
		double start = process_seconds();
		if (cairn_unwind_make(bin, 1, &table, &err) < 0) {
			fprintf(stderr, "%s\n", err.msg);
			exit(1);
		}
		double t = process_seconds() - start;
		best = t < best ? t : best;
	}
	size_t size;
	const struct cairn_unwind_header *h = cairn_unwind_bytes(table, &size);
	printf("%s: %u rows, %zu bytes, in %.1f ms of one core: %.2f million rows per second\n",
	       path, h->n_rows, size, best * 1e3, h->n_rows / best / 1e6);
	const struct cairn_unwind_page *page =
		(const struct cairn_unwind_page *)((const uint8_t *)h + h->header_size);
	uint64_t lo = h->base + ((uint64_t)page[0].page << CAIRN_UNWIND_PAGE_SHIFT);
	uint64_t hi = h->base + ((uint64_t)page[h->n_pages - 1].page << CAIRN_UNWIND_PAGE_SHIFT);
	if (h->n_pages > 1)
		printf("lookup among them: %.1f ns of 1,000 addresses, warm; %.1f ns of all\n",
		       lookup_ns(table, lo, hi, 1000), lookup_ns(table, lo, hi, h->n_rows));
	cairn_unwind_close(table);
	cairn_binary_close(bin);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "table") == 0) {
		for (int i = 2; i < argc; i++)
			of_file(argv[i]);
		for (uint32_t n = 1000; n <= 10000000; n *= 10)
			curve(n);
		return 0;
	}
	walks();
	return 0;
}
