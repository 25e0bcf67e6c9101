/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"
#include "command.h"

/*
 * Reads one word at *@from, which is not blank, and writes it to *@to, which never overtakes. Both
 * are left after the word. False when a quote is not closed.
 */
static bool take_word(const char **from, char **to)
{
	char quote = 0;

	for (; **from; ++*from) {
		char c = **from;

		if (!quote && (c == ' ' || c == '\t' || c == '\n'))
			break;
		if (quote == c) {
			quote = 0;
			continue;
		}
		if (!quote && (c == '\'' || c == '"')) {
			quote = c;
			continue;
		}
		/* Inside "..." a backslash escapes only the closing quote or another backslash. */
		if (c == '\\' && quote != '\'' && (*from)[1] &&
		    (!quote || (*from)[1] == '"' || (*from)[1] == '\\'))
			c = *++*from;
		*(*to)++ = c;
	}
	*(*to)++ = '\0';
	return !quote;
}

static bool split(const char *line, struct command *ret)
{
	size_t n = 0;
	char *to = ret->text;

	for (;;) {
		line += strspn(line, " \t\n");
		if (!*line)
			break;
		ret->argv[n++] = to;
		if (!take_word(&line, &to))
			return false;
	}
	return n > 0;
}

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

char *command_find(const char *name)
{
	const char *dir = getenv("PATH"), *end;
	char *path;

	if (strchr(name, '/'))
		return is_program(name) ? strdup(name) : NULL;
	if (!dir)
		dir = "/usr/local/bin:/usr/bin:/bin";
	for (;; dir = end + 1) {
		end = strchrnul(dir, ':');
		/* An empty entry is the current directory. */
		if (asprintf(&path, "%.*s%s%s", (int)(end - dir), dir, end == dir ? "./" : "/",
			     name) < 0)
			return NULL;
		if (is_program(path))
			return path;
		free(path);
		if (!*end)
			return NULL;
	}
}

int command_parse(const char *line, struct command *ret)
{
	size_t room = strlen(line) + 1;

	memset(ret, 0, sizeof(*ret));
	/*
	 * A word and its end take no more than it took in @line; there is at most a word per two
	 * characters.
	 */
	ret->text = malloc(room + 1);
	ret->argv = calloc(room / 2 + 2, sizeof(*ret->argv));
	if (!ret->text || !ret->argv)
		return fail(STATUS_NOT_HERE, "no memory");
	if (!split(line, ret))
		return fail(STATUS_USAGE, "not a command (empty, or a quote is not closed): %s",
			    line);
	ret->exe = command_find(ret->argv[0]);
	if (!ret->exe)
		return fail(STATUS_USAGE, "no program %s", ret->argv[0]);
	return STATUS_YES;
}

void command_fini(struct command *command)
{
	free(command->argv);
	free(command->text);
	free(command->exe);
}
