/* SPDX-License-Identifier: BSD-2-Clause */
#include "code/gdb_list.h"

#include <errno.h>

#include "base/cursor.h"

static const struct cursor_src src = {.file = "", .section = "__jit_debug_descriptor"};

enum { VERSION = 1, DESCRIPTOR_SIZE = 24, ENTRY_SIZE = 32 };

static bool read_entry(const struct code_memory *memory, uint64_t at, struct gdb_entry *ret,
		       uint64_t *ret_next)
{
	uint8_t bytes[ENTRY_SIZE];
	if (!code_memory_all(memory, at, bytes, sizeof(bytes)))
		return false;
	struct cursor c = cursor_of(&src, bytes, sizeof(bytes), false, NULL);
	*ret_next = cur_u64(&c);
	cur_skip(&c, sizeof(uint64_t));
	*ret = (struct gdb_entry){.at = at, .symfile = cur_u64(&c)};
	ret->size = cur_u64(&c);
	return true;
}

static uint64_t first_of(const struct code_memory *memory, uint64_t at, const char **why)
{
	uint8_t bytes[DESCRIPTOR_SIZE];
	if (!code_memory_all(memory, at, bytes, sizeof(bytes))) {
		*why = "the descriptor is not in memory";
		return 0;
	}
	struct cursor c = cursor_of(&src, bytes, sizeof(bytes), false, NULL);
	uint32_t version = cur_u32(&c);
	cur_skip(&c, 12);
	if (version != VERSION)
		*why = "the descriptor is of a version that is not known";
	return *why ? 0 : cur_u64(&c);
}

int gdb_list_read(const struct code_memory *memory, uint64_t at, size_t max, struct gdb_list *ret)
{
	ret->entries.n = 0;
	ret->why = NULL;
	uint64_t seen = 0, next = first_of(memory, at, &ret->why);
	for (size_t i = 0; next; i++) {
		struct gdb_entry e;
		if (next == seen)
			ret->why = "the list leads back to itself";
		else if (i == max)
			ret->why = "the list is longer than is followed";
		else if (!read_entry(memory, next, &e, &next))
			ret->why = "an entry is not in memory";
		if (ret->why)
			break;
		if ((i & (i - 1)) == 0)
			seen = e.at;
		if (!VEC_ADD(&ret->entries, e))
			return -ENOMEM;
	}
	return 0;
}

bool gdb_entry_is_same(const struct code_memory *memory, const struct gdb_entry *e)
{
	struct gdb_entry now;
	uint64_t next;
	return read_entry(memory, e->at, &now, &next) && now.symfile == e->symfile &&
	       now.size == e->size;
}
