/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines: the instructions at which the statements of a function begin
 *
 * A function's line is compiled into its out-of-line body and into every inlined copy, often in
 * several pieces of each. The line table marks where statements begin; each such instruction that
 * does not follow one of the same line is a place of the line.
 *
 *	struct cairn_lines lines;
 *	if (cairn_sites_lines(sites, "parse", &lines, &err) > 0)
 *		printf("line %u at 0x%lx\n", lines.p[0].line, (long)lines.p[0].site.at.v);
 *
 * Optimised code begins a line more than once, and mixes it with others: one execution of a line
 * may pass several of its places, and several executions may pass one once.
 */
#ifndef CAIRN_LINES_H
#define CAIRN_LINES_H

#include <stddef.h>
#include <stdint.h>

#include <cairn/api.h>
#include <cairn/err.h>
#include <cairn/sites.h>

CAIRN_BEGIN_DECLS

/* One place. */
struct cairn_line {
	const char *function; /* the line is in its code, here or inlined; NULL when unknown */
	const char *file;
	uint32_t line;
	uint32_t column; /* 0 when unknown */
	/*
	 * Of the kind CAIRN_SITE_PLACE, without arguments. n_chain is 0 in an out-of-line body; else
	 * the chain and the container are those of the inlined copy that has the line.
	 */
	struct cairn_site site;
};

struct cairn_lines {
	size_t n;
	const struct cairn_line *p; /* sorted by file, line and address */
};

/*
 * cairn_sites_lines - the places of lines
 *
 * @spec  FUNC: all lines of a function, as cairn_sites_find() takes its name; FUNC:LINE: one of
 *        them; FILE:LINE: a line of any function, FILE being the end of a path
 * @ret   borrowed until cairn_sites_close()
 * Returns their number. 0: the line has no statement, or there is no such function or file.
 * -ENOTUNIQ: FUNC is several functions; cairn_sites_find() lists them. -EOPNOTSUPP: @sites are a
 * sidecar's, which has no lines of functions. -EBADMSG, -ENOMEM.
 * Cost: as cairn_sites_find(), and the line tables of the units that have the code.
 */
int cairn_sites_lines(struct cairn_sites *sites, const char *spec, struct cairn_lines *ret,
		      struct cairn_err *err);

CAIRN_END_DECLS
#endif
