/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding the sidecar of a binary: beside it, in the cache, or by making it. */
#include <cairn/pack.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"
#include "pack/cache.h"

__attribute__((format(printf, 2, 3))) static void note(struct cairn_pack_search *s, const char *fmt, ...)
{
	size_t n = strlen(s->note);
	va_list args;
	va_start(args, fmt);
	if (n && n + 1 < sizeof(s->note))
		s->note[n++] = '\n';
	vsnprintf(s->note + n, sizeof(s->note) - n, fmt, args);
	va_end(args);
}

/* Returns 0; anything else is no sidecar, and noted unless there is no file. */
static int try_open(struct cairn_pack_search *s, const char *path, const uint8_t *id, size_t len,
		    struct cairn_pack **ret)
{
	struct cairn_pack_opts opts = {
		.size = sizeof(opts),
		.build_id = id,
		.build_id_len = len,
		.must_be_trusted = !geteuid(),
	};
	struct cairn_err err = {0};
	struct cairn_pack *pack;
	int rc = cairn_pack_open(path, &opts, &pack, &err);
	if (!rc && s->places && !cairn_pack_has_places(pack)) {
		cairn_pack_close(pack);
		return -ENOENT;
	}
	if (!rc)
		*ret = pack;
	if (rc < 0 && rc != -ENOENT && rc != -ENOTDIR)
		note(s, "%s", err.msg);
	return rc;
}

/* PATH.cairn, with the links on the way to PATH resolved: what is opened is walked without following any. */
static int try_beside(struct cairn_pack_search *s, const struct cairn_binary *bin, const uint8_t *id, size_t len,
		      struct cairn_pack **ret)
{
	SCOPE_FREE char *real = realpath(cairn_binary_path(bin), NULL), *path = NULL;
	if (!real)
		return -ENOENT;
	if (asprintf(&path, "%s.cairn", real) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	return try_open(s, path, id, len, ret);
}

static int make_and_keep(const struct cairn_binary *bin, struct cairn_pack_search *s, const char *cached,
			 struct cairn_pack **ret, struct cairn_err *err)
{
	struct cairn_pack_make_opts opts = {.size = sizeof(opts), .threads = s->threads, .places = s->places};
	struct cairn_packed packed;
	struct cairn_err unkept = {0};
	int rc = cairn_pack_make(bin, &opts, &packed, err);
	if (rc < 0)
		return rc == -ENODATA ? -ENOENT : rc;
	if (cached && cache_keep(s->cache_dir, cached, packed.bytes, packed.size, s->cache_bytes, &unkept) < 0)
		note(s, "not kept in the cache: %s", unkept.msg);
	rc = cairn_pack_open_packed(&packed, cairn_binary_path(bin), ret, err);
	cairn_packed_free(&packed);
	return rc;
}

static int search_for(const struct cairn_binary *bin, struct cairn_pack_search *s, struct cairn_pack **ret,
		      struct cairn_err *err)
{
	size_t len;
	const uint8_t *id = cairn_binary_build_id(bin, &len);
	SCOPE_FREE char *cached = NULL;
	if (len && !try_beside(s, bin, id, len, ret))
		return 0;
	if (len && s->cache_dir) {
		cached = cache_path(s->cache_dir, id, len);
		if (!cached)
			return err_nomem(err, "a path");
		if (!try_open(s, cached, id, len, ret)) {
			cache_touch(cached);
			return 0;
		}
	}
	if (!s->may_make)
		return err_set(err, -ENOENT, "%s: no sidecar", cairn_binary_path(bin));
	return make_and_keep(bin, s, cached, ret, err);
}

int cairn_pack_for(const struct cairn_binary *bin, struct cairn_pack_search *search, struct cairn_pack **ret,
		   struct cairn_err *err)
{
	for (size_t i = sizeof(*search); i < search->size; i++)
		if (((const char *)search)[i])
			return err_set(err, -EINVAL, "struct cairn_pack_search: byte %zu is set, and only %zu are known",
				       i, sizeof(*search));
	search->note[0] = 0;
	return search_for(bin, search, ret, err);
}
