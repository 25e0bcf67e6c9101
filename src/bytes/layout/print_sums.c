/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The comments below the members: the bytes that the struct wastes, and those that the structs in
 * it waste.
 */
#include <inttypes.h>

#include "layout/print.h"

/* Over the members that are structs. */
struct inner {
	uint32_t with_holes, with_bit_holes, with_padding, with_bit_padding;
	uint64_t holes, bit_holes, padding, bit_padding;
	uint32_t ends_flexible, embeds_flexible;
};

static void add_inner(struct print *p, const struct cairn_member *in, struct inner *to)
{
	const struct cairn_type *t = cairn_types_get(p->l->types, in->type);
	struct cairn_layout_facts f;

	if (!is_structure(t) || layout_facts(p->l, in->type, &f, NULL) <= 0)
		return;
	to->with_holes += f.n_holes != 0;
	to->holes += f.n_holes;
	to->with_bit_holes += f.n_bit_holes != 0;
	to->bit_holes += f.n_bit_holes;
	to->with_padding += f.padding != 0;
	to->padding += f.padding;
	to->with_bit_padding += f.bit_padding != 0;
	to->bit_padding += f.bit_padding;
	to->ends_flexible += ends_flexible(p->l, t);
	to->embeds_flexible += embeds_flexible(p->l, in->type, 0);
}

static void print_own(const struct print *p, const struct place *at,
		      const struct cairn_layout_facts *f)
{
	uint64_t line = p->l->opts.cacheline;

	print_tabs(p, at);
	fprintf(p->out, "/* size: %" PRIu64 ", cachelines: %" PRIu64 ", members: %u */\n", f->size,
		(f->size + line - 1) / line, f->n_members);
	if (f->n_holes || f->n_bit_holes) {
		if (f->sum_members) {
			print_tabs(p, at);
			fprintf(p->out, "/* sum members: %" PRIu64, f->sum_members);
			if (f->n_holes)
				fprintf(p->out, ", holes: %u, sum holes: %" PRIu64, f->n_holes,
					f->sum_holes);
			fputs(" */\n", p->out);
		}
		if (f->sum_bit_fields) {
			print_tabs(p, at);
			fprintf(p->out, "/* sum bitfield members: %" PRIu64 " bits",
				f->sum_bit_fields);
			if (f->n_bit_holes)
				fprintf(p->out, ", bit holes: %u, sum bit holes: %" PRIu64 " bits",
					f->n_bit_holes, f->sum_bit_holes);
			else
				fprintf(p->out, " (%" PRIu64 " bytes)", f->sum_bit_fields / 8);
			fputs(" */\n", p->out);
		}
	}
	if (f->padding) {
		print_tabs(p, at);
		fprintf(p->out, "/* padding: %" PRIu64 " */\n", f->padding);
	}
}

static void print_inner_sums(const struct print *p, const struct place *at, const struct inner *in)
{
	const char *comma = "";

	if (in->with_holes || in->with_bit_holes || in->with_bit_padding) {
		print_tabs(p, at);
		fputs("/* member types with ", p->out);
		if (in->with_holes) {
			fprintf(p->out, "holes: %u, total: %" PRIu64, in->with_holes, in->holes);
			comma = ", ";
		}
		if (in->with_bit_holes) {
			fprintf(p->out, "%sbit holes: %u, total: %" PRIu64, comma,
				in->with_bit_holes, in->bit_holes);
			comma = ", ";
		}
		if (in->with_bit_padding)
			fprintf(p->out, "%sbit paddings: %u, total: %" PRIu64 " bit%s", comma,
				in->with_bit_padding, in->bit_padding,
				in->bit_padding == 1 ? "" : "s");
		fputs(" */\n", p->out);
	}
	if (in->with_padding) {
		print_tabs(p, at);
		fprintf(p->out, "/* paddings: %u, sum paddings: %" PRIu64 " */\n", in->with_padding,
			in->padding);
	}
}

/* Alignments that attributes demanded, and the holes that they made. */
static void print_forced(const struct print *p, const struct place *at,
			 const struct cairn_layout_facts *f, const struct cairn_layout_member *m)
{
	uint32_t forced = 0, holes = 0;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < f->n_members; i++) {
		if (!m[i].aligned)
			continue;
		forced++;
		uint64_t hole = i ? m[i - 1].hole : 0;
		holes += hole != 0;
		sum += hole;
	}
	if (!forced)
		return;
	print_tabs(p, at);
	fprintf(p->out, "/* forced alignments: %u", forced);
	if (holes)
		fprintf(p->out, ", forced holes: %u, sum forced holes: %" PRIu64, holes, sum);
	fputs(" */\n", p->out);
}

static void print_flexible(const struct print *p, const struct place *at, const struct inner *in)
{
	if (!in->ends_flexible && !in->embeds_flexible)
		return;
	print_tabs(p, at);
	fputs("/* flexible array members: ", p->out);
	if (in->ends_flexible)
		fprintf(p->out, "end: %u%s", in->ends_flexible, in->embeds_flexible ? ", " : "");
	if (in->embeds_flexible)
		fprintf(p->out, "middle: %u", in->embeds_flexible);
	fputs(" */\n", p->out);
}

static void print_unplaced(const struct print *p, const struct place *at,
			   const struct cairn_layout_facts *f)
{
	if (!f->n_unplaced && !f->n_unplaced_bases)
		return;
	print_tabs(p, at);
	fputs("/* offset not known:", p->out);
	if (f->n_unplaced)
		fprintf(p->out, " %u member%s", f->n_unplaced, f->n_unplaced == 1 ? "" : "s");
	if (f->n_unplaced_bases)
		fprintf(p->out, "%s members of %u base class%s", f->n_unplaced ? " and" : "",
			f->n_unplaced_bases, f->n_unplaced_bases == 1 ? "" : "es");
	fputs("; no sum counts these bytes */\n", p->out);
}

/* pahole's words for members and gaps that do not add up to the size. */
static void print_doubt(const struct print *p, const struct place *at,
			const struct cairn_layout_facts *f)
{
	uint64_t bits = f->sum_bit_fields + f->sum_bit_holes + f->bit_padding;

	/* No sum is right without their offsets. */
	if (f->n_unplaced || f->n_unplaced_bases)
		return;
	if (8 * (f->sum_members + f->sum_holes + f->padding) + bits == 8 * f->size)
		return;
	putc('\n', p->out);
	print_tabs(p, at);
	fprintf(p->out,
		"/* BRAIN FART ALERT! %" PRIu64 " bytes != %" PRIu64 " (member bytes) + %" PRIu64
		" (member bits) + %" PRIu64 " (byte holes) + %" PRIu64
		" (bit holes), diff = %" PRId64 " bits */\n",
		f->size, f->sum_members, f->sum_bit_fields, f->sum_holes, f->sum_bit_holes,
		(int64_t)(8 * f->size - 8 * (f->sum_members + f->sum_holes + f->padding) - bits));
}

void print_sums(struct print *p, const struct cairn_type *t, const struct cairn_layout_facts *f,
		const struct cairn_layout_member *m, const struct place *at)
{
	uint64_t last = (at->base + f->size) % p->l->opts.cacheline;
	struct inner inner = {0};

	for (uint32_t i = 0; i < t->n_members; i++)
		add_inner(p, &t->members[i], &inner);
	putc('\n', p->out);
	print_own(p, at, f);
	print_unplaced(p, at, f);
	print_inner_sums(p, at, &inner);
	if (f->bit_padding) {
		print_tabs(p, at);
		fprintf(p->out, "/* bit_padding: %u bits */\n", f->bit_padding);
	}
	print_forced(p, at, f, m);
	print_flexible(p, at, &inner);
	if (last) {
		print_tabs(p, at);
		fprintf(p->out, "/* last cacheline: %" PRIu64 " bytes */\n", last);
	}
	print_doubt(p, at, f);
}
