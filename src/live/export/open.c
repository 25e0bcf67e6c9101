/* SPDX-License-Identifier: BSD-2-Clause */
/* Which format a profile is in. */
#include "export/profile_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/utf8.h"
#include "export/gzip.h"

/* Text with a number at the end of the first line; pprof's bytes begin with 0x0a and a length. */
static bool is_folded(const uint8_t *bytes, size_t size)
{
	const uint8_t *end = memchr(bytes, '\n', size);
	size_t n = end ? (size_t)(end - bytes) : size, len;
	uint32_t c;

	if (n > 0 && n < 3)
		return false;
	for (size_t at = 0; at < n; at += len) {
		len = utf8_length(bytes + at, n - at, &c);
		if (!len || (c < 0x20 && c != '\t' && c != '\r'))
			return false;
	}
	return n > 0;
}

int cairn_profile_read(const void *bytes, size_t size, const char *name, struct cairn_profile **ret,
		       struct cairn_err *err)
{
	uint8_t *inflated = NULL;
	int rc;

	*ret = NULL;
	if (size > GZIP_MAX)
		return err_set(err, -ERANGE, "%s: more than 1 GiB", name);
	if (!size)
		return err_set(err, -EBADMSG, "%s: empty", name);
	if (gzip_is(bytes, size)) {
		rc = gzip_inflate(bytes, size, name, &inflated, &size, err);
		if (rc < 0)
			return rc;
		bytes = inflated;
	}
	rc = size && is_folded(bytes, size) ? profile_read_folded(bytes, size, name, ret, err)
					    : profile_read_pprof(bytes, size, name, ret, err);
	free(inflated);
	return rc;
}

static int read_all(int fd, const char *path, uint8_t **bytes, size_t *size, struct cairn_err *err)
{
	size_t room = 0;

	for (;;) {
		ssize_t n;

		if (*size == room) {
			uint8_t *grown = realloc(*bytes, room = room ? room * 2 : 1 << 16);

			if (!grown)
				return err_nomem(err, "the profile's bytes");
			*bytes = grown;
		}
		n = read(fd, *bytes + *size, room - *size);
		if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
			poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1);
			continue;
		}
		if (n < 0)
			return err_set(err, -errno, "%s: %s", path, strerror(errno));
		*size += (size_t)n;
		if (n == 0 || *size > GZIP_MAX)
			return 0;
	}
}

int cairn_profile_open(const char *path, struct cairn_profile **ret, struct cairn_err *err)
{
	uint8_t *bytes = NULL;
	size_t size = 0;
	/* A pipe whose writer is not there yet is empty; nobody waits for one. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc;

	*ret = NULL;
	if (fd < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	rc = read_all(fd, path, &bytes, &size, err);
	close(fd);
	if (rc == 0)
		rc = cairn_profile_read(bytes, size, path, ret, err);
	free(bytes);
	return rc;
}
