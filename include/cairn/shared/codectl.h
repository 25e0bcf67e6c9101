/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * codectl: the code that a process has, and how to unwind it
 *
 * This header has the arguments of codectl(option, info, info_size, flags), as in the RFC of July
 * 2025 and its review. It also has the registry in memory that implements the call without a
 * kernel. docs/formats/codectl.md lists the open questions of the RFC, the decisions made here, and
 * the reasons. All numbers are of the byte order of the process; pointers are addresses in it.
 *
 * It grows as copy_struct_from_user() does: a shorter info is filled with zeros, a longer one is
 * E2BIG unless the unknown part is zero. flags is 0.
 */
#ifndef CAIRN_SHARED_CODECTL_H
#define CAIRN_SHARED_CODECTL_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* As agreed in review: any value but 0 registers something. */
enum code_opt {
	CODE_UNREGISTER = 0,
	CODE_REGISTER_ELF = 1,
	CODE_REGISTER_JIT = 2,
};

/*
 * As the RFC was posted; served by another symbol, codectl_rfc(), since the same number means
 * something else.
 */
enum code_opt_rfc {
	CODE_RFC_REGISTER_ELF = 0,
	CODE_RFC_REGISTER_JIT = 1,
	CODE_RFC_UNREGISTER = 2,
};

/* The format of the data at unwind_start. */
enum code_unwind_kind {
	CODE_UNWIND_NONE = 0,
	CODE_UNWIND_EH_FRAME = 1, /* CIEs and FDEs as in .eh_frame, [unwind_start, unwind_end) */
	CODE_UNWIND_EH_FRAME_HDR = 2, /* .eh_frame_hdr, which leads to them */
};

/*
 * One range of code of an ELF object; an object with several of them is registered several times.
 */
struct code_elf_info {
	uint64_t elf_start; /* first loadable segment */
	uint64_t elf_end;   /* end of the last one */
	/* [text_start, text_end) is code, in one or more mappings that are executable */
	uint64_t text_start;
	uint64_t text_end;
	uint64_t sframe_start; /* 0, 0: identity only */
	uint64_t sframe_end;
	uint64_t pathname;            /* char *; 0: not known */
	uint64_t build_id;            /* bytes; 0: not known */
	uint64_t debug_link_pathname; /* char *; 0: not known */
	uint32_t build_id_len;
	uint32_t debug_link_crc;
	/* The members after those of the RFC. */
	uint64_t unwind_start;
	uint64_t unwind_end;
	uint32_t unwind_kind; /* enum code_unwind_kind */
	uint32_t reserved;    /* 0 */
};

/*
 * Shows that a caller knows the members after the 24 bytes of the RFC. No address of x86-64 or
 * AArch64 looks like this, so that a struct code_elf_info, which has text_end at this offset, is
 * never taken for one.
 */
#define CODE_JIT_EXTENDED UINT64_C(0xc0dec71e70000001)

enum code_jit_flags {
	/*
	 * At addresses without a row, CFA = frame pointer + 16, as in code that keeps a frame
	 * pointer; wrong in prologues.
	 */
	CODE_JIT_FRAME_POINTER = 1,
	CODE_JIT_ASSUMED = 2, /* no source declares it: an observer assumes it */
};

/* A region that code is written into, and the tables that grow with it. */
struct code_jit_info {
	/* [text_start, text_end); at most 4 GiB, since rows have 32-bit offsets */
	uint64_t text_start;
	uint64_t text_end;
	uint64_t unwind_head; /* struct code_jit_table * of rows */
	/*
	 * The members after those of the RFC; without CODE_JIT_EXTENDED the tables are of the RFC's
	 * form, too.
	 */
	uint64_t extended;     /* CODE_JIT_EXTENDED */
	uint64_t symbols_head; /* struct code_jit_table * of struct code_jit_symbol; 0: none */
	uint64_t lines_head;   /* struct code_jit_table * of struct code_jit_line; 0: none */
	uint64_t unwind_start; /* instead of rows, or for code without a row */
	uint64_t unwind_end;
	uint32_t unwind_kind; /* enum code_unwind_kind */
	uint32_t flags;       /* enum code_jit_flags */
	uint64_t name;        /* char *, "luajit traces"; 0: none */
};

/* Removes the registration of just this range. */
struct code_unregister_info {
	uint64_t text_start;
	uint64_t text_end;
};

/*
 * The head of a table of rows, symbols or lines, of the form that was proposed in the thread on 23
 * July 2025. Elements ascend by address, do not overlap, and may leave gaps; so do those of chained
 * tables.
 *
 * used_len is published with a store-release after the bytes of the element, and read with a
 * load-acquire. So is next, after the whole table that it names; later it may name another one, put
 * in between. Any table of a chain may grow, as long as the order holds. An element is published
 * before its code can run.
 *
 * In one epoch of a region an address is described at most once. Code that is withdrawn and then
 * described anew is described under a new epoch, with tables of which some are new. The tables that
 * it does not have any more may hold anything by then.
 */
struct code_jit_table {
	uint64_t reserved_len; /* bytes of elements that there is room for; constant */
	uint64_t used_len;     /* bytes of elements that are there; only grows */
	uint64_t next;         /* struct code_jit_table *; 0: none yet */
	uint32_t stride;       /* from element to element, in bytes */
	/* end of the last member that the writer knows; a reader takes those beyond for absent */
	uint32_t size;
	/* elements follow */
};

/* The head in the RFC's own form: rows of 24 bytes follow at once. */
struct code_jit_unwind_table {
	uint64_t reserved_len;
	uint64_t used_len;
	uint64_t next;
};

/* The information word of a row, like the information byte of SFrame. */
enum code_jit_row_info {
	/* the CFA starts from the frame pointer (rbp, x29); else from the stack pointer */
	CODE_ROW_CFA_FP = 1,
	/* the return address is at CFA + ra_off; else at CFA - 8 (x86-64), in x30 (AArch64) */
	CODE_ROW_RA = 2,
	CODE_ROW_FP = 4, /* the caller's frame pointer is at CFA + fp_off; else it is unchanged */
	CODE_ROW_RA_SIGNED = 8,    /* AArch64: it has a signature in its upper bits */
	CODE_ROW_OUTERMOST = 16,   /* there is no caller */
	CODE_ROW_UNDESCRIBED = 32, /* it is known that these addresses cannot be unwound */
	CODE_ROW_SIGNAL = 64,      /* a signal frame: the caller was interrupted */
};

/*
 * How to unwind from [text_start + ip_off, + size). A row that is withdrawn has its size set to 0,
 * in one store.
 */
struct code_jit_unwind_fre {
	uint32_t size;
	uint32_t ip_off;
	int32_t cfa_off;
	int32_t ra_off;
	int32_t fp_off;
	uint8_t info; /* enum code_jit_row_info */
	uint8_t pad[3];
};

/*
 * A function, or a copy of one that was inlined into the one before it. The strings stay as they
 * are while the region is registered. Withdrawn like a row.
 */
struct code_jit_symbol {
	uint32_t size;
	uint32_t ip_off;
	uint64_t name; /* char * */
	/*
	 * 0: a function; n: inlined into the last symbol before with depth n - 1, within its
	 * addresses
	 */
	uint32_t depth;
	uint32_t call_line; /* of the call that was inlined; 0: not known */
	uint64_t call_file; /* char *; 0: not known */
};

/*
 * From this address to that of the next one, the code belongs to this line; among several at one
 * address the last one counts.
 */
struct code_jit_line {
	uint32_t ip_off;
	uint32_t line; /* 0: no line; an entry is also withdrawn this way */
	uint64_t file; /* char *; 0: not known */
};

/*
 * The registry of one process is a private mapping of a memfd with the name CODECTL_REGISTRY_NAME.
 * So readers find it in /proc/PID/maps, fork copies it, and exec ends it. magic is written last.
 * Strings follow the entries. A process has one for each copy of the library in it: two, if a
 * program that is statically linked with it runs with the agent.
 */
#define CODECTL_REGISTRY_NAME  "cairn-codectl"
#define CODECTL_REGISTRY_MAGIC "codectl" /* with its NUL: 8 bytes */

enum {
	CODECTL_REGISTRY_VERSION = 1,
	/*
	 * A process with a thousand objects is large; beyond this a registry is taken for damaged.
	 */
	CODECTL_MAX_ENTRIES = 1 << 20,
	/*
	 * The number of removals after which the first removed entry may lose its slot to another
	 * registration.
	 */
	CODECTL_MIN_REMOVED = 1024,
};

struct codectl_registry {
	char magic[8];
	uint32_t version;
	uint32_t header_size; /* of this struct as the writer knows it */
	uint64_t self;        /* address of this struct */
	uint64_t size;        /* bytes of the mapping that the writer may use */
	uint64_t entries;     /* address of the first entry */
	uint32_t entry_stride;
	uint32_t n_entries; /* that were ever used; only grows, store-release */
	uint64_t changes;   /* registrations and removals so far, for readers that poll */
	uint64_t reserved[8];
};

/*
 * One registration. Only epoch makes it valid. It is 0 while the rest is written. Then one
 * store-release sets it to a number that no registration of the process had before. Removal stores
 * 0. A reader that finds the same epoch before and after has read what belongs to it. A removed
 * entry stays readable, by last_epoch, until its slot is used again; last_epoch is 0 before any
 * other member of the slot changes.
 *
 * Valid entries overlap in one case: a region passes into a new generation, by an entry with a
 * higher epoch that becomes valid before the old one is removed. So there is no moment without the
 * region. The higher epoch counts.
 */
struct codectl_entry {
	uint64_t epoch;
	uint64_t last_epoch; /* counts while epoch is 0 */
	uint64_t since_ns;   /* CLOCK_MONOTONIC */
	uint64_t until_ns;   /* counts while epoch is 0: when it was removed */
	uint32_t option;     /* enum code_opt: CODE_REGISTER_ELF or _JIT */
	uint32_t reserved;
	union {
		struct code_elf_info elf;
		struct code_jit_info jit;
		uint64_t room[16];
	} info; /* strings and build-ids are copies, in the mapping */
};

enum {
	CODE_ELF_INFO_RFC_SIZE = 80,
	CODE_JIT_INFO_RFC_SIZE = 24,
	CODE_JIT_UNWIND_FRE_RFC_SIZE = 21, /* without the padding */
};

static_assert(offsetof(struct code_elf_info, unwind_start) == CODE_ELF_INFO_RFC_SIZE,
	      "the RFC's part");
static_assert(sizeof(struct code_elf_info) == 104, "layout of what ELF registers");
static_assert(offsetof(struct code_jit_info, extended) == CODE_JIT_INFO_RFC_SIZE, "the RFC's part");
static_assert(sizeof(struct code_jit_info) == 80, "layout of what a JIT registers");
static_assert(sizeof(struct code_unregister_info) == 16, "layout of a removal");
static_assert(sizeof(struct code_jit_table) == 32, "layout of a table");
static_assert(sizeof(struct code_jit_unwind_table) == 24, "layout of the RFC's table");
static_assert(sizeof(struct code_jit_unwind_fre) == 24, "layout of a row");
static_assert(sizeof(struct code_jit_symbol) == 32, "layout of a symbol");
static_assert(sizeof(struct code_jit_line) == 16, "layout of a line");
static_assert(sizeof(struct codectl_registry) == 120, "layout of the registry");
static_assert(sizeof(struct codectl_entry) == 168, "layout of an entry");

#endif
