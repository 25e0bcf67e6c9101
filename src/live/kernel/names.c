/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "kernel/kernel.h"

char *kernel_path(const struct cairn_kernel *k, const char *fmt, ...)
{
	SCOPE_FREE char *tail = NULL;
	char *path;
	va_list args;
	va_start(args, fmt);
	int n = vasprintf(&tail, fmt, args);
	va_end(args);
	if (n < 0) {
		tail = NULL;
		return NULL;
	}
	return asprintf(&path, "%s/%s", k->root, tail) < 0 ? NULL : path;
}

const char *kernel_name(const struct cairn_kernel *k)
{
	return k->module ? k->module : "the kernel";
}

bool kernel_is_gone(const struct cairn_kernel *k, const char *section)
{
	return !strncmp(section, ".init", 5) || (!k->module && !strncmp(section, ".exit", 5));
}
