/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Types that the base only declares and the program defines
 *
 *	base     struct user { struct s *p; }  struct s;
 *	program  struct user { struct s *p; }  struct s { int x; };  struct far { struct user *u; }
 *
 * By their names the two "struct user" are one class, and so is the pointer. But a record of the
 * base cannot change: its pointer leads to a declaration. A reader that followed it from the
 * program's types would not find the definition. So a struct that points to such a definition is
 * written again, and so are the pointers to both. Structs that only lead to such a struct stay the
 * base's, because half of a kernel's structs do. Dedup decides the same (btf/dedup_defined.c).
 */
#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/vec.h"
#include "btfgen/base.h"
#include "btfgen/users.h"

struct list {
	VEC(uint32_t) v;
};

struct forgetting {
	struct classes *c;
	struct users users;
	struct list todo; /* pointers and similar types; their users are still to be visited */
	struct list ends; /* structs that are written again */
};

/* Per group: the sides that define it. */
enum { IN_BASE = 1, IN_PROGRAM = 2 };

/* A class with members and a name to find them by ends a chain of references. */
static bool is_end(const struct type_class *k)
{
	return k->group;
}

/*
 * The users of a class or group: pointers and similar types, to be followed, and when @ends also
 * the structs.
 */
static int forget(struct forgetting *f, const struct user_list *users, uint32_t i, bool ends)
{
	for (uint32_t k = users->first[i]; k < users->first[i + 1]; k++) {
		struct type_class *user = &f->c->v.p[users->from[k]];
		if (!user->base_id || (is_end(user) && !ends))
			continue;
		user->base_id = 0;
		struct list *to = is_end(user) ? &f->ends : &f->todo;
		if (!VEC_ADD(&to->v, users->from[k]))
			return -ENOMEM;
	}
	return 0;
}

static int forget_users(struct forgetting *f, uint32_t group, bool ends)
{
	int rc = forget(f, &f->users.of_group, group, ends);
	while (rc == 0 && f->todo.v.n)
		rc = forget(f, &f->users.of_class, f->todo.v.p[--f->todo.v.n], ends);
	return rc;
}

static uint8_t *find_definers(const struct classes *c)
{
	uint8_t *by = calloc(c->groups.n + 1, sizeof(*by));
	for (size_t i = 0; by && i < c->v.n; i++)
		if (c->v.p[i].group)
			by[c->v.p[i].group - 1] |= c->v.p[i].base_id ? IN_BASE : IN_PROGRAM;
	return by;
}

static int forget_all(struct forgetting *f, const uint8_t *by)
{
	int rc = users_find(f->c, &f->users);
	for (uint32_t group = 0; rc == 0 && group < f->c->groups.n; group++)
		if (by[group] == IN_PROGRAM)
			rc = forget_users(f, group, true);
	for (size_t i = 0; rc == 0 && i < f->ends.v.n; i++)
		rc = forget_users(f, f->c->v.p[f->ends.v.p[i]].group - 1, false);
	return rc;
}

int base_keep_known(struct classes *c, struct cairn_err *err)
{
	struct forgetting f = {.c = c};
	uint8_t *by = find_definers(c);
	int rc = by ? forget_all(&f, by) : -ENOMEM;
	users_fini(&f.users);
	VEC_FREE(&f.todo.v);
	VEC_FREE(&f.ends.v);
	free(by);
	return rc < 0 ? err_nomem(err, "the types of a base") : 0;
}
