/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A walk in the kernel shares with the library: frames, and tables in maps
 *
 * Tables are large and their size is not known before: they are arrays of equal blocks, each a map
 * of its own, and are added as needed.
 */
#ifndef WALK_ABI_H
#define WALK_ABI_H

#include <stdint.h>

/*
 * A frame is one number:
 *
 *	bit 63                 an address of the kernel, as it is
 *	bit 62                 an address of the process, in bits 0 to 56, that is in no known file;
 *	                       with bit 60: in bits 0 to 46, in a region of a JIT, of whose epoch
 *	                       bits 47 to 59 are the lower part
 *	else bits 40 to 60     number of the file
 *	     bits 0 to 39      link-time address, minus that of the file's base
 *	bit 61                 with both of the latter: the frame is assumed
 *
 * An address is the one to look up: of a return address the byte before it.
 */
#define WALK_KERNEL      (1ULL << 63)
#define WALK_RAW         (1ULL << 62)
#define WALK_ASSUMED     (1ULL << 61)
#define WALK_MADE        (1ULL << 60)
#define WALK_FILE_SHIFT  40
#define WALK_FILE_MASK   ((1U << 21) - 1)
#define WALK_AT_MASK     ((1ULL << WALK_FILE_SHIFT) - 1)
#define WALK_RAW_MASK    ((1ULL << 57) - 1)
#define WALK_EPOCH_SHIFT 47
#define WALK_EPOCH_MASK  ((1U << 13) - 1)
#define WALK_MADE_MASK   ((1ULL << WALK_EPOCH_SHIFT) - 1)

/* A number that tells a frame of no file from others of its process. */
static inline uint64_t walk_unfiled(uint64_t frame)
{
	return frame & ~(WALK_KERNEL | WALK_RAW | WALK_ASSUMED);
}

/* Its address. */
static inline uint64_t walk_unfiled_address(uint64_t unfiled)
{
	return unfiled & (unfiled & WALK_MADE ? WALK_MADE_MASK : WALK_RAW_MASK);
}

enum {
	WALK_MAX_FRAMES = 1024, /* of the user's part */
	WALK_MAX_KERNEL = 127,  /* what the kernel gives */
	/* Frames of a walk that are known to be no return addresses, beside the first one. */
	WALK_EXACT_MAX = 8,
	WALK_EXACT_SIGNAL = 1 << 15, /* the frame is a signal's */
};

/* Why a walk ended. As enum cairn_prof_end. */
enum walk_end {
	WALK_END_COMPLETE,
	WALK_END_ASSUMED,
	WALK_END_NO_USER,
	WALK_END_NO_PROCESS,
	WALK_END_NO_MAPPING,
	WALK_END_NOT_READY,
	WALK_END_UNDESCRIBED,
	WALK_END_UNREADABLE,
	WALK_END_LOST,
	WALK_END_LOOP,
	WALK_END_LIMIT,
	WALK_END_READS,
	WALK_N_ENDS,
};

/*
 * How a frame is left. 16 bytes; all files share the equal ones. Frames are counted from rsp or
 * rbp; only that of the dynamic linker which binds a function at its first call is from rbx.
 */
enum walk_cfa {
	WALK_CFA_NONE,  /* undescribed */
	WALK_CFA_REG,   /* reg + off */
	WALK_CFA_DEREF, /* the 8 bytes at reg + off, then + add */
};

enum walk_saved {
	WALK_SAME,
	WALK_AT_CFA,  /* in memory at CFA + off */
	WALK_AT_BASE, /* in memory at the register of the CFA + off */
	WALK_AT_FP,   /* in memory at rbp + off */
	WALK_IS_CFA,  /* CFA + off */
	WALK_IN_REG,  /* register number off */
	WALK_NOT_SAVED,
	WALK_IS_PC, /* pc + off */
};

enum {
	WALK_OUTERMOST = 1,
	WALK_SIGNAL = 2,
};

struct walk_rule {
	uint8_t cfa;   /* enum walk_cfa in bits 0 to 3, enum walk_saved of rbx in 4 to 7 */
	uint8_t reg;   /* DWARF number */
	uint8_t flags; /* WALK_OUTERMOST, WALK_SIGNAL */
	uint8_t fp_ra; /* enum walk_saved of rbp in bits 0 to 3, of the return address in 4 to 7 */
	int32_t off;
	int16_t add;
	int16_t fp_off;
	int16_t ra_off;
	int16_t bx_off;
};

/* The rows of 64 KiB of code. A block is 512 bytes of code. */
#define WALK_PAGE_SHIFT  16
#define WALK_BLOCK_SHIFT 9
#define WALK_BLOCKS      (1 << (WALK_PAGE_SHIFT - WALK_BLOCK_SHIFT))

struct walk_page {
	uint32_t chunk;  /* of rows */
	uint32_t first;  /* row in it */
	uint16_t n_rows; /* at most 65,535 */
	uint16_t before; /* the rule at the beginning of the page */
	uint32_t reserved;
	uint16_t begins[WALK_BLOCKS]; /* number of rows before each block */
};

struct walk_row {
	uint16_t off;  /* in the page */
	uint16_t rule; /* number; 0 is none */
};

/* An executable mapping of a process. Those of a process are sorted, and follow each other. */
struct walk_segment {
	uint64_t lo, hi;
	/*
	 * The file number and address of lo, as in a frame. File 0: memory. If it has pages, these
	 * are of code made at run time, and the address counts from the first of them.
	 */
	uint64_t at;
	uint32_t first_page; /* of the file's base; WALK_NO_PAGES */
	uint32_t n_pages;
};
#define WALK_NO_PAGES  0xffffffffU
/* n_pages is the number of a region. */
#define WALK_IN_REGION 0xfffffffeU

/*
 * A region of a JIT that registered itself (cairn/shared/codectl.h), as its registration was when
 * it was read. Its rows are in the memory of the process. A region passes into a new generation by
 * another entry of the registry, which the kernel's program finds by itself.
 */
struct walk_region {
	uint64_t text_start, text_end;
	uint64_t epoch;
	uint64_t unwind_head;   /* address of the first table of rows; 0: none */
	uint64_t n_entries_at;  /* address of the number of entries */
	uint64_t entries;       /* address of the first one */
	uint32_t stride, entry; /* bytes from entry to entry; number of this one */
	uint32_t is_extended;   /* tables have heads of 32 bytes; else of 24, the RFC's own form */
	uint32_t flags;         /* enum code_jit_flags */
};

/*
 * A file by its device and inode, as the kernel has them; the vDSO has neither. So the program
 * finds the file of a mapping that nobody has reported.
 */
struct walk_inode {
	uint64_t dev; /* MAJOR << 20 | MINOR */
	uint64_t ino;
};

enum { WALK_INODE_LOADS = 2 };

struct walk_inode_file {
	uint32_t first_page, n_pages; /* as of a segment */
	/* Size and time of its content: another one has other code. All 0 of the vDSO. */
	uint64_t size, written_s, written_ns;
	struct {
		uint64_t from, to; /* offsets in the file of mappings of code */
		uint64_t at;       /* a frame's number of offset 0 */
	} loads[WALK_INODE_LOADS];
};

struct walk_process {
	uint32_t first, n;   /* segments */
	uint32_t generation; /* unique; another one whenever the segments are others */
	uint32_t flags;
};
enum {
	WALK_IS_TARGET = 1, /* one whose stacks are wanted */
	WALK_HAS_MAPPINGS = 2,
	WALK_IS_COMMAND = 4, /* a target from its exec on; until then it is our own child */
};

/* Equal blocks: a megabyte of each table. */
enum {
	WALK_CHUNK_ROWS = 1 << 18,
	WALK_CHUNK_PAGES = 3840,
	WALK_CHUNK_SEGMENTS = 1 << 15,
	WALK_CHUNK_REGIONS = 1 << 13,
	WALK_MAX_CHUNKS = 4096,
	WALK_MAX_RULES = 65535,
	/* The rule of a frame without a caller. */
	WALK_RULE_OUTERMOST = 1,
	WALK_MAX_PROCESSES = 65536,
	WALK_MAX_INODES = 16384,
	WALK_CACHE_SLOTS = 4096,
	/*
	 * Walks of one processor at once: a probe's program may be preempted by another one's.
	 * Only the first has a cache, as another program might write into it in the middle.
	 */
	WALK_MAX_WALKS = 8,
	WALK_NO_CACHE = (1 << 20) - 1,
	/* User memory that is read for one walk, in reads; a frame of a JIT takes 9 to 30. */
	WALK_MAX_READS = 4096,
};

#endif
