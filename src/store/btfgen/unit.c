/* SPDX-License-Identifier: BSD-2-Clause */
#include "btfgen/unit_impl.h"

#include "base/err.h"
#include "dwarf/scan.h"

static const uint16_t slot_attrs[N_SLOTS] = {
	[NAME] = DW_AT_name,
	[TYPE] = DW_AT_type,
	[BYTE_SIZE] = DW_AT_byte_size,
	[MEMBER_LOCATION] = DW_AT_data_member_location,
	[DATA_BIT_OFFSET] = DW_AT_data_bit_offset,
	[BIT_SIZE] = DW_AT_bit_size,
	[BIT_OFFSET] = DW_AT_bit_offset,
	[ENCODING] = DW_AT_encoding,
	[DECLARATION] = DW_AT_declaration,
	[EXTERNAL] = DW_AT_external,
	[UPPER_BOUND] = DW_AT_upper_bound,
	[LOWER_BOUND] = DW_AT_lower_bound,
	[COUNT] = DW_AT_count,
	[CONST_VALUE] = DW_AT_const_value,
	[ABSTRACT_ORIGIN] = DW_AT_abstract_origin,
	[SPECIFICATION] = DW_AT_specification,
	[LOW_PC] = DW_AT_low_pc,
	[RANGES] = DW_AT_ranges,
	[LOCATION] = DW_AT_location,
	[SIGNATURE] = DW_AT_signature,
	[ANNOTATION] = DW_AT_GNU_annotation,
};

/* The role of a tag; kinds of types are separate, with 0 for no type. */
static uint8_t role_of(uint16_t tag)
{
	switch (tag) {
	case DW_TAG_member:
		return ROLE_MEMBER;
	case DW_TAG_formal_parameter:
		return ROLE_PARAM;
	case DW_TAG_unspecified_parameters:
		return ROLE_VARIADIC;
	case DW_TAG_enumerator:
		return ROLE_ENUMERATOR;
	case DW_TAG_subrange_type:
	case DW_TAG_generic_subrange:
		return ROLE_SUBRANGE;
	case DW_TAG_inheritance:
		return ROLE_BASE_CLASS;
	case DW_TAG_subprogram:
		return ROLE_FUNC;
	case DW_TAG_variable:
		return ROLE_VARIABLE;
	case DW_TAG_namespace:
	case DW_TAG_module:
		return ROLE_NAMESPACE;
	case DW_TAG_LLVM_annotation:
	case DW_TAG_GNU_annotation:
		return ROLE_ANNOTATION;
	case DW_TAG_variant_part:
		return ROLE_VARIANT_PART;
	case DW_TAG_variant:
		return ROLE_VARIANT;
	case DW_TAG_call_site:
	case DW_TAG_GNU_call_site:
		return DW_ROLE_PRUNE;
	case DW_TAG_array_type:
	case DW_TAG_class_type:
	case DW_TAG_interface_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
	case DW_TAG_ptr_to_member_type:
	case DW_TAG_subroutine_type:
	case DW_TAG_typedef:
	case DW_TAG_template_alias:
	case DW_TAG_base_type:
	case DW_TAG_const_type:
	case DW_TAG_volatile_type:
	case DW_TAG_restrict_type:
	case DW_TAG_atomic_type:
	case DW_TAG_immutable_type:
	case DW_TAG_packed_type:
	case DW_TAG_shared_type:
	case DW_TAG_dynamic_type:
	case DW_TAG_unspecified_type:
	case DW_TAG_string_type:
	case DW_TAG_set_type:
	case DW_TAG_file_type:
	case DW_TAG_coarray_type:
		return ROLE_TYPE;
	}
	return DW_ROLE_PASS;
}

static uint8_t role_with_inlined(uint16_t tag)
{
	return tag == DW_TAG_inlined_subroutine ? ROLE_INLINED : role_of(tag);
}

static const struct dw_query query = {slot_attrs, N_SLOTS, role_of};
static const struct dw_query wish_with_inlined = {slot_attrs, N_SLOTS, role_with_inlined};

int unit_types_init(struct unit_types *u, const struct dwarf *dw, bool whole, bool want_vars,
		    struct dw_scanner *functions, struct arena *names, struct map *names_by_hash)
{
	*u = (struct unit_types){.dw = dw,
				 .functions = functions,
				 .whole = whole,
				 .step = whole ? CLUSTER_STEP : UNIT_STEP,
				 .want_vars = want_vars,
				 .names = names,
				 .names_by_hash = names_by_hash};
	dw_walker_init(&u->walker, functions ? &wish_with_inlined : &query);
	u->short_names = calloc(1, sizeof(*u->short_names));
	return u->short_names ? 0 : -ENOMEM;
}

void unit_types_fini(struct unit_types *u)
{
	dw_walker_fini(&u->walker);
	VEC_FREE(&u->types);
	VEC_FREE(&u->edges);
	VEC_FREE(&u->elems);
	VEC_FREE(&u->funcs);
	VEC_FREE(&u->vars);
	VEC_FREE(&u->bodies);
	VEC_FREE(&u->tags);
	VEC_FREE(&u->open);
	VEC_FREE(&u->plans);
	VEC_FREE(&u->offs);
	VEC_FREE(&u->at);
	VEC_FREE(&u->sections);
	free(u->short_names);
}

void unit_types_clear(struct unit_types *u)
{
	u->types.n = u->elems.n = u->funcs.n = u->vars.n = u->bodies.n = u->tags.n = 0;
	u->offs.n = u->at.n = 0;
	u->scattered = u->has_inner = false;
}

static bool has_namespaces(const struct dw_unit *unit)
{
	return !dw_unit_is_c(unit) && unit->language != DW_LANG_Mips_Assembler;
}

static int see_namespace(struct unit_types *u)
{
	const char *name = unit_own_name(u);
	return unit_open_scope(u, SCOPE_ONLY,
			       unit_full_name(u, name ? name : "(anonymous namespace)"));
}

static bool is_in_type(const struct unit_types *u)
{
	for (size_t i = 0; i < u->open.n; i++)
		if (!(u->open.p[i].i & OWNER_FUNC))
			return true;
	return false;
}

/*
 * For the index of functions, in which C has none inside of types: it passes over these
 * (dwarf/scan.c).
 */
static int see_function(struct unit_types *u, int role)
{
	bool is_function = role == ROLE_FUNC || role == ROLE_INLINED;
	if (is_function && !(u->is_c && is_in_type(u)))
		return dw_scanner_see(u->functions, &u->walker, u->walker.err);
	dw_scanner_leave(u->functions, &u->walker);
	return 0;
}

static int see(struct unit_types *u, int role)
{
	while (u->open.n && u->open.p[u->open.n - 1].depth >= u->walker.lowest)
		u->open.n--;
	int rc = u->functions ? see_function(u, role) : 0;
	if (rc < 0)
		return rc;
	switch ((enum role)role) {
	case ROLE_TYPE:
		return unit_see_type(u);
	case ROLE_MEMBER:
	case ROLE_BASE_CLASS:
		return unit_see_member(u);
	case ROLE_PARAM:
		return unit_see_param(u);
	case ROLE_VARIADIC:
		return unit_see_variadic(u);
	case ROLE_ENUMERATOR:
		return unit_see_enumerator(u);
	case ROLE_SUBRANGE:
		return unit_see_subrange(u);
	case ROLE_FUNC:
		return unit_see_func(u);
	case ROLE_VARIABLE:
		return unit_see_variable(u);
	case ROLE_NAMESPACE:
		return see_namespace(u);
	case ROLE_ANNOTATION:
		return unit_see_annotation(u);
	case ROLE_VARIANT_PART:
		return unit_see_variant_part(u);
	case ROLE_VARIANT:
		return unit_see_variant(u);
	case ROLE_INLINED:
		return 0;
	}
	return 0;
}

/* The number after all local offsets. */
static uint64_t places_end(const struct unit_types *u)
{
	return u->whole ? u->end : u->unit_end;
}

int unit_types_read(struct unit_types *u, const struct dw_unit *unit, struct cairn_err *err)
{
	if (unit_begin_places(u, unit) < 0)
		return err_nomem(err, "the sections of all units");
	const struct dw_section *str = &unit->file->sec[DW_SEC_STR];
	u->str = (const char *)str->p;
	u->str_n = str->ends_in_nul ? str->n : 0;
	u->has_namespaces = has_namespaces(unit);
	u->is_c = dw_unit_is_c(unit);
	u->open.n = 0;
	if (u->functions)
		dw_scanner_begin(u->functions);
	if (places_end(u) > UNIT_END_MAX)
		return err_set(err, -ERANGE, "%s: %s larger than 4 GiB", unit->file->path,
			       u->whole ? "units that refer to each other, together" : "a unit");
	int rc = dw_walker_enter(&u->walker, unit, err);
	if (rc >= 0)
		rc = unit_make_plans(u);
	while (rc >= 0 && (rc = unit_take_types(u)) >= 0 && (rc = dw_walker_next(&u->walker)) > 0)
		rc = see(u, rc);
	return rc == -ENOMEM ? err_nomem(err, "the types of a unit") : rc;
}

/* ---- after the walk ---- */

/*
 * Types of earlier units are forgotten: none of their places is one of these, and 0 is no type's.
 */
static int begin_index(struct unit_types *u)
{
	uint32_t end = (uint32_t)places_end(u);
	size_t n = (end >> u->step) + 1;
	bool is_full = end > UNIT_END_MAX - u->end_of_places;
	u->base = is_full || !u->end_of_places ? 1 : u->end_of_places;
	u->end_of_places = u->base + end;
	if (n > u->at.cap) {
		struct unit_place *p = calloc(n, sizeof(*p));
		if (!p)
			return -ENOMEM;
		free(u->at.p);
		u->at.p = p;
		u->at.cap = n;
	} else if (is_full) {
		memset(u->at.p, 0, u->at.cap * sizeof(*u->at.p));
	}
	u->at.n = n;
	return 0;
}

static int make_index(struct unit_types *u)
{
	if (begin_index(u) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < u->types.n; i++)
		u->at.p[u->offs.p[i] >> u->step] = (struct unit_place){u->base + u->offs.p[i], i};
	return 0;
}

uint32_t unit_type_index_slow(const struct unit_types *u, local_off off)
{
	struct unit_place at = u->at.p[off >> u->step];
	if (at.place < u->base)
		return NO_TYPE;
	/* Another type that begins in the same step comes before it. */
	uint32_t i = at.i;
	while (i && u->offs.p[i] > off)
		i--;
	return u->offs.p[i] == off ? i : NO_TYPE;
}

/* Makes room for @n items, whose values do not matter. */
static int resize(uint32_t **p, size_t *n, size_t *cap, size_t want)
{
	if (want > *cap) {
		uint32_t *grown = calloc(want, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		free(*p);
		*p = grown;
		*cap = want;
	}
	*n = want;
	return 0;
}

static uint32_t *first_elem(struct unit_types *u, uint32_t owner, uint32_t **ret_n)
{
	if (owner & OWNER_FUNC) {
		struct func_die *f = &u->funcs.p[owner & ~(uint32_t)OWNER_FUNC];
		*ret_n = &f->n_elems;
		return &f->elem;
	}
	*ret_n = &u->types.p[owner].n_elems;
	return &u->types.p[owner].elem;
}

/*
 * Put the elements of each owner in a row, in their order: types inside a class stand between its
 * members.
 */
static int gather(struct unit_types *u)
{
	struct elem *sorted = malloc(u->elems.n * sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	uint32_t at = 0;
	for (size_t i = 0; i < u->types.n; at += u->types.p[i++].n_elems)
		u->types.p[i].elem = at;
	for (size_t i = 0; i < u->funcs.n; at += u->funcs.p[i++].n_elems)
		u->funcs.p[i].elem = at;
	for (size_t i = 0; i < u->elems.n; i++) {
		uint32_t *n;
		sorted[(*first_elem(u, u->elems.p[i].owner, &n))++] = u->elems.p[i];
	}
	for (size_t i = 0; i < u->types.n; i++)
		u->types.p[i].elem -= u->types.p[i].n_elems;
	for (size_t i = 0; i < u->funcs.n; i++)
		u->funcs.p[i].elem -= u->funcs.p[i].n_elems;
	free(u->elems.p);
	u->elems.p = sorted;
	u->elems.cap = u->elems.n;
	return 0;
}

int unit_types_finish(struct unit_types *u)
{
	if (make_index(u) < 0 || resize(&u->edges.p, &u->edges.n, &u->edges.cap, u->types.n) < 0)
		return -ENOMEM;
	if (u->types.n)
		memset(u->edges.p, 0, u->types.n * sizeof(*u->edges.p));
	return u->scattered && u->elems.n ? gather(u) : 0;
}
