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
#include <string.h>
#include <strings.h>

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

/* The begin of an answer: for people, and to tell whose it is. */
struct body {
	char text[256];
	size_t n, seen;
};

/* Connect's errors have it whatever the request is, and so have grpc-gateway's. */
#define JSON_TYPE "application/json"

/* A server that never ends is cut off. */
enum { ANSWER_MAX = 1 << 20 };

static size_t on_body(const char *bytes, size_t size, size_t n, void *to)
{
	struct body *body = to;
	size_t room = sizeof(body->text) - 1 - body->n, take = n * size < room ? n * size : room;

	memcpy(body->text + body->n, bytes, take);
	body->n += take;
	body->text[body->n] = 0;
	body->seen += n * size;
	return body->seen > ANSWER_MAX ? 0 : n * size;
}

/* Without the server's line ends, which would be lines of ours. */
static const char *one_line(struct body *body)
{
	for (char *at = body->text; *at; at++)
		if (*at == '\n' || *at == '\r' || *at == '\t')
			*at = ' ';
	return body->text;
}

/*
 * 400, 413, 415 and 422 are about this body. The other refusals are about the address, the
 * permission or the moment, and hold for the next body, too. After an error of the server, or of a
 * gateway before it, nobody knows.
 */
static enum http_outcome outcome_of(long status, bool is_servers)
{
	if (status == 400 || status == 413 || status == 415 || status == 422)
		return is_servers ? HTTP_REFUSED : HTTP_BLOCKED;
	return status >= 300 && status < 500 ? HTTP_LATER : HTTP_UNKNOWN;
}

static bool is_type(const char *found, const char *wanted)
{
	size_t n = strlen(wanted);

	return found && !strncasecmp(found, wanted, n) && (!found[n] || strchr("; \t", found[n]));
}

static void judge_answer(struct curl *curl, const struct http_request *request, struct body *body,
			 struct http_answer *ret)
{
	const char *type = NULL;

	library.info(curl, CURL_INFO_STATUS, &ret->status);
	library.info(curl, CURL_INFO_TYPE, &type);
	if (ret->status == 200 && is_type(type, request->type)) {
		ret->outcome = HTTP_TAKEN;
		return;
	}
	ret->outcome =
		outcome_of(ret->status, is_type(type, request->type) || is_type(type, JSON_TYPE));
	if (ret->status == 200)
		snprintf(ret->text, sizeof(ret->text),
			 "the answer is %.100s, not the %s of such a server",
			 type ? type : "of no type", request->type);
	else
		snprintf(ret->text, sizeof(ret->text), "HTTP %ld%s%s%s", ret->status,
			 ret->outcome == HTTP_BLOCKED ? " of a proxy, not of the server" : "",
			 body->n ? ": " : "", one_line(body));
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
	const char *own[] = {type, key, "Expect:"};
	struct curl_list *list = NULL, *longer;
	size_t n_own = sizeof(own) / sizeof(own[0]);

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

void http_post(const struct http_request *request, struct http_answer *ret)
{
	struct curl *curl = library.begin();
	struct curl_list *head = curl ? head_of(request) : NULL;
	char error[CURL_ERROR_SIZE] = "";
	struct body body = {0};
	int code;

	*ret = (struct http_answer){.outcome = HTTP_NOT_SENT};
	if (!head) {
		snprintf(ret->text, sizeof(ret->text), "out of memory");
	} else {
		set_all(curl, request, head, &body, error);
		code = perform(curl);
		if (code == CURL_OK) {
			judge_answer(curl, request, &body, ret);
		} else {
			ret->outcome = is_not_sent(curl, code) ? HTTP_NOT_SENT : HTTP_UNKNOWN;
			snprintf(ret->text, sizeof(ret->text), "%s",
				 *error ? error : library.error_text(code));
		}
		library.free_list(head);
	}
	if (curl)
		library.end(curl);
}
