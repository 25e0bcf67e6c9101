/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A section is registered unchanged: readers parse it, and only when a stack leads there. Only its
 * addresses are needed here. Mostly it is one object of a JIT in one piece, so the range from its
 * first to its last address is tried, as libgcc does; libgcc finds nothing in sections whose ranges
 * overlap. If that range meets another registration, each function is registered alone.
 *
 * There is no list of registrations: removing measures the same entries again, and so finds the
 * same ranges.
 */
#include "frames.h"

#include <errno.h>
#include <stddef.h>

#include <cairn/jit/codectl.h>

#include "../process.h"

struct section {
	const void *begin;
	enum fde_run run;
	uint64_t lo, hi;               /* of all code */
	uint64_t unwind_lo, unwind_hi; /* of all entries */
};

/* False when it describes nothing. */
static bool measure(const void *begin, enum fde_run run, struct section *ret)
{
	struct section s = {
		.begin = begin, .run = run, .lo = UINT64_MAX, .unwind_lo = (uintptr_t)begin};
	struct fde_walk walk;
	struct fde fde;
	fde_walk_begin(&walk, begin, run);
	while (fde_walk_next(&walk, &fde)) {
		s.lo = fde.lo < s.lo ? fde.lo : s.lo;
		s.hi = fde.hi > s.hi ? fde.hi : s.hi;
		s.unwind_lo = fde.cie < s.unwind_lo ? fde.cie : s.unwind_lo;
	}
	s.unwind_hi = fde_walk_end(&walk);
	*ret = s;
	return s.lo < s.hi;
}

/* The registration of exactly [@lo, @hi), when it is one of code that was made at run time. */
static const struct codectl_entry *find(const struct registry_writer *w, uint64_t lo, uint64_t hi)
{
	const struct codectl_entry *e = registry_writer_find(w, lo, hi);
	bool is = e && e->option == CODE_REGISTER_JIT && e->info.jit.text_start == lo &&
		  e->info.jit.text_end == hi;
	return is ? e : NULL;
}

static bool add_range(const struct section *s, uint64_t lo, uint64_t hi)
{
	struct codectl_request request = {.option = CODE_REGISTER_JIT};
	struct code_jit_info info = {
		.text_start = lo,
		.text_end = hi,
		.extended = CODE_JIT_EXTENDED,
		.unwind_start = s->unwind_lo,
		.unwind_end = s->unwind_hi,
		.unwind_kind = CODE_UNWIND_EH_FRAME,
	};
	struct registry_writer *w;
	int rc = codectl_read_request(CODE_REGISTER_JIT, &info, sizeof(info), &request);
	if (rc == 0)
		rc = process_enter(&w);
	if (rc < 0)
		return false;
	/*
	 * Code that is gone without a word is so at the latest when other code has exactly its
	 * place.
	 */
	if (find(w, lo, hi))
		registry_writer_remove(w, lo, hi);
	rc = registry_writer_add(w, &request);
	process_leave();
	return rc == 0;
}

static bool remove_range(const struct section *s, uint64_t lo, uint64_t hi)
{
	struct registry_writer *w;
	if (process_enter(&w) < 0)
		return false;
	const struct codectl_entry *e = find(w, lo, hi);
	bool is_its_own = e && e->info.jit.unwind_start == s->unwind_lo;
	if (is_its_own)
		registry_writer_remove(w, lo, hi);
	process_leave();
	return is_its_own;
}

/*
 * The unwind information of an object that the loader knows, as startup files of static libraries
 * register it.
 */
static bool is_of_object(const struct section *s)
{
	struct registry_writer *w;
	if (process_enter(&w) < 0)
		return false;
	const struct codectl_entry *e = registry_writer_find(w, s->lo, s->hi);
	bool is = e && e->option == CODE_REGISTER_ELF && s->lo >= e->info.elf.elf_start &&
		  s->hi <= e->info.elf.elf_end;
	process_leave();
	return is;
}

static void each(const struct section *s,
		 bool (*change)(const struct section *s, uint64_t lo, uint64_t hi))
{
	struct fde_walk walk;
	struct fde fde;
	fde_walk_begin(&walk, s->begin, s->run);
	while (fde_walk_next(&walk, &fde))
		change(s, fde.lo, fde.hi);
}

void frames_add(const void *begin, enum fde_run run)
{
	int saved = errno;
	struct section s;
	if (measure(begin, run, &s) && !add_range(&s, s.lo, s.hi) && !is_of_object(&s))
		each(&s, add_range);
	errno = saved;
}

void frames_remove(const void *begin, enum fde_run run)
{
	int saved = errno;
	struct section s;
	if (measure(begin, run, &s) && !remove_range(&s, s.lo, s.hi) && !is_of_object(&s))
		each(&s, remove_range);
	errno = saved;
}
