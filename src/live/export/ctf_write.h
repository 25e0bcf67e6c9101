/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Common to all traces in CTF 1.8, of profiles and of events
 *
 * One stream with one packet. All integers have this machine's byte order, which is little-endian
 * wherever Cairn runs, and no alignment.
 */
#ifndef EXPORT_CTF_WRITE_H
#define EXPORT_CTF_WRITE_H

#include <stdint.h>
#include <stdio.h>

#define CTF_MAGIC 0xc1fc1fc1u

/* The header of the packet, and the first members of its context. */
struct ctf_packet {
	uint32_t magic, stream_id;
	uint64_t begin, end;                /* timestamps */
	uint64_t content_size, packet_size; /* in bits */
};

/* ---- the stream ---- */

void ctf_put_u8(uint8_t value, FILE *out);
void ctf_put_u32(uint32_t value, FILE *out);
void ctf_put_u64(uint64_t value, FILE *out);
/* A string, which is UTF-8, as the metadata says: what is not becomes U+FFFD. */
void ctf_put_text(const char *text, FILE *out);

/* ---- the metadata ---- */

/* The integers, then @more types, and the trace. */
void ctf_put_types(const char *more, FILE *out);
/* The clock, whose timestamp 0 is @start_ns after 1970. */
void ctf_put_clock(const char *description, int64_t start_ns, FILE *out);
/* @of_packet: more members of the packet's context; @of_event: those of every event's. */
void ctf_put_stream(const char *of_packet, const char *of_event, FILE *out);

#endif
