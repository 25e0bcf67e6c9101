/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names of a large file are not read again while it is the same file
 *
 * The memos are extended attributes of a cached sidecar: which file was read, and the number of its
 * names. Without extended attributes each use reads the names.
 */
#include "sidecar/names_memo.h"

#include <sys/xattr.h>
#include <time.h>

static const char *const attributes[] = {
	[NAMES_OF_BINARY] = "user.cairn.names",
	[NAMES_OF_DEBUG_FILE] = "user.cairn.debug_names",
};

enum { SMALL = 1 << 20 };

struct memo {
	uint64_t dev, ino, size;
	int64_t changed_s;
	uint32_t changed_ns, names;
};
_Static_assert(sizeof(struct memo) == 40, "a memo has no holes");

static struct memo memo_of(const struct elf_origin *o)
{
	return (struct memo){.dev = o->dev,
			     .ino = o->ino,
			     .size = o->size,
			     .changed_s = o->changed.tv_sec,
			     .changed_ns = (uint32_t)o->changed.tv_nsec};
}

static bool is_same_file(const struct memo *a, const struct memo *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       a->changed_s == b->changed_s && a->changed_ns == b->changed_ns;
}

/* A file system's clock may be too coarse to show a change that comes at once. */
static bool is_settled(const struct elf_origin *o)
{
	struct timespec now;
	return clock_gettime(CLOCK_REALTIME, &now) == 0 && now.tv_sec > o->changed.tv_sec + 1;
}

uint32_t names_print(const struct elf *e, const char *cached, enum names_of which)
{
	const struct elf_origin *o = elf_origin(e);
	struct memo now = memo_of(o), before;
	if (!o->is_file || o->size <= SMALL)
		return elf_names_print(e);
	if (lgetxattr(cached, attributes[which], &before, sizeof(before)) == sizeof(before) &&
	    is_same_file(&now, &before))
		return before.names;
	now.names = elf_names_print(e);
	if (is_settled(o))
		(void)!lsetxattr(cached, attributes[which], &now, sizeof(now), 0);
	return now.names;
}
