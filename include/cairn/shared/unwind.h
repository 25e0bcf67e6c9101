/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwind table: the rule that leads from a frame to its caller, for every address of one file
 *
 * One block of bytes without pointers. It is searched in place: in memory, in a mapped sidecar, in
 * another process, from BPF. All numbers are little-endian. docs/formats/unwind.md explains it with
 * an example.
 *
 *	header          64 bytes
 *	directory       8 bytes per page of 64 KiB of code that has rows, and one more
 *	rows            4 bytes each, sorted by address; 8 bytes each in a table of more rules than
 *	                16 bits can number
 *	rules           each written once; a row names one by its distance, in words of 4 bytes
 *
 * A row holds from its address to that of the next row; a range without a description is a row,
 * too, of rule 0.
 *
 * To find the rule for an address: page = (address - base) >> 16. In the directory take the last
 * entry whose page is at most that. If it is this page, take among its rows the last whose offset
 * is at most (address - base) & 0xffff. If the page has no such row, or no entry, the row is the
 * one before the rows of the next page with an entry. If there is none at all, the address is
 * undescribed.
 *
 * Extension: a reader refuses a version it does not know. header_size may grow; a reader ignores
 * the bytes after the part that it knows. New kinds of rules need a new version, since a wrong rule
 * is a wrong stack. Version 2 has wide rows and CAIRN_UNWIND_IS_PC; a table that needs neither is
 * written as version 1.
 */
#ifndef CAIRN_SHARED_UNWIND_H
#define CAIRN_SHARED_UNWIND_H

#include <assert.h>
#include <stdint.h>

#define CAIRN_UNWIND_MAGIC "cairncfi" /* 8 bytes, no NUL */

enum {
	CAIRN_UNWIND_VERSION = 1, /* of most tables */
	CAIRN_UNWIND_VERSION_MAX = 2,
	CAIRN_UNWIND_PAGE_SHIFT = 16, /* bytes of code per page, as a power of two */
};

struct cairn_unwind_header {
	uint8_t magic[8];
	uint32_t version;
	uint16_t header_size; /* bytes; where the directory begins */
	uint16_t machine;     /* EM_X86_64, EM_AARCH64 */
	uint64_t base;        /* link-time address of page 0; a multiple of the page's size */
	uint32_t n_pages;     /* entries of the directory without the one that ends it */
	uint32_t n_rows;
	uint32_t rules_size; /* bytes; at least 12, for rule 0 */
	/* FDEs, or parts of overlapping ones, that are damaged, not understood, or not over code */
	uint32_t n_dropped;
	uint64_t text_bytes;  /* bytes of code that are described */
	uint32_t row_size;    /* bytes of a row: 4 or 8; 0 in version 1: 4 */
	uint8_t reserved[12]; /* 0 */
};

struct cairn_unwind_page {
	uint32_t page;      /* strictly increasing; in the last entry UINT32_MAX */
	uint32_t first_row; /* number of its first row; in the last entry n_rows */
};

struct cairn_unwind_row {
	uint16_t off;  /* of the first byte in its page; strictly increasing within a page */
	uint16_t rule; /* where the rule begins among the rules, in words of 4 bytes */
};

/* A row of 8 bytes. */
struct cairn_unwind_wide_row {
	uint16_t off;
	uint16_t zero;
	uint32_t rule;
};

/* How the CFA, the caller's stack pointer, comes about. */
enum cairn_unwind_cfa {
	CAIRN_UNWIND_UNDESCRIBED, /* it is not known; nothing else in the rule means anything */
	CAIRN_UNWIND_CFA_REG,     /* register + off */
	CAIRN_UNWIND_CFA_DEREF,   /* the 8 bytes at register + off, then + add */
};

enum cairn_unwind_flags {
	CAIRN_UNWIND_OUTERMOST = 1, /* there is no caller */
	/* a signal trampoline: the caller was interrupted, its pc is exact */
	CAIRN_UNWIND_SIGNAL = 2,
	/* AArch64: the return address has a signature in its upper bits */
	CAIRN_UNWIND_RA_SIGNED = 4,
};

/* The location of a caller's register, in bits 5 to 7 of the register's word. */
enum cairn_unwind_saved {
	CAIRN_UNWIND_AT_CFA,  /* in memory at CFA + value */
	CAIRN_UNWIND_IS_CFA,  /* it is CFA + value */
	CAIRN_UNWIND_AT_BASE, /* in memory at the register that the CFA starts from, + value */
	/*
	 * in memory at the frame pointer (rbp, x29) of this frame + value, if that is another
	 * address
	 */
	CAIRN_UNWIND_AT_FP,
	CAIRN_UNWIND_IN_REG, /* in the register with number value */
	CAIRN_UNWIND_SAME,   /* unchanged */
	CAIRN_UNWIND_LOST,   /* it cannot be had, or not by this format */
	/* version 2: it is the pc of this frame + value: code that was jumped to and jumps back */
	CAIRN_UNWIND_IS_PC,
};

/*
 * A rule is this header and n_regs words: bits 0 to 4 the register's DWARF number, bits 5 to 7 enum
 * cairn_unwind_saved, bits 8 to 31 a signed value. The return address has the number 16 on x86-64
 * and 30 on AArch64. If it has no word, it is at CFA - 8 on x86-64, and unchanged in x30 on
 * AArch64. Other registers without a word are unchanged if the ABI has the callee save them, and
 * lost otherwise.
 */
struct cairn_unwind_rule {
	uint8_t cfa; /* enum cairn_unwind_cfa */
	uint8_t flags;
	uint8_t reg; /* DWARF number of the register that the CFA starts from */
	uint8_t n_regs;
	int32_t off;
	int32_t add;
	/* n_regs words follow: cairn_unwind_words() */
};

static inline const uint32_t *cairn_unwind_words(const struct cairn_unwind_rule *rule)
{
	return (const uint32_t *)(rule + 1);
}

static inline unsigned int cairn_unwind_word_reg(uint32_t word)
{
	return word & 31;
}

static inline enum cairn_unwind_saved cairn_unwind_word_saved(uint32_t word)
{
	return (enum cairn_unwind_saved)(word >> 5 & 7);
}

static inline int32_t cairn_unwind_word_value(uint32_t word)
{
	return (int32_t)word >> 8;
}

static_assert(sizeof(struct cairn_unwind_header) == 64, "layout of the header");
static_assert(sizeof(struct cairn_unwind_page) == 8, "layout of a directory entry");
static_assert(sizeof(struct cairn_unwind_row) == 4, "layout of a row");
static_assert(sizeof(struct cairn_unwind_wide_row) == 8, "layout of a wide row");
static_assert(sizeof(struct cairn_unwind_rule) == 12, "layout of a rule");

#endif
