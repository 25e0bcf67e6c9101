/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The codectl registry of another process, read from outside
 *
 *	registry_copy	header and entries of this moment: two reads, no parsing
 *	registry_parse	the contents of the copy
 *	registry_strings   the strings that its entries point to
 *	registry_check	the entries once more: entries replaced meanwhile are not used
 *
 * The steps are separate because a thread that is stopped for its stack waits for only the first
 * two. All bytes are another process's: every number in them is checked, every loop has a limit,
 * and refused data is kept with the reason. The ABI is cairn/shared/codectl.h.
 */
#ifndef CODE_REGISTRY_H
#define CODE_REGISTRY_H

#include <cairn/shared/codectl.h>
#include <cairn/err.h>

#include "base/vec.h"
#include "code/memory.h"

enum {
	/* Bytes of strings; a thousand objects have 100 KB. */
	REGISTRY_MAX_STRINGS = 64 << 20,
	REGISTRY_MAX_STRING = 4096, /* PATH_MAX */
	REGISTRY_MAX_BUILD_ID = 64, /* linkers write 8 to 20 bytes */
};

struct registry_entry {
	uint32_t number;             /* in the registry */
	uint64_t epoch;              /* of a removed one: its last */
	uint64_t since_ns, until_ns; /* CLOCK_MONOTONIC; until_ns 0: still there */
	bool is_removed;
	/* registry_check() saw another one: nothing that was read of it is used */
	bool is_changing;
	const char *why; /* why it is refused, static words; NULL: it is sound in itself */
	uint32_t option; /* CODE_REGISTER_ELF, CODE_REGISTER_JIT */
	union {
		struct code_elf_info elf;
		/* without CODE_JIT_EXTENDED the fields after the RFC's part are 0 */
		struct code_jit_info jit;
	};
	/* In strings; NULL: none, or not read yet. */
	const char *name; /* path of an object, name of a region */
	const char *debug_link;
	const uint8_t *build_id; /* elf.build_id_len bytes */
};

/* Zeroed before the first use; a copy reuses the memory of the one before. */
struct registry {
	/* that it is in, with its strings: another one's than the tables when it is served */
	struct code_memory memory;
	uint64_t lo, hi; /* its mapping */
	/*
	 * CLOCK_MONOTONIC: it is another process's, of which this one was forked then, and counts
	 * as it was; 0: its own.
	 */
	uint64_t as_of_ns;
	struct codectl_registry head;
	uint8_t *bytes; /* entries, head.entry_stride apart */
	size_t room;
	uint32_t n; /* entries in the copy */
	/* the entries requested from registry_parse(), by number */
	VEC(struct registry_entry) entries;
	char *strings;
	size_t n_strings;
};

/*
 * registry_copy - header and entries
 *
 * @r    memory, lo and hi are set
 * @max  entries; more are not copied, as head.n_entries shows
 * Returns 0. Negative:
 *   -ENOENT      it is not complete yet: no magic
 *   -EBADMSG     its header has impossible values (err: which)
 *   -EOPNOTSUPP  of another version
 *   -EFAULT      it cannot be read: it shrinks, or is gone
 *   -ENOMEM
 * Cost: two reads; 168 bytes per entry.
 */
int registry_copy(struct registry *r, uint32_t max, struct cairn_err *err);

/* The entries of the copy; with @takes_removed those that were removed, too. 0, -ENOMEM. */
int registry_parse(struct registry *r, bool takes_removed, struct cairn_err *err);

/*
 * Names and build-ids of the entries; an entry whose strings are not within the registry is
 * refused. 0, -ENOMEM.
 */
int registry_strings(struct registry *r, struct cairn_err *err);

/*
 * registry_check - mark the entries that are others by now
 *
 * Returns how many are, or all when the registry cannot be read any more; -ENOMEM. Cost: a read for
 * each run of entries.
 */
int registry_check(struct registry *r, struct cairn_err *err);

/*
 * registry_is_epoch - whether entry @number has this epoch now
 *
 * A registry inherited from another process is a copy that no process changes: always true. Cost:
 * one read of 8 bytes.
 */
bool registry_is_epoch(const struct registry *r, uint32_t number, uint64_t epoch);

void registry_fini(struct registry *r);

#endif
