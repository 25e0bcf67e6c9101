/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading types
 *
 * A DIE becomes a node in two steps, because types refer to each other in circles. dw_types_id()
 * reserves the id and puts the DIE on a work list. drain() reads the list, which adds to it. So
 *
 *	struct list { struct list *next; };
 *
 *	dwarf_type(list)          reserve 1, list: {list}
 *	drain: struct list        node 1 = struct list, unread: nothing is added
 *	dwarf_type_complete(1)    member next: reserve 2, list: {pointer}
 *	drain: pointer            node 2 = pointer to 1, which is known
 *
 * and no depth of the input becomes a depth of the stack. A DIE that cannot be read leaves a node
 * that says so: ids that were handed out stay meaningful whatever happens.
 */
#include "base/err.h"
#include "dwarf/scopes.h"
#include "dwarf/type_names.h"
#include "dwarf/types_array.h"
#include "dwarf/types_inside.h"
#include "dwarf/types_read.h"
#include "dwarf/types_variants.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* ---- names ---- */

/* Sets t->name, qualified where the language has scopes. */
static int set_name(struct dw_types *r, const struct dw_die *die, struct cairn_type *t,
		    struct cairn_err *err)
{
	char buf[DW_TYPE_NAME_MAX];
	dw_off declared_at = dw_ref(die, DW_AT_specification);
	dw_off at = declared_at ? declared_at : die->off;
	t->name = dw_str_deep(die, DW_AT_name);
	t->bare_name = dw_has_scopes(die->unit);
	if (!t->name)
		return 0;
	int64_t n = dw_type_name(r->dw, at, t->name, buf, sizeof(buf), NULL, err);
	if (n < 0)
		return (int)n;
	if ((size_t)n == strlen(t->name))
		return 0;
	struct arena *arena = types_arena(r->graph);
	t->name =
		n ? arena_strndup(arena, buf, (size_t)n) : arena_printf(arena, "...::%s", t->name);
	return t->name ? 0 : err_nomem(err, "names of types");
}

/* ---- one kind after the other ---- */

static uint64_t byte_size(const struct dw_die *die)
{
	return dw_udata(die, DW_AT_byte_size, 0);
}

static int read_base(struct dw_types *r, const struct dw_die *die, struct cairn_type *t,
		     struct cairn_err *err)
{
	enum { DW_END_big = 1 };
	t->kind = CAIRN_T_INT;
	t->name = dw_str(die, DW_AT_name);
	t->size = byte_size(die);
	t->encoding = CAIRN_ENC_OPAQUE;
	t->byte_swapped = dw_udata(die, DW_AT_endianity, 0) == DW_END_big;
	switch (dw_udata(die, DW_AT_encoding, 0)) {
	case DW_ATE_void:
		t->kind = CAIRN_T_VOID;
		break;
	case DW_ATE_boolean:
		t->encoding = CAIRN_ENC_BOOL;
		break;
	case DW_ATE_signed:
		t->encoding = CAIRN_ENC_SIGNED;
		break;
	case DW_ATE_address:
	case DW_ATE_unsigned:
		t->encoding = CAIRN_ENC_UNSIGNED;
		break;
	case DW_ATE_signed_char:
		t->encoding = CAIRN_ENC_SIGNED_CHAR;
		break;
	case DW_ATE_unsigned_char:
		t->encoding = CAIRN_ENC_UNSIGNED_CHAR;
		break;
	case DW_ATE_UTF:
	case DW_ATE_UCS:
	case DW_ATE_ASCII:
		t->encoding = CAIRN_ENC_UTF;
		break;
	case DW_ATE_complex_float:
		t->kind = CAIRN_T_FLOAT;
		t->encoding = CAIRN_ENC_COMPLEX;
		break;
	case DW_ATE_float:
	case DW_ATE_imaginary_float:
		t->kind = CAIRN_T_FLOAT;
		t->encoding = CAIRN_ENC_UNSIGNED;
		break;
	}
	/*
	 * How many of its bits are the value Clang does not say, and it leaves the others as they
	 * were.
	 */
	if (t->kind == CAIRN_T_INT && t->name && strstr(t->name, "_BitInt"))
		t->encoding = CAIRN_ENC_OPAQUE;
	return 0;
}

static enum cairn_type_kind derived_kind(uint16_t tag)
{
	switch (tag) {
	case DW_TAG_pointer_type:
		return CAIRN_T_PTR;
	case DW_TAG_reference_type:
		return CAIRN_T_REF;
	case DW_TAG_rvalue_reference_type:
		return CAIRN_T_RREF;
	case DW_TAG_ptr_to_member_type:
		return CAIRN_T_MEMBER_PTR;
	case DW_TAG_const_type:
	case DW_TAG_immutable_type:
		return CAIRN_T_CONST;
	case DW_TAG_volatile_type:
		return CAIRN_T_VOLATILE;
	case DW_TAG_restrict_type:
		return CAIRN_T_RESTRICT;
	case DW_TAG_atomic_type:
		return CAIRN_T_ATOMIC;
	}
	/* Without a name: it stands for the type that it refers to. */
	return CAIRN_T_TYPEDEF;
}

static uint64_t pointer_size(const struct dw_types *r, const struct dw_die *die)
{
	return r->pointer_size ? r->pointer_size : dw_unit_addr_size(die->unit);
}

/* A pointer to a member function is two words in the Itanium ABI: function, adjustment of this. */
static int read_member_pointer(struct dw_types *r, const struct dw_die *die, struct cairn_type *t,
			       struct cairn_err *err)
{
	struct dw_die to;
	uint64_t word = pointer_size(r, die);
	dw_off class_off = dw_ref(die, DW_AT_containing_type);
	dw_off off = dw_ref(die, DW_AT_type);
	bool function =
		off && dw_die_at(r->dw, off, &to, NULL) > 0 && to.tag == DW_TAG_subroutine_type;
	t->size = dw_udata(die, DW_AT_byte_size, function ? 2 * word : word);
	if (!class_off)
		return 0;
	t->container = dw_types_id(r, class_off);
	return t->container ? 0 : err_nomem(err, "types");
}

static int read_derived(struct dw_types *r, const struct dw_die *die, struct cairn_type *t,
			struct cairn_err *err)
{
	t->kind = derived_kind(die->tag);
	int rc = dw_types_ref(r, die, &t->ref, err);
	if (rc < 0)
		return rc;
	if (t->kind == CAIRN_T_MEMBER_PTR)
		return read_member_pointer(r, die, t, err);
	if (t->kind == CAIRN_T_PTR || t->kind == CAIRN_T_REF || t->kind == CAIRN_T_RREF)
		t->size = dw_udata(die, DW_AT_byte_size, pointer_size(r, die));
	return 0;
}

static int read_typedef(struct dw_types *r, const struct dw_die *die, struct cairn_type *t,
			struct cairn_err *err)
{
	t->kind = CAIRN_T_TYPEDEF;
	int rc = set_name(r, die, t, err);
	return rc < 0 ? rc : dw_types_ref(r, die, &t->ref, err);
}

static int read_function(struct dw_types *r, const struct dw_die *die, struct cairn_type *t,
			 struct cairn_err *err)
{
	t->kind = CAIRN_T_FUNC;
	t->prototyped = dw_flag(die, DW_AT_prototyped);
	int rc = dw_types_ref(r, die, &t->ref, err);
	return rc < 0 ? rc : dw_types_parameters(r, die, t, err);
}

static int read_unspecified(struct dw_types *r, const struct dw_die *die, struct cairn_type *t,
			    struct cairn_err *err)
{
	t->kind = CAIRN_T_UNSPECIFIED;
	t->name = dw_str(die, DW_AT_name);
	return 0;
}

/* Fortran's character(n), which is an array of bytes. */
static int read_string(struct dw_types *r, const struct dw_die *die, struct cairn_type *t,
		       struct cairn_err *err)
{
	uint32_t byte = types_reserve(r->graph);
	if (!byte)
		return err_nomem(err, "types");
	types_set(r->graph, byte,
		  &(struct cairn_type){.kind = CAIRN_T_INT,
				       .encoding = CAIRN_ENC_UNSIGNED_CHAR,
				       .name = "char",
				       .size = 1});
	t->kind = CAIRN_T_ARRAY;
	t->ref = byte;
	t->size = t->count = byte_size(die);
	t->has_count = t->count != 0;
	return 0;
}

/* ---- structs and enums, from the outside ---- */

static enum cairn_type_kind named_kind(uint16_t tag)
{
	switch (tag) {
	case DW_TAG_class_type:
	case DW_TAG_interface_type:
		return CAIRN_T_CLASS;
	case DW_TAG_union_type:
		return CAIRN_T_UNION;
	case DW_TAG_enumeration_type:
		return CAIRN_T_ENUM;
	}
	return CAIRN_T_STRUCT;
}

int dw_types_read_named(struct dw_types *r, const struct dw_die *die, struct cairn_type *t,
			struct cairn_err *err)
{
	t->kind = named_kind(die->tag);
	t->size = byte_size(die);
	t->align = (uint32_t)dw_udata(die, DW_AT_alignment, 0);
	t->declaration = dw_flag(die, DW_AT_declaration);
	t->unread = true;
	/* Its sign is known with its enumerators. */
	t->encoding = t->kind == CAIRN_T_ENUM ? CAIRN_ENC_OPAQUE : CAIRN_ENC_UNSIGNED;
	int rc = set_name(r, die, t, err);
	if (rc >= 0 && t->kind == CAIRN_T_ENUM)
		rc = dw_types_ref(r, die, &t->ref, err);
	return rc;
}

/* ---- the work list ---- */

static int read_by_tag(struct dw_types *r, const struct dw_die *die, uint32_t id,
		       struct cairn_type *t, struct cairn_err *err)
{
	switch (die->tag) {
	case DW_TAG_base_type:
		return read_base(r, die, t, err);
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
	case DW_TAG_ptr_to_member_type:
	case DW_TAG_const_type:
	case DW_TAG_volatile_type:
	case DW_TAG_restrict_type:
	case DW_TAG_atomic_type:
	case DW_TAG_immutable_type:
	case DW_TAG_packed_type:
	case DW_TAG_shared_type:
		return read_derived(r, die, t, err);
	case DW_TAG_typedef:
	case DW_TAG_template_alias:
	case DW_TAG_subrange_type:
		return read_typedef(r, die, t, err);
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_interface_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
		return dw_types_read_named(r, die, t, err);
	case DW_TAG_variant_part:
	case DW_TAG_variant:
		return dw_types_read_part(r, die, id, t, err);
	case DW_TAG_array_type:
		return dw_types_read_array(r, die, id, t, err);
	case DW_TAG_subroutine_type:
		return read_function(r, die, t, err);
	case DW_TAG_unspecified_type:
		return read_unspecified(r, die, t, err);
	case DW_TAG_string_type:
		return read_string(r, die, t, err);
	}
	return dw_types_read_opaque(r, die, t, err);
}

/* The DIE itself, or the one that its signature stands for: that of a type unit. */
static int open_die(const struct dw_types *r, dw_off off, struct dw_die *ret, struct cairn_err *err)
{
	int rc = dw_die_at(r->dw, off, ret, err);
	if (rc <= 0)
		return rc < 0 ? rc
			      : err_set(err, -EBADMSG,
					"%s: 0x%" PRIx64
					": a type is referred to where there is no DIE",
					cairn_binary_path(dwarf_binary(r->dw)), off);
	dw_off unit_off = dw_ref(ret, DW_AT_signature);
	return unit_off ? dw_die_at(r->dw, unit_off, ret, err) : rc;
}

/*
 * Ada: an expression computes the size from the discriminant. The largest variant takes the full
 * size.
 */
static bool is_sized_by_members(const struct dw_die *die, const struct cairn_type *t)
{
	struct dw_value v;
	return die->tag == DW_TAG_structure_type && !t->size && !t->declaration &&
	       dw_attr(die, DW_AT_byte_size, &v, NULL) > 0 &&
	       (v.cls == DW_CLASS_EXPRLOC || v.cls == DW_CLASS_BLOCK);
}

static int read_one(struct dw_types *r, dw_off off, uint32_t id, struct cairn_err *err)
{
	struct dw_die die;
	struct cairn_type t = {0};
	int rc = open_die(r, off, &die, err);
	if (rc > 0)
		rc = read_by_tag(r, &die, id, &t, err);
	if (rc >= 0 && t.unread && t.kind != CAIRN_T_ARRAY && map_put(&r->unread, id, die.off) < 0)
		rc = err_nomem(err, "types");
	if (rc < 0)
		t = (struct cairn_type){.kind = CAIRN_T_UNSPECIFIED, .name = "<damaged>"};
	types_set(r->graph, id, &t);
	if (rc >= 0 && t.unread && is_sized_by_members(&die, &t))
		rc = dw_types_want_extent(r, &die, id, err);
	return rc < 0 ? err_while(err, rc, "reading the type at .debug_info+0x%" PRIx64,
				  dw_off_in_section(off))
		      : 0;
}

/* Read everything on the list, also after a failure; the first failure is reported. */
int dw_types_drain(struct dw_types *r, struct cairn_err *err)
{
	int first = 0;
	while (r->todo.n) {
		__typeof__(*r->todo.p) item = r->todo.p[--r->todo.n];
		int rc = read_one(r, item.off, item.id, first ? NULL : err);
		first = first ? first : rc;
	}
	int rc = dw_types_size_arrays(r, first ? NULL : err);
	dw_types_size_extents(r);
	return first ? first : rc;
}

int dwarf_type(struct dw_types *r, dw_off off, uint32_t *ret, struct cairn_err *err)
{
	uint32_t id = dw_types_id(r, off);
	if (!id)
		return err_nomem(err, "types");
	*ret = id;
	return dw_types_drain(r, err);
}

int dwarf_type_of(struct dw_types *r, const struct dw_die *die, uint32_t *ret,
		  struct cairn_err *err)
{
	struct dw_value v;
	int rc = dw_attr_deep(die, DW_AT_type, &v, NULL, err);
	*ret = 0;
	if (rc > 0)
		rc = dw_types_id_of(r, die, &v, ret, err);
	return rc < 0 ? rc : dw_types_drain(r, err);
}
