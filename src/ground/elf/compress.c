/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compressed sections
 *
 * Two forms. The current one is a flag (SHF_COMPRESSED) and a header before the data:
 *
 *	OFFSET  SIZE  MEANING
 *	0       4     type: 1 zlib, 2 zstd
 *	4       4     reserved
 *	8       8     size when decompressed
 *	16      8     alignment when decompressed
 *	24            data
 *
 * The older one is a name (.zdebug_info) and "ZLIB", then the size as 8 bytes big-endian, then
 * data. The name without the magic means an uncompressed section.
 *
 * libdeflate and zstd are called directly: libelf 0.188 (Debian 12) does not know type 2, and
 * inflates by zlib, which takes twice as long.
 *
 * The size is the input's word. zlib cannot do better than 1032:1 (a pair of 258 bytes in 2 bits),
 * so that a claim beyond that is a lie which costs nothing to refuse. zstd can, but sections of
 * debug information do not, and the same limit keeps a file of a few kilobytes from taking
 * gigabytes of memory.
 */
#include "elf/compress.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <libdeflate.h>
#include <zstd.h>

#include "elf/section_raw.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

/* See above. The slack lets tiny sections be. */
#define MAX_RATIO   1032
#define RATIO_SLACK 4096

/* Four times the largest .debug_info that browsers and kernels have today. */
#define MAX_DECOMPRESSED (16ull << 30)

#define ZDEBUG_HEADER 12

struct compressed {
	uint32_t type;
	uint64_t size; /* decompressed */
	const uint8_t *data;
	uint64_t data_size;
};

static bool is_zdebug(const struct elf *e, size_t i)
{
	const struct section *s = &e->sections[i];
	const uint8_t *raw;
	return !strncmp(s->file.name, ".zdebug_", 8) && section_raw(e, i, &raw, NULL) == 0 && raw &&
	       s->file_size >= ZDEBUG_HEADER && !memcmp(raw, "ZLIB", 4);
}

bool section_is_compressed(const struct elf *e, size_t i)
{
	const struct section *s = &e->sections[i];
	return section_has_bytes(s) && ((s->file.flags & SHF_COMPRESSED) || is_zdebug(e, i));
}

static int read_header(const struct elf *e, size_t i, struct compressed *ret, struct cairn_err *err)
{
	const struct section *s = &e->sections[i];
	const uint8_t *raw;
	int r = section_raw(e, i, &raw, err);
	if (r < 0)
		return r;
	struct cursor_src src = {e->path, s->file.name, raw};
	struct cursor c = cursor_of(&src, raw, s->file_size, false, err);
	if (s->file.flags & SHF_COMPRESSED) {
		ret->type = cur_u32(&c);
		cur_skip(&c, sizeof(Elf64_Word));
		ret->size = cur_u64(&c);
		cur_skip(&c, sizeof(Elf64_Xword));
	} else {
		ret->type = ELFCOMPRESS_ZLIB;
		cur_skip(&c, 4);
		c.big_endian = true;
		ret->size = cur_u64(&c);
	}
	ret->data_size = cur_left(&c);
	ret->data = cur_bytes(&c, ret->data_size);
	return c.failed ? -EBADMSG : 0;
}

static int check_size(const struct elf *e, const char *name, const struct compressed *z,
		      struct cairn_err *err)
{
	if (z->size > MAX_DECOMPRESSED)
		return err_set(err, -ERANGE,
			       "%s: %s: 0x%" PRIx64 " bytes when decompressed; the limit is 0x%llx",
			       e->path, name, z->size, MAX_DECOMPRESSED);
	if (z->size > RATIO_SLACK && (z->size - RATIO_SLACK) / MAX_RATIO > z->data_size)
		return err_set(err, -ERANGE,
			       "%s: %s: 0x%" PRIx64 " bytes from 0x%" PRIx64
			       " compressed ones; more than %d:1 is taken for an attack",
			       e->path, name, z->size, z->data_size, MAX_RATIO);
	return 0;
}

/* ld -r joins compressed sections: several streams, one after the other. */
static const char *inflate_streams(struct libdeflate_decompressor *d, const struct compressed *z,
				   uint8_t *out)
{
	uint64_t in_pos = 0, out_pos = 0;
	while (out_pos < z->size) {
		size_t in_n, out_n;
		if (libdeflate_zlib_decompress_ex(d, z->data + in_pos, z->data_size - in_pos,
						  out + out_pos, z->size - out_pos, &in_n,
						  &out_n) != LIBDEFLATE_SUCCESS)
			return "damaged zlib data";
		if (!out_n)
			return "zlib data ends early";
		in_pos += in_n;
		out_pos += out_n;
	}
	return NULL;
}

static const char *inflate_all(const struct compressed *z, uint8_t *out)
{
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	const char *why = d ? inflate_streams(d, z, out) : "out of memory";
	libdeflate_free_decompressor(d);
	return why;
}

static const char *unzstd_all(const struct compressed *z, uint8_t *out)
{
	size_t n = ZSTD_decompress(out, z->size, z->data, z->data_size);
	if (ZSTD_isError(n))
		return ZSTD_getErrorName(n);
	return n == z->size ? NULL : "zstd data ends early";
}

int section_decompress(const struct elf *e, size_t i, uint8_t **ret, uint64_t *ret_size,
		       struct cairn_err *err)
{
	const char *name = e->sections[i].file.name;
	struct compressed z;
	int r = read_header(e, i, &z, err);
	if (r < 0)
		return r;
	if (z.type != ELFCOMPRESS_ZLIB && z.type != ELFCOMPRESS_ZSTD)
		return err_set(err, -EOPNOTSUPP,
			       "%s: %s+0x0: compression type %u; known are 1 (zlib), 2 (zstd)",
			       e->path, name, z.type);
	if ((r = check_size(e, name, &z, err)) < 0)
		return r;
	uint8_t *out = malloc(z.size ? z.size : 1);
	if (!out)
		return err_nomem(err, name);
	const char *why = z.type == ELFCOMPRESS_ZLIB ? inflate_all(&z, out) : unzstd_all(&z, out);
	if (why) {
		free(out);
		return err_set(err, -EBADMSG, "%s: %s: cannot decompress: %s", e->path, name, why);
	}
	*ret = out;
	*ret_size = z.size;
	return 0;
}
