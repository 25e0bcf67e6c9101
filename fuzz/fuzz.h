/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a fuzz target is
 *
 * fuzz/fuzz_<format>.c defines both functions below and has its name in meson.build. It is built
 * twice: with libFuzzer (make fuzz), and with replay.c, which in every `make check` runs the seeds,
 * each of them cut at every byte, and with bits flipped. Seeds are built by code, in the words of
 * the format, and never committed as files.
 */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Reads one input; returns 0. Any crash, sanitizer report or leak is the finding. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Calls @put with each seed, at least one; the bytes are copied before @put returns. */
void fuzz_seeds(void (*put)(const void *bytes, size_t size));

/* A target whose inputs take long defines it: at how many places replay.c damages a seed. */
extern const unsigned int fuzz_places_max __attribute__((weak));

#endif
