/* SPDX-License-Identifier: BSD-2-Clause */
#include "alloc_fail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__real_realloc(void *p, size_t size);
char *__real_strdup(const char *s);
int __real_vasprintf(char **ret, const char *fmt, va_list ap);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_realloc(void *p, size_t size);
char *__wrap_strdup(const char *s);
int __wrap_vasprintf(char **ret, const char *fmt, va_list ap);

/* Allocations until the one that fails; 0 means none will. */
static atomic_uint countdown;
static atomic_bool failed;

static bool fails_now(void)
{
	if (!countdown || --countdown)
		return false;
	failed = true;
	errno = ENOMEM;
	return true;
}

void alloc_fail_at(unsigned int n)
{
	failed = false;
	countdown = n;
}

bool alloc_fail_end(void)
{
	countdown = 0;
	return failed;
}

void *__wrap_malloc(size_t size)
{
	return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails_now() ? NULL : __real_calloc(n, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return fails_now() ? NULL : __real_aligned_alloc(alignment, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails_now() ? NULL : __real_realloc(p, size);
}

char *__wrap_strdup(const char *s)
{
	return fails_now() ? NULL : __real_strdup(s);
}

int __wrap_vasprintf(char **ret, const char *fmt, va_list ap)
{
	return fails_now() ? -1 : __real_vasprintf(ret, fmt, ap);
}
