/* SPDX-License-Identifier: BSD-2-Clause */
/* For examples/allocs: all its memory comes from a wrapper of malloc(), which is inlined. */
#include <stdlib.h>
#include <string.h>

static inline char *take(size_t size)
{
	char *p = malloc(size);

	if (!p)
		abort();
	return p;
}

static __attribute__((noinline)) char *copy_of(const char *text)
{
	size_t size = strlen(text) + 1;
	char *ret = take(size);

	return memcpy(ret, text, size);
}

int main(int argc, char **argv)
{
	char *numbers = take(64), *text = NULL;

	for (int i = 0; i < 5; i++) {
		free(text);
		text = copy_of(i % 2 ? "words and words" : "words");
	}
	free(text);
	free(numbers);
	return argc - argc;
}
