/* SPDX-License-Identifier: BSD-2-Clause */
/* Probes in the spelling of other tools: what they are, and what to type instead. */
#ifndef TRACE_FOREIGN_H
#define TRACE_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>

/*
 * foreign_kind - the message about a kind of probe that is not traced
 *
 * @text  "kprobe:tcp_ack"; its first @len characters count
 * Returns a sentence without a full stop, which is static; NULL: no such kind is named.
 */
const char *foreign_kind(const char *text, size_t len);

/*
 * foreign_is_kernel_function - whether the running kernel has a function of that name
 *
 * False also if /proc/kallsyms cannot be read. Cost: reads that file.
 */
bool foreign_is_kernel_function(const char *name);

#endif
