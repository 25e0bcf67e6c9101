/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What may change while a kernel runs, and what it allows
 *
 * A module that is loaded again has a new folder in sysfs, whose inode has another number.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/scope.h"
#include "kernel/kernel.h"
#include "kernel/symbols.h"

/* 0: there is none, or no memory. */
static uint64_t inode_of_folder(const struct cairn_kernel *k)
{
	SCOPE_FREE char *path = kernel_path(k, "sys/module/%s", k->module);
	struct stat st;

	return path && !stat(path, &st) ? st.st_ino : 0;
}

int kernel_see_folder(struct cairn_kernel *k, struct cairn_err *err)
{
	k->folder = inode_of_folder(k);
	return k->folder ? 0 : err_nomem(err, "the folder of a module");
}

bool cairn_kernel_is_there(const struct cairn_kernel *k)
{
	return !k->module || inode_of_folder(k) == k->folder;
}

int cairn_kernel_kprobe_type(const struct cairn_kernel *k)
{
	SCOPE_FREE char *path = kernel_path(k, "sys/bus/event_source/devices/kprobe/type");
	SCOPE_FCLOSE FILE *file = path ? fopen(path, "re") : NULL;
	int type;

	if (!path)
		return -ENOMEM;
	return file && fscanf(file, "%d", &type) == 1 && type >= 0 ? type : -EOPNOTSUPP;
}

int kernel_is_of_gcc(const struct cairn_kernel *k)
{
	SCOPE_FREE char *path = kernel_path(k, "proc/version");
	SCOPE_FCLOSE FILE *file = path ? fopen(path, "re") : NULL;
	char line[512];

	if (!path)
		return -ENOMEM;
	return file && fgets(line, sizeof(line), file) && strstr(line, "gcc") &&
	       !strstr(line, "clang");
}

bool cairn_kernel_is_locked(const struct cairn_kernel *k)
{
	SCOPE_FREE char *path = kernel_path(k, "sys/kernel/security/lockdown");
	SCOPE_FCLOSE FILE *file = path ? fopen(path, "re") : NULL;
	char line[128];

	return file && fgets(line, sizeof(line), file) && strstr(line, "[confidentiality]");
}
