/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A copy of a type graph for another ABI
 *
 * Nodes keep their ids. Scalars are recognised by name and size: an 8-byte "long unsigned int" is a
 * long, 4 bytes on i386, while "long long" and types with names of their own (Rust's u64) keep
 * their size. Structs are laid out inside out; the attributes for this are deduced (deduce.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "layout/place.h"
#include "layout/retarget.h"
#include "layout/view.h"
#include "types/build.h"

enum work { WORK_NEW, WORK_BUSY, WORK_DONE };

struct record {
	enum work state;
	struct two of;
	struct cairn_deduced deduced;
};

struct cairn_retarget {
	const struct cairn_types *old;
	struct cairn_types *types;
	const struct cairn_abi *abis[2];
	struct record *records; /* by id */
	uint32_t n;
	bool only_deduce; /* guessing: the new graph is not filled */
};

/* ---- scalars ---- */

static bool has_word(const char *name, const char *word)
{
	return name && strstr(name, word);
}

static enum cairn_scalar int_by_name(const struct cairn_type *t)
{
	if (t->encoding == CAIRN_ENC_BOOL)
		return CAIRN_C_BOOL;
	if (has_word(t->name, "usize") || has_word(t->name, "isize") ||
	    has_word(t->name, "uintptr"))
		return CAIRN_C_PTR;
	if (has_word(t->name, "long long"))
		return CAIRN_C_LLONG;
	/* GCC's "long long unsigned int" was the one before. */
	if (has_word(t->name, "long"))
		return CAIRN_C_LONG;
	return CAIRN_C_N_SCALARS;
}

static enum cairn_scalar int_by_size(uint64_t size)
{
	switch (size) {
	case 1:
		return CAIRN_C_CHAR;
	case 2:
		return CAIRN_C_SHORT;
	case 4:
		return CAIRN_C_INT;
	case 8:
		return CAIRN_C_LLONG;
	case 16:
		return CAIRN_C_INT128;
	default:
		return CAIRN_C_N_SCALARS;
	}
}

static enum cairn_scalar float_class(const struct cairn_abi *abi, const struct cairn_type *t)
{
	uint64_t size = t->encoding == CAIRN_ENC_COMPLEX ? t->size / 2 : t->size;

	if (has_word(t->name, "long double") && abi->scalars[CAIRN_C_LDOUBLE].size == size)
		return CAIRN_C_LDOUBLE;
	if (has_word(t->name, "128"))
		return CAIRN_C_FLOAT128;
	for (int i = CAIRN_C_FLOAT16; i <= CAIRN_C_FLOAT128; i++)
		if (abi->scalars[i].size == size)
			return (enum cairn_scalar)i;
	return CAIRN_C_N_SCALARS;
}

/*
 * Types without an encoding in debug information: GNU C's and Clang's. @parts: 2 for a complex
 * number.
 */
static enum cairn_scalar opaque_class(const struct cairn_type *t, unsigned int *parts)
{
	static const struct {
		const char *name;
		enum cairn_scalar class;
	} names[] = {{"_Decimal32", CAIRN_C_DECIMAL32},
		     {"_Decimal64", CAIRN_C_DECIMAL64},
		     {"_Decimal128", CAIRN_C_DECIMAL128},
		     {"__ibm128", CAIRN_C_IBM128}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (has_word(t->name, names[i].name))
			return names[i].class;
	/* GCC has no name for _Complex of integers but int. */
	bool is_complex = has_word(t->name, "complex") || has_word(t->name, "__unknown__");
	*parts = is_complex && t->size % 2 == 0 ? 2 : 1;
	return int_by_size(t->size / *parts);
}

static enum cairn_scalar scalar_class(const struct cairn_abi *abi, const struct cairn_type *t)
{
	enum cairn_scalar by_name = CAIRN_C_N_SCALARS;

	if (t->kind == CAIRN_T_PTR || t->kind == CAIRN_T_REF || t->kind == CAIRN_T_RREF)
		return CAIRN_C_PTR;
	if (t->kind == CAIRN_T_FLOAT)
		return float_class(abi, t);
	if (t->kind == CAIRN_T_INT)
		by_name = int_by_name(t);
	if (by_name < CAIRN_C_N_SCALARS && abi->scalars[by_name].size == t->size)
		return by_name;
	return t->kind == CAIRN_T_INT || t->kind == CAIRN_T_ENUM ? int_by_size(t->size)
								 : CAIRN_C_N_SCALARS;
}

/* ---- measuring ---- */

static int lay_out(struct cairn_retarget *r, uint32_t id, unsigned int depth);

/* A type whose width debug information does not record: up to 8 bytes it is not needed. */
static void measure_bit_int(const struct cairn_retarget *r, const struct cairn_type *t,
			    struct two *ret, bool *ret_known)
{
	for (int i = 0; i < 2; i++) {
		uint64_t align = min_u64(t->size & -t->size, r->abis[i]->bit_int_align);

		if (!r->abis[i]->bit_int_max || t->size > 8)
			*ret_known = false;
		ret->align[i] = align ? (uint32_t)align : 1;
		ret->size[i] = round_up(t->size, ret->align[i]);
	}
}

static void measure_scalar(const struct cairn_retarget *r, const struct cairn_type *t,
			   struct two *ret, bool *ret_known)
{
	enum cairn_scalar class = scalar_class(r->abis[0], t);
	unsigned int parts = t->kind == CAIRN_T_FLOAT && t->encoding == CAIRN_ENC_COMPLEX ? 2 : 1;

	if (t->kind == CAIRN_T_INT && has_word(t->name, "_BitInt")) {
		measure_bit_int(r, t, ret, ret_known);
		return;
	}
	if (t->kind == CAIRN_T_INT && t->encoding == CAIRN_ENC_OPAQUE)
		class = opaque_class(t, &parts);
	for (int i = 0; i < 2; i++) {
		if (class == CAIRN_C_N_SCALARS || !r->abis[i]->scalars[class].size) {
			*ret_known = false;
			ret->size[i] = t->size;
			ret->align[i] = t->abi_align ? t->abi_align : 1;
			continue;
		}
		ret->size[i] = (uint64_t)parts * r->abis[i]->scalars[class].size;
		ret->align[i] = r->abis[i]->scalars[class].align;
	}
	/* The first value is the actual size, whatever the name promised. */
	ret->size[0] = t->size;
}

static uint32_t vector_align(const struct cairn_abi *abi, uint64_t size)
{
	uint32_t align = 1;

	while (align < size && align < abi->vector_align_max)
		align *= 2;
	return align;
}

static int measure_array(struct cairn_retarget *r, const struct cairn_type *t, unsigned int depth,
			 struct two *ret, bool *ret_known);

static int measure(struct cairn_retarget *r, uint32_t id, unsigned int depth, struct two *ret,
		   bool *ret_known)
{
	const struct cairn_type *t = cairn_types_get(r->old, id);
	uint32_t aligned = 0;
	bool atomic = false;

	*ret = (struct two){{0, 0}, {1, 1}};
	for (unsigned int i = 0;
	     i < 1024 && (t->kind == CAIRN_T_TYPEDEF || t->kind == CAIRN_T_CONST ||
			  t->kind == CAIRN_T_VOLATILE || t->kind == CAIRN_T_RESTRICT ||
			  t->kind == CAIRN_T_ATOMIC);
	     i++) {
		aligned = aligned ? aligned : t->kind == CAIRN_T_TYPEDEF ? t->align : 0;
		atomic |= t->kind == CAIRN_T_ATOMIC;
		t = cairn_types_get(r->old, id = t->ref);
	}
	int rc = 0;
	if (t->kind == CAIRN_T_ARRAY) {
		rc = measure_array(r, t, depth, ret, ret_known);
	} else if (is_aggregate(t)) {
		rc = lay_out(r, id, depth);
		*ret = r->records[id].of;
	} else {
		measure_scalar(r, t, ret, ret_known);
	}
	for (int i = 0; i < 2; i++) {
		if (aligned)
			ret->align[i] = aligned;
		if (atomic && ret->size[i] <= r->abis[i]->atomic_max &&
		    !(ret->size[i] & (ret->size[i] - 1)) && ret->size[i])
			ret->align[i] = (uint32_t)max_u64(ret->align[i], ret->size[i]);
	}
	return rc;
}

static int measure_array(struct cairn_retarget *r, const struct cairn_type *t, unsigned int depth,
			 struct two *ret, bool *ret_known)
{
	int rc = depth < NEST_MAX ? measure(r, t->ref, depth + 1, ret, ret_known) : 0;

	for (int i = 0; i < 2; i++) {
		if (__builtin_mul_overflow(ret->size[i], t->has_count ? t->count : 0,
					   &ret->size[i]) ||
		    ret->size[i] > CAIRN_LAYOUT_SIZE_MAX) {
			*ret_known = false;
			ret->size[i] = t->size;
		}
		if (t->vector)
			ret->align[i] = vector_align(r->abis[i], ret->size[i]);
	}
	ret->size[0] = t->size;
	return rc;
}

/* ---- structs ---- */

static bool is_deduced(const struct cairn_deduced *d)
{
	return d->packed || d->pack || d->aligned || d->n_aligned || d->n_packed || d->n_fillers ||
	       d->unexplained;
}

/* An attribute is written down for the type, its typedefs, or its elements. */
static bool is_aligned_type(const struct cairn_retarget *r, uint32_t id)
{
	for (unsigned int i = 0; i < NEST_MAX; i++) {
		const struct cairn_type *t = cairn_types_get(r->old, id);

		if (t->align)
			return true;
		if (t->kind == CAIRN_T_PTR || is_aggregate(t) || !t->ref)
			return false;
		id = t->ref;
	}
	return false;
}

/* The deduced attributes of the struct in a member, whose offsets and size the member has too. */
static void add_inner(const struct cairn_retarget *r, uint32_t id, struct cairn_deduced *ret)
{
	const struct cairn_deduced *in;

	for (unsigned int i = 0; i < NEST_MAX; i++) {
		id = cairn_types_resolve(r->old, id);
		const struct cairn_type *t = cairn_types_get(r->old, id);

		if (t->kind != CAIRN_T_ARRAY)
			break;
		id = t->ref;
	}
	if (!is_aggregate(cairn_types_get(r->old, id)))
		return;
	in = &r->records[id].deduced;
	ret->n_deduced_members += is_deduced(in) || in->n_deduced_members;
	ret->n_guessed_members += in->unexplained || in->n_guessed_members;
}

static int make_plan(struct cairn_retarget *r, const struct cairn_type *t, unsigned int depth,
		     struct plan *plan, bool *ret_known)
{
	*plan = (struct plan){
		.is_union = t->kind == CAIRN_T_UNION, .size = t->size, .aligned = t->align};
	for (uint32_t i = 0; i < t->n_members; i++) {
		const struct cairn_member *m = &t->members[i];
		struct planned *p = VEC_PUSH(&plan->v);
		struct two of;

		if (!p)
			return -ENOMEM;
		if (m->is_base_class || m->dynamic)
			*ret_known = false;
		int rc = measure(r, m->type, depth + 1, &of, ret_known);
		if (rc)
			return rc;
		plan->holds_aligned |= m->align || is_aligned_type(r, m->type);
		plan->n_as_type += m->align && m->align == of.align[0] && of.align[1] < m->align;
		p->wanted = m->bit_off;
		p->written = m->align;
		for (int side = 0; side < 2; side++)
			p->place[side] = (struct cairn_place_member){.size = of.size[side],
								     .align = of.align[side],
								     .aligned = m->align,
								     .named = true,
								     .bit_field = m->bit_size,
								     .width = m->bit_size};
	}
	return 0;
}

/* The new node: as the old one, with other places. */
static int set_record(struct cairn_retarget *r, uint32_t id, const struct plan *plan,
		      const struct cairn_place_record *placed)
{
	struct cairn_type t = *cairn_types_get(r->old, id);
	struct cairn_member *members =
		arena_array(types_arena(r->types), t.n_members + 1, sizeof(*members));
	uint32_t k = 0;

	if (!members)
		return -ENOMEM;
	for (size_t i = 0; i < plan->v.n && k < t.n_members; i++) {
		if (plan->v.p[i].filler)
			continue;
		members[k] = t.members[k];
		members[k].bit_off = plan->v.p[i].place[1].bit_off;
		members[k].align = plan->v.p[i].place[1].aligned;
		k++;
	}
	t.members = members;
	t.size = placed->size;
	t.abi_align = placed->align;
	types_set(r->types, id, &t);
	return 0;
}

/* The alignment that the members alone give. */
static int natural_align(const struct cairn_retarget *r, int side, struct plan *plan, uint32_t *ret)
{
	uint32_t written = plan->aligned;
	struct cairn_place_record placed = {.align = 0};

	plan->aligned = 0;
	int rc = place_plan(r->abis[side], side, plan, &placed);
	plan->aligned = written;
	*ret = rc ? 0 : placed.align;
	return rc == -ENOMEM ? rc : 0;
}

/*
 * GCC writes down the alignment of a struct also when only a member of it was declared aligned, and
 * both compilers write the resulting one, whatever the attribute requested. One that the members
 * have anyway is then not taken for the struct's own if it is a member's: on the other ABI they may
 * have another. Else it is deduced that the attribute requested as much.
 */
static int judge_written(const struct cairn_retarget *r, struct plan *plan, uint32_t *ret_deduced)
{
	uint32_t natural[2];
	int rc = natural_align(r, 0, plan, &natural[0]);

	rc = rc ? rc : natural_align(r, 1, plan, &natural[1]);
	*ret_deduced = 0;
	if (rc || natural[0] != plan->aligned)
		return rc;
	if (plan->holds_aligned)
		plan->aligned = 0;
	else if (natural[1] < natural[0])
		*ret_deduced = plan->aligned;
	return 0;
}

static int place_both(struct cairn_retarget *r, uint32_t id, struct plan *plan)
{
	struct record *rec = &r->records[id];
	struct cairn_place_record placed;
	uint32_t aligned = 0;
	int rc = plan->aligned ? judge_written(r, plan, &aligned) : 0;

	rc = rc ? rc : deduce(r->abis[0], plan);
	if (aligned && !r->only_deduce)
		plan->deduced.aligned = aligned;
	if (!r->only_deduce)
		plan->deduced.n_aligned += plan->n_as_type;
	for (int side = 0; side < 2 && !rc; side++) {
		rc = place_plan(r->abis[side], side, plan, &placed);
		/* Wider than its type there, or larger than anything. */
		if (rc && rc != -ENOMEM) {
			plan->deduced.unexplained = true;
			return 0;
		}
		rec->of.size[side] = placed.size;
		rec->of.align[side] = placed.align;
	}
	rec->of.size[0] = plan->size;
	return rc || r->only_deduce ? rc : set_record(r, id, plan, &placed);
}

static int lay_out(struct cairn_retarget *r, uint32_t id, unsigned int depth)
{
	const struct cairn_type *t = cairn_types_get(r->old, id);
	struct record *rec = &r->records[id];
	struct plan plan = {.is_union = false};
	bool known = true;
	int rc = 0;

	if (rec->state != WORK_NEW)
		return 0;
	rec->state = WORK_BUSY;
	rec->of = (struct two){{t->size, t->size}, {1, 1}};
	if (has_layout(t) && depth < NEST_MAX) {
		rc = make_plan(r, t, depth, &plan, &known);
		rc = rc ? rc : place_both(r, id, &plan);
		rec->deduced = plan.deduced;
		VEC_FREE(&plan.v);
	}
	rec->deduced.unexplained |= !known;
	for (uint32_t i = 0; i < t->n_members; i++)
		add_inner(r, t->members[i].type, &rec->deduced);
	rec->state = WORK_DONE;
	return rc;
}

/* ---- the graph ---- */

/* Everything that is no struct; arrays are sized when the structs in them are. */
static int copy_nodes(struct cairn_retarget *r)
{
	for (uint32_t id = 1; id < r->n; id++) {
		struct cairn_type t = *cairn_types_get(r->old, id);
		bool known = true;
		struct two of;

		if (types_reserve(r->types) != id)
			return -ENOMEM;
		if (t.kind == CAIRN_T_INT || t.kind == CAIRN_T_FLOAT || t.kind == CAIRN_T_PTR ||
		    t.kind == CAIRN_T_REF || t.kind == CAIRN_T_RREF || t.kind == CAIRN_T_ENUM) {
			measure_scalar(r, &t, &of, &known);
			t.size = of.size[1];
			t.abi_align = of.align[1];
		}
		if (t.kind == CAIRN_T_INT && t.name && !strcmp(t.name, "char") && t.size == 1)
			t.encoding = r->abis[1]->char_unsigned ? CAIRN_ENC_UNSIGNED_CHAR
							       : CAIRN_ENC_SIGNED_CHAR;
		types_set(r->types, id, &t);
	}
	return 0;
}

static int size_arrays(struct cairn_retarget *r)
{
	for (uint32_t id = 1; id < r->n; id++) {
		struct cairn_type t = *cairn_types_get(r->types, id);
		const struct cairn_type *of =
			cairn_types_get(r->old, cairn_types_resolve(r->old, t.ref));
		bool known = true;
		struct two two;

		/* Elements that were not requested stay unchanged. */
		if (t.kind != CAIRN_T_ARRAY ||
		    (is_aggregate(of) && !r->records[cairn_types_resolve(r->old, t.ref)].state))
			continue;
		int rc = measure_array(r, cairn_types_get(r->old, id), 0, &two, &known);
		if (rc)
			return rc;
		t.size = two.size[1];
		types_set(r->types, id, &t);
	}
	return 0;
}

static int retarget_new(const struct cairn_types *types, const struct cairn_abi *from,
			const struct cairn_abi *to, struct cairn_retarget **ret)
{
	struct cairn_retarget *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->old = types;
	r->abis[0] = from;
	r->abis[1] = to;
	r->n = cairn_types_n_types(types);
	r->records = calloc(r->n, sizeof(*r->records));
	r->types = types_new();
	*ret = r;
	return r->records && r->types ? 0 : -ENOMEM;
}

int cairn_layout_retarget(const struct cairn_types *types, const struct cairn_abi *from,
			  const struct cairn_abi *to, const uint32_t *ids, size_t n,
			  struct cairn_retarget **ret, struct cairn_err *err)
{
	struct cairn_retarget *r = NULL;
	int rc = retarget_new(types, from, to, &r);

	rc = rc ? rc : copy_nodes(r);
	for (size_t i = 0; i < n && !rc; i++) {
		uint32_t id = cairn_types_resolve(types, ids[i]);

		if (is_aggregate(cairn_types_get(types, id)))
			rc = lay_out(r, id, 0);
	}
	rc = rc ? rc : size_arrays(r);
	if (rc) {
		cairn_retarget_free(r);
		return err_nomem(err, "types of another ABI");
	}
	*ret = r;
	return 0;
}

void cairn_retarget_free(struct cairn_retarget *r)
{
	if (!r)
		return;
	types_free(r->types);
	free(r->records);
	free(r);
}

const struct cairn_types *cairn_retarget_types(const struct cairn_retarget *r)
{
	return r->types;
}

bool cairn_retarget_deduced(const struct cairn_retarget *r, uint32_t id, struct cairn_deduced *ret)
{
	id = cairn_types_resolve(r->old, id);
	*ret = id < r->n ? r->records[id].deduced : (struct cairn_deduced){0};
	return is_deduced(ret) || ret->n_deduced_members;
}

/* ---- guessing ---- */

static size_t count_natural(const struct cairn_types *types, const struct cairn_abi *abi,
			    const uint32_t *ids, size_t n)
{
	struct cairn_retarget *r = NULL;
	size_t natural = 0;
	int rc = retarget_new(types, abi, abi, &r);

	if (r)
		r->only_deduce = true;
	for (size_t i = 0; i < n && !rc; i++) {
		uint32_t id = cairn_types_resolve(types, ids[i]);

		if (!is_aggregate(cairn_types_get(types, id)))
			continue;
		rc = lay_out(r, id, 0);
		natural += !rc && !is_deduced(&r->records[id].deduced);
	}
	cairn_retarget_free(r);
	return natural;
}

/* A thousand structs tell as much as all of a kernel. */
enum { GUESS_FROM_MAX = 1000 };

const struct cairn_abi *cairn_layout_guess_abi(const struct cairn_types *types, const uint32_t *ids,
					       size_t n, unsigned int pointer_size, bool big_endian)
{
	const struct cairn_abi *best = NULL, *abi;
	size_t most = 0;

	n = n < GUESS_FROM_MAX ? n : GUESS_FROM_MAX;
	for (size_t i = 0; (abi = cairn_abi_at(i)); i++) {
		if (abi->scalars[CAIRN_C_PTR].size != pointer_size ||
		    abi->big_endian != big_endian || abi->ms)
			continue;
		/* x32, which in all that is seen here is like ARM: no kernel is compiled for it. */
		if (pointer_size == 4 && abi->scalars[CAIRN_C_INT128].size)
			continue;
		size_t natural = count_natural(types, abi, ids, n);

		if (!best || natural > most) {
			best = abi;
			most = natural;
		}
	}
	return best;
}
