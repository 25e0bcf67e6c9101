/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who owns an address of a process: files, registered objects, code made at run time
 *
 * Several sources say what a process has at an address: its mappings, its codectl registry (cairn/abi/codectl.h), GDB's
 * list of symbol files, jitdump and perf-map files. They are read from outside, without stopping it, and verified against each
 * other: what contradicts what is mapped is shown, with the reason, and not used.
 */
#ifndef CAIRN_CODE_H
#define CAIRN_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/addr.h>
#include <cairn/api.h>

CAIRN_BEGIN_DECLS

enum cairn_code_source {
	CAIRN_CODE_FILE,      /* a mapped file */
	CAIRN_CODE_VDSO,
	CAIRN_CODE_ELF,	      /* the registry: a range of code of an ELF object */
	CAIRN_CODE_JIT,	      /* the registry: a region of a JIT */
	CAIRN_CODE_GDB,	      /* a symbol file in GDB's list, __jit_debug_descriptor */
	CAIRN_CODE_JITDUMP,   /* a mapping of which a jitdump file has functions */
	CAIRN_CODE_PERF_MAP,  /* the same of a perf-map file */
	CAIRN_CODE_ANONYMOUS, /* executable memory that nobody describes */
};

/* By what a frame there is left. */
enum cairn_code_unwind {
	CAIRN_CODE_UNWIND_NONE,	     /* by nothing */
	CAIRN_CODE_UNWIND_FILE,	     /* the file's call frame information */
	CAIRN_CODE_UNWIND_ROWS,	     /* rows of the registry */
	CAIRN_CODE_UNWIND_EH_FRAME,  /* call frame information in memory, or in a jitdump file */
	CAIRN_CODE_UNWIND_FP,	     /* the frame pointer, as its owner says */
	CAIRN_CODE_UNWIND_ASSUMED,   /* the frame pointer, which nobody says: an assumption */
};

struct cairn_code_range {
	struct cairn_addr lo, hi; /* [lo, hi) */
	enum cairn_code_source source;
	enum cairn_code_unwind unwind; /* what is tried first */
	const char *owner; /* path, or a region's name; NULL: none. Borrowed */
	uint64_t generation; /* the registration's epoch, which no other has; 0: the source knows none */
	uint64_t since_ns, until_ns; /* CLOCK_MONOTONIC; 0: not known, and still there */
	bool is_removed;
	bool is_trusted;
	const char *why; /* why it is not trusted, or what is wrong with a part of it; NULL. Borrowed */
	size_t n_rows, n_names; /* that were read */
};

/* "file", "vdso", "elf", "jit", "gdb", "jitdump", "perf-map", "anonymous". Static. */
const char *cairn_code_source_text(enum cairn_code_source source);

/* "none", "file", "rows", "eh-frame", "frame-pointer", "assumed". Static. */
const char *cairn_code_unwind_text(enum cairn_code_unwind unwind);

CAIRN_END_DECLS
#endif
