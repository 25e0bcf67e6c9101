/* SPDX-License-Identifier: BSD-2-Clause */
/* Function symbols by address; the essay is in functions.c. */
#ifndef ELF_FUNCTIONS_H
#define ELF_FUNCTIONS_H

#include "base/vec.h"
#include "elf/elf.h"

/* [lo, hi) belongs to @symbol. Ranges are sorted and do not overlap. */
struct function_range {
	uint64_t lo, hi;
	const struct elf_symbol *symbol;
};

struct functions {
	VEC(struct function_range) ranges;
};

/*
 * functions_flatten - flatten the function symbols among some, which must outlive @f
 *
 * @symbols  in the order of elf_symbols()
 * Returns 0, -ENOMEM.
 */
int functions_flatten(struct functions *f, const struct elf *e, const struct elf_symbol *symbols,
		      size_t n);

/*
 * functions_init - flatten the function symbols of @e, which must outlive @f
 *
 * Returns 0 (with no ranges when there are no symbols), or as elf_symbols().
 * Cost: O(n log n) once.
 */
int functions_init(struct functions *f, struct elf *e, struct cairn_err *err);
void functions_fini(struct functions *f);

/* The symbol that wins at @at, or NULL. O(log n). */
const struct elf_symbol *functions_at(const struct functions *f, struct cairn_vaddr at);

/* A local symbol without a type and a size: in hand-written code it may stand before a table. */
bool functions_is_local_label(const struct elf_symbol *s);

#endif
