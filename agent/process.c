/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One registry, many threads, forks and signals
 *
 * The lock is a word: 0 free, 1 taken, 2 taken and waited for. Taking it costs no system call
 * unless it has to be waited for.
 *
 * fork(), also a raw clone(), copies a process while another thread may hold the lock, and that
 * thread does not exist in the child. So the lock is on a page that the kernel gives to a child
 * empty (MADV_WIPEONFORK): there it is free. The flag is_changing, which is on another page and was
 * copied, tells that its holder was in the middle of a change: then all state beside the entries is
 * made again.
 *
 * A signal handler that interrupts the holder must not wait for it. is_inside is the thread's own
 * and shows this. It is not the owner in the lock, because in a child a new thread may have the
 * address and the number of one that is gone.
 *
 * The first call makes the registry. Threads that do so at the same time each make one; the first
 * to store its address wins, the others unmap theirs, which were never shown: that happens under
 * the lock. So there is nothing before the lock that a fork could leave half done.
 *
 * One thing is not served: a child that is forked by a handler which interrupted its own thread in
 * here, and that starts threads in that handler. For those the lock is free, while the interrupted
 * call has yet to go on.
 */
#include "process.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	LOCK_BYTES = 65536, /* a page of whatever size; untouched ones cost nothing */
	SPINS = 100,
	FREE = 0,
	TAKEN = 1,
	WAITED_FOR = 2,
};

struct process {
	uint32_t *lock;   /* wiped in a child */
	bool is_changing; /* the lock is held, or was when this process was forked */
	bool is_shown;
	struct registry_writer writer;
};

/* In static storage it would be on a page with others' data, or waste one in every program. */
static struct process *the_process;
/* No call into the loader, which could allocate. */
static _Thread_local volatile bool is_inside __attribute__((tls_model("initial-exec")));

static struct process *make(int *ret_rc)
{
	size_t n = LOCK_BYTES + sizeof(struct process);
	uint8_t *at = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED) {
		*ret_rc = -errno;
		return NULL;
	}
	struct process *p = (struct process *)(at + LOCK_BYTES);
	p->lock = (uint32_t *)at;
	*ret_rc = madvise(at, LOCK_BYTES, MADV_WIPEONFORK) < 0 ? -errno
							       : registry_writer_open(&p->writer);
	if (*ret_rc < 0) {
		munmap(at, n);
		return NULL;
	}
	return p;
}

static void unmake(struct process *p)
{
	registry_writer_close(&p->writer);
	munmap(p->lock, LOCK_BYTES + sizeof(*p));
}

/* NULL, with the reason, when there is none and none can be made. */
static struct process *find(int *ret_rc)
{
	struct process *p = __atomic_load_n(&the_process, __ATOMIC_ACQUIRE), *other = NULL;
	if (p)
		return p;
	p = make(ret_rc);
	if (!p || __atomic_compare_exchange_n(&the_process, &other, p, false, __ATOMIC_ACQ_REL,
					      __ATOMIC_ACQUIRE))
		return p;
	unmake(p);
	return other;
}

static bool try_lock(uint32_t *lock)
{
	uint32_t expected = FREE;
	return __atomic_compare_exchange_n(lock, &expected, TAKEN, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

static void lock_slowly(uint32_t *lock)
{
	int saved = errno;
	for (int i = 0; i < SPINS; i++)
		if (__atomic_load_n(lock, __ATOMIC_RELAXED) == FREE && try_lock(lock))
			return;
	while (__atomic_exchange_n(lock, WAITED_FOR, __ATOMIC_ACQUIRE) != FREE)
		syscall(SYS_futex, lock, FUTEX_WAIT_PRIVATE, WAITED_FOR, NULL, NULL, 0);
	errno = saved;
}

static void unlock(uint32_t *lock)
{
	if (__atomic_exchange_n(lock, FREE, __ATOMIC_RELEASE) != WAITED_FOR)
		return;
	int saved = errno;
	syscall(SYS_futex, lock, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	errno = saved;
}

/* The work that is done once, and once more in a child. The lock is held. */
static void make_ready(struct process *p)
{
	if (p->is_changing)
		registry_writer_repair(&p->writer);
	__atomic_store_n(&p->is_changing, true, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	if (!p->is_shown)
		registry_writer_show(&p->writer);
	p->is_shown = true;
}

int process_enter(struct registry_writer **ret)
{
	int saved = errno, rc = 0;
	if (is_inside)
		return -EBUSY;
	is_inside = true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	struct process *p = find(&rc);
	errno = saved;
	if (!p) {
		is_inside = false;
		return rc;
	}
	if (!try_lock(p->lock))
		lock_slowly(p->lock);
	make_ready(p);
	*ret = &p->writer;
	return 0;
}

void process_leave(void)
{
	struct process *p = __atomic_load_n(&the_process, __ATOMIC_RELAXED);
	__atomic_store_n(&p->is_changing, false, __ATOMIC_RELEASE);
	unlock(p->lock);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	is_inside = false;
}
