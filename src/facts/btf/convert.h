/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside of the conversion: convert.c copies records, convert_loc.c rewrites LOC records in the
 * other dialect, convert_kernel.c rewrites records that the kernel refuses.
 */
#ifndef BTF_CONVERT_H
#define BTF_CONVERT_H

#include "btf/btf.h"
#include "btf/build.h"

struct btf_convert {
	const struct cairn_btf *btf;
	const struct cairn_btf *base; /* of the result; or NULL */
	enum cairn_btf_dialect dialect;
	bool layout, downgrade;
	bool for_kernel; /* requested */
	bool kernel;     /* and the input has records that a kernel refuses */
	bool big_endian;
	struct cairn_btf_builder *b;
	bool *refused_tags;                    /* per id, for the kernel; NULL: none */
	uint32_t *map;                         /* new id of each id of the chain; 0: it is gone */
	struct btf_kernel_names *kernel_names; /* NULL: they stay */
	struct cairn_btf_losses losses;
};

/* The offset of an input string in the result. */
uint32_t btf_convert_name(const struct btf_convert *c, uint32_t off);

/*
 * Add the LOC records of the input in the dialect of the result, after all others.
 * Returns 0, -ENOMEM, -ERANGE.
 */
int btf_convert_loc(struct btf_convert *c);

/*
 * For the kernel: names in a form that it takes, and its other rules for the records that were
 * copied. The table is for btf_kernel_names_free(), also after an error. All return 0, -ENOMEM,
 * -ERANGE.
 */
struct btf_kernel_names;
int btf_kernel_names_new(struct btf_convert *c);
void btf_kernel_names_free(struct btf_kernel_names *k);
int btf_kernel_name(struct btf_convert *c, uint32_t kind, uint32_t off, uint32_t *ret);
int btf_kernel_records(struct btf_convert *c);

/* A prototype that the kernel does not take, a function that has it, a tag of such. */
bool btf_kernel_refuses(const struct cairn_btf *btf, const struct cairn_btf_type *t);

/* Per id: a TYPE_TAG that some kernels do not take. free(); NULL: no memory. */
bool *btf_kernel_refused_tags(const struct cairn_btf *btf);

/*
 * The elements of a DATASEC that the kernel takes, to @words, with the input's ids. Returns how
 * many.
 */
uint32_t btf_kernel_variables(const struct btf_convert *c, const struct cairn_btf_type *t,
			      uint32_t *words);

#endif
