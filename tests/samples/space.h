/* SPDX-License-Identifier: BSD-2-Clause */
/* One workspace for all tests of a program: its setup and teardown for cmocka. */
#ifndef SAMPLES_SPACE_H
#define SAMPLES_SPACE_H

#include "workspace.h"

static struct workspace space;

static inline int open_space(void **state)
{
	workspace_open(&space);
	return 0;
}

static inline int close_space(void **state)
{
	workspace_close(&space);
	return 0;
}

#endif
