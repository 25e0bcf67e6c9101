/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is around the places of one function
 *
 * A kernel's symbols, and the tables of code that no kprobe may be set on, take 20 ms to be put in
 * order. One function needs what is near its places, and that takes some passes over the tables. So
 * the first functions are answered like that, and from then on the order of all is made, once.
 */
#include "base/search.h"
#include "btfsites/btfsites.h"
#include "insn/kernel_code.h"

/* After these questions the rest are answered from an order of all. */
enum { QUESTIONS_MAX = 4 };

void btfsites_forget_few(struct btf_sites *s)
{
	functions_around_fini(&s->few.functions);
	kernel_code_free(s->few.code);
	s->few.code = NULL;
	/* It may have been made of other symbols. */
	s->around.from = s->around.hi = 0;
}

int btfsites_see_few(struct btf_sites *s, const uint64_t *at, size_t n)
{
	struct few *few = &s->few;
	int rc;

	btfsites_forget_few(s);
	if (few->n_asked >= QUESTIONS_MAX || !n)
		return 0;
	few->n_asked++;
	rc = functions_around_init(&few->functions, binary_symbol_file(s->sites.bin), at, n);
	if (rc <= 0 || !s->kernel)
		return rc < 0 ? rc : 0;
	return kernel_code_around(s->sites.bin, &few->functions, &few->code, NULL);
}

int btfsites_functions_at(const struct btf_sites *s, uint64_t at, const struct functions **ret,
			  struct cairn_err *err)
{
	if (!functions_around_has(&s->few.functions, at))
		return binary_functions(s->sites.bin, ret, err);
	*ret = &s->few.functions.functions;
	return 0;
}

int btfsites_symbols_at(const struct btf_sites *s, uint64_t at, const struct elf_symbol **ret,
			size_t *ret_n, struct cairn_err *err)
{
	const struct elf_symbol *p = s->few.functions.symbols;
	size_t n = s->few.functions.n_symbols, lo, hi;
	int rc = 0;

	*ret_n = 0;
	if (!functions_around_has(&s->few.functions, at))
		rc = elf_symbols(binary_symbol_file(s->sites.bin), &p, &n, err);
	if (rc < 0)
		return rc;
	lo = hi = SEARCH(0, n, mid, p[mid].at.v < at);
	while (hi < n && p[hi].at.v == at)
		hi++;
	*ret = n ? p + lo : NULL;
	*ret_n = hi - lo;
	return 0;
}

bool btfsites_symbol(struct cairn_sites *sites, struct cairn_vaddr at, char *name, size_t size)
{
	struct btf_sites *s = btf_sites_of(sites);
	struct elf *debug = binary_debug(sites->bin), *e = debug ? debug : binary_main(sites->bin);
	struct symbol_list before = {0};
	bool is_few = s->few.n_symbols_asked++ < QUESTIONS_MAX;

	if (!is_few || elf_symbols_before(e, at, &before) <= 0) {
		VEC_FREE(&before.v);
		return sites_symbol_of_binary(sites, at, name, size);
	}
	is_few = sites_symbol_among(before.v.p, before.v.n, at, name, size);
	VEC_FREE(&before.v);
	return is_few;
}

enum cairn_hazard btfsites_kernel_hazard(const struct btf_sites *s, struct cairn_vaddr at)
{
	if (!s->few.code || !functions_around_has(&s->few.functions, at.v))
		return kernel_code_hazard(s->sites.bin, at);
	return kernel_code_hazard_in(s->few.code, s->sites.bin, at);
}
