/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/opts.h"

#include <errno.h>
#include <string.h>

static size_t size_of(const void *opts)
{
	size_t size;
	memcpy(&size, opts, sizeof(size));
	return size;
}

bool opts_tail_is_zero(const void *opts, size_t known)
{
	for (size_t i = known; i < size_of(opts); i++)
		if (((const char *)opts)[i])
			return false;
	return true;
}

int opts_take(void *ret, size_t known, const void *from, struct cairn_err *err)
{
	memset(ret, 0, known);
	if (!from)
		return 0;
	size_t size = size_of(from);
	if (size < sizeof(size))
		return err_set(err, -EINVAL, "options without their size");
	if (!opts_tail_is_zero(from, known))
		return err_set(err, -EINVAL,
			       "an option beyond the %zu bytes that this version knows", known);
	memcpy(ret, from, size < known ? size : known);
	return 0;
}
