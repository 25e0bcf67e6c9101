/* SPDX-License-Identifier: BSD-2-Clause */
#include "near.h"

#include <string.h>

static bool is_swapped(const char *a, const char *b)
{
	return a[0] == b[1] && a[1] == b[0];
}

bool near_word(const char *typed, size_t len, const char *word)
{
	enum { BEGINNING = 3 };
	size_t n = len, m = strlen(word);

	if (len >= BEGINNING && m > len && !memcmp(typed, word, len))
		return true;
	for (; n && m && *typed == *word; n--, m--) {
		typed++;
		word++;
	}
	while (n && m && typed[n - 1] == word[m - 1]) {
		n--;
		m--;
	}
	/* What is left is the slip. */
	return (n <= 1 && m <= 1 && n + m) || (n == 2 && m == 2 && is_swapped(typed, word));
}
