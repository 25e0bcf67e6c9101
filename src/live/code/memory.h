/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Foreign memory: a process, a core file, a block of bytes
 *
 * Its contents may change at any moment, may be missing, and may have been written to harm. So the
 * data is copied first, and the copy is parsed.
 */
#ifndef CODE_MEMORY_H
#define CODE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct core;

struct code_memory {
	/* Copies up to @n bytes from @at; returns how many were there from @at on. */
	size_t (*read)(void *ctx, uint64_t at, void *ret, size_t n);
	void *ctx;
};

/* Whether all of them were there. */
static inline bool code_memory_all(const struct code_memory *m, uint64_t at, void *ret, size_t n)
{
	return m->read(m->ctx, at, ret, n) == n;
}

/* By process_vm_readv(2): needs the permissions of ptrace. Threads: any. */
struct code_memory code_memory_of_process(int pid);

struct code_memory code_memory_of_core(const struct core *core);

/* @n bytes that stand for address @at; it borrows the struct. */
struct code_block {
	const uint8_t *bytes;
	size_t n;
	uint64_t at;
};
struct code_memory code_memory_of_block(const struct code_block *block);

#endif
