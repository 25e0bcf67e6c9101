/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program of 18 bytes of code with .BTF and .BTF.inline, for tests of answers from BTF
 *
 *	0x1000 body:   mov %edi,%eax; ret
 *	0x1008 caller: push %rbx; mov %edi,%ebx; add $1,%ebx; mov %ebx,%eax; pop %rbx; ret
 *
 * It has the functions int body(int a, int b), which ignores b, and int caller(int n). inl(), which was inlined at
 * 0x100b and 0x100e, has a parameter for each form of a location; body() was inlined at 0x1009.
 */
#ifndef SAMPLES_SITES_FILE_H
#define SAMPLES_SITES_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SITES_FILE_BODY = 0x1000,
	SITES_FILE_CALLER = 0x1008,
	SITES_FILE_FIRST = 0x100b,
	SITES_FILE_SECOND = 0x100e,
	SITES_FILE_PARAMS = 9,
};

/* The defects; all 0: none. */
struct sites_file_opts {
	bool without_types; /* no .BTF */
	bool without_sites; /* no .BTF.inline */
	bool without_symbols;
	bool other_base; /* .BTF is another one than .BTF.inline is split from */
	bool v1;
	bool link;           /* .BTF.inline.link instead of .BTF.inline */
	const char *label;   /* of the LOCSEC; NULL: ".text" */
	const char *comment; /* .comment; NULL: none */
	uint32_t past_end;   /* added to the offset of each site */
	bool wrong_proto;    /* a site's LOC_PROTO is another kind */
	bool many_slots;     /* more than parameters */
	bool wrong_func;
	size_t cut; /* bytes that are missing at the end of .BTF.inline, or of .BTF */
	size_t cut_types;
};

/* The file, to be freed by the caller; aborts without memory. */
uint8_t *sites_file(const struct sites_file_opts *opts, size_t *ret_size);

/* Bytes of its .BTF.inline, and of its .BTF. */
size_t sites_file_inline_size(void);
size_t sites_file_types_size(void);

#endif
