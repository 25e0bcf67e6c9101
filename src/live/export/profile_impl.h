/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The neutral model of samples, and the formats that it is written to and read from
 *
 * profile.c keeps the model, moments.c when samples were taken, comments.c remarks. Each format is
 * one file (pprof_read.c, pprof_write.c, folded.c, html.c; firefox.c with firefox_tables.c, ctf.c
 * with ctf_metadata.c, otlp_write.c with otlp_tables.c and otlp_dictionary.c), which knows the
 * public header and what is here. gzip.c compresses, names.c makes names that others can have,
 * messages.c bounds the memory of messages. push_request.c has what servers of profiles take,
 * otlp_answer.c what they answer. frames.c walks over the frames of a stack. open.c tells formats
 * by their bytes, shares.c adds up what each function takes, threads.c what threads of a name take,
 * and part.c makes a profile of some of its samples.
 *
 * Events of a trace are no profile: perfetto.c and event_ctf.c write them, with the values of
 * event_value.c. ctf_write.c has what traces of both in CTF share.
 */
#ifndef EXPORT_PROFILE_IMPL_H
#define EXPORT_PROFILE_IMPL_H

#include <stdio.h>

#include <cairn/profile.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"

/* The kept part of a sample: pieces of the arrays of all. */
struct kept_sample {
	uint32_t stack, n_stack;
	uint32_t labels, n_labels;
};

/* The values are in an array of their own. */
struct kept_moment {
	uint32_t sample, cpu;
	int64_t time_ns;
};

struct cairn_profile {
	struct arena arena; /* strings, lines */
	VEC(const char *) strings;
	VEC(struct cairn_profile_mapping) mappings;
	VEC(struct cairn_profile_function) functions;
	VEC(struct cairn_profile_location) locations;
	VEC(struct kept_sample) samples;
	VEC(uint32_t) stacks;
	VEC(struct cairn_profile_label) labels;
	VEC(int64_t) values; /* n_types for each sample */
	VEC(struct kept_moment) moments;
	VEC(int64_t) moment_values; /* n_types for each moment */
	size_t last_sample;         /* that was added */
	struct map string_ids, mapping_ids, function_ids, location_ids, sample_ids;
	struct cairn_profile_type *types;
	size_t n_types;
	struct cairn_profile_run run;
	VEC(const char *) comments;
};

/* The profile's own copy of a string, one for all that are equal; NULL when out of memory. */
const char *profile_string(struct cairn_profile *p, const char *text);

int profile_copy_comments(struct cairn_profile *to, const struct cairn_profile *from,
			  struct cairn_err *err);
/* Each comment as a line of folded stacks, which their readers leave out. */
void profile_fold_comments(const struct cairn_profile *p, FILE *out);
/*
 * The comment of such a line, or of another tool's: @line has @n bytes and begins with "#". An
 * empty one is none.
 */
int profile_read_folded_comment(struct cairn_profile *p, const char *line, size_t n,
				struct cairn_err *err);

/* Whether all of it is UTF-8. */
bool profile_is_utf8(const char *text);
/* The text; or a copy in the arena, in which what is not UTF-8 is U+FFFD. NULL: out of memory. */
const char *profile_utf8(struct arena *arena, const char *text);
/* A copy in which all but letters and digits is "_". NULL: out of memory. */
const char *profile_series_name(struct arena *arena, const char *text);
/* The file of a mapping, as pprof's readers know it: "[jit]", "[kernel.kallsyms]". */
const char *profile_mapping_path(const struct cairn_profile_mapping *m);

/*
 * The name of a location without a function: "file+0x1234", the offset in the file, or the address.
 * To be freed; NULL when out of memory.
 */
char *profile_unknown_name(const struct cairn_profile *p, const struct cairn_profile_location *l);

/* A function that a stack was in, or a location without one. */
struct profile_frame {
	uint32_t location;
	uint32_t function; /* 0: none is known */
	enum cairn_profile_code code;
	bool is_inlined;   /* into the frame before it */
	bool is_innermost; /* of the stack */
};

typedef int profile_frame_fn(void *ctx, const struct profile_frame *f);

/*
 * Visits all frames of a stack, the outermost first. A result other than 0 ends the walk and is
 * returned.
 */
int profile_walk(const struct cairn_profile *p, const struct cairn_profile_sample *s,
		 profile_frame_fn *visit, void *ctx);

/* The same for the frames of one location; is_innermost is that of the location. */
int profile_walk_location(const struct cairn_profile *p, uint32_t location, profile_frame_fn *visit,
			  void *ctx);

/* Borrowed, or in *@to_free, which may be NULL; NULL when out of memory. */
const char *profile_frame_name(const struct cairn_profile *p, const struct profile_frame *f,
			       char **to_free);

enum cairn_profile_code profile_code(const struct cairn_profile *p,
				     const struct cairn_profile_location *l);

/* A moment of a sample, or what is left of its value when all its moments are taken away. */
struct profile_record {
	uint32_t sample;
	uint32_t cpu; /* UINT32_MAX: not known */
	int64_t time_ns;
	int64_t value;
	bool has_time;
};

struct profile_records {
	struct profile_record *list; /* by time; then those without one, by sample */
	size_t n, n_without_time;
};

/*
 * profile_records - all samples by their times; records without a value are left out
 *
 * Returns 0 and *@ret, whose list is to be freed; -ENOMEM; -ERANGE: a sum exceeds 64 bits.
 */
int profile_records(const struct cairn_profile *p, size_t type, struct profile_records *ret,
		    struct cairn_err *err);

/* The owner of a sample, by its labels; 0 and "" where they do not say. */
struct profile_owner {
	int64_t pid, tid;
	const char *thread;
};
struct profile_owner profile_owner(const struct cairn_profile_sample *s);

/* @to += @add; -ERANGE if the sum exceeds 64 bits. */
int profile_add_value(int64_t *to, int64_t add, struct cairn_err *err);

/* -EINVAL if the profile has no such type. */
int profile_check_type(const struct cairn_profile *p, size_t type, struct cairn_err *err);

/* cairn_profile_pprof() for a server: types are named as it can query them ("off_cpu"). */
int profile_pprof_series(const struct cairn_profile *p, struct cairn_profile_bytes *ret,
			 struct cairn_err *err);

int profile_read_pprof(const void *bytes, size_t size, const char *name, struct cairn_profile **ret,
		       struct cairn_err *err);
int profile_read_folded(const char *text, size_t size, const char *name, struct cairn_profile **ret,
			struct cairn_err *err);

#endif
