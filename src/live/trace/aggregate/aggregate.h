/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Aggregates: what a trace sums up in the kernel
 *
 * aggregate.c plans them: texts to numbers and keys, their positions in a slot (abi.h), and the
 * program of each site. short.c finds those that need no interpreter. load.c gives the maps their
 * sizes and fills the table of the short programs, read.c makes rows of them, quantiles.c quantiles
 * of buckets, and print.c shows their keys.
 */
#ifndef TRACE_AGGREGATE_H
#define TRACE_AGGREGATE_H

#include "trace/expr/compile.h"
#include "trace/trace.h"

enum {
	AGGREGATE_KEYS_MAX = 16,
	AGGREGATE_KEYS_DEFAULT = 8192,
	/* Their buckets take 16 KiB of a key. */
	AGGREGATE_KEYS_OF_QUANTILES = 2048,
	/* Buckets of one histogram of steps. */
	AGGREGATE_STEPS_MAX = 1000,
	/* The smallest and the largest of TRACE_AGGREGATE_CLASSES. */
	AGGREGATE_SLOT_MIN = 64,
	AGGREGATE_SLOT_MAX = 512,
	/* The kernel's limit of a value per processor. */
	AGGREGATE_CELLS_MAX = 32768 / 8,
	/* The header of a key: probe and faults. */
	AGGREGATE_HEADER = 8,
};

enum key_kind {
	KEY_PID,
	KEY_TID,
	KEY_COMM,
	KEY_CPU,
	KEY_CGROUP,
	KEY_SITE,
	KEY_STACK,
	KEY_CALLER,
	KEY_VALUE, /* an expression */
};

/* A key as written; the same for every probe. */
struct aggregate_key {
	enum key_kind kind;
	const char *text;
	uint32_t out;   /* in the slot, unless it is a value */
	uint32_t value; /* of a value: its number among the values */
};

enum part_kind {
	PART_NUMBER, /* 8 bytes, extended */
	PART_TYPED,  /* the bytes of a type of the graph */
	PART_STRING, /* struct key_string */
};

/* An expression of one probe: first the numbers, then the values of the key. */
struct aggregate_part {
	enum part_kind kind;
	const struct expr *expr;
	bool is_counted;                /* of a string: a recipe says how long it is */
	uint16_t out, n_bytes, n_shown; /* of a string: as value_layout */
};

struct aggregate_item {
	enum cairn_aggregate_kind kind;
	const char *given; /* text of the option */
	const char *text;  /* the number's alone */
	uint32_t number;
	int64_t range[3];
};

struct aggregates {
	uint32_t n_items, n_numbers, n_keys, n_values;
	struct aggregate_item items[TRACE_UPDATES_MAX];
	/* The texts of the options that the numbers are from. */
	const char *numbers[TRACE_UPDATES_MAX];
	bool has_range[TRACE_UPDATES_MAX];
	const char *by;
	struct aggregate_key keys[AGGREGATE_KEYS_MAX];
	uint32_t values_at; /* the first value of a key, in the slot */
	uint32_t n_slot;    /* bytes that the probes so far need */
	uint32_t max_keys;
	bool clears;
	/* From kernel_load() on: all sites have short programs, and all of them the same one. */
	bool is_short, is_common;
	struct trace_short common;
	bool has_condition; /* the common one */
	uint32_t key_from;  /* so many bytes of keys, all zeroes, are left out of the maps */
	bool any_signed[TRACE_UPDATES_MAX];
	struct trace_aggregate_plan plan; /* the kernel's, from aggregates_finish() on */
	uint64_t from_ns;
	uint64_t *cleared; /* by probe: hits of earlier intervals */
};

/* plan_probe()'s part: values and their positions. Errors as cairn_trace_add(). */
int aggregate_plan_probe(struct cairn_trace *t, struct trace_probe *p, struct cairn_err *err);
/* Appends the operations of one value to a site's program; result as compile_value(). */
enum cairn_unavailable aggregate_compile(const struct trace_probe *p, struct compiler *c,
					 uint32_t value);

/* When all probes are known: the cells, and the size of the slots. */
int aggregates_finish(struct cairn_trace *t, struct cairn_err *err);

/* The quantiles of a key's cells after the one of unreadable numbers (quantiles.c). */
void aggregate_quantiles(const struct trace_update *u, const uint64_t *cells, bool is_signed,
			 struct cairn_aggregate_value *v);
struct cairn_number aggregate_number(__int128 v);

/* Whether a program is short (abi.h; short.c), after aggregates_finish(); then *@ret is it. */
bool aggregate_shorten(const struct cairn_trace *t, uint32_t program, struct trace_short *ret);
/* Finds out whether those of all sites are. */
void aggregates_note_short(struct cairn_trace *t);

struct trace_bpf;
/* Before the program is loaded. Returns 0 or a negative errno. */
int aggregates_size_maps(const struct cairn_trace *t, struct trace_bpf *bpf);
/* After that. Returns 0; -ENOMEM, and the errors of mmap(2). */
int aggregates_fill_maps(const struct cairn_trace *t, struct trace_bpf *bpf);

#endif
