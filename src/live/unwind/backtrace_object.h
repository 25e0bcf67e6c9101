/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loaded objects as the self walk knows them; the essay is in backtrace_object.c. Within this
 * module only.
 */
#ifndef UNWIND_BACKTRACE_OBJECT_H
#define UNWIND_BACKTRACE_OBJECT_H

#include <cairn/backtrace.h>

#include "cfi/eh_memory.h"
#include "cfi/table.h"

/* The parts of a mapped object, by run-time address. */
struct backtrace_object {
	uint64_t lo, hi;           /* all of it */
	uint64_t text_lo, text_hi; /* its code; empty when that cannot be read */
	uint64_t bias;             /* run-time minus link-time addresses */
	struct eh_memory eh;       /* hdr NULL: it has no .eh_frame_hdr */
	const uint8_t *build_id;   /* in the first page; NULL */
	uint8_t build_id_size;     /* bytes, at most SELF_BUILD_ID_MAX */
	bool is_permanent;         /* it cannot be unloaded */
};

enum { SELF_BUILD_ID_MAX = 32, SELF_N_SLOTS = 512 };

/*
 * The data of one step for nearly all code, in a word; 0 if the step needs more. See
 * backtrace_rule.h.
 */
typedef uint64_t backtrace_word;

/* The rows of an object. Once made it stays. */
struct backtrace_table {
	struct unwind_table rows;
	backtrace_word words[]; /* by the number of a rule */
};

/* A known object. Once filled it does not change, except for the table. */
struct backtrace_slot {
	uint32_t state; /* atomic: enum backtrace_slot_state */
	struct backtrace_object object;
	uint8_t build_id[SELF_BUILD_ID_MAX]; /* the build-id at the time the slot was filled */
	const struct backtrace_table *table; /* atomic; NULL: not prepared */
};

/* Turns the cache of known addresses on or off; for measuring the cost of the rest. */
void backtrace_cache_use(bool on);

/* The object whose mapping contains @at; false when none does. Signals: safe. */
bool backtrace_object_at(uint64_t at, struct backtrace_object *ret);

/*
 * The slot of an object, a new one when it has none; -1 when it must not have one, or all are
 * taken. Signals: safe.
 */
int backtrace_slot_of(const struct backtrace_object *object);

/*
 * Whether the object that is at @at now, where the slot's once was, is that of the slot. Signals:
 * safe.
 */
bool backtrace_slot_holds(unsigned int slot, uint64_t at);

struct backtrace_slot *backtrace_slot_at(unsigned int slot);

static inline const struct backtrace_table *backtrace_slot_table(unsigned int slot)
{
	return __atomic_load_n(&backtrace_slot_at(slot)->table, __ATOMIC_ACQUIRE);
}

/* True if @pc, in the object's code, directly follows a call instruction. Signals: safe. */
bool backtrace_object_calls(const struct backtrace_object *object, uint64_t pc);

#endif
