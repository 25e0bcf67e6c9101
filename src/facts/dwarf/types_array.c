/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arrays
 *
 * One DIE has all dimensions, and each becomes an array of its own:
 *
 *	DW_TAG_array_type of int        node 5: 2 times node 6, 24 bytes
 *	  DW_TAG_subrange_type 0 .. 1   node 6: 3 times int, 12 bytes
 *	  DW_TAG_subrange_type 0 .. 2
 *
 * The size depends on the elements, which may be read later. So arrays are gathered while the work
 * list is worked off, "unread" marks those that have no size yet, and they are sized at its end,
 * elements first.
 */
#include "base/err.h"
#include "dwarf/types_array.h"

/* Dimensions of one array DIE. Fortran allows 15. */
enum { DIMS_MAX = 64 };

struct dim {
	bool has_count;
	uint64_t count;
};

/* Languages whose first element has the number 1 by default (DWARF 5, table 7.17). */
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
	/*
	 * GCC before 11 writes the -1 of "int a[0]" in the width of an address. In 8 bytes it is
	 * the last index of 2^32 elements.
	 */
	if (at == DW_AT_upper_bound && v.form == DW_FORM_data4 && v.u == UINT32_MAX &&
	    dw_unit_addr_size(die->unit) == 4)
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
int dw_types_read_array(struct dw_types *r, const struct dw_die *die, uint32_t id,
			struct cairn_type *t, struct cairn_err *err)
{
	struct dim dims[DIMS_MAX] = {{0}};
	int n = read_dims(die, dims, err);
	if (n < 0)
		return n;
	if (n > DIMS_MAX || is_described(die))
		return dw_types_read_opaque(r, die, t, err);
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
		dim.size = dw_udata(die, DW_AT_byte_size, 0);
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
 * Elements first, with a stack of our own. An array is marked as it goes on the stack, so that a
 * ring of arrays meets itself and ends.
 */
int dw_types_size_arrays(struct dw_types *r, struct cairn_err *err)
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
