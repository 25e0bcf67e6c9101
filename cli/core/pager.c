/* SPDX-License-Identifier: BSD-2-Clause */
#include "pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"

static pid_t pager;

static const char *command(void)
{
	const char *own = getenv("CAIRN_PAGER"), *all = getenv("PAGER");

	return own ? own : all ? all : "less";
}

/* A pager that cannot be run would swallow the answer. The shell knows more of a path. */
static bool is_there(const char *word, size_t len)
{
	if (memchr(word, '/', len))
		return true;
	char *name = strndup(word, len), *path = name ? command_find(name) : NULL;
	bool ret = path != NULL;

	free(path);
	free(name);
	return ret;
}

static bool is_wanted(void)
{
	const char *words = command(), *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0 && *words &&
	       strcmp(words, "cat") != 0 && is_there(words, strcspn(words, " "));
}

static void run_pager(const int pipe_ends[2])
{
	dup2(pipe_ends[0], STDIN_FILENO);
	setenv("LESS", "FRX", 0);
	execl("/bin/sh", "sh", "-c", command(), (char *)NULL);
	_exit(127);
}

/* Ctrl-C ends the work, and the answer with it; the terminal is the pager's until it is left. */
static void interrupted(int sig)
{
	int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);

	/* Never closed alone: the next file opened would be the standard output. */
	if (nothing >= 0)
		dup2(nothing, STDOUT_FILENO);
	while (waitpid(pager, NULL, 0) < 0 && errno == EINTR)
		;
	signal(sig, SIG_DFL);
	raise(sig);
}

void pager_start(void)
{
	int ends[2];

	if (!is_wanted() || pipe2(ends, O_CLOEXEC))
		return;
	pager = fork();
	if (!pager)
		run_pager(ends);
	if (pager > 0) {
		dup2(ends[1], STDOUT_FILENO);
		if (signal(SIGINT, interrupted) == SIG_IGN)
			signal(SIGINT, SIG_IGN);
	}
	close(ends[0]);
	close(ends[1]);
}

void pager_end(void)
{
	if (pager <= 0)
		return;
	/* Nothing is left to end: Ctrl-C is the pager's, say to stop a search. */
	signal(SIGINT, SIG_IGN);
	fclose(stdout);
	while (waitpid(pager, NULL, 0) < 0 && errno == EINTR)
		;
	pager = 0;
}

bool pager_is_terminal(FILE *out)
{
	return isatty(fileno(out)) || (pager > 0 && out == stdout);
}
