/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A trace of a small program, run to its end, with all events kept as text
 *
 *	struct session s;
 *	session_run(&s, &(struct session_opts){.program = path}, "twice(n) if n > 3");
 *	assert_int_equal(s.n, 6);
 *	assert_string_equal(s.events[0], "n=4");
 *	session_free(&s);
 */
#ifndef LIVE_TRACE_SESSION_H
#define LIVE_TRACE_SESSION_H

#include <stdbool.h>
#include <stddef.h>

#include <cairn/sites.h>
#include <cairn/trace.h>

#define SESSION_EVENTS_MAX 20000

struct session_opts {
	const char *program; /* run it ... */
	char *const *argv;   /* ... with these arguments; NULL: none */
	int pid;             /* or watch this one, until it ends or @enough events came */
	unsigned int enough;
	struct cairn_trace_opts trace;
};

struct session {
	int attached; /* what cairn_trace_attach() returned */
	struct cairn_err err;
	size_t n;
	char *events[SESSION_EVENTS_MAX]; /* "a=1, b=2" */
	struct cairn_trace_stats stats;
	int status; /* of the program, as waitpid() says */
};

/* Why nothing can be traced here, or NULL. */
const char *session_missing(void);

/* @probes ends with NULL. Failures to open or add abort; failures to attach are in the result. */
void session_run_all(struct session *s, const struct session_opts *opts, const char *const *probes);
void session_run(struct session *s, const struct session_opts *opts, const char *probe);
void session_free(struct session *s);

/* Makes sites at one address copies in one function, which are a call each. */
void session_make_copies(struct cairn_site *sites, uint32_t n);

#endif
