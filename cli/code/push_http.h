/* SPDX-License-Identifier: BSD-2-Clause */
/* One request over HTTP, by libcurl. */
#ifndef CLI_PUSH_HTTP_H
#define CLI_PUSH_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "cmd.h"

struct http_request {
	const char *url;
	const char *type;               /* Content-Type, of the request and of the answer */
	const char *id;                 /* sent as Idempotency-Key */
	const struct opt_list *headers; /* more lines of the head */
	const char *ca; /* file with certificates that are trusted instead of the system's; NULL */
	double timeout; /* seconds for all of it */
	const void *body;
	size_t size;
};

enum http_outcome {
	HTTP_TAKEN,    /* the server said so */
	HTTP_REFUSED,  /* the server will never take this body */
	HTTP_BLOCKED,  /* another one on the way does not let this body through */
	HTTP_LATER,    /* not taken, and the next one would not be either */
	HTTP_NOT_SENT, /* nobody was there to send it to */
	HTTP_UNKNOWN,  /* it may have been taken: no answer, or one that says neither */
};

struct http_answer {
	enum http_outcome outcome;
	long status; /* of HTTP; 0: none */
	char text[512];
};

/* False, after a message, if the library is not here. It is loaded at the first call. */
bool http_here(void);

/*
 * Sends a request and waits for its answer, @timeout at most. "200 OK" is the server's only if it
 * has the request's type: a gateway that says so in HTML has taken nothing. A refusal is the
 * server's only if it has that type, or is JSON, as both servers write their errors.
 */
void http_post(const struct http_request *request, struct http_answer *ret);

#endif
