/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Locations in other tools' languages
 *
 *	*(%rsp+0x18) of an int       bpftrace  (int32)(*(uint32*)(reg("sp")+24))
 *	                             gdb       (int)(*(unsigned int*)($rsp+24))
 *	                             perf      +24(%sp):s32
 *
 * If a language cannot express a value, the result is false, never an approximation.
 */
#ifndef CLI_EMIT_EXPR_H
#define CLI_EMIT_EXPR_H

#include <stdbool.h>
#include <stdint.h>

#include <cairn/location.h>
#include <cairn/types.h>

/* Longest expression; a location that needs more is not expressed. */
#define EXPR_MAX 1024

/* A type as probes see it: one integer, or nothing that they know. */
struct scalar {
	bool known; /* an integer, enum, bool, char or pointer of 1, 2, 4 or 8 bytes */
	bool is_signed;
	bool is_pointer;
	bool is_string;    /* pointer to char */
	unsigned int size; /* bytes */
};

struct scalar scalar_of(const struct cairn_types *types, uint32_t id);

/* A language with C's operators. */
struct c_dialect {
	const char *reg;          /* format of a register: "$%s" */
	const char *pc;           /* the address of the probed instruction */
	bool long_register_names; /* rdi, not di */
	/* By size in bytes. */
	const char *unsigned_type[9], *signed_type[9];
	bool arithmetic_shift; /* >> of a signed value keeps the sign */
};

extern const struct c_dialect dialect_bpftrace, dialect_gdb;

/* The value as an expression of its type's width; @site: the probed address. */
bool expr_c(const struct c_dialect *dialect, const struct cairn_location *loc, struct scalar scalar,
	    struct cairn_vaddr site, char ret[EXPR_MAX]);

/* As a fetch argument of a trace event, with its type after a colon. */
bool expr_perf(const struct cairn_location *loc, struct scalar scalar, struct cairn_vaddr site,
	       char ret[EXPR_MAX]);

#endif
