/* SPDX-License-Identifier: BSD-2-Clause */
/* gzip files in memory, by libdeflate (RFC 1952). */
#ifndef EXPORT_GZIP_H
#define EXPORT_GZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* A profile of a week on 1,000 processors is some 100 MB; a bomb of 1 MB inflates to 1 GB. */
#define GZIP_MAX ((size_t)1 << 30)

bool gzip_is(const void *bytes, size_t size);

/*
 * gzip_inflate - all members of a gzip file
 *
 * @name  of the file, for messages
 * Returns 0 and *@ret, to be freed. -EBADMSG: damaged or cut. -ERANGE: more than GZIP_MAX. -ENOMEM.
 */
int gzip_inflate(const void *bytes, size_t size, const char *name, uint8_t **ret, size_t *ret_size,
		 struct cairn_err *err);

/* 0 and *@ret, to be freed, or -ENOMEM. */
int gzip_deflate(const void *bytes, size_t size, uint8_t **ret, size_t *ret_size,
		 struct cairn_err *err);

#endif
