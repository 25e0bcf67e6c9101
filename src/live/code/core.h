/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Core files: the remains of a process
 *
 * A core is an ELF file without sections: PT_LOAD segments are memory, PT_NOTE holds registers and
 * the names of mapped files. Those that the kernel writes, those of gdb's gcore and those that QEMU
 * writes of a program it emulates are read, of x86-64 and AArch64.
 */
#ifndef CODE_CORE_H
#define CODE_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/addr.h>
#include <cairn/err.h>

#include "base/cursor.h"
#include "base/vec.h"
#include "code/memory.h"
#include "code/space.h"
#include "code/vectors.h"

/* Memory at [lo, hi), of which the bytes [lo, dumped) are in the file at off. */
struct core_segment {
	uint64_t lo, hi, dumped, off;
	bool is_executable, is_readable;
};

/* A file that was mapped at [lo, hi) from its offset off on. */
struct core_file {
	uint64_t lo, hi, off;
	const char *path; /* in the core; with " (deleted)" when it had no name any more */
	/* core_add_loaded() has found that the file of this path, which is ours, is the one */
	bool is_known;
};

enum { CORE_N_REGS = 34 };

struct core_thread {
	int tid;
	int signal;     /* that it got; 0: none */
	bool has_fault; /* the signal was raised by an access, or by the instruction, at fault */
	uint64_t fault;
	struct vectors vectors; /* of x86-64 */
	/*
	 * struct user_regs_struct of x86-64; of AArch64 struct user_pt_regs: x0 to x30, sp, pc,
	 * pstate
	 */
	uint64_t user[CORE_N_REGS];
};

struct core {
	char *path;
	const uint8_t *bytes;
	size_t size;
	bool is_mapped;   /* bytes are ours */
	uint16_t machine; /* EM_X86_64, EM_AARCH64 */
	uint64_t whole;   /* bytes that the headers tell of; larger than size: it was cut off */
	VEC(struct core_segment) segments; /* by address, without overlaps */
	VEC(struct core_thread) threads;   /* as in the file: the one that crashed is first */
	VEC(struct core_file) files;
	int pid;
	char comm[17]; /* of the main thread */
	/* of AArch64: bits of an address of code that a signature takes; 0: not known */
	uint64_t signature;
	uint64_t vdso; /* 0: not known */
	/* of the program: its program headers, name, entry, number of headers; 0: not known */
	uint64_t phdr, execfn, entry, phnum;
	VEC(char *) names;            /* of files that the core does not name */
	char note[CAIRN_ERR_MSG_MAX]; /* which of those was not found; "" */
};

/*
 * core_open - map and read a core file
 *
 * The whole parts of a cut file are available. Returns 0; -EBADMSG if the file is no core file;
 * -EOPNOTSUPP of another class or architecture; -ENOMEM; the errors of open(2), fstat(2) and
 *             mmap(2).
 * Cost: its headers and notes, no memory.
 */
int core_open(const char *path, struct core **ret, struct cairn_err *err);

/* The same of bytes that outlive it. */
int core_open_mem(const void *bytes, size_t size, const char *name, struct core **ret,
		  struct cairn_err *err);
void core_close(struct core *core); /* takes NULL */

/* @n bytes of memory at @at; false when they were not dumped, or were cut off. Threads: any. */
bool core_read(const struct core *core, uint64_t at, void *ret, size_t n);

/* The notes of one PT_NOTE. Within this module. 0, -ENOMEM; damage ends the list. */
int core_read_notes(struct core *core, struct cursor notes, struct cairn_err *err);

/* The mapping or part of one at @at; NULL when there is none. O(log n). */
const struct core_segment *core_segment_at(const struct core *core, uint64_t at);

enum { CORE_MAX_BUILD_ID = 64 }; /* linkers write 8 to 20 bytes, or the bytes given by an option */

struct core_build_id {
	uint8_t bytes[CORE_MAX_BUILD_ID];
	size_t n;
};

/*
 * The build-id of the ELF file whose offset 0 is mapped at @base, if that page was dumped. Within
 * this module.
 */
bool core_build_id_at(const struct core *core, uint64_t base, struct core_build_id *ret);

struct core_search {
	const struct core *core;
	/* the file of the program, whatever the core says of it; NULL. Borrowed, as the rest */
	const char *program;
	const char *sysroot; /* goes before the paths in the core; NULL: "" */
	const char *const *debug_dirs;
	size_t n_debug_dirs;
	unsigned int threads;
};

/*
 * core_add_loaded - the files of a core without NT_FILE, by the dynamic loader's list; and the
 * program that is named by @search
 *
 * The named program is accepted unless the core contradicts it: by its entry, its program headers,
 * its build-id or its dynamic section.
 *
 * To be called before code_space_open_core(). Files that cannot be found, or are not the mapped
 * ones, are left out; core->note has one of them.
 * Returns 0, -ENOMEM.
 */
int core_add_loaded(struct core *core, const struct core_search *search, struct cairn_err *err);

/*
 * code_space_open_core - the code of a core file
 *
 * A file is taken only when its build-id is that in the core's memory, where the first page of each
 * mapped ELF file is dumped; the vDSO is taken from memory.
 * @search  outlives the result
 * Returns 0, -ENOMEM.
 */
int code_space_open_core(const struct core_search *search, struct code_space **ret,
			 struct cairn_err *err);

/*
 * core_open_all - a core file, all its files, and its code
 *
 * @search  as for code_space_open_core(); its core is set
 * The results are the caller's also after a failure, as far as they are not NULL.
 */
int core_open_all(const char *path, struct core_search *search, struct core **ret,
		  struct code_space **ret_space, struct cairn_err *err);

/* Both are borrowed. */
struct core_memory {
	const struct core *core;
	struct code_space *space;
};

/*
 * Its memory, and for parts that were not dumped the constant sections of the files; borrows the
 * struct. Not for several threads.
 */
struct code_memory code_memory_of_core_and_files(struct core_memory *m);

#endif
