/* SPDX-License-Identifier: BSD-2-Clause */
#include "near.h"

#include <stdio.h>
#include <string.h>

#include <cairn/text.h>

#include "say.h"

bool near_word(const char *typed, size_t len, const char *word)
{
	enum { BEGINNING = 3 };
	size_t n = strlen(word);

	return (len >= BEGINNING && n > len && !memcmp(typed, word, len)) ||
	       cairn_near_distance(typed, len, word, n) == 1;
}

void say_near(const char *const *names, int n)
{
	for (int i = 0; i < n; i++)
		say(stderr, "%s%s", i ? ", " : "Did you mean: ", names[i]);
	if (n > 0)
		fputc('\n', stderr);
}
