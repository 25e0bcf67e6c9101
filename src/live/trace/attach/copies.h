/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of inlined copies, followed from their site to their end
 *
 * A copy has no return. Where all of its exits are known (sites/copy_exits.h), probes there see its
 * calls end: bpf/copies.bpf.h. There is a duration, and no result.
 */
#ifndef TRACE_COPIES_H
#define TRACE_COPIES_H

#include "trace/trace.h"

/* Of a site whose calls are followed. Its exits are site.exits. */
struct trace_copy {
	/* Where the frame of the function around it is: the upper half of a probe's cookie. */
	uint32_t entry_frame;
	const uint32_t *exit_frames; /* at each exit */
	bool has_reset;              /* a probe at the beginning of that function */
	uint64_t reset;              /* in the file, or of the kernel its address */
};

/*
 * copies_plan_site - the end of a copy's calls, if the probe needs it
 *
 * Sets site->copy, or site->no_end. Sets @p->file->wants_debug_info if another provider of sites
 * would know more. Returns 0 or -ENOMEM.
 */
int copies_plan_site(struct cairn_trace *t, const struct trace_probe *p, struct trace_site *site,
		     struct cairn_err *err);

/* Why $ret of a copy is not known. */
extern const char copies_no_result[];

/* Before the file's sites are closed, or are those of another provider. */
void copies_forget_file(struct trace_file *f);

/* The cookie of a probe on a copy: the number of its site, and where the frame is. */
static inline uint64_t copies_cookie(size_t site, uint32_t frame)
{
	return (uint64_t)frame << 32 | (uint32_t)site;
}

#endif
