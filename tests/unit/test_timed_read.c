/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that does not answer its page faults
 *
 * Its memory is under userfaultfd(2), and nobody reads from that. What is claimed is that readers
 * end, that what else there is is read, and that the reason is told; not how long it takes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cairn/code.h>
#include <cairn/jit/codectl.h>
#include <cairn/jit/jit.h>
#include <cairn/stack.h>

#include "code/memory.h"
#include "code/timed_read.h"

enum { PAGE = 4096, N_PAGES = 8, MISSING = 5 };

/* Of parent and child: two regions of code, and memory of which page MISSING is never there. */
static char *region, *memory;

static bool hold_back(char *page)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register reg = {.range = {(uintptr_t)page, PAGE},
				      .mode = UFFDIO_REGISTER_MODE_MISSING};
	madvise(page, PAGE, MADV_DONTNEED);
	return fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0 && ioctl(fd, UFFDIO_REGISTER, &reg) == 0;
}

static bool register_both(void)
{
	struct code_jit_info info = {.text_start = (uintptr_t)region + PAGE,
				     .text_end = (uintptr_t)region + 2 * PAGE,
				     .unwind_head = (uintptr_t)memory + MISSING * PAGE};
	struct cairn_jit_info named = {.size = sizeof(named), .name = "sound"};
	struct cairn_jit_frame f;
	struct cairn_jit *jit;
	if (codectl(CODE_REGISTER_JIT, &info, sizeof(info), 0) ||
	    cairn_jit_open(region, PAGE, NULL, &jit))
		return false;
	cairn_jit_begin(&f, region);
	return cairn_jit_publish(jit, &f, region + 64, &named) == 0;
}

/* Its stack has addresses of both regions: the own one, not that of the sanitizer. */
__attribute__((no_sanitize("address"))) static void live(int ready)
{
	char *volatile returns[2] = {region + 10, region + PAGE + 10};
	char answer = hold_back(memory + MISSING * PAGE) ? 'r' : 's';
	if (!register_both())
		answer = 'f';
	if (write(ready, &answer, 1) == 1 && returns[0])
		for (;;)
			pause();
	_exit(1);
}

static int start(void)
{
	int ready[2];
	char answer = 0;
	assert_return_code(pipe(ready), errno);
	int pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		live(ready[1]);
	}
	assert_return_code(pid, errno);
	close(ready[1]);
	assert_int_equal(read(ready[0], &answer, 1), 1);
	close(ready[0]);
	assert_int_not_equal(answer, 'f');
	if (answer == 'r')
		return pid;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	print_message("userfaultfd(2) for faults of the kernel: not permitted here\n");
	skip();
	return -1;
}

static void end(int pid)
{
	int status;
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* ---- claims ---- */

struct reading {
	int pid;
	uint64_t at;
	size_t n;
	ssize_t got;
	uint8_t bytes[N_PAGES * PAGE];
};

static int read_memory(void *ctx, struct cairn_err *err)
{
	struct reading *r = ctx;
	r->got = timed_read_read(r->pid, r->at, r->bytes, r->n);
	return 7;
}

static void work_whose_reads_end_is_done(void **state)
{
	struct timed_read stall = {.pid = getpid()};
	struct reading *r = calloc(1, sizeof(*r));
	*r = (struct reading){.pid = getpid(), .at = (uintptr_t)region, .n = PAGE};
	assert_int_equal(timed_read_run(&stall, read_memory, r, NULL), 7);
	assert_int_equal(r->got, PAGE);
	assert_true(!stall.n && !stall.is_left && !timed_read_may_retry(&stall));
	free(r);
}

/*
 * The first read is of all pages, the second finds out which one it is, the third has those before
 * it.
 */
static void a_page_that_never_comes_is_found_and_passed_over(void **state)
{
	int pid = start();
	struct timed_read stall = {.pid = pid};
	struct cairn_err err = {0};
	for (size_t i = 1; i <= 3; i++) {
		struct reading *r = calloc(1, sizeof(*r));
		r->pid = pid;
		r->at = (uintptr_t)memory;
		r->n = N_PAGES * PAGE;
		int rc = timed_read_run(&stall, read_memory, r, &err);
		if (i < 3) {
			/* @r is lost. */
			assert_int_equal(rc, -ETIMEDOUT);
			assert_non_null(strstr(err.msg, "userfaultfd"));
			assert_int_equal(timed_read_run(&stall, read_memory, r, NULL), -ETIMEDOUT);
			assert_int_equal(stall.n, i);
			assert_true(timed_read_may_retry(&stall));
			continue;
		}
		assert_int_equal(rc, 7);
		assert_int_equal(r->got, MISSING * PAGE);
		free(r);
	}
	assert_int_equal(stall.ranges[1].lo, (uintptr_t)memory + MISSING * PAGE);
	end(pid);
}

static const struct cairn_code_range *range_at(const struct cairn_code *code, const char *at)
{
	const struct cairn_code_range *r =
		cairn_code_find(code, (struct cairn_addr){(uintptr_t)at}, 0);
	for (size_t i = 0; (!r || r->source != CAIRN_CODE_JIT) && i < cairn_code_n_ranges(code);
	     i++)
		if (cairn_code_range(code, i)->source == CAIRN_CODE_JIT &&
		    cairn_code_range(code, i)->lo.v == (uintptr_t)at)
			r = cairn_code_range(code, i);
	return r;
}

static void code_whose_tables_never_come_is_refused_and_no_other(void **state)
{
	int pid = start();
	struct cairn_code *code;
	struct cairn_err err = {0};
	int rc = cairn_code_open_pid(pid, NULL, &code, &err);
	if (rc)
		print_message("%s\n", err.msg);
	assert_int_equal(rc, 0);
	const struct cairn_code_range *sound = range_at(code, region),
				      *bad = range_at(code, region + PAGE);
	assert_true(sound && sound->is_trusted && sound->n_rows == 1 && !sound->why);
	assert_true(bad && bad->source == CAIRN_CODE_JIT && !bad->n_rows);
	assert_string_equal(bad->why, "a table is not in memory");
	assert_non_null(strstr(cairn_code_note(code, 0), "userfaultfd"));
	cairn_code_close(code);
	end(pid);
}

static void stacks_are_had_and_the_process_goes_on(void **state)
{
	int pid = start();
	struct cairn_stacks *stacks;
	struct cairn_err err = {0};
	int rc = cairn_stacks_open_pid(pid, NULL, &stacks, &err);
	if (rc)
		print_message("%s\n", err.msg);
	assert_int_equal(rc, 0);
	assert_int_equal(cairn_stacks_n_threads(stacks), 1);
	assert_true(cairn_stacks_thread(stacks, 0)->n_frames > 1);
	assert_int_equal(cairn_stacks_thread(stacks, 0)->end, CAIRN_WALK_OUTERMOST);
	assert_non_null(strstr(cairn_stacks_note(stacks), "userfaultfd"));
	/* And once more, without waiting. */
	assert_int_equal(cairn_stacks_again(stacks, NULL), 0);
	cairn_stacks_close(stacks);
	/* Nobody has it. */
	struct cairn_code *code;
	assert_int_equal(cairn_code_open_pid(pid, NULL, &code, NULL), 0);
	cairn_code_close(code);
	end(pid);
}

static int map_memory(void **state)
{
	region = mmap(NULL, 2 * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memory = mmap(NULL, N_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	return region == MAP_FAILED || memory == MAP_FAILED ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_whose_reads_end_is_done),
		cmocka_unit_test(a_page_that_never_comes_is_found_and_passed_over),
		cmocka_unit_test(code_whose_tables_never_come_is_refused_and_no_other),
		cmocka_unit_test(stacks_are_had_and_the_process_goes_on),
	};
	return cmocka_run_group_tests(tests, map_memory, NULL);
}
