/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events of a trace as a trace in CTF 1.8: one stream with one packet
 *
 * The times of a stream must not go back, but events of several processors come only nearly in
 * order. So all are kept, and sorted when the trace ends. A value has the type that it has in the
 * event: its tag says which, as a value may be missing in some of them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cairn/file.h>
#include <cairn/text.h>
#include <cairn/trace_export.h>

#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "export/ctf_write.h"
#include "export/event_value.h"

/* Half of what a reader of 32 bits could map; far beyond it nobody reads a trace whole. */
#define BYTES_MAX (UINT64_C(1) << 30)

enum { NAME_MAX_BYTES = 256, TEXT_MAX = 1024, MOMENTS = 3 };

/* The labels of a value's tag. */
enum tag { TAG_TRUTH, TAG_INTEGER, TAG_NATURAL, TAG_REAL, TAG_TEXT, TAG_EMPTY, TAG_JSON };

struct kept_event {
	uint64_t time_ns, at;
	uint32_t size;
};

/* A kind of event: a probe, and of its calls the entry or the return. */
struct event_class {
	const struct cairn_trace_probe *probe;
	enum cairn_call_moment moment;
};

struct cairn_event_ctf {
	FILE *out;
	char *bytes;
	size_t n_bytes;
	uint64_t n_written;
	VEC(struct kept_event) events;
	VEC(struct event_class) classes;
	struct map ids; /* of a probe's address and moment, the index + 1 of the class */
	bool has_calls;
};

int cairn_event_ctf_new(struct cairn_event_ctf **ret, struct cairn_err *err)
{
	struct cairn_event_ctf *c = calloc(1, sizeof(*c));

	if (!c)
		return err_nomem(err, "an export");
	map_init(&c->ids);
	c->out = open_memstream(&c->bytes, &c->n_bytes);
	if (!c->out) {
		cairn_event_ctf_free(c);
		return err_nomem(err, "an export");
	}
	*ret = c;
	return 0;
}

void cairn_event_ctf_free(struct cairn_event_ctf *c)
{
	if (!c)
		return;
	if (c->out)
		fclose(c->out);
	free(c->bytes);
	VEC_FREE(&c->events);
	VEC_FREE(&c->classes);
	map_fini(&c->ids);
	free(c);
}

/* ---- events ---- */

static int put_value(struct cairn_event_ctf *c, const struct cairn_event *event, uint32_t i,
		     struct arena *arena)
{
	/* An empty string is its own tag: babeltrace2 2.0.4 shows that of an earlier event. */
	static const uint8_t tags[] = {
		[EVENT_BOOL] = TAG_TRUTH, [EVENT_INT] = TAG_INTEGER, [EVENT_UINT] = TAG_NATURAL,
		[EVENT_FLOAT] = TAG_REAL, [EVENT_STRING] = TAG_TEXT, [EVENT_JSON] = TAG_JSON};
	struct event_value v;
	int r = event_value(event, i, arena, &v);

	if (r < 0)
		return r;
	bool is_empty = v.kind == EVENT_STRING && !*v.text;
	ctf_put_u8(is_empty ? TAG_EMPTY : tags[v.kind], c->out);
	switch (v.kind) {
	case EVENT_BOOL:
		ctf_put_u8(v.truth, c->out);
		break;
	case EVENT_INT:
		ctf_put_u64((uint64_t)v.number, c->out);
		break;
	case EVENT_UINT:
		ctf_put_u64(v.natural, c->out);
		break;
	case EVENT_FLOAT:
		fwrite(&v.real, 1, sizeof(v.real), c->out);
		break;
	case EVENT_STRING:
	case EVENT_JSON:
		if (is_empty)
			ctf_put_u8(0, c->out);
		else
			ctf_put_text(v.text, c->out);
		break;
	}
	return 0;
}

static int class_of(struct cairn_event_ctf *c, const struct cairn_event *event, uint32_t *ret)
{
	const struct event_class class = {event->probe,
					  event->call ? event->call->moment : CAIRN_CALL_NONE};
	uint64_t key = (uint64_t)(uintptr_t)event->probe * MOMENTS + (uint64_t) class.moment, at;
	int r = 0;

	if (!map_get(&c->ids, key, &at)) {
		if (!VEC_ADD(&c->classes, class))
			return -ENOMEM;
		at = c->classes.n;
		r = map_put(&c->ids, key, at);
	}
	*ret = (uint32_t)at - 1;
	return r;
}

static void put_head(struct cairn_event_ctf *c, const struct cairn_event *event, uint32_t id)
{
	char text[TEXT_MAX];

	ctf_put_u32(id, c->out);
	ctf_put_u64(event->time_ns, c->out);
	ctf_put_u32(event->pid, c->out);
	ctf_put_u32(event->tid, c->out);
	ctf_put_text(event->comm[0] ? event->comm : "-", c->out);
	cairn_site_text(event->probe->function, event->site->site, NULL, text, sizeof(text));
	ctf_put_text(text, c->out);
	if (!event->call)
		return;
	c->has_calls = true;
	ctf_put_u32(event->call->depth, c->out);
	ctf_put_u64(event->call->moment == CAIRN_CALL_RETURN
			    ? event->time_ns - event->call->entered_ns
			    : 0,
		    c->out);
}

int cairn_event_ctf_event(struct cairn_event_ctf *c, const struct cairn_event *event)
{
	struct kept_event kept = {.time_ns = event->time_ns, .at = c->n_written};
	struct arena arena = {0};
	uint32_t id;
	int r = class_of(c, event, &id);

	if (r < 0)
		return r;
	put_head(c, event, id);
	for (uint32_t i = 0; i < event->n_values && r == 0; i++)
		r = put_value(c, event, i, &arena);
	arena_fini(&arena);
	c->n_written = (uint64_t)ftello(c->out);
	kept.size = (uint32_t)(c->n_written - kept.at);
	if (r == 0 && (ferror(c->out) || !VEC_ADD(&c->events, kept)))
		r = -ENOMEM;
	return r == 0 && c->n_written > BYTES_MAX ? -EFBIG : r;
}

/* ---- the metadata ---- */

static const char types[] =
	"typealias floating_point { exp_dig = 11; mant_dig = 53; byte_order = le; align = 8; }"
	" := double_t;\n"
	"typealias enum : uint8_t { truth, i, u, real, text, empty, json } := tag_t;\n";

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The end of the environment. */
static void put_absences(const struct cairn_trace_stats *stats, FILE *out)
{
	struct event_absence absences[EVENT_ABSENCES_MAX];
	size_t n = event_absences(stats, absences);

	for (size_t i = 0; i < n; i++)
		fprintf(out, "\t%s = %" PRIu64 ";\n", absences[i].name, absences[i].n);
	fputs("};\n\n", out);
}

/* A name of TSDL for a value: "p->n" is p__n. */
static void identifier(const char *text, char *ret)
{
	size_t n = 0;

	for (; text[n] && n < NAME_MAX_BYTES - 16; n++)
		ret[n] = strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
				text[n])
				 ? text[n]
				 : '_';
	ret[n] = 0;
}

/* The members of an event: those that each has, and the values with their tags. */
struct names {
	char (*values)[NAME_MAX_BYTES];
	uint32_t n;
};

/* Whether the first @n names have "@name", or "@name_is" as a tag or a value. */
static bool is_taken(const struct names *names, const char *name)
{
	static const char *const always[] = {"site", "depth", "duration_ns"};
	char tag[NAME_MAX_BYTES + 4];

	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		if (!strcmp(name, always[i]))
			return true;
	for (uint32_t i = 0; i < names->n; i++) {
		snprintf(tag, sizeof(tag), "%s_is", names->values[i]);
		if (!strcmp(name, names->values[i]) || !strcmp(name, tag))
			return true;
	}
	return false;
}

/* The value's number is put after a name that another member has, or whose tag's it has. */
static void find_name(struct names *names, const struct cairn_trace_probe *probe, uint32_t i)
{
	char *name = names->values[i], tag[NAME_MAX_BYTES + 4];
	uint32_t number = i;
	size_t n;

	identifier(probe->values[i].text, name);
	n = strlen(name);
	snprintf(tag, sizeof(tag), "%s_is", name);
	while (is_taken(names, name) || is_taken(names, tag)) {
		snprintf(name + n, NAME_MAX_BYTES - n, "_%u", number);
		snprintf(tag, sizeof(tag), "%s_is", name);
		number += probe->n_values;
	}
	names->n++;
}

/* A leading underscore is not part of a name for readers; a tag comes before its value. */
static void put_field(const char *name, FILE *out)
{
	fprintf(out,
		" tag_t _%s_is; variant <_%s_is> { uint8_t truth; int64_t i; uint64_t u;"
		" double_t real; string text; uint8_t empty; string json; } _%s;",
		name, name, name);
}

static int put_fields(const struct cairn_trace_probe *probe, FILE *out)
{
	struct names names = {.values = calloc(probe->n_values + 1u, NAME_MAX_BYTES)};

	if (!names.values)
		return -ENOMEM;
	for (uint32_t i = 0; i < probe->n_values; i++) {
		find_name(&names, probe, i);
		put_field(names.values[i], out);
	}
	free(names.values);
	return 0;
}

static const char *const moments[MOMENTS] = {
	[CAIRN_CALL_NONE] = "", [CAIRN_CALL_ENTRY] = ":entry", [CAIRN_CALL_RETURN] = ":return"};

static int put_class(const struct cairn_event_ctf *c, size_t id, FILE *out)
{
	const struct event_class *class = &c->classes.p[id];
	const struct cairn_trace_probe *probe = class->probe;

	fputs("event {\n\tname = \"", out);
	cairn_quote_put(probe->function->name, CAIRN_QUOTE_JSON, out);
	fprintf(out,
		"%s\";\n\tid = %zu;\n\tstream_id = 0;\n"
		"\tfields := struct { string _site;%s",
		moments[class->moment], id,
		c->has_calls ? " uint32_t _depth; uint64_t _duration_ns;" : "");
	int r = put_fields(probe, out);
	fputs(" };\n};\n\n", out);
	return r;
}

static int make_metadata(const struct cairn_event_ctf *c, const struct cairn_trace_stats *stats,
			 char **ret, size_t *ret_size)
{
	FILE *out = open_memstream(ret, ret_size);
	bool has_failed;
	int r = 0;

	if (!out)
		return -ENOMEM;
	ctf_put_types(types, out);
	fputs("env {\n\ttracer_name = \"cairn\";\n\ttitle = \"cairn trace\";\n", out);
	put_absences(stats, out);
	/* The offset makes the time since 1970 of a monotonic one. */
	ctf_put_clock("CLOCK_MONOTONIC", clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC), out);
	ctf_put_stream("\t\tuint64_t events_discarded;\n", "string _procname;", out);
	for (size_t i = 0; i < c->classes.n && r == 0; i++)
		r = put_class(c, i, out);
	has_failed = ferror(out) != 0;
	return fclose(out) || has_failed || r < 0 ? -ENOMEM : 0;
}

/* ---- the stream ---- */

struct packet_head {
	struct ctf_packet packet;
	uint64_t n_lost;
};

/* Those of one moment stay in the order in which they came. */
static int by_time(const void *a, const void *b)
{
	const struct kept_event *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static int make_stream(struct cairn_event_ctf *c, uint64_t n_lost, uint8_t **ret, size_t *ret_size)
{
	struct packet_head head = {.packet.magic = CTF_MAGIC, .n_lost = n_lost};
	size_t size = sizeof(head) + c->n_written, at = sizeof(head);
	uint8_t *bytes = malloc(size);

	if (!bytes || fflush(c->out)) {
		free(bytes);
		return -ENOMEM;
	}
	if (c->events.n)
		qsort(c->events.p, c->events.n, sizeof(c->events.p[0]), by_time);
	for (size_t i = 0; i < c->events.n; i++) {
		memcpy(bytes + at, c->bytes + c->events.p[i].at, c->events.p[i].size);
		at += c->events.p[i].size;
	}
	if (c->events.n) {
		head.packet.begin = c->events.p[0].time_ns;
		head.packet.end = c->events.p[c->events.n - 1].time_ns;
	}
	head.packet.content_size = head.packet.packet_size = (uint64_t)at * 8;
	memcpy(bytes, &head, sizeof(head));
	*ret = bytes;
	*ret_size = at;
	return 0;
}

int cairn_event_ctf_write(struct cairn_event_ctf *c, const char *path,
			  const struct cairn_trace_stats *stats, struct cairn_err *err)
{
	char *metadata = NULL;
	uint8_t *bytes = NULL;
	size_t n_metadata = 0, n_bytes = 0;
	uint64_t n_lost = stats->total.lost + stats->total.entries_lost + stats->missed;
	int r = make_metadata(c, stats, &metadata, &n_metadata);

	if (r == 0)
		r = make_stream(c, n_lost, &bytes, &n_bytes);
	const struct cairn_file files[] = {{"metadata", metadata, n_metadata},
					   {"stream", bytes, n_bytes}};
	r = r < 0 ? err_nomem(err, "a trace") : cairn_file_write_directory(path, files, 2, err);
	free(metadata);
	free(bytes);
	return r;
}
