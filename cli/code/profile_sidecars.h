/* SPDX-License-Identifier: BSD-2-Clause */
/* The sidecars of the files that a profile meets. */
#ifndef CLI_PROFILE_SIDECARS_H
#define CLI_PROFILE_SIDECARS_H

#include <pthread.h>

#include "due.h"
#include "sidecar.h"

struct profile_sidecars {
	struct sidecar_wish wish;
	pthread_mutex_t lock; /* the engine's threads ask at once */
	/* Of profile_later_sidecar(). */
	struct due tried; /* by build-id */
	double not_before;
};

/* struct cairn_prof_opts.find_sidecar: one that is there, and nothing from the network. */
int profile_find_sidecar(void *sidecars, const struct cairn_binary *bin, struct cairn_sidecar **ret,
			 struct cairn_err *err);

/* struct cairn_prof_opts.find_sites: the same of one that has the sites of functions. */
int profile_find_sites(void *sidecars, const struct cairn_binary *bin, struct cairn_sidecar **ret,
		       struct cairn_err *err);

/* struct cairn_prof_opts.make_sidecar: one that is made and kept, or downloaded. */
int profile_make_sidecar(void *sidecars, const struct cairn_binary *bin, struct cairn_sidecar **ret,
			 struct cairn_err *err);

/*
 * The same for who has no time: one is begun in the background, for later windows; *ret is NULL.
 * One every few seconds, as each takes a processor; that of one file again after ten minutes. A
 * program that has ended is found by its own path.
 */
int profile_later_sidecar(void *sidecars, const struct cairn_binary *bin,
			  struct cairn_sidecar **ret, struct cairn_err *err);

#endif
