/* SPDX-License-Identifier: BSD-2-Clause */
#include "launch/needed.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/err.h"
#include "base/scope.h"

enum {
	LOOKED_AT =
		4096, /* linkers put the program headers and the loader's path at the beginning */
	HEADERS_MAX = 64,   /* programs have about 13 */
	TEXT_MAX = 1 << 20, /* of a loader: the largest programs of Debian have 40 KB */
	WITHIN_MS = 5000,   /* against one that hangs; it takes milliseconds on an idle machine */
};

extern char **environ;

/* ---- the loader ---- */

/* Finds the loader's path in the file. */
static bool find_path(struct cursor *c, uint64_t *ret_off, uint64_t *ret_n)
{
	cur_skip(c, 32); /* up to the program headers' offset */
	uint64_t at = cur_u64(c);
	cur_skip(c, 14); /* sections, flags, size of this header */
	uint16_t size = cur_u16(c), n = cur_u16(c);
	bool is_found = false;

	if (c->failed || size != sizeof(Elf64_Phdr) || n > HEADERS_MAX || at < cur_off(c))
		return false;
	cur_skip(c, at - cur_off(c));
	for (uint16_t i = 0; i < n && !c->failed && !is_found; i++) {
		is_found = cur_u32(c) == PT_INTERP;
		cur_skip(c, 4); /* flags */
		*ret_off = cur_u64(c);
		cur_skip(c, 16); /* addresses */
		*ret_n = cur_u64(c);
		cur_skip(c, 16); /* size in memory, alignment */
	}
	return is_found && !c->failed;
}

static bool is_known(const char *path)
{
	const char *name = strrchr(path, '/');

	return path[0] == '/' &&
	       (strncmp(name, "/ld-linux", 9) == 0 || strncmp(name, "/ld-musl", 8) == 0);
}

bool needed_loader(const void *bytes, size_t n, char *ret, size_t size)
{
	const struct cursor_src src = {.file = "program", .section = "ELF header", .base = bytes};
	const uint8_t *ident = bytes;
	struct cairn_err err = {0};
	uint64_t off, length;

	if (n < EI_NIDENT || memcmp(ident, ELFMAG, SELFMAG) || ident[EI_CLASS] != ELFCLASS64 ||
	    ident[EI_DATA] != ELFDATA2LSB)
		return false;
	struct cursor c = cursor_of(&src, bytes, n, false, &err);
	if (!find_path(&c, &off, &length) || !length || length > size || off > n ||
	    length > n - off)
		return false;
	memcpy(ret, (const char *)bytes + off, length);
	return !ret[length - 1] && is_known(ret);
}

/* ---- what it prints ---- */

static char *copy_of(const char *bytes, size_t n)
{
	char *ret = malloc(n + 1);

	if (ret) {
		memcpy(ret, bytes, n);
		ret[n] = 0;
	}
	return ret;
}

/* A line "NAME => PATH (ADDRESS)", or "PATH (ADDRESS)". NULL: another one. */
static char *path_of(const char *line, size_t n)
{
	const char *arrow = memmem(line, n, "=> /", 4), *end = memmem(line, n, " (0x", 4);
	const char *path = arrow ? arrow + 3 : line;

	while (!arrow && path < line + n && *path == '\t')
		path++;
	if (!end || path >= end || *path != '/')
		return NULL;
	return copy_of(path, (size_t)(end - path));
}

int needed_parse(const char *text, size_t n, struct needed *ret)
{
	const char *end = text + n, *next;

	for (const char *line = text; line < end; line = next) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		next = newline ? newline + 1 : end;
		errno = 0;
		char *path = path_of(line, (size_t)((newline ? newline : end) - line));
		if (!path && errno == ENOMEM)
			return -ENOMEM;
		if (path && !VEC_ADD(&ret->paths, path)) {
			free(path);
			return -ENOMEM;
		}
	}
	return 0;
}

/* ---- running it ---- */

static int spawn(const char *loader, const char *program, int out, pid_t *ret)
{
	static char option[] = "--list";
	char *words[] = {(char *)loader, option, (char *)program, NULL};
	posix_spawn_file_actions_t files;
	int rc = posix_spawn_file_actions_init(&files);

	if (rc)
		return -rc;
	rc = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	rc = rc ? rc : posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	rc = rc ? rc
		: posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	rc = rc ? rc : posix_spawn(ret, loader, &files, NULL, words, environ);
	posix_spawn_file_actions_destroy(&files);
	return -rc;
}

/* False: it takes too long. */
static bool is_readable(int fd, const struct timespec *began)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	int64_t took =
		(now.tv_sec - began->tv_sec) * 1000 + (now.tv_nsec - began->tv_nsec) / 1000000;
	return took < WITHIN_MS && poll(&p, 1, (int)(WITHIN_MS - took)) == 1;
}

/* All that comes; the number of bytes, 0 if that is not all. */
static size_t read_all(int fd, char *text)
{
	struct timespec began;
	size_t n = 0;
	ssize_t got = 1;

	clock_gettime(CLOCK_MONOTONIC, &began);
	while (got > 0 && n < TEXT_MAX && is_readable(fd, &began)) {
		got = read(fd, text + n, TEXT_MAX - n);
		n += got > 0 ? (size_t)got : 0;
	}
	return got == 0 ? n : 0;
}

static int list(const char *loader, const char *program, struct needed *ret)
{
	SCOPE_FREE char *text = malloc(TEXT_MAX);
	int ends[2];
	pid_t pid;

	if (!text)
		return -ENOMEM;
	if (pipe2(ends, O_CLOEXEC))
		return 0;
	SCOPE_CLOSE int in = ends[0];
	int rc = spawn(loader, program, ends[1], &pid);
	close(ends[1]);
	if (rc < 0)
		return rc == -ENOMEM ? rc : 0;
	size_t n = read_all(in, text);
	if (!n)
		kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return needed_parse(text, n, ret);
}

int needed_list(const char *program, struct needed *ret, struct cairn_err *err)
{
	SCOPE_CLOSE int fd = open(program, O_RDONLY | O_CLOEXEC);
	char bytes[LOOKED_AT], loader[PATH_MAX];
	ssize_t n = fd < 0 ? 0 : pread(fd, bytes, sizeof(bytes), 0);
	int rc = 0;

	*ret = (struct needed){0};
	if (n > 0 && needed_loader(bytes, (size_t)n, loader, sizeof(loader)))
		rc = list(loader, program, ret);
	return rc < 0 ? err_nomem(err, "a program's libraries") : 0;
}

void needed_free(struct needed *n)
{
	for (size_t i = 0; i < n->paths.n; i++)
		free(n->paths.p[i]);
	VEC_FREE(&n->paths);
}
