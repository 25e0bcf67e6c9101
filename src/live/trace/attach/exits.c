/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/attach/exits.h"

#include <string.h>

#include "elf/elf.h"
#include "insn/insn.h"
#include "trace/place/move.h"

/* Larger functions are left alone. */
#define PART_BYTES_MAX (1u << 20)
/* The part with the entry, and that of unlikely code, to which an exception may lead, too. */
enum { PARTS_MAX = 2 };

struct part {
	uint64_t lo, hi;
	const uint8_t *code;
};

struct search {
	struct cairn_trace *t;
	const struct trace_file *f;
	struct part parts[PARTS_MAX];
	unsigned int n_parts;
	VEC(uint64_t) found;
	const char *why;
	bool is_full; /* no memory */
};

static bool is_within(const struct search *s, uint64_t at)
{
	for (unsigned int i = 0; i < s->n_parts; i++)
		if (at >= s->parts[i].lo && at < s->parts[i].hi)
			return true;
	return false;
}

static bool add_part(struct search *s, struct cairn_vaddr at)
{
	struct part *p = &s->parts[s->n_parts];
	struct cairn_vaddr lo, hi;
	size_t n;

	if (!s->f->mover || !mover_fde_at(s->f->mover, at, &lo, &hi) || lo.v != at.v ||
	    hi.v - lo.v > PART_BYTES_MAX || s->n_parts == PARTS_MAX ||
	    !elf_code_at(binary_main(s->f->bin), lo, &p->code, &n) || n < hi.v - lo.v)
		return false;
	p->lo = lo.v;
	p->hi = hi.v;
	s->n_parts++;
	return true;
}

/* GCC and Clang name the part of unlikely code "foo.cold". */
static bool is_cold_of(const char *name, const char *symbol)
{
	size_t n = strlen(symbol);

	return !strncmp(name, symbol, n) && !strncmp(name + n, ".cold", strlen(".cold"));
}

static bool add_cold_parts(struct search *s, const char *symbol)
{
	const struct elf_symbol *symbols;
	size_t n;

	if (elf_symbols(binary_main(s->f->bin), &symbols, &n, NULL) < 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (is_cold_of(symbols[i].name, symbol) && !add_part(s, symbols[i].at))
			return false;
	return true;
}

static const char *at_text(struct search *s, const char *what, uint64_t at)
{
	const char *text = arena_printf(&s->t->arena, "%s at 0x%llx", what, (unsigned long long)at);

	s->is_full |= !text;
	return text;
}

static void take_return(struct search *s, const struct part *p, uint64_t at)
{
	struct insn_uprobe probe = insn_uprobe(p->code + (at - p->lo), p->hi - at);
	struct cairn_foff off;

	if (probe.hazard != CAIRN_HAZARD_NONE ||
	    !cairn_binary_foff(s->f->bin, (struct cairn_vaddr){at}, &off))
		s->why = at_text(s, "no probe can be set on its return", at);
	else
		s->is_full |= !VEC_ADD(&s->found, off.v);
}

/*
 * Clang's code that is not optimised jumps to its own end after a call that does not return. If
 * padding is there, it is no function, and never executed.
 */
static bool is_never_taken(const struct search *s, const struct part *p, uint64_t target)
{
	const uint8_t *code;
	struct insn_step insn;
	size_t n;

	return target == p->hi &&
	       elf_code_at(binary_main(s->f->bin), (struct cairn_vaddr){target}, &code, &n) &&
	       insn_step(code, n, target, &insn) && insn.is_nop;
}

static void take_insn(struct search *s, const struct part *p, uint64_t at,
		      const struct insn_step *insn)
{
	switch (insn->flow) {
	case INSN_RETURN:
		take_return(s, p, at);
		return;
	case INSN_JUMP:
	case INSN_BRANCH:
		/* A jump to the entry would look like a call. */
		if (insn->target == s->parts[0].lo ||
		    (!is_within(s, insn->target) && !is_never_taken(s, p, insn->target)))
			s->why = at_text(s, "it goes on in another function by the jump", at);
		return;
	case INSN_JUMP_INDIRECT:
		if (!insn_is_table_jump(p->code, (size_t)(at - p->lo) + insn->len))
			s->why = at_text(s, "it may go on in another function by the jump", at);
		return;
	default:
		return;
	}
}

static void search_part(struct search *s, const struct part *p)
{
	struct insn_step insn;

	for (uint64_t at = p->lo; at < p->hi && !s->why && !s->is_full; at += insn.len) {
		if (!insn_step(p->code + (at - p->lo), (size_t)(p->hi - at), at, &insn))
			s->why = at_text(s, "there is no instruction", at);
		else
			take_insn(s, p, at, &insn);
		if (s->why)
			return;
	}
}

int exits_find(struct cairn_trace *t, const struct trace_file *f, const struct cairn_site *site,
	       struct trace_exits *ret, const char **ret_why, struct cairn_err *err)
{
	struct search s = {.t = t, .f = f};
	uint64_t *offsets;

	if (!site->symbol || !add_part(&s, site->at) || !add_cold_parts(&s, site->symbol))
		s.why = "the parts of the function are not known";
	for (unsigned int i = 0; i < s.n_parts && !s.why; i++)
		search_part(&s, &s.parts[i]);
	offsets = arena_array(&t->arena, s.found.n + 1, sizeof(*offsets));
	if (offsets && s.found.n)
		memcpy(offsets, s.found.p, s.found.n * sizeof(*offsets));
	*ret = (struct trace_exits){.n = (uint32_t)s.found.n, .offsets = offsets};
	*ret_why = s.why;
	VEC_FREE(&s.found);
	return s.is_full || !offsets ? err_nomem(err, "the exits of a function") : 0;
}
