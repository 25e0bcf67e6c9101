/* SPDX-License-Identifier: BSD-2-Clause */
/* OTLP: the request with a profile (otlp_write.c), and what is answered (otlp_answer.c). */
#ifndef EXPORT_OTLP_H
#define EXPORT_OTLP_H

#include "export/profile_impl.h"

/* The limit of OTLP's specification for a request, before it is compressed. */
#define OTLP_REQUEST_MAX ((size_t)64 << 20)

/* The attribute of a resource that a label becomes: itself, or as the conventions name it. */
const char *otlp_resource_key(const char *label);

/*
 * profile_otlp - the body of the request, compressed by gzip
 *
 * Returns 0 and *@ret, to be freed; -EINVAL: the id is no UUID; -EFBIG: more than
 * OTLP_REQUEST_MAX; -ENOMEM.
 */
int profile_otlp(const struct cairn_profile *p, const struct cairn_profile_push *push,
		 struct cairn_profile_bytes *ret, struct cairn_err *err);

#endif
