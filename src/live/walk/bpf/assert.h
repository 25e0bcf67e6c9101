/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The shared headers include <assert.h>, and the C library's is not for BPF. */
#define static_assert _Static_assert
