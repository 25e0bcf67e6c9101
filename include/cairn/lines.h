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
	uint16_t view;   /* of its row: several statements may begin at one address */
	/*
	 * A site of the kind CAIRN_SITE_PLACE, without arguments. n_chain is 0 in an out-of-line
	 * body; else the chain and the container are those of the inlined copy that has the line.
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

enum cairn_variable_kind {
	CAIRN_VARIABLE_PARAMETER,
	CAIRN_VARIABLE_LOCAL,
	CAIRN_VARIABLE_STATIC, /* declared in the function, in memory of its own */
	CAIRN_VARIABLE_GLOBAL, /* of the compiled source file, or of a namespace or class in it */
};

/* A variable in scope at a place. */
struct cairn_variable {
	enum cairn_variable_kind kind;
	const char *name;
	uint32_t type;      /* in cairn_sites_types() */
	uint32_t decl_line; /* 0 when unknown */
	struct cairn_location loc;
};

struct cairn_variables {
	size_t n;
	/* locals of inner blocks before those of outer ones, then parameters, then globals */
	const struct cairn_variable *p;
};

/*
 * cairn_sites_vars - the variables in scope at a place of a line, and where their values are just
 * before its instruction
 *
 * They are the function's parameters, and the variables of the function and of the blocks around
 * the place; of several of one name the innermost. The rules for arguments hold, and further ones:
 * a variable in memory of optimised code is unavailable unless the compiler spilled it there.
 *
 * Globals are what is in their memory: optimised code may hold a newer value in a register.
 *
 * @line  a result of cairn_sites_lines() of the same @sites
 * @ret   borrowed until cairn_sites_close()
 * Returns their number. -EOPNOTSUPP: a sidecar's sites; -EBADMSG, -ENOMEM.
 * Cost: decodes the function.
 */
int cairn_sites_vars(struct cairn_sites *sites, const struct cairn_line *line,
		     struct cairn_variables *ret, struct cairn_err *err);

CAIRN_END_DECLS
#endif
