/* SPDX-License-Identifier: BSD-2-Clause */
/* Second opinions of other programs, if they are installed. After <cmocka.h>. */
#ifndef SAMPLES_NEED_H
#define SAMPLES_NEED_H

#include <stdio.h>
#include <stdlib.h>

/* Skips the test when there is no such program. */
static inline void need(const char *program)
{
	char cmd[128];
	snprintf(cmd, sizeof(cmd), "command -v %s >/dev/null 2>&1", program);
	if (system(cmd) == 0)
		return;
	print_message("skipped: no %s\n", program);
	skip();
}

#endif
