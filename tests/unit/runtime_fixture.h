/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code made at run time: one who reads a process, and a child that does as it is told. For tests of
 * code/runtime.h.
 */
#ifndef UNIT_RUNTIME_FIXTURE_H
#define UNIT_RUNTIME_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cairn/jit/codectl.h>

#include "code/runtime.h"

enum { REGION = 1 << 20 };

static char *region; /* executable, and no file's; children have it, too */

struct reader {
	struct code_space *space;
	struct code_runtime *rt;
};

static inline long add_elf(const void *lo, size_t n, const char *path, const void *id,
			   uint32_t n_id)
{
	uint64_t at = (uintptr_t)lo;
	struct code_elf_info elf = {.elf_start = at,
				    .elf_end = at + n,
				    .text_start = at,
				    .text_end = at + n,
				    .pathname = (uintptr_t)path,
				    .build_id = (uintptr_t)id,
				    .build_id_len = n_id};
	return codectl(CODE_REGISTER_ELF, &elf, sizeof(elf), 0);
}

static inline struct reader open_reader(int pid)
{
	struct reader r;
	assert_int_equal(code_space_open_pid(pid, 1, &r.space, NULL), 0);
	assert_int_equal(code_runtime_new(code_memory_of_process(pid), pid, EM_X86_64, &r.rt, NULL),
			 0);
	return r;
}

static inline void mark(struct reader *r, int pid)
{
	assert_int_equal(code_space_refresh_pid(r->space, pid, NULL), 0);
	assert_int_equal(code_runtime_prepare(r->rt, r->space, NULL), 0);
	assert_int_equal(code_runtime_freeze(r->rt, NULL), 0);
}

static inline struct reader look(int pid)
{
	struct reader r = open_reader(pid);
	mark(&r, pid);
	assert_int_equal(code_runtime_resolve(r.rt, NULL), 0);
	return r;
}

static inline void close_reader(struct reader *r)
{
	code_runtime_free(r->rt);
	code_space_free(r->space);
}

static inline struct code_found find(struct reader *r, const void *at)
{
	struct code_found f;
	assert_int_equal(code_runtime_find(r->rt, (uintptr_t)at, &f, NULL), 0);
	return f;
}

static inline int32_t cfa_of(const struct code_found *f)
{
	return ((const struct cairn_unwind_rule *)f->rule.words)->off;
}

static inline const struct cairn_code_range *range_at(const struct reader *r, const void *at,
						      enum cairn_code_source source, bool trusted)
{
	for (size_t i = 0; i < code_runtime_n_ranges(r->rt); i++) {
		const struct cairn_code_range *range = code_runtime_range(r->rt, i);
		if (range->source == source && range->is_trusted == trusted &&
		    range->lo.v <= (uintptr_t)at && range->hi.v > (uintptr_t)at &&
		    !range->is_removed)
			return range;
	}
	return NULL;
}

static inline bool has_note(const struct reader *r, const char *says)
{
	for (size_t i = 0; code_runtime_note(r->rt, i); i++)
		if (strstr(code_runtime_note(r->rt, i), says))
			return true;
	return false;
}

/* ---- a child that does as it is told, a byte at a time ---- */

struct child {
	int pid, to, from;
};

static inline struct child start_child(void (*step)(char what))
{
	int to[2], from[2];
	assert_return_code(pipe(to), errno);
	assert_return_code(pipe(from), errno);
	int pid = fork();
	if (pid == 0) {
		char c;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(to[1]);
		close(from[0]);
		while (read(to[0], &c, 1) == 1) {
			alarm(60);
			step(c);
			alarm(0);
			if (write(from[1], &c, 1) != 1)
				break;
		}
		_exit(0);
	}
	assert_return_code(pid, errno);
	close(to[0]);
	close(from[1]);
	return (struct child){pid, to[1], from[0]};
}

static inline void tell(const struct child *c, char what)
{
	char done = 0;
	assert_int_equal(write(c->to, &what, 1), 1);
	assert_int_equal(read(c->from, &done, 1), 1);
	assert_int_equal(done, what);
}

static inline void end_child(const struct child *c)
{
	close(c->to);
	close(c->from);
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
}

static inline int make_region(void **state)
{
	region = mmap(NULL, REGION, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	return region == MAP_FAILED ? -1 : 0;
}

#endif
