/* SPDX-License-Identifier: BSD-2-Clause */
/* From a typed expression and the locations at one site to fetch operations. */
#ifndef TRACE_COMPILE_H
#define TRACE_COMPILE_H

#include "trace/fetch/fetch.h"

struct compiler {
	const struct cairn_types *types;
	/* expressions are about its parameters; NULL: about the site's */
	const struct cairn_function *function;
	const struct cairn_site *site;
	struct cairn_vaddr
		at; /* the probed address, which is the site's unless the probe was moved */
	struct fetch_program *program;
	/* Where the result is after the return; NULL: the site's calls are not followed. */
	const struct cairn_location *result;
	/* The parameter that made an expression unavailable. */
	uint32_t culprit;
	unsigned int temp; /* the first temporary that is not in use */
};

/*
 * compile_value - append the operations that put a value into the record
 *
 * An expression that is no path is a number, of which 8 bytes are stored.
 *
 * Returns CAIRN_AVAILABLE, or why the value cannot be had at this site; the program is then as it
 * was.
 */
enum cairn_unavailable compile_value(struct compiler *c, const struct expr *e, bool is_string,
				     const struct value_layout *layout, uint32_t value);

/*
 * The bytes at an address, as many as an expression says: 8 bytes of address, 8 of their number,
 * and at most layout->n_bytes of them. Result as above.
 */
enum cairn_unavailable compile_bytes(struct compiler *c, const struct expr *e,
				     const struct expr *n_bytes, const struct value_layout *layout,
				     uint32_t value);

/* Append a condition with its FILTER. Result as above. */
enum cairn_unavailable compile_condition(struct compiler *c, const struct expr *e);

/*
 * The values of an aggregate, of which the program may have many, like compile_value(): a number
 * extended to 8 bytes; a value of @n_bytes, of a bit-field 8; and a string of at most 1 << log
 * bytes, as struct key_string.
 */
enum cairn_unavailable compile_number(struct compiler *c, const struct expr *e, uint32_t out,
				      uint32_t value);
/* A number that stays in file[@reg]. */
enum cairn_unavailable compile_kept(struct compiler *c, const struct expr *e, uint32_t reg,
				    uint32_t value);
enum cairn_unavailable compile_key(struct compiler *c, const struct expr *e, uint32_t out,
				   uint32_t n_bytes, uint32_t value);
enum cairn_unavailable compile_key_string(struct compiler *c, const struct expr *e, uint32_t out,
					  uint32_t log, uint32_t value);

/* Text that a recipe reads; at most @most bytes, which are fewer than 1 << log. */
enum cairn_unavailable compile_key_text(struct compiler *c, const struct expr *e, uint32_t out,
					uint32_t log, uint32_t most, uint32_t value);

/* A string in a key: what FETCH_STRING writes, after a byte that tells a NULL pointer. */
struct key_string {
	uint8_t is_null, pad;
	uint16_t length;
	char bytes[];
};

/*
 * compile_is_constant - whether the operations [@from, p->n) read no register and no memory
 *
 * Then fetch_run() gives a value that holds for every hit of the site.
 */
bool compile_is_constant(const struct fetch_program *p, uint32_t from);

#endif
