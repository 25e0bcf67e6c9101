/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile_sidecars.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "debuginfod.h"
#include "due.h"
#include "keep.h"

/* A debuginfod that was away, or had no sidecar then, may have one. */
#define TRY_AGAIN_SECONDS 600

static int find_offline(struct profile_sidecars *s, const struct cairn_binary *bin, bool lines,
			struct cairn_sidecar **ret, struct cairn_err *err)
{
	struct sidecar_wish wish = s->wish;
	int r;

	wish.offline = true;
	wish.lines = lines;
	pthread_mutex_lock(&s->lock);
	r = sidecar_find(&wish, bin, ret, err);
	pthread_mutex_unlock(&s->lock);
	return r;
}

int profile_find_sidecar(void *sidecars, const struct cairn_binary *bin, struct cairn_sidecar **ret,
			 struct cairn_err *err)
{
	return find_offline(sidecars, bin, true, ret, err);
}

int profile_find_sites(void *sidecars, const struct cairn_binary *bin, struct cairn_sidecar **ret,
		       struct cairn_err *err)
{
	return find_offline(sidecars, bin, false, ret, err);
}

/* "/usr/bin/x" of "/proc/123/root/usr/bin/x"; NULL: the path is not one through a process. */
static const char *path_in_root(const char *path)
{
	if (strncmp(path, "/proc/", 6) != 0)
		return NULL;
	path += 6;
	while (isdigit((unsigned char)*path))
		path++;
	return strncmp(path, "/root/", 6) ? NULL : path + 5;
}

static bool has_build_id_of(const struct cairn_binary *a, const struct cairn_binary *b)
{
	size_t n, k;
	const uint8_t *x = cairn_binary_build_id(a, &n), *y = cairn_binary_build_id(b, &k);

	return n && n == k && !memcmp(x, y, n);
}

/*
 * The same file by its own path. It was opened through a process that has ended since, so that its
 * path there leads nowhere, and the cache keeps no sidecar of it. NULL: there is no such file.
 */
static struct cairn_binary *by_own_path(const struct cairn_binary *bin)
{
	const char *path = path_in_root(cairn_binary_path(bin));
	struct cairn_binary *own;

	if (!path || !access(cairn_binary_path(bin), F_OK) ||
	    cairn_binary_open(path, NULL, &own, NULL) < 0)
		return NULL;
	if (has_build_id_of(own, bin))
		return own;
	cairn_binary_close(own);
	return NULL;
}

int profile_make_sidecar(void *sidecars, const struct cairn_binary *bin, struct cairn_sidecar **ret,
			 struct cairn_err *err)
{
	struct profile_sidecars *s = sidecars;
	struct cairn_binary *own = by_own_path(bin);
	int r = 0;

	*ret = NULL;
	/* A failure was reported, and the file's symbols will do. */
	if (cairn_binary_has_dwarf(own ? own : bin))
		sidecar_make(own ? own : bin, &s->wish, ret);
	else
		r = sidecar_find(&s->wish, own ? own : bin, ret, err);
	cairn_binary_close(own);
	return r;
}

/* FNV-1a of the build-id; 0: it has none. */
static uint64_t key_of(const struct cairn_binary *bin)
{
	size_t n;
	const uint8_t *id = cairn_binary_build_id(bin, &n);
	uint64_t key = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < n; i++)
		key = (key ^ id[i]) * UINT64_C(0x100000001b3);
	return n ? key : 0;
}

/* NULL: it is on the disk under no name that is known. */
static const char *path_of(const struct cairn_binary *bin, const struct cairn_binary *own)
{
	if (own)
		return cairn_binary_path(own);
	return access(cairn_binary_path(bin), F_OK) ? NULL : cairn_binary_path(bin);
}

static void begin_sidecar(struct profile_sidecars *s, const struct cairn_binary *bin,
			  const char *path)
{
	if (debuginfod_asked(s->wish.debuginfod) && !cairn_binary_has_dwarf(bin))
		keep_fetched_in_background(path, s->wish.debuginfod ? s->wish.debuginfod : "");
	else
		keep_in_background(path, NULL, 0);
}

int profile_later_sidecar(void *sidecars, const struct cairn_binary *bin,
			  struct cairn_sidecar **ret, struct cairn_err *err)
{
	struct profile_sidecars *s = sidecars;
	uint64_t key = key_of(bin);

	*ret = NULL;
	if (!key || s->wish.no_cache || clock_now_seconds() < s->not_before)
		return 0;
	struct cairn_binary *own = by_own_path(bin);
	const char *path = path_of(bin, own);
	if (path && due_now(&s->tried, key, clock_now_seconds(), TRY_AGAIN_SECONDS)) {
		begin_sidecar(s, bin, path);
		s->not_before = clock_now_seconds() + 2;
	}
	cairn_binary_close(own);
	return 0;
}
