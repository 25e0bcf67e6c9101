/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the two files of a trace: ctf.c writes events as ctf_metadata.c describes them. */
#ifndef EXPORT_CTF_H
#define EXPORT_CTF_H

#include <stdio.h>

#include "export/ctf_write.h"
#include "export/profile_impl.h"

/* Ids of events. */
enum {
	CTF_START,    /* lttng_ust_statedump:start */
	CTF_BIN_INFO, /* lttng_ust_statedump:bin_info */
	CTF_BUILD_ID, /* lttng_ust_statedump:build_id */
	CTF_END,      /* lttng_ust_statedump:end */
	CTF_FRAME,    /* cairn:frame */
	CTF_SAMPLE,   /* cairn:sample */
};

/*
 * The text of the metadata.
 *
 * @start_ns  time of timestamp 0, since 1970
 */
void ctf_put_metadata(const struct cairn_profile *p, size_t type, const char *title,
		      int64_t start_ns, FILE *out);

#endif
