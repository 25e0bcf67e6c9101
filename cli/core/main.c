/* SPDX-License-Identifier: BSD-2-Clause */
/* The program: one verb per file, chosen by its exact name (verbs.c). Exit statuses: cmd.h. */
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "json.h"
#include "near.h"
#include "pager.h"
#include "say.h"
#include "truncated.h"

/* A full disk or a closed pipe must not pass for an answer. */
static int finish(int status)
{
	fail_print_json(stdout);
	if (fflush(stdout) || ferror(stdout))
		return fail(STATUS_NOT_HERE, "cannot write the answer: %m");
	pager_end();
	return truncated_status(status);
}

/* Before the words are read, as they may be wrong. */
static bool wants_json(const struct cmd *cmd, char **words)
{
	const struct opt *opt = cmd->opts;

	while (opt->name && strcmp(opt->name, "json"))
		opt++;
	for (; opt->name && *words; words++)
		if (!strcmp(*words, "--json"))
			return true;
	return false;
}

static int run(const struct cmd *cmd, char **words)
{
	struct operands operands = {0};
	void *values = calloc(1, cmd->values_size ? cmd->values_size : 1);
	int status;

	if (!values)
		return fail(STATUS_NOT_HERE, "no memory");
	if (wants_json(cmd, words))
		fail_as_json();
	status = options_parse(cmd, words, values, &operands);
	if (status == OPTIONS_HELP) {
		help_cmd(cmd, stdout);
		status = STATUS_YES;
	} else if (!status) {
		if (cmd->pages)
			pager_start();
		status = cmd->run(values, &operands);
	}
	options_fini(cmd, values, &operands);
	free(values);
	return status;
}

/* Names the verbs that a mistyped one may mean: @from letters into their names, after a group. */
static void suggest_verbs(const char *verb, const char *group, size_t from)
{
	const char *before = "Did you mean: ";

	for (const struct cmd *const *cmd = cmds; *cmd; cmd++) {
		if (from && !cmd_is_in_group(*cmd, group, from - 1))
			continue;
		if (!near_word(verb, strlen(verb), (*cmd)->name + from))
			continue;
		say(stderr, "%s%s", before, (*cmd)->name);
		before = ", ";
	}
	if (*before == ',')
		fputc('\n', stderr);
}

static int refuse_verb(const char *verb)
{
	fail(STATUS_USAGE, "no such verb: %s", verb);
	suggest_verbs(verb, NULL, 0);
	say(stderr, "Try: cairn --help\n");
	return STATUS_USAGE;
}

/* The second word is none of the group's verbs. */
static int refuse_in_group(char **words)
{
	const char *verb = words[1];

	if (!verb || !strcmp(verb, "--help") || !strcmp(verb, "-h")) {
		help_group(words[0], verb ? stdout : stderr);
		return verb ? STATUS_YES : STATUS_USAGE;
	}
	fail(STATUS_USAGE, "no such verb: %s %s", words[0], verb);
	suggest_verbs(verb, words[0], strlen(words[0]) + 1);
	say(stderr, "Try: cairn %s --help\n", words[0]);
	return STATUS_USAGE;
}

/* "run" after "code"; NULL: it is no verb of the group. */
static const struct cmd *find_in_group(const char *group, const char *verb)
{
	for (const struct cmd *const *cmd = cmds; *cmd; cmd++)
		if (cmd_is_in_group(*cmd, group, strlen(group)) &&
		    !strcmp((*cmd)->name + strlen(group) + 1, verb))
			return *cmd;
	return NULL;
}

static int run_verb(char **words)
{
	const char *now = current_spelling(words[0], strlen(words[0]));
	const char *verb = now ? now : words[0];
	const struct cmd *second = words[1] ? find_in_group(words[0], words[1]) : NULL;

	if (second)
		return run(second, words + 2);
	for (const struct cmd *const *cmd = cmds; *cmd; cmd++)
		if (!strcmp((*cmd)->name, verb))
			return run(*cmd, words + 1);
	for (const struct cmd *const *cmd = cmds; *cmd; cmd++)
		if (cmd_is_in_group(*cmd, words[0], strlen(words[0])))
			return refuse_in_group(words);
	return refuse_verb(words[0]);
}

/* "cairn help" is cairn --help; "cairn help btf dump" is cairn btf dump --help. */
static int run_help(char **words)
{
	char *asked[] = {words[0], words[0] ? words[1] : NULL, NULL, NULL};

	if (!words[0]) {
		help_program(stdout);
		return STATUS_YES;
	}
	asked[asked[1] ? 2 : 1] = (char[]){"--help"};
	return run_verb(asked);
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : NULL;

	truncated_is_told();
	if (!word) {
		help_program(stderr);
		return STATUS_USAGE;
	}
	if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
		help_program(stdout);
		return finish(STATUS_YES);
	}
	if (!strcmp(word, "help"))
		return finish(run_help(argv + 2));
	if (!strcmp(word, "--version")) {
		printf("cairn " CAIRN_VERSION ", JSON schema %d\n", JSON_SCHEMA);
		return finish(STATUS_YES);
	}
	if (!strcmp(word, "--completion")) {
		if (argc != 3 || !complete_print(argv[2], stdout))
			return fail(STATUS_USAGE, "--completion takes bash, zsh or fish");
		return finish(STATUS_YES);
	}
	/* For those scripts: the names that begin with a word. */
	if (!strcmp(word, "--complete") && argc == 5)
		return finish(complete_names(argv[2], argv[3], argv[4], stdout));
	/* For the build: the manual page of a verb from its table and a file of prose. */
	if (!strcmp(word, "--man") && argc == 4)
		return finish(help_man(argv[2], argv[3]));
	return finish(run_verb(argv + 1));
}
