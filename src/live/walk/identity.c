/* SPDX-License-Identifier: BSD-2-Clause */
#include "walk/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "elf/elf.h"

static int64_t ns_of(int64_t s, int64_t ns)
{
	return s * 1000000000 + ns;
}

static bool is_what_was_opened(const struct stat *st, const struct elf_origin *o)
{
	return st->st_dev == o->dev && st->st_ino == o->ino && (uint64_t)st->st_size == o->size &&
	       st->st_ctim.tv_sec == o->changed.tv_sec && st->st_ctim.tv_nsec == o->changed.tv_nsec;
}

int identity_take(struct walk_identity *ret, const struct cairn_binary *bin, struct cairn_err *err)
{
	const char *path = cairn_binary_path(bin);
	struct stat st;

	*ret = (struct walk_identity){.fd = open(path, O_PATH | O_CLOEXEC)};
	if (ret->fd < 0)
		return err_set(err, errno == ENOENT ? -ESTALE : -errno, "%s: %m", path);
	ret->is_taken = true;
	if (fstat(ret->fd, &st) < 0 || !is_what_was_opened(&st, elf_origin(binary_main(bin))))
		return err_set(err, -ESTALE, "%s: changed while it was opened", path);
	ret->size = (uint64_t)st.st_size;
	ret->written_s = st.st_mtim.tv_sec;
	ret->written_ns = (uint32_t)st.st_mtim.tv_nsec;
	ret->changed_ns = ns_of(st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
	const uint8_t *id = cairn_binary_build_id(bin, &ret->n_build_id);
	if (ret->n_build_id > sizeof(ret->build_id))
		ret->n_build_id = 0;
	if (ret->n_build_id)
		memcpy(ret->build_id, id, ret->n_build_id);
	return 0;
}

void identity_free(struct walk_identity *i)
{
	if (i->is_taken)
		close(i->fd);
	i->is_taken = false;
}

/* As the mapped file has it now. */
static bool has_its_build_id(const struct walk_identity *i, const struct cairn_binary *bin)
{
	size_t n;
	const uint8_t *id = cairn_binary_build_id(bin, &n);

	return !i->n_build_id ||
	       (n == i->n_build_id && memcmp(id, i->build_id, i->n_build_id) == 0);
}

/*
 * A new name, another owner and the removal of a name change the attributes, too. A writer that
 * puts the old time back, as `cp -p` does, leaves another build-id.
 */
bool identity_holds(const struct walk_identity *i, const struct cairn_binary *bin,
		    int64_t *ret_written_ns)
{
	struct stat st;

	*ret_written_ns = 0;
	if (!i->is_taken || fstat(i->fd, &st) < 0)
		return true;
	*ret_written_ns = ns_of(st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	if ((uint64_t)st.st_size != i->size || st.st_mtim.tv_sec != i->written_s ||
	    st.st_mtim.tv_nsec != i->written_ns)
		return false;
	return ns_of(st.st_ctim.tv_sec, st.st_ctim.tv_nsec) == i->changed_ns ||
	       has_its_build_id(i, bin);
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return ns_of(t.tv_sec, t.tv_nsec);
}

int64_t identity_real_ns(uint64_t time_ns)
{
	return clock_ns(CLOCK_REALTIME) - (clock_ns(CLOCK_MONOTONIC) - (int64_t)time_ns);
}

/* A time that is still to come was set by hand, and says nothing. */
static bool is_between(int64_t time, int64_t then)
{
	return time > then && time <= clock_ns(CLOCK_REALTIME);
}

/* A copy that keeps the times of its source has the time of its own beginning. */
bool identity_is_later(const struct walk_identity *i, uint64_t time_ns)
{
	struct statx st;
	int64_t then;

	if (!time_ns || !i->is_taken)
		return false;
	then = identity_real_ns(time_ns);
	if (is_between(ns_of(i->written_s, i->written_ns), then))
		return true;
	return statx(i->fd, "", AT_EMPTY_PATH, STATX_BTIME, &st) == 0 &&
	       st.stx_mask & STATX_BTIME &&
	       is_between(ns_of(st.stx_btime.tv_sec, st.stx_btime.tv_nsec), then);
}

bool identity_is_shorter(const struct walk_identity *i)
{
	struct stat st;

	return i->is_taken && fstat(i->fd, &st) == 0 && (uint64_t)st.st_size < i->size;
}

bool identity_is_deleted(const struct walk_identity *i)
{
	struct stat st;

	return i->is_taken && fstat(i->fd, &st) == 0 && st.st_nlink == 0;
}
