/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions around a site. */
#ifndef TRACE_SITE_FRAMES_H
#define TRACE_SITE_FRAMES_H

#include <cairn/sidecar.h>
#include <cairn/sites.h>

/*
 * site_frames - the functions around a site, from the probed one outwards
 *
 * @frames  those around its address, the innermost first: @n of them, with room for
 *          CAIRN_FRAMES_MAX
 * Functions that are inlined into the probed one are left out. Where the address is not of the
 * copy, its chain of calls says what is around it. Returns their number.
 */
size_t site_frames(const struct cairn_function *f, const struct cairn_site *site,
		   struct cairn_frame *frames, size_t n);

#endif
