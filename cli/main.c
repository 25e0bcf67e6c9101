/* SPDX-License-Identifier: BSD-2-Clause */
/* The program: one verb per file, chosen by its exact name. Exit statuses: cmd.h. */
#include <stdlib.h>
#include <string.h>

#include "cmd.h"

const struct cmd *const cmds[] = {
	&cmd_sites,
	&cmd_trace,
	&cmd_doctor,
	NULL,
};

/* A full disk or a closed pipe must not pass for an answer. */
static int finish(int status)
{
	if (fflush(stdout) || ferror(stdout))
		return fail(STATUS_NOT_HERE, "cannot write the answer: %m");
	return status;
}

static int run(const struct cmd *cmd, char **words)
{
	struct operands operands = {0};
	void *values = calloc(1, cmd->values_size ? cmd->values_size : 1);
	int status;

	if (!values)
		return fail(STATUS_NOT_HERE, "no memory");
	status = options_parse(cmd, words, values, &operands);
	if (!status)
		status = cmd->run(values, &operands);
	options_fini(cmd, values, &operands);
	free(values);
	/* -1: the help was all that was wanted. */
	return status < 0 ? STATUS_YES : status;
}

static int run_verb(char **words)
{
	for (const struct cmd *const *cmd = cmds; *cmd; cmd++)
		if (!strcmp((*cmd)->name, words[0]))
			return run(*cmd, words + 1);
	return fail(STATUS_USAGE, "no such verb: %s\nTry: cairn --help", words[0]);
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : NULL;

	if (!word) {
		help_program(stderr);
		return STATUS_USAGE;
	}
	if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
		help_program(stdout);
		return finish(STATUS_YES);
	}
	if (!strcmp(word, "--version")) {
		puts("cairn " CAIRN_VERSION);
		return finish(STATUS_YES);
	}
	if (!strcmp(word, "--completion")) {
		if (argc != 3 || !complete_print(argv[2], stdout))
			return fail(STATUS_USAGE, "--completion takes bash, zsh or fish");
		return finish(STATUS_YES);
	}
	/* For the build: the manual page of a verb from its table and a file of prose. */
	if (!strcmp(word, "--man") && argc == 4)
		return finish(help_man(argv[2], argv[3]));
	return finish(run_verb(argv + 1));
}
