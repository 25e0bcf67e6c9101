/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * /proc/kallsyms
 *
 *	ffffffffa1000000 T _text
 *	address          type name
 *	ffffffffc03a1000 t lo_open	[loop]
 *
 * The kernel's own symbols come first, by address, then those of modules, ftrace and BPF. A kernel
 * that hides addresses writes zeros. Symbols of per-processor variables have small addresses
 * anyway, so only that of the first code tells.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"
#include "kernel/kernel.h"

/* Longer than any line: a name has at most 511 characters. */
enum { BUFFER = 1 << 16, MAX_DIGITS = 16 };

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_address(char **at, uint64_t *ret)
{
	char *p = *at;
	uint64_t v = 0;
	for (int digit; (digit = digit_of(*p)) >= 0; p++)
		v = v << 4 | (unsigned int)digit;
	bool is_one = p > *at && p - *at <= MAX_DIGITS && *p == ' ';
	*at = p + 1;
	*ret = v;
	return is_one;
}

/* @line ends in a NUL. */
static bool read_line(char *line, struct kallsym *ret)
{
	char *at = line;
	if (!read_address(&at, &ret->at) || !at[0] || at[1] != ' ' || !at[2])
		return false;
	ret->type = at[0];
	ret->name = at + 2;
	ret->module = NULL;
	char *tab = strchr(at + 2, '\t');
	if (!tab)
		return true;
	*tab++ = 0;
	char *end = strchr(tab, ']');
	if (tab[0] != '[' || !end)
		return false;
	*end = 0;
	ret->module = tab + 1;
	return ret->name[0] != 0;
}

int kallsyms_parse(char *text, size_t n, kallsyms_visit *visit, void *ctx, size_t *ret_used)
{
	char *line = text, *end = text + n, *stop;
	int rc = 0;
	while (!rc && line < end && (stop = memchr(line, '\n', (size_t)(end - line)))) {
		struct kallsym symbol;
		*stop = 0;
		if (read_line(line, &symbol))
			rc = visit(ctx, &symbol);
		line = stop + 1;
	}
	*ret_used = (size_t)(line - text);
	return rc;
}

/* One read; @kept bytes of a line that has not ended are at the start of @buffer. */
static int read_more(int fd, char *buffer, size_t *kept, kallsyms_visit *visit, void *ctx)
{
	size_t used;
	ssize_t got = read(fd, buffer + *kept, BUFFER - *kept);
	if (got <= 0)
		return got < 0 ? -errno : 1;
	size_t n = *kept + (size_t)got;
	int rc = kallsyms_parse(buffer, n, visit, ctx, &used);
	*kept = n - used;
	memmove(buffer, buffer + used, *kept);
	/* No line is as long as that: it has no known form. */
	if (*kept == BUFFER)
		*kept = 0;
	return rc < 0 ? rc : 2 * (rc != 0);
}

int kallsyms_read(const struct cairn_kernel *k, kallsyms_visit *visit, void *ctx,
		  struct cairn_err *err)
{
	SCOPE_FREE char *path = kernel_path(k, "proc/kallsyms");
	SCOPE_FREE char *buffer = malloc(BUFFER);
	size_t kept = 0;
	if (!path || !buffer)
		return err_nomem(err, "symbols");
	SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	int rc = fd < 0 ? -errno : 0;
	while (!rc)
		rc = read_more(fd, buffer, &kept, visit, ctx);
	return rc < 0 ? err_set(err, rc, "%s: %s", path, strerror(-rc)) : rc == 2;
}

int kallsyms_hidden(const struct cairn_kernel *k, struct cairn_err *err)
{
	SCOPE_FREE char *path = kernel_path(k, "proc/sys/kernel/kptr_restrict");
	SCOPE_CLOSE int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	char setting = 0;
	if (fd < 0 || read(fd, &setting, 1) != 1)
		setting = '?';
	if (setting == '2')
		return err_set(err, -EPERM,
			       "the kernel hides its addresses from everybody "
			       "(kernel.kptr_restrict is 2). Show them to root: sysctl "
			       "kernel.kptr_restrict=1");
	return err_set(err, -EPERM,
		       "the kernel hides its addresses from you (kernel.kptr_restrict is %c). Run "
		       "this as root, or with CAP_SYSLOG",
		       setting);
}

bool kallsyms_is_own(const struct cairn_kernel *k, const struct kallsym *s)
{
	if (!k->module)
		return !s->module;
	return s->module && !strcmp(s->module, k->module);
}
