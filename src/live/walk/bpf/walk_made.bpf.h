/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Code made at run time: its rows are read from the memory of the process
 *
 * A region's tables (cairn/shared/codectl.h) are a chain, ascending by address. The one that has
 * the address is found by its first row, the row by bisection, 4 bytes at a time. In one epoch of
 * the registration an address is described at most once, so a row that was found is kept by
 * address. The epoch is read before the first frame in the region, and after the walk.
 */
#ifndef WALK_WALK_MADE_BPF_H
#define WALK_WALK_MADE_BPF_H

#include "walk.bpf.h"

static __always_inline int read_counted(struct walk *w, void *to, __u32 n, __u64 from)
{
	w->n_reads++;
	w->last_read = from;
	return (int)read_user(to, n, from);
}

static __always_inline int is_epoch(struct walk *w, const struct walk_region *r,
				    const struct made *m)
{
	__u64 epoch = 0, at = r->entries + (__u64)m->entry * r->stride;

	return !read_counted(w, &epoch, sizeof(epoch),
			     at + __builtin_offsetof(struct codectl_entry, epoch)) &&
	       epoch == m->epoch;
}

/* Whether w->entry is the region, registered anew. */
static __always_inline int is_region(const struct walk *w, const struct walk_region *r)
{
	const struct codectl_entry *e = &w->entry;

	return e->epoch && e->option == CODE_REGISTER_JIT &&
	       e->info.jit.text_start == r->text_start && e->info.jit.text_end == r->text_end;
}

static __always_inline void take_entry(struct made *m, const struct codectl_entry *e, __u32 number)
{
	m->entry = number;
	m->epoch = e->epoch;
	m->unwind_head = e->info.jit.unwind_head;
	m->is_extended = e->info.jit.extended == CODE_JIT_EXTENDED;
	m->flags = m->is_extended ? e->info.jit.flags : 0;
}

/*
 * Whether the entry that is @after the region's own one, of @n, is the region: 1. 0: it is another;
 * -1: it cannot be read.
 */
__noinline int look_at_entry(struct walk *w, __u32 number, __u32 after, __u32 n)
{
	struct walk_region *r = region_at(number);
	struct made *m;
	__u32 e;

	if (!w || !r || !n)
		return -1;
	m = &w->made[number & (MAX_REGIONS - 1)];
	e = (m->entry + after) % n;
	if (read_counted(w, &w->entry, sizeof(w->entry), r->entries + (__u64)e * r->stride))
		return -1;
	if (!is_region(w, r))
		return 0;
	take_entry(m, &w->entry, e);
	return 1;
}

/*
 * The region has passed into another generation: its entry is one of the next, as slots are used in
 * turn.
 */
__noinline int follow_region(struct walk *w, __u32 number)
{
	struct walk_region *r = region_at(number);
	__u32 n = 0;

	if (!w || !r)
		return 0;
	if (read_counted(w, &n, sizeof(n), r->n_entries_at) || n > CODECTL_MAX_ENTRIES)
		return 0;
	for (int i = 1; i <= MAX_ENTRIES; i++) {
		int found = look_at_entry(w, number, i, n);

		if (found)
			return found == 1;
	}
	return 0;
}

/* Once for each region of a walk. Returns 0, or the end of the walk. */
__noinline int use_region(struct walk *w, __u32 number)
{
	struct walk_region *r = region_at(number);
	__u32 slot = number & (MAX_REGIONS - 1);
	struct made *m;
	int is_same;

	if (!w || !r)
		return WALK_END_NOT_READY;
	m = &w->made[slot];
	is_same = m->number == number && m->generation == w->process.generation;
	if (w->made_used & (1 << slot))
		return is_same ? 0 : WALK_END_READS;
	if (!is_same) {
		m->number = number;
		m->generation = w->process.generation;
		m->entry = r->entry;
		m->epoch = r->epoch;
		m->unwind_head = r->unwind_head;
		m->is_extended = r->is_extended;
		m->flags = r->flags;
	}
	if (!is_epoch(w, r, m) && !follow_region(w, number))
		return WALK_END_NOT_READY;
	w->made_used |= 1 << slot;
	return 0;
}

/* All regions of the walk are still those that they were: else their frames are none. */
__noinline int regions_stay(struct walk *w)
{
	if (!w)
		return 0;
	for (int i = 0; i < MAX_REGIONS; i++) {
		struct walk_region *r;

		if (!(w->made_used & (1 << i)))
			continue;
		r = region_at(w->made[i].number);
		if (!r || !is_epoch(w, r, &w->made[i]))
			return 0;
	}
	return 1;
}

/*
 * Among @n rows at @rows, @stride apart, the number of those that begin at or before @off. Negative
 * when one cannot be read.
 */
__noinline int count_rows(struct walk *w, __u64 rows, __u32 n, __u32 stride, __u32 off)
{
	__u32 begin = 0;

	if (!w)
		return -1;
	for (int i = 0; i < TABLE_STEPS && n; i++) {
		__u32 ip_off, at = begin + n / 2;

		if (read_counted(w, &ip_off, 4,
				 rows + (__u64)at * stride +
					 __builtin_offsetof(struct code_jit_unwind_fre, ip_off)))
			return -1;
		if (ip_off <= off) {
			begin = at + 1;
			n -= n / 2 + 1;
		} else {
			n /= 2;
		}
	}
	return (int)begin;
}

/* The row as a rule. */
static __always_inline int rule_of_row(const struct code_jit_unwind_fre *row, struct walk_rule *r)
{
	__s32 ra = row->info & CODE_ROW_RA ? row->ra_off : -8;
	__s32 fp = row->info & CODE_ROW_FP ? row->fp_off : 0;

	if (row->info & (CODE_ROW_UNDESCRIBED | CODE_ROW_RA_SIGNED) || ra != (__s16)ra ||
	    fp != (__s16)fp)
		return WALK_END_UNDESCRIBED;
	/* Only its author knows whether such code keeps rbx. */
	r->cfa = WALK_CFA_REG | WALK_NOT_SAVED << 4;
	r->reg = row->info & CODE_ROW_CFA_FP ? RBP : RSP;
	r->flags = (row->info & CODE_ROW_OUTERMOST ? WALK_OUTERMOST : 0) |
		   (row->info & CODE_ROW_SIGNAL ? WALK_SIGNAL : 0);
	r->fp_ra = WALK_AT_CFA << 4 | (row->info & CODE_ROW_FP ? WALK_AT_CFA : WALK_SAME);
	r->off = row->cfa_off;
	r->add = 0;
	r->ra_off = (__s16)ra;
	r->fp_off = (__s16)fp;
	r->bx_off = 0;
	return 0;
}

/*
 * In the table at @table, and those after it. Returns 0; the end of the walk; MAX_TABLES: ask the
 * next one, which is in w->scratch[0].
 */
__noinline int find_in_table(struct walk *w, __u64 table, __u32 off, __u32 has_heads)
{
	__u32 n_head = has_heads ? sizeof(w->table) : sizeof(struct code_jit_unwind_table);
	__u64 rows = table + n_head;
	__u32 n;
	int i;

	if (!w)
		return WALK_END_UNDESCRIBED;
	w->table = (struct code_jit_table){};
	w->row = (struct code_jit_unwind_fre){};
	if (read_counted(w, &w->table,
			 has_heads ? sizeof(w->table) : sizeof(struct code_jit_unwind_table),
			 table))
		return WALK_END_UNREADABLE;
	if (!has_heads)
		w->table.stride = sizeof(w->row);
	w->scratch[0] = w->table.next;
	if (w->table.stride < CODE_JIT_UNWIND_FRE_RFC_SIZE || w->table.stride > 4096)
		return WALK_END_UNDESCRIBED;
	n = w->table.used_len >> 32 ? 0 : (__u32)w->table.used_len / w->table.stride;
	i = count_rows(w, rows, n, w->table.stride, off);
	if (i < 0)
		return WALK_END_UNREADABLE;
	/* Before all of them it is in no table after it, after all of them it may be. */
	if (!i)
		return n ? WALK_END_UNDESCRIBED : MAX_TABLES;
	if (read_counted(w, &w->row, CODE_JIT_UNWIND_FRE_RFC_SIZE,
			 rows + (__u64)(i - 1) * w->table.stride))
		return WALK_END_UNREADABLE;
	if (off - w->row.ip_off < w->row.size)
		return rule_of_row(&w->row, &w->rule);
	return (__u32)i == n ? MAX_TABLES : WALK_END_UNDESCRIBED;
}

static __always_inline int find_in_chain(struct walk *w, const struct made *m, __u32 off)
{
	__u32 has_heads = m->is_extended;
	__u64 table = m->unwind_head;

	for (int i = 0; i < MAX_TABLES && table; i++) {
		int e = w->n_reads < WALK_MAX_READS ? find_in_table(w, table, off, has_heads)
						    : WALK_END_READS;
		if (e != MAX_TABLES)
			return e;
		table = w->scratch[0];
	}
	return table ? WALK_END_READS : WALK_END_UNDESCRIBED;
}

/* The frame pointer, as the region's owner says. */
static __always_inline void use_fp(struct walk *w)
{
	w->rule = (struct walk_rule){.cfa = WALK_CFA_REG | WALK_NOT_SAVED << 4,
				     .reg = RBP,
				     .fp_ra = WALK_AT_CFA << 4 | WALK_AT_CFA,
				     .off = 16,
				     .fp_off = -16,
				     .ra_off = -8};
}

static __always_inline struct made *made_of(struct walk *w)
{
	return &w->made[w->segment.n_pages & (MAX_REGIONS - 1)];
}

static __always_inline struct cached_row *made_row_slot(struct walk *w, __u64 at)
{
	__u32 slot = (__u32)((at * 0x9e3779b97f4a7c15ULL) >> 52) & (WALK_CACHE_SLOTS - 1);

	return row_slot(w->cache * WALK_CACHE_SLOTS + slot);
}

/* A row holds as long as its epoch; that there is none may be over at any moment. */
static __always_inline void keep_made_row(struct walk *w, __u64 at)
{
	struct cached_row *c = made_row_slot(w, at);

	if (!c)
		return;
	c->at = at;
	c->epoch = made_of(w)->epoch;
	c->generation = w->process.generation;
	c->rule = w->rule;
}

/*
 * w->rule for code of the region that w->segment is. Returns 0, or the end of the walk. What is
 * needed after the search is found again: kept on the stack, it would be more than 48 bytes.
 */
__noinline int find_made(struct walk *w, __u64 at)
{
	struct walk_region *r;
	struct cached_row *c;
	struct made *m;
	int e;

	if (!w)
		return WALK_END_LOST;
	r = region_at(w->segment.n_pages);
	e = use_region(w, w->segment.n_pages);
	if (!r || e)
		return r ? e : WALK_END_NOT_READY;
	m = made_of(w);
	w->frame = WALK_RAW | WALK_MADE | (m->epoch & WALK_EPOCH_MASK) << WALK_EPOCH_SHIFT |
		   (at & WALK_MADE_MASK);
	c = made_row_slot(w, at);
	if (c && c->at == at && c->epoch == m->epoch && c->generation == w->process.generation) {
		w->rule = c->rule;
		return 0;
	}
	e = find_in_chain(w, m, (__u32)(at - r->text_start));
	if (e == WALK_END_UNDESCRIBED && made_of(w)->flags & CODE_JIT_FRAME_POINTER) {
		use_fp(w);
		return 0;
	}
	if (!e)
		keep_made_row(w, at);
	return e;
}

#endif
