/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Profiles: stacks, and what was measured in each
 *
 * A profile is a set of samples. Each has a stack of locations, one value for each type of the
 * profile (10 ms of "cpu", 1 of "samples") and labels. A location is an address in a mapped file
 * with the functions that the code there is of: those that were inlined first, the out-of-line one
 * last. Readers and writers of formats take this model, so that a format is one file.
 *
 *	struct cairn_profile *p;
 *	if (cairn_profile_open("cpu.pb.gz", &p, &err) < 0)
 *		...
 *	cairn_profile_shares(p, 0, &shares, &err);
 *	for (size_t i = 0; i < shares.n; i++)
 *		printf("%s %" PRId64 "\n", shares.list[i].function, shares.list[i].self);
 *	cairn_profile_shares_free(&shares);
 *	cairn_profile_close(p);
 *
 * Threads: one profile is for one thread at a time, but any number may read it at once.
 */
#ifndef CAIRN_PROFILE_H
#define CAIRN_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/api.h>
#include <cairn/err.h>

CAIRN_BEGIN_DECLS

struct cairn_profile;

/* The meaning of one value of each sample, as pprof names it: {"cpu", "nanoseconds"}. */
struct cairn_profile_type {
	const char *type, *unit;
};

enum cairn_profile_code {
	CAIRN_PROFILE_USER,
	CAIRN_PROFILE_KERNEL,
	CAIRN_PROFILE_JIT,
};

/* A file, or another range of addresses. Strings that are not known are "". */
struct cairn_profile_mapping {
	uint64_t start, limit; /* addresses of the process: start <= address < limit */
	uint64_t offset;       /* of @start in the file */
	const char *path;
	const char *build_id; /* in hexadecimal */
	enum cairn_profile_code code;
	bool is_linked; /* addresses are those of the linker, and not of a process */
};

struct cairn_profile_function {
	const char *name;
	const char *linkage_name; /* as the symbol table spells it; may equal @name */
	const char *file;         /* that declares it */
	uint32_t line;            /* of the declaration; 0: not known */
};

/* One function at a location. */
struct cairn_profile_line {
	uint32_t function; /* cairn_profile_function() */
	uint32_t line;     /* being executed; 0: not known */
};

struct cairn_profile_location {
	uint64_t address;
	uint32_t mapping; /* cairn_profile_mapping(); 0: none */
	/* The innermost first: all but the last were inlined. None: no function is known. */
	const struct cairn_profile_line *lines;
	size_t n_lines;
	uint64_t symbol; /* where the symbol that covers @address begins; 0: not known */
};

struct cairn_profile_label {
	const char *key;
	const char *text; /* "": the value is @number */
	int64_t number;
	const char *unit; /* of @number; "": none */
};

struct cairn_profile_sample {
	const uint32_t *stack; /* cairn_profile_location(), the innermost first */
	size_t n_stack;
	const int64_t *values; /* one for each type of the profile */
	const struct cairn_profile_label *labels;
	size_t n_labels;
};

/* The run as a whole; 0 and "": not known. */
struct cairn_profile_run {
	int64_t time_ns; /* when it began, since 1970 */
	int64_t duration_ns;
	struct cairn_profile_type each; /* what happened from one sample to the next ... */
	int64_t period;                 /* ... and how often or for how long */
};

/*
 * cairn_profile_new - an empty profile
 *
 * @types  @n_types of them, 1 to 64, copied
 * Returns 0 and *@ret, to be closed. -EINVAL: another number of types. -ENOMEM.
 */
int cairn_profile_new(const struct cairn_profile_type *types, size_t n_types,
		      struct cairn_profile **ret, struct cairn_err *err);

/* NULL is allowed. */
void cairn_profile_close(struct cairn_profile *p);

/*
 * cairn_profile_add_mapping, _function, _location - the id of a thing that samples refer to
 *
 * A thing that is there already, equal in all members, has one id. Ids of mappings and functions
 * begin with 1, those of locations with 0. All strings are copied; NULL is "".
 * Returns 0 and *@ret. -EINVAL: the mapping or a function of a location does not exist. -ERANGE:
 * more than 2^31 of one kind. -ENOMEM.
 */
int cairn_profile_add_mapping(struct cairn_profile *p, const struct cairn_profile_mapping *m,
			      uint32_t *ret, struct cairn_err *err);
int cairn_profile_add_function(struct cairn_profile *p, const struct cairn_profile_function *f,
			       uint32_t *ret, struct cairn_err *err);
int cairn_profile_add_location(struct cairn_profile *p, const struct cairn_profile_location *l,
			       uint32_t *ret, struct cairn_err *err);

/*
 * cairn_profile_add_sample - count a sample
 *
 * Samples with one stack and the same labels are one: their values are added up.
 * Returns 0. -EINVAL: a location does not exist. -ERANGE: a sum of values exceeds 64 bits, or there
 * are more than 2^31 samples. -ENOMEM.
 */
int cairn_profile_add_sample(struct cairn_profile *p, const struct cairn_profile_sample *s,
			     struct cairn_err *err);

/* One of the times that a sample was taken. */
struct cairn_profile_moment {
	size_t sample;         /* cairn_profile_sample() */
	int64_t time_ns;       /* since the run began; may be before, by the time that it took */
	uint32_t cpu;          /* UINT32_MAX: not known */
	const int64_t *values; /* its part of the sample's, one for each type */
};

/*
 * cairn_profile_add_moment - one of the times that the sample added last was taken
 *
 * It counts nothing: the sample has all values. Profiles need no moments, and need not have all:
 * formats with times put the rest of a sample's values after the last moment, and say so.
 *
 * @m  its sample is not read
 * Returns 0. -EINVAL: no sample was added. -ERANGE: more than 2^31. -ENOMEM.
 */
int cairn_profile_add_moment(struct cairn_profile *p, const struct cairn_profile_moment *m,
			     struct cairn_err *err);

/* 0, or -ENOMEM; the strings are copied. */
int cairn_profile_set_run(struct cairn_profile *p, const struct cairn_profile_run *run,
			  struct cairn_err *err);

/*
 * cairn_profile_add_comment - a remark about the whole, as how many samples were lost
 *
 * pprof's format and folded stacks have comments, for whoever reads the file later.
 * @text  copied
 * Returns 0 or -ENOMEM.
 */
int cairn_profile_add_comment(struct cairn_profile *p, const char *text, struct cairn_err *err);

/* Reading: all results belong to the profile. An index or id that is none gives NULL. */
struct cairn_profile_run cairn_profile_run(const struct cairn_profile *p);
/* In the order in which they were added. An index that is none gives NULL. */
size_t cairn_profile_n_comments(const struct cairn_profile *p);
const char *cairn_profile_comment(const struct cairn_profile *p, size_t i);
size_t cairn_profile_n_types(const struct cairn_profile *p);
const struct cairn_profile_type *cairn_profile_type(const struct cairn_profile *p, size_t i);
size_t cairn_profile_n_samples(const struct cairn_profile *p);
struct cairn_profile_sample cairn_profile_sample(const struct cairn_profile *p, size_t i);
size_t cairn_profile_n_moments(const struct cairn_profile *p);
/* In the order in which they were added. An index that is none gives values NULL. */
struct cairn_profile_moment cairn_profile_moment(const struct cairn_profile *p, size_t i);
uint32_t cairn_profile_n_locations(const struct cairn_profile *p);
const struct cairn_profile_location *cairn_profile_location(const struct cairn_profile *p,
							    uint32_t id);
const struct cairn_profile_function *cairn_profile_function(const struct cairn_profile *p,
							    uint32_t id);
const struct cairn_profile_mapping *cairn_profile_mapping(const struct cairn_profile *p,
							  uint32_t id);

/*
 * cairn_profile_part - a profile of some of the samples, with what they refer to and no more
 *
 * So a profile that is too large for a server becomes several.
 * @first  the samples [@first, @first + @n), with their moments
 * Returns 0 and *@ret, to be closed. -EINVAL: there are not so many. -ENOMEM.
 */
int cairn_profile_part(const struct cairn_profile *p, size_t first, size_t n,
		       struct cairn_profile **ret, struct cairn_err *err);

/* ---- formats ---- */

/*
 * cairn_profile_open, cairn_profile_read - read a profile of any tool
 *
 * The format is told by the bytes: pprof (profile.proto of github.com/google/pprof, compressed by
 * gzip or not) or folded stacks ("main;f;g 12", a line a stack; lines
 * that begin with "#" are comments).
 *
 * @name  of the source, for messages
 * Returns 0 and *@ret, to be closed. -ENOENT, -EACCES, -EISDIR: the file cannot be read. -EBADMSG:
 * damaged, the message says where. -EOPNOTSUPP: another format. -ERANGE: more than 1 GiB, or sums
 * beyond 64 bits. -ENOMEM.
 */
int cairn_profile_open(const char *path, struct cairn_profile **ret, struct cairn_err *err);
int cairn_profile_read(const void *bytes, size_t size, const char *name, struct cairn_profile **ret,
		       struct cairn_err *err);

/* Bytes of a file, to be freed by free(). */
struct cairn_profile_bytes {
	void *bytes;
	size_t size;
};

/*
 * cairn_profile_pprof - the profile in pprof's format, compressed by gzip
 *
 * Code that no file holds has the mapping "[jit]", the kernel's "[kernel.kallsyms]", as pprof's
 * readers know them. Returns 0 or -ENOMEM.
 */
int cairn_profile_pprof(const struct cairn_profile *p, struct cairn_profile_bytes *ret,
			struct cairn_err *err);

/*
 * cairn_profile_folded - the profile as folded stacks, for flamegraph.pl and what reads its input
 *
 * A line per stack, outermost function first, in the order of the text. Inlined functions end with
 * "_[i]", the kernel's with "_[k]", JIT code with "_[j]". In names ";" becomes ":" and control
 * characters become "?". Labels are left out, and stacks whose sum is 0. Comments are lines before
 * the stacks: "# ", and a text that does not end with a number, so that readers leave them out.
 *
 * @type  index of the value
 * Returns 0; -EINVAL: no such type; -ERANGE: a sum exceeds 64 bits; -ENOMEM.
 */
int cairn_profile_folded(const struct cairn_profile *p, size_t type,
			 struct cairn_profile_bytes *ret, struct cairn_err *err);

/*
 * cairn_profile_html - the profile as one HTML page with a flame graph
 *
 * It needs no network. It has search, zoom, keys, an inverted view and one by module; inlined
 * functions and JIT code are told apart without colour.
 *
 * @type   index of the value
 * @title  of the page; any bytes
 * Returns 0; -EINVAL: no such type; -ERANGE: a sum exceeds 64 bits; -ENOMEM.
 */
int cairn_profile_html(const struct cairn_profile *p, size_t type, const char *title,
		       struct cairn_profile_bytes *ret, struct cairn_err *err);

/*
 * cairn_profile_html_diff - the flame graph of a profile, compared with an earlier one
 *
 * Widths are those of @after. A frame whose share of the whole grew or shrank by 0.1 percentage
 * points or more is marked; frames that only @before has are not shown.
 * Returns as cairn_profile_html().
 */
int cairn_profile_html_diff(const struct cairn_profile *before, size_t type_before,
			    const struct cairn_profile *after, size_t type_after, const char *title,
			    struct cairn_profile_bytes *ret, struct cairn_err *err);

/*
 * cairn_profile_firefox - the profile in the processed format of the Firefox Profiler
 *
 * Version 70 of the format, as JSON, for profiler.firefox.com ("Load a profile from file"). A thread
 * for each pid and tid, named by the labels "pid", "tid" and "thread". Inlined functions have a
 * depth, the kernel's and JIT code a category. Samples without a moment follow each other after the
 * last moment of their thread, and the profile's information says how many there are.
 *
 * @type   index of the value: nanoseconds become milliseconds, bytes stay, others are counts
 * @title  of the profile; any bytes
 * @gzip   compress it; the Firefox Profiler reads both
 * Returns 0; -EINVAL: no such type; -ERANGE: more than 2^31 frames or stacks, or a sum exceeds 64
 * bits; -ENOMEM.
 */
int cairn_profile_firefox(const struct cairn_profile *p, size_t type, const char *title, bool gzip,
			  struct cairn_profile_bytes *ret, struct cairn_err *err);

/* A trace: the two files of its directory. */
struct cairn_profile_ctf {
	struct cairn_profile_bytes metadata, stream;
};

/*
 * cairn_profile_ctf - the profile as a trace in CTF 1.8, for babeltrace2 and Trace Compass
 *
 * An event "cairn:sample" for each moment, and one for values without a moment, with its time,
 * value, thread and callchain. Before the first one of a stack, an event "cairn:frame" for each of
 * its functions. The events of LTTng's state dump say where files are, so that babeltrace2's filter
 * debug-info names the addresses from files on disk: each file has a range of addresses that no
 * other has. docs/formats/ctf.md has all fields.
 *
 * @type   index of the value
 * @title  in the environment of the trace; bytes that are not printable become "?"
 * Returns 0 and *@ret, to be freed; -EINVAL: no such type; -ERANGE: more than 2^20 files, or a sum
 * exceeds 64 bits; -ENOMEM.
 */
int cairn_profile_ctf(const struct cairn_profile *p, size_t type, const char *title,
		      struct cairn_profile_ctf *ret, struct cairn_err *err);
void cairn_profile_ctf_free(struct cairn_profile_ctf *ctf);

/* ---- servers of profiles ---- */

enum cairn_profile_server {
	CAIRN_PROFILE_PYROSCOPE, /* push.v1.PusherService/Push, as application/proto */
	CAIRN_PROFILE_PARCA,     /* WriteRaw by the gateway, as application/json */
	CAIRN_PROFILE_OTLP,      /* OTLP/HTTP, profiles v1development, as application/x-protobuf */
};

struct cairn_profile_push {
	enum cairn_profile_server to;
	/*
	 * Each once; "service_name" among them. Pyroscope and Parca need "__name__", too, and take
	 * names of letters, digits and "_". To OTLP, "service_name" is "service.name", and "node"
	 * is "host.name".
	 */
	const struct cairn_profile_label *labels; /* key and text */
	size_t n_labels;
	const char *id;      /* a UUID, the same when the same profile is sent again */
	const char *version; /* of the program, for OTLP; NULL: not said */
};

/*
 * cairn_profile_check_labels - whether a server takes these labels
 *
 * Returns 0. -EINVAL: a name with other characters or given twice, or a value that is not UTF-8;
 * err says which. Cost: each name is compared with all before it.
 */
int cairn_profile_check_labels(enum cairn_profile_server to,
			       const struct cairn_profile_label *labels, size_t n,
			       struct cairn_err *err);

/*
 * cairn_profile_push_request - the body of the request by which a server takes the profile
 *
 * Pyroscope's and Parca's have the profile in pprof's format; Parca's has no place for the id.
 * OTLP's is compressed by gzip, and has a profile for each type of value. In the names of types all
 * but letters and digits becomes "_", because servers query by these names.
 * Returns 0. -EINVAL: a label's name or value; for OTLP an id that is no UUID. -ENODATA: no
 * samples, which servers refuse. -EFBIG: OTLP's would have more than 64 MiB before it is
 * compressed. -ENOMEM.
 */
int cairn_profile_push_request(const struct cairn_profile *p, const struct cairn_profile_push *push,
			       struct cairn_profile_bytes *ret, struct cairn_err *err);

/* As much as a client of OTLP takes of an answer, in bytes. */
enum { CAIRN_PROFILE_ANSWER_MAX = 4 << 20 };

struct cairn_profile_answer {
	uint64_t n_rejected; /* profiles of the request that were not taken, and never will be */
	char text[256];      /* the server's words, as UTF-8 of any characters; "": none */
};

/*
 * cairn_profile_read_answer - what a server of OTLP answers, from the body of its answer
 *
 * @is_failure  the answer has a status of an error, and not 200
 * Returns 0. -EBADMSG: no such answer. -ERANGE: more than CAIRN_PROFILE_ANSWER_MAX. -ENOMEM.
 */
int cairn_profile_read_answer(const void *bytes, size_t size, bool is_failure,
			      struct cairn_profile_answer *ret, struct cairn_err *err);

/* ---- answers ---- */

/* One function's share of a profile. Functions of one name and file are one. */
struct cairn_profile_share {
	const char *function; /* or "file+0x1234", where none is known */
	const char *file;     /* "": not known */
	int64_t self;         /* in the function itself */
	int64_t total;        /* and in what it called; once per stack */
	int64_t inlined;      /* part of @self that was in inlined copies */
	enum cairn_profile_code code;
};

struct cairn_profile_shares {
	struct cairn_profile_share *list; /* by self, then total, largest first; then by name */
	size_t n;
	int64_t sum; /* of all samples */
	void *owned;
};

/*
 * cairn_profile_shares - the functions of a profile by their share
 *
 * @type  index of the value
 * Returns 0 and *@ret, to be freed; its strings are its own. -EINVAL: no such type. -ERANGE: a sum
 * exceeds 64 bits. -ENOMEM. Cost: one pass over all frames.
 */
int cairn_profile_shares(const struct cairn_profile *p, size_t type,
			 struct cairn_profile_shares *ret, struct cairn_err *err);
void cairn_profile_shares_free(struct cairn_profile_shares *shares);

/* The share of all threads that have one name. */
struct cairn_profile_thread {
	const char *name; /* the profile's own; "": samples that do not say a thread */
	int64_t self;
	size_t n_threads; /* of that name that were sampled, in all processes */
};

/*
 * cairn_profile_threads - threads by name, by their share, largest first; then by name
 *
 * @type  index of the value
 * Returns 0 and *@ret of *@ret_n, to be freed with free(3); no sample: NULL and 0. -EINVAL: no such
 * type. -ERANGE: a sum exceeds 64 bits. -ENOMEM. Cost: one pass over all samples.
 */
int cairn_profile_threads(const struct cairn_profile *p, size_t type,
			  struct cairn_profile_thread **ret, size_t *ret_n, struct cairn_err *err);

CAIRN_END_DECLS
#endif
