/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers from .cairn.dwarf: the code that reads debug information reads it, with the binary's own
 * instructions and unwind rows
 */
#include "sidecar/reduced.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "dwarf/constants.h"
#include "sidecar/sidecar_impl.h"
#include "sidecar/sites_types.h"
#include "sites/scopes_at.h"
#include "sites/call_site_value.h"

struct reduced {
	const struct cairn_sidecar *sidecar;
	struct sidecar_types *types;
	struct cairn_binary *bin; /* the code, and the section as its debug file */
	struct dwarf *dw;
	struct cfi *cfi;
	struct dw_func_index index;
	struct active active;
	struct arena arena; /* of the last answer */
};

/* The section as an ELF file. Returns 1, 0 without a section, -EBADMSG, -ERANGE, -ENOMEM. */
static int open_section(const struct cairn_sidecar *sidecar, struct elf **ret,
			struct cairn_err *err)
{
	const struct elf_section *s;
	int rc = elf_section(sidecar->elf, REDUCED_SECTION, &s, err);
	if (rc < 0 || !s || !s->data)
		return rc < 0 ? rc : 0;
	rc = elf_open_mem(s->data, s->size, elf_path(sidecar->elf), ret, err);
	return rc < 0 ? err_while(err, rc, "in section " REDUCED_SECTION) : 1;
}

static struct site_env env_of(const struct reduced *r)
{
	return (struct site_env){.bin = r->bin,
				 .dw = r->dw,
				 .cfi = r->cfi,
				 .code = binary_main(r->bin),
				 .index = &r->index,
				 .kernel = cairn_binary_is_kernel(r->bin),
				 .is_reduced = true};
}

static int read_all(struct reduced *r, struct cairn_err *err)
{
	int rc = dwarf_open(r->bin, 1, &r->dw, err);
	if (rc >= 0)
		rc = cfi_open(r->bin, &r->cfi, err);
	if (rc >= 0)
		rc = dwarf_index_functions(r->dw, 1, &r->index, err);
	if (rc < 0)
		return err_while(err, rc, "in section " REDUCED_SECTION " of %s",
				 elf_path(r->sidecar->elf));
	struct site_env env = env_of(r);
	return active_init(&r->active, &env, err);
}

int reduced_open(const struct cairn_sidecar *sidecar, const struct cairn_binary *bin,
		 struct sidecar_types *types, struct reduced **ret, struct cairn_err *err)
{
	struct elf *section;
	/* The answer for an address depends on all code of its function. */
	if (cairn_sidecar_compare(sidecar, err) == -ESTALE)
		return -ESTALE;
	int rc = open_section(sidecar, &section, err);
	if (rc <= 0)
		return rc ? rc
			  : err_set(err, -EOPNOTSUPP,
				    "%s: a sidecar without the parameters in the middle of "
				    "functions; make it with: "
				    "cairn sidecar --args FILE",
				    elf_path(sidecar->elf));
	struct reduced *r = calloc(1, sizeof(*r));
	if (!r) {
		elf_unref(section);
		return err_nomem(err, "the parameters of functions");
	}
	r->sidecar = sidecar;
	r->types = types;
	arena_init(&r->arena);
	rc = binary_with_debug(bin, section, &r->bin, err);
	if (rc >= 0)
		rc = read_all(r, err);
	if (rc < 0) {
		reduced_close(r);
		return rc;
	}
	*ret = r;
	return 0;
}

void reduced_close(struct reduced *r)
{
	if (!r)
		return;
	active_fini(&r->active);
	dw_func_index_fini(&r->index);
	arena_fini(&r->arena);
	cfi_close(r->cfi);
	dwarf_close(r->dw);
	cairn_binary_close(r->bin);
	free(r);
}

static int type_of(void *ctx, const struct dw_die *formal, uint32_t *ret, struct cairn_err *err)
{
	int rc = 0;
	*ret = sidecar_types_read(ctx, (uint32_t)dw_udata(formal, DW_AT_cairn_type, 0), &rc);
	return rc < 0 ? err_nomem(err, "types") : 0;
}

int reduced_at(struct reduced *r, struct cairn_vaddr pc, bool is_exact,
	       const struct cairn_scope **ret, struct cairn_err *err)
{
	struct site_env env = env_of(r);
	struct active_types types = {type_of, r->types};
	arena_fini(&r->arena);
	arena_init(&r->arena);
	return active_at(&r->active, &env, &types, &r->arena, pc, is_exact, ret, err);
}

int reduced_passed(struct reduced *r, struct cairn_vaddr callee, struct cairn_vaddr caller_pc,
		   const struct cairn_loc_step *asked, struct cairn_location *ret,
		   struct cairn_err *err)
{
	struct site_env env = env_of(r);
	return passed_between(&env, &r->active, callee, caller_pc, asked, &r->arena, ret, err);
}

/* ---- checking ---- */

enum {
	/* As deep as the writer goes. */
	DEPTH_MAX = 1026,
};

static int ignore_range(void *ctx, struct dw_range range)
{
	return 0;
}

static int ignore_location(void *ctx, const struct dw_loc_entry *e)
{
	return 0;
}

static int bad_die(const struct cairn_sidecar *p, const struct dw_die *die, const char *expected,
		   struct cairn_err *err)
{
	return err_set(err, -EBADMSG, "%s: " REDUCED_SECTION ": DIE 0x%llx: expected %s",
		       elf_path(p->elf), (unsigned long long)die->off, expected);
}

/* A reference that is there leads to a DIE of the right kind. */
static int check_ref(const struct cairn_sidecar *p, const struct dw_die *die, uint16_t at,
		     uint16_t tag, struct cairn_err *err)
{
	struct dw_value v;
	struct dw_die to;
	int rc = dw_attr(die, at, &v, err);
	if (rc <= 0)
		return rc;
	if (v.cls != DW_CLASS_REF || dw_die_near(die->unit, v.ref, &to, NULL) != 1 ||
	    (tag && to.tag != tag))
		return bad_die(p, die, "a reference to another", err);
	return 0;
}

static int check_formal(const struct cairn_sidecar *p, const struct dw_die *die,
			struct cairn_err *err)
{
	int rc = check_ref(p, die, DW_AT_abstract_origin, DW_TAG_formal_parameter, err);
	if (rc >= 0)
		rc = check_ref(p, die, DW_AT_type, 0, err);
	if (rc >= 0)
		rc = dw_locations(die, DW_AT_location, ignore_location, NULL, err);
	if (rc >= 0 && dw_udata(die, DW_AT_cairn_type, 0) >= p->types.n)
		return bad_die(p, die, "the number of a type", err);
	return rc;
}

static int check_die(const struct cairn_sidecar *p, const struct dw_die *die, struct cairn_err *err)
{
	struct dw_value v;
	int rc = dw_attr(die, DW_AT_name, &v, err);
	switch (die->tag) {
	case DW_TAG_formal_parameter:
		return rc < 0 ? rc : check_formal(p, die, err);
	case DW_TAG_call_site_parameter:
		return rc < 0 ? rc : check_ref(p, die, DW_AT_call_parameter, 0, err);
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
		break;
	default:
		return rc;
	}
	if (rc >= 0)
		rc = check_ref(p, die, DW_AT_abstract_origin, DW_TAG_subprogram, err);
	if (rc >= 0)
		rc = dw_ranges(die, ignore_range, NULL, err);
	return rc < 0 ? rc : dw_locations(die, DW_AT_frame_base, ignore_location, NULL, err);
}

static int check_unit(const struct cairn_sidecar *p, const struct dw_unit *unit,
		      struct cairn_err *err)
{
	struct dw_die path[DEPTH_MAX];
	unsigned int depth = 0;
	int rc = dw_unit_root(unit, &path[0], err);
	while (rc >= 0) {
		if (rc == 0) {
			if (!depth--)
				return 0;
			rc = depth ? dw_die_sibling(&path[depth], &path[depth], err) : 0;
			continue;
		}
		rc = check_die(p, &path[depth], err);
		if (rc >= 0 && !path[depth].has_children)
			rc = depth ? dw_die_sibling(&path[depth], &path[depth], err) : 0;
		else if (rc >= 0 && depth + 1 == DEPTH_MAX)
			rc = bad_die(p, &path[depth], "nothing inside", err);
		else if (rc >= 0) {
			rc = dw_die_child(&path[depth], &path[depth + 1], err);
			depth++;
		}
	}
	return rc;
}

int reduced_check(const struct cairn_sidecar *p, struct cairn_err *err)
{
	struct cairn_binary *bin;
	struct dwarf *dw = NULL;
	const struct elf_section *s;
	int rc = elf_section(p->elf, REDUCED_SECTION, &s, err);
	if (rc < 0 || !s || !s->data)
		return rc < 0 ? rc : 0;
	rc = binary_open_mem(s->data, s->size, elf_path(p->elf), &bin, err);
	if (rc < 0)
		return err_while(err, rc, "in section " REDUCED_SECTION);
	rc = dwarf_open(bin, 1, &dw, err);
	for (size_t i = 0; rc >= 0 && i < dwarf_n_units(dw); i++)
		rc = check_unit(p, dwarf_unit(dw, i), err);
	dwarf_close(dw);
	cairn_binary_close(bin);
	return rc < 0 ? err_while(err, rc, "in section " REDUCED_SECTION) : 0;
}
