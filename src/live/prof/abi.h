/* SPDX-License-Identifier: BSD-2-Clause */
/* The records that the BPF program of a profile puts into its ring. */
#ifndef PROF_ABI_H
#define PROF_ABI_H

#include <stdint.h>

#include "walk/abi.h"

/* Stacks that are remembered as sent. */
enum { PROF_SEEN_SLOTS = 16384 };

/* The kind of a record. A hit of a probe whose weight is not known is a sample without one. */
enum prof_state {
	PROF_WEIGHED,
	PROF_STACK_ONLY,  /* no sample: hands over the stack */
	PROF_UNAVAILABLE, /* at this site */
	PROF_NOT_READ,    /* memory that could not be read */
	PROF_TOO_LARGE,   /* negative, or more than a sum has room for */
	PROF_N_STATES,
};

/* A sample. One whose stack is new is followed by it. */
struct prof_sample {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t stack;   /* hash of frames and end; never 0 */
	uint64_t weight;  /* 1, nanoseconds blocked, or what a probe computed */
	uint32_t pid, tid;
	char comm[16];
	/* The number of a probe; the user's first frame is there. */
	uint32_t site : 24, state : 8; /* enum prof_state */
	uint16_t cpu;
	uint8_t end;       /* enum cairn_prof_end */
	uint8_t is_new;    /* frames follow */
	uint16_t n_kernel; /* of them, the first ones; the rest is the user's */
	uint16_t n_frames;
	uint32_t generation; /* of the process's mappings that the walk used; 0: none */
};

#endif
