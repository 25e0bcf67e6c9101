/* SPDX-License-Identifier: BSD-2-Clause */
/* One request over HTTP, by libcurl. */
#ifndef CLI_PUSH_HTTP_H
#define CLI_PUSH_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/profile.h>

#include "cmd.h"

struct http_request {
	enum cairn_profile_server to;
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
	long status;         /* of HTTP; 0: none */
	int64_t retry_after; /* seconds that the server asks to be left alone for; 0: it does not */
	bool is_over;        /* the next batch would have the same answer */
	uint64_t n_rejected; /* profiles of a batch that was taken, as the server says */
	char text[512];      /* why it was not taken; or what the server says beside */
};

/* The answer as it came. */
struct http_reply {
	long status;
	const char *type; /* NULL: none */
	const char *body; /* not for other servers than OTLP's: the begin of it */
	size_t size;
	bool is_cut; /* it had more than an answer may have */
	int64_t retry_after;
};

/* False, after a message, if the library is not here. It is loaded at the first call. */
bool http_here(void);

/* Sends a request and waits for its answer, @timeout at most. */
void http_post(const struct http_request *request, struct http_answer *ret);

/* The meaning of a reply (push_answer.c). @ret is zeroed before. */
void http_judge(const struct http_request *request, const struct http_reply *reply,
		struct http_answer *ret);

#endif
