/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code made at run time: the descriptions of code in no file, by the process and by others
 *
 *	prepare   positions of registries and lists       process runs
 *	freeze    their entries, unchanged                the moment that all later steps are about
 *	snapshot  the tables that stacks lead to          the same moment
 *	resolve   regions, verified against the mappings  process runs
 *	find      rule and names at an address; the first query of an address reads its tables
 *
 * Tables are read after the process goes on. They are those of the moment if the region's epoch is
 * still the same; otherwise the code was freed since, which is reported instead of a rule. Known
 * data stays valid while the epoch does: a process that is queried again and again is read once,
 * and then only new data is read.
 */
#ifndef CODE_RUNTIME_H
#define CODE_RUNTIME_H

#include <cairn/code.h>
#include <cairn/sidecar.h>

#include "cfi/rule.h"
#include "code/memory.h"
#include "code/space.h"

struct code_runtime;

/* @pid: for map files, 0: of a core. 0, -ENOMEM; code_runtime_free(). */
int code_runtime_new(struct code_memory memory, int pid, uint16_t machine,
		     struct code_runtime **ret, struct cairn_err *err);
void code_runtime_free(struct code_runtime *rt); /* takes NULL */

/* From now on registrations that were removed are ranges, too: for listings, not for stacks. */
void code_runtime_list_removed(struct code_runtime *rt);

/*
 * code_runtime_prepare - look where things are
 *
 * @space  its mappings are those of now; it outlives the use of @rt
 * Returns 0, -ENOMEM. Cost: a pass over the mappings; where some are executable and no file's, the
 * symbols of all files with code once.
 */
int code_runtime_prepare(struct code_runtime *rt, struct code_space *space, struct cairn_err *err);

/*
 * code_runtime_freeze - the moment
 *
 * Returns 0, -ENOMEM. Cost: two reads per registry, one per entry of GDB's lists; both are bounded,
 * and code_runtime_note() lists the omitted ones.
 */
int code_runtime_freeze(struct code_runtime *rt, struct cairn_err *err);

/*
 * code_runtime_snapshot - read the tables of regions that words point into, as long as nothing runs
 *
 * @words  possible return addresses or program counters; any alignment
 * Optional: without it, tables are read on demand, if they are still there. Returns 0, -ENOMEM.
 * Cost: a comparison per word, a search for each word that points between the first region and the
 * last; two reads per table, of at most 8 MB after each mark.
 */
int code_runtime_snapshot(struct code_runtime *rt, const void *words, size_t n,
			  struct cairn_err *err);

/*
 * code_runtime_is_ahead - whether stacks lead to regions where the mappings have no code: these are
 * older than the mark
 *
 * The stacks are those passed to code_runtime_snapshot() since the freeze. They should be read
 * again, and all steps since code_runtime_prepare() repeated.
 */
bool code_runtime_is_ahead(const struct code_runtime *rt);

/* Earlier results of code_runtime_find() end. 0, -ENOMEM. */
int code_runtime_resolve(struct code_runtime *rt, struct cairn_err *err);

struct code_found {
	/* NULL: it has no description. Until code_runtime_resolve(), as the rest */
	const struct cairn_code_range *range;
	enum cairn_code_unwind unwind;
	/* undescribed with CAIRN_CODE_UNWIND_NONE; a suggestion with _ASSUMED */
	struct rule_words rule;
	/*
	 * why there is no rule although a source should have one: "its code was freed since"; NULL
	 */
	const char *why;
	size_t n_functions;
	const struct cairn_frame *functions; /* innermost first */
	enum cairn_code_source named_by;     /* valid with n_functions */
	bool has_off;
	uint64_t off; /* from the beginning of the outermost one */
};

/* 0, -ENOMEM. */
int code_runtime_find(struct code_runtime *rt, uint64_t at, struct code_found *ret,
		      struct cairn_err *err);

/*
 * code_runtime_load_all - read every table, so that ranges show their contents
 *
 * Returns 0, -ENOMEM.
 */
int code_runtime_load_all(struct code_runtime *rt, struct cairn_err *err);

/*
 * True if no resolved or loaded data changed meanwhile; else another attempt is worthwhile.
 */
bool code_runtime_is_steady(const struct code_runtime *rt);

size_t code_runtime_n_ranges(const struct code_runtime *rt);
const struct cairn_code_range *code_runtime_range(const struct code_runtime *rt, size_t i);

/* The sources that were refused as a whole; NULL after the last. */
const char *code_runtime_note(const struct code_runtime *rt, size_t i);
uint64_t code_runtime_changes(const struct code_runtime *rt);

/* A mapping that is executable and no file's: memory of a JIT. */
bool code_is_anonymous(const struct code_mapping *m);

#endif
