/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * /proc/PID/maps
 *
 *	7f10a2c28000-7f10a2d7d000 r-xp 00028000 fe:01 1234   /usr/lib/x86_64-linux-gnu/libc.so.6
 *	lo           hi           perm offset   dev   inode  path, or a name in brackets, or nothing
 *
 * A path has its line breaks written as \012; a final " (deleted)" means that the file has no name
 * any more.
 */
#include "code/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"
#include "base/search.h"

/*
 * More than a process may have by default (vm.max_map_count 65530), with long paths: 1 GiB would be
 * an attack.
 */
enum { MAX_TEXT = 256 << 20 };

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* At most 16 digits, as the kernel writes them; and @end after them. */
static bool read_hex(char **at, char end, uint64_t *ret)
{
	const char *begin = *at;
	char *p = *at;
	uint64_t v = 0;
	for (int digit; (digit = digit_of(*p)) >= 0; p++)
		v = v << 4 | (unsigned int)digit;
	*ret = v;
	*at = p + 1;
	return p > begin && p - begin <= 16 && *p == end;
}

/* "fe:01 1234", spaces, the path. */
static bool read_file(char *at, struct code_mapping *m)
{
	uint64_t major, minor;
	char *after;
	if (!read_hex(&at, ':', &major) || !read_hex(&at, ' ', &minor))
		return false;
	m->dev = makedev((unsigned int)major, (unsigned int)minor);
	m->ino = strtoull(at, &after, 10);
	m->path = after + strspn(after, " ");
	return after != at;
}

static bool read_line(char *line, struct code_mapping *m)
{
	static const char deleted[] = " (deleted)";
	char *at = line;
	if (!read_hex(&at, '-', &m->lo) || !read_hex(&at, ' ', &m->hi) || m->lo >= m->hi)
		return false;
	if (strlen(at) < 5 || at[4] != ' ')
		return false;
	m->is_readable = at[0] == 'r';
	m->is_writable = at[1] == 'w';
	m->is_executable = at[2] == 'x';
	m->is_shared = at[3] == 's';
	at += 5;
	if (!read_hex(&at, ' ', &m->off) || !read_file(at, m))
		return false;
	size_t n = strlen(m->path);
	m->is_deleted = n >= sizeof(deleted) - 1 &&
			strcmp(m->path + n - (sizeof(deleted) - 1), deleted) == 0;
	if (m->is_deleted)
		line[m->path + n - (sizeof(deleted) - 1) - line] = 0;
	return true;
}

/*
 * The kernel writes some pages of text at a time, and goes on after the last address that it wrote.
 * A mapping that has meanwhile grown downwards, by a merge, begins before that address: only its
 * later part counts.
 */
int code_maps_parse(char *text, struct code_maps *ret, struct cairn_err *err)
{
	const char *text_end = text + strlen(text);
	uint64_t end = 0;
	*ret = (struct code_maps){.text = text};
	for (char *line = text, *next; line && *line; line = next) {
		struct code_mapping m = {0};
		next = memchr(line, '\n', (size_t)(text_end - line));
		if (next)
			*next++ = 0;
		if (!read_line(line, &m))
			continue;
		if (m.hi <= end)
			continue;
		if (m.lo < end) {
			m.off += m.ino ? end - m.lo : 0;
			m.lo = end;
		}
		end = m.hi;
		if (!VEC_ADD(&ret->p, m))
			return err_nomem(err, "the mappings of a process");
	}
	return 0;
}

static int read_all(int fd, char **ret)
{
	size_t n = 0, cap = 1 << 16;
	char *text = malloc(cap);
	for (;;) {
		if (!text)
			return -ENOMEM;
		ssize_t got = read(fd, text + n, cap - n - 1);
		if (got <= 0) {
			text[n] = 0;
			*ret = text;
			return got < 0 ? -errno : 0;
		}
		n += (size_t)got;
		if (cap - n > 1 << 14)
			continue;
		cap *= 2;
		char *grown = cap <= MAX_TEXT ? realloc(text, cap) : NULL;
		if (!grown)
			free(text);
		text = grown;
	}
}

int code_maps_read(int pid, struct code_maps *ret, struct cairn_err *err)
{
	char name[64], *text = NULL;
	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	SCOPE_CLOSE int fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? err_set(err, -ESRCH, "there is no process %d", pid)
				       : err_set(err, -errno, "%s: %m", name);
	int rc = read_all(fd, &text);
	if (rc == -ENOMEM)
		return err_nomem(err, "the mappings of a process");
	if (rc < 0) {
		free(text);
		return err_set(err, rc, "%s: %s", name, strerror(-rc));
	}
	rc = code_maps_parse(text, ret, err);
	if (rc < 0)
		code_maps_fini(ret);
	return rc;
}

void code_maps_fini(struct code_maps *maps)
{
	VEC_FREE(&maps->p);
	free(maps->text);
	maps->text = NULL;
}

size_t code_maps_first(const struct code_maps *maps, uint64_t at)
{
	size_t lo = SEARCH(0, maps->p.n, mid, maps->p.p[mid].hi <= at);
	return lo;
}

const struct code_mapping *code_maps_find(const struct code_maps *maps, uint64_t at)
{
	size_t i = code_maps_first(maps, at);
	return i < maps->p.n && maps->p.p[i].lo <= at ? &maps->p.p[i] : NULL;
}
