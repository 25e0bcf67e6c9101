/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Included before every file of the agent when the protocol's test is built: what it stores is
 * recorded, and in which order.
 */
#ifndef PROTOCOL_RECORDED_STORES_H
#define PROTOCOL_RECORDED_STORES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

void record_store(volatile void *at, size_t n_bytes, uint64_t value, int order);
void record_fence(int order);
void *record_copy(void *to, const void *from, size_t n_bytes);

#define __atomic_store_n(at, value, order)                                                         \
	record_store((at), sizeof(*(at)), (uint64_t)(value), (order))
#define __atomic_thread_fence(order) record_fence(order)
#define memcpy(to, from, n)          record_copy((to), (from), (n))

#endif
