/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of `cairn sites` share this: one answer, several ways to write it. */
#ifndef CLI_SITES_H
#define CLI_SITES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <cairn/binary.h>
#include <cairn/location.h>
#include <cairn/sites.h>
#include <cairn/types.h>

#include "json.h"
#include "style.h"

struct cairn_sidecar;
struct running;

/* The file of the query. */
struct view {
	const struct cairn_binary *bin;
	struct cairn_sites *sites; /* NULL if no debug information is needed */
	const char *sidecar;       /* that they come from; NULL: the debug information */
	const struct cairn_types *types;
	FILE *out;
	struct style style;
	bool json;
	struct running *running; /* NULL: the query is about a file */
	const char *explain; /* the parameter to be explained, "*": all; NULL: sites are shown */
};

/* Longest type, declaration or location that is shown whole; templates can be longer. */
#define VIEW_TEXT_MAX 4096

/* How many of a site's arguments can be read there. */
enum coverage {
	COVERED_ALL, /* also of a function without parameters */
	COVERED_SOME,
	COVERED_NONE,
	N_COVERAGES
};

enum coverage site_coverage(const struct cairn_site *site);

/*
 * "0x401136"; in a relocatable file, where addresses are not final, ".text+0x16"; of the running
 * kernel where it is now. Cut to the buffer.
 */
void view_address(const struct view *view, struct cairn_vaddr at, char *buf, size_t size);
/* "void *tcache_get(size_t tc_idx)". Cut to the buffer. */
void view_declaration(const struct view *view, const struct cairn_function *function, char *buf,
		      size_t size);
/*
 * "malloc.c:3182", or "" when unknown: the file's own name, or all of its path. Cut to the buffer.
 */
void view_source(const char *file, uint32_t line, uint32_t column, char *buf, size_t size);
/* "%rdi", or "unavailable: REASON". Cut to the buffer. */
void view_location(const struct view *view, const struct cairn_location *loc, char *buf,
		   size_t size);

/* A function with all its sites. */
void sites_text(const struct view *view, const struct cairn_function *function);
/* One line per site; docs/json.md has the meaning of each key. */
void sites_json(const struct view *view, const struct cairn_function *function);
/* Its address, section, symbol and container, and the chain of its inlined calls: members of such. */
void sites_json_where(const struct view *view, struct json *j, const struct cairn_site *site);
/* Its name and where it is declared: the first members of such lines. */
void sites_json_declared(struct json *j, const struct cairn_function *function);

/*
 * The paragraph of docs/reasons.md about a reason, or the row of a quirk; all their words for
 * "list". Returns an exit status.
 */
int sites_explain(const char *word, bool as_json);
/* The text of a reason's paragraph, with line ends, and as one line. NULL: no such word. Static. */
const char *sites_reason(const char *word, bool as_line);
/* The row of a quirk: producers, finding and effect. */
void sites_explain_quirk(FILE *out, const struct cairn_quirk_rule *rule);

/*
 * sites_explain_args - why a parameter is unavailable, at each site of a function
 *
 * The parameter is view->explain. Returns an exit status: no parameter may have that name.
 */
int sites_explain_args(const struct view *view, const struct cairn_function *function);

/* All functions of the file and how well they are described; an exit status. */
int sites_coverage(const struct view *view);
/*
 * Every instruction of the file on which a uprobe is lost or does harm; an exit status.
 *
 * @sidecar  the source of functions and names; NULL: the binary
 */
int sites_hazards(const struct view *view, const struct cairn_sidecar *sidecar);

/*
 * sites_lines - the lines of a function that can be probed, and where
 *
 * @spec  as cairn_sites_lines() takes it
 * @vars  with the variables in scope at each place
 * Returns an exit status.
 */
int sites_lines(const struct view *view, const char *spec, bool vars);

/*
 * sites_usdt - the USDT probes of the file, and where their arguments are
 *
 * @specs  PROVIDER:NAME or NAME, which may be patterns; all probes if there is none
 * Returns an exit status.
 */
int sites_usdt(const struct view *view, char *const *specs, size_t n_specs);

/*
 * sites_emit - definitions that another tool takes
 *
 * @dialect    "bpftrace", "perf" or "gdb"
 * @functions  all requested ones
 * Returns an exit status.
 */
int sites_emit(const struct view *view, const char *dialect,
	       const struct cairn_function *const *functions, size_t n_functions);

/* The same for tracefs, of the running kernel: a script that sets kprobes. */
int sites_emit_running(const struct view *view, const struct cairn_function *const *functions,
		       size_t n_functions);

#endif
