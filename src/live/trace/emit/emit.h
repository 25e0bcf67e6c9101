/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A planned trace as a script for another tool
 *
 * Fetch programs (abi.h) know all that a probe computes, so they are what is translated, operation
 * by operation: lift.c with a table of texts for each tool. A construct without a translation is
 * refused before anything is written.
 *
 *	emit.c      the tools; what is refused; the order of a script
 *	values.c    fetch program -> the condition, and a value each with its operations
 *	parts.c     titles, names and paths
 *	lift.c      operations -> statements of a tool's language
 *	bpftrace.c, perf.c, gdb.c, libbpf.c   the tools; libbpf_kernel.txt, libbpf_user.txt and
 *	            gdb.txt are written as they are
 */
#ifndef TRACE_EMIT_H
#define TRACE_EMIT_H

#include <cairn/trace_emit.h>

#include "trace/aggregate/aggregate.h"
#include "trace/fetch/fetch.h"
#include "trace/trace.h"

enum {
	/* Operations that bring a value to 64 bits are added to those of the program. */
	EMIT_OPS_MAX = FETCH_OPS_MAX + 4,
	EMIT_TITLE_MAX = 1024,
};

enum emit_form {
	EMIT_NUMBER,
	EMIT_STRING,  /* the operations end with its address */
	EMIT_MISSING, /* why says so */
};

/* The condition, or a value, of a site's program. */
struct emit_value {
	enum emit_form form;
	const char *why;
	bool is_signed, is_hex;
	uint32_t most; /* bytes of a string that are shown, without its NUL */
	uint32_t n;
	struct fetch_op ops[EMIT_OPS_MAX];
};

struct emission;

struct emit_language {
	/*
	 * By operation. @a and @b are the operands, @n the size in bytes, @s in bits, @m 64 less
	 * @s, @t the cell that is written. NULL: there is none.
	 */
	const char *ops[FETCH_N_CODES];
	const char *known[FETCH_N_KNOWN];
	const char *acc, *if_true, *if_false, *otherwise, *end;
	void (*put_cell)(uint8_t reg, FILE *out);
	void (*put_number)(uint64_t value, FILE *out);
	/* In a comparison of strings @text ends with NUL. */
	void (*put_streq)(const char *text, bool is_comm, FILE *out);
	/* Why an operation that has a text cannot be done; NULL: it can. */
	const char *(*refuses)(const struct fetch_op *op);
};

/* The tools write these alike, each with its own form of a result and of a comparison. */
#define EMIT_OPERATORS(BINARY, COMPARE, SIGNED)                                                    \
	[FETCH_ADD] = BINARY("+"), [FETCH_SUB] = BINARY("-"), [FETCH_MUL] = BINARY("*"),           \
	[FETCH_AND] = BINARY("&"), [FETCH_OR] = BINARY("|"), [FETCH_XOR] = BINARY("^"),            \
	[FETCH_EQ] = COMPARE("=="), [FETCH_NE] = COMPARE("!="), [FETCH_LT] = SIGNED("<"),          \
	[FETCH_LE] = SIGNED("<="), [FETCH_GT] = SIGNED(">"), [FETCH_GE] = SIGNED(">="),            \
	[FETCH_ULT] = COMPARE("<"), [FETCH_ULE] = COMPARE("<="), [FETCH_UGT] = COMPARE(">"),       \
	[FETCH_UGE] = COMPARE(">=")

struct emit_tool {
	struct cairn_emit_tool pub;
	const struct emit_language *language; /* NULL: it has no operators */
	bool has_condition;
	uint32_t aggregates; /* a bit per enum cairn_aggregate_kind */
	uint32_t keys;       /* a bit per enum key_kind */
	const char *instead; /* what takes what this tool does not */
	/* Why it cannot have this value, which the language can; NULL, or NULL: it can. */
	const char *(*refuses)(const struct emit_value *value);
	/* The same of an aggregate of a kind that it has. */
	const char *(*refuses_item)(const struct aggregate_item *item);
	int (*write)(struct emission *e);
};

struct emission {
	const struct cairn_trace *t;
	const struct emit_tool *tool;
	FILE *out;
	struct cairn_err *err;
	struct emit_value value; /* room for the one that is written */
};

extern const struct emit_tool emit_bpftrace, emit_perf, emit_gdb, emit_libbpf;

/* ---- values.c ---- */

/* The site's condition; false: there is none. */
bool emit_condition(const struct emission *e, const struct trace_site *site,
		    struct emit_value *ret);
/* Value @i of the site's probe; of aggregates first the numbers, then the keys that are values. */
void emit_value(const struct emission *e, const struct trace_site *site, uint32_t i,
		struct emit_value *ret);
/* The text that has a value's expression, and its position there, for a caret. */
const struct expr *emit_expr(const struct emission *e, const struct trace_probe *p, uint32_t i,
			     const char **ret_text);

/* ---- lift.c ---- */

/* Why the tool cannot do these operations; NULL: it can. */
const char *emit_refuses(const struct emit_language *language, const struct emit_value *value);
/* Statements that leave the value in the accumulator. */
void emit_lift(const struct emit_language *language, const struct emit_value *value,
	       unsigned int depth, FILE *out);

/* ---- parts.c ---- */

/* "put inlined in work+0x0". */
void emit_title(const struct emission *e, const struct trace_site *site, char *buf, size_t size);
/* The probed file, as the tool opens it. Freed by the caller; NULL: no memory. */
char *emit_path(const struct trace_file *f);
void emit_tabs(unsigned int depth, FILE *out);
/* The name of an aggregate, "sum", and what it is of. */
const char *emit_aggregate_name(enum cairn_aggregate_kind kind);

#endif
