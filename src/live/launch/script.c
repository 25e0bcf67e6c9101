/* SPDX-License-Identifier: BSD-2-Clause */
#include "launch/script.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"
#include "launch/path.h"

static const char *skip_blanks(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	return at;
}

static void copy(char *to, const char *from, const char *end)
{
	memcpy(to, from, (size_t)(end - from));
	to[end - from] = 0;
}

bool script_parse(const char *bytes, size_t n, struct script_line *ret)
{
	if (n > SCRIPT_LINE_MAX - 1)
		n = SCRIPT_LINE_MAX - 1;
	if (n < 3 || memcmp(bytes, "#!", 2))
		return false;
	const char *end = bytes + strnlen(bytes, n), *newline = memchr(bytes, '\n', n), *word;
	if (newline && newline < end)
		end = newline;
	const char *at = word = skip_blanks(bytes + 2, end);
	while (at < end && *at != ' ' && *at != '\t')
		at++;
	if (at == word)
		return false;
	copy(ret->interpreter, word, at);
	at = skip_blanks(at, end);
	while (end > at && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	copy(ret->argument, at, end);
	return true;
}

bool script_next(const char *path, struct script_line *ret)
{
	SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char bytes[SCRIPT_LINE_MAX];
	ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));

	return n > 0 && script_parse(bytes, (size_t)n, ret);
}

bool script_of_env(const struct script_line *line, char *ret, size_t size)
{
	const char *slash = strrchr(line->interpreter, '/'), *name = line->argument;

	/* An option, a variable or several words are env(1)'s to read. */
	if (!slash || strcmp(slash, "/env") || !name[0] || name[0] == '-' || strpbrk(name, "/= \t"))
		return false;
	SCOPE_FREE char *path = path_search(name, strlen(name));
	if (!path || strlen(path) >= size)
		return false;
	strcpy(ret, path);
	return true;
}
