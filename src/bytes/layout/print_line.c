/* SPDX-License-Identifier: BSD-2-Clause */
/* The beginning of every line of a struct: tabs, the comment of a cache line, and names. */
#include "layout/print.h"

#include <inttypes.h>
#include <string.h>

#include <cairn/text.h>

void print_tabs(const struct print *p, const struct place *at)
{
	for (unsigned int i = 0; i < at->indent; i++)
		putc('\t', p->out);
}

void print_cacheline(struct print *p, uint64_t off, const struct place *at)
{
	uint64_t line = off / p->l->opts.cacheline, behind = off % p->l->opts.cacheline;

	if (line <= p->cacheline_seen)
		return;
	p->cacheline_seen = line;
	fprintf(p->out, "/* --- cacheline %" PRIu64 " boundary (%" PRIu64 " bytes)", line,
		off - behind);
	if (behind)
		fprintf(p->out, " was %" PRIu64 " byte%s ago", behind, behind == 1 ? "" : "s");
	fputs(" --- */\n", p->out);
	print_tabs(p, at);
}

int print_name(const struct print *p, const char *name)
{
	char quoted[128];
	ssize_t n = cairn_quote(name, CAIRN_QUOTE_TEXT, quoted, sizeof(quoted));

	if ((size_t)n < sizeof(quoted))
		fwrite_unlocked(quoted, 1, (size_t)n, p->out);
	else
		cairn_quote_put(name, CAIRN_QUOTE_TEXT, p->out);
	return (int)n;
}
