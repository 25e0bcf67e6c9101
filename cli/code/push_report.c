/* SPDX-License-Identifier: BSD-2-Clause */
/* The fate of batches, for people and for other programs. */
#include <inttypes.h>

#include "json.h"
#include "push_impl.h"
#include "say.h"

static const char *const words[] = {"sent", "sent, perhaps twice", "refused", "waits", "lost"};

void push_tell_batch(const struct push *p, const struct batch *b, enum push_word word,
		     const struct http_answer *answer)
{
	struct json j = {.out = stdout};

	if (p->json) {
		json_open(&j, NULL, '{');
		json_text(&j, "id", b->id);
		json_uint(&j, "bytes", b->size);
		json_text(&j, "result", word == WORD_TWICE ? words[WORD_SENT] : words[word]);
		json_bool(&j, "perhaps_twice", word == WORD_TWICE);
		json_uint(&j, "rejected", answer->n_rejected);
		json_int(&j, "http", answer->status);
		json_text(&j, "reason", *answer->text ? answer->text : NULL);
		json_close(&j);
	} else if (!p->quiet) {
		say(stdout, "%s  %zu bytes  %s%s%s\n", b->id, b->size, words[word],
		    *answer->text ? ": " : "", answer->text);
	}
	/* A kill later on takes back nothing of what has happened. */
	fflush(stdout);
}

static void report_json(const struct push *p, FILE *out)
{
	const struct push_counts *c = &p->counts;
	struct json j = {.out = out};

	json_open(&j, NULL, '{');
	json_summary(&j);
	json_text(&j, "url", p->url);
	json_uint(&j, "sent", c->n_sent);
	json_uint(&j, "sent_bytes", c->bytes_sent);
	json_uint(&j, "perhaps_twice", c->n_twice);
	json_uint(&j, "refused", c->n_refused);
	json_uint(&j, "rejected", c->n_rejected);
	json_uint(&j, "lost", c->n_lost);
	json_uint(&j, "waiting", c->n_waiting);
	json_uint(&j, "waiting_bytes", c->bytes_waiting);
	json_uint(&j, "waiting_perhaps_arrived", c->n_unsure);
	json_uint(&j, "waiting_for_others", c->n_others);
	json_uint(&j, "dropped_ever", c->dropped.n_dropped);
	json_uint(&j, "dropped_ever_bytes", c->dropped.bytes_dropped);
	json_close(&j);
}

static void say_part(FILE *out, uint64_t n, const char *text)
{
	if (n)
		say(out, ", %" PRIu64 " %s", n, text);
}

void push_report(const struct push *p, FILE *out)
{
	const struct push_counts *c = &p->counts;

	if (p->json) {
		report_json(p, out);
		return;
	}
	say(out, "%s: %" PRIu64 " sent", p->url, c->n_sent);
	say_part(out, c->n_twice, "of them perhaps twice");
	say_part(out, c->n_rejected, "profiles in them rejected by the server");
	say_part(out, c->n_refused, "refused");
	say_part(out, c->n_lost, "lost");
	say_part(out, c->n_waiting, "waiting");
	say_part(out, c->n_unsure, "of these may have arrived already");
	say_part(out, c->n_others, "waiting for other servers");
	say_part(out, c->dropped.n_dropped, "dropped since the spool was made, for lack of room");
	say(out, "\n");
}
