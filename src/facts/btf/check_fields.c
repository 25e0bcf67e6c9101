/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Structs with fields that the kernel knows: locks, lists, trees, reference counts
 *
 *	struct elem { struct bpf_list_node node; int x; };
 *	struct value { struct bpf_spin_lock lock;
 *		       struct bpf_list_head head __contains(elem, node); };
 *
 * BPF_BTF_LOAD looks for structs that have a member of one of six types, by name, and refuses all
 * types when it can make no record of the fields of one: a second lock, more fields than a record
 * has, an array of fields other than heads, roots and pointers, a head or root that does not say
 * what it contains, or that has no lock beside it, nodes of two kinds without a count, a node that
 * owns owners, a pointer to a kernel object (kptr) that is no struct. It passes over a field that
 * is not aligned or has another size, and refuses the struct when no field remains. A kernel knows
 * the fields that its version introduced (check.h). Until 6.10 it looks at the members themselves
 * only, then into arrays and nested structs. Until 7.1 it counts the locks of each struct alone;
 * 7.2 counts locks and reference counts over nested structs,
 * too. Tests ask the kernels that run; for the others the rules are those of their sources. Stable
 * releases that took a rule over are less or more strict than their number says.
 *
 * What a list or tree contains is owned by the struct of its head or root. So that no struct owns
 * itself, a node that owns others may own only what owns nothing, until 7.1. 7.2 counts the structs
 * of which each owns the next, by a list, a tree or a kptr, and takes up to 8 (7.2.13 was asked).
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

/* A node has a pointer to its owner since Linux 6.6. */
static const struct known {
	const char *name;
	uint32_t bytes, align, since, bytes_without_owner;
} known[] = {
	[FIELD_LOCK] = {"bpf_spin_lock", 4, 4, BTF_LINUX_FIELDS, 4},
	[FIELD_HEAD] = {"bpf_list_head", 16, 8, BTF_LINUX_FIELDS, 16},
	[FIELD_NODE] = {"bpf_list_node", 24, 8, BTF_LINUX_FIELDS, 16},
	[FIELD_ROOT] = {"bpf_rb_root", 16, 8, BTF_LINUX_TREES, 16},
	[FIELD_RB_NODE] = {"bpf_rb_node", 32, 8, BTF_LINUX_TREES, 24},
	[FIELD_COUNT] = {"bpf_refcount", 4, 4, BTF_LINUX_COUNTS, 4},
	/* it alone makes no record */
	[FIELD_RES_LOCK] = {"bpf_res_spin_lock", 4, 4, BTF_LINUX_RES_LOCKS, 4},
};

enum { RECORD_MAX = 11, OLD_RECORD_MAX = 10, NESTED_MAX = 4, LEVELS_MAX = 8 };

/* The fields of a struct and of the structs in it. */
struct fields {
	uint32_t n, locks, res_locks, counts, roots;
	uint32_t has;                      /* a bit for each enum field */
	bool is_repeated;                  /* an array of more than one */
	bool has_second;                   /* of a kind of which the kernel takes one */
	bool has_other_tag, has_no_struct; /* pointers with tags */
	bool has_no_contents;              /* a head or root that does not say what it contains */
	bool owns_owner;                   /* one that contains a struct with a head or root */
};

/* A kernel passes over the types that it does not know yet. */
static enum field field_of(const struct btf_check *c, const struct cairn_btf_type *t)
{
	for (unsigned int i = FIELD_LOCK;
	     t->kind == CAIRN_BTF_STRUCT && i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(t->name, known[i].name))
			return btf_kernel_lacks(c, known[i].since) ? FIELD_NONE : (enum field)i;
	return FIELD_NONE;
}

struct checking {
	struct btf_check *c;
	const struct cairn_btf *btf;
	/* by struct << 32 | member: the tag that gives its content; TWICE */
	struct map contains;
	/* by struct: owner_levels() of it, where the kernel takes that many */
	struct map levels;
	/* members that may still be checked: structs of structs of structs have many */
	uint64_t budget;
};

#define BIT(field) (1u << (field))
#define CONTAINS   "contains:"
#define TWICE      UINT64_MAX

/*
 * The type of an array's elements; how many there are in all. For kernels that do not look into
 * arrays the array itself.
 */
static uint64_t elements_of(const struct btf_check *c, uint32_t id, struct cairn_btf_type *ret)
{
	uint64_t n = 1;
	for (int depth = 0; depth < NESTED_MAX; depth++) {
		if (!cairn_btf_type(c->btf, id, ret))
			return 0;
		if (ret->kind != CAIRN_BTF_ARRAY || btf_kernel_lacks(c, BTF_LINUX_NESTED_FIELDS))
			return n;
		id = ret->words[0];
		n *= ret->words[2];
	}
	return 0;
}

/*
 * False: the limit is reached. It stays so, however deep the search is when it runs out.
 */
static bool spend(struct checking *k)
{
	if (!k->budget)
		return false;
	k->budget--;
	return true;
}

/* ---- pointers to kernel objects ---- */

enum kptr { KPTR_NONE, KPTR_SOUND, KPTR_OTHER_TAG, KPTR_NO_STRUCT };

static bool is_modifier(uint32_t kind)
{
	return kind == CAIRN_BTF_CONST || kind == CAIRN_BTF_VOLATILE ||
	       kind == CAIRN_BTF_RESTRICT || kind == CAIRN_BTF_TYPEDEF ||
	       kind == CAIRN_BTF_TYPE_TAG;
}

enum { KPTR = 1, PERCPU_KPTR = 3, UPTR = 4 };

/* A number for each tag of a pointer that the kernel knows; 0: another one. */
static int known_tag(const struct btf_check *c, const char *name)
{
	static const char *const tags[UPTR] = {"kptr", "kptr_untrusted", "percpu_kptr", "uptr"};
	int n = btf_kernel_before(c, BTF_LINUX_UPTRS) ? UPTR - 1 : UPTR;
	for (int i = 0; i < n; i++)
		if (!strcmp(name, tags[i]))
			return i + 1;
	return 0;
}

/*
 * The modifiers from @id to the type that a pointer points to: *ret_to is that, *ret_tag the tag
 * that the kernel knows.
 */
static bool follow_tags(const struct btf_check *c, uint32_t id, struct cairn_btf_type *ret_to,
			int *ret_tag)
{
	*ret_tag = 0;
	for (uint32_t n = 0; n < c->btf->end_id; n++) {
		*ret_to = (struct cairn_btf_type){.kind = CAIRN_BTF_VOID};
		if (!id || !cairn_btf_type(c->btf, id, ret_to) || !is_modifier(ret_to->kind))
			return true;
		int tag = ret_to->kind == CAIRN_BTF_TYPE_TAG && !ret_to->kflag
				  ? known_tag(c, ret_to->name)
				  : 0;
		if (tag && *ret_tag && tag != *ret_tag)
			return false;
		*ret_tag = tag ? tag : *ret_tag;
		id = ret_to->ref;
	}
	return false;
}

/*
 * "struct task_struct __kptr *p"
 *
 * Linux before 6.12 looks for them in the values of maps only, when a map is made. Linux before 7.2
 * wants one tag that it knows, right after the pointer. 7.2 passes over other tags and wants that
 * all that it knows are the same. KPTR_SOUND: *@ret_to is what it points to, *@ret_tag its tag.
 */
static enum kptr kptr_target(const struct btf_check *c, const struct cairn_btf_type *m,
			     struct cairn_btf_type *ret_to, int *ret_tag)
{
	const struct cairn_btf *btf = c->btf;
	struct cairn_btf_type pointer = *m, first = {.kind = CAIRN_BTF_VOID}, second = first;
	bool wants_one = btf_kernel_before(c, BTF_LINUX_TAG_ORDER);
	if (btf_kernel_lacks(c, BTF_LINUX_KPTRS))
		return KPTR_NONE;
	if (pointer.kind == CAIRN_BTF_VOLATILE && !cairn_btf_type(btf, pointer.ref, &pointer))
		return KPTR_NONE;
	if (pointer.kind != CAIRN_BTF_PTR || !cairn_btf_type(btf, pointer.ref, &first))
		return KPTR_NONE;
	bool has_tag = first.kind == CAIRN_BTF_TYPE_TAG && !first.kflag;
	if (wants_one && !has_tag)
		return KPTR_NONE;
	if (wants_one && (!known_tag(c, first.name) || (cairn_btf_type(btf, first.ref, &second) &&
							second.kind == CAIRN_BTF_TYPE_TAG)))
		return KPTR_OTHER_TAG;
	if (!follow_tags(c, pointer.ref, ret_to, ret_tag))
		return KPTR_OTHER_TAG;
	if (!*ret_tag || *ret_tag == UPTR)
		return KPTR_NONE;
	return ret_to->kind == CAIRN_BTF_STRUCT ? KPTR_SOUND : KPTR_NO_STRUCT;
}

static enum kptr kptr_of(const struct btf_check *c, const struct cairn_btf_type *m)
{
	struct cairn_btf_type to;
	int tag;
	return kptr_target(c, m, &to, &tag);
}

/* ---- the contents of lists and trees ---- */

static int note_tag(struct checking *k, const struct cairn_btf_type *t)
{
	uint64_t key = (uint64_t)t->ref << 32 | t->words[0], before;
	if (t->kind != CAIRN_BTF_DECL_TAG || strncmp(t->name, CONTAINS, strlen(CONTAINS)) != 0)
		return 0;
	return map_put(&k->contains, key, map_get(&k->contains, key, &before) ? TWICE : t->id);
}

/*
 * The struct of "contains:elem:node" if it has a member of that name that can be in such a head or
 * root; else 0.
 */
static uint32_t content_named(struct checking *k, const char *text, enum field head)
{
	char name[BTF_KERNEL_NAME_MAX + 1];
	const char *from = text + strlen(CONTAINS), *colon = strchr(from, ':');
	struct cairn_btf_type t, m;
	size_t n = colon ? (size_t)(colon - from) : sizeof(name);
	if (n >= sizeof(name))
		return 0;
	memcpy(name, from, n);
	name[n] = '\0';
	uint32_t id = cairn_btf_find(k->btf, name, CAIRN_BTF_STRUCT, 0);
	if (!id || !cairn_btf_type(k->btf, id, &t))
		return 0;
	for (uint32_t i = 0; i < t.vlen && spend(k); i++) {
		struct cairn_btf_member member = cairn_btf_member(&t, i);
		if (!strcmp(cairn_btf_string(k->btf, member.name_off), colon + 1) &&
		    cairn_btf_type(k->btf, member.type, &m))
			return field_of(k->c, &m) ==
					       (head == FIELD_HEAD ? FIELD_NODE : FIELD_RB_NODE)
				       ? id
				       : 0;
	}
	return 0;
}

/* The struct that a head or root contains, if exactly one tag of it gives that; else 0. */
static uint32_t content_of(struct checking *k, uint32_t id, uint32_t member, enum field head)
{
	struct cairn_btf_type tag;
	uint64_t found;
	if (!map_get(&k->contains, (uint64_t)id << 32 | member, &found) || found == TWICE ||
	    !cairn_btf_type(k->btf, (uint32_t)found, &tag))
		return 0;
	return content_named(k, tag.name, head);
}

/* ---- fields ---- */

/* Linux before 7.2 counts the members of each struct alone. */
static bool is_second(const struct checking *k, const struct fields *f)
{
	bool counts_once = !btf_kernel_lacks(k->c, BTF_LINUX_UNIQUE_FIELDS);
	return f->locks > 1 || f->res_locks > 1 || (counts_once && f->counts > 1);
}

/*
 * Whether the kernel passes over a field: it has another size, or is not aligned within the struct
 * that has it.
 */
static bool is_passed_over(const struct btf_check *c, enum field f, const struct cairn_btf_type *m,
			   uint32_t bit_off)
{
	bool has_owner = !btf_kernel_lacks(c, BTF_LINUX_OWNED_NODES);
	uint32_t bytes = has_owner ? known[f].bytes : known[f].bytes_without_owner;
	return m->ref != bytes || bit_off % (8 * known[f].align);
}

/*
 * The addition of the member @f. One that is passed over counts for the rule of one lock all the
 * same.
 */
static struct fields one_field(enum field f, bool is_passed_over)
{
	struct fields ret = {.locks = f == FIELD_LOCK,
			     .res_locks = f == FIELD_RES_LOCK,
			     .counts = f == FIELD_COUNT};
	if (!is_passed_over) {
		ret.n = 1;
		ret.roots = f == FIELD_HEAD || f == FIELD_ROOT;
		ret.has = BIT(f);
	}
	return ret;
}

/* Whether a struct, or one in it, has a head or root. */
static bool is_owner(struct checking *k, uint32_t id, int depth)
{
	struct cairn_btf_type t, m;
	if (!cairn_btf_type(k->btf, id, &t))
		return false;
	for (uint32_t i = 0; i < t.vlen && depth < NESTED_MAX && spend(k); i++) {
		struct cairn_btf_member member = cairn_btf_member(&t, i);
		enum field f = elements_of(k->c, member.type, &m) ? field_of(k->c, &m) : FIELD_NONE;
		if (f == FIELD_HEAD || f == FIELD_ROOT) {
			if (!is_passed_over(k->c, f, &m, member.bit_off))
				return true;
		} else if (!f && m.kind == CAIRN_BTF_STRUCT &&
			   !btf_kernel_lacks(k->c, BTF_LINUX_NESTED_FIELDS) &&
			   is_owner(k, m.id, depth + 1)) {
			return true;
		}
	}
	return false;
}

static void add_contents(struct checking *k, uint32_t content, struct fields *to)
{
	to->has_no_contents = !content;
	to->owns_owner = content && is_owner(k, content, 0);
}

static void add_fields(struct fields *to, const struct fields *from)
{
	to->n += from->n;
	to->locks += from->locks;
	to->res_locks += from->res_locks;
	to->counts += from->counts;
	to->roots += from->roots;
	to->has |= from->has;
	to->is_repeated |= from->is_repeated;
	to->has_second |= from->has_second;
	to->has_other_tag |= from->has_other_tag;
	to->has_no_struct |= from->has_no_struct;
	to->has_no_contents |= from->has_no_contents;
	to->owns_owner |= from->owns_owner;
}

static struct fields one_pointer(const struct btf_check *c, const struct cairn_btf_type *m)
{
	enum kptr found = kptr_of(c, m);
	return (struct fields){.n = found != KPTR_NONE,
			       .has_other_tag = found == KPTR_OTHER_TAG,
			       .has_no_struct = found == KPTR_NO_STRUCT};
}

/* The fields of @t and of structs in it, each as often as there are of it. */
static void collect(struct checking *k, const struct cairn_btf_type *t, int depth,
		    struct fields *ret)
{
	struct fields own = {0}, nested = {0};
	for (uint32_t i = 0; i < t->vlen && depth < NESTED_MAX && spend(k); i++) {
		struct cairn_btf_member member = cairn_btf_member(t, i);
		struct cairn_btf_type m;
		struct fields inside = {0};
		uint64_t n = elements_of(k->c, member.type, &m);
		enum field f = n ? field_of(k->c, &m) : FIELD_NONE;
		if (!n)
			continue;
		if (f)
			inside = one_field(f, is_passed_over(k->c, f, &m, member.bit_off));
		else if (m.kind == CAIRN_BTF_STRUCT &&
			 !btf_kernel_lacks(k->c, BTF_LINUX_NESTED_FIELDS))
			collect(k, &m, depth + 1, &inside);
		else if (member.bit_off % 64 == 0)
			inside = one_pointer(k->c, &m);
		if (f && inside.roots)
			add_contents(k, content_of(k, t->id, i, f), &inside);
		/* Pointers, heads and roots are repeated, and nothing else. */
		inside.is_repeated |= n > 1 && inside.has & ~(BIT(FIELD_HEAD) | BIT(FIELD_ROOT));
		inside.n = inside.n && n > RECORD_MAX ? RECORD_MAX + 1 : inside.n * (uint32_t)n;
		add_fields(f ? &own : &nested, &inside);
	}
	own.has_second = is_second(k, &own);
	add_fields(&own, &nested);
	if (!btf_kernel_lacks(k->c, BTF_LINUX_UNIQUE_FIELDS))
		own.has_second |= is_second(k, &own);
	*ret = own;
}

/* ---- ownership ---- */

/* A member of its own of one of the six types, or a kptr. */
static bool has_record(const struct btf_check *c, const struct cairn_btf_type *t)
{
	for (uint32_t i = 0; i < t->vlen; i++) {
		struct cairn_btf_type m;
		if (!cairn_btf_type(c->btf, cairn_btf_member(t, i).type, &m))
			continue;
		enum field f = field_of(c, &m);
		if ((f && f != FIELD_RES_LOCK) || kptr_of(c, &m) == KPTR_SOUND)
			return true;
	}
	return false;
}

/* The struct that a pointer owns: that of a kptr or percpu_kptr; 0: none that has a record. */
static uint32_t owned_by_pointer(const struct btf_check *c, const struct cairn_btf_type *m)
{
	struct cairn_btf_type to;
	int tag;
	if (kptr_target(c, m, &to, &tag) != KPTR_SOUND || (tag != KPTR && tag != PERCPU_KPTR))
		return 0;
	return has_record(c, &to) ? to.id : 0;
}

static uint32_t owner_levels(struct checking *k, uint32_t id, uint32_t left);

/* The most levels that a struct owns by its members and those of the structs in it. */
static uint32_t owned_levels(struct checking *k, uint32_t id, int depth, uint32_t left)
{
	struct cairn_btf_type t, m;
	uint32_t most = 0;
	if (!cairn_btf_type(k->btf, id, &t))
		return 0;
	for (uint32_t i = 0; i < t.vlen && depth < NESTED_MAX && most <= left && spend(k); i++) {
		struct cairn_btf_member member = cairn_btf_member(&t, i);
		enum field f = elements_of(k->c, member.type, &m) ? field_of(k->c, &m) : FIELD_NONE;
		bool is_root = (f == FIELD_HEAD || f == FIELD_ROOT) &&
			       !is_passed_over(k->c, f, &m, member.bit_off);
		uint32_t owned = is_root                          ? content_of(k, id, i, f)
				 : !f && member.bit_off % 64 == 0 ? owned_by_pointer(k->c, &m)
								  : 0;
		uint32_t n = owned ? owner_levels(k, owned, left)
			     : !f && m.kind == CAIRN_BTF_STRUCT
				     ? owned_levels(k, m.id, depth + 1, left)
				     : 0;
		most = n > most ? n : most;
	}
	return most;
}

/*
 * The longest chain of structs from @id on of which each owns the next; more than @left if it is
 * longer than that, as a circle is.
 */
static uint32_t owner_levels(struct checking *k, uint32_t id, uint32_t left)
{
	uint64_t found;
	if (!left)
		return 1;
	if (map_get(&k->levels, id, &found))
		return (uint32_t)found;
	uint32_t n = 1 + owned_levels(k, id, 0, left - 1);
	/* A chain that was cut is not kept. Without memory it is followed once more. */
	if (n <= left)
		map_put(&k->levels, id, n);
	return n;
}

/* ---- structs ---- */

static void check_ownership(struct checking *k, const struct cairn_btf_type *t,
			    const struct fields *f)
{
	if (!btf_kernel_lacks(k->c, BTF_LINUX_OWNER_LEVELS)) {
		if (owner_levels(k, t->id, LEVELS_MAX) > LEVELS_MAX)
			btf_broken(k->c, t->id,
				   "STRUCT: it owns itself, or more than %d structs follow of "
				   "which each owns the next by a bpf_list_head, bpf_rb_root or "
				   "kptr; a kernel takes no such ownership (-ELOOP)",
				   LEVELS_MAX - 1);
	} else if (f->owns_owner && f->has & (BIT(FIELD_NODE) | BIT(FIELD_RB_NODE))) {
		btf_broken(k->c, t->id,
			   "STRUCT: it is a node and its bpf_list_head or bpf_rb_root contains a "
			   "struct that has one, too; a kernel takes no such ownership (-ELOOP)");
	}
}

static void check_struct(struct checking *k, const struct cairn_btf_type *t)
{
	struct btf_check *c = k->c;
	struct fields f = {0};
	collect(k, t, 0, &f);
	bool has_lock = f.has & (BIT(FIELD_LOCK) | BIT(FIELD_RES_LOCK));
	uint32_t max = btf_kernel_before(c, BTF_LINUX_ELEVEN_FIELDS) ? OLD_RECORD_MAX : RECORD_MAX;
	if (!f.n)
		btf_broken(c, t->id,
			   "STRUCT: a lock, node or other member that the kernel knows has another "
			   "size or is not aligned, "
			   "and no such member is sound");
	if (f.has_second)
		btf_broken(c, t->id,
			   "STRUCT: more than one bpf_spin_lock, bpf_res_spin_lock or "
			   "bpf_refcount; a kernel takes one");
	else if (f.has & BIT(FIELD_LOCK) && f.has & BIT(FIELD_RES_LOCK))
		btf_broken(c, t->id, "STRUCT: locks of two kinds");
	if (f.n > max)
		btf_broken(c, t->id,
			   "STRUCT: %u locks, nodes and other fields that the kernel knows; it "
			   "takes %u",
			   f.n, max);
	if (f.has_other_tag)
		btf_broken(c, t->id,
			   "STRUCT: a pointer with type tags that are not one of kptr, "
			   "kptr_untrusted, percpu_kptr, uptr, "
			   "beside fields that the kernel knows");
	if (f.has_no_struct)
		btf_broken(c, t->id, "STRUCT: a kptr that points to what is no STRUCT");
	if (f.is_repeated)
		btf_broken(c, t->id,
			   "STRUCT: an array of fields that the kernel knows, which it does not "
			   "repeat");
	if (f.has & BIT(FIELD_NODE) && f.has & BIT(FIELD_RB_NODE) && !(f.has & BIT(FIELD_COUNT)) &&
	    !btf_kernel_lacks(c, BTF_LINUX_COUNTS))
		btf_broken(c, t->id,
			   "STRUCT: a bpf_list_node and a bpf_rb_node without a bpf_refcount");
	if (f.roots && !has_lock)
		btf_broken(c, t->id,
			   "STRUCT: a bpf_list_head or bpf_rb_root without a bpf_spin_lock");
	check_ownership(k, t, &f);
	if (f.has_no_contents)
		btf_broken(c, t->id,
			   "STRUCT: a bpf_list_head or bpf_rb_root has no tag "
			   "\"contains:STRUCT:MEMBER\" of a node");
}

static bool has_known_types(const struct btf_check *c)
{
	struct cairn_btf_type t;
	for (uint32_t id = 1; id < c->btf->end_id; id++)
		if (cairn_btf_type(c->btf, id, &t) &&
		    (field_of(c, &t) || kptr_of(c, &t) == KPTR_SOUND))
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
	if (btf_kernel_lacks(c, BTF_LINUX_FIELDS) || !has_known_types(c))
		return 0;
	for (uint32_t id = c->btf->start_id; id < c->btf->end_id && rc >= 0; id++)
		rc = cairn_btf_type(c->btf, id, &t) ? note_tag(&k, &t) : 0;
	for (uint32_t id = c->btf->start_id; id < c->btf->end_id && rc >= 0; id++)
		if (cairn_btf_type(c->btf, id, &t) && t.kind == CAIRN_BTF_STRUCT &&
		    has_record(c, &t))
			check_struct(&k, &t);
	if (!k.budget)
		btf_broken(c, 0,
			   "structs in structs with too many members to be followed for locks, "
			   "lists and trees");
	map_fini(&k.contains);
	map_fini(&k.levels);
	return rc < 0 ? rc : 0;
}
