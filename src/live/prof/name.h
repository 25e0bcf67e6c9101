/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names for what was sampled: stacks of coded frames (samples.h) become a profile
 *
 * Each different frame is named once. Files and the kernel are looked at when all is over. Code
 * that was made at run time has names only while its process lives.
 *
 *	name.c           stacks, counts and labels
 *	name_file.c      frames in files: functions, inlined calls, lines
 *	name_kernel.c    frames in the kernel
 *	name_made.c      frames in code that was made at run time
 *	name_function.c  how a function is shown, and notes
 *	prof.c           the run; kernel.c, late.c, probes.c, tracepoint.c, samples.c: what is sampled
 */
#ifndef PROF_NAME_H
#define PROF_NAME_H

#include <cairn/prof.h>

#include "walk/files.h"
#include "prof/samples.h"

struct prof_names_opts {
	/* As in struct cairn_prof_opts; NULL: as the source names them. */
	size_t (*show_name)(const char *linker_name, const char *name, char *buf, size_t size);
	/*
	 * The sidecar of a file that has none, and that is needed now; *ret stays NULL if there is
	 * none. NULL: it is made in memory. One call at a time.
	 */
	int (*make_sidecar)(void *ctx, const struct cairn_binary *bin, struct cairn_sidecar **ret,
			    struct cairn_err *err);
	void *make_sidecar_ctx;
	const char *kallsyms; /* NULL: /proc/kallsyms */
	/*
	 * Path of the program that is profiled, whose mapping comes first; NULL: none is special.
	 */
	const char *program;
	/*
	 * The frame of an address that was taken for one in no file when it was sampled, and is in
	 * a file as is known by now; 0: in none. NULL: none is.
	 */
	uint64_t (*frame_of)(void *ctx, int pid, uint64_t at);
	void *frame_of_ctx;
};

struct prof_names;
struct cairn_trace;

/* @opts  borrowed until prof_names_free(). Returns 0 or -ENOMEM. */
int prof_names_new(const struct prof_names_opts *opts, struct prof_names **ret,
		   struct cairn_err *err);
void prof_names_free(struct prof_names *names);

/* Ends the naming, but for its notes: they stay until prof_names_free(). */
void prof_names_end(struct prof_names *names);

/*
 * prof_names_read_ahead - begin to read what the naming of these samples will need
 *
 * A thread reads the kernel's list of symbols, if samples are in the kernel: a tenth of a second,
 * while a run that ends waits for other things. Nothing else is read ahead.
 */
void prof_names_read_ahead(struct prof_names *names, const struct prof_samples *samples);

/*
 * prof_names_of_process - the names of a process's addresses that are in no file, while it lives
 *
 * It may be called any number of times, say when code of the process is freed: an address that was
 * named keeps its name.
 * @pid  0: all processes that have such addresses
 * Returns 0, also if the process cannot be read; -ENOMEM.
 * Cost: the counts that are new since the last call; for a process with such addresses, its
 * mappings and what describes its code. A process without any costs nothing.
 */
int prof_names_of_process(struct prof_names *names, const struct prof_samples *samples, int pid,
			  struct cairn_err *err);

/*
 * prof_names_of_new_addresses - the same for all processes, but only addresses never tried before
 *
 * For while it samples. Errors and cost as above, of processes with such addresses.
 */
int prof_names_of_new_addresses(struct prof_names *names, const struct prof_samples *samples,
				struct cairn_err *err);

/* The types of a profile, and how many of the last one a weight of 1 stands for. */
struct prof_values {
	struct cairn_profile_type types[2];
	size_t n_types; /* 2: the first counts samples */
	int64_t each;
	/* Samples are taken in the kernel's code, at a tracepoint: the way into it is left out. */
	bool at_tracepoint;
	struct cairn_profile_run run;
	/* The first frame of a user's stack is at the stack's site of these probes; NULL. */
	const struct cairn_trace *probes;
	uint64_t started_ns; /* of the run, by the clock of moments */
};

/* Those of an event; @hz is its rate, where it has one. run has no time yet. */
struct prof_values prof_values_of(enum cairn_prof_event event, unsigned int hz);

/*
 * prof_names_profile - the profile of all samples
 *
 * A stack that is not complete begins with the frame "[cut: REASON]", outermost, so that a graph
 * keeps such stacks apart. It has the label "end", as has one with an assumed frame.
 *
 * @files  @n_files of them, by the number that frames have; NULL where there is none
 * Returns 0; -ENOMEM; -ERANGE as cairn_profile_add_sample().
 */
int prof_names_profile(struct prof_names *names, const struct prof_samples *samples,
		       struct walk_file *const *files, size_t n_files,
		       const struct prof_values *values, struct cairn_profile **ret,
		       struct cairn_err *err);

/* Tells what could not be named as a whole, and why. NULL ends the list. */
const char *prof_names_note(const struct prof_names *names, size_t i);

#endif
