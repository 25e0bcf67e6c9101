/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Qualified names
 *
 * "std::vector<int>::size" is the name of a DIE after the names of the scopes around it. A
 * definition outside its class, a concrete body and an inlined copy refer to the DIE in the right
 * scope, at the end of the chain of origins.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "dwarf/constants.h"
#include "dwarf/scopes.h"

/* Text that is cut at the end of its buffer; its length is the uncut one's. */
struct text {
	char *buf;
	size_t size, len;
};

static void add(struct text *t, const char *s)
{
	size_t n = strlen(s);
	if (t->len < t->size) {
		size_t room = t->size - t->len - 1, fits = n < room ? n : room;
		memcpy(t->buf + t->len, s, fits);
		t->buf[t->len + fits] = 0;
	}
	t->len += n;
}

static void add_function(struct text *t, const struct dwarf *dw, dw_off off)
{
	struct dw_die die;
	const char *name =
		dw_die_at(dw, off, &die, NULL) > 0 ? dw_str_deep(&die, DW_AT_name) : NULL;
	if (!name)
		return;
	add(t, name);
	add(t, "()::");
}

static void add_scope(struct text *t, const struct dwarf *dw, const struct dw_scope *s)
{
	bool is_space = s->tag == DW_TAG_namespace || s->tag == DW_TAG_module;
	if (s->tag == DW_TAG_subprogram) {
		add_function(t, dw, s->lo);
		return;
	}
	add(t, s->name ? s->name : is_space ? "(anonymous namespace)" : "(anonymous)");
	add(t, "::");
}

/* The DIE at the end of the chain of origins: the one that stands in the scope it belongs to. */
static int last_origin(const struct dw_die *die, struct dw_die *ret, struct cairn_err *err)
{
	*ret = *die;
	for (int link = 0; link <= DW_ORIGIN_MAX; link++) {
		struct dw_die origin;
		int rc = dw_die_origin(ret, &origin, err);
		if (rc <= 0)
			return rc;
		*ret = origin;
	}
	return err_set(err, -EBADMSG, "%s: the origins of the DIE at 0x%" PRIx64 " form a ring",
		       die->unit->file->path, die->off);
}

int dw_qualified_name(const struct dwarf *dw, const struct dw_die *die, char *buf, size_t size)
{
	const struct dw_scope *around[DW_SCOPES_MAX];
	struct text t = {.buf = buf, .size = size};
	struct dw_die last;
	int rc = last_origin(die, &last, NULL);
	if (size)
		buf[0] = 0;
	int n = rc < 0 ? rc : dw_scopes_around(dw, last.off, around, NULL);
	for (int i = n; i-- > 0;)
		add_scope(&t, dw, around[i]);
	const char *name = dw_str_deep(die, DW_AT_name);
	add(&t, name ? name : "");
	return n < 0 ? n : t.len > INT32_MAX ? -EBADMSG : (int)t.len;
}
