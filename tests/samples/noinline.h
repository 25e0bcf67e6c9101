/* SPDX-License-Identifier: BSD-2-Clause */
/* For functions that have to have frames of their own; Clang never clones one. */
#ifndef SAMPLES_NOINLINE_H
#define SAMPLES_NOINLINE_H

#if __has_attribute(noclone)
#define NOINLINE __attribute__((noinline, noclone))
#else
#define NOINLINE __attribute__((noinline))
#endif

#endif
