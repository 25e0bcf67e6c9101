/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the BPF program and the library share: tables in maps, and records in the ring
 *
 * Tables are large and their size is not known before: they are arrays of equal blocks, each a map
 * of its own, and are added as needed.
 */
#ifndef PROF_ABI_H
#define PROF_ABI_H

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
#define PROF_KERNEL      (1ULL << 63)
#define PROF_RAW         (1ULL << 62)
#define PROF_ASSUMED     (1ULL << 61)
#define PROF_MADE        (1ULL << 60)
#define PROF_FILE_SHIFT  40
#define PROF_FILE_MASK   ((1U << 21) - 1)
#define PROF_AT_MASK     ((1ULL << PROF_FILE_SHIFT) - 1)
#define PROF_RAW_MASK    ((1ULL << 57) - 1)
#define PROF_EPOCH_SHIFT 47
#define PROF_EPOCH_MASK  ((1U << 13) - 1)
#define PROF_MADE_MASK   ((1ULL << PROF_EPOCH_SHIFT) - 1)

/* What tells a frame of no file from others of its process. */
static inline uint64_t prof_unfiled(uint64_t frame)
{
	return frame & ~(PROF_KERNEL | PROF_RAW | PROF_ASSUMED);
}

/* Its address. */
static inline uint64_t prof_unfiled_address(uint64_t unfiled)
{
	return unfiled & (unfiled & PROF_MADE ? PROF_MADE_MASK : PROF_RAW_MASK);
}

enum {
	PROF_MAX_FRAMES = 1024, /* of the user's part */
	PROF_MAX_KERNEL = 127,  /* what the kernel gives */
};

/* The kind of a record. A hit of a probe whose weight is not known is a sample without one. */
enum prof_state {
	PROF_WEIGHED,
	PROF_STACK_ONLY,  /* no sample: hands over the stack */
	PROF_UNAVAILABLE, /* at this site */
	PROF_NOT_READ,    /* memory that could not be read */
	PROF_TOO_LARGE,   /* negative, or more than a sum has room for */
	PROF_N_STATES,
};

/* A sample. One whose stack is new is followed by it. */
struct prof_sample {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t stack;   /* hash of frames and end; never 0 */
	uint64_t weight;  /* 1, nanoseconds blocked, or what a probe computed */
	uint32_t pid, tid;
	char comm[16];
	/* The number of a probe; the user's first frame is there. */
	uint32_t site : 24, state : 8; /* enum prof_state */
	uint16_t cpu;
	uint8_t end;       /* enum cairn_prof_end */
	uint8_t is_new;    /* frames follow */
	uint16_t n_kernel; /* of them, the first ones; the rest is the user's */
	uint16_t n_frames;
	uint32_t generation; /* of the process's mappings that the walk used; 0: none */
};

/*
 * How a frame is left. 16 bytes; all files share the equal ones. Frames are counted from rsp or
 * rbp; only that of the dynamic linker which binds a function at its first call is from rbx.
 */
enum prof_cfa {
	PROF_CFA_NONE,  /* undescribed */
	PROF_CFA_REG,   /* reg + off */
	PROF_CFA_DEREF, /* the 8 bytes at reg + off, then + add */
};

enum prof_saved {
	PROF_SAME,
	PROF_AT_CFA,  /* in memory at CFA + off */
	PROF_AT_BASE, /* in memory at the register of the CFA + off */
	PROF_AT_FP,   /* in memory at rbp + off */
	PROF_IS_CFA,  /* CFA + off */
	PROF_IN_REG,  /* register number off */
	PROF_NOT_SAVED,
	PROF_IS_PC, /* pc + off */
};

enum {
	PROF_OUTERMOST = 1,
	PROF_SIGNAL = 2,
};

struct prof_rule {
	uint8_t cfa;   /* enum prof_cfa in bits 0 to 3, enum prof_saved of rbx in 4 to 7 */
	uint8_t reg;   /* DWARF number */
	uint8_t flags; /* PROF_OUTERMOST, PROF_SIGNAL */
	uint8_t fp_ra; /* enum prof_saved of rbp in bits 0 to 3, of the return address in 4 to 7 */
	int32_t off;
	int16_t add;
	int16_t fp_off;
	int16_t ra_off;
	int16_t bx_off;
};

/* Of 64 KiB of code: where its rows are. A block is 512 bytes of code. */
#define PROF_PAGE_SHIFT  16
#define PROF_BLOCK_SHIFT 9
#define PROF_BLOCKS      (1 << (PROF_PAGE_SHIFT - PROF_BLOCK_SHIFT))

struct prof_page {
	uint32_t chunk;  /* of rows */
	uint32_t first;  /* row in it */
	uint16_t n_rows; /* at most 65,535 */
	uint16_t before; /* the rule at the beginning of the page */
	uint32_t reserved;
	uint16_t begins[PROF_BLOCKS]; /* number of rows before each block */
};

struct prof_row {
	uint16_t off;  /* in the page */
	uint16_t rule; /* number; 0 is none */
};

/* An executable mapping of a process. Those of a process are sorted, and follow each other. */
struct prof_segment {
	uint64_t lo, hi;
	/*
	 * Of lo: file number and address, as in a frame. File 0: memory. If it has pages, these are
	 * of code made at run time, and the address counts from the first of them.
	 */
	uint64_t at;
	uint32_t first_page; /* of the file's base; PROF_NO_PAGES */
	uint32_t n_pages;
};
#define PROF_NO_PAGES  0xffffffffU
/* n_pages is the number of a region. */
#define PROF_IN_REGION 0xfffffffeU

/*
 * A region of a JIT that registered itself (cairn/shared/codectl.h), as its registration was when
 * it was read. Its rows are in the memory of the process. A region passes into a new generation by
 * another entry of the registry, which the kernel's program finds by itself.
 */
struct prof_region {
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
 * A file by its device and inode, as the kernel has them; the vDSO has neither. So the program finds
 * the file of a mapping that nobody has reported.
 */
struct prof_inode {
	uint64_t dev; /* MAJOR << 20 | MINOR */
	uint64_t ino;
};

enum { PROF_INODE_LOADS = 2 };

struct prof_inode_file {
	uint32_t first_page, n_pages; /* as of a segment */
	/* Of its content: another one has other code. All 0 of the vDSO. */
	uint64_t size, written_s, written_ns;
	struct {
		uint64_t from, to; /* offsets in the file of mappings of code */
		uint64_t at;       /* a frame's number of offset 0 */
	} loads[PROF_INODE_LOADS];
};

struct prof_process {
	uint32_t first, n;   /* segments */
	uint32_t generation; /* unique; another one whenever the segments are others */
	uint32_t flags;
};
enum {
	PROF_IS_TARGET = 1, /* to be sampled */
	PROF_HAS_MAPPINGS = 2,
	PROF_IS_COMMAND = 4, /* a target from its exec on; until then it is our own child */
};

/* Equal blocks: a megabyte of each table. */
enum {
	PROF_CHUNK_ROWS = 1 << 18,
	PROF_CHUNK_PAGES = 3840,
	PROF_CHUNK_SEGMENTS = 1 << 15,
	PROF_CHUNK_REGIONS = 1 << 13,
	PROF_MAX_CHUNKS = 4096,
	PROF_MAX_RULES = 65535,
	/* The rule of a frame without a caller. */
	PROF_RULE_OUTERMOST = 1,
	PROF_MAX_PROCESSES = 65536,
	PROF_MAX_INODES = 16384,
	PROF_CACHE_SLOTS = 4096,
	/*
	 * Walks of one processor at once: a probe's program may be preempted by another one's.
	 * Only the first has a cache, as another program might write into it in the middle.
	 */
	PROF_MAX_WALKS = 8,
	PROF_NO_CACHE = (1 << 20) - 1,
	PROF_SEEN_SLOTS = 16384,
	/* User memory that is read for one sample, in reads; a frame of a JIT takes 9 to 30. */
	PROF_MAX_READS = 4096,
};

#endif
