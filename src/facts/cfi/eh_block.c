/* SPDX-License-Identifier: BSD-2-Clause */
#include "cfi/eh_block.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/search.h"
#include "base/vec.h"
#include "cfi/frame_entry.h"
#include "cfi/program.h"

/* A JIT describes an object or an arena by one block; the largest binaries have 500,000 FDEs. */
enum { MAX_FDES = 4 << 20, MAX_CIE_PROGRAM = 256 };

struct block_fde {
	uint64_t lo, hi;
	uint64_t reach; /* largest hi of this and all before */
	uint64_t off;
};

struct eh_block {
	uint8_t *bytes;
	struct elf_section memory;
	struct frame_section section;
	VEC(struct block_fde) fdes; /* by lo */
};

static int by_address(const void *a, const void *b)
{
	const struct block_fde *x = a, *y = b;
	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return x->off < y->off ? -1 : x->off > y->off;
}

static bool read_fde(const struct eh_block *b, const struct frame_entry *entry,
		     struct frame_fde *ret)
{
	struct frame_cie cie;
	return !entry->is_cie && !entry->body.failed &&
	       frame_cie_at(&b->section, entry->cie_off, &cie, NULL) == 0 &&
	       frame_fde_of(&b->section, entry, &cie, ret, NULL) == 0 && ret->lo < ret->hi;
}

static int index_entries(struct eh_block *b, struct cairn_err *err)
{
	struct frame_entry entry;
	struct frame_fde fde;
	for (uint64_t off = 0; off < b->memory.size; off = entry.next) {
		if (frame_entry_at(&b->section, off, &entry, NULL) < 0 || entry.is_terminator)
			break;
		if (!read_fde(b, &entry, &fde))
			continue;
		if (b->fdes.n == MAX_FDES)
			return err_set(err, -ERANGE, ".eh_frame in memory: more than %d FDEs",
				       MAX_FDES);
		if (!VEC_ADD(&b->fdes, ((struct block_fde){fde.lo, fde.hi, 0, off})))
			return err_nomem(err, "the index of FDEs");
	}
	return 0;
}

static void sort_fdes(struct eh_block *b)
{
	uint64_t reach = 0;
	if (b->fdes.n)
		qsort(b->fdes.p, b->fdes.n, sizeof(*b->fdes.p), by_address);
	for (size_t i = 0; i < b->fdes.n; i++) {
		reach = b->fdes.p[i].hi > reach ? b->fdes.p[i].hi : reach;
		b->fdes.p[i].reach = reach;
	}
}

int eh_block_open(uint8_t *bytes, size_t size, const struct eh_block_kind *kind,
		  struct eh_block **ret, struct cairn_err *err)
{
	struct eh_block *b = calloc(1, sizeof(*b));
	if (!b) {
		free(bytes);
		return err_nomem(err, "the index of FDEs");
	}
	b->bytes = bytes;
	const char *name = kind->is_debug ? ".debug_frame" : ".eh_frame";
	b->memory = (struct elf_section){
		.name = name, .addr = {kind->addr}, .data = bytes, .size = size};
	b->memory.src =
		(struct cursor_src){.file = "memory", .section = b->memory.name, .base = bytes};
	b->section = (struct frame_section){.elf = &b->memory,
					    .is_eh = !kind->is_debug,
					    .machine = kind->machine,
					    .has_text = kind->has_text,
					    .text = kind->text};
	int rc = index_entries(b, err);
	if (rc < 0) {
		eh_block_close(b);
		return rc;
	}
	sort_fdes(b);
	*ret = b;
	return 0;
}

void eh_block_close(struct eh_block *b)
{
	if (!b)
		return;
	VEC_FREE(&b->fdes);
	free(b->bytes);
	free(b);
}

size_t eh_block_n_fdes(const struct eh_block *b)
{
	return b->fdes.n;
}

void eh_block_fde(const struct eh_block *b, size_t i, uint64_t *ret_lo, uint64_t *ret_hi)
{
	*ret_lo = b->fdes.p[i].lo;
	*ret_hi = b->fdes.p[i].hi;
}

/* Among FDEs that overlap, the one that begins last. */
static const struct block_fde *find(const struct eh_block *b, uint64_t at)
{
	size_t lo = SEARCH(0, b->fdes.n, mid, b->fdes.p[mid].lo <= at);
	while (lo-- > 0 && b->fdes.p[lo].reach > at)
		if (b->fdes.p[lo].hi > at)
			return &b->fdes.p[lo];
	return NULL;
}

void eh_block_rule(const struct eh_block *b, uint64_t at, struct rule_words *ret)
{
	const struct block_fde *found = find(b, at);
	struct frame_entry entry;
	struct frame_fde fde;
	rule_undescribed(ret);
	if (!found || frame_entry_at(&b->section, found->off, &entry, NULL) < 0 ||
	    !read_fde(b, &entry, &fde))
		return;
	struct rule_search s = {.at = at,
				.machine = b->section.machine,
				.is_signal_frame = fde.cie.is_signal_frame,
				.ret = ret};
	if (program_run(&b->section, &fde, rule_search_row, &s, NULL) < 0)
		rule_undescribed(ret);
}

struct rules_of {
	const struct eh_block *block;
	bool is_signal_frame;
	int (*fn)(void *ctx, uint64_t lo, uint64_t hi, const struct rule_words *rule);
	void *ctx;
};

static int hand_out(void *ctx, uint64_t lo, uint64_t hi, const struct program_rules *row)
{
	const struct rules_of *of = ctx;
	struct rule_words rule;
	rule_of(of->block->section.machine, of->is_signal_frame, row, &rule);
	return of->fn(of->ctx, lo, hi, &rule);
}

int eh_block_rules(const struct eh_block *b, size_t i,
		   int (*fn)(void *ctx, uint64_t lo, uint64_t hi, const struct rule_words *rule),
		   void *ctx)
{
	struct rules_of of = {.block = b, .fn = fn, .ctx = ctx};
	struct frame_entry entry;
	struct frame_fde fde;
	int rc = frame_entry_at(&b->section, b->fdes.p[i].off, &entry, NULL);
	if (rc < 0 || !read_fde(b, &entry, &fde))
		return rc < 0 ? rc : -EBADMSG;
	/* It is run once more for each of its FDEs; real ones have some ten bytes. */
	if (cur_left(&fde.cie.program) > MAX_CIE_PROGRAM)
		return -EBADMSG;
	of.is_signal_frame = fde.cie.is_signal_frame;
	return program_run(&b->section, &fde, hand_out, &of, NULL);
}
