/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jitdump files for tests and fuzz seeds; the format is in src/live/code/jitdump.h
 *
 *	struct jitdump_builder b = {0};
 *	jd_header(&b);
 *	jd_line(&b, 0x1000, (struct jd_line){0x1000, 3, "a.js"});
 *	jd_load(&b, 0x1000, 16, 1, "f");
 *	... b.bytes, b.n ...
 */
#ifndef SAMPLES_JITDUMP_BUILDER_H
#define SAMPLES_JITDUMP_BUILDER_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "frame_builder.h"

enum { JD_LOAD, JD_MOVE, JD_DEBUG_INFO, JD_CLOSE, JD_UNWINDING };

struct jitdump_builder {
	uint8_t bytes[4096];
	size_t n;
};

struct jd_line {
	uint64_t at;
	uint32_t line;
	const char *file;
};

static inline void jd_put(struct jitdump_builder *b, const void *bytes, size_t n)
{
	if (n > sizeof(b->bytes) - b->n)
		abort();
	memcpy(b->bytes + b->n, bytes, n);
	b->n += n;
}

static inline void jd_u32(struct jitdump_builder *b, uint32_t v)
{
	jd_put(b, &v, sizeof(v));
}

static inline void jd_u64(struct jitdump_builder *b, uint64_t v)
{
	jd_put(b, &v, sizeof(v));
}

static inline void jd_str(struct jitdump_builder *b, const char *text)
{
	jd_put(b, text, strlen(text) + 1);
}

static inline void jd_header(struct jitdump_builder *b)
{
	const uint32_t head[] = {0x4a695444, 1, 40, EM_X86_64, 0, 17};
	jd_put(b, head, sizeof(head));
	jd_u64(b, 0);
	jd_u64(b, 0);
}

static inline size_t jd_begin(struct jitdump_builder *b, uint32_t id)
{
	size_t at = b->n;
	jd_u32(b, id);
	jd_u32(b, 0);
	jd_u64(b, 1);
	return at;
}

static inline void jd_end(struct jitdump_builder *b, size_t at)
{
	uint32_t size = (uint32_t)(b->n - at);
	memcpy(b->bytes + at + 4, &size, sizeof(size));
}

/* The code itself is left out: nobody here reads it. */
static inline void jd_load(struct jitdump_builder *b, uint64_t at, uint64_t size, uint64_t number,
			   const char *name)
{
	size_t record = jd_begin(b, JD_LOAD);
	jd_u64(b, 17);
	jd_u64(b, at);
	jd_u64(b, at);
	jd_u64(b, size);
	jd_u64(b, number);
	jd_str(b, name);
	jd_end(b, record);
}

static inline void jd_move(struct jitdump_builder *b, uint64_t from, uint64_t to, uint64_t size,
			   uint64_t number)
{
	size_t record = jd_begin(b, JD_MOVE);
	const uint64_t fields[] = {17, to, from, to, size, number};
	jd_put(b, fields, sizeof(fields));
	jd_end(b, record);
}

static inline void jd_lines(struct jitdump_builder *b, uint64_t code, const struct jd_line *lines,
			    size_t n)
{
	size_t record = jd_begin(b, JD_DEBUG_INFO);
	jd_u64(b, code);
	jd_u64(b, n);
	for (size_t i = 0; i < n; i++) {
		jd_u64(b, lines[i].at);
		jd_u32(b, lines[i].line);
		jd_u32(b, 0);
		jd_str(b, lines[i].file);
	}
	jd_end(b, record);
}

static inline void jd_unwinding(struct jitdump_builder *b, const void *eh, size_t n, size_t n_hdr,
				uint64_t mapped)
{
	size_t record = jd_begin(b, JD_UNWINDING);
	jd_u64(b, n);
	jd_u64(b, n_hdr);
	jd_u64(b, mapped);
	jd_put(b, eh, n);
	jd_end(b, record);
}

/*
 * .eh_frame of a function of @size bytes at @at, which pushes rbp as its first instruction; then 20
 * bytes of a header.
 */
static inline void jd_unwinding_of_push(struct jitdump_builder *b, uint64_t at, uint32_t size)
{
	static const uint8_t push_rbp[] = {0x41, 0x0e, 16, 0x86,
					   2}; /* advance 1, CFA +16, rbp at CFA-16 */
	struct frames f = {0};
	uint64_t after = at + ((size + 7) & ~7U);
	size_t cie = frames_cie_eh(&f, "zR", "\x1b");
	frames_fde_eh(&f, after, cie, at, size, push_rbp, sizeof(push_rbp));
	frames_put(&f, "\x01\x1b\x03\x3b", 4);
	frames_put(&f, (const uint8_t[16]){0}, 16);
	jd_unwinding(b, f.bytes, f.n, 20, f.n);
	frames_free(&f);
}

#endif
