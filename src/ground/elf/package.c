/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which Debian package would help
 *
 * dpkg keeps one file per package with the paths it installed, one per line:
 *
 *	/var/lib/dpkg/info/libc6:amd64.list
 *
 * Reading them gives the owner of a binary without running any program. Paths in the lists may lack
 * the /usr that the merged directory tree puts before /lib and /bin.
 */
#include "elf/package.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/inputs.h"
#include "base/scope.h"

static bool has_line(const char *text, size_t size, const char *line)
{
	size_t n = strlen(line);
	for (const char *p = text, *end = text + size; p < end;) {
		const char *nl = memchr(p, '\n', end - p);
		size_t len = nl ? (size_t)(nl - p) : (size_t)(end - p);
		if (len == n && !memcmp(p, line, n))
			return true;
		p += len + 1;
	}
	return false;
}

static bool lists(int dir_fd, const char *list, const char *path)
{
	SCOPE_CLOSE int fd = openat(dir_fd, list, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !st.st_size)
		return false;
	char *text = input_map(fd, (size_t)st.st_size, list);
	if (!text)
		return false;
	bool found = has_line(text, st.st_size, path) ||
		     (!strncmp(path, "/usr/", 5) && has_line(text, st.st_size, path + 4));
	input_unmap(text, (size_t)st.st_size);
	return found;
}

bool package_of(const char *admin_dir, const char *path, char *buf, size_t size)
{
	DIR *dir = opendir(admin_dir);
	bool found = false;
	if (!dir)
		return false;
	for (struct dirent *d; !found && (d = readdir(dir));) {
		size_t n = strlen(d->d_name);
		if (n <= 5 || strcmp(d->d_name + n - 5, ".list"))
			continue;
		if (!lists(dirfd(dir), d->d_name, path))
			continue;
		/* "libc6:amd64.list": the architecture is not part of the name. */
		snprintf(buf, size, "%.*s", (int)strcspn(d->d_name, ":"), d->d_name);
		if (!strchr(d->d_name, ':') && n - 5 < size)
			buf[n - 5] = 0;
		found = true;
	}
	closedir(dir);
	return found;
}

void debug_package_of(const char *package, char *buf, size_t size)
{
	int version;
	/* The exceptions from -dbgsym that are still built in Debian 12. */
	if (!strcmp(package, "libc6") || !strncmp(package, "linux-image-", 12))
		snprintf(buf, size, "%s-dbg", package);
	else if (sscanf(package, "openjdk-%d-", &version) == 1)
		snprintf(buf, size, "openjdk-%d-dbg", version);
	else
		snprintf(buf, size, "%s-dbgsym", package);
}
