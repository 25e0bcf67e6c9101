/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace_script.h"

#include <stdlib.h>

bool trace_script_is_given(const struct operands *operands)
{
	for (size_t i = 0; i < operands->n; i++)
		if (cairn_script_is_one(operands->items[i]))
			return true;
	return false;
}

/* The list is freed with the options. */
static bool add_to_list(struct opt_list *list, const char *text)
{
	const char **items = realloc(list->items, (list->n + 1) * sizeof(*items));

	if (!items)
		return false;
	list->items = items;
	items[list->n++] = text;
	return true;
}

static bool add_item(struct aggregate_values *a, const struct cairn_aggregate *item)
{
	switch (item->kind) {
	case CAIRN_AGGREGATE_COUNT:
		a->count = true;
		return true;
	case CAIRN_AGGREGATE_SUM:
		return add_to_list(&a->sum, item->text);
	case CAIRN_AGGREGATE_AVG:
		return add_to_list(&a->avg, item->text);
	case CAIRN_AGGREGATE_MIN:
		return add_to_list(&a->min, item->text);
	case CAIRN_AGGREGATE_MAX:
		return add_to_list(&a->max, item->text);
	case CAIRN_AGGREGATE_HIST:
		return add_to_list(&a->hist, item->text);
	case CAIRN_AGGREGATE_LHIST:
		return add_to_list(&a->lhist, item->text);
	case CAIRN_AGGREGATE_QUANTILES:
		break;
	}
	return add_to_list(&a->quantiles, item->text);
}

int trace_script_take(const struct operands *operands, struct aggregate_values *aggregates,
		      const char **format, struct cairn_script **ret, struct operands *probes)
{
	struct cairn_err err = {0};

	if (operands->n > 1)
		return fail(STATUS_USAGE, "a one-liner of bpftrace is given alone");
	if (aggregate_is_wanted(aggregates) || *format)
		return fail(STATUS_USAGE,
			    "a one-liner says itself what is shown; leave out --count, --by, "
			    "--format and the like");
	int r = cairn_script_parse(operands->items[0], ret, &err);
	if (r < 0)
		return fail_asked(r, &err);
	for (size_t i = 0; i < (*ret)->n_items; i++)
		if (!add_item(aggregates, &(*ret)->items[i]))
			return fail(STATUS_NOT_HERE, "no memory");
	aggregates->by = (*ret)->by;
	*format = (*ret)->format;
	*probes = (struct operands){.items = (char **)(uintptr_t)(*ret)->probes,
				    .n = (*ret)->n_probes};
	return STATUS_YES;
}
