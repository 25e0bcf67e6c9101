/* SPDX-License-Identifier: BSD-2-Clause */
/* cairn doctor: what is tried on this process. */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include <cairn/trace.h>

/* The probed function, in a library of its own (doctor_target.c). */
void cairn_doctor_target(int number);

/*
 * Probes the function with @backend, calls it, and looks whether its argument comes back.
 * Returns 1 if it did, 0 if not, or the negative error of cairn_trace_add() or _attach().
 */
int doctor_try_tracing(enum cairn_trace_backend backend, struct cairn_err *err);

/*
 * Samples a child that takes processor time.
 * Returns 1 if a sample came, 0 if none did, or the negative error of cairn_prof_open() or _start().
 */
int doctor_try_sampling(struct cairn_err *err);

#endif
