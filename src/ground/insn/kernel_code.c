/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code of a kernel that no kprobe may be set on
 *
 * A kernel refuses a kprobe in the code that a probe's own trap runs through (noinstr functions,
 * __kprobes, the entry code, functions named by NOKPROBE_SYMBOL), and on instructions that it
 * rewrites itself (jump labels, static calls). The tables that it uses are in vmlinux, and in the
 * file of a module:
 *
 *	between these symbols, or in       entry
 *	this section of a module           bytes  what
 *	__noinstr_text, .noinstr.text          -  code
 *	__kprobes_text, .kprobes.text          -  code
 *	__entry_text, .entry.text              -  code
 *	__start_kprobe_blacklist               8  address of a function
 *	__start___jump_table                  16  distance to the instruction, target, key
 *	__start_static_call_sites              8  distance to the instruction, key
 *	__start_mcount_loc                     8  address of the call of ftrace in a function
 *	__alt_instructions                12, 14  distance to the code, to what replaces it, lengths
 *
 * Distances are signed, from the place where they are stored. Alternatives are applied when the
 * kernel starts: after the first instruction, the code in memory has other bytes than the file, so
 * a later one may be the middle of another.
 *
 * Probes of perf and tracefs are refused in functions that ftrace does not trace, too, unless the
 * kernel was built with CONFIG_KPROBE_EVENTS_ON_NOTRACE: such a function has no call of ftrace. For
 * a part like foo.cold, foo counts. The call itself is no hazard: there a kprobe uses ftrace.
 */
#include "insn/kernel_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <elf.h>

#include "base/cursor.h"
#include "base/err.h"
#include "base/map.h"
#include "base/search.h"
#include "base/vec.h"
#include "elf/elf.h"
#include "elf/functions.h"
#include "insn/insn.h"
#include "insn/kernel_ftrace.h"
#include "insn/kernel_tables.h"

enum {
	BLACKLIST_ENTRY = 8,
	JUMP_ENTRY = 16,
	CALL_ENTRY = 8,
	CALL_BYTES = 5,
	/* The longest of a piece: lengths of alternatives have a byte. */
	PIECE_MAX = 255,
	/* Code without a name, after a function. */
	GAP_MAX = 4096,
};

struct range {
	uint64_t lo, hi;
	enum cairn_hazard hazard;
};

struct ranges {
	VEC(struct range) v;
};

struct kernel_code {
	struct ranges areas;  /* code that is refused as a whole, without overlaps */
	struct ranges pieces; /* instructions */
	struct ranges silent; /* functions that ftrace does not trace */
};

/* Made of one binary. */
struct making {
	const struct cairn_binary *bin;
	struct elf *elf;
	const struct functions *functions;
	const struct functions_around *around; /* NULL: all is wanted */
	struct kernel_code *code;
	struct ftrace_calls calls;
};

enum { NOINSTR, KPROBES, ENTRY, BLACKLIST, JUMPS, CALLS, MCOUNT, ALTERNATIVES, N_BOUNDS };

static const struct kernel_bound bounds[N_BOUNDS] = {
	[NOINSTR] = {"__noinstr_text_start", "__noinstr_text_end", ".noinstr.text"},
	[KPROBES] = {"__kprobes_text_start", "__kprobes_text_end", ".kprobes.text"},
	[ENTRY] = {"__entry_text_start", "__entry_text_end", ".entry.text"},
	[BLACKLIST] = {"__start_kprobe_blacklist", "__stop_kprobe_blacklist", "_kprobe_blacklist"},
	[JUMPS] = {"__start___jump_table", "__stop___jump_table", "__jump_table"},
	[CALLS] = {"__start_static_call_sites", "__stop_static_call_sites", ".static_call_sites"},
	[MCOUNT] = {"__start_mcount_loc", "__stop_mcount_loc", "__mcount_loc"},
	[ALTERNATIVES] = {"__alt_instructions", "__alt_instructions_end", ".altinstructions"},
};

/* ---- ranges ---- */

static int add(struct ranges *r, uint64_t lo, uint64_t hi, enum cairn_hazard hazard)
{
	return lo >= hi || VEC_ADD(&r->v, ((struct range){lo, hi, hazard})) ? 0 : -ENOMEM;
}

static int by_start(const void *a, const void *b)
{
	const struct range *x = a, *y = b;
	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return (x->hazard > y->hazard) - (x->hazard < y->hazard);
}

static void sort(struct ranges *r)
{
	if (r->v.n)
		qsort(r->v.p, r->v.n, sizeof(*r->v.p), by_start);
}

/* Areas that overlap or touch become one. */
static void join(struct ranges *r)
{
	size_t n = 0;
	for (size_t i = 0; i < r->v.n; i++) {
		struct range *last = n ? &r->v.p[n - 1] : NULL;
		if (!last || r->v.p[i].lo > last->hi)
			r->v.p[n++] = r->v.p[i];
		else if (r->v.p[i].hi > last->hi)
			last->hi = r->v.p[i].hi;
	}
	r->v.n = n;
}

/* Whether a piece of code that begins at @at may concern what is asked. */
static bool is_wanted(const struct making *m, uint64_t at)
{
	return !m->around || functions_around_sees(m->around, at);
}

/* ---- tables ---- */

/* A kernel knows no sizes: code without a name belongs to the function before it. */
static uint64_t end_of_function(const struct making *m, uint64_t at)
{
	const struct function_range *r = m->functions ? m->functions->ranges.p : NULL;
	size_t n = m->functions ? m->functions->ranges.n : 0;
	const struct elf_symbol *s =
		n ? functions_at(m->functions, (struct cairn_vaddr){at}) : NULL;
	uint64_t end = s && s->at.v == at && s->size ? at + s->size : at + 1;
	size_t next = SEARCH(0, n, mid, r[mid].lo < end);
	return next < n && r[next].lo - end < GAP_MAX ? r[next].lo : end;
}

static int see_blacklist(struct making *m, struct cursor *c)
{
	int rc = 0;
	while (cur_left(c) >= BLACKLIST_ENTRY && rc >= 0) {
		uint64_t at = cur_u64(c);
		rc = add(&m->code->areas, at, end_of_function(m, at),
			 CAIRN_HAZARD_KPROBE_BLACKLIST);
	}
	return rc;
}

static int see_jumps(struct making *m, struct cursor *c, uint64_t base)
{
	int rc = 0;
	for (uint64_t at = base; cur_left(c) >= JUMP_ENTRY && rc >= 0; at += JUMP_ENTRY) {
		uint64_t code = kernel_table_distance(c, at);
		cur_skip(c, JUMP_ENTRY - 4);
		if (is_wanted(m, code))
			rc = add(&m->code->pieces, code,
				 code + kernel_jump_label_bytes(m->elf, code),
				 CAIRN_HAZARD_JUMP_LABEL);
	}
	return rc;
}

static int see_calls(struct making *m, struct cursor *c, uint64_t base)
{
	int rc = 0;
	for (uint64_t at = base; cur_left(c) >= CALL_ENTRY && rc >= 0; at += CALL_ENTRY) {
		uint64_t code = kernel_table_distance(c, at);
		cur_skip(c, CALL_ENTRY - 4);
		if (is_wanted(m, code))
			rc = add(&m->code->pieces, code, code + CALL_BYTES,
				 CAIRN_HAZARD_STATIC_CALL);
	}
	return rc;
}

/* The first instruction is where it was. */
static int see_alternative(void *ctx, const struct kernel_alternative *a)
{
	struct making *m = ctx;

	if (!is_wanted(m, a->code))
		return 0;
	return add(&m->code->pieces, a->code + 1, a->code + a->n, CAIRN_HAZARD_ALTERNATIVE);
}

static int see_table(struct making *m, int which, const struct kernel_area *a)
{
	struct cursor_src src;
	struct cursor c;
	int rc = kernel_table_open(m->elf, a, &src, &c);
	if (rc <= 0)
		return rc;
	switch (which) {
	case BLACKLIST:
		return see_blacklist(m, &c);
	case JUMPS:
		return see_jumps(m, &c, a->lo);
	case CALLS:
		return see_calls(m, &c, a->lo);
	case MCOUNT:
		return ftrace_calls_read(&m->calls, &c);
	default:
		rc = kernel_alternatives_visit(m->elf, c, a->lo, see_alternative, m);
		return rc < 0 ? rc : 0;
	}
}

/* ---- made once for a binary ---- */

static void code_free(void *p)
{
	struct kernel_code *k = p;
	if (!k)
		return;
	VEC_FREE(&k->areas.v);
	VEC_FREE(&k->pieces.v);
	VEC_FREE(&k->silent.v);
	free(k);
}

static int add_silent(void *ctx, const struct function_range *r)
{
	struct making *m = ctx;
	return add(&m->code->silent, r->lo, r->hi, CAIRN_HAZARD_NOTRACE);
}

static int see_silent(struct making *m)
{
	if (m->around)
		return ftrace_visit_silent_around(&m->calls, m->bin, m->around, add_silent, m);
	return m->functions ? ftrace_visit_silent(&m->calls, m->functions, add_silent, m) : 0;
}

static int see_all(struct making *m, struct cairn_err *err)
{
	struct kernel_area areas[N_BOUNDS] = {0};
	int rc = kernel_tables_find(m->bin, bounds, N_BOUNDS, areas, err);
	for (int i = 0; i < N_BOUNDS && rc >= 0; i++) {
		if (i <= ENTRY)
			rc = add(&m->code->areas, areas[i].lo, areas[i].hi,
				 CAIRN_HAZARD_KPROBE_BLACKLIST);
		else
			rc = see_table(m, i, &areas[i]);
	}
	return rc < 0 ? rc : see_silent(m);
}

/* A damaged symbol table gives no tables. */
static int make_code(struct making *m, struct kernel_code **ret, struct cairn_err *err)
{
	m->elf = binary_main(m->bin);
	m->code = calloc(1, sizeof(*m->code));
	ftrace_calls_init(&m->calls);
	int rc = m->code ? see_all(m, err) : -ENOMEM;
	ftrace_calls_fini(&m->calls);
	if (rc == -ENOMEM) {
		code_free(m->code);
		return err_nomem(err, "the tables of a kernel");
	}
	sort(&m->code->areas);
	join(&m->code->areas);
	sort(&m->code->pieces);
	*ret = m->code;
	return 0;
}

static int make(const struct cairn_binary *bin, void **ret, struct cairn_err *err)
{
	struct making m = {.bin = bin};
	struct kernel_code *code = NULL;
	int rc = binary_functions(bin, &m.functions, err);
	if (rc == 0)
		rc = make_code(&m, &code, err);
	*ret = code;
	return rc;
}

int kernel_code_around(const struct cairn_binary *bin, const struct functions_around *around,
		       struct kernel_code **ret, struct cairn_err *err)
{
	struct making m = {.bin = bin, .functions = &around->functions, .around = around};
	return make_code(&m, ret, err);
}

void kernel_code_free(struct kernel_code *k)
{
	code_free(k);
}

/* ---- questions ---- */

/* The ranges do not overlap. */
static bool is_in(const struct ranges *r, uint64_t at)
{
	size_t i = SEARCH(0, r->v.n, mid, r->v.p[mid].hi <= at);
	return i < r->v.n && r->v.p[i].lo <= at;
}

static enum cairn_hazard piece_at(const struct kernel_code *k, uint64_t at)
{
	const struct range *p = k->pieces.v.p;
	for (size_t i = SEARCH(0, k->pieces.v.n, mid, p[mid].lo <= at); i--;) {
		if (at < p[i].hi)
			return p[i].hazard;
		if (at - p[i].lo > PIECE_MAX)
			break;
	}
	return CAIRN_HAZARD_NONE;
}

/* int3 and ud2, which BUG() and WARN() are made of. */
static enum cairn_hazard instruction_at(const struct cairn_binary *bin, struct cairn_vaddr at)
{
	const uint8_t *code;
	size_t n;
	if (!elf_code_at(binary_main(bin), at, &code, &n) || !n)
		return CAIRN_HAZARD_NONE;
	if (code[0] == 0xcc)
		return CAIRN_HAZARD_TRAP;
	if (n > 1 && code[0] == 0x0f && code[1] == 0x0b)
		return CAIRN_HAZARD_NOT_PROBEABLE;
	return CAIRN_HAZARD_NONE;
}

enum cairn_hazard kernel_code_hazard_in(const struct kernel_code *k, const struct cairn_binary *bin,
					struct cairn_vaddr at)
{
	if (is_in(&k->areas, at.v))
		return CAIRN_HAZARD_KPROBE_BLACKLIST;
	enum cairn_hazard hazard = piece_at(k, at.v);
	if (!hazard)
		hazard = instruction_at(bin, at);
	return hazard || !is_in(&k->silent, at.v) ? hazard : CAIRN_HAZARD_NOTRACE;
}

enum cairn_hazard kernel_code_hazard(const struct cairn_binary *bin, struct cairn_vaddr at)
{
	void *made;
	if (binary_attached(bin, make, code_free, &made, NULL) < 0)
		return CAIRN_HAZARD_NOT_CHECKED;
	return kernel_code_hazard_in(made, bin, at);
}

/* A function of an area each, and the pieces outside of areas. */
static int add_listed(const struct kernel_code *k, const struct functions *functions,
		      struct ranges *all)
{
	int rc = 0;
	for (size_t i = 0; functions && i < functions->ranges.n && rc >= 0; i++) {
		const struct function_range *r = &functions->ranges.p[i];
		if (r->lo == r->symbol->at.v && is_in(&k->areas, r->lo))
			rc = add(all, r->lo, r->hi, CAIRN_HAZARD_KPROBE_BLACKLIST);
	}
	for (size_t i = 0; i < k->silent.v.n && rc >= 0; i++) {
		const struct range *r = &k->silent.v.p[i];
		if (!is_in(&k->areas, r->lo))
			rc = add(all, r->lo, r->hi, r->hazard);
	}
	for (size_t i = 0; i < k->pieces.v.n && rc >= 0; i++) {
		const struct range *r = &k->pieces.v.p[i];
		if (!is_in(&k->areas, r->lo))
			rc = add(all, r->lo, r->hi, r->hazard);
	}
	sort(all);
	return rc;
}

int kernel_code_visit(const struct cairn_binary *bin,
		      int (*visit)(void *ctx, struct cairn_vaddr at, enum cairn_hazard hazard),
		      void *ctx, struct cairn_err *err)
{
	const struct functions *functions = NULL;
	struct ranges all = {0};
	void *made;
	int rc = binary_attached(bin, make, code_free, &made, err);
	if (rc >= 0)
		rc = binary_functions(bin, &functions, err);
	if (rc >= 0 && add_listed(made, functions, &all) < 0)
		rc = err_nomem(err, "the hazards of a kernel");
	for (size_t i = 0; i < all.v.n && !rc; i++) {
		const struct range *r = &all.v.p[i];
		/* Alternatives of one piece of code have an entry each. */
		if (!i || r[-1].lo != r->lo || r[-1].hazard != r->hazard)
			rc = visit(ctx, (struct cairn_vaddr){r->lo}, r->hazard);
	}
	VEC_FREE(&all.v);
	return rc;
}
