/* SPDX-License-Identifier: BSD-2-Clause */
/* Debian packages: which one a file is of, and which has its debug information. */
#ifndef ELF_PACKAGE_H
#define ELF_PACKAGE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * package_of - name of the installed Debian package that owns a file, read from dpkg's file lists
 *
 * @admin_dir  "/var/lib/dpkg/info"
 * Returns true and the name, cut at the buffer's end; false when none owns it or there is no dpkg.
 * Cost: reads all file lists, tens of milliseconds.
 */
bool package_of(const char *admin_dir, const char *path, char *buf, size_t size);

/* Name of the Debian package with the debug information of @package. */
void debug_package_of(const char *package, char *buf, size_t size);

#endif
