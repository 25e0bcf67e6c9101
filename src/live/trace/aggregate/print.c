/* SPDX-License-Identifier: BSD-2-Clause */
/* A key of a row, as text or JSON. Values print as those of events do. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <cairn/text.h>

#include "trace/aggregate/aggregate.h"
#include "trace/stacks/stacks.h"

enum { WHERE_MAX = 1024 };

static void put_text(const char *text, bool json, FILE *out)
{
	if (json)
		fputc('"', out);
	cairn_quote_put(text, json ? CAIRN_QUOTE_JSON : CAIRN_QUOTE_TEXT, out);
	if (json)
		fputc('"', out);
}

static void put_site(const struct cairn_trace *t, uint32_t site, bool json, FILE *out)
{
	char where[WHERE_MAX];

	if (site >= t->sites.n)
		return;
	const struct cairn_trace_site *s = &t->sites.p[site]->pub;
	cairn_site_text(t->probes.p[s->probe]->pub.function, s->site,
			json ? NULL : t->opts.show_name, where, sizeof(where));
	put_text(where, json, out);
}

/* The function around an inlined copy, and the line of the call. */
static void put_around(const struct cairn_trace *t, const struct cairn_site *site, bool json,
		       FILE *out)
{
	const struct cairn_inlined_call *call = &site->chain[0];
	bool is_outermost = site->n_chain == 1;
	const char *linkage = is_outermost ? site->symbol : NULL;
	const char *name = is_outermost ? site->container : site->chain[1].function;
	char shown[WHERE_MAX], text[WHERE_MAX];

	if (t->opts.show_name && !json && (name || linkage))
		t->opts.show_name(linkage, name, shown, sizeof(shown));
	else
		snprintf(shown, sizeof(shown), "%s", name ? name : linkage ? linkage : "?");
	if (call->call_file)
		snprintf(text, sizeof(text), "%.600s at %.300s:%u", shown, call->call_file,
			 call->call_line);
	put_text(call->call_file ? text : shown, json, out);
}

/* A stack has no text here, but what tells it from others. */
static void put_stack(const struct cairn_trace *t, const uint8_t *at, bool json, FILE *out)
{
	uint64_t id[2], site;

	memcpy(id, at, sizeof(id));
	site = id[0] / 2 - 1;
	if (id[0] && id[0] % 2 == 0 && site < t->sites.n) {
		put_around(t, t->sites.p[site]->pub.site, json, out);
		return;
	}
	fprintf(out, json ? "\"0x%016" PRIx64 "%016" PRIx64 "\"" : "0x%016" PRIx64 "%016" PRIx64,
		id[0], id[1]);
}

static void put_known(const struct cairn_trace *t, const struct aggregate_key *key,
		      const uint8_t *at, bool json, FILE *out)
{
	char comm[17] = {0};
	uint64_t number = 0;

	if (key->kind == KEY_COMM) {
		memcpy(comm, at, 16);
		put_text(comm, json, out);
		return;
	}
	if (key->kind == KEY_STACK || key->kind == KEY_CALLER) {
		put_stack(t, at, json, out);
		return;
	}
	memcpy(&number, at, key->kind == KEY_CGROUP ? 8 : 4);
	if (key->kind == KEY_SITE)
		put_site(t, (uint32_t)number, json, out);
	else
		fprintf(out, "%" PRIu64, number);
}

/* A string as an event has it. */
static void take_string(const uint8_t *at, struct cairn_event_value *v)
{
	const struct key_string *s = (const struct key_string *)(const void *)at;

	v->bytes = (const uint8_t *)s->bytes;
	v->n_bytes = s->length & (uint16_t)~TRACE_STRING_CUT;
	v->truncated = s->length & TRACE_STRING_CUT;
	if (v->state == CAIRN_VALUE_UNREADABLE && s->is_null)
		v->reason = "NULL";
}

static void put_number(const struct aggregate_part *part, const uint8_t *at, bool hex, bool json,
		       FILE *out)
{
	const char *quote = json && hex ? "\"" : "";
	uint64_t number;

	memcpy(&number, at, sizeof(number));
	if (hex)
		fprintf(out, "%s0x%" PRIx64 "%s", quote, number, quote);
	else if (part->expr->is_unsigned)
		fprintf(out, "%" PRIu64, number);
	else
		fprintf(out, "%" PRId64, (int64_t)number);
}

static int put_value(const struct cairn_aggregate_row *row, const struct trace_probe *p,
		     uint32_t value, bool unreadable, const uint8_t *at,
		     enum cairn_value_style style, FILE *out)
{
	const struct aggregate_part *part = &p->parts[value];
	struct cairn_event_value v = {
		.what = &p->pub.values[value], .bytes = at, .n_bytes = part->n_bytes};
	const struct cairn_event event = {.probe = row->probe, .n_values = 1, .values = &v};

	if (unreadable) {
		v.state = CAIRN_VALUE_UNREADABLE;
		v.reason = "memory cannot be read";
	}
	if (part->kind == PART_STRING)
		take_string(at, &v);
	if (part->kind != PART_NUMBER || unreadable)
		return cairn_event_value_print(&event, 0, style, out);
	put_number(part, at, v.what->hex, style == CAIRN_VALUE_JSON, out);
	return 0;
}

int cairn_aggregate_key_print(const struct cairn_trace *t, const struct cairn_aggregate_row *row,
			      uint32_t i, enum cairn_value_style style, FILE *out)
{
	const struct aggregates *a = t->aggregates;
	uint32_t from = a ? 8 * a->n_numbers : 0, probe, faults;
	int r = 0;

	if (!a || i >= a->n_keys || !row->key)
		return -EINVAL;
	memcpy(&probe, row->key, sizeof(probe));
	memcpy(&faults, row->key + 4, sizeof(faults));
	const struct aggregate_key *key = &a->keys[i];
	if (key->kind != KEY_VALUE) {
		put_known(t, key, row->key + key->out - from, style == CAIRN_VALUE_JSON, out);
	} else {
		const struct trace_probe *p = t->probes.p[probe];
		uint32_t value = a->n_numbers + key->value;
		r = put_value(row, p, value, faults >> key->value & 1,
			      row->key + p->parts[value].out - from, style, out);
	}
	return r == 0 && ferror(out) ? -EIO : r;
}

static uint32_t row_probe(const struct cairn_aggregate_row *row)
{
	uint32_t probe;

	memcpy(&probe, row->key, sizeof(probe));
	return probe;
}

const struct cairn_thread_stack *
cairn_aggregate_key_stack(struct cairn_trace *t, const struct cairn_aggregate_row *row, uint32_t i)
{
	const struct aggregates *a = t->aggregates;
	struct stack_hit hit = {.pid = 0};

	if (!a || i >= a->n_keys || !row->key ||
	    (a->keys[i].kind != KEY_STACK && a->keys[i].kind != KEY_CALLER))
		return NULL;
	memcpy(hit.ref.id, row->key + a->keys[i].out - 8 * a->n_numbers, sizeof(hit.ref.id));
	/* The caller of an inlined copy is a site. */
	if (hit.ref.id[0] && hit.ref.id[0] % 2 == 0)
		return NULL;
	hit.probe = a->keys[i].kind == KEY_STACK ? t->probes.p[row_probe(row)] : NULL;
	return stacks_show(t, &hit);
}

const struct cairn_site *cairn_aggregate_key_site(const struct cairn_trace *t,
						  const struct cairn_aggregate_row *row)
{
	const struct aggregates *a = t->aggregates;
	const struct trace_site *site = NULL;
	uint64_t id[2];

	if (!a || !t->stacks || t->stacks->of != STACKS_WHOLE || !row->key)
		return NULL;
	memcpy(id, row->key + a->plan.stack - 8 * a->n_numbers, sizeof(id));
	site = stacks_site(t, id[0], id[1], t->probes.p[row_probe(row)]);
	return site ? site->pub.site : NULL;
}

bool cairn_aggregate_key_is_cut(const struct cairn_trace *t, const struct cairn_aggregate_row *row,
				uint32_t i)
{
	const struct aggregates *a = t->aggregates;
	uint32_t probe;

	if (!a || i >= a->n_keys || !row->key || a->keys[i].kind != KEY_VALUE)
		return false;
	memcpy(&probe, row->key, sizeof(probe));
	const struct aggregate_part *part =
		&t->probes.p[probe]->parts[a->n_numbers + a->keys[i].value];
	const struct key_string *s =
		(const struct key_string *)(const void *)(row->key + part->out - 8 * a->n_numbers);
	return part->kind == PART_STRING && s->length & TRACE_STRING_CUT;
}
