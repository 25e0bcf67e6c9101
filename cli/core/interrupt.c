/* SPDX-License-Identifier: BSD-2-Clause */
#include "interrupt.h"

#include <signal.h>

static volatile sig_atomic_t seen;

static void on_signal(int sig)
{
	seen = 1;
}

void interrupt_catch(void)
{
	/* No SA_RESTART: the wait has to end. */
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

bool interrupt_seen(void)
{
	return seen;
}
