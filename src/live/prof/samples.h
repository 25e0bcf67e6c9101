/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What was sampled: different stacks, and how often each was seen in each thread
 *
 * The memory is that of the different stacks, whatever the number of samples, unless the moment of
 * each is kept.
 */
#ifndef PROF_SAMPLES_H
#define PROF_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "prof/abi.h"

struct prof_stack {
	uint64_t hash;
	size_t first;         /* in frames: the innermost; the kernel's come first */
	uint16_t n, n_kernel; /* frames in all, and those of the kernel */
	uint8_t end;          /* enum cairn_prof_end */
	uint32_t site;        /* as of struct prof_sample */
};

/* All samples of one stack in one thread, while it had one name. */
struct prof_count {
	uint32_t stack; /* index */
	uint32_t pid, tid;
	uint8_t state; /* enum prof_state: of those that are not weighed the weight is 0 */
	char comm[16]; /* the rest is NUL, and so is the last byte */
	uint64_t n, weight;
};

/* When one of them was taken. */
struct prof_moment {
	uint32_t count; /* index */
	uint32_t cpu;
	uint64_t time_ns, weight;
};

/* A Firefox Profiler or a babeltrace2 can do no more with it; 192 MiB. */
#define PROF_MOMENTS_MAX ((size_t)1 << 23)

struct prof_samples {
	VEC(struct prof_stack) stacks;
	VEC(uint64_t) frames; /* coded as abi.h says */
	VEC(struct prof_count) counts;
	bool keeps_moments;
	VEC(struct prof_moment) moments; /* the first PROF_MOMENTS_MAX; only if they are kept */
	uint64_t n_without_moment;
	struct map stack_ids, count_ids;
	uint64_t n, n_broken; /* samples; records that cannot be ours; of all windows */
	/*
	 * Weights are what a program computes, and their sum of a window must fit 63 bits: one too
	 * many is PROF_TOO_LARGE.
	 */
	bool keeps_sum;
	uint64_t sum;
	uint64_t n_states[PROF_N_STATES]; /* the samples; of all windows */
	/* The window before: a record that was on its way may have a stack of it. */
	struct prof_samples *before;
};

/*
 * samples_add - take over a record of the ring
 *
 * Returns 1: a sample; 0: a stack only, or a record that cannot be ours (n_broken); -ENOMEM.
 */
int samples_add(struct prof_samples *s, const void *record, size_t size);

/*
 * samples_frames - the frames of a record's stack; NULL, and 0, when it cannot be ours
 */
const uint64_t *samples_frames(const struct prof_samples *s, const void *record, size_t size,
			       size_t *ret_n);

/*
 * samples_add_as - take over a sample whose frames are others than the kernel's program sent
 *
 * @frames  the @n that count, at most as many as it sent, the kernel's first
 * @end     enum cairn_prof_end: why they end there
 */
int samples_add_as(struct prof_samples *s, const void *record, size_t size, const uint64_t *frames,
		   size_t n, uint8_t end);

/*
 * samples_next_window - forget what was sampled, and begin anew
 *
 * Stacks of the window that ends are remembered until the next one ends. Returns 0; -ENOMEM, and
 * then nothing is forgotten.
 */
int samples_next_window(struct prof_samples *s);

void samples_fini(struct prof_samples *s);

#endif
