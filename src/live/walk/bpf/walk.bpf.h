/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The walk of a user's stack, from frame to frame, by rows in maps
 *
 * A frame's address leads to a segment of its process, this to a page of 64 KiB of code, the page
 * to a row, the row to a rule, and the rule to the caller. Most of the time goes into
 * reading the stack, so it is read by windows of 256 bytes, and a cache keeps the rule and the name
 * of an address.
 *
 * The state of a walk is in a map, as it is too large for a BPF program's stack, and the steps are
 * global functions, each of which the verifier looks at once: 1,024 steps would otherwise be
 * followed one by one.
 */
#ifndef WALK_WALK_BPF_H
#define WALK_WALK_BPF_H

#include "../abi.h"
#include <cairn/shared/codectl.h>

enum {
	RBX = 3,
	RBP = 6,
	RSP = 7,
	N_REGS = 16,
	WINDOW_WORDS = 32,
	WINDOW_BYTES = WINDOW_WORDS * 8,
	/* Rows are of 4 bytes, and an array's elements take multiples of 8. */
	ROWS_PER_ELEMENT = 64,
	/* A signal's frame has the registers of what it interrupted here: uc_mcontext.gregs. */
	SIGNAL_REGS = 40,
	N_SIGNAL_REGS = 17,
	N_RAW_REGS = 21,
	/* Steps of a search among 2^17 segments, and among the 512 rows of a block. */
	SEGMENT_STEPS = 18,
	ROW_STEPS = 10,
	/*
	 * Limits of a JIT: tables of a chain, steps of a search in 2^24 rows, regions of a stack.
	 */
	MAX_TABLES = 32,
	TABLE_STEPS = 24,
	MAX_REGIONS = 4,
	/*
	 * Registrations since the last walk; a JIT that is in a hurry makes some hundred a second.
	 */
	MAX_ENTRIES = 32,
};

/* A region in its present generation. */
struct made {
	__u32 number, generation; /* of the region, and of the process's mappings */
	__u32 entry, is_extended, flags;
	__u64 epoch, unwind_head;
};

/*
 * The program that includes this has WALK_HEAD, what its record has before the frames, and
 * WALK_OWN, what it keeps beside a walk.
 */
struct walk {
	WALK_HEAD head; /* and the frames after it: one record */
	__u64 frames[WALK_MAX_KERNEL + WALK_MAX_FRAMES];
	__u64 regs[N_REGS]; /* by DWARF number; all are known only in the frame where it began */
	__u64 pc, hash, other_hash;
	__u64 began_pc, began_sp; /* of the first frame */
	__u64 last_read;          /* of an unreadable end: what could not be read */
	__u64 window_at;
	__u64 window[WINDOW_WORDS];
	__u32 window_n; /* bytes */
	__u32 n, n_kernel, max_frames;
	struct walk_process process;
	struct walk_segment segment; /* the last hit */
	struct walk_rule rule;       /* of the present frame */
	__u64 frame;                 /* its number */
	__u64 cfa, saved_ra, saved_fp;
	__u8 knows_all;   /* registers */
	__u8 knows_fp;    /* rbp */
	__u8 bx;          /* enum walk_bx */
	__u64 bx_at;      /* of BX_IN_MEMORY */
	__u8 is_exact;    /* pc is not a return address */
	__u8 is_assumed;  /* a frame was */
	__u8 end;         /* enum walk_end */
	__u8 is_learned;  /* the segment was */
	__u8 made_used;   /* bit n: frames are in the region of made[n] */
	__u8 has_unfiled; /* a frame is in no file, so the stack is one of this process */
	__u8 n_exact;
	__u16 exact[WALK_EXACT_MAX]; /* frames of the user's part, and WALK_EXACT_SIGNAL */
	__u32 cache; /* whose slots it uses: the processor's number, or WALK_NO_CACHE */
	__u32 n_reads;
	__u32 is_taken;
	/* For a search in the kernel's mappings (learn.bpf.h). */
	__u64 tree, tree_max;
	__u64 scratch[N_SIGNAL_REGS];
	__u64 raw[N_RAW_REGS]; /* struct pt_regs: a program's stack has little room */
	/* Regions of JITs as this processor saw them last. */
	struct made made[MAX_REGIONS];
	struct codectl_entry entry;
	struct code_jit_table table;
	struct code_jit_unwind_fre row;
	WALK_OWN own;
};

/* find_rule()'s word for code that find_made() knows; no end. */
enum { IN_REGION = 255 };

/* rbx is read only when a frame needs it. */
enum walk_bx {
	BX_KNOWN, /* regs[RBX] */
	BX_IN_MEMORY,
	BX_LOST,
};

struct rows_element {
	struct walk_row row[ROWS_PER_ELEMENT];
};

/* An address's rule and frame, in one generation of its process's mappings. */
struct cached {
	__u64 at, frame;
	__u32 generation, rule;
};

/* A JIT's rule at an address, in one epoch of its process. */
struct cached_row {
	__u64 at, epoch;
	__u32 generation, reserved;
	struct walk_rule rule;
};

/*
 * The maps of the walk: walk_maps.bpf.h, or the memory of a test. Each gives NULL for what is not
 * there; read_user() gives 0, or a negative errno.
 */
static __always_inline struct walk_segment *segment_at(__u32 i);
static __always_inline struct walk_page *page_at(__u32 i);
static __always_inline struct rows_element *rows_at(__u32 chunk, __u32 element);
static __always_inline struct walk_rule *rule_at(__u32 number);
static __always_inline struct cached *cache_slot(__u32 i);
static __always_inline struct cached_row *row_slot(__u32 i);
static __always_inline struct walk_region *region_at(__u32 i);
static __always_inline long read_user(void *to, __u32 n, __u64 from);
/*
 * w->segment for an address that nobody has reported. 0: the kernel knows of no known file there.
 */
__noinline int learn_segment(struct walk *w, __u64 at);

/* The segment of the process that holds @at becomes w->segment. */
__noinline int find_segment(struct walk *w, __u64 at)
{
	struct walk_segment *s;
	__u32 begin, n;

	if (!w)
		return 0;
	if (at - w->segment.lo < w->segment.hi - w->segment.lo)
		return 1;
	begin = w->process.first;
	n = w->process.n;
	for (int i = 0; i < SEGMENT_STEPS && n; i++) {
		s = segment_at(begin + n / 2);
		if (!s)
			return 0;
		if (s->lo <= at) {
			begin += n / 2 + 1;
			n -= n / 2 + 1;
		} else {
			n /= 2;
		}
	}
	if (begin == w->process.first)
		return 0;
	s = segment_at(begin - 1);
	if (!s || at - s->lo >= s->hi - s->lo)
		return 0;
	w->segment = *s;
	w->is_learned = 0;
	return 1;
}

/* The rule's number at an address of a file; 0: none. */
__noinline int find_row(__u32 first_page, __u64 at)
{
	struct walk_page *p = page_at(first_page + (__u32)(at >> WALK_PAGE_SHIFT));
	__u32 off = at & ((1 << WALK_PAGE_SHIFT) - 1), block = off >> WALK_BLOCK_SHIFT;
	__u32 begin, n, rule, chunk;

	if (!p)
		return 0;
	chunk = p->chunk;
	begin = p->begins[block & (WALK_BLOCKS - 1)];
	n = block + 1 < WALK_BLOCKS ? p->begins[(block + 1) & (WALK_BLOCKS - 1)] : p->n_rows;
	n -= begin;
	/* The last of the block before, or of one before that. */
	rule = p->before;
	if (begin) {
		begin--;
		n++;
	}
	begin += p->first;
	for (int i = 0; i < ROW_STEPS && n; i++) {
		__u32 at_row = begin + n / 2, element = at_row / ROWS_PER_ELEMENT;
		struct rows_element *e = rows_at(chunk, element);
		struct walk_row row;

		if (!e)
			return 0;
		row = e->row[at_row % ROWS_PER_ELEMENT];
		if (row.off <= off) {
			rule = row.rule;
			begin = at_row + 1;
			n -= n / 2 + 1;
		} else {
			n /= 2;
		}
	}
	return rule;
}

static __always_inline int is_none(const struct walk_rule *r)
{
	return (r->cfa & 15) == WALK_CFA_NONE;
}

static __always_inline void use_rule(struct walk *w, __u32 number)
{
	struct walk_rule *r = rule_at(number);

	if (r)
		w->rule = *r;
	else
		w->rule.cfa = WALK_CFA_NONE;
}

static __always_inline struct cached *cached_at(struct walk *w, __u64 at)
{
	__u32 slot = (__u32)((at * 0x9e3779b97f4a7c15ULL) >> 52);

	return cache_slot(w->cache * WALK_CACHE_SLOTS + (slot & (WALK_CACHE_SLOTS - 1)));
}

#include "walk_made.bpf.h"

/* The word before an address: whether a call ends there, rel32 or of a register or memory. */
static __always_inline int ends_with_call(__u64 word)
{
	__u8 b[8];

	__builtin_memcpy(b, &word, 8);
	if (b[3] == 0xe8)
		return 1;
#define IS_CALL(i) (b[i] == 0xff && (b[(i) + 1] & 0x38) == 0x10)
	return IS_CALL(6) || IS_CALL(5) || IS_CALL(4) || IS_CALL(2) || IS_CALL(1);
#undef IS_CALL
}

/* Whether a call ends at @at. */
__noinline int follows_call(__u64 at)
{
	__u64 word;

	return !read_user(&word, 8, at - 8) && ends_with_call(word);
}

/*
 * Whether @pc is what makecontext(3) or boost.context put on a new stack: nobody called from there
 * (unwind/begin.c has the instructions).
 */
__noinline int begins_context(__u64 pc)
{
	__u64 code[3]; /* from 8 bytes before it on */

	if (read_user(code, sizeof(code), pc - 8) || ends_with_call(code[0]))
		return 0;
	if (code[1] == 0x48243c8b48dc8948ULL)
		return (code[2] & 0xffff) == 0xff85;
	if (code[1] == 0x000000482504f764ULL)
		return (code[2] & 0xffffffffffULL) == 0x7400000002ULL;
	return code[0] >> 40 == 0xe3ff55 && (__u32)code[1] == 0xe8ff3148 &&
	       (code[2] & 0xff) == 0xf4;
}

/*
 * w->rule and w->frame for @at. Returns 0, the end of the walk when there is no rule, or IN_REGION:
 * calls may be 8 deep, and find_made()'s are 4.
 */
__noinline int find_rule(struct walk *w, __u64 at)
{
	struct cached *c;
	__u64 in_file, key;
	__u32 rule;

	if (!w)
		return WALK_END_LOST;
	/* A beginning after @at counts only if @at was looked up for a return address. */
	key = at | (__u64)w->is_exact << 63;
	c = cached_at(w, at);
	/* Generation 0 is that of no mappings. */
	if (c && c->at == key && c->generation == w->process.generation && c->generation) {
		w->frame = c->frame;
		use_rule(w, c->rule);
		return is_none(&w->rule) ? WALK_END_UNDESCRIBED : 0;
	}
	w->rule.cfa = WALK_CFA_NONE;
	w->frame = WALK_RAW | (at & WALK_RAW_MASK);
	if (!find_segment(w, at) && !learn_segment(w, at))
		return w->process.flags & WALK_HAS_MAPPINGS ? WALK_END_NO_MAPPING
							    : WALK_END_NO_PROCESS;
	in_file = w->segment.at + (at - w->segment.lo);
	if (w->segment.first_page == WALK_IN_REGION)
		return IN_REGION;
	if (in_file >> WALK_FILE_SHIFT)
		w->frame = in_file;
	else if (w->segment.first_page == WALK_NO_PAGES)
		return WALK_END_UNDESCRIBED;
	if (!w->is_exact && begins_context(at + 1)) {
		w->frame++;
		rule = WALK_RULE_OUTERMOST;
	} else if (w->segment.first_page == WALK_NO_PAGES) {
		return WALK_END_NOT_READY;
	} else {
		in_file &= WALK_AT_MASK;
		if (in_file >> WALK_PAGE_SHIFT >= w->segment.n_pages)
			return WALK_END_UNDESCRIBED;
		rule = (__u32)find_row(w->segment.first_page, in_file);
	}
	if (c && !w->is_learned) {
		c->at = key;
		c->frame = w->frame;
		c->generation = w->process.generation;
		c->rule = rule;
	}
	use_rule(w, rule);
	return is_none(&w->rule) ? WALK_END_UNDESCRIBED : 0;
}

/* A window of the stack that begins a little before @at. Returns whether @at is in it. */
__noinline int read_window(struct walk *w, __u64 at)
{
	__u64 from = at - 16;
	__u32 left;

	if (!w)
		return 0;
	w->window_n = 0;
	if (!read_user(w->window, WINDOW_BYTES, from)) {
		w->window_at = from;
		w->window_n = WINDOW_BYTES;
		return 1;
	}
	/* Up to the end of the page, after which there is no memory, or none that is resident. */
	left = 4096 - (__u32)(at & 4095);
	if (left > WINDOW_BYTES)
		left = WINDOW_BYTES;
	if (left < 8 || read_user(w->window, left & (2 * WINDOW_BYTES - 1), at)) {
		left = 8;
		w->last_read = at;
		if (read_user(w->window, 8, at))
			return 0;
	}
	w->window_at = at;
	w->window_n = left & ~7u;
	return 1;
}

static __always_inline int is_in_window(const struct walk *w, __u64 at)
{
	__u64 off = at - w->window_at;

	return off < w->window_n && !(off & 7);
}

static __always_inline int read_stack(struct walk *w, __u64 at, __u64 *ret)
{
	if (!is_in_window(w, at) && !read_window(w, at))
		return 0;
	*ret = w->window[(at - w->window_at) / 8 & (WINDOW_WORDS - 1)];
	return 1;
}

/*
 * Code that no row describes, by its frame pointer. In the frame where the walk begins it may not
 * be set yet, or not any more: then the return address is on top of the stack.
 */
__noinline int step_assumed(struct walk *w)
{
	__u64 fp, at, ra, caller_fp;
	__u8 code[8] = {};

	if (!w)
		return 0;
	fp = w->regs[RBP];
	at = fp + 8;
	caller_fp = 0;
	if (!w->knows_fp)
		return 0;
	if (w->is_exact && !read_user(code, sizeof(code), w->pc)) {
		int endbr = code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e;

		/* push %rbp; ret; endbr64 before push; mov %rsp,%rbp */
		if (code[0] == 0x55 || code[0] == 0xc3 || (endbr && code[4] == 0x55)) {
			at = w->regs[RSP];
			caller_fp = fp;
		} else if (code[0] == 0x48 && ((code[1] == 0x89 && code[2] == 0xe5) ||
					       (code[1] == 0x8b && code[2] == 0xec))) {
			at = w->regs[RSP] + 8;
		}
	}
	if ((at & 7) || at < w->regs[RSP])
		return 0;
	if (!caller_fp && !read_stack(w, at - 8, &caller_fp))
		return 0;
	if (!read_stack(w, at, &ra) || !follows_call(ra))
		return 0;
	w->regs[RBP] = caller_fp;
	w->regs[RSP] = at + 8;
	w->pc = ra;
	w->is_exact = 0;
	w->knows_all = 0;
	w->bx = BX_LOST;
	w->is_assumed = 1;
	return 1;
}

/* A signal's frame has all registers of what was interrupted. */
static __always_inline void take_signal_regs(struct walk *w, __u64 sp)
{
	/* gregs: r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip */
	__u64 *g = w->scratch;

	w->knows_all = 0;
	if (read_user(g, sizeof(w->scratch), (sp + SIGNAL_REGS)) || g[16] != w->pc)
		return;
	w->knows_all = 1;
	w->regs[0] = g[13];
	w->regs[1] = g[12];
	w->regs[2] = g[14];
	w->knows_fp = 1;
	w->bx = BX_KNOWN;
	w->regs[3] = g[11];
	w->regs[4] = g[9];
	w->regs[5] = g[8];
	for (int i = 0; i < 8; i++)
		w->regs[8 + i] = g[i];
}

static __always_inline int saved(struct walk *w, unsigned int how, __s64 off, __u64 cfa, __u64 base,
				 __u64 same, __u64 *ret)
{
	switch (how) {
	case WALK_SAME:
		*ret = same;
		return 0;
	case WALK_AT_CFA:
		return read_stack(w, cfa + off, ret) ? 0 : WALK_END_UNREADABLE;
	case WALK_AT_BASE:
		return read_stack(w, base + off, ret) ? 0 : WALK_END_UNREADABLE;
	case WALK_AT_FP:
		if (!w->knows_fp)
			return WALK_END_LOST;
		return read_stack(w, w->regs[RBP] + off, ret) ? 0 : WALK_END_UNREADABLE;
	case WALK_IS_CFA:
		*ret = cfa + off;
		return 0;
	case WALK_IN_REG:
		*ret = w->regs[off & (N_REGS - 1)];
		return w->knows_all || (off == RBP && w->knows_fp) || off == RSP ? 0
										 : WALK_END_LOST;
	case WALK_IS_PC:
		*ret = w->pc + off;
		return 0;
	}
	return WALK_END_LOST;
}

static __always_inline int knows_base(struct walk *w, __u32 reg)
{
	if (reg == RBX && w->bx == BX_IN_MEMORY) {
		if (read_user(&w->regs[RBX], 8, w->bx_at))
			return 0;
		w->bx = BX_KNOWN;
	}
	return w->knows_all || reg == RSP || (reg == RBP && w->knows_fp) ||
	       (reg == RBX && w->bx == BX_KNOWN);
}

static __always_inline void save_bx(struct walk *w, const struct walk_rule *r, __u64 cfa,
				    __u64 base)
{
	switch (r->cfa >> 4) {
	case WALK_SAME:
		return;
	case WALK_AT_CFA:
		w->bx_at = cfa + (__s64)r->bx_off;
		w->bx = BX_IN_MEMORY;
		return;
	case WALK_AT_BASE:
		w->bx_at = base + (__s64)r->bx_off;
		w->bx = BX_IN_MEMORY;
		return;
	}
	w->bx = BX_LOST;
}

/*
 * The places of the caller's return address and rbp, by w->rule. Returns 0, or the end of the walk;
 * *@ret_knows_fp: whether rbp is known.
 */
static __always_inline int find_saved(struct walk *w, __u64 base, int *ret_knows_fp)
{
	int how = w->rule.fp_ra & 15;
	int e = saved(w, w->rule.fp_ra >> 4, w->rule.ra_off, w->cfa, base, 0, &w->saved_ra);

	if (e)
		return e;
	e = saved(w, how, w->rule.fp_off, w->cfa, base, w->regs[RBP], &w->saved_fp);
	/* GCC's rows still say so where rbp is the caller's already. */
	if (e == WALK_END_UNREADABLE && how != WALK_AT_FP)
		return e;
	/* Only a caller that needs rbp ends the walk. */
	*ret_knows_fp = how == WALK_SAME ? w->knows_fp : !e;
	return 0;
}

/* By the rule. Returns 0, or the end of the walk. State is in the walk: stacks have little room. */
__noinline int step_by_rule(struct walk *w)
{
	int e, is_signal, knows_fp = 0;
	__u64 base, sp;

	if (!w)
		return WALK_END_LOST;
	w->saved_ra = w->saved_fp = 0;
	is_signal = w->rule.flags & WALK_SIGNAL;
	if (!knows_base(w, w->rule.reg))
		return WALK_END_LOST;
	base = w->regs[w->rule.reg & (N_REGS - 1)];
	w->cfa = base + (__s64)w->rule.off;
	if ((w->rule.cfa & 15) == WALK_CFA_DEREF) {
		if (!read_stack(w, w->cfa, &w->cfa))
			return WALK_END_UNREADABLE;
		w->cfa += (__s64)w->rule.add;
	}
	e = find_saved(w, base, &knows_fp);
	if (e)
		return e;
	sp = w->regs[RSP];
	/* Code that takes the return address off the stack goes no further up. */
	if (w->cfa <= sp && !is_signal &&
	    ((w->rule.fp_ra >> 4) == WALK_AT_CFA || w->saved_ra == w->pc))
		return WALK_END_LOOP;
	w->knows_fp = knows_fp;
	save_bx(w, &w->rule, w->cfa, base);
	w->pc = w->saved_ra;
	w->regs[RBP] = w->saved_fp;
	w->regs[RSP] = w->cfa;
	w->is_exact = is_signal ? 1 : 0;
	w->knows_all = 0;
	if (is_signal)
		take_signal_regs(w, sp);
	return 0;
}

static __always_inline void add_hash(struct walk *w, __u64 word)
{
	__u64 h = (w->hash ^ word) * 0x9e3779b97f4a7c15ULL;
	__u64 other = (w->other_hash + word) * 0xd6e8feb86659fd93ULL;

	w->hash = h ^ h >> 29;
	w->other_hash = other ^ other >> 32;
}

/*
 * The frame that is added is at an instruction that nobody called from: its position is not a byte
 * before it. The first frame always is.
 */
static __always_inline void note_exact(struct walk *w, __u32 is_signal)
{
	__u32 at = w->n_exact;

	if (!w->n || at >= WALK_EXACT_MAX)
		return;
	w->exact[at] = (__u16)(w->n | (is_signal ? WALK_EXACT_SIGNAL : 0));
	w->n_exact = (__u8)(at + 1);
	add_hash(w, 1);
}

/*
 * Rows of code that is in no file and no region, as the process described it some time ago: it may
 * be other code by now, whose return address is elsewhere.
 */
static __always_inline int is_by_others(__u64 frame)
{
	return frame & WALK_RAW && !(frame & WALK_MADE);
}

/* The kind of a return address that was found at a place of the stack. */
#ifndef WALK_RETURN
#define WALK_RETURN(pc, place) (pc)
#endif

/* One frame more. Returns 1 when the walk has ended; w->end then says why. */
__noinline int step(struct walk *w)
{
	__u64 frame;
	__u32 i, is_signal;
	int e;

	if (!w)
		return 1;
	if (!w->is_exact)
		w->pc = WALK_RETURN(w->pc, w->regs[RSP] - 8);
	e = find_rule(w, w->pc - !w->is_exact);
	if (e == IN_REGION)
		e = find_made(w, w->pc - !w->is_exact);
	i = w->n_kernel + w->n;
	if (w->n >= WALK_MAX_FRAMES || w->n >= w->max_frames ||
	    i >= WALK_MAX_KERNEL + WALK_MAX_FRAMES) {
		w->end = WALK_END_LIMIT;
		return 1;
	}
	/* A handler returns to code that no one called: its rows begin a byte before it. */
	is_signal = !e && w->rule.flags & WALK_SIGNAL;
	frame = w->frame + (is_signal && !w->is_exact ? 1 : 0);
	add_hash(w, frame);
	if (frame & WALK_RAW)
		w->has_unfiled = 1;
	if (is_signal || w->is_exact)
		note_exact(w, is_signal);
	w->frames[i] = frame;
	w->n++;
	if (e) {
		w->end = (__u8)e;
		/* A program begins with rbp 0, by the ABI. */
		if (e == WALK_END_UNDESCRIBED && !w->is_exact && w->knows_fp && !w->regs[RBP] &&
		    !(frame & WALK_RAW)) {
			w->end = WALK_END_ASSUMED;
			return 1;
		}
		/* Not in a file that is not known: libraries rarely keep frame pointers. */
		if (e != WALK_END_UNDESCRIBED || !step_assumed(w))
			return 1;
		w->frames[i] = frame | WALK_ASSUMED;
		return 0;
	}
	w->end = WALK_END_COMPLETE;
	if (w->rule.flags & WALK_OUTERMOST)
		return 1;
	e = step_by_rule(w);
	if (!e && !w->is_exact && is_by_others(frame) && !follows_call(w->pc) &&
	    !begins_context(w->pc))
		e = WALK_END_NOT_READY;
	w->end = (__u8)e;
	if (w->pc || w->is_exact)
		return e != 0;
	/* Some programs mark the outermost frame by 0; a row that is wrong may lead to one, too. */
	w->is_assumed = 1;
	return 1;
}

__noinline int some_steps(struct walk *w)
{
	for (int i = 0; i < 32; i++)
		if (step(w))
			return 1;
	return 0;
}

/* w->regs, pc, n_reads and max_frames are set. */
static __always_inline void walk_user(struct walk *w)
{
	w->n = 0;
	w->is_exact = 1;
	w->knows_all = 1;
	w->knows_fp = 1;
	w->bx = BX_KNOWN;
	w->is_assumed = 0;
	w->window_n = 0;
	w->made_used = 0;
	w->began_pc = w->pc;
	w->began_sp = w->regs[RSP];
	w->n_exact = 0;
	w->has_unfiled = 0;
	w->segment.lo = w->segment.hi = 0;
	w->end = WALK_END_LIMIT;
	for (int i = 0; i < WALK_MAX_FRAMES / 32 + 1; i++)
		if (some_steps(w))
			break;
	if (w->end == WALK_END_COMPLETE && w->is_assumed)
		w->end = WALK_END_ASSUMED;
	/* Frames beyond code that was replaced during the walk may never have been. */
	if (w->made_used && !regions_stay(w)) {
		w->n = w->n ? 1 : 0;
		w->end = WALK_END_NOT_READY;
	}
}

#endif
