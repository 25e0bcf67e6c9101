/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ways in which a JIT says what a function is and how to unwind it, each written as the JITs that
 * use it do.
 */
#ifndef BENCH_CODECTL_PEERS_H
#define BENCH_CODECTL_PEERS_H

#include <stddef.h>
#include <stdint.h>

enum { FUNCTION_BYTES = 64 };

struct peer {
	const char *name;
	const char *says; /* what others learn from it */
	void (*open)(size_t n);
	void (*publish)(size_t i, const uint8_t *code, const char *name);
	void (*withdraw)(size_t i); /* NULL: it cannot be */
	void (*close)(void);
};

extern const struct peer codectl_rows, codectl_named;
extern const struct peer register_frame, jitdump, jitdump_unwind, perf_map, perf_map_buffered,
	gdb_list;
#ifdef WITH_LLVM
extern const struct peer llvm_list;
#endif

#endif
