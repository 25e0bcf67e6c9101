/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All headers that a tracer needs: where a function is, and where its arguments are there
 *
 * The questions of a tracer, and the headers with the answers; this one includes them all.
 *
 *	name -> sites       sites.h     cairn_sites_find(): the body, its clones, every inlined copy
 *	site -> arguments   location.h  struct cairn_location: steps over registers and memory, or
 *	                                why there are none
 *	address -> frames   sidecar.h   cairn_sidecar_frames(): the function, and the functions into
 *	                                which it was inlined
 *	the same as BTF     btf.h       cairn_btf_loc_param(): records of the LOC kinds
 *
 * A sidecar answers the first three in no time, without the debug information:
 *
 *	struct cairn_sidecar *sidecar;
 *	struct cairn_sites *sites;
 *	struct cairn_function_list found;
 *	if (cairn_sidecar_open("server.cairn", NULL, &sidecar, &err) < 0 ||
 *	    cairn_sidecar_sites(sidecar, NULL, &sites, &err) < 0 ||
 *	    cairn_sites_find(sites, "parse", &found, &err) < 0)
 *		return fail(err.msg);
 *	for (uint32_t i = 0; found.n == 1 && i < found.p[0]->n_sites; i++)
 *		probe(found.p[0]->sites[i].off, found.p[0]->sites[i].args);
 */
#ifndef CAIRN_TRACER_H
#define CAIRN_TRACER_H

#include <cairn/btf.h>
#include <cairn/location.h>
#include <cairn/sidecar.h>
#include <cairn/sites.h>

#endif
