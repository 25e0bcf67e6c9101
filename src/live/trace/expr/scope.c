/* SPDX-License-Identifier: BSD-2-Clause */
/* The names that a probe's expressions may have */
#include "trace/trace.h"

struct expr_scope probe_scope(const struct trace_probe *p)
{
	struct cairn_sites *sites = p->file->sites;

	/* The types of a USDT probe are its own, and complete. */
	if (sites && cairn_sites_types(sites) != p->pub.types)
		sites = NULL;
	return (struct expr_scope){.types = p->pub.types,
				   .sites = sites,
				   .bin = p->file->bin,
				   .function = p->pub.function,
				   .text = p->text->text,
				   .no_returns = p->no_returns,
				   .has_words = p->semaphores || p->pub.function->params_unknown};
}

const char *why_no_params(const struct cairn_function *f)
{
	return f->n_sites && f->sites[0].rule == CAIRN_AT_SYMBOL
		       ? "only the symbol table knows it"
		       : "it is assembler code, or compiled with -g1";
}
