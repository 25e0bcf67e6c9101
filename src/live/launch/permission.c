/* SPDX-License-Identifier: BSD-2-Clause */
/* A missing permission: the permitted command is this process's own, with sudo before it. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cairn/text.h>

#include "base/err.h"
#include "base/scope.h"
#include "launch/permission.h"

/* Longest command line shown; a longer one is cut, and marked as cut. */
#define COMMAND_MAX 700

struct text {
	char p[COMMAND_MAX + 1];
	size_t n;
};

static void put(struct text *t, char c)
{
	if (t->n < COMMAND_MAX)
		t->p[t->n++] = c;
}

static bool is_plain(const char *arg)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_-+=:,./@%";

	return *arg && !arg[strspn(arg, plain)];
}

/* As a shell takes it back as one word; false: it does not. */
static bool put_quoted(struct text *t, const char *arg)
{
	char quoted[COMMAND_MAX + 1];
	ssize_t n = cairn_quote(arg, CAIRN_QUOTE_SH, quoted, sizeof(quoted));
	bool plain = is_plain(arg);

	if (!plain)
		put(t, '\'');
	for (const char *c = quoted; *c; c++)
		put(t, *c);
	if (!plain)
		put(t, '\'');
	return n >= 0;
}

bool permission_is_locked(void)
{
	SCOPE_FCLOSE FILE *f = fopen("/sys/kernel/security/lockdown", "re");
	char line[128];

	return f && fgets(line, sizeof(line), f) && strstr(line, "[confidentiality]");
}

int permission_locked(struct cairn_err *err)
{
	return err_set(err, -EPERM,
		       "lockdown forbids BPF programs to read memory: its mode is confidentiality "
		       "(/sys/kernel/security/lockdown), which lasts until the next boot");
}

int permission_error(struct cairn_err *err, const char *what)
{
	SCOPE_FCLOSE FILE *f = fopen("/proc/self/cmdline", "re");
	SCOPE_FREE char *arg = NULL;
	struct text t = {0};
	size_t cap = 0;
	bool whole = true;
	char command[COMMAND_MAX + 16];

	if (!geteuid())
		return err_set(err, -EPERM,
			       "%s: not permitted, although this is root: a container, a user "
			       "namespace or a security module "
			       "withholds CAP_BPF, CAP_PERFMON or CAP_SYS_PTRACE",
			       what);

	while (f && getdelim(&arg, &cap, 0, f) > 0) {
		put(&t, ' ');
		whole = put_quoted(&t, arg) && whole;
	}
	t.p[t.n] = 0;
	if (!whole)
		return err_set(err, -EPERM, "%s: not permitted; run the same command with sudo",
			       what);
	snprintf(command, sizeof(command), "sudo%s%s", t.p, t.n == COMMAND_MAX ? " ..." : "");
	return err_lines(err, -EPERM, command, "%s: not permitted; this would be:", what);
}
