/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files that name frames. */
#ifndef PROF_NAME_IMPL_H
#define PROF_NAME_IMPL_H

#include <pthread.h>

#include <cairn/sites.h>

#include "base/arena.h"
#include "base/err.h"
#include "kernel/symbols.h"
#include "prof/name.h"

/* ---- the kernel ---- */

/*
 * kernel_names_skip - how many of the innermost frames are the way from a tracepoint to a program
 *
 * @frames  @n of them, the kernel's, the innermost first
 */
size_t kernel_names_skip(const struct kernel_names *k, const uint64_t *frames, size_t n);

struct prof_names;
/* Begins to read the kernel's names in a thread of its own, or does nothing. */
void kernel_names_begin(struct prof_names *names);
/* Its end, if it was begun; then names->kernel is the caller's again. */
void kernel_names_await(struct prof_names *names);

/* ---- code made at run time ---- */

struct made_place {
	int pid;
	bool is_named;
	uint8_t n_tried;
	uint64_t at;
	uint64_t frame;    /* if it is in a file; else 0 */
	uint32_t next;     /* 1 + index of another place of the process; 0: none */
	uint32_t first, n; /* functions, the innermost first */
	uint64_t lo, hi;   /* the range around it; 0, 0: not known */
	const char *owner; /* of the range */
	bool is_file;
};

/* The addresses of processes that were in no known file. */
struct made_names {
	VEC(struct made_place) places;
	VEC(struct cairn_frame) frames;
	struct map place_ids;  /* hash of process and address -> index */
	struct map last_place; /* process -> 1 + index */
	VEC(int) pids;
	size_t n_counts; /* of the samples, that were looked at */
	size_t n_asked;  /* of the places, that are in a file or were asked about later */
	size_t n_gone;   /* processes that could not be read */
};

/* Take over the addresses of counts that are new, and find those in files. 0 or -ENOMEM. */
int made_names_collect(struct made_names *made, const struct prof_samples *samples,
		       const struct prof_names_opts *opts);
/*
 * Name those of a process that have no name yet; @only_new: and that were not tried often; 0 or
 * -ENOMEM. Strings come from @arena.
 */
int made_names_find(struct made_names *made, int pid, bool only_new, struct arena *arena);
const struct made_place *made_names_place(const struct made_names *made, int pid, uint64_t at);
void made_names_fini(struct made_names *made);

/* ---- all ---- */

/* A function that the profile has, by the sidecar's own strings. */
struct known_function {
	const char *function, *name, *file;
	uint32_t id;
};

/* The part of a file that naming needs, beside struct walk_file. */
struct named_file {
	const struct cairn_sidecar *sidecar; /* NULL: there is none, or not looked for yet */
	struct cairn_sidecar *made;          /* the same, if it was made here */
	bool is_ready;
	bool is_cut; /* the file became shorter: what it says is not believed */
	char build_id[130];
	VEC(struct known_function) functions;
	struct map function_ids;
};

struct prof_names {
	const struct prof_names_opts *opts;
	struct arena arena;
	struct kernel_names kernel;
	pthread_t reader; /* of the kernel's names, while it is_reading */
	bool is_reading;
	struct made_names made;
	VEC(const char *) notes;
	char *shown; /* room for a name that is shown */
	size_t shown_size;
};

/* The location of a site, where its frame is this one. */
struct site_location {
	uint64_t frame;
	uint32_t location; /* 1 + location; 0: not named */
};

/* Making a profile. */
struct naming {
	struct prof_names *names;
	const struct prof_samples *samples;
	struct walk_file *const *files;
	size_t n_files;
	struct cairn_profile *p;
	struct named_file *named; /* parallel to files */
	struct map location_ids;  /* coded frame -> location */
	uint32_t *of_frame;       /* parallel to samples->frames; 0: not named, else 1 + location */
	bool at_tracepoint;
	const struct cairn_trace *probes;   /* NULL: another event */
	VEC(struct site_location) at_sites; /* by the number of the site */
	uint32_t cuts[CAIRN_PROF_N_ENDS];   /* 1 + location of the frame that says it */
	VEC(uint32_t) stack;                /* of one sample */
};

/* A site of a probe, and the function that is probed. */
struct name_site {
	const struct cairn_function *function;
	const struct cairn_site *site;
	struct cairn_vaddr probed; /* the address of the probe itself */
};

/*
 * location_in_file, _in_kernel, _made - the location of a frame
 *
 * @place  NULL: nothing is known of the address
 * @site   that the frame is at: it ends at the probed function; NULL: none
 *
 * Returns 0, -ENOMEM or -ERANGE.
 */
int location_in_file(struct naming *n, uint64_t frame, const struct name_site *site, uint32_t *ret,
		     struct cairn_err *err);
int location_in_kernel(struct naming *n, uint64_t at, uint32_t *ret, struct cairn_err *err);
int location_made(struct naming *n, const struct made_place *place, uint64_t at, uint32_t *ret,
		  struct cairn_err *err);

/*
 * The mapping of the program's code comes first: readers of pprof take the first one for that of
 * the program. Returns 0 or -ENOMEM.
 */
int map_program(struct naming *n, struct cairn_err *err);

/* Closes what was opened for files. */
void naming_files_fini(struct naming *n);

/* The name of a function as it is shown; NULL when out of memory, "" when it has none. */
const char *shown_function(struct prof_names *names, const char *linkage, const char *name);

/* A note, once; 0 or -ENOMEM. */
int prof_names_add_note(struct prof_names *names, const char *text);

/* The function of a profile that has only a name: its id in *@ret. */
int add_plain_function(struct naming *n, const char *linkage, const char *name, uint32_t *ret,
		       struct cairn_err *err);

#endif
