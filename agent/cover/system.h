/* SPDX-License-Identifier: BSD-2-Clause */
/* System calls as the kernel has them, since syscall(2) is one of those that are stood before. */
#ifndef AGENT_COVER_SYSTEM_H
#define AGENT_COVER_SYSTEM_H

#include <stddef.h>
#include <sys/syscall.h>

/* The result, a negative errno in case of an error. */
static inline long system_call(long nr, long a, long b, long c, long d, long e, long f)
{
#ifdef __aarch64__
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
#else
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
#endif
}

static inline long system_bpf(long command, const void *attr, size_t size)
{
	return system_call(SYS_bpf, command, (long)attr, (long)size, 0, 0, 0);
}

/* Memory of this process that need not be there: how many bytes were read; negative: none. */
static inline long system_read_memory(const void *from, void *ret, size_t n)
{
	struct {
		void *base;
		size_t n;
	} to = {ret, n}, of = {(void *)from, n};
	long pid = system_call(SYS_getpid, 0, 0, 0, 0, 0, 0);

	return system_call(SYS_process_vm_readv, pid, (long)&to, 1, (long)&of, 1, 0);
}

#endif
