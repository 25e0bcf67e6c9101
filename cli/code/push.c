/* SPDX-License-Identifier: BSD-2-Clause */
/* Batches: sent from the spool, and what becomes of them by the server's answer. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "push_impl.h"
#include "push_pause.h"

/* ---- one batch ---- */

static void post(const struct push *p, const struct batch *b, struct http_answer *ret)
{
	struct http_request request = {.to = p->to,
				       .url = b->url,
				       .type = b->type,
				       .id = b->id,
				       .headers = &p->headers,
				       .ca = p->wish->ca,
				       .timeout = p->wish->timeout ? p->wish->timeout : 30,
				       .body = b->body,
				       .size = b->size};

	http_post(&request, ret);
}

static void keep_failure(struct push *p, const struct http_answer *answer)
{
	free(p->failure);
	p->failure = strdup(answer->text);
}

/* A number of the server's is any number. */
static void count_sent(struct push *p, const struct batch *b, bool is_twice,
		       const struct http_answer *answer)
{
	p->counts.n_sent++;
	p->counts.bytes_sent += b->size;
	p->counts.n_twice += is_twice;
	if (!answer->n_rejected)
		return;
	if (__builtin_add_overflow(p->counts.n_rejected, answer->n_rejected, &p->counts.n_rejected))
		p->counts.n_rejected = UINT64_MAX;
	keep_failure(p, answer);
}

/* The state that a batch has after an answer. It was sent without an answer once already, or not. */
static enum spool_state state_after(enum http_outcome outcome, bool was_sent)
{
	if (outcome == HTTP_REFUSED)
		return SPOOL_REFUSED;
	return outcome == HTTP_UNKNOWN || was_sent ? SPOOL_SENT : SPOOL_NEW;
}

/* The answer is kept before anything else is done: what was taken is not sent again. */
static int keep_answer(struct push *p, struct spool_entry *e, const struct batch *b, bool was_sent,
		       const struct http_answer *answer, struct cairn_err *err)
{
	int r;

	if (answer->outcome == HTTP_TAKEN) {
		r = spool_remove(&p->spool, e, err);
		count_sent(p, b, was_sent, answer);
		push_tell_batch(p, b, was_sent ? WORD_TWICE : WORD_SENT, answer);
		return r;
	}
	if (answer->retry_after && pause_set(&p->spool, p->url, answer->retry_after, err) < 0)
		fail_told(STATUS_YES, err);
	r = spool_set_state(&p->spool, e, state_after(answer->outcome, was_sent), err);
	spool_put_back(&p->spool, e);
	p->counts.n_refused += answer->outcome == HTTP_REFUSED;
	keep_failure(p, answer);
	push_tell_batch(p, b, answer->outcome == HTTP_REFUSED ? WORD_REFUSED : WORD_WAITS, answer);
	return r;
}

static int change_state(struct push *p, struct spool_entry *e, enum spool_state to,
			struct cairn_err *err)
{
	int r = spool_lock(&p->spool, err);

	if (r < 0)
		return r;
	r = spool_set_state(&p->spool, e, to, err);
	spool_unlock(&p->spool);
	return r;
}

/* Marked as sent before the first byte is. */
static int send_loaded(struct push *p, struct spool_entry *e, const struct batch *b,
		       struct http_answer *ret, struct cairn_err *err)
{
	bool was_sent = e->state == SPOOL_SENT;
	int r = change_state(p, e, SPOOL_SENT, err);

	/* Another process has dropped it meanwhile. */
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	post(p, b, ret);
	r = spool_lock(&p->spool, err);
	if (r < 0)
		return r;
	r = keep_answer(p, e, b, was_sent, ret, err);
	spool_unlock(&p->spool);
	return r;
}

/* A damaged file is shown to people, and costs the others nothing. */
static int set_aside(struct push *p, struct spool_entry *e, struct cairn_err *err)
{
	fail_told(STATUS_YES, err);
	p->counts.n_refused++;
	return change_state(p, e, SPOOL_REFUSED, err);
}

/* Whether it is for this server: those that are not need not be read. As spool_load(). */
static int is_for_us(struct push *p, const struct spool_entry *e, struct cairn_err *err)
{
	struct batch b;
	int r = spool_peek(&p->spool, e, &b, err);

	if (r == 0)
		r = strcmp(b.url, p->url) == 0;
	spool_unload(&b);
	return r;
}

/* @answer stays as it was for a batch that is not for this server, or gone. */
static int send_entry(struct push *p, struct spool_entry *e, struct http_answer *answer,
		      struct cairn_err *err)
{
	struct batch b = {.fd = -1};
	int r = is_for_us(p, e, err);

	if (r > 0) {
		r = spool_load(&p->spool, e, &b, err);
		if (r == 0)
			r = send_loaded(p, e, &b, answer, err);
		spool_unload(&b);
	}
	if (r == -EBADMSG)
		return set_aside(p, e, err);
	return r == -ENOENT ? 0 : r;
}

/* How many batches in turn are not taken until it ends: the server may not like one of them. */
enum { FAILURES_MAX = 3 };

/* Whether the next batch would not be taken either. @n_failed: in turn. */
static bool is_over(const struct http_answer *answer, size_t n_failed)
{
	if (answer->outcome == HTTP_NOT_SENT || answer->outcome == HTTP_LATER || answer->is_over)
		return true;
	/* Without an answer each one costs the time that an answer may take. */
	return (answer->outcome == HTTP_UNKNOWN && !answer->status) || n_failed >= FAILURES_MAX;
}

static int send_list(struct push *p, struct spool_list *list, struct cairn_err *err)
{
	size_t n_failed = 0;
	bool over = false;
	int r = 0;

	for (size_t i = 0; r == 0 && !over && i < list->n; i++) {
		struct http_answer answer = {.outcome = HTTP_TAKEN};

		if (list->items[i].state == SPOOL_REFUSED)
			continue;
		r = send_entry(p, &list->items[i], &answer, err);
		n_failed = answer.outcome == HTTP_TAKEN || answer.outcome == HTTP_REFUSED
				   ? 0
				   : n_failed + 1;
		over = is_over(&answer, n_failed);
	}
	return r;
}

int push_unspooled(struct push *p, const struct batch *b)
{
	struct http_answer answer;
	struct cairn_err err;

	post(p, b, &answer);
	if (answer.outcome == HTTP_TAKEN) {
		count_sent(p, b, false, &answer);
		push_tell_batch(p, b, WORD_SENT, &answer);
		return STATUS_YES;
	}
	p->counts.n_lost++;
	if (spool_lock(&p->spool, &err) == 0) {
		spool_count_dropped(&p->spool, b->size, &err);
		spool_unlock(&p->spool);
	}
	push_tell_batch(p, b, WORD_LOST, &answer);
	return fail(STATUS_NOT_HERE, "%s: %s: the batch was neither taken nor kept", p->url,
		    answer.text);
}

/* ---- what is left ---- */

static void count_entry(struct push *p, const struct spool_entry *e)
{
	struct cairn_err err;
	struct batch b;

	if (e->state == SPOOL_REFUSED || spool_peek(&p->spool, e, &b, &err) < 0)
		return;
	if (strcmp(b.url, p->url) != 0) {
		p->counts.n_others++;
	} else {
		p->counts.n_waiting++;
		p->counts.bytes_waiting += b.size;
		p->counts.n_unsure += e->state == SPOOL_SENT;
	}
	spool_unload(&b);
}

static int count_left(struct push *p, struct cairn_err *err)
{
	struct spool_list list;
	int r = spool_read(&p->spool, &list, err);

	p->counts.n_waiting = p->counts.bytes_waiting = p->counts.n_unsure = p->counts.n_others = 0;
	for (size_t i = 0; i < list.n; i++)
		count_entry(p, &list.items[i]);
	spool_free(&list);
	spool_counts(&p->spool, &p->counts.dropped);
	return r;
}

static int send_all(struct push *p, struct cairn_err *err)
{
	struct spool_list list = {0};
	int r = spool_read(&p->spool, &list, err);

	spool_order_by_turn(&list);
	if (r == 0)
		r = send_list(p, &list, err);
	spool_free(&list);
	return r;
}

static int send_waiting(struct push *p, struct cairn_err *err)
{
	int sending = spool_lock_sending(&p->spool, err), r = 0;
	struct http_answer alone = {.outcome = HTTP_LATER};
	int64_t left;

	if (sending < 0)
		return sending;
	left = pause_left(&p->spool, p->url);
	if (left) {
		snprintf(alone.text, sizeof(alone.text),
			 "the server asked to be left alone for another %" PRId64 " s", left);
		keep_failure(p, &alone);
	} else {
		r = send_all(p, err);
	}
	close(sending);
	return r;
}

int push_send(struct push *p)
{
	struct cairn_err err = {0};
	int r = send_waiting(p, &err);

	if (r == 0)
		r = count_left(p, &err);
	if (r < 0)
		return fail_err(r, &err, STATUS_NOT_HERE);
	if (p->counts.n_waiting)
		return fail(STATUS_NOT_HERE, "%s: %s", p->url,
			    p->failure ? p->failure : "batches wait");
	if (p->counts.n_refused)
		return fail(STATUS_NO, "%s refused %" PRIu64 ": %s", p->url, p->counts.n_refused,
			    p->failure ? p->failure : "the spool is damaged");
	if (p->counts.n_rejected)
		return fail(STATUS_NO, "%s rejected %" PRIu64 " of the profiles: %s", p->url,
			    p->counts.n_rejected,
			    p->failure && *p->failure ? p->failure : "it does not say why");
	return STATUS_YES;
}
