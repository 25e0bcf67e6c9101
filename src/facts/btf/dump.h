/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints records as text: the functions that the printers share. */
#ifndef BTF_DUMP_H
#define BTF_DUMP_H

#include <stdio.h>

#include "base/err.h"
#include "btf/btf.h"

struct dump {
	const struct cairn_btf *btf;
	const uint32_t *ids; /* NULL: all own records */
	size_t n_ids;
	int machine; /* EM_* */
	FILE *out;
	uint32_t *n_renamed; /* names in C that were no identifiers */
};

/* Records one by one; 0, or the error of writing. */
int dump_raw(const struct dump *d, bool pretty, struct cairn_err *err);

/* C declarations, dump_c.h. */
int dump_c(const struct dump *d, struct cairn_err *err);

/* Big enough for a location of any record. */
#define DUMP_LOC_MAX 160

/*
 * The location of a parameter, into @buf, in the form of upstream's tests: "*(reg2 + 0x10)". One
 * without a location is "(unavailable)". The form for people: cairn_btf_loc_text().
 */
void dump_loc(const struct cairn_btf_loc_param *p, char *buf, size_t size);

#endif
