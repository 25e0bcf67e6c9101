/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From FDEs to an unwind table
 *
 *	FDEs by address      [10,40) A   [20,30) B   [40,50) C
 *	segments             [10,20) A   [20,30) B   [30,40) A   [40,50) C
 *	runs, per segment    10 rule 1, 14 rule 2, 20 end; 20 rule 1, 30 end; ...
 *	rows                 10 rule 1, 14 rule 2, 20 rule 1, ...
 *
 * Segments are the parts of the FDEs after overlaps are removed, so that each address has one. They
 * are shared out in batches of a fixed number; each batch runs its FDEs and numbers its rules by
 * itself, and the batches are joined in their order. So the bytes do not depend on the number of
 * threads. Joining drops rows that repeat the rule before them: the compiler wrote them for
 * registers that we do not keep, or a function begins with the rule with which the one before
 * ended.
 *
 * Rows of an FDE that its instructions disprove are weakened (disprove.c), unless the caller wants
 * them as written.
 *
 * A procedure linkage table has one FDE for all its entries, whose expression depends on where in
 * an entry the pc is. It becomes two rows per entry.
 */
#include "cfi/table.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/pool.h"
#include "base/search.h"
#include "cfi/disprove.h"
#include "cfi/expr.h"
#include "cfi/go_rows.h"
#include "cfi/index.h"
#include "cfi/rule.h"

enum {
	BATCH = 512,                  /* segments: a millisecond of work or less */
	MAX_PLT_ENTRIES = 1 << 20,    /* a table of 16 MB; the largest seen has 5,000 entries */
	MAX_NARROW_RULE = UINT16_MAX, /* by its number; more takes wide rows */
	RBP = 6,
	PAGE_MASK = (1 << CAIRN_UNWIND_PAGE_SHIFT) - 1,
};

struct segment {
	uint64_t lo, hi;
	uint32_t item;
};

struct batch {
	struct rule_runs runs;
	struct rule_set rules;
	struct disprove_tails tails;
	uint64_t text_bytes;
	uint32_t n_dropped;
};

struct build {
	const struct cfi *cfi;
	enum unwind_belief belief;
	VEC(struct segment) segments;
	struct batch *batches;
	size_t n_batches;
	/* joined */
	struct rule_runs runs;
	struct rule_set rules;
	struct cairn_unwind_header header;
};

/* ---- segments ---- */

static bool add_segment(struct build *b, uint64_t lo, uint64_t hi, uint32_t item)
{
	return lo >= hi || VEC_ADD(&b->segments, ((struct segment){lo, hi, item}));
}

/*
 * @open is a stack of FDEs that began and may not have ended, the innermost last. Those that begin
 * at one address were put in reverse, so that the first of them is on top, as cfi_row_at() has it.
 */
struct nest {
	VEC(uint32_t) open;
	uint64_t at; /* everything before has its segment */
};

/* Segments up to @until. */
static bool close_up_to(struct build *b, struct nest *n, uint64_t until)
{
	while (n->open.n && n->at < until) {
		uint32_t top = n->open.p[n->open.n - 1];
		uint64_t end = b->cfi->items.p[top].hi;
		uint64_t hi = end < until ? end : until;
		if (n->at < hi) {
			if (!add_segment(b, n->at, hi, top))
				return false;
			n->at = hi;
		}
		if (end <= n->at)
			n->open.n--;
	}
	n->at = until;
	return true;
}

static int make_segments(struct build *b, struct cairn_err *err)
{
	const struct fde_item *items = b->cfi->items.p;
	size_t n = b->cfi->items.n;
	struct nest nest = {0};
	bool ok = n < UINT32_MAX;
	for (size_t i = 0; ok && i < n;) {
		size_t end = i + 1;
		while (end < n && items[end].lo == items[i].lo)
			end++;
		ok = close_up_to(b, &nest, items[i].lo);
		for (size_t k = end; ok && k-- > i;)
			ok = VEC_ADD(&nest.open, (uint32_t)k);
		i = end;
	}
	ok = ok && close_up_to(b, &nest, UINT64_MAX);
	VEC_FREE(&nest.open);
	return ok ? 0 : err_nomem(err, "the unwind table");
}

/* ---- runs ---- */

struct fde_run {
	struct batch *batch;
	const struct segment *segment;
	uint16_t machine;
	bool is_signal_frame;
	uint32_t set;      /* registers that a row has a rule for */
	bool is_realigned; /* a row has rbp in memory at rbp */
};

static int put_run(struct batch *batch, uint64_t lo, const struct rule_words *w)
{
	uint32_t number;
	int rc = rule_set_put(&batch->rules, w->words, w->n, &number);
	if (rc < 0)
		return rc;
	return VEC_ADD(&batch->runs.v, ((struct rule_run){lo, number})) ? 0 : -ENOMEM;
}

/* A rule for the part [lo, hi) of an entry. */
static int put_plt_part(struct batch *batch, uint64_t lo, uint64_t hi, int64_t off)
{
	struct rule_words w;
	if (lo >= hi)
		return 0;
	rule_cfa(&w, CAIRN_UNWIND_CFA_REG, 0, 7, (int32_t)off, 0);
	return put_run(batch, lo, &w);
}

static int put_plt(struct batch *batch, uint64_t lo, uint64_t hi, const struct expr_plt *plt)
{
	uint64_t entry = (uint64_t)plt->mask + 1;
	int rc = 0;
	for (uint64_t at = lo & ~(uint64_t)plt->mask; rc == 0 && at < hi; at += entry) {
		uint64_t from = at + plt->from;
		rc = put_plt_part(batch, at < lo ? lo : at, from < hi ? from : hi, plt->off);
		if (rc == 0 && plt->from < entry)
			rc = put_plt_part(batch, from < lo ? lo : from,
					  at + entry < hi ? at + entry : hi,
					  plt->off + (INT64_C(1) << plt->shift));
	}
	return rc;
}

static bool is_plt(const struct program_rules *row, uint64_t size, struct expr_plt *ret)
{
	return row->cfa == CFI_CFA_EXPR && expr_is_plt(row->cfa_expr, row->cfa_expr_len, ret) &&
	       size / (ret->mask + 1u) < MAX_PLT_ENTRIES && ret->off >= 0 && ret->off < PAGE_MASK;
}

static int put_row(void *ctx, uint64_t lo, uint64_t hi, const struct program_rules *row)
{
	struct fde_run *f = ctx;
	struct expr_plt plt;
	struct rule_words w;
	f->set |= row->set;
	f->is_realigned |= row->set & 1u << RBP && row->regs[RBP].kind == CFI_REG_AT_REG;
	if (lo < f->segment->lo)
		lo = f->segment->lo;
	if (hi > f->segment->hi)
		hi = f->segment->hi;
	if (lo >= hi)
		return 0;
	if (is_plt(row, hi - lo, &plt)) {
		f->batch->text_bytes += hi - lo;
		return put_plt(f->batch, lo, hi, &plt);
	}
	rule_of(f->machine, f->is_signal_frame, row, &w);
	if (w.words[0])
		f->batch->text_bytes += hi - lo;
	return put_run(f->batch, lo, &w);
}

/* Rows of a damaged program before its damage do not count either. */
static int drop(struct batch *batch, const struct segment *s, size_t n_runs, uint64_t text_bytes)
{
	struct rule_words w;
	batch->runs.v.n = n_runs;
	batch->text_bytes = text_bytes;
	batch->n_dropped++;
	rule_undescribed(&w);
	return put_run(batch, s->lo, &w);
}

/*
 * Only code counts: an FDE may claim the whole address space. False when there is none; *@ret is
 * NULL where the file has no bytes for it.
 */
static bool clip_to_code(const struct build *b, struct segment *s, const uint8_t **ret)
{
	const struct elf *e = binary_main(b->cfi->bin);
	uint64_t n;
	if (!elf_is_code(e, (struct cairn_vaddr){s->lo}, ret, &n) ||
	    (!*ret && b->belief != UNWIND_WITHOUT_CODE))
		return false;
	if (s->hi - s->lo > n)
		s->hi = s->lo + n;
	return true;
}

/* Rows from @first on are all of an FDE. */
static int disprove(const struct build *b, const struct fde_run *f, const uint8_t *code,
		    size_t first, struct disprove *d)
{
	struct batch *batch = f->batch;
	const struct disprove_fde fde = {f->segment->lo,  f->segment->hi, code, f->set,
					 f->is_realigned, first,          NULL};
	uint64_t gone = 0;
	if (b->belief != UNWIND_PROVED || b->cfi->machine != EM_X86_64 || f->is_signal_frame)
		return 0;
	int rc = disprove_rows(d, &fde, &batch->runs, &batch->rules, &gone, &batch->tails);
	batch->text_bytes -= gone;
	return rc;
}

static int put_segment(const struct build *b, struct batch *batch, struct segment *s,
		       struct cie_cache *cache, struct disprove *d)
{
	const struct frame_section *sec;
	struct frame_fde fde;
	struct fde_run f = {.batch = batch, .segment = s, .machine = b->cfi->machine};
	struct rule_words end;
	const uint8_t *code;
	if (!clip_to_code(b, s, &code)) {
		batch->n_dropped++;
		return 0;
	}
	size_t n_runs = batch->runs.v.n;
	uint64_t text_bytes = batch->text_bytes;
	int rc = index_fde(b->cfi, &b->cfi->items.p[s->item], cache, &sec, &fde);
	if (rc == 0) {
		f.is_signal_frame = fde.cie.is_signal_frame;
		rc = program_run(sec, &fde, put_row, &f, NULL);
	}
	if (rc == 0 && fde.lo == s->lo && fde.hi == s->hi)
		rc = disprove(b, &f, code, n_runs, d);
	if (rc < 0 && rc != -ENOMEM)
		rc = drop(batch, s, n_runs, text_bytes);
	rule_undescribed(&end);
	return rc < 0 ? rc : put_run(batch, s->hi, &end);
}

/* A large program's code is read once: its pages are not kept until all of it was read. */
static void release_code(const struct build *b, const struct segment *first,
			 const struct segment *last)
{
	const struct elf *e = binary_main(b->cfi->bin);
	const uint8_t *code;
	size_t n;

	if (!elf_code_at(e, (struct cairn_vaddr){first->lo}, &code, &n) || last->hi < first->lo)
		return;
	elf_release(e, code, last->hi - first->lo < n ? last->hi - first->lo : n);
}

static int run_batch(void *ctx, size_t i, unsigned int worker, struct cairn_err *err)
{
	struct build *b = ctx;
	struct batch *batch = &b->batches[i];
	struct cie_cache cache = {0};
	struct disprove d = {0};
	size_t end = (i + 1) * BATCH < b->segments.n ? (i + 1) * BATCH : b->segments.n;
	int rc = rule_set_init(&batch->rules);
	for (size_t s = i * BATCH; rc == 0 && s < end; s++)
		rc = put_segment(b, batch, &b->segments.p[s], &cache, &d);
	disprove_fini(&d);
	release_code(b, &b->segments.p[i * BATCH], &b->segments.p[end - 1]);
	return rc < 0 ? err_nomem(err, "the unwind table") : 0;
}

/* ---- joining ---- */

static bool is_at_end(const struct build *b, uint64_t lo)
{
	return b->runs.v.n && b->runs.v.p[b->runs.v.n - 1].lo == lo;
}

/* A run at the address where the one before ended replaces that end. */
static bool join_run(struct build *b, uint64_t lo, uint32_t rule)
{
	if (is_at_end(b, lo))
		b->runs.v.n--;
	uint32_t before = b->runs.v.n ? b->runs.v.p[b->runs.v.n - 1].rule : 0;
	return before == rule || VEC_ADD(&b->runs.v, ((struct rule_run){lo, rule}));
}

/* Rule numbers of a batch to those of the table; @map has a slot per word. */
static int join_rules(struct build *b, const struct rule_set *from, uint32_t *map)
{
	for (size_t at = 0; at < from->words.n;) {
		const uint32_t *words = from->words.p + at;
		size_t n = rule_n_words(words);
		int rc = rule_set_put(&b->rules, words, n, &map[at]);
		if (rc < 0)
			return rc;
		at += n;
	}
	return 0;
}

static int join_batch(struct build *b, const struct batch *batch, struct cairn_err *err)
{
	uint32_t *map = calloc(batch->rules.words.n, sizeof(*map));
	int rc = map ? join_rules(b, &batch->rules, map) : -ENOMEM;
	for (size_t i = 0; rc == 0 && i < batch->runs.v.n; i++)
		if (!join_run(b, batch->runs.v.p[i].lo, map[batch->runs.v.p[i].rule]))
			rc = -ENOMEM;
	free(map);
	b->header.n_dropped += batch->n_dropped;
	b->header.text_bytes += batch->text_bytes;
	return rc < 0 ? err_nomem(err, "the unwind table") : 0;
}

/* ---- jumps from one function into the middle of another ---- */

enum { MAX_TAILS = 256 }; /* libcrypto has 2 */

/* The segment around an address; NULL: none, or it begins there. */
static const struct segment *middle_of(const struct build *b, uint64_t at)
{
	size_t lo = SEARCH(0, b->segments.n, middle, b->segments.p[middle].lo <= at);
	const struct segment *s = lo ? &b->segments.p[lo - 1] : NULL;
	return s && s->lo < at && at < s->hi ? s : NULL;
}

/* Runs of [s->lo, s->hi), which may begin before. */
static int runs_of(const struct build *b, const struct segment *s, struct rule_runs *ret)
{
	for (size_t i = 0; i < b->runs.v.n && b->runs.v.p[i].lo < s->hi; i++) {
		struct rule_run run = b->runs.v.p[i];
		if (i + 1 < b->runs.v.n && b->runs.v.p[i + 1].lo <= s->lo)
			continue;
		run.lo = run.lo < s->lo ? s->lo : run.lo;
		if (!VEC_ADD(&ret->v, run))
			return -ENOMEM;
	}
	return 0;
}

/* Puts @with in place of the runs of [s->lo, s->hi). */
static int replace_runs(struct build *b, const struct segment *s, const struct rule_runs *with)
{
	struct rule_runs old = b->runs;
	bool ok = true;
	uint32_t end = 0;
	size_t i = 0;
	b->runs = (struct rule_runs){0};
	for (; ok && i < old.v.n && old.v.p[i].lo < s->lo; i++)
		ok = join_run(b, old.v.p[i].lo, end = old.v.p[i].rule);
	for (; i < old.v.n && old.v.p[i].lo < s->hi; i++)
		end = old.v.p[i].rule;
	for (size_t k = 0; ok && k < with->v.n; k++)
		ok = join_run(b, with->v.p[k].lo, with->v.p[k].rule);
	if (ok && !(i < old.v.n && old.v.p[i].lo == s->hi))
		ok = join_run(b, s->hi, end);
	for (; ok && i < old.v.n; i++)
		ok = join_run(b, old.v.p[i].lo, old.v.p[i].rule);
	VEC_FREE(&old.v);
	return ok ? 0 : -ENOMEM;
}

static int follow_tail(struct build *b, const struct disprove_tail *tail, struct disprove *d,
		       struct disprove_tails *more)
{
	const struct segment *s = middle_of(b, tail->to);
	struct rule_runs runs = {0};
	struct disprove_fde fde = {.tail = tail};
	uint64_t gone = 0;
	size_t n;
	if (!s || s->lo != b->cfi->items.p[s->item].lo || s->hi != b->cfi->items.p[s->item].hi ||
	    !elf_code_at(binary_main(b->cfi->bin), (struct cairn_vaddr){s->lo}, &fde.code, &n) ||
	    n < s->hi - s->lo)
		return 0;
	fde.lo = s->lo;
	fde.hi = s->hi;
	int rc = runs_of(b, s, &runs);
	if (rc == 0)
		rc = disprove_rows(d, &fde, &runs, &b->rules, &gone, more);
	if (rc == 0 && runs.v.n)
		rc = replace_runs(b, s, &runs);
	b->header.text_bytes -= gone;
	VEC_FREE(&runs.v);
	return rc;
}

static int follow_tails(struct build *b, struct cairn_err *err)
{
	struct disprove d = {0};
	struct disprove_tails all = {0};
	bool ok = true;
	int rc = 0;
	for (size_t i = 0; i < b->n_batches; i++)
		for (size_t k = 0; ok && k < b->batches[i].tails.v.n; k++)
			ok = VEC_ADD(&all.v, b->batches[i].tails.v.p[k]);
	for (size_t i = 0; ok && rc == 0 && i < all.v.n && i < MAX_TAILS; i++) {
		struct disprove_tail tail = all.v.p[i];
		rc = follow_tail(b, &tail, &d, &all);
	}
	VEC_FREE(&all.v);
	disprove_fini(&d);
	return ok && rc == 0 ? 0 : err_nomem(err, "the unwind table");
}

static int join(struct build *b, struct cairn_err *err)
{
	int rc = rule_set_init(&b->rules);
	if (rc < 0)
		return err_nomem(err, "the unwind table");
	for (size_t i = 0; rc == 0 && i < b->n_batches; i++)
		rc = join_batch(b, &b->batches[i], err);
	if (rc == 0)
		rc = follow_tails(b, err);
	if (rc == 0 &&
	    go_rows_merge(binary_main(b->cfi->bin), &b->runs, &b->rules, &b->header.text_bytes) < 0)
		rc = err_nomem(err, "the unwind table");
	if (rc == 0 && b->rules.words.n >= UINT32_MAX / sizeof(uint32_t))
		return err_set(
			err, -ERANGE,
			"%zu words of different unwind rules are more than a table has numbers for",
			b->rules.words.n);
	return rc;
}

/* ---- bytes ---- */

static uint64_t page_of(const struct build *b, const struct rule_run *r)
{
	return (r->lo - b->header.base) >> CAIRN_UNWIND_PAGE_SHIFT;
}

static int count_pages(struct build *b, struct cairn_err *err)
{
	uint64_t last = UINT64_MAX;
	b->header.base = b->runs.v.n ? b->runs.v.p[0].lo & ~(uint64_t)PAGE_MASK : 0;
	for (size_t i = 0; i < b->runs.v.n; i++) {
		uint64_t page = page_of(b, &b->runs.v.p[i]);
		b->header.n_pages += page != last;
		last = page;
	}
	if (b->runs.v.n >= UINT32_MAX || (b->runs.v.n && last >= UINT32_MAX))
		return err_set(err, -ERANGE,
			       "%zu unwind rows over %" PRIu64
			       " pages are more than a table has numbers for",
			       b->runs.v.n, last);
	b->header.n_rows = (uint32_t)b->runs.v.n;
	return 0;
}

/* True if a rule needs a feature that version 1 does not have. */
static bool has_new_rule(const struct rule_set *rules)
{
	for (size_t at = 0; at < rules->words.n; at += rule_n_words(rules->words.p + at)) {
		const struct cairn_unwind_rule *r =
			(const struct cairn_unwind_rule *)(rules->words.p + at);
		for (uint32_t i = 0; i < r->n_regs; i++)
			if (cairn_unwind_word_saved(cairn_unwind_words(r)[i]) == CAIRN_UNWIND_IS_PC)
				return true;
	}
	return false;
}

static void set_version(struct build *b)
{
	bool is_wide = b->rules.words.n > (size_t)MAX_NARROW_RULE + 1;
	b->header.version = CAIRN_UNWIND_VERSION;
	if (!is_wide && !has_new_rule(&b->rules))
		return;
	b->header.version = CAIRN_UNWIND_VERSION_MAX;
	b->header.row_size =
		is_wide ? sizeof(struct cairn_unwind_wide_row) : sizeof(struct cairn_unwind_row);
}

static bool is_wide(const struct build *b)
{
	return b->header.row_size == sizeof(struct cairn_unwind_wide_row);
}

static void write_row(const struct build *b, void *rows, uint32_t i)
{
	const struct rule_run *r = &b->runs.v.p[i];
	if (is_wide(b))
		((struct cairn_unwind_wide_row *)rows)[i] =
			(struct cairn_unwind_wide_row){.off = (uint16_t)r->lo, .rule = r->rule};
	else
		((struct cairn_unwind_row *)rows)[i] = (struct cairn_unwind_row){
			.off = (uint16_t)r->lo, .rule = (uint16_t)r->rule};
}

static void write_rows(const struct build *b, struct cairn_unwind_page *pages, void *rows)
{
	uint64_t last = UINT64_MAX;
	for (uint32_t i = 0; i < b->header.n_rows; i++) {
		const struct rule_run *r = &b->runs.v.p[i];
		uint64_t page = page_of(b, r);
		if (page != last)
			*pages++ =
				(struct cairn_unwind_page){.page = (uint32_t)page, .first_row = i};
		last = page;
		write_row(b, rows, i);
	}
	*pages = (struct cairn_unwind_page){.page = UINT32_MAX, .first_row = b->header.n_rows};
}

static int write_table(struct build *b, uint8_t **ret, size_t *ret_size, struct cairn_err *err)
{
	struct cairn_unwind_header *h = &b->header;
	memcpy(h->magic, CAIRN_UNWIND_MAGIC, sizeof(h->magic));
	set_version(b);
	h->header_size = sizeof(*h);
	h->machine = b->cfi->machine;
	h->rules_size = (uint32_t)(b->rules.words.n * sizeof(uint32_t));
	size_t pages = ((size_t)h->n_pages + 1) * sizeof(struct cairn_unwind_page);
	size_t rows = (size_t)h->n_rows * (is_wide(b) ? sizeof(struct cairn_unwind_wide_row)
						      : sizeof(struct cairn_unwind_row));
	size_t size = sizeof(*h) + pages + rows + h->rules_size;
	uint8_t *bytes = malloc(size);
	if (!bytes)
		return err_nomem(err, "the unwind table");
	memcpy(bytes, h, sizeof(*h));
	write_rows(b, (struct cairn_unwind_page *)(bytes + sizeof(*h)), bytes + sizeof(*h) + pages);
	memcpy(bytes + sizeof(*h) + pages + rows, b->rules.words.p, h->rules_size);
	*ret = bytes;
	*ret_size = size;
	return 0;
}

static void build_fini(struct build *b)
{
	for (size_t i = 0; i < b->n_batches; i++) {
		VEC_FREE(&b->batches[i].runs.v);
		VEC_FREE(&b->batches[i].tails.v);
		rule_set_fini(&b->batches[i].rules);
	}
	free(b->batches);
	rule_set_fini(&b->rules);
	VEC_FREE(&b->segments);
	VEC_FREE(&b->runs.v);
}

int unwind_table_build(const struct cfi *cfi, enum unwind_belief belief, unsigned int threads,
		       uint8_t **ret, size_t *ret_size, struct cairn_err *err)
{
	struct build b = {.cfi = cfi, .belief = belief, .header.n_dropped = (uint32_t)cfi->damaged};
	int rc = make_segments(&b, err);
	size_t n = (b.segments.n + BATCH - 1) / BATCH;
	if (rc == 0) {
		b.batches = calloc(n ? n : 1, sizeof(*b.batches));
		rc = b.batches ? 0 : err_nomem(err, "the unwind table");
	}
	if (rc == 0) {
		b.n_batches = n;
		rc = pool_run(n, threads, run_batch, &b, err);
	}
	if (rc == 0)
		rc = join(&b, err);
	if (rc == 0)
		rc = count_pages(&b, err);
	if (rc == 0)
		rc = write_table(&b, ret, ret_size, err);
	build_fini(&b);
	return rc;
}
