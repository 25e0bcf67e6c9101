/* SPDX-License-Identifier: BSD-2-Clause */
/* The values of a discriminant for which a member of a union is there: when 3 or 5 to 8 */
#include <inttypes.h>
#include <string.h>

#include <cairn/text.h>

#include "layout/print.h"

static const char *enumerator_of(const struct cairn_type *t, uint64_t value)
{
	for (uint32_t i = 0; t->kind == CAIRN_T_ENUM && i < t->n_enumerators; i++)
		if ((uint64_t)t->enumerators[i].value == value)
			return t->enumerators[i].name;
	return NULL;
}

static void print_value(const struct print *p, const struct cairn_type *t, uint64_t value)
{
	const char *name = enumerator_of(t, value);

	if (name)
		print_name(p, name);
	else if (t->encoding == CAIRN_ENC_SIGNED || t->encoding == CAIRN_ENC_SIGNED_CHAR)
		fprintf(p->out, "%" PRId64, (int64_t)value);
	else
		fprintf(p->out, value > INT32_MAX ? "%#" PRIx64 : "%" PRIu64, value);
}

void print_variant(const struct print *p, const struct cairn_type *of, uint32_t i)
{
	const struct cairn_variants *v = of->variants;

	if (!v || !v->type || of->members[i].is_discriminant)
		return;
	const struct cairn_type *t =
		cairn_types_get(p->l->types, cairn_types_resolve(p->l->types, v->type));
	fputs(v->of[i].n_ranges ? " /* when " : " /* otherwise", p->out);
	for (uint32_t k = 0; k < v->of[i].n_ranges; k++) {
		const struct cairn_variant_range *r = &v->of[i].ranges[k];
		fputs(k ? " or " : "", p->out);
		print_value(p, t, r->lo);
		if (r->hi != r->lo) {
			fputs(" to ", p->out);
			print_value(p, t, r->hi);
		}
	}
	fputs(" */", p->out);
}
