/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The meaning of a server's answer for a batch
 *
 * "200 OK" is the server's only if it has the request's type: a gateway that says so in HTML has
 * taken nothing. A refusal is the server's only if it has that type, or is JSON, as Pyroscope and
 * Parca write their errors. OTLP's answers are messages, which are read.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "push_http.h"

/* Connect's errors have it whatever the request is, and so have grpc-gateway's. */
#define JSON_TYPE "application/json"

/* The part of a body that is shown. */
enum { SHOWN_MAX = 255 };

static bool is_type(const char *found, const char *wanted)
{
	size_t n = strlen(wanted);

	return found && !strncasecmp(found, wanted, n) && (!found[n] || strchr("; \t", found[n]));
}

/* Without the server's line ends, which would be lines of ours. */
static void make_one_line(char *text)
{
	for (char *at = text; *at; at++)
		if (*at == '\n' || *at == '\r' || *at == '\t')
			*at = ' ';
}

/* 400, 413, 415 and 422 are about this body. */
static bool is_about_body(long status)
{
	return status == 400 || status == 413 || status == 415 || status == 422;
}

/*
 * The other refusals are about the address, the permission or the moment, and hold for the next
 * body, too. After an error of the server, or of a gateway before it, nobody knows.
 */
static enum http_outcome outcome_of(long status, bool is_servers)
{
	if (is_about_body(status))
		return is_servers ? HTTP_REFUSED : HTTP_BLOCKED;
	return status >= 300 && status < 500 ? HTTP_LATER : HTTP_UNKNOWN;
}

/*
 * OTLP allows to send again after 429, 502, 503 and 504 only. All its answers are messages: others
 * are of a gateway, which does not speak for the server.
 */
static enum http_outcome otlp_outcome_of(long status, const char *type, const char *wanted)
{
	bool is_own = is_type(type, wanted);

	if (is_own && status >= 400 && status != 429 && (status < 502 || status > 504))
		return HTTP_REFUSED;
	return outcome_of(status, is_own || is_type(type, JSON_TYPE));
}

/* ---- words ---- */

static void show_failure(const struct http_reply *reply, const char *words, struct http_answer *ret)
{
	snprintf(ret->text, sizeof(ret->text), "HTTP %ld%s%s%s", reply->status,
		 ret->outcome == HTTP_BLOCKED ? " of a proxy, not of the server" : "",
		 *words ? ": " : "", words);
	make_one_line(ret->text);
}

/* A message of OTLP; or what the body begins with, if it is text. */
static void tell_failure(const struct http_request *request, const struct http_reply *reply,
			 struct http_answer *ret)
{
	struct cairn_profile_answer answer = {0};
	struct cairn_err err;
	char begin[SHOWN_MAX + 1];

	if (request->to == CAIRN_PROFILE_OTLP && is_type(reply->type, request->type)) {
		(void)!cairn_profile_read_answer(reply->body, reply->size, true, &answer, &err);
		show_failure(reply, answer.text, ret);
		return;
	}
	snprintf(begin, sizeof(begin), "%.*s",
		 (int)(reply->size < SHOWN_MAX ? reply->size : SHOWN_MAX), reply->body);
	show_failure(reply, begin, ret);
}

static void tell_other_type(const struct http_request *request, const struct http_reply *reply,
			    struct http_answer *ret)
{
	snprintf(ret->text, sizeof(ret->text), "the answer is %.100s, not the %s of such a server",
		 reply->type ? reply->type : "of no type", request->type);
}

/* ---- the answers ---- */

/* An answer that is damaged on its way is none: the batch waits, and keeps its id. */
static void judge_success(const struct http_request *request, const struct http_reply *reply,
			  struct http_answer *ret)
{
	struct cairn_profile_answer answer;
	struct cairn_err err = {0};

	ret->outcome = HTTP_TAKEN;
	if (request->to != CAIRN_PROFILE_OTLP)
		return;
	if (cairn_profile_read_answer(reply->body, reply->size, false, &answer, &err) < 0) {
		ret->outcome = HTTP_UNKNOWN;
		snprintf(ret->text, sizeof(ret->text), "HTTP 200, but %.400s", err.msg);
		return;
	}
	ret->n_rejected = answer.n_rejected;
	snprintf(ret->text, sizeof(ret->text), "%s", answer.text);
	make_one_line(ret->text);
}

void http_judge(const struct http_request *request, const struct http_reply *reply,
		struct http_answer *ret)
{
	bool is_otlp = request->to == CAIRN_PROFILE_OTLP,
	     is_own = is_type(reply->type, request->type);

	ret->status = reply->status;
	ret->retry_after = reply->retry_after > 0 ? reply->retry_after : 0;
	if (reply->status == 200 && is_own && !reply->is_cut) {
		judge_success(request, reply, ret);
		return;
	}
	ret->outcome =
		is_otlp ? otlp_outcome_of(reply->status, reply->type, request->type)
			: outcome_of(reply->status, is_own || is_type(reply->type, JSON_TYPE));
	/* OTLP's clients must not send again then. */
	if (reply->is_cut && is_otlp && is_own)
		ret->outcome = HTTP_REFUSED;
	ret->is_over =
		ret->retry_after || (ret->outcome == HTTP_REFUSED && !is_about_body(reply->status));
	if (reply->is_cut)
		snprintf(ret->text, sizeof(ret->text), "HTTP %ld with an endless answer",
			 reply->status);
	else if (reply->status == 200)
		tell_other_type(request, reply, ret);
	else
		tell_failure(request, reply, ret);
}
