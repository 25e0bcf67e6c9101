/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules about several records at once: loops and sizes
 *
 * Two kinds of loop mean nothing. A struct that has itself as a member, through arrays and
 * qualifiers, has no size; a pointer or qualifier that leads to itself without a struct in between
 * is no type. A struct that has a pointer to itself is the usual case and fine.
 *
 * To find structs that contain themselves, we walk the types that values consist of, depth first.
 * The stack is our own: nesting may be as deep as the number of records. A type is left when all of
 * its parts have been left, and then its size is known. To find loops of pointers and qualifiers,
 * we follow their chains and mark them: each has one successor.
 *
 * Cost: linear in records and members; 13 bytes per id of the whole chain of blobs.
 */
#include <errno.h>
#include <stdlib.h>

#include <cairn/text.h>

#include "base/vec.h"
#include "btf/check.h"

#define KINDS_QUALIFIER                                                                            \
	(KIND(TYPEDEF) | KIND(VOLATILE) | KIND(CONST) | KIND(RESTRICT) | KIND(TYPE_TAG))

static bool is(const struct cairn_btf_type *t, uint64_t kinds)
{
	return t->kind < CAIRN_BTF_N_KINDS && kinds >> t->kind & 1;
}

/* "unsigned long" is as wide as a pointer wherever Linux runs. */
static uint32_t pointer_bytes(const struct cairn_btf *btf)
{
	static const char *const longs[] = {"long unsigned int", "unsigned long", "long int",
					    "long"};
	struct cairn_btf_type t;
	for (size_t i = 0; i < sizeof(longs) / sizeof(longs[0]); i++)
		if (cairn_btf_type(btf, cairn_btf_find(btf, longs[i], CAIRN_BTF_INT, 0), &t))
			return t.ref == 4 ? 4 : 8;
	return 8;
}

/* ---- sizes ---- */

/* The type without its typedefs and qualifiers; they form no loop here. */
static struct cairn_btf_type plain(const struct cairn_btf *btf, uint32_t id)
{
	struct cairn_btf_type t = {0};
	while (cairn_btf_type(btf, id, &t) && is(&t, KINDS_QUALIFIER)) {
		id = t.ref;
		t = (struct cairn_btf_type){0};
	}
	return t;
}

/* An INT with the bits of 1, 2, 4, 8 or 16 bytes: the kernel calls this regular. */
static bool is_regular(const struct cairn_btf_type *t)
{
	uint32_t bits = CAIRN_BTF_INT_BITS(t->words[0]);
	return bits >= 8 && bits <= 128 && (bits & (bits - 1)) == 0 &&
	       !CAIRN_BTF_INT_OFFSET(t->words[0]);
}

static void check_bit_field(struct btf_check *c, const struct cairn_btf_type *t, uint32_t i,
			    const struct cairn_btf_member *m, const struct cairn_btf_type *type)
{
	uint32_t bits =
		type->kind == CAIRN_BTF_INT ? CAIRN_BTF_INT_BITS(type->words[0]) : 8 * type->ref;
	if (!is(type, KIND(INT) | KIND(ENUM) | KIND(ENUM64)))
		btf_broken(c, t->id, "%s: member %u is a bit-field, but its type a %s",
			   btf_kind_name(t->kind), i, btf_kind_name(type->kind));
	else if (c->kernel && type->kind == CAIRN_BTF_INT && !is_regular(type))
		btf_broken(c, t->id, "%s: member %u is a bit-field of an INT that has %s",
			   btf_kind_name(t->kind), i,
			   cairn_counted(CAIRN_BTF_INT_BITS(type->words[0]), "bit").text);
	else if (m->bit_size > bits)
		btf_broken(c, t->id, "%s: member %u has %s of a type that has %u",
			   btf_kind_name(t->kind), i, cairn_counted(m->bit_size, "bit").text, bits);
}

static void check_member(struct btf_check *c, const struct cairn_btf_type *t, uint32_t i)
{
	struct cairn_btf_member m = cairn_btf_member(t, i);
	struct cairn_btf_type type = plain(c->btf, m.type);
	uint64_t bytes = c->bytes[m.type], end = m.bit_off + 8 * bytes;
	if (bytes == BTF_NO_SIZE) {
		btf_broken(c, t->id, "%s: member %u is a %s, which has no size",
			   btf_kind_name(t->kind), i, btf_kind_name(type.kind));
		return;
	}
	if (m.bit_size) {
		check_bit_field(c, t, i, &m, &type);
		return;
	}
	/* Without kind_flag, the member's INT has the width and bit offset of a bit-field. */
	if (type.kind == CAIRN_BTF_INT && !t->kflag)
		end = m.bit_off + CAIRN_BTF_INT_OFFSET(type.words[0]) +
		      CAIRN_BTF_INT_BITS(type.words[0]);
	else if (m.bit_off % 8)
		btf_broken(c, t->id, "%s: member %u is at bit %u, not at a byte",
			   btf_kind_name(t->kind), i, m.bit_off);
	/*
	 * A 64-bit kernel demands this of all BTF, also of BTF for 32-bit machines that align
	 * doubles to 4 bytes.
	 */
	if (c->kernel && type.kind == CAIRN_BTF_FLOAT && type.ref &&
	    m.bit_off % (8 * (type.ref < 8 ? type.ref : 8)))
		btf_broken(c, t->id, "%s: member %u is a FLOAT that is not aligned",
			   btf_kind_name(t->kind), i);
	if (end > 8 * (uint64_t)t->ref)
		btf_broken(c, t->id, "%s: member %u ends after its %s", btf_kind_name(t->kind), i,
			   cairn_counted(t->ref, "byte").text);
}

static void check_array(struct btf_check *c, const struct cairn_btf_type *t)
{
	struct cairn_btf_type elem = plain(c->btf, t->words[0]), index = plain(c->btf, t->words[1]);
	if (index.kind != CAIRN_BTF_INT || (c->kernel && !is_regular(&index)))
		btf_broken(c, t->id, "ARRAY: its index is of a type that does not count");
	if (c->kernel && elem.kind == CAIRN_BTF_INT && !is_regular(&elem))
		btf_broken(c, t->id, "ARRAY: its elements are parts of a byte");
	if (c->kernel && c->bytes[t->words[0]] != BTF_NO_SIZE && c->bytes[t->id] > UINT32_MAX)
		btf_broken(c, t->id, "ARRAY: more than 4 GiB");
}

static uint64_t array_bytes(struct btf_check *c, const struct cairn_btf_type *t)
{
	uint64_t elem = c->bytes[t->words[0]], n = t->words[2];
	bool own = t->id >= c->btf->start_id;
	if (elem == BTF_NO_SIZE) {
		if (own)
			btf_broken(c, t->id, "ARRAY: its element has no size");
		return BTF_NO_SIZE;
	}
	/* So that sums and products of sizes fit 64 bits; x86-64's addresses have at most 57. */
	if (n && elem > (1ull << 57) / n) {
		btf_broken(c, t->id, "ARRAY: more than 2^57 bytes");
		return 0;
	}
	return elem * n;
}

/* The size of @t. The sizes of its parts are known already. */
static uint64_t size_of(struct btf_check *c, const struct cairn_btf_type *t)
{
	if (is(t, KIND(INT) | KIND(STRUCT) | KIND(UNION) | KIND(ENUM) | KIND(FLOAT) | KIND(ENUM64)))
		return t->ref;
	if (t->kind == CAIRN_BTF_PTR)
		return c->pointer_bytes;
	if (t->kind == CAIRN_BTF_ARRAY)
		return array_bytes(c, t);
	return is(t, KINDS_QUALIFIER) ? c->bytes[t->ref] : BTF_NO_SIZE;
}

/*
 * The @i-th type that a type consists of, an array's index included; false when there are no more.
 */
static bool part_of(const struct cairn_btf_type *t, uint32_t i, uint32_t *ret)
{
	if (is(t, KIND(STRUCT) | KIND(UNION))) {
		if (i < t->vlen)
			*ret = cairn_btf_member(t, i).type;
		return i < t->vlen;
	}
	if (t->kind == CAIRN_BTF_ARRAY) {
		if (i < 2)
			*ret = t->words[i];
		return i < 2;
	}
	if (i == 0 && is(t, KINDS_QUALIFIER))
		*ret = t->ref;
	return i == 0 && is(t, KINDS_QUALIFIER);
}

enum { NOT_SEEN, ON_STACK, DONE };

struct frame {
	uint32_t id, next; /* part to look at next */
};

struct walk {
	uint8_t *state; /* by id */
	VEC(struct frame) stack;
};

static void leave(struct btf_check *c, struct walk *w, const struct cairn_btf_type *t)
{
	c->bytes[t->id] = size_of(c, t);
	w->state[t->id] = DONE;
	w->stack.n--;
	if (t->id < c->btf->start_id)
		return;
	if (t->kind == CAIRN_BTF_ARRAY)
		check_array(c, t);
	for (uint32_t i = 0; is(t, KIND(STRUCT) | KIND(UNION)) && i < t->vlen; i++)
		check_member(c, t, i);
}

static int enter(struct walk *w, uint32_t id)
{
	struct frame f = {.id = id};
	w->state[id] = ON_STACK;
	return VEC_ADD(&w->stack, f) ? 0 : -ENOMEM;
}

/* An id that does not exist ends the walk: the base is damaged, and has to be checked first. */
static int step(struct btf_check *c, struct walk *w)
{
	struct frame *top = &w->stack.p[w->stack.n - 1];
	struct cairn_btf_type t;
	uint32_t part;
	cairn_btf_type(c->btf, top->id, &t);
	if (!part_of(&t, top->next, &part)) {
		leave(c, w, &t);
		return 0;
	}
	if (part >= c->btf->end_id)
		return -EBADMSG;
	top->next++;
	if (w->state[part] == ON_STACK)
		btf_broken(c, t.id, "%s: it consists of itself, through id %u",
			   btf_kind_name(t.kind), part);
	return w->state[part] == NOT_SEEN && part ? enter(w, part) : 0;
}

static int check_sizes(struct btf_check *c)
{
	struct walk w = {.state = calloc(c->btf->end_id, 1)};
	int rc = w.state ? 0 : -ENOMEM;
	/* For the kernel's rules the sizes of everything in the bases are wanted too. */
	for (uint32_t id = c->kernel ? 1 : c->btf->start_id; rc == 0 && id < c->btf->end_id; id++) {
		if (w.state[id] == NOT_SEEN)
			rc = enter(&w, id);
		while (rc == 0 && w.stack.n)
			rc = step(c, &w);
	}
	free(w.state);
	VEC_FREE(&w.stack);
	return rc;
}

/* A variable is in its section with the size of its type; the kernel allows more, but not less. */
static void check_variables(struct btf_check *c, const struct cairn_btf_type *t)
{
	struct cairn_btf_type var;
	for (uint32_t i = 0; i < t->vlen; i++) {
		struct cairn_btf_secinfo v = cairn_btf_secinfo(t, i);
		if (!cairn_btf_type(c->btf, v.type, &var) || var.kind != CAIRN_BTF_VAR)
			continue;
		uint64_t bytes = c->bytes[var.ref];
		if (bytes != BTF_NO_SIZE && v.size < bytes)
			btf_broken(c, t->id, "DATASEC: '%.60s' has %s, its type %llu", var.name,
				   cairn_counted(v.size, "byte").text, (unsigned long long)bytes);
	}
}

static void check_parameters(struct btf_check *c, const struct cairn_btf_type *t)
{
	for (uint32_t i = 0; i < t->vlen; i++) {
		uint32_t type = cairn_btf_param(t, i).type;
		if (type && c->bytes[type] == BTF_NO_SIZE)
			btf_broken(c, t->id, "FUNC_PROTO: the type of parameter %u has no size", i);
	}
}

/* Only the kernel wants to know the size of everything that is passed or stored. */
static void check_users_of_sizes(struct btf_check *c)
{
	struct cairn_btf_type t;
	for (uint32_t id = c->btf->start_id; id < c->btf->end_id; id++) {
		cairn_btf_type(c->btf, id, &t);
		if (t.kind == CAIRN_BTF_DATASEC)
			check_variables(c, &t);
		else if (t.kind == CAIRN_BTF_FUNC_PROTO)
			check_parameters(c, &t);
		else if (t.kind == CAIRN_BTF_VAR && c->bytes[t.ref] == BTF_NO_SIZE)
			btf_broken(c, id, "VAR: its type has no size");
	}
}

/* ---- chains of pointers and qualifiers ---- */

/*
 * 0 at the end of a chain: a record that is no pointer or qualifier, or an id that does not exist.
 */
static uint32_t next_in_chain(const struct cairn_btf *btf, uint32_t id)
{
	struct cairn_btf_type t;
	return cairn_btf_type(btf, id, &t) && is(&t, KINDS_QUALIFIER | KIND(PTR)) ? t.ref : 0;
}

/* Checks the bases too, because the later checks rely on them. */
static int check_chains(struct btf_check *c)
{
	/* For each id, the first id of the walk that visited it; 0: none has. */
	uint32_t *mark = calloc(c->btf->end_id, sizeof(*mark));
	if (!mark)
		return -ENOMEM;
	for (uint32_t first = 1; first < c->btf->end_id; first++) {
		uint32_t id = first;
		for (; id && id < c->btf->end_id && !mark[id]; id = next_in_chain(c->btf, id))
			mark[id] = first;
		/*
		 * A walk that ends at its own mark went round; one that ends at the mark of another
		 * walk has its result.
		 */
		if (id && id < c->btf->end_id && mark[id] == first)
			btf_broken(c, id, "it leads back to itself, through no struct");
	}
	free(mark);
	return 0;
}

int btf_check_graph(struct btf_check *c)
{
	int rc = check_chains(c);
	if (rc < 0 || c->n_broken)
		return rc;
	c->bytes = malloc(c->btf->end_id * sizeof(*c->bytes));
	if (!c->bytes)
		return -ENOMEM;
	for (uint32_t id = 0; id < c->btf->end_id; id++)
		c->bytes[id] = BTF_NO_SIZE;
	c->pointer_bytes = pointer_bytes(c->btf);
	rc = check_sizes(c);
	if (rc == -EBADMSG) {
		btf_broken(c, 0, "the base is damaged; check it first");
		rc = 0;
	}
	if (rc == 0 && c->kernel && !c->n_broken)
		check_users_of_sizes(c);
	free(c->bytes);
	c->bytes = NULL;
	return rc;
}
