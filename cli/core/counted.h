/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers with what they count. */
#ifndef CLI_COUNTED_H
#define CLI_COUNTED_H

#include <stdint.h>

/*
 * counted - "0 events", "1 event", "2 bodies", "3 processes"
 *
 * @one  the noun for one, at most 40 letters; its plural is a regular one
 * The text is valid for the next seven calls of this thread.
 */
const char *counted(uint64_t n, const char *one);

#endif
