/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Call frame information for tests and fuzz seeds, written in readable code
 *
 *	struct frames f = {0};
 *	size_t cie = frames_cie_eh(&f, "zR", "\x1b");		// pcrel, sdata4
 *	frames_fde_eh(&f, section_addr, cie, lo, size, program, n);
 *	... f.bytes, f.n ...
 *	frames_free(&f);
 *
 * Every CIE begins with the row CFA = rsp+8, return address at CFA-8. The formats are described in
 * src/facts/cfi/frame_entry.c. Small lists live in the struct; nothing needs to be freed for those.
 */
#ifndef SAMPLES_FRAME_BUILDER_H
#define SAMPLES_FRAME_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct frames {
	uint8_t *bytes;
	size_t n, cap;
	size_t last; /* offset of the entry that was ended last */
	uint8_t small[4096];
};

static inline void frames_free(struct frames *f)
{
	if (f->bytes != f->small)
		free(f->bytes);
	f->bytes = NULL;
}

static __attribute__((noinline, unused)) void frames_put(struct frames *f, const void *bytes,
							 size_t n)
{
	if (!f->bytes) {
		f->bytes = f->small;
		f->cap = sizeof(f->small);
	}
	if (f->n + n > f->cap) {
		uint8_t *grown = malloc(f->n + n);
		if (!grown)
			abort();
		memcpy(grown, f->bytes, f->n);
		frames_free(f);
		f->bytes = grown;
		f->cap = f->n + n;
	}
	if (n)
		memcpy(f->bytes + f->n, bytes, n);
	f->n += n;
}

static inline void frames_u8(struct frames *f, uint8_t v)
{
	frames_put(f, &v, sizeof(v));
}

static inline void frames_u32(struct frames *f, uint32_t v)
{
	frames_put(f, &v, sizeof(v));
}

static inline void frames_u64(struct frames *f, uint64_t v)
{
	frames_put(f, &v, sizeof(v));
}

/* Length (set when it ends) and, of an FDE of .eh_frame, the way back to its CIE. */
static inline size_t frames_entry_begin(struct frames *f, size_t cie, bool is_fde)
{
	size_t at = f->n;
	frames_u32(f, 0);
	frames_u32(f, is_fde ? (uint32_t)(f->n - cie) : 0);
	return at;
}

static inline void frames_entry_end_exactly(struct frames *f, size_t at)
{
	uint32_t length = (uint32_t)(f->n - at - 4);
	memcpy(f->bytes + at, &length, sizeof(length));
	f->last = at;
}

/* Pads with DW_CFA_nop, as assemblers do. */
static inline void frames_entry_end(struct frames *f, size_t at)
{
	while ((f->n - at) % 8 != 4)
		frames_u8(f, 0);
	frames_entry_end_exactly(f, at);
}

static inline size_t frames_last_length(const struct frames *f)
{
	return f->n - f->last - 4;
}

/* def_cfa rsp+@cfa_off; return address at cfa-8; alignment factors and column come first. */
static inline void frames_cie_rest(struct frames *f, uint8_t cfa_off, const char *letters,
				   const void *data, size_t n)
{
	frames_put(f, "\x01\x78\x10", 3);
	if (letters[0] == 'z')
		frames_u8(f, (uint8_t)n);
	frames_put(f, data, n);
	frames_put(f, "\x0c\x07", 2);
	frames_u8(f, cfa_off);
	frames_put(f, "\x90\x01", 2);
}

static inline size_t frames_cie_eh_n(struct frames *f, const char *letters, const void *data,
				     size_t n)
{
	size_t at = frames_entry_begin(f, 0, false);
	frames_u8(f, 1);
	frames_put(f, letters, strlen(letters) + 1);
	frames_cie_rest(f, 8, letters, data, n);
	frames_entry_end(f, at);
	return at;
}

static inline size_t frames_cie_eh(struct frames *f, const char *letters, const char *data)
{
	return frames_cie_eh_n(f, letters, data, strlen(data));
}

/*
 * An FDE whose CIE says "\x1b": addresses of 4 bytes relative to the field. @addr is the section's.
 */
static inline void frames_fde_eh(struct frames *f, uint64_t addr, size_t cie, uint64_t lo,
				 uint32_t size, const uint8_t *program, size_t n)
{
	size_t at = frames_entry_begin(f, cie, true);
	frames_u32(f, (uint32_t)(lo - (addr + f->n)));
	frames_u32(f, size);
	frames_u8(f, 0);
	frames_put(f, program, n);
	frames_entry_end(f, at);
}

static inline void frames_length(struct frames *f, bool is_64, uint64_t length)
{
	if (!is_64) {
		frames_u32(f, (uint32_t)length);
		return;
	}
	frames_u32(f, 0xffffffff);
	frames_u64(f, length);
}

static inline size_t frames_cie_debug(struct frames *f, uint8_t version, bool is_64,
				      uint8_t cfa_off)
{
	size_t at = f->n, id = is_64 ? 8 : 4;
	/* id, version, "", address and segment size, factors, column, 5 bytes of program */
	frames_length(f, is_64, id + 2 + (version == 4 ? 2 : 0) + 3 + 5);
	frames_put(f, "\xff\xff\xff\xff\xff\xff\xff\xff", id);
	frames_u8(f, version);
	frames_u8(f, 0);
	if (version == 4)
		frames_put(f, "\x08\x00", 2);
	frames_cie_rest(f, cfa_off, "", "", 0);
	return at;
}

static inline void frames_fde_debug(struct frames *f, size_t cie, bool is_64, uint64_t lo,
				    uint64_t size, const uint8_t *program, size_t n)
{
	frames_length(f, is_64, (is_64 ? 8 : 4) + 16 + n);
	if (is_64)
		frames_u64(f, cie);
	else
		frames_u32(f, (uint32_t)cie);
	frames_u64(f, lo);
	frames_u64(f, size);
	frames_put(f, program, n);
}

#endif
