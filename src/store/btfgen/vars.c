/* SPDX-License-Identifier: BSD-2-Clause */
#include "btfgen/vars.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "btf/build.h"
#include "btfgen/tags.h"
#include "elf/elf.h"

struct placed_var {
	const struct variable *v;
	const char *section;
	uint64_t start; /* of the section */
	uint64_t off, bytes;
	uint32_t order;
};

struct placed_vars {
	VEC(struct placed_var) v;
	VEC(struct cairn_btf_secinfo) infos; /* of the section at hand */
	VEC(dw_off) dies;                    /* and of which DIEs these are */
};

static int by_address(const void *a, const void *b)
{
	const struct placed_var *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->off != y->off)
		return x->off < y->off ? -1 : 1;
	/* The larger one contains the others that begin there. */
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

/*
 * Address 0 is where the linker put the code and data that it dropped, and where a kernel's
 * per-processor section begins.
 */
static bool is_real(const struct cairn_binary *bin, const struct variable *v)
{
	const struct elf_symbol *symbols;
	size_t n;
	if (v->addr || cairn_binary_is_relocatable(bin))
		return true;
	if (elf_symbols(binary_debug(bin), &symbols, &n, NULL) < 0)
		return false;
	for (size_t i = 0; i < n && !symbols[i].at.v; i++)
		if (!strcmp(symbols[i].name, v->name))
			return true;
	return false;
}

static bool is_wanted(const char *section, enum vars_which which)
{
	bool percpu = !strcmp(section, ".data..percpu");
	return which == VARS_EVERY || percpu == (which == VARS_PERCPU);
}

static int place(const struct cairn_binary *bin, const struct emit *e, enum vars_which which,
		 struct placed_vars *ret)
{
	for (size_t i = 0; i < e->c->vars.n; i++) {
		const struct variable *v = &e->c->vars.p[i];
		struct placed_var p = {.v = v, .order = (uint32_t)i};
		if (!is_real(bin, v))
			continue;
		p.bytes = emit_bytes(e, name_variants_edge(e->v, v->unit, v->type));
		/*
		 * An object without a size cannot be in a section: "extern struct s x[];" and empty
		 * structs.
		 */
		if (!p.bytes ||
		    !cairn_binary_section_of(bin, (struct cairn_vaddr){v->addr}, &p.section,
					     &p.off) ||
		    p.off > UINT32_MAX || p.bytes > UINT32_MAX || !is_wanted(p.section, which))
			continue;
		p.start = v->addr - p.off;
		if (!VEC_ADD(&ret->v, p))
			return -ENOMEM;
	}
	if (ret->v.n)
		qsort(ret->v.p, ret->v.n, sizeof(*ret->v.p), by_address);
	return 0;
}

static uint64_t section_bytes(const struct cairn_binary *bin, const struct placed_var *p)
{
	const struct elf *e = binary_main(bin);
	for (size_t i = 0; i < elf_n_sections(e); i++)
		if (elf_section_at(e, i)->addr.v == p->start &&
		    !strcmp(elf_section_at(e, i)->name, p->section))
			return elf_section_at(e, i)->size;
	return 0;
}

static int add_var(const struct emit *e, struct cairn_btf_builder *b, const struct placed_var *p,
		   struct placed_vars *all)
{
	struct cairn_btf_secinfo info = {.offset = (uint32_t)p->off, .size = (uint32_t)p->bytes};
	uint32_t name;
	int rc = cairn_btf_add_string(b, p->v->name, &name);
	if (rc >= 0)
		rc = btf_add_var(b, name, p->v->external ? CAIRN_BTF_GLOBAL : CAIRN_BTF_STATIC,
				 emit_id(e, p->v->unit, p->v->type), &info.type);
	return rc < 0 || (VEC_ADD(&all->infos, info) && VEC_ADD(&all->dies, p->v->die)) ? rc
											: -ENOMEM;
}

/* The variables [from, to) of one section. */
static int emit_section(const struct cairn_binary *bin, const struct emit *e,
			struct cairn_btf_builder *b, struct placed_vars *all, size_t from,
			size_t to, uint64_t *losses)
{
	uint64_t end = 0;
	uint32_t name, id;
	int rc = 0;
	all->infos.n = all->dies.n = 0;
	for (size_t i = from; i < to && rc >= 0; i++) {
		const struct placed_var *p = &all->v.p[i];
		const struct placed_var *last = i > from ? p - 1 : NULL;
		/*
		 * A definition and a declaration with the address, or a header's static in several
		 * units folded.
		 */
		bool twice = last && last->off == p->off && !strcmp(last->v->name, p->v->name);
		if (p->off < end) {
			losses[CAIRN_LOSS_VARIABLE] += !twice;
			continue;
		}
		end = p->off + p->bytes;
		rc = add_var(e, b, p, all);
	}
	if (rc >= 0)
		rc = cairn_btf_add_string(b, all->v.p[from].section, &name);
	uint64_t bytes = section_bytes(bin, &all->v.p[from]);
	if (rc >= 0)
		rc = btf_add_datasec(b, name, bytes < end ? (uint32_t)end : (uint32_t)bytes,
				     all->infos.p, (uint32_t)all->infos.n, &id);
	for (size_t i = 0; i < all->infos.n && rc >= 0; i++)
		rc = tags_emit_of_variable(e->c, all->dies.p[i], all->infos.p[i].type, b);
	return rc;
}

int vars_emit(const struct cairn_binary *bin, const struct emit *e, enum vars_which which,
	      struct cairn_btf_builder *b, uint64_t *losses, uint32_t *ret_n, struct cairn_err *err)
{
	struct placed_vars all = {0};
	int rc = place(bin, e, which, &all);
	for (size_t from = 0, to; from < all.v.n && rc >= 0; from = to) {
		for (to = from + 1; to < all.v.n && all.v.p[to].start == all.v.p[from].start;)
			to++;
		rc = emit_section(bin, e, b, &all, from, to, losses);
		*ret_n += (uint32_t)all.infos.n;
	}
	VEC_FREE(&all.v);
	VEC_FREE(&all.infos);
	VEC_FREE(&all.dies);
	return rc < 0 ? err_set(err, rc, "variables: more than BTF can number, or out of memory")
		      : 0;
}
