/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compressed files
 *
 *	first bytes        format
 *	28 b5 2f fd        zstd
 *	1f 8b              gzip; its last four bytes are the size of what it has
 *	fd 37 7a 58 5a 00  xz: no library of ours reads it
 *
 * The size of what is in a file is the file's word. So memory grows with what was read, and what
 * would be larger than any module is refused: the largest of Debian, with its debug information,
 * has 100 MB.
 */
#include "elf/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/err.h"
#include "base/scope.h"
#include "base/vec.h"
#include "elf/elf.h"

#define PACKED_MAX   ((size_t)1 << 27)
#define UNPACKED_MAX ((size_t)1 << 28)

enum { PIECE = 1 << 17, GZIP_MIN = 18, SIZE_BYTES = 4 };

struct bytes {
	VEC(uint8_t) v;
};

static int damaged(const char *name, const char *what, struct cairn_err *err)
{
	return err_set(err, -EBADMSG, "%s: damaged %s", name, what);
}

static int too_large(const char *name, struct cairn_err *err)
{
	return err_set(err, -ERANGE, "%s: more than %zu MB when it is unpacked", name,
		       UNPACKED_MAX >> 20);
}

/* ---- zstd ---- */

static int read_pieces(ZSTD_DCtx *z, ZSTD_inBuffer *in, const char *name, struct bytes *to,
		       struct cairn_err *err)
{
	size_t left = 1;
	while (left) {
		if (to->v.n > UNPACKED_MAX)
			return too_large(name, err);
		if (!VEC_RESERVE(&to->v, PIECE))
			return err_nomem(err, name);
		ZSTD_outBuffer out = {to->v.p + to->v.n, PIECE, 0};
		size_t before = in->pos;
		left = ZSTD_decompressStream(z, &out, in);
		to->v.n += out.pos;
		if (ZSTD_isError(left) || (left && !out.pos && in->pos == before))
			return damaged(name, "zstd", err);
	}
	return 0;
}

static int unpack_zstd(const uint8_t *bytes, size_t size, const char *name, struct bytes *to,
		       struct cairn_err *err)
{
	ZSTD_DCtx *z = ZSTD_createDCtx();
	ZSTD_inBuffer in = {bytes, size, 0};
	int rc = z ? 0 : err_nomem(err, name);
	/* Frames may follow each other. */
	while (rc == 0 && in.pos < size)
		rc = read_pieces(z, &in, name, to, err);
	ZSTD_freeDCtx(z);
	return rc;
}

/* ---- gzip ---- */

static int unpack_gzip(const uint8_t *bytes, size_t size, const char *name, struct bytes *to,
		       struct cairn_err *err)
{
	uint32_t wanted;
	size_t n = 0;
	if (size < GZIP_MIN)
		return damaged(name, "gzip", err);
	memcpy(&wanted, bytes + size - SIZE_BYTES, SIZE_BYTES);
	if (wanted > UNPACKED_MAX)
		return too_large(name, err);
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	int rc = d && VEC_RESERVE(&to->v, (size_t)wanted + 1) ? 0 : err_nomem(err, name);
	if (rc == 0 && libdeflate_gzip_decompress(d, bytes, size, to->v.p, wanted, &n))
		rc = damaged(name, "gzip", err);
	to->v.n = n;
	libdeflate_free_decompressor(d);
	return rc;
}

/* ---- which of them ---- */

int unpack(const uint8_t *bytes, size_t size, const char *name, uint8_t **ret, size_t *ret_size,
	   struct cairn_err *err)
{
	struct bytes to = {0};
	int rc;
	if (size >= 4 && !memcmp(bytes, "\x28\xb5\x2f\xfd", 4))
		rc = unpack_zstd(bytes, size, name, &to, err);
	else if (size >= 2 && !memcmp(bytes, "\x1f\x8b", 2))
		rc = unpack_gzip(bytes, size, name, &to, err);
	else if (size >= 6 && !memcmp(bytes, "\xfd\x37\x7a\x58\x5a\0", 6))
		rc = err_set(err, -EOPNOTSUPP,
			     "%s is compressed by xz, which is not read here. Unpack it, and name "
			     "the result with --debug-file",
			     name);
	else
		rc = err_set(err, -EOPNOTSUPP,
			     "%s is compressed in a way that is not known. Unpack it, and name the "
			     "result with --debug-file",
			     name);
	if (rc < 0)
		VEC_FREE(&to.v);
	*ret = to.v.p;
	*ret_size = to.v.n;
	return rc;
}

/* ---- files ---- */

static int read_whole(const char *path, struct bytes *ret, struct cairn_err *err)
{
	SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	ssize_t got = 1;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode) || (size_t)st.st_size > PACKED_MAX)
		return err_set(err, -ERANGE, "%s: no file of a module's size", path);
	if (!VEC_RESERVE(&ret->v, (size_t)st.st_size + 1))
		return err_nomem(err, path);
	while (ret->v.n < (size_t)st.st_size && got > 0) {
		got = read(fd, ret->v.p + ret->v.n, (size_t)st.st_size - ret->v.n);
		ret->v.n += got > 0 ? (size_t)got : 0;
	}
	return got < 0 ? err_set(err, -errno, "%s: %s", path, strerror(errno)) : 0;
}

/* A file in memory, which is mapped like others. */
static int write_whole(const uint8_t *bytes, size_t size, struct cairn_err *err)
{
	int fd = memfd_create("unpacked", MFD_CLOEXEC);
	ssize_t put = 1;
	for (size_t n = 0; fd >= 0 && n < size && put > 0; n += put > 0 ? (size_t)put : 0)
		put = write(fd, bytes + n, size - n);
	if (fd >= 0 && put > 0)
		return fd;
	int rc = err_set(err, -errno, "a file in memory: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
	return rc;
}

int binary_open_unpacked(const char *path, const struct cairn_binary_opts *opts,
			 struct cairn_binary **ret, struct cairn_err *err)
{
	struct bytes packed = {0};
	uint8_t *bytes = NULL;
	size_t size = 0;
	int rc = read_whole(path, &packed, err);
	if (rc == 0)
		rc = unpack(packed.v.p, packed.v.n, path, &bytes, &size, err);
	VEC_FREE(&packed.v);
	SCOPE_CLOSE int fd = rc == 0 ? write_whole(bytes, size, err) : -1;
	free(bytes);
	if (rc < 0 || fd < 0)
		return rc < 0 ? rc : fd;
	return binary_open_fd(fd, path, opts, ret, err);
}
