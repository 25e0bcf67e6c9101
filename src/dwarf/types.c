/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading types
 *
 * A DIE becomes a node in two steps, because types refer to each other in circles: dw_types_id() reserves
 * the id and puts the DIE on a work list, and drain() reads what is on the list, which adds to it. So
 *
 *	struct list { struct list *next; };
 *
 *	dwarf_type(list)          reserve 1, list: {list}
 *	drain: struct list        node 1 = struct list, unread: nothing is added
 *	dwarf_type_complete(1)    member next: reserve 2, list: {pointer}
 *	drain: pointer            node 2 = pointer to 1, which is known
 *
 * and no depth of the input becomes a depth of the stack. A DIE that cannot be read leaves a node that says
 * so: ids that were handed out stay meaningful whatever happens.
 *
 * The size of an array depends on its elements, which may be read later; arrays are gathered and sized when
 * the list is empty, elements first.
 */
#include "base/err.h"
#include "dwarf/types_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* Dimensions of one array DIE. Fortran allows 15. */
enum { DIMS_MAX = 64 };
/* Typedefs, qualifiers and arrays around what a value consists of. Real ones have less than ten. */
enum { AROUND_MAX = 256 };

int dw_types_new(const struct dwarf *dw, struct cairn_types *graph, struct dw_types **ret,
		 struct cairn_err *err)
{
	struct dw_types *r = calloc(1, sizeof(*r));
	if (!r)
		return err_nomem(err, "the reader of types");
	r->dw = dw;
	r->graph = graph;
	*ret = r;
	return 0;
}

void dw_types_free(struct dw_types *r)
{
	if (!r)
		return;
	map_fini(&r->ids);
	map_fini(&r->unread);
	map_fini(&r->scopes);
	for (size_t i = 0; i < r->all_scopes.n; i++)
		dw_scopes_free(r->all_scopes.p[i]);
	VEC_FREE(&r->all_scopes);
	dw_type_index_free(r->index);
	VEC_FREE(&r->todo);
	VEC_FREE(&r->arrays);
	free(r);
}

struct cairn_types *dw_types_graph(const struct dw_types *r)
{
	return r->graph;
}

uint32_t dw_types_id(struct dw_types *r, dw_off off)
{
	uint64_t known;
	if (map_get(&r->ids, off, &known))
		return (uint32_t)known;
	__typeof__(r->todo.p) item = VEC_PUSH(&r->todo);
	if (!item)
		return 0;
	item->off = off;
	item->id = types_reserve(r->graph);
	if (item->id && map_put(&r->ids, off, item->id) == 0)
		return item->id;
	r->todo.n--;
	return 0;
}

/*
 * The id that a reference stands for. Not dw_ref(), for which damage is absence: absence is void here, and a
 * pointer to what could not be read is not a void pointer.
 */
static int id_of_value(struct dw_types *r, const struct dw_die *die, const struct dw_value *v,
		       uint32_t *ret, struct cairn_err *err)
{
	dw_off off = v->ref;
	if (v->cls == DW_CLASS_SIGNATURE)
		off = dwarf_type_of_signature(r->dw, v->u);
	else if (v->cls != DW_CLASS_REF)
		return err_set(err, -EBADMSG,
			       "%s: the type of the DIE at 0x%" PRIx64 " is no reference (form 0x%x)",
			       cairn_binary_path(dwarf_binary(r->dw)), die->off, v->form);
	*ret = off ? dw_types_id(r, off) : types_reserve(r->graph);
	if (!*ret)
		return err_nomem(err, "types");
	if (!off)
		types_set(r->graph, *ret, &(struct cairn_type){.kind = CAIRN_T_UNSPECIFIED,
							       .name = "<missing type unit>"});
	return 0;
}

int dw_types_ref(struct dw_types *r, const struct dw_die *die, uint32_t *ret, struct cairn_err *err)
{
	struct dw_value v;
	int rc = dw_attr(die, DW_AT_type, &v, err);
	*ret = 0;
	return rc > 0 ? id_of_value(r, die, &v, ret, err) : rc;
}

uint32_t dw_types_opaque(struct dw_types *r, const char *name, uint64_t size)
{
	uint32_t id = types_reserve(r->graph);
	types_set(r->graph, id, &(struct cairn_type){.kind = CAIRN_T_INT,
						     .encoding = CAIRN_ENC_OPAQUE,
						     .name = name,
						     .size = size});
	return id;
}

/* ---- names ---- */

static int scopes_of(struct dw_types *r, const struct dw_unit *u, const struct dw_scopes **ret,
		     struct cairn_err *err)
{
	uint64_t at;
	if (map_get(&r->scopes, dw_unit_index(u), &at)) {
		*ret = r->all_scopes.p[at];
		return 0;
	}
	struct dw_scopes *s;
	int rc = dw_scopes_new(u, &s, err);
	if (rc < 0)
		return rc;
	if (!VEC_ADD(&r->all_scopes, s)) {
		dw_scopes_free(s);
		return err_nomem(err, "scopes of types");
	}
	if (map_put(&r->scopes, dw_unit_index(u), r->all_scopes.n - 1) < 0)
		return err_nomem(err, "scopes of types");
	*ret = s;
	return 0;
}

/* Sets t->name, qualified where the language has scopes. */
static int set_name(struct dw_types *r, const struct dw_die *die, struct cairn_type *t,
		    struct cairn_err *err)
{
	const struct dw_scopes *s = NULL;
	char buf[DW_TYPE_NAME_MAX];
	dw_off declared_at = dw_ref(die, DW_AT_specification);
	dw_off at = declared_at ? declared_at : die->off;
	const struct dw_unit *u = dwarf_unit_of(r->dw, at);
	t->name = dw_str_deep(die, DW_AT_name);
	t->bare_name = dw_has_scopes(die->unit);
	if (!t->name || !u || !dw_has_scopes(u))
		return 0;
	int rc = scopes_of(r, u, &s, err);
	if (rc < 0)
		return rc;
	size_t n = dw_scopes_name(s, at, t->name, buf, sizeof(buf), NULL);
	if (n == strlen(t->name))
		return 0;
	struct arena *arena = types_arena(r->graph);
	t->name = n ? arena_strndup(arena, buf, n) : arena_printf(arena, "...::%s", t->name);
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
	if (dw_udata(die, DW_AT_endianity, 0) == DW_END_big)
		return 0;
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
	/* Without a name: stands for what it refers to. */
	return CAIRN_T_TYPEDEF;
}

/* A pointer to a member function is two words in the Itanium ABI: function, adjustment of this. */
static int read_member_pointer(struct dw_types *r, const struct dw_die *die, struct cairn_type *t,
			       struct cairn_err *err)
{
	struct dw_die to;
	uint64_t word = dw_unit_addr_size(die->unit);
	dw_off class_off = dw_ref(die, DW_AT_containing_type);
	dw_off off = dw_ref(die, DW_AT_type);
	bool function = off && dw_die_at(r->dw, off, &to, NULL) > 0 &&
			to.tag == DW_TAG_subroutine_type;
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
		t->size = dw_udata(die, DW_AT_byte_size, dw_unit_addr_size(die->unit));
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
	types_set(r->graph, byte, &(struct cairn_type){.kind = CAIRN_T_INT,
						       .encoding = CAIRN_ENC_UNSIGNED_CHAR,
						       .name = "char",
						       .size = 1});
	t->kind = CAIRN_T_ARRAY;
	t->ref = byte;
	t->size = t->count = byte_size(die);
	t->has_count = t->count != 0;
	return 0;
}

static int read_opaque(struct dw_types *r, const struct dw_die *die, struct cairn_type *t,
		       struct cairn_err *err)
{
	t->kind = CAIRN_T_INT;
	t->encoding = CAIRN_ENC_OPAQUE;
	t->name = dw_str(die, DW_AT_name);
	t->size = byte_size(die);
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

static int read_named(struct dw_types *r, const struct dw_die *die, struct cairn_type *t,
		      struct cairn_err *err)
{
	t->kind = named_kind(die->tag);
	t->size = byte_size(die);
	t->declaration = dw_flag(die, DW_AT_declaration);
	t->unread = true;
	/* Its sign is known with its enumerators. */
	t->encoding = t->kind == CAIRN_T_ENUM ? CAIRN_ENC_OPAQUE : CAIRN_ENC_UNSIGNED;
	int rc = set_name(r, die, t, err);
	if (rc >= 0 && t->kind == CAIRN_T_ENUM)
		rc = dw_types_ref(r, die, &t->ref, err);
	return rc;
}

/* ---- arrays ---- */

struct dim {
	bool has_count;
	uint64_t count;
};

/* Languages whose first element is number 1 when nothing is said (DWARF 5, table 7.17). */
static int64_t lowest_index(const struct dw_unit *u)
{
	switch (dw_unit_language(u)) {
	case DW_LANG_Ada83:
	case DW_LANG_Ada95:
	case DW_LANG_Cobol74:
	case DW_LANG_Cobol85:
	case DW_LANG_Fortran77:
	case DW_LANG_Fortran90:
	case DW_LANG_Fortran95:
	case DW_LANG_Fortran03:
	case DW_LANG_Fortran08:
	case DW_LANG_Pascal83:
	case DW_LANG_Modula2:
	case DW_LANG_Modula3:
	case DW_LANG_Julia:
		return 1;
	}
	return 0;
}

/* A constant attribute as a signed number; false when it is absent or computed at run time. */
static bool bound(const struct dw_die *die, uint16_t at, int64_t *ret)
{
	struct dw_value v;
	if (dw_attr(die, at, &v, NULL) <= 0)
		return false;
	if (v.cls != DW_CLASS_UDATA && v.cls != DW_CLASS_SDATA)
		return false;
	*ret = v.s;
	/* GCC before 11 writes the -1 of "int a[0]" in the width of an unsigned long or int. */
	if (v.form == DW_FORM_data4 && v.u == UINT32_MAX)
		*ret = -1;
	return true;
}

static struct dim dim_of(const struct dw_die *die)
{
	int64_t count, low, high;
	if (bound(die, DW_AT_count, &count))
		return (struct dim){count >= 0, (uint64_t)count};
	if (!bound(die, DW_AT_upper_bound, &high))
		return (struct dim){0};
	if (!bound(die, DW_AT_lower_bound, &low)) {
		struct dw_value v;
		if (dw_attr(die, DW_AT_lower_bound, &v, NULL) > 0)
			return (struct dim){0};
		low = lowest_index(die->unit);
	}
	return (struct dim){true, high < low ? 0 : (uint64_t)high - (uint64_t)low + 1};
}

/* Number of dimensions, or negative. */
static int read_dims(const struct dw_die *array, struct dim *dims, struct cairn_err *err)
{
	struct dw_die die;
	int n = 0;
	int rc = dw_die_child(array, &die, err);
	for (; rc > 0; rc = dw_die_sibling(&die, &die, err)) {
		bool is_dim = die.tag == DW_TAG_subrange_type || die.tag == DW_TAG_enumeration_type;
		if (die.tag == DW_TAG_generic_subrange)
			return DIMS_MAX + 1;
		if (is_dim && n < DIMS_MAX)
			dims[n] = dim_of(&die);
		n += is_dim;
		if (n > DIMS_MAX)
			return n;
	}
	return rc < 0 ? rc : n;
}

/* Its bytes are a descriptor, or not laid out one element after the other. */
static bool is_described(const struct dw_die *die)
{
	static const uint16_t attrs[] = {DW_AT_bit_stride, DW_AT_data_location, DW_AT_allocated,
					 DW_AT_associated, DW_AT_rank};
	struct dw_value v;
	for (size_t i = 0; i < sizeof(attrs) / sizeof(attrs[0]); i++)
		if (dw_attr(die, attrs[i], &v, NULL) > 0)
			return true;
	return false;
}

/* Inner dimensions are arrays of their own: "int m[2][3]" is 2 times "int [3]". */
static int read_array(struct dw_types *r, const struct dw_die *die, uint32_t id, struct cairn_type *t,
		      struct cairn_err *err)
{
	struct dim dims[DIMS_MAX] = {{0}};
	int n = read_dims(die, dims, err);
	if (n < 0)
		return n;
	if (n > DIMS_MAX || is_described(die))
		return read_opaque(r, die, t, err);
	uint32_t inner;
	int rc = dw_types_ref(r, die, &inner, err);
	for (int i = n ? n - 1 : 0; rc >= 0 && i >= 0; i--) {
		struct cairn_type dim = {.kind = CAIRN_T_ARRAY,
					 .ref = inner,
					 .has_count = dims[i].has_count,
					 .count = dims[i].count,
					 .unread = true};
		inner = i ? types_reserve(r->graph) : id;
		if (!inner || !VEC_ADD(&r->arrays, inner))
			return err_nomem(err, "types");
		if (i) {
			types_set(r->graph, inner, &dim);
			continue;
		}
		uint64_t stride = dw_udata(die, DW_AT_byte_stride, 0);
		dim.vector = dw_flag(die, DW_AT_GNU_vector);
		dim.size = byte_size(die);
		if (!dim.size && stride && dim.has_count)
			dim.size = stride * dim.count;
		*t = dim;
	}
	return rc;
}

static void set_array_size(struct dw_types *r, uint32_t id)
{
	struct cairn_type t = *cairn_types_get(r->graph, id);
	uint64_t elem = cairn_types_size(r->graph, t.ref);
	if (t.size || !t.has_count)
		return;
	if (__builtin_mul_overflow(elem, t.count, &t.size))
		t.size = 0;
	types_set(r->graph, id, &t);
}

/* True and the element's id when it is an array that has no size yet. */
static bool waits_for(const struct dw_types *r, uint32_t id, uint32_t *ret)
{
	*ret = cairn_types_resolve(r->graph, cairn_types_get(r->graph, id)->ref);
	const struct cairn_type *elem = cairn_types_get(r->graph, *ret);
	return elem->kind == CAIRN_T_ARRAY && elem->unread;
}

static void start_array(struct dw_types *r, uint32_t id)
{
	struct cairn_type t = *cairn_types_get(r->graph, id);
	t.unread = false;
	types_set(r->graph, id, &t);
}

/*
 * Elements first, with a stack of our own. An array is marked as it goes on the stack, so that a ring of
 * arrays meets itself and ends.
 */
static int size_arrays(struct dw_types *r, struct cairn_err *err)
{
	VEC(uint32_t) stack = {0};
	int rc = 0;
	for (size_t i = 0; i < r->arrays.n && !rc; i++) {
		uint32_t id = r->arrays.p[i];
		if (!cairn_types_get(r->graph, id)->unread)
			continue;
		for (;;) {
			start_array(r, id);
			if (!VEC_ADD(&stack, id)) {
				rc = err_nomem(err, "sizes of arrays");
				break;
			}
			while (stack.n && !waits_for(r, stack.p[stack.n - 1], &id))
				set_array_size(r, stack.p[--stack.n]);
			if (!stack.n)
				break;
		}
	}
	VEC_FREE(&stack);
	r->arrays.n = 0;
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
		return read_named(r, die, t, err);
	case DW_TAG_array_type:
		return read_array(r, die, id, t, err);
	case DW_TAG_subroutine_type:
		return read_function(r, die, t, err);
	case DW_TAG_unspecified_type:
		return read_unspecified(r, die, t, err);
	case DW_TAG_string_type:
		return read_string(r, die, t, err);
	}
	return read_opaque(r, die, t, err);
}

/* The DIE itself, or what its signature stands for: the one of a type unit. */
static int open_die(const struct dw_types *r, dw_off off, struct dw_die *ret, struct cairn_err *err)
{
	int rc = dw_die_at(r->dw, off, ret, err);
	if (rc <= 0)
		return rc < 0 ? rc
			      : err_set(err, -EBADMSG,
					"%s: 0x%" PRIx64 ": a type is referred to where there is no DIE",
					cairn_binary_path(dwarf_binary(r->dw)), off);
	dw_off unit_off = dw_ref(ret, DW_AT_signature);
	return unit_off ? dw_die_at(r->dw, unit_off, ret, err) : rc;
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
	return rc < 0 ? err_while(err, rc, "reading the type at .debug_info+0x%" PRIx64,
				  off & ~(DW_OFF_ALT | DW_OFF_TYPES))
		      : 0;
}

/* Read everything on the list, also behind a failure; the first failure is told. */
static int drain(struct dw_types *r, struct cairn_err *err)
{
	int first = 0;
	while (r->todo.n) {
		__typeof__(*r->todo.p) item = r->todo.p[--r->todo.n];
		int rc = read_one(r, item.off, item.id, first ? NULL : err);
		first = first ? first : rc;
	}
	int rc = size_arrays(r, first ? NULL : err);
	return first ? first : rc;
}

int dwarf_type(struct dw_types *r, dw_off off, uint32_t *ret, struct cairn_err *err)
{
	uint32_t id = dw_types_id(r, off);
	if (!id)
		return err_nomem(err, "types");
	*ret = id;
	return drain(r, err);
}

int dwarf_type_of(struct dw_types *r, const struct dw_die *die, uint32_t *ret, struct cairn_err *err)
{
	struct dw_value v;
	int rc = dw_attr_deep(die, DW_AT_type, &v, NULL, err);
	*ret = 0;
	if (rc > 0)
		rc = id_of_value(r, die, &v, ret, err);
	return rc < 0 ? rc : drain(r, err);
}

/* ---- definitions ---- */

static int make_index(struct dw_types *r, struct cairn_err *err)
{
	return r->index ? 0 : dw_type_index_new(r->dw, 0, &r->index, err);
}

static uint16_t tag_of(enum cairn_type_kind kind)
{
	switch (kind) {
	case CAIRN_T_STRUCT:
	case CAIRN_T_CLASS:
		return DW_TAG_structure_type;
	case CAIRN_T_UNION:
		return DW_TAG_union_type;
	case CAIRN_T_ENUM:
		return DW_TAG_enumeration_type;
	default:
		return 0;
	}
}

/* In its own unit first, where the name can mean one thing only. 1 and *@ret; 0 none; negative. */
static int find_definition(struct dw_types *r, const struct cairn_type *t, const struct dw_unit *u,
			   struct dw_die *ret, struct cairn_err *err)
{
	dw_off off;
	if (!t->name || !tag_of(t->kind))
		return 0;
	int rc = dw_type_index_in_unit(u, tag_of(t->kind), t->name, &off, err);
	if (!rc)
		rc = make_index(r, err);
	else if (rc > 0)
		return dw_die_at(r->dw, off, ret, err);
	if (rc >= 0)
		rc = dw_type_index_find(r->index, tag_of(t->kind), t->name, &off, err);
	return rc > 0 ? dw_die_at(r->dw, off, ret, err) : rc;
}

/* ---- completing ---- */

static int read_inside(struct dw_types *r, const struct dw_die *die, struct cairn_type *t,
		       struct cairn_err *err)
{
	return t->kind == CAIRN_T_ENUM ? dw_types_enumerators(r, die, t, err)
				       : dw_types_members(r, die, t, err);
}

/*
 * Put the definition, when there is one, in the place of a declaration; the name stays, which a user has
 * seen. 1 and *@die is the definition; 0 and nothing has changed; negative.
 */
static int adopt_definition(struct dw_types *r, struct dw_die *die, struct cairn_type *t,
			    struct cairn_err *err)
{
	struct cairn_type def = {0};
	struct dw_die found;
	int rc = find_definition(r, t, die->unit, &found, err);
	if (rc > 0)
		rc = read_named(r, &found, &def, err);
	/* The names differ: two with one hash. */
	if (rc < 0 || !def.name || strcmp(def.name, t->name) != 0)
		return rc < 0 ? rc : 0;
	def.name = t->name;
	def.bare_name = t->bare_name;
	*t = def;
	*die = found;
	return 1;
}

static int load(struct dw_types *r, uint32_t id, struct cairn_err *err)
{
	struct cairn_type t = *cairn_types_get(r->graph, id);
	struct dw_die die;
	uint64_t off;
	if (!map_get(&r->unread, id, &off))
		return 0;
	int rc = dw_die_at(r->dw, off, &die, err);
	if (rc > 0 && t.declaration)
		rc = adopt_definition(r, &die, &t, err);
	/* It stays unread, so that the next one who asks is told, too. */
	if (rc == -ENOTUNIQ)
		return rc;
	/* The sign of an enum that is only declared may be told. */
	if (rc > 0 || (!rc && t.kind == CAIRN_T_ENUM))
		rc = read_inside(r, &die, &t, err);
	t.unread = false;
	if (rc < 0) {
		/* Half of the members would look like all of them. */
		t.declaration = true;
		t.n_members = t.n_enumerators = 0;
	}
	types_set(r->graph, id, &t);
	int drained = drain(r, rc < 0 ? NULL : err);
	return rc < 0 ? rc : drained;
}

/* What a value of this type consists of: behind typedefs, qualifiers and arrays. */
static uint32_t substance(const struct dw_types *r, uint32_t id)
{
	for (int around = 0; around < AROUND_MAX; around++) {
		id = cairn_types_resolve(r->graph, id);
		const struct cairn_type *t = cairn_types_get(r->graph, id);
		if (t->kind != CAIRN_T_ARRAY)
			return id;
		id = t->ref;
	}
	return 0;
}

int dwarf_type_complete(struct dw_types *r, uint32_t id, struct cairn_err *err)
{
	VEC(uint32_t) stack = {0};
	int first = VEC_ADD(&stack, id) ? 0 : err_nomem(err, "types");
	for (bool outermost = true; stack.n; outermost = false) {
		uint32_t inside = substance(r, stack.p[--stack.n]);
		const struct cairn_type *t = cairn_types_get(r->graph, inside);
		if (!t->unread)
			continue;
		int rc = load(r, inside, first ? NULL : err);
		/* A part that has no single definition is shown as incomplete. */
		if (rc == -ENOTUNIQ && !outermost)
			rc = 0;
		first = first ? first : rc;
		bool fits = true;
		for (uint32_t i = 0; i < t->n_members && fits; i++)
			fits = VEC_ADD(&stack, t->members[i].type);
		if (!fits && !first)
			first = err_nomem(err, "types");
	}
	VEC_FREE(&stack);
	return first;
}

int dwarf_type_definition(struct dw_types *r, enum cairn_type_kind kind, const char *name,
			  uint32_t *ret, struct cairn_err *err)
{
	dw_off off;
	uint32_t id = 0;
	int rc = tag_of(kind) ? make_index(r, err) : 0;
	if (rc < 0 || !tag_of(kind))
		return rc;
	rc = dw_type_index_find(r->index, tag_of(kind), name, &off, err);
	if (rc <= 0)
		return rc;
	rc = dwarf_type(r, off, &id, err);
	if (rc >= 0)
		rc = dwarf_type_complete(r, id, err);
	if (rc < 0)
		return rc;
	const char *found = cairn_types_get(r->graph, id)->name;
	if (!found || strcmp(found, name) != 0)
		return 0;
	*ret = id;
	return 1;
}
