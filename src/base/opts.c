/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/opts.h"

#include <errno.h>
#include <string.h>

int opts_take(void *ret, size_t known, const void *from, struct cairn_err *err)
{
	size_t size = 0;
	memset(ret, 0, known);
	if (!from)
		return 0;
	memcpy(&size, from, sizeof(size));
	if (size < sizeof(size))
		return err_set(err, -EINVAL, "options without their size");
	for (size_t i = known; i < size; i++)
		if (((const char *)from)[i])
			return err_set(err, -EINVAL, "an option beyond the %zu bytes that this version knows", known);
	memcpy(ret, from, size < known ? size : known);
	return 0;
}
