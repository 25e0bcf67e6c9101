/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/gzip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <libdeflate.h>

/* The fastest level: profiles compress to a sixth by it, and by a tenth more at the slowest. */
#define LEVEL 1

struct output {
	uint8_t *bytes;
	size_t n, room;
};

bool gzip_is(const void *bytes, size_t size)
{
	return size > 2 && !memcmp(bytes, "\x1f\x8b", 2);
}

static int grow(struct output *out, const char *name, struct cairn_err *err)
{
	size_t room = out->room ? out->room * 2 : 1 << 16;
	uint8_t *grown;

	if (out->room >= GZIP_MAX)
		return err_set(err, -ERANGE, "%s: more than 1 GiB when it is inflated", name);
	grown = realloc(out->bytes, room);
	if (!grown)
		return err_nomem(err, "the inflated profile");
	out->bytes = grown;
	out->room = room;
	return 0;
}

/* One member; *@used is its length in the file. */
static int inflate_member(struct libdeflate_decompressor *d, const uint8_t *bytes, size_t size,
			  const char *name, struct output *out, size_t *used, struct cairn_err *err)
{
	for (;;) {
		size_t n = 0;
		enum libdeflate_result r = libdeflate_gzip_decompress_ex(
			d, bytes, size, out->bytes + out->n, out->room - out->n, used, &n);
		int rc;

		if (r == LIBDEFLATE_SUCCESS) {
			out->n += n;
			return 0;
		}
		if (r != LIBDEFLATE_INSUFFICIENT_SPACE)
			return err_set(err, -EBADMSG, "%s: the gzip data are damaged or cut", name);
		rc = grow(out, name, err);
		if (rc < 0)
			return rc;
	}
}

int gzip_inflate(const void *bytes, size_t size, const char *name, uint8_t **ret, size_t *ret_size,
		 struct cairn_err *err)
{
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	struct output out = {0};
	int rc = d ? grow(&out, name, err) : err_nomem(err, "the inflated profile");

	for (size_t at = 0, used = 0; rc == 0 && at < size; at += used)
		rc = inflate_member(d, (const uint8_t *)bytes + at, size - at, name, &out, &used,
				    err);
	libdeflate_free_decompressor(d);
	if (rc < 0) {
		free(out.bytes);
		return rc;
	}
	*ret = out.bytes;
	*ret_size = out.n;
	return 0;
}

int gzip_deflate(const void *bytes, size_t size, uint8_t **ret, size_t *ret_size,
		 struct cairn_err *err)
{
	struct libdeflate_compressor *c = libdeflate_alloc_compressor(LEVEL);
	size_t room = c ? libdeflate_gzip_compress_bound(c, size) : 0;
	uint8_t *out = room ? malloc(room) : NULL;

	if (out)
		*ret_size = libdeflate_gzip_compress(c, bytes, size, out, room);
	libdeflate_free_compressor(c);
	*ret = out;
	return out ? 0 : err_nomem(err, "the compressed profile");
}
