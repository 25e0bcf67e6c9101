/* SPDX-License-Identifier: BSD-2-Clause */
#include "workspace.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void workspace_open(struct workspace *w)
{
	const char *where = getenv("TMPDIR");
	int n = snprintf(w->dir, sizeof(w->dir), "%s/cairn-test-XXXXXX", where ? where : "/tmp");
	if (n >= (int)sizeof(w->dir) || !mkdtemp(w->dir)) {
		perror(w->dir);
		abort();
	}
}

void workspace_close(struct workspace *w)
{
	char command[128];
	snprintf(command, sizeof(command), "rm -rf -- '%s'", w->dir);
	if (system(command))
		abort();
}

const char *workspace_path(const struct workspace *w, const char *name)
{
	static char paths[8][4096];
	static unsigned int next;
	char *path = paths[next++ % 8];
	snprintf(path, sizeof(paths[0]), "%s/%s", w->dir, name);
	return path;
}

void workspace_write(const struct workspace *w, const char *name, const char *text)
{
	const char *path = workspace_path(w, name);
	FILE *f = fopen(path, "we");
	if (!f || fputs(text, f) < 0 || fclose(f)) {
		perror(path);
		abort();
	}
}

static int run(const struct workspace *w, const char *fmt, va_list ap, const char *errors)
{
	char command[8192];
	int n = snprintf(command, sizeof(command), "cd '%s' && { ", w->dir);
	n += vsnprintf(command + n, sizeof(command) - n, fmt, ap);
	if ((size_t)n + 32 > sizeof(command))
		abort();
	snprintf(command + n, sizeof(command) - n, "; }%s", errors);
	return system(command);
}

bool workspace_try(const struct workspace *w, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int r = run(w, fmt, ap, " 2>/dev/null");
	va_end(ap);
	return r == 0;
}

void workspace_run(const struct workspace *w, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int r = run(w, fmt, ap, "");
	va_end(ap);
	if (r) {
		fprintf(stderr, "failed: %s\n", fmt);
		abort();
	}
}
