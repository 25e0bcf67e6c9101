/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * --lint: faults of a struct as a record between programs
 *
 * To add a rule: a function and a row in layout_lint_rules.c, a paragraph in docs/layout.md, a
 * struct that it finds and one that it does not in tests/cli/test_layout_lint.py.
 */
#ifndef CLI_LAYOUT_LINT_H
#define CLI_LAYOUT_LINT_H

#include "layout.h"

struct lint_finding {
	const char *rule;
	const char *member; /* NULL: of the whole struct */
	uint64_t offset;    /* bytes */
	bool unplaced;      /* the offset is not known */
	char what[256], mend[256];
	const char *why; /* static */
};

/* A struct that is looked at. */
struct lint_subject {
	const struct layout_run *run;
	const struct cairn_abi *abi; /* that it is laid out for */
	uint32_t id;
	uint32_t outer;   /* the one that it is inside of; @id: in none */
	const char *path; /* "in.", "list[]." of its members; "" */
	uint64_t base;    /* where it begins in @outer, bytes */
	/* the distances in the arrays that it is an element of, or-ed; 0: in none */
	uint64_t strides;
	bool listed; /* @outer is another, and this one is looked at by itself, too */
	const struct cairn_type *t;
	const struct cairn_layout_facts *facts;
	const struct cairn_layout_member *members;
	uint64_t cacheline;
	/* The same types on a 32-bit ABI; NULL: not to be had. */
	const struct cairn_abi *small_abi;
	const struct cairn_types *small;
	void (*report)(const struct lint_subject *s, const struct lint_finding *f, void *ctx);
	void *ctx;
	bool no_memory; /* a rule could not look */
};

struct lint_rule {
	const char *id;
	const char *what; /* for the list of rules: lower case, no full stop */
	void (*look)(struct lint_subject *s, const struct lint_rule *rule);
	bool whole;  /* of a struct by itself, not of one inside of another */
	bool placed; /* depends on where in the outer struct it is */
};

/* For users: its own name, or that of the base class. */
const char *layout_lint_name(const struct cairn_types *types, const struct cairn_member *m);

/* id NULL ends. */
extern const struct lint_rule layout_lint_rules[];

#endif
