/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of its memory that a thread may read
 *
 *     its stack     from the lowest address that a walk came to, up to where it begins: the thread
 *                   control block, which glibc puts there, or __libc_stack_end in the main thread.
 *                   It stays mapped as long as the thread, so it is remembered, in thread-local
 *                   memory that needs no allocation.
 *     other stacks  of signal handlers and coroutines can be unmapped between two walks: remembered
 *                   within one.
 *
 * A new page is tested by rt_sigprocmask(2) with an operation that does not exist: the kernel
 * copies the set from memory first, then returns -EINVAL, or -EFAULT when it could not read. This
 * takes no file and no lock, and is allowed wherever signals are. process_vm_readv(2) is denied in
 * many containers.
 *
 * Stacks are tested from the known part downwards, page by page, so that a guard page in between is
 * noticed.
 */
#include "unwind/backtrace_memory.h"

#if defined(__x86_64__)

#include <errno.h>
#include <sys/syscall.h>

enum { PAGE = 4096, SIGSET_BYTES = 8 };

/* The known part of one stack: 64 MB. Pages beyond that are tested again in each walk. */
static const uint64_t stack_max = UINT64_C(64) << 20;

/* The begin of the main thread's stack. */
extern void *__libc_stack_end;

/* Filled by walks of this thread, also by those of handlers that interrupt one: lo only falls. */
static __thread struct {
	uint64_t lo, hi;
} own __attribute__((tls_model("initial-exec")));

static long syscall4(long number, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long result;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return result;
}

static bool is_page_readable(uint64_t at)
{
	enum { NO_SUCH_OPERATION = -1 };
	return syscall4(SYS_rt_sigprocmask, NO_SUCH_OPERATION, (long)(at & ~(uint64_t)(PAGE - 1)),
			0, SIGSET_BYTES) == -EINVAL;
}

static uint64_t where_stack_begins(void)
{
	bool is_main = syscall4(SYS_gettid, 0, 0, 0, 0) == syscall4(SYS_getpid, 0, 0, 0, 0);
	return is_main ? (uint64_t)(uintptr_t)__libc_stack_end
		       : (uint64_t)(uintptr_t)__builtin_thread_pointer();
}

void backtrace_memory_begin(struct backtrace_memory *m)
{
	if (!own.hi) {
		own.lo = where_stack_begins();
		own.hi = own.lo;
	}
	*m = (struct backtrace_memory){.lo = own.lo, .hi = own.hi};
}

/* The thread's stack down to @at, when all of it is there. */
static bool extend_stack(struct backtrace_memory *m, uint64_t at)
{
	if (at >= m->lo || m->hi - at > stack_max || !is_page_readable(at))
		return false;
	/* The page of the known part's first byte may be new as well, the first time. */
	uint64_t page = (m->lo - 1) & ~(uint64_t)(PAGE - 1), last = at & ~(uint64_t)(PAGE - 1);
	while (page > last && is_page_readable(page))
		page -= PAGE;
	if (page != last)
		return false;
	m->lo = page;
	if (page < own.lo)
		own.lo = page;
	return true;
}

/* The other range, made longer by the page of @at, or begun there. */
static bool extend_other(struct backtrace_memory *m, uint64_t at)
{
	uint64_t page = at & ~(uint64_t)(PAGE - 1);
	if (page + PAGE < page || !is_page_readable(page))
		return false;
	if (m->other_hi == page)
		m->other_hi += PAGE;
	else if (m->other_lo == page + PAGE)
		m->other_lo = page;
	else
		*m = (struct backtrace_memory){
			.lo = m->lo, .hi = m->hi, .other_lo = page, .other_hi = page + PAGE};
	return true;
}

static bool has_byte(struct backtrace_memory *m, uint64_t at)
{
	if ((at >= m->lo && at < m->hi) || (at >= m->other_lo && at < m->other_hi))
		return true;
	return extend_stack(m, at) || extend_other(m, at);
}

bool backtrace_memory_has(struct backtrace_memory *m, uint64_t at, uint64_t n)
{
	uint64_t last;
	if (__builtin_add_overflow(at, n - 1, &last))
		return false;
	if ((at >= m->lo && last < m->hi) || (at >= m->other_lo && last < m->other_hi))
		return true;
	/*
	 * The second byte may move the other range away from the first, which then still was
	 * readable.
	 */
	return has_byte(m, at) && has_byte(m, last);
}

#endif
