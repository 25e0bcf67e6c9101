/* SPDX-License-Identifier: BSD-2-Clause */
/* A command to run, given as one word of cairn's command line: -c 'ls -l "/my files"'. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

struct command {
	char **argv; /* NULL at the end; the words are parts of text */
	char *text;
	char *exe; /* the program file */
};

/*
 * command_parse - split as a shell does, without its expansions, and find the program in PATH
 *
 * Blanks separate; '...', "..." and \ keep them. No shell runs, so that the traced process is the
 * program itself; for a pipe or a variable say sh -c '...'.
 * Returns an exit status, having reported the error. command_fini() also after a failure.
 */
int command_parse(const char *line, struct command *ret);
void command_fini(struct command *command);

/* The file that execvp() would run for a name, malloc()ed; NULL when there is none. */
char *command_find(const char *name);

#endif
