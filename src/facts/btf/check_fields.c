/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Structs with fields that the kernel knows: locks, lists, trees, reference counts
 *
 *	struct elem { struct bpf_list_node node; int x; };
 *	struct value { struct bpf_spin_lock lock;
 *		       struct bpf_list_head head __contains(elem, node); };
 *
 * BPF_BTF_LOAD searches for structs that have a member of one of six types, by name. It refuses all
 * types if it can make no record of the fields of one. The reasons are a field at an odd offset, a
 * second lock, more fields than a record has, an array of fields, a head or root without a tag for
 * its content or without a lock beside it, nodes of two kinds without a count, and a pointer to a
 * kernel object (kptr) that is no struct. The rules are stated from the behaviour of Linux 6.18,
 * which a test queries. Not stated here: the rules of ownership among the contents of lists.
 */
#include "btf/check.h"

#include <errno.h>
#include <string.h>

#include "base/map.h"

enum field {
	FIELD_NONE,
	FIELD_LOCK,
	FIELD_HEAD,
	FIELD_NODE,
	FIELD_ROOT,
	FIELD_RB_NODE,
	FIELD_COUNT,
	FIELD_RES_LOCK
};

static const struct known {
	const char *name;
	uint32_t bytes, align;
} known[] = {
	[FIELD_LOCK] = {"bpf_spin_lock", 4, 4},       [FIELD_HEAD] = {"bpf_list_head", 16, 8},
	[FIELD_NODE] = {"bpf_list_node", 24, 8},      [FIELD_ROOT] = {"bpf_rb_root", 16, 8},
	[FIELD_RB_NODE] = {"bpf_rb_node", 32, 8},     [FIELD_COUNT] = {"bpf_refcount", 4, 4},
	[FIELD_RES_LOCK] = {"bpf_res_spin_lock", 4, 4}, /* it alone makes no record */
};

enum { RECORD_MAX = 11, NESTED_MAX = 4 };

/* The fields of a struct. */
struct fields {
	uint32_t n, locks, roots;
	uint32_t has; /* a bit for each enum field */
	bool is_repeated; /* an array of more than one */
};

static enum field field_of(const struct cairn_btf_type *t)
{
	for (unsigned int i = FIELD_LOCK;
	     t->kind == CAIRN_BTF_STRUCT && i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(t->name, known[i].name))
			return (enum field)i;
	return FIELD_NONE;
}

struct checking {
	struct btf_check *c;
	const struct cairn_btf *btf;
	/* by struct << 32 | member: the tag that gives its content; TWICE */
	struct map contains;
	/* members that may still be looked at: structs of structs of structs have many */
	uint64_t budget;
};

#define BIT(field) (1u << (field))
#define CONTAINS "contains:"
#define TWICE UINT64_MAX

/* The type of an array's elements; how many there are in all. */
static uint64_t elements_of(const struct cairn_btf *btf, uint32_t id, struct cairn_btf_type *ret)
{
	uint64_t n = 1;
	for (int depth = 0; depth < NESTED_MAX; depth++) {
		if (!cairn_btf_type(btf, id, ret))
			return 0;
		if (ret->kind != CAIRN_BTF_ARRAY)
			return n;
		id = ret->words[0];
		n *= ret->words[2];
	}
	return 0;
}

/*
 * False: all that may be looked at was. It stays so, however deep the search is when it runs out.
 */
static bool spend(struct checking *k)
{
	if (!k->budget)
		return false;
	k->budget--;
	return true;
}

/* The fields of @t and of structs in it, each as often as there are of it. */
static void collect(struct checking *k, const struct cairn_btf_type *t, int depth,
		    struct fields *ret)
{
	for (uint32_t i = 0; i < t->vlen && depth < NESTED_MAX && spend(k); i++) {
		struct cairn_btf_type m;
		struct fields inside = {0};
		uint64_t n = elements_of(k->btf, cairn_btf_member(t, i).type, &m);
		enum field f = n ? field_of(&m) : FIELD_NONE;
		if (!n || m.kind != CAIRN_BTF_STRUCT)
			continue;
		if (!f)
			collect(k, &m, depth + 1, &inside);
		else if (m.ref == known[f].bytes)
			inside = (struct fields){.n = 1,
						 .locks = f == FIELD_LOCK,
						 .roots = f == FIELD_HEAD || f == FIELD_ROOT,
						 .has = BIT(f)};
		ret->n += inside.n;
		/* Only a struct's own locks are counted. */
		ret->locks += f ? inside.locks : 0;
		ret->roots += inside.roots;
		ret->has |= inside.has;
		ret->is_repeated |= inside.is_repeated || (n > 1 && inside.n);
	}
}

/* ---- what lists and trees contain ---- */

static int note_tag(struct checking *k, const struct cairn_btf_type *t)
{
	uint64_t key = (uint64_t)t->ref << 32 | t->words[0], before;
	if (t->kind != CAIRN_BTF_DECL_TAG || strncmp(t->name, CONTAINS, strlen(CONTAINS)) != 0)
		return 0;
	return map_put(&k->contains, key, map_get(&k->contains, key, &before) ? TWICE : t->id);
}

/* Whether "contains:elem:node" names a member of that struct that can be in such a head or root. */
static bool is_right(struct checking *k, const char *text, enum field head)
{
	char name[BTF_KERNEL_NAME_MAX + 1];
	const char *from = text + strlen(CONTAINS), *colon = strchr(from, ':');
	struct cairn_btf_type t, m;
	size_t n = colon ? (size_t)(colon - from) : sizeof(name);
	if (n >= sizeof(name))
		return false;
	memcpy(name, from, n);
	name[n] = '\0';
	uint32_t id = cairn_btf_find(k->btf, name, CAIRN_BTF_STRUCT, 0);
	if (!id || !cairn_btf_type(k->btf, id, &t))
		return false;
	for (uint32_t i = 0; i < t.vlen && spend(k); i++) {
		struct cairn_btf_member member = cairn_btf_member(&t, i);
		if (!strcmp(cairn_btf_string(k->btf, member.name_off), colon + 1) &&
		    cairn_btf_type(k->btf, member.type, &m))
			return field_of(&m) == (head == FIELD_HEAD ? FIELD_NODE : FIELD_RB_NODE);
	}
	return false;
}

/* True if exactly one tag of a head or root gives its content. */
static bool says_contents(struct checking *k, uint32_t id, uint32_t member, enum field head)
{
	struct cairn_btf_type tag;
	uint64_t found;
	return map_get(&k->contains, (uint64_t)id << 32 | member, &found) && found != TWICE &&
	       cairn_btf_type(k->btf, (uint32_t)found, &tag) && is_right(k, tag.name, head);
}

/* ---- structs ---- */

/* "struct task_struct __kptr *p": the tag stands between the pointer and its target. */
static bool is_kptr(const struct cairn_btf *btf, const struct cairn_btf_type *m, uint32_t *ret_to)
{
	static const char *const tags[] = {"kptr", "kptr_untrusted", "percpu_kptr", "uptr"};
	struct cairn_btf_type tag;
	if (m->kind != CAIRN_BTF_PTR || !cairn_btf_type(btf, m->ref, &tag) ||
	    tag.kind != CAIRN_BTF_TYPE_TAG)
		return false;
	*ret_to = tag.ref;
	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++)
		if (!strcmp(tag.name, tags[i]))
			return true;
	return false;
}

static void check_kptr(struct btf_check *c, const struct cairn_btf_type *t, uint32_t i,
		       const struct cairn_btf_type *m)
{
	struct cairn_btf_type to = {.kind = CAIRN_BTF_VOID};
	uint32_t id;
	if (!is_kptr(c->btf, m, &id))
		return;
	cairn_btf_type(c->btf, id, &to);
	if (to.kind != CAIRN_BTF_STRUCT)
		btf_broken(c, t->id,
			   "STRUCT: member %u, a kptr, points to a %s; it points to a STRUCT", i,
			   btf_kind_name(to.kind));
}

static void check_members(struct checking *k, const struct cairn_btf_type *t)
{
	struct btf_check *c = k->c;
	for (uint32_t i = 0; i < t->vlen; i++) {
		struct cairn_btf_member member = cairn_btf_member(t, i);
		struct cairn_btf_type m;
		cairn_btf_type(c->btf, member.type, &m);
		enum field f = field_of(&m);
		if (member.bit_off % 64 == 0)
			check_kptr(c, t, i, &m);
		if (!f || m.ref != known[f].bytes)
			continue;
		if (member.bit_off % (8 * known[f].align))
			btf_broken(c, t->id,
				   "STRUCT: member %u, a %s, is not at a multiple of %u bytes", i,
				   known[f].name, known[f].align);
		else if ((f == FIELD_HEAD || f == FIELD_ROOT) && !says_contents(k, t->id, i, f))
			btf_broken(c, t->id,
				   "STRUCT: member %u, a %s, has no tag \"contains:STRUCT:MEMBER\" "
				   "of a node",
				   i, known[f].name);
	}
}

static void check_struct(struct checking *k, const struct cairn_btf_type *t)
{
	struct btf_check *c = k->c;
	struct fields f = {0};
	collect(k, t, 0, &f);
	if (f.locks > 1)
		btf_broken(c, t->id, "STRUCT: %u members are a bpf_spin_lock; a kernel takes one",
			   f.locks);
	else if (f.locks && f.has & BIT(FIELD_RES_LOCK))
		btf_broken(c, t->id, "STRUCT: locks of two kinds");
	if (f.n > RECORD_MAX)
		btf_broken(c, t->id,
			   "STRUCT: %u locks, nodes and other fields that the kernel knows; it "
			   "takes %d",
			   f.n, RECORD_MAX);
	if (f.is_repeated && !btf_kernel_lacks(c, BTF_LINUX_NESTED_FIELDS))
		btf_broken(c, t->id,
			   "STRUCT: an array of fields that the kernel knows, which it does not "
			   "repeat");
	if (f.has & BIT(FIELD_NODE) && f.has & BIT(FIELD_RB_NODE) && !(f.has & BIT(FIELD_COUNT)))
		btf_broken(c, t->id,
			   "STRUCT: a bpf_list_node and a bpf_rb_node without a bpf_refcount");
	if (f.roots && !f.locks && !(f.has & BIT(FIELD_RES_LOCK)))
		btf_broken(c, t->id,
			   "STRUCT: a bpf_list_head or bpf_rb_root without a bpf_spin_lock");
	check_members(k, t);
}

/* A member of its own of one of the six types. */
static bool has_record(const struct cairn_btf *btf, const struct cairn_btf_type *t)
{
	for (uint32_t i = 0; i < t->vlen; i++) {
		struct cairn_btf_type m;
		enum field f = cairn_btf_type(btf, cairn_btf_member(t, i).type, &m) ? field_of(&m)
										    : FIELD_NONE;
		if (f && f != FIELD_RES_LOCK)
			return true;
	}
	return false;
}

static bool has_known_types(const struct cairn_btf *btf)
{
	struct cairn_btf_type t;
	for (uint32_t id = 1; id < btf->end_id; id++)
		if (cairn_btf_type(btf, id, &t) && field_of(&t))
			return true;
	return false;
}

int btf_check_fields(struct btf_check *c)
{
	/* Real types need a few times their number of members. */
	struct checking k = {
		.c = c, .btf = c->btf, .budget = UINT64_C(64) * (c->btf->n_words + 1024)};
	struct cairn_btf_type t;
	int rc = 0;
	if (btf_kernel_lacks(c, BTF_LINUX_FIELDS) || !has_known_types(c->btf))
		return 0;
	for (uint32_t id = c->btf->start_id; id < c->btf->end_id && rc >= 0; id++)
		rc = cairn_btf_type(c->btf, id, &t) ? note_tag(&k, &t) : 0;
	for (uint32_t id = c->btf->start_id; id < c->btf->end_id && rc >= 0; id++)
		if (cairn_btf_type(c->btf, id, &t) && t.kind == CAIRN_BTF_STRUCT &&
		    has_record(c->btf, &t))
			check_struct(&k, &t);
	if (!k.budget)
		btf_broken(c, 0,
			   "structs in structs with too many members to be followed for locks, "
			   "lists and trees");
	map_fini(&k.contains);
	return rc < 0 ? rc : 0;
}
