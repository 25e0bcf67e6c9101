/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Probes for a program of the caller, whose hits have the arguments
 *
 * The trace finds, plans and checks the sites as ever, and says how each argument is read there.
 * The caller puts that where its program finds it, and gives each site a cookie:
 *
 *	cairn_trace_open(&opts, &t, err);
 *	trace_locate(t, n_needed);
 *	cairn_trace_add(t, "FUNC", err);
 *	trace_check(t, err);			// weigh.h
 *	for (i = 0; i < cairn_trace_n_sites(t); i++)
 *		trace_located_args(t, i, n);	// and trace_located_arg()
 *	trace_set_cookie(t, i, cookie);
 *	trace_set_links(t, &links, err);	// weigh.h
 */
#ifndef TRACE_LOCATE_H
#define TRACE_LOCATE_H

#include "trace/attach/links.h"

enum {
	LOCATE_ARGS_MAX = FETCH_VALUES_MAX, /* arguments after these are unavailable */
	LOCATE_BYTES_MAX = 16,              /* of an argument */
};

/* The knowledge of a trace that locates, of one site. */
struct trace_located {
	uint64_t cookie;
	uint32_t program; /* as in located_program of struct trace_links */
};

/* One argument at one site. */
struct trace_located_arg {
	bool is_available;
	bool is_large;           /* it has more than LOCATE_BYTES_MAX bytes */
	bool is_signed;          /* an integer that is extended with its sign */
	uint8_t n_bytes;         /* of its type */
	const uint8_t *constant; /* n_bytes of them; NULL: the operations have it */
	/* They store its bytes from @out on. Addresses are of the kernel if the site is. */
	const struct fetch_op *ops;
	uint32_t n_ops;
	uint32_t out;
};

/*
 * trace_locate - for all probes that are added from now on
 *
 * @n_needed  a site where one of the first so many arguments is unavailable is refused
 */
void trace_locate(struct cairn_trace *t, uint32_t n_needed);

/* plan/sites.c: the arguments of a function as values. Errors as cairn_trace_add(). */
int locate_plan(struct cairn_trace *t, struct trace_probe *p, struct cairn_err *err);

/* The function's parameters; 0 for a site that is refused, too. */
uint32_t trace_located_n(const struct cairn_trace *t, uint32_t site);
void trace_located_arg(const struct cairn_trace *t, uint32_t site, uint32_t arg,
		       struct trace_located_arg *ret);

/* What a probe at the site gives its program. Returns 0 or -ENOMEM. */
int trace_set_cookie(struct cairn_trace *t, uint32_t site, uint64_t cookie);
/* A site that has a program of its own is attached with the links of that number. */
int trace_set_program(struct cairn_trace *t, uint32_t site, uint32_t program);

/* The word of struct pt_regs that a register of DWARF is; negative: of none that programs see. */
int trace_register_word(unsigned int dwarf_reg);

#endif
