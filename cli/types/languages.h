/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_LANGUAGES_H
#define CLI_LANGUAGES_H

#include <stdint.h>

#include "cmd.h"

#define LANGUAGES_MAX 64

/* DW_LANG_*; the array has room for all that a user can name. */
struct languages {
	uint16_t codes[LANGUAGES_MAX];
	size_t n;
};

/* "c11,rust" to numbers. An exit status: STATUS_USAGE, with a message, for an unknown name. */
int languages_parse(const char *list, struct languages *ret);

#endif
