/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records in the order of classes, that is, of the first DIE of each. An instance takes one record,
 * except:
 *
 *	int a[2][3]                 an ARRAY for each dimension, the outermost first
 *	pointer with btf_type_tags  PTR, then a TYPE_TAG for each, the last one first, as Clang
 *	                            writes them
 *
 * A first pass assigns the numbers, so that a record can refer to a later one. Forward declarations
 * come after all types, and tags after the forward declarations.
 */
#include "btfgen/emit.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "btf/build.h"
#include "dwarf/constants.h"

/* ---- types around others ---- */

/* Longest chain of typedefs, qualifiers and arrays around a value. */
enum { AROUND_MAX = 64 };

edge_t emit_edge(const struct emit *e, uint32_t instance, edge_t own, uint32_t i)
{
	const edge_t *edges = e->v->v.p[instance].edges;
	return name_variants_resolve(e->v, edges ? edges[i] : own);
}

static const struct type_class *class_of(const struct emit *e, edge_t edge)
{
	return edge && !(edge & EDGE_GROUP) ? &e->c->v.p[e->v->v.p[edge - 1].class_] : NULL;
}

static bool is_around(const struct type_class *k)
{
	return k->kind == TYPE_TYPEDEF || k->kind == TYPE_CONST || k->kind == TYPE_VOLATILE ||
	       k->kind == TYPE_RESTRICT;
}

/* NULL: void, or a type that is only declared. */
static const struct type_class *skip_names(const struct emit *e, edge_t *edge)
{
	const struct type_class *k = class_of(e, *edge);
	for (int i = 0; k && is_around(k); i++) {
		if (i == AROUND_MAX)
			return NULL;
		*edge = emit_edge(e, *edge - 1, k->edge, 0);
		k = class_of(e, *edge);
	}
	return k;
}

/*
 * True if the elements of an array have a size. C++ has pointers to arrays of classes that are only
 * declared, and a type that is too large for BTF is only declared there. Such an array becomes
 * void.
 */
static bool has_elements(const struct emit *e, uint32_t instance, const struct type_class *array)
{
	edge_t edge = instance + 1;
	for (int i = 0; i < AROUND_MAX; i++) {
		edge = emit_edge(e, edge - 1, array->edge, 0);
		array = skip_names(e, &edge);
		if (!array || array->kind != TYPE_ARRAY)
			return array;
	}
	return false;
}

/* ---- numbers ---- */

static uint32_t n_tags(const struct type_class *k)
{
	uint32_t n = 0;
	if (k->kind == TYPE_ARRAY || k->kind == TYPE_ENUM)
		return 0;
	for (uint32_t i = 0; i < k->n_elems; i++)
		n += k->elems[i].what == ELEM_TAG;
	return n;
}

static uint32_t n_dimensions(const struct type_class *k)
{
	return k->n_elems ? k->n_elems : 1;
}

static uint32_t n_records(const struct emit *e, uint32_t instance, const struct type_class *k)
{
	if (k->kind == TYPE_ARRAY)
		return has_elements(e, instance, k) ? n_dimensions(k) : 0;
	return k->kind == TYPE_PTR ? 1 + n_tags(k) : 1;
}

/* Whether the base has a record for it. */
static bool is_in_base(const struct emit *e, uint32_t instance)
{
	return e->v->v.p[instance].base_id;
}

/* Instances in the order of their records: a class with the empty set, then its variants. */
static int for_instances(struct emit *e, int (*visit)(struct emit *e, uint32_t instance))
{
	for (uint32_t i = 0; i < e->c->v.n; i++)
		for (uint32_t k = i; k != UINT32_MAX; k = e->v->v.p[k].next) {
			bool own = e->v->v.p[k].used && !e->skip[k] && !is_in_base(e, k);
			int rc = own ? visit(e, k) : 0;
			if (rc < 0)
				return rc;
		}
	return 0;
}

static int number(struct emit *e, uint32_t instance)
{
	const struct type_class *k = &e->c->v.p[e->v->v.p[instance].class_];
	uint32_t n = n_records(e, instance, k);
	e->ids[instance] = n ? e->index_type : 0; /* the next one, while numbers are given */
	if (k->n_elems > UINT32_MAX - e->index_type - 2)
		return -ERANGE;
	e->index_type += n;
	return 0;
}

static void number_group(struct emit *e, edge_t edge, uint32_t *next)
{
	if (edge & EDGE_GROUP && !e->group_ids[edge & ~EDGE_GROUP])
		e->group_ids[edge & ~EDGE_GROUP] = (*next)++;
}

static int number_groups(struct emit *e, uint32_t instance)
{
	const struct type_class *k = &e->c->v.p[e->v->v.p[instance].class_];
	if (!e->ids[instance])
		return 0;
	number_group(e, emit_edge(e, instance, k->edge, 0), &e->index_type);
	if (k->kind == TYPE_ARRAY || k->kind == TYPE_ENUM)
		return 0;
	for (uint32_t i = 0; i < k->n_elems; i++)
		if (k->elems[i].what == ELEM_PLAIN)
			number_group(e, emit_edge(e, instance, k->elems[i].edge, i + 1),
				     &e->index_type);
	return 0;
}

static void number_variables(struct emit *e)
{
	for (size_t i = 0; i < e->c->vars.n; i++)
		number_group(e,
			     name_variants_edge(e->v, e->c->vars.p[i].unit, e->c->vars.p[i].type),
			     &e->index_type);
}

static uint32_t id_of(const struct emit *e, edge_t edge)
{
	if (!edge)
		return 0;
	return edge & EDGE_GROUP ? e->group_ids[edge & ~EDGE_GROUP] : e->ids[edge - 1];
}

uint32_t emit_id(const struct emit *e, uint32_t unit, edge_t edge)
{
	return id_of(e, name_variants_edge(e->v, unit, edge));
}

/* ---- records ---- */

static int name_of(struct emit *e, const char *name, uint32_t *ret)
{
	*ret = 0;
	return name && *name ? cairn_btf_add_string(e->b, name, ret) : 0;
}

static int add_opaque(struct emit *e, uint32_t bytes)
{
	uint32_t id;
	return btf_add_struct(e->b, CAIRN_BTF_STRUCT, 0, bytes, NULL, 0, &id);
}

static bool is_power_up_to_16(uint32_t n)
{
	return n && n <= 16 && !(n & (n - 1));
}

static int add_base(struct emit *e, const struct type_class *k, uint32_t name)
{
	uint32_t encoding = 0, id;
	switch (k->encoding) {
	case DW_ATE_float:
		if (k->size == 2 || k->size == 4 || k->size == 8 || k->size == 12 || k->size == 16)
			return btf_add_float(e->b, name, k->size, &id);
		break;
	case DW_ATE_complex_float:
	case DW_ATE_imaginary_float:
	case DW_ATE_decimal_float:
		e->losses[CAIRN_LOSS_COMPLEX]++;
		return add_opaque(e, k->size);
	case DW_ATE_boolean:
		encoding = CAIRN_BTF_INT_BOOL;
		break;
	case DW_ATE_signed:
	case DW_ATE_signed_char:
		encoding = CAIRN_BTF_INT_SIGNED;
		break;
	}
	if (is_power_up_to_16(k->size) && name)
		return btf_add_int(e->b, name, k->size, encoding, k->size * 8, &id);
	e->losses[CAIRN_LOSS_TYPE]++;
	return add_opaque(e, k->size);
}

/*
 * The last dimension's element is the array's element; each other dimension's element is the next
 * array.
 */
static int add_array(struct emit *e, uint32_t instance, const struct type_class *k,
		     uint32_t element)
{
	uint32_t n = n_dimensions(k), id;
	if (!e->ids[instance]) {
		e->losses[CAIRN_LOSS_ELEMENTS]++;
		return 0;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t of = i + 1 < n ? btf_builder_next_id(e->b) + 1 : element;
		uint32_t count = k->n_elems ? (uint32_t)k->elems[i].value : 0;
		int rc = btf_add_array(e->b, of, e->index_type, count, &id);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int add_ptr(struct emit *e, const struct type_class *k, uint32_t to)
{
	uint32_t left = n_tags(k), id, name = 0;
	int rc =
		btf_add_ref(e->b, CAIRN_BTF_PTR, 0, left ? btf_builder_next_id(e->b) + 1 : to, &id);
	for (uint32_t i = k->n_elems; i-- > 0 && rc >= 0;) {
		if (k->elems[i].what != ELEM_TAG)
			continue;
		left--;
		rc = name_of(e, k->elems[i].name, &name);
		if (rc >= 0)
			rc = btf_add_ref(e->b, CAIRN_BTF_TYPE_TAG, name,
					 left ? btf_builder_next_id(e->b) + 1 : to, &id);
	}
	return rc;
}

static bool has_bit_fields(const struct type_class *k)
{
	for (uint32_t i = 0; i < k->n_elems; i++)
		if (k->elems[i].bit_size)
			return true;
	return false;
}

/* The form with sizes of bit-fields has fewer bits for where a member is. */
static bool is_too_far(const struct class_elem *m, bool bit_fields)
{
	enum { BIT_FIELD_OFF_MAX = 0xffffff };
	return bit_fields && m->bit_off > BIT_FIELD_OFF_MAX;
}

/*
 * A tail whose length the pointer knows (Rust), or members after an array whose length a
 * discriminant gives (Ada): the type has fewer bytes than its members span. BTF cannot express
 * this.
 */
static bool is_beyond(const struct emit *e, const struct type_class *k, const struct class_elem *m,
		      edge_t type)
{
	uint64_t bits = m->bit_size ? m->bit_size : emit_bytes(e, type) * 8;
	return m->bit_off + bits > (uint64_t)k->size * 8;
}

static int add_struct(struct emit *e, uint32_t instance, const struct type_class *k, uint32_t name)
{
	bool bit_fields = has_bit_fields(k);
	uint32_t id;
	e->members.n = 0;
	for (uint32_t i = 0; i < k->n_elems; i++) {
		const struct class_elem *m = &k->elems[i];
		struct cairn_btf_member to = {.bit_off = m->bit_off, .bit_size = m->bit_size};
		if (m->what != ELEM_PLAIN)
			continue;
		if (is_too_far(m, bit_fields)) {
			e->losses[CAIRN_LOSS_FAR_MEMBER]++;
			continue;
		}
		edge_t type = emit_edge(e, instance, m->edge, i + 1);
		if (is_beyond(e, k, m, type)) {
			e->losses[CAIRN_LOSS_BEYOND_MEMBER]++;
			continue;
		}
		to.type = id_of(e, type);
		int rc = name_of(e, m->name, &to.name_off);
		if (rc < 0 || !VEC_ADD(&e->members, to))
			return rc < 0 ? rc : -ENOMEM;
	}
	return btf_add_struct(e->b, k->kind == TYPE_UNION ? CAIRN_BTF_UNION : CAIRN_BTF_STRUCT,
			      name, k->size, e->members.p, (uint32_t)e->members.n, &id);
}

static int add_enum(struct emit *e, const struct type_class *k, uint32_t name)
{
	bool is_signed = false;
	uint32_t id;
	e->values.n = 0;
	for (uint32_t i = 0; i < k->n_elems; i++) {
		struct cairn_btf_enumerator to = {.value = (int64_t)k->elems[i].value};
		is_signed |= k->elems[i].is_negative;
		int rc = name_of(e, k->elems[i].name, &to.name_off);
		if (rc < 0 || !VEC_ADD(&e->values, to))
			return rc < 0 ? rc : -ENOMEM;
	}
	return btf_add_enum(e->b, name, k->size, is_signed, e->values.p, (uint32_t)e->values.n,
			    &id);
}

int emit_proto(struct emit *e, struct cairn_btf_builder *b, uint32_t instance, uint32_t *ret)
{
	const struct type_class *k = &e->c->v.p[e->v->v.p[instance].class_];
	uint32_t returns = id_of(e, emit_edge(e, instance, k->edge, 0));
	e->params.n = 0;
	for (uint32_t i = 0; i < k->n_elems; i++) {
		struct cairn_btf_param to = {
			.type = id_of(e, emit_edge(e, instance, k->elems[i].edge, i + 1))};
		int rc = k->elems[i].name ? cairn_btf_add_string(b, k->elems[i].name, &to.name_off)
					  : 0;
		if (rc < 0 || !VEC_ADD(&e->params, to))
			return rc < 0 ? rc : -ENOMEM;
	}
	if (k->variadic && !VEC_ADD(&e->params, ((struct cairn_btf_param){0})))
		return -ENOMEM;
	return btf_add_func_proto(b, returns, e->params.p, (uint32_t)e->params.n, ret);
}

static int add_instance(struct emit *e, uint32_t instance)
{
	const struct type_class *k = &e->c->v.p[e->v->v.p[instance].class_];
	uint32_t to = id_of(e, emit_edge(e, instance, k->edge, 0)), name, id;
	int rc = name_of(e, k->name, &name);
	if (rc < 0)
		return rc;
	switch ((enum type_kind)k->kind) {
	case TYPE_BASE:
		return add_base(e, k, name);
	case TYPE_PTR:
		return add_ptr(e, k, to);
	case TYPE_ARRAY:
		return add_array(e, instance, k, to);
	case TYPE_STRUCT:
	case TYPE_UNION:
		return add_struct(e, instance, k, name);
	case TYPE_ENUM:
		return add_enum(e, k, name);
	case TYPE_TYPEDEF:
		return btf_add_ref(e->b, CAIRN_BTF_TYPEDEF, name, to, &id);
	case TYPE_CONST:
		return btf_add_ref(e->b, CAIRN_BTF_CONST, 0, to, &id);
	case TYPE_VOLATILE:
		return btf_add_ref(e->b, CAIRN_BTF_VOLATILE, 0, to, &id);
	case TYPE_RESTRICT:
		return btf_add_ref(e->b, CAIRN_BTF_RESTRICT, 0, to, &id);
	case TYPE_PROTO:
		return emit_proto(e, e->b, instance, &id);
	case TYPE_TAG:
	case TYPE_ALIAS:
	case TYPE_VOID:
	case TYPE_OPAQUE:
		break;
	}
	return add_opaque(e, k->size);
}

/* ---- after the types ---- */

static int add_groups(struct emit *e, uint32_t from, uint32_t to)
{
	uint32_t *order = malloc((to - from + 1) * sizeof(*order)), id;
	if (!order)
		return -ENOMEM;
	for (uint32_t g = 0; g < e->c->groups.n; g++)
		if (e->group_ids[g])
			order[e->group_ids[g] - from] = g;
	int rc = 0;
	for (uint32_t i = 0; i < to - from && rc >= 0; i++) {
		const struct name_group *g = &e->c->groups.p[order[i]];
		uint32_t name;
		rc = name_of(e, g->name, &name);
		if (rc >= 0 && g->kind == TYPE_ENUM)
			rc = btf_add_enum(e->b, name, 4, false, NULL, 0, &id);
		else if (rc >= 0)
			rc = btf_add_fwd(e->b, name, g->kind == TYPE_UNION, &id);
	}
	free(order);
	return rc;
}

static int add_tags(struct emit *e, uint32_t instance)
{
	const struct type_class *k = &e->c->v.p[e->v->v.p[instance].class_];
	bool takes = k->kind == TYPE_STRUCT || k->kind == TYPE_UNION || k->kind == TYPE_TYPEDEF;
	bool is_struct = k->kind == TYPE_STRUCT || k->kind == TYPE_UNION, left_out = false;
	bool bit_fields = is_struct && has_bit_fields(k);
	int32_t member = -1;
	for (uint32_t i = 0; takes && i < k->n_elems; i++) {
		uint32_t name, id;
		enum elem_kind what = (enum elem_kind)k->elems[i].what;
		if (what == ELEM_PLAIN) {
			left_out = is_too_far(&k->elems[i], bit_fields);
			member += !left_out;
			continue;
		}
		if (what == ELEM_MEMBER_TAG && left_out)
			continue;
		int rc = name_of(e, k->elems[i].name, &name);
		if (rc >= 0)
			rc = btf_add_decl_tag(e->b, name, e->ids[instance],
					      what == ELEM_MEMBER_TAG ? member : -1, false, &id);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static bool has_arrays(const struct classes *c)
{
	for (size_t i = 0; i < c->v.n; i++)
		if (c->v.p[i].kind == TYPE_ARRAY && !c->v.p[i].base_id)
			return true;
	return false;
}

/* Clang and pahole give the type of an array's index this name. */
static int add_index_type(struct emit *e, uint32_t *ret)
{
	uint32_t name;
	*ret = e->base ? cairn_btf_find(e->base, "__ARRAY_SIZE_TYPE__", CAIRN_BTF_INT, 0) : 0;
	if (*ret || !has_arrays(e->c))
		return 0;
	int rc = name_of(e, "__ARRAY_SIZE_TYPE__", &name);
	return rc < 0 ? rc : btf_add_int(e->b, name, 4, 0, 32, ret);
}

int emit_types(struct emit *e, struct cairn_err *err)
{
	uint32_t index_type = 0;
	e->ids = calloc(e->v->v.n + 1, sizeof(*e->ids));
	e->group_ids = calloc(e->c->groups.n + 1, sizeof(*e->group_ids));
	int rc = e->ids && e->group_ids ? add_index_type(e, &index_type) : -ENOMEM;
	for (size_t i = 0; i < e->v->v.n && rc >= 0; i++)
		e->ids[i] = e->v->v.p[i].base_id;
	if (rc >= 0) {
		e->index_type = btf_builder_next_id(e->b);
		rc = for_instances(e, number);
	}
	uint32_t first_group = e->index_type;
	if (rc >= 0)
		rc = for_instances(e, number_groups);
	number_variables(e);
	uint32_t end = e->index_type;
	e->index_type = index_type;
	if (rc >= 0)
		rc = for_instances(e, add_instance);
	if (rc >= 0)
		rc = add_groups(e, first_group, end);
	if (rc >= 0)
		rc = for_instances(e, add_tags);
	if (rc == -ENOMEM)
		return err_nomem(err, "BTF");
	return rc < 0 ? err_set(err, rc, "more types or strings than BTF can number") : 0;
}

void emit_fini(struct emit *e)
{
	free(e->ids);
	free(e->group_ids);
	VEC_FREE(&e->members);
	VEC_FREE(&e->values);
	VEC_FREE(&e->params);
}

/* ---- values ---- */

uint64_t emit_bytes(const struct emit *e, edge_t edge)
{
	uint64_t times = 1;
	for (int i = 0; i < AROUND_MAX; i++) {
		const struct type_class *k = skip_names(e, &edge);
		if (!k)
			return 0;
		if (k->kind != TYPE_ARRAY)
			return times * (k->kind == TYPE_PTR ? e->ptr_bytes : k->size);
		for (uint32_t d = 0; d < k->n_elems; d++)
			if (__builtin_mul_overflow(times, k->elems[d].value, &times) ||
			    times > UINT32_MAX)
				return 0;
		edge = emit_edge(e, edge - 1, k->edge, 0);
	}
	return 0;
}

bool emit_is_signed(const struct emit *e, edge_t edge)
{
	const struct type_class *k = skip_names(e, &edge);
	if (!k)
		return false;
	if (k->kind == TYPE_BASE)
		return k->encoding == DW_ATE_signed || k->encoding == DW_ATE_signed_char;
	for (uint32_t i = 0; k->kind == TYPE_ENUM && i < k->n_elems; i++)
		if (k->elems[i].is_negative)
			return true;
	return false;
}
