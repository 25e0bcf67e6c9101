/* SPDX-License-Identifier: BSD-2-Clause */
/* Common to the scripts of all tools. */
#include <inttypes.h>
#include <stdlib.h>

#include "trace/emit/emit.h"

void emit_tabs(unsigned int depth, FILE *out)
{
	while (depth--)
		fputc('\t', out);
}

void emit_title(const struct emission *e, const struct trace_site *site, char *buf, size_t size)
{
	const struct cairn_function *f = e->t->probes.p[site->pub.probe]->pub.function;
	char text[EMIT_TITLE_MAX / 2];

	cairn_site_text(f, site->pub.site, e->t->opts.show_name, text, sizeof(text));
	snprintf(buf, size, "%s %s", f->name, text);
}

char *emit_path(const struct trace_file *f)
{
	return realpath(f->path, NULL);
}

const char *emit_aggregate_name(enum cairn_aggregate_kind kind)
{
	static const char *const names[] = {
		[CAIRN_AGGREGATE_COUNT] = "count", [CAIRN_AGGREGATE_SUM] = "sum",
		[CAIRN_AGGREGATE_AVG] = "avg",     [CAIRN_AGGREGATE_MIN] = "min",
		[CAIRN_AGGREGATE_MAX] = "max",     [CAIRN_AGGREGATE_HIST] = "hist",
		[CAIRN_AGGREGATE_LHIST] = "lhist", [CAIRN_AGGREGATE_QUANTILES] = "quantiles",
	};

	return names[kind];
}

void cairn_emit_name(const char *name, uint32_t number, char *buf, size_t size)
{
	if (!name) {
		snprintf(buf, size, "arg%" PRIu32, number + 1);
		return;
	}
	snprintf(buf, size, "%s", name);
	for (char *at = buf; *at; at++)
		if (!((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
		      (*at >= '0' && *at <= '9')))
			*at = '_';
}
