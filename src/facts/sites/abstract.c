/* SPDX-License-Identifier: BSD-2-Clause */
#include "sites/abstract.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "dwarf/constants.h"
#include "dwarf/params.h"

/* C allows 127 parameters and compilers more; a longer list is no program. */
enum { FORMALS_MAX = 1024 };

int abstract_die(const struct dwarf *dw, const struct dw_unit *unit, dw_off off, struct dw_die *ret,
		 struct cairn_err *err)
{
	for (int i = 0; i < DW_ORIGIN_MAX; i++, unit = ret->unit) {
		int rc = dw_die_near(unit, off, ret, err);
		if (rc <= 0)
			return rc ? rc
				  : err_set(err, -EBADMSG,
					    "an abstract origin (DIE 0x%" PRIx64 ") is no DIE",
					    off);
		off = dw_ref(ret, DW_AT_abstract_origin);
		if (!off)
			return 1;
	}
	return err_set(err, -EBADMSG,
		       "%s: .debug_info: DIE 0x%" PRIx64 ": its abstract origins form a circle",
		       cairn_binary_debug_path(dwarf_binary(dw)), off);
}

static int read_formals(struct abstracts *a, const struct dw_die *function, struct formals *ret,
			struct cairn_err *err)
{
	struct dw_die child;
	bool is_go = dw_unit_go(function->unit);
	*ret = (struct formals){.function = function->off};
	a->offs.n = 0;
	int rc = dw_param_child(function, &child, err);
	for (; rc == 1 && a->offs.n < FORMALS_MAX; rc = dw_param_next(&child, &child, err)) {
		if (is_go && dw_flag(&child, DW_AT_variable_parameter))
			ret->result = ret->n_results++ ? 0 : child.off;
		else if (child.tag == DW_TAG_unspecified_parameters)
			ret->variadic = true;
		else if (!VEC_ADD(&a->offs, child.off))
			return err_nomem(err, "the parameters of a function");
	}
	if (rc < 0)
		return rc;
	dw_off *die = arena_array(a->arena, a->offs.n, sizeof(*die));
	if (!die)
		return err_nomem(err, "the parameters of a function");
	if (a->offs.n)
		memcpy(die, a->offs.p, a->offs.n * sizeof(*die));
	ret->die = die;
	ret->n = (uint32_t)a->offs.n;
	return 0;
}

int abstract_of(struct abstracts *a, const struct dwarf *dw, const struct dw_unit *unit, dw_off off,
		const struct abstract **ret, struct cairn_err *err)
{
	struct known_abstract *known =
		&a->known[(off ^ off >> 8) % (sizeof(a->known) / sizeof(a->known[0]))];
	*ret = known->is;
	if (known->die == off)
		return 0;
	struct abstract *made = arena_alloc(a->arena, sizeof(*made));
	if (!made)
		return err_nomem(err, "abstract instances");
	int rc = abstract_die(dw, unit, off, &made->die, err);
	if (rc < 0)
		return rc;
	made->line = dw_udata_at(&made->die, DW_SLOT_DECL_LINE, DW_AT_decl_line, 0);
	rc = read_formals(a, &made->die, &made->formals, err);
	if (rc < 0)
		return rc;
	*known = (struct known_abstract){.die = off, .is = made};
	*ret = made;
	return 0;
}
