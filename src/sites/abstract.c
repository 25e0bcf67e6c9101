/* SPDX-License-Identifier: BSD-2-Clause */
#include "sites/abstract.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "base/vec.h"
#include "dwarf/constants.h"

/* C allows 127 parameters and compilers more; a longer list is no program. */
enum { FORMALS_MAX = 1024 };

int abstract_die(const struct dwarf *dw, const struct dw_unit *unit, dw_off off, struct dw_die *ret,
		 struct cairn_err *err)
{
	for (int i = 0; i < DW_ORIGIN_MAX; i++, unit = ret->unit) {
		int rc = dw_die_near(unit, off, ret, err);
		if (rc <= 0)
			return rc ? rc : err_set(err, -EBADMSG, "an abstract origin (DIE 0x%" PRIx64 ") is no DIE", off);
		off = dw_ref(ret, DW_AT_abstract_origin);
		if (!off)
			return 1;
	}
	return err_set(err, -EBADMSG, "%s: .debug_info: DIE 0x%" PRIx64 ": its abstract origins form a circle",
		       cairn_binary_debug_path(dwarf_binary(dw)), off);
}

static int read_formals(const struct dw_die *function, struct arena *arena, struct formals *ret,
			struct cairn_err *err)
{
	VEC(dw_off) offs = {0};
	struct dw_die child;
	*ret = (struct formals){.function = function->off};
	int rc = dw_die_child(function, &child, err);
	for (; rc == 1 && offs.n < FORMALS_MAX; rc = dw_die_sibling(&child, &child, err)) {
		if (child.tag == DW_TAG_unspecified_parameters)
			ret->variadic = true;
		if (child.tag == DW_TAG_formal_parameter && !VEC_ADD(&offs, child.off)) {
			rc = err_nomem(err, "the parameters of a function");
			break;
		}
	}
	dw_off *die = rc < 0 ? NULL : arena_array(arena, offs.n, sizeof(*die));
	if (die && offs.n)
		memcpy(die, offs.p, offs.n * sizeof(*die));
	ret->die = die;
	ret->n = (uint32_t)offs.n;
	VEC_FREE(&offs);
	if (rc < 0)
		return rc;
	return die ? 0 : err_nomem(err, "the parameters of a function");
}

static int remember(struct abstracts *a, dw_off die, const struct abstract *abstract, struct cairn_err *err)
{
	return map_put(&a->by_die, die, (uintptr_t)abstract) < 0 ? err_nomem(err, "abstract instances") : 0;
}

int abstract_of(struct abstracts *a, const struct dwarf *dw, const struct dw_unit *unit, dw_off off,
		const struct abstract **ret, struct cairn_err *err)
{
	uint64_t known;
	struct dw_die die;
	if (map_get(&a->by_die, off, &known)) {
		*ret = (const struct abstract *)(uintptr_t)known;
		return 0;
	}
	int rc = abstract_die(dw, unit, off, &die, err);
	if (rc < 0)
		return rc;
	if (die.off != off && map_get(&a->by_die, die.off, &known)) {
		*ret = (const struct abstract *)(uintptr_t)known;
		return remember(a, off, *ret, err);
	}
	struct abstract *made = arena_alloc(a->arena, sizeof(*made));
	if (!made)
		return err_nomem(err, "abstract instances");
	made->die = die;
	made->line = dw_udata(&die, DW_AT_decl_line, 0);
	rc = read_formals(&die, a->arena, &made->formals, err);
	if (rc >= 0)
		rc = remember(a, die.off, made, err);
	*ret = made;
	return rc < 0 || die.off == off ? rc : remember(a, off, made, err);
}
