/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables for the objects that are loaded now
 *
 * Not for handlers: files are opened, memory is taken. The process looks at itself as at any other
 * (code/space.h), which also reads the vDSO and files that were replaced. A table is complete
 * before its slot gets the pointer to it, by one atomic store; readers see none or all of it, and
 * it stays for good.
 *
 * Another thread may unload any object meanwhile. dl_iterate_phdr() holds the lock under which
 * objects are unmapped. So the part that reads an object's own memory runs there: it finds the
 * slot, which is for its content. The rest works with the slot and the file; a table for an object
 * that has gone waits for its return.
 */
#include "unwind/backtrace_object.h"

#include <errno.h>

#include "base/err.h"

#if defined(__x86_64__) && defined(__GLIBC__) && __GLIBC_PREREQ(2, 35)

#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"
#include "code/space.h"
#include "elf/elf.h"
#include "unwind/backtrace_rule.h"

/* A loaded object: an address of its code, and its slot. */
struct loaded {
	uint64_t at;
	unsigned int slot;
};

struct loaded_list {
	VEC(struct loaded) v;
};

static int add_object(struct loaded_list *list, uint64_t at)
{
	struct backtrace_object object;
	int slot = backtrace_object_at(at, &object) ? backtrace_slot_of(&object) : -1;
	if (slot < 0)
		return 0;
	return VEC_ADD(&list->v, ((struct loaded){at, (unsigned int)slot})) ? 0 : -ENOMEM;
}

static int see_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
	for (unsigned int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type == PT_LOAD && p->p_flags & PF_X)
			return add_object(ctx, info->dlpi_addr + p->p_vaddr);
	}
	return 0;
}

static struct backtrace_table *table_of(const struct unwind_table *rows)
{
	uint32_t last = 0;
	for (uint32_t i = 0; i < rows->n_rows; i++)
		last = unwind_table_rule(rows, i) > last ? unwind_table_rule(rows, i) : last;
	struct backtrace_table *t =
		calloc(1, sizeof(*t) + (last + UINT64_C(1)) * sizeof(t->words[0]));
	if (!t)
		return NULL;
	t->rows = *rows;
	for (uint32_t i = 0; i < rows->n_rows; i++) {
		uint32_t rule = unwind_table_rule(rows, i);
		if (!t->words[rule])
			t->words[rule] = backtrace_word_of(
				(const struct cairn_unwind_rule *)(rows->rules + rule));
	}
	return t;
}

/* The file may have been replaced since it was loaded. */
static bool is_file_of(const struct code_image *image, const struct backtrace_slot *slot)
{
	size_t n;
	const uint8_t *id = elf_build_id(binary_main(image->bin), &n);
	return n == slot->object.build_id_size && (n == 0 || memcmp(id, slot->build_id, n) == 0);
}

/* Returns 1 when the object has a table, 0 when it gets none, -ENOMEM. */
static int prepare_object(struct code_space *space, const struct loaded *object,
			  struct cairn_err *err)
{
	struct backtrace_slot *slot = backtrace_slot_at(object->slot);
	const struct code_image *image;
	struct cairn_vaddr vaddr;
	if (backtrace_slot_table(object->slot))
		return 1;
	int rc = code_space_find(space, (struct cairn_addr){object->at}, &image, &vaddr, err);
	if (rc < 0)
		return rc;
	if (!image || !image->bin || !image->table.n_rows ||
	    vaddr.v != object->at - slot->object.bias || !is_file_of(image, slot))
		return 0;
	struct backtrace_table *table = table_of(&image->table);
	if (!table)
		return err_nomem(err, "an unwind table");
	__atomic_store_n(&slot->table, table, __ATOMIC_RELEASE);
	return 1;
}

static int prepare(struct loaded_list *objects, struct cairn_err *err)
{
	static struct code_space *space; /* never freed: the tables are in it */
	int rc = space ? code_space_refresh_pid(space, getpid(), err)
		       : code_space_open_pid(getpid(), 0, &space, err);
	int n = 0;
	if (rc == 0 && dl_iterate_phdr(see_object, objects) < 0)
		rc = err_nomem(err, "the list of loaded objects");
	for (size_t i = 0; rc >= 0 && i < objects->v.n; i++) {
		rc = prepare_object(space, &objects->v.p[i], err);
		n += rc > 0;
	}
	return rc < 0 ? rc : n;
}

int cairn_backtrace_prepare(struct cairn_err *err)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	struct loaded_list objects = {0};
	pthread_mutex_lock(&mutex);
	int rc = prepare(&objects, err);
	pthread_mutex_unlock(&mutex);
	VEC_FREE(&objects.v);
	return rc;
}

#else

int cairn_backtrace_prepare(struct cairn_err *err)
{
	return err_set(err, -EOPNOTSUPP,
		       "a program's own stack can be walked on x86-64 with glibc 2.35 or later");
}

#endif
