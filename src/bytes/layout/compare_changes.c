/* SPDX-License-Identifier: BSD-2-Clause */
/* The changes that a comparison found, each with both sides. */
#include "layout/compare.h"

#include <errno.h>

#include "base/err.h"
#include "layout/view.h"

static struct cairn_change_side side_of(const struct compare *c, int side, const struct field *f)
{
	if (!f)
		return (struct cairn_change_side){0};
	return (struct cairn_change_side){.there = true,
					  .name = f->name,
					  .type = f->type,
					  .bit_off = c->base[side] + f->bit_off,
					  .unplaced = c->unplaced[side] || f->unplaced,
					  .size = f->size,
					  .bit_size = f->bit_size};
}

size_t n_reported(const struct compare *c)
{
	return c->to->v.n + c->to->n_ignored;
}

static bool is_ignored(const struct compare *c, const char *path)
{
	for (size_t i = 0; i < c->opts.n_ignore; i++) {
		size_t n = strlen(c->opts.ignore[i]);

		if (n && !strncmp(path, c->opts.ignore[i], n) &&
		    (!path[n] || path[n] == '.' || path[n] == '['))
			return true;
	}
	return false;
}

static void keep(struct compare *c, struct cairn_change *change, const char *name)
{
	/* A prefix without a name after it is the struct itself: "inner." is "inner". */
	size_t n = strlen(c->path);
	change->path = name ? arena_printf(&c->to->arena, "%s%s", c->path, name)
			    : arena_strndup(&c->to->arena, c->path, n ? n - 1 : 0);
	if (!change->path)
		c->no_memory = true;
	else if (is_ignored(c, change->path))
		c->to->n_ignored++;
	else if (c->to->v.n == CAIRN_CHANGES_MAX)
		c->to->cut = true;
	else if (!VEC_ADD(&c->to->v, *change))
		c->no_memory = true;
}

void change_add(struct compare *c, enum cairn_change_kind kind, const struct field *a,
		const struct field *b)
{
	struct cairn_change change = {.kind = kind, .side = {side_of(c, 0, a), side_of(c, 1, b)}};

	keep(c, &change, a && a->name ? a->name : b ? b->name : NULL);
}

void change_add_enumerator(struct compare *c, enum cairn_change_kind kind,
			   const struct cairn_enumerator *a, const struct cairn_enumerator *b)
{
	struct cairn_change change = {.kind = kind, .is_enumerator = true};
	const struct cairn_enumerator *of[2] = {a, b};

	for (int i = 0; i < 2; i++)
		if (of[i])
			change.side[i] = (struct cairn_change_side){.there = true,
								    .name = of[i]->name,
								    .bit_off = c->base[i],
								    .unplaced = c->unplaced[i],
								    .value = of[i]->value};
	keep(c, &change, a ? a->name : b->name);
}
