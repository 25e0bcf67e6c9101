/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A request over HTTP
 *
 * libcurl sends it: it has TLS, proxies and HTTP/2. It is loaded on demand, as the client of
 * debuginfod is, because its start takes longer than most of our answers.
 */
#include "push_http.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library.h"

/* curl/curl.h, as far as it is used; a test compares the numbers with it. */
enum {
	CURL_OK = 0,
	CURL_ERROR_URL = 3,
	CURL_ERROR_PROXY = 5,
	CURL_ERROR_HOST = 6,
	CURL_ERROR_CONNECT = 7,
	CURL_ERROR_TIMEOUT = 28,
	CURL_ERROR_TLS = 35,
	CURL_ERROR_CERTIFICATE = 60,
	CURL_ERROR_CA_FILE = 77,
	CURL_GLOBAL_EVERYTHING = 3,
	CURL_POST = 47,
	CURL_NO_SIGNAL = 99,
	CURL_TIMEOUT_MS = 155,
	CURL_CONNECT_TIMEOUT_MS = 156,
	CURL_PROTOCOLS = 181,
	CURL_WRITE_DATA = 10001,
	CURL_URL = 10002,
	CURL_ERROR_BUFFER = 10010,
	CURL_POST_FIELDS = 10015,
	CURL_USER_AGENT = 10018,
	CURL_HEADERS = 10023,
	CURL_CA_FILE = 10065,
	CURL_WRITE_FUNCTION = 20011,
	CURL_POST_SIZE = 30120,
	CURL_INFO_TYPE = 0x100012,
	CURL_INFO_STATUS = 0x200002,
	CURL_INFO_BEGIN_TIME = 0x300006,
	CURL_INFO_RETRY_AFTER = 0x600039,
	CURL_HTTP_AND_HTTPS = 3,
	CURL_ERROR_SIZE = 256,
};

struct curl_list;
struct curl;

static struct library {
	void *handle;
	int (*global_init)(long flags);
	struct curl *(*begin)(void);
	int (*set)(struct curl *curl, int option, ...);
	int (*perform)(struct curl *curl);
	int (*info)(struct curl *curl, int info, ...);
	void (*end)(struct curl *curl);
	struct curl_list *(*append)(struct curl_list *list, const char *line);
	void (*free_list)(struct curl_list *list);
	const char *(*error_text)(int code);
} library;

static void *load(struct library *l, const char *name)
{
	const struct library_symbol symbols[] = {
		{"curl_global_init", &l->global_init},  {"curl_easy_init", &l->begin},
		{"curl_easy_setopt", &l->set},          {"curl_easy_perform", &l->perform},
		{"curl_easy_getinfo", &l->info},        {"curl_easy_cleanup", &l->end},
		{"curl_slist_append", &l->append},      {"curl_slist_free_all", &l->free_list},
		{"curl_easy_strerror", &l->error_text},
	};

	return library_load(name, symbols, sizeof(symbols) / sizeof(symbols[0]));
}

bool http_here(void)
{
	/* The same library with OpenSSL, and with GnuTLS. */
	static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};

	for (size_t i = 0; !library.handle && i < sizeof(names) / sizeof(names[0]); i++) {
		library.handle = load(&library, names[i]);
		if (library.handle && library.global_init(CURL_GLOBAL_EVERYTHING))
			library = (struct library){0};
	}
	if (!library.handle)
		fail(STATUS_NOT_HERE, "sending a profile needs libcurl.so.4\nTry: apt install "
				      "libcurl4");
	return library.handle;
}

/* ---- the answer ---- */

/* Only the begin is looked at, except for OTLP's servers. */
struct body {
	char *bytes;
	size_t n, room, seen;
	size_t keep; /* at most */
	size_t max;  /* a server that never ends is cut off */
};

enum { BEGIN_MAX = 256, ANSWER_MAX = 1 << 20 };

static void begin_body(const struct http_request *request, struct body *ret)
{
	bool is_otlp = request->to == CAIRN_PROFILE_OTLP;

	*ret = (struct body){.keep = is_otlp ? CAIRN_PROFILE_ANSWER_MAX : BEGIN_MAX,
			     .max = is_otlp ? CAIRN_PROFILE_ANSWER_MAX : ANSWER_MAX};
}

static bool keep_bytes(struct body *body, const char *bytes, size_t n)
{
	size_t room = body->room ? body->room : 1024;
	char *grown;

	while (room < body->n + n)
		room *= 2;
	if (room != body->room) {
		grown = realloc(body->bytes, room);
		if (!grown)
			return false;
		body->bytes = grown;
		body->room = room;
	}
	memcpy(body->bytes + body->n, bytes, n);
	body->n += n;
	return true;
}

static size_t on_body(const char *bytes, size_t size, size_t n, void *to)
{
	struct body *body = to;
	size_t left = body->keep - body->n, take = n * size < left ? n * size : left;

	body->seen += n * size;
	return keep_bytes(body, bytes, take) && body->seen <= body->max ? n * size : 0;
}

static void read_reply(struct curl *curl, const struct http_request *request,
		       const struct body *body, struct http_answer *ret)
{
	struct http_reply reply = {.body = body->bytes ? body->bytes : "",
				   .size = body->n,
				   .is_cut = body->seen > body->max};

	library.info(curl, CURL_INFO_STATUS, &reply.status);
	library.info(curl, CURL_INFO_TYPE, &reply.type);
	/* A library that does not know it leaves 0 there. */
	library.info(curl, CURL_INFO_RETRY_AFTER, &reply.retry_after);
	http_judge(request, &reply, ret);
}

/* The request did not begin, whatever the server is. A host that drops packets lets time pass. */
static bool is_not_sent(struct curl *curl, int code)
{
	static const int codes[] = {CURL_ERROR_URL,     CURL_ERROR_PROXY, CURL_ERROR_HOST,
				    CURL_ERROR_CONNECT, CURL_ERROR_TLS,   CURL_ERROR_CERTIFICATE,
				    CURL_ERROR_CA_FILE};
	double began = 0;

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i] == code)
			return true;
	return code == CURL_ERROR_TIMEOUT &&
	       library.info(curl, CURL_INFO_BEGIN_TIME, &began) == CURL_OK && began <= 0;
}

/* ---- the request ---- */

/* NULL: out of memory. */
static struct curl_list *head_of(const struct http_request *request)
{
	char type[128], key[128];
	const char *own[] = {type, key, "Expect:", "Content-Encoding: gzip"};
	struct curl_list *list = NULL, *longer;
	/* Only OTLP's body is compressed as a whole. */
	size_t n_own = request->to == CAIRN_PROFILE_OTLP ? 4 : 3;

	snprintf(type, sizeof(type), "Content-Type: %s", request->type);
	snprintf(key, sizeof(key), "Idempotency-Key: %s", request->id);
	for (size_t i = 0; i < n_own + request->headers->n; i++) {
		longer = library.append(list,
					i < n_own ? own[i] : request->headers->items[i - n_own]);
		if (!longer) {
			library.free_list(list);
			return NULL;
		}
		list = longer;
	}
	return list;
}

static void set_all(struct curl *curl, const struct http_request *request,
		    const struct curl_list *head, struct body *body, char *error)
{
	long ms = request->timeout < 1e6 ? (long)(request->timeout * 1e3) + 1 : 1000000000;

	library.set(curl, CURL_URL, request->url);
	library.set(curl, CURL_PROTOCOLS, (long)CURL_HTTP_AND_HTTPS);
	library.set(curl, CURL_POST, 1L);
	library.set(curl, CURL_POST_FIELDS, request->body);
	library.set(curl, CURL_POST_SIZE, (int64_t)request->size);
	library.set(curl, CURL_HEADERS, head);
	library.set(curl, CURL_USER_AGENT, "cairn");
	library.set(curl, CURL_NO_SIGNAL, 1L);
	library.set(curl, CURL_TIMEOUT_MS, ms);
	library.set(curl, CURL_CONNECT_TIMEOUT_MS, ms);
	library.set(curl, CURL_WRITE_FUNCTION, on_body);
	library.set(curl, CURL_WRITE_DATA, body);
	library.set(curl, CURL_ERROR_BUFFER, error);
	if (request->ca)
		library.set(curl, CURL_CA_FILE, request->ca);
}

/* A server that closes the connection is no reason to end. */
static int perform(struct curl *curl)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
	int code;

	sigaction(SIGPIPE, &ignore, &before);
	code = library.perform(curl);
	sigaction(SIGPIPE, &before, NULL);
	return code;
}

static void post(struct curl *curl, const struct http_request *request,
		 const struct curl_list *head, struct http_answer *ret)
{
	char error[CURL_ERROR_SIZE] = "";
	struct body body;
	int code;

	begin_body(request, &body);
	set_all(curl, request, head, &body, error);
	code = perform(curl);
	if (code == CURL_OK || body.seen > body.max) {
		read_reply(curl, request, &body, ret);
	} else {
		ret->outcome = is_not_sent(curl, code) ? HTTP_NOT_SENT : HTTP_UNKNOWN;
		snprintf(ret->text, sizeof(ret->text), "%s",
			 *error ? error : library.error_text(code));
	}
	free(body.bytes);
}

void http_post(const struct http_request *request, struct http_answer *ret)
{
	struct curl *curl = library.begin();
	struct curl_list *head = curl ? head_of(request) : NULL;

	*ret = (struct http_answer){.outcome = HTTP_NOT_SENT};
	if (head)
		post(curl, request, head, ret);
	else
		snprintf(ret->text, sizeof(ret->text), "out of memory");
	library.free_list(head);
	if (curl)
		library.end(curl);
}
