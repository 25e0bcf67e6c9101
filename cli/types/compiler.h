/* SPDX-License-Identifier: BSD-2-Clause */
/* A compiler as a child process: its words, its input, its output. */
#ifndef CLI_COMPILER_H
#define CLI_COMPILER_H

#include <stdbool.h>
#include <stddef.h>

struct compiler_words {
	char **p; /* ends in NULL */
	size_t n, cap;
	bool failed; /* a word is missing for want of memory; compiler_run() says so */
};

/* Appends copies: each is @prefix and @text as one word. */
void compiler_word(struct compiler_words *w, const char *prefix, const char *text);
/* Appends the words of a command line, which blanks separate, as make takes CC: ccache gcc -m32. */
void compiler_command(struct compiler_words *w, const char *command);
/* $CC; @otherwise where it is not set or has no word. */
const char *compiler_of_user(const char *otherwise);
void compiler_words_free(struct compiler_words *w);

struct compiler_answer {
	/*
	 * its exit status; 127: it is not there or could not be started; 128 + the signal that
	 * ended it
	 */
	int status;
	char *output; /* free(); NUL-terminated. NULL: no memory */
	size_t size;
	/* it was ended here, status is not 0; static words. NULL: it ended by itself */
	const char *why;
};

/*
 * compiler_run - start it, and wait for its end
 *
 * A header of a few lines can have macros that take for ever to expand, or fill all memory. So a
 * compiler gets 60 seconds of processor time and 2 GiB, and is ended when its output has more than
 * 256 MiB.
 *
 * @input       a descriptor that is its standard input, from the start of the file; -1: ours
 * @with_errors puts its stderr into the output, too; otherwise its stderr goes to ours
 */
struct compiler_answer compiler_run(const struct compiler_words *w, int input, bool with_errors);

/* Text as a descriptor to read from: close(). Negative errno. */
int compiler_input(const char *text, size_t size);

#endif
