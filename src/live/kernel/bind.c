/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether a binary describes what runs, and where its sections are
 *
 * The build-id says it. It does not say where: functions of a kernel may have been placed in another
 * order when it started. So functions of /proc/kallsyms are compared, too, at the addresses where
 * they should be. Some differ in any kernel: a table has one name where several functions share an
 * address, and labels of assembler code that others leave out. Where the base is another one,
 * hardly any is right. A sidecar also has the hash of the kernel's BTF (btf.c).
 */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "elf/elf.h"
#include "kernel/kernel.h"

/* Of functions that are compared for a question about one. */
enum { SAMPLE = 2000 };

/* ---- sections ---- */

static bool is_code(const struct elf_section *section)
{
	return section->flags & SHF_EXECINSTR && section->flags & SHF_ALLOC && section->size;
}

/* What is per processor is elsewhere than where sysfs has its section. */
static bool is_data(const struct elf_section *section)
{
	return !(section->flags & SHF_EXECINSTR) && section->flags & SHF_ALLOC && section->size &&
	       !strstr(section->name, "percpu");
}

typedef bool is_wanted_fn(const struct elf_section *section);

static const struct elf_section *section_named(const struct elf *e, const char *name,
					       is_wanted_fn *is_wanted)
{
	for (size_t i = 0; i < elf_n_sections(e); i++)
		if (is_wanted(elf_section_at(e, i)) && !strcmp(elf_section_at(e, i)->name, name))
			return elf_section_at(e, i);
	return NULL;
}

static int add_piece(struct cairn_kernel *k, const struct elf_section *section, uint64_t to,
		     struct cairn_err *err)
{
	struct kernel_piece piece = {section->addr.v, section->size, to};
	return VEC_ADD(&k->pieces, piece) ? 0 : err_nomem(err, "sections of code");
}

static int add_data(struct cairn_kernel *k, const struct elf_section *section, uint64_t to,
		    struct cairn_err *err)
{
	struct kernel_piece piece = {section->addr.v, section->size, to};
	return VEC_ADD(&k->data, piece) ? 0 : err_nomem(err, "sections of data");
}

/* All sections of a kernel are moved by one distance, which that of the first code shows. */
static int place_kernel(struct cairn_kernel *k, const struct elf *e, struct cairn_err *err)
{
	const struct elf_section *text = section_named(e, ".text", is_code);
	int rc = 0;
	for (size_t i = 0; text && i < elf_n_sections(e) && rc >= 0; i++) {
		const struct elf_section *section = elf_section_at(e, i);
		uint64_t to = k->text + (section->addr.v - text->addr.v);
		if (is_code(section) && !kernel_is_gone(k, section->name))
			rc = add_piece(k, section, to, err);
		else if (is_data(section) && !kernel_is_gone(k, section->name))
			rc = add_data(k, section, to, err);
	}
	return rc;
}

/* Each section of a module has an address. The names of two sections may be equal. */
static int place_module(struct cairn_kernel *k, const struct elf *e, struct cairn_err *err)
{
	int rc = 0;
	for (size_t i = 0; i < k->sections.n && rc >= 0; i++) {
		const char *name = k->sections.p[i].name;
		const struct elf_section *section = section_named(e, name, is_code);
		if (section && !kernel_is_gone(k, name))
			rc = add_piece(k, section, k->sections.p[i].at, err);
		section = section_named(e, name, is_data);
		if (rc >= 0 && section && !kernel_is_gone(k, name))
			rc = add_data(k, section, k->sections.p[i].at, err);
	}
	return rc;
}

/* It has the addresses of what runs. */
static int place_image(struct cairn_kernel *k, const struct elf *e, struct cairn_err *err)
{
	int rc = 0;
	for (size_t i = 0; i < elf_n_sections(e) && rc >= 0; i++) {
		const struct elf_section *section = elf_section_at(e, i);
		if (is_code(section) && !kernel_is_gone(k, section->name))
			rc = add_piece(k, section, section->addr.v, err);
	}
	return rc;
}

static int place(struct cairn_kernel *k, const struct cairn_binary *bin, struct cairn_err *err)
{
	if (bin == k->image)
		return place_image(k, binary_main(bin), err);
	return k->module ? place_module(k, binary_main(bin), err)
			 : place_kernel(k, binary_main(bin), err);
}

static bool find_piece(const struct kernel_piece *pieces, size_t n, struct cairn_vaddr at,
		       uint64_t *ret)
{
	for (size_t i = 0; i < n; i++) {
		const struct kernel_piece *p = &pieces[i];
		if (at.v - p->from >= p->size)
			continue;
		*ret = p->to + (at.v - p->from);
		return true;
	}
	return false;
}

bool cairn_kernel_address(const struct cairn_kernel *k, struct cairn_vaddr at, uint64_t *ret)
{
	return find_piece(k->pieces.p, k->pieces.n, at, ret);
}

bool cairn_kernel_data_address(const struct cairn_kernel *k, struct cairn_vaddr at, uint64_t *ret)
{
	return find_piece(k->data.p, k->data.n, at, ret);
}

bool cairn_kernel_link_address(const struct cairn_kernel *k, uint64_t at, struct cairn_vaddr *ret)
{
	for (size_t i = 0; i < k->pieces.n; i++) {
		const struct kernel_piece *p = &k->pieces.p[i];
		if (at - p->to >= p->size)
			continue;
		ret->v = p->from + (at - p->to);
		return true;
	}
	return false;
}

/* ---- functions ---- */

struct comparison {
	const struct cairn_kernel *kernel;
	const struct cairn_binary *bin;
	const struct cairn_sidecar *sidecar;
	size_t n, n_equal;
	size_t limit; /* 0: none */
};

static int compare(void *ctx, const struct kallsym *s)
{
	struct comparison *c = ctx;
	struct cairn_vaddr at, start;
	const char *name;
	if (!kallsym_is_code(s) || !kallsyms_is_own(c->kernel, s) ||
	    !cairn_kernel_link_address(c->kernel, s->at, &at))
		return 0;
	bool is_known = c->sidecar ? cairn_sidecar_symbol_of(c->sidecar, at, &name, &start)
				   : cairn_binary_symbol_of(c->bin, at, &name, &start);
	c->n++;
	c->n_equal += is_known && start.v == at.v && !strcmp(name, s->name);
	return c->limit && c->n == c->limit;
}

static int compare_functions(const struct cairn_kernel *k, const struct cairn_binary *bin,
			     const struct cairn_sidecar *sidecar, bool is_whole,
			     struct cairn_err *err)
{
	struct comparison c = {.kernel = k,
			       .bin = bin,
			       .sidecar = sidecar,
			       .limit = is_whole || k->module ? 0 : SAMPLE};
	const struct functions *functions;
	/* Without memory for symbols, none would be found. */
	int rc = sidecar ? 0 : binary_functions(bin, &functions, err);
	if (rc >= 0)
		rc = kallsyms_read(k, compare, &c, err);
	if (rc < 0)
		return rc;
	/* A module of data alone has none. */
	if (c.n_equal * 2 >= c.n)
		return 0;
	return err_set(err, -ESTALE,
		       "%s: %zu of %zu functions are elsewhere in %s: it runs other code, or its "
		       "functions were moved when it started",
		       cairn_binary_path(bin), c.n - c.n_equal, c.n, kernel_name(k));
}

/* ---- the build ---- */

bool kernel_is_build(const struct cairn_kernel *k, const struct cairn_binary *bin)
{
	size_t len;
	const uint8_t *id = cairn_binary_build_id(bin, &len);
	return len == k->build_id_len && !memcmp(id, k->build_id, len);
}

static int check_build(const struct cairn_kernel *k, const struct cairn_binary *bin,
		       struct cairn_err *err)
{
	if (kernel_is_build(k, bin))
		return 0;
	return err_set(err, -ESTALE, "%s is not the running build of %s: its build-id differs",
		       cairn_binary_path(bin), kernel_name(k));
}

int cairn_kernel_bind(struct cairn_kernel *k, const struct cairn_binary *bin,
		      const struct cairn_sidecar *sidecar, bool is_whole, struct cairn_err *err)
{
	k->pieces.n = k->data.n = 0;
	int rc = check_build(k, bin, err);
	if (rc >= 0)
		rc = place(k, bin, err);
	if (rc < 0)
		return rc;
	if (!k->pieces.n)
		return err_set(err, -ENOENT, "%s has no section of code that is loaded",
			       cairn_binary_path(bin));
	/* It is made of these symbols. */
	if (bin != k->image)
		rc = compare_functions(k, bin, sidecar, is_whole, err);
	if (rc >= 0 && sidecar && is_whole)
		rc = kernel_compare_btf(k, sidecar, cairn_binary_path(bin), err);
	if (rc < 0)
		k->pieces.n = 0;
	return rc;
}
