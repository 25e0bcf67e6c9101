/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The position of each value in the records of a probe
 *
 * Positions depend on types only, so they are the same at every site.
 */
#include "trace/plan/plan.h"

uint32_t trace_record_class(uint32_t n_bytes, unsigned int *ret_index)
{
#define AS_NUMBER(n) n,
	static const uint32_t classes[] = {TRACE_CLASSES(AS_NUMBER)};

	for (unsigned int i = 0; i < TRACE_N_CLASSES; i++) {
		if (n_bytes > classes[i])
			continue;
		*ret_index = i;
		return classes[i];
	}
	return 0;
}

static uint32_t round_up(uint32_t n, uint32_t to)
{
	return (n + to - 1) / to * to;
}

/* Bytes of a value that are fetched, and how they are to be read. */
static void lay_out_value(const struct cairn_trace *t, const struct cairn_types *types,
			  const struct expr *e, struct value_layout *l)
{
	uint64_t size = e->is_address || !e->type ? 8 : cairn_types_size(types, e->type);

	if (e->bit_size) {
		l->bit_shift = e->bit_off % 8;
		l->bit_size = (uint8_t)e->bit_size;
		size = (l->bit_shift + e->bit_size + 7) / 8;
	}
	l->cut = size > t->value_bytes;
	l->n_bytes = (uint16_t)(l->cut ? t->value_bytes : size);
}

static uint32_t target_bytes(const struct cairn_trace *t, const struct recipe *recipe)
{
	enum { TARGET_MIN = 16 };
	uint32_t ret = TARGET_MIN;

	if (recipe->kind == RECIPE_TEXT)
		return t->string_bytes;
	/* A quarter of the limit of a struct: there may be several. */
	while (ret < t->value_bytes / 4)
		ret *= 2;
	return ret;
}

/*
 * Lays out room for the targets of a value's recipes, after its own bytes; returns the bytes of
 * all. *@left targets are still allowed.
 */
static uint32_t lay_out_targets(struct cairn_trace *t, const struct cairn_trace_value *v,
				const struct cairn_types *types, uint32_t out, unsigned int *left,
				struct value_layout *l)
{
	struct recipe_at found[TARGETS_MAX];
	unsigned int n =
		v->type && !v->hex && !l->bit_size ? recipe_all(types, v->type, found, *left) : 0;
	struct target_layout *targets = n ? arena_array(&t->arena, n, sizeof(*targets)) : NULL;
	uint32_t at = round_up(out + l->n_bytes, 8);

	l->n_targets = 0;
	for (unsigned int i = 0; i < n && targets; i++) {
		uint32_t bytes = target_bytes(t, &found[i].recipe);
		if (found[i].off + found[i].recipe.size > l->n_bytes)
			break;
		targets[i] = (struct target_layout){
			.is = found[i],
			.out = (uint16_t)at,
			.n_shown = (uint16_t)(found[i].recipe.kind == RECIPE_TEXT ? t->string_shown
										  : bytes),
			.log = (uint8_t)__builtin_ctz(bytes),
		};
		l->n_targets++;
		at += bytes;
	}
	l->targets = targets;
	l->state = (uint16_t)at;
	*left -= l->n_targets;
	return l->n_targets ? at + 8 - out : l->n_bytes;
}

/* A string of wide characters, with its head; returns the bytes of both. */
static uint32_t lay_out_wide(const struct cairn_trace *t, const struct probe_value_text *v,
			     uint8_t unit, struct value_layout *l)
{
	uint32_t shown = v->most ? v->most : t->string_shown, room = STRING_BYTES_MIN;

	while (room / unit <= shown && room < FETCHED_MAX)
		room *= 2;
	shown = shown < room / unit ? shown : room / unit - 1;
	l->unit = unit;
	l->n_bytes = (uint16_t)room;
	l->n_shown = (uint16_t)(shown * unit);
	return room + BYTES_HEAD;
}

/* A string, or bytes, with their head; returns the bytes of both. */
static uint32_t lay_out_text(const struct cairn_trace *t, const struct probe_value_text *v,
			     struct value_layout *l)
{
	uint32_t shown = v->most ? v->most : t->string_shown, room = STRING_BYTES_MIN;

	if (v->n_bytes)
		shown = t->value_bytes;
	while (room <= shown && room < FETCHED_MAX)
		room *= 2;
	l->n_bytes = (uint16_t)room;
	l->n_shown = (uint16_t)shown;
	return room + (v->n_bytes ? BYTES_HEAD : STRING_POINTER_BYTES + STRING_LENGTH_BYTES);
}

/* Sites each value in the record; returns the bytes needed. */
uint32_t plan_layout(struct cairn_trace *t, struct trace_probe *p, unsigned int targets)
{
	uint32_t at = sizeof(struct trace_record);

	for (uint32_t i = 0; i < p->pub.n_values; i++) {
		struct value_layout *l = &p->layouts[i];
		uint32_t room;
		if (p->pub.values[i].is_string || p->pub.values[i].is_bytes) {
			uint8_t unit = p->pub.values[i].unit_bytes;
			room = unit ? lay_out_wide(t, &p->text->values[i], unit, l)
				    : lay_out_text(t, &p->text->values[i], l);
			at = round_up(at, 8);
		} else {
			lay_out_value(t, p->pub.types, p->text->values[i].expr, l);
			room = p->pub.values[i].is_number ? 8 : l->n_bytes;
			at = round_up(at, room >= 8 ? 8 : room > 2 ? 4 : room ? room : 1);
			if (!p->pub.values[i].is_number)
				room = lay_out_targets(t, &p->pub.values[i], p->pub.types, at,
						       &targets, l);
		}
		l->out = (uint16_t)at;
		at += room;
		if (at > UINT16_MAX)
			return at;
	}
	return at;
}
