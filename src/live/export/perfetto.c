/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events of a trace in Perfetto's format
 *
 * A file is a list of packets, each complete in itself. A thread is a track within its process;
 * slices of a track must nest. So a call that has no return ends when an event of its thread shows
 * that it is over, which its depth tells. A call whose entry was lost begins before slices that are
 * written already, and is in another track.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cairn/text.h>
#include <cairn/trace_export.h>

#include "base/err.h"
#include "base/map.h"
#include "base/scope.h"
#include "base/vec.h"
#include "export/event_value.h"
#include "perfetto.pb-c.h"

typedef CairnPerfetto__TracePacket pb_packet;
typedef CairnPerfetto__TrackEvent pb_event;
typedef CairnPerfetto__TrackDescriptor pb_track;
typedef CairnPerfetto__DebugAnnotation pb_annotation;

enum {
	CLOCK_ID_REALTIME = 1,
	CLOCK_ID_MONOTONIC = 3,
	CLOCK_ID_BOOTTIME = 6,
	SLICE_BEGIN = 1,
	SLICE_END = 2,
	INSTANT = 3,
	SEQUENCE = 1,
	DEPTH_MAX = 64,
	NAME_MAX_BYTES = 64,
	TEXT_MAX = 1024,
	FIELD_OF_PACKET = 0x0a,
};

/* Identifiers of tracks: processes and threads have numbers of their own. */
#define PROCESS_TRACK (UINT64_C(1) << 40)
#define THREAD_TRACK  (UINT64_C(2) << 40)
#define LATE_TRACK    (UINT64_C(3) << 40)
#define OWN_TRACK     (UINT64_C(4) << 40)

/* A slice that has begun. */
struct slice {
	const struct cairn_trace_probe *probe; /* NULL: its entry was not seen, and there is none */
	uint64_t entered_ns;
};

struct thread {
	uint32_t pid, n_open;
	char comm[16]; /* as the track was named last */
	struct slice open[DEPTH_MAX];
	bool has_late; /* the track of calls whose entry was lost */
};

struct cairn_perfetto {
	struct map threads; /* by number, the index + 1 */
	struct map processes;
	VEC(struct thread *) list;
};

int cairn_perfetto_new(struct cairn_perfetto **ret, struct cairn_err *err)
{
	struct cairn_perfetto *p = calloc(1, sizeof(*p));

	if (!p)
		return err_nomem(err, "an export");
	map_init(&p->threads);
	map_init(&p->processes);
	*ret = p;
	return 0;
}

void cairn_perfetto_free(struct cairn_perfetto *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->list.n; i++)
		free(p->list.p[i]);
	VEC_FREE(&p->list);
	map_fini(&p->threads);
	map_fini(&p->processes);
	free(p);
}

/* ---- packets ---- */

static int put_packet(pb_packet *packet, FILE *out)
{
	size_t size, left, n = 0;
	uint8_t head[12] = {FIELD_OF_PACKET};

	packet->trusted_packet_sequence_id = SEQUENCE;
	size = cairn_perfetto__trace_packet__get_packed_size(packet);
	SCOPE_FREE uint8_t *bytes = malloc(size);
	if (!bytes)
		return -ENOMEM;
	cairn_perfetto__trace_packet__pack(packet, bytes);
	for (left = size; left >= 0x80; left >>= 7)
		head[++n] = (uint8_t)(left | 0x80);
	head[++n] = (uint8_t)left;
	fwrite(head, 1, n + 1, out);
	fwrite(bytes, 1, size, out);
	return ferror(out) ? -EIO : 0;
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int cairn_perfetto_begin(struct cairn_perfetto *p, FILE *out)
{
	static const struct {
		uint32_t id;
		clockid_t clock;
	} known[] = {{CLOCK_ID_MONOTONIC, CLOCK_MONOTONIC},
		     {CLOCK_ID_REALTIME, CLOCK_REALTIME},
		     {CLOCK_ID_BOOTTIME, CLOCK_BOOTTIME}};
	enum { N = sizeof(known) / sizeof(known[0]) };
	CairnPerfetto__ClockSnapshot snapshot = CAIRN_PERFETTO__CLOCK_SNAPSHOT__INIT;
	CairnPerfetto__Clock clocks[N], *list[N];
	pb_packet packet = CAIRN_PERFETTO__TRACE_PACKET__INIT;

	for (size_t i = 0; i < N; i++) {
		cairn_perfetto__clock__init(&clocks[i]);
		clocks[i].clock_id = known[i].id;
		clocks[i].timestamp = now_ns(known[i].clock);
		list[i] = &clocks[i];
	}
	snapshot.n_clocks = N;
	snapshot.clocks = list;
	snapshot.primary_trace_clock = CLOCK_ID_MONOTONIC;
	packet.clock_snapshot = &snapshot;
	return put_packet(&packet, out);
}

/* ---- tracks ---- */

/* Names of threads are bytes that the program chose. */
static void name_of_thread(const struct cairn_event *event, char *name)
{
	cairn_quote(event->comm, CAIRN_QUOTE_TEXT, name, NAME_MAX_BYTES);
}

static int put_process(struct cairn_perfetto *p, const struct cairn_event *event, FILE *out)
{
	CairnPerfetto__ProcessDescriptor process = CAIRN_PERFETTO__PROCESS_DESCRIPTOR__INIT;
	pb_track track = CAIRN_PERFETTO__TRACK_DESCRIPTOR__INIT;
	pb_packet packet = CAIRN_PERFETTO__TRACE_PACKET__INIT;
	char name[NAME_MAX_BYTES];
	uint64_t known;
	int r;

	if (map_get(&p->processes, event->pid, &known) && (known || event->pid != event->tid))
		return 0;
	name_of_thread(event, name);
	process.pid = (int32_t)event->pid;
	process.process_name = name;
	track.uuid = PROCESS_TRACK | event->pid;
	track.process = &process;
	packet.track_descriptor = &track;
	r = put_packet(&packet, out);
	/* The name of the process is that of its first thread, which may be seen later. */
	return r < 0 ? r : map_put(&p->processes, event->pid, event->pid == event->tid);
}

static int put_thread(const struct cairn_event *event, FILE *out)
{
	CairnPerfetto__ThreadDescriptor thread = CAIRN_PERFETTO__THREAD_DESCRIPTOR__INIT;
	pb_track track = CAIRN_PERFETTO__TRACK_DESCRIPTOR__INIT;
	pb_packet packet = CAIRN_PERFETTO__TRACE_PACKET__INIT;
	char name[NAME_MAX_BYTES];

	name_of_thread(event, name);
	thread.pid = (int32_t)event->pid;
	thread.tid = (int32_t)event->tid;
	thread.thread_name = name;
	track.uuid = THREAD_TRACK | event->tid;
	track.parent_uuid = PROCESS_TRACK | event->pid;
	track.thread = &thread;
	packet.track_descriptor = &track;
	return put_packet(&packet, out);
}

/* Calls nest, so they do also if their entries were lost. */
static int put_late_track(struct thread *thread, uint32_t tid, FILE *out)
{
	pb_track track = CAIRN_PERFETTO__TRACK_DESCRIPTOR__INIT;
	pb_packet packet = CAIRN_PERFETTO__TRACE_PACKET__INIT;
	char name[] = "calls whose entry was lost";

	if (thread->has_late)
		return 0;
	thread->has_late = true;
	track.uuid = LATE_TRACK | tid;
	track.parent_uuid = THREAD_TRACK | tid;
	track.name = name;
	packet.track_descriptor = &track;
	return put_packet(&packet, out);
}

static struct thread *new_thread(struct cairn_perfetto *p, uint32_t tid)
{
	struct thread *thread = calloc(1, sizeof(*thread));

	if (!thread || !VEC_ADD(&p->list, thread)) {
		free(thread);
		return NULL;
	}
	return map_put(&p->threads, tid, p->list.n) < 0 ? NULL : thread;
}

/* The thread of an event, described in the file. Returns 0 or a negative errno. */
static int find_thread(struct cairn_perfetto *p, const struct cairn_event *event, FILE *out,
		       struct thread **ret)
{
	struct thread *thread;
	uint64_t at;
	int r;

	thread = map_get(&p->threads, event->tid, &at) ? p->list.p[at - 1]
						       : new_thread(p, event->tid);
	if (!thread)
		return -ENOMEM;
	*ret = thread;
	if (thread->pid == event->pid && !memcmp(thread->comm, event->comm, sizeof(thread->comm)))
		return 0;
	thread->pid = event->pid;
	memcpy(thread->comm, event->comm, sizeof(thread->comm));
	r = put_process(p, event, out);
	return r < 0 ? r : put_thread(event, out);
}

/* ---- values ---- */

struct annotations {
	struct arena arena;
	pb_annotation **list;
	size_t n;
};

static pb_annotation *add(struct annotations *a, const char *name)
{
	pb_annotation *one = arena_alloc(&a->arena, sizeof(*one));

	if (!one)
		return NULL;
	cairn_perfetto__debug_annotation__init(one);
	one->name = (char *)(uintptr_t)name;
	a->list[a->n++] = one;
	return one;
}

static void set_value(pb_annotation *to, const struct event_value *v)
{
	switch (v->kind) {
	case EVENT_BOOL:
		to->value_case = CAIRN_PERFETTO__DEBUG_ANNOTATION__VALUE_BOOL_VALUE;
		to->bool_value = v->truth;
		break;
	case EVENT_INT:
		to->value_case = CAIRN_PERFETTO__DEBUG_ANNOTATION__VALUE_INT_VALUE;
		to->int_value = v->number;
		break;
	case EVENT_UINT:
		to->value_case = CAIRN_PERFETTO__DEBUG_ANNOTATION__VALUE_UINT_VALUE;
		to->uint_value = v->natural;
		break;
	case EVENT_FLOAT:
		to->value_case = CAIRN_PERFETTO__DEBUG_ANNOTATION__VALUE_DOUBLE_VALUE;
		to->double_value = v->real;
		break;
	case EVENT_STRING:
		to->value_case = CAIRN_PERFETTO__DEBUG_ANNOTATION__VALUE_STRING_VALUE;
		to->string_value = (char *)(uintptr_t)v->text;
		break;
	case EVENT_JSON:
		to->value_case = CAIRN_PERFETTO__DEBUG_ANNOTATION__VALUE_LEGACY_JSON_VALUE;
		to->legacy_json_value = (char *)(uintptr_t)v->text;
		break;
	}
}

/* The begin of a call has the values that do not need the return, and its end the others. */
static bool is_of_end(const struct cairn_event *event, uint32_t i, bool is_end)
{
	if (!event->call || event->call->moment == CAIRN_CALL_NONE)
		return true;
	return event->values[i].what->at_return == is_end;
}

static int add_values(const struct cairn_event *event, bool is_end, struct annotations *a)
{
	int r;

	a->list = arena_array(&a->arena, event->n_values + 1u, sizeof(*a->list));
	r = a->list ? 0 : -ENOMEM;
	for (uint32_t i = 0; i < event->n_values && r == 0; i++) {
		struct event_value value;
		char text[TEXT_MAX];
		pb_annotation *one;
		if (!is_of_end(event, i, is_end))
			continue;
		cairn_quote(event->values[i].what->text, CAIRN_QUOTE_TEXT, text, sizeof(text));
		one = add(a, arena_strdup(&a->arena, text));
		r = one && one->name ? event_value(event, i, &a->arena, &value) : -ENOMEM;
		if (r == 0)
			set_value(one, &value);
	}
	return r;
}

/* ---- events ---- */

static int put_event(uint64_t track, uint64_t time_ns, pb_event *event, FILE *out)
{
	pb_packet packet = CAIRN_PERFETTO__TRACE_PACKET__INIT;

	event->track_uuid = track;
	packet.timestamp = time_ns;
	packet.timestamp_clock_id = CLOCK_ID_MONOTONIC;
	packet.track_event = event;
	return put_packet(&packet, out);
}

static int put_end(uint32_t tid, uint64_t time_ns, FILE *out)
{
	pb_event event = CAIRN_PERFETTO__TRACK_EVENT__INIT;

	event.type = SLICE_END;
	return put_event(THREAD_TRACK | tid, time_ns, &event, out);
}

/* The place and time at which an event is shown, and its form. */
struct place {
	uint64_t track, time_ns;
	uint32_t type;
};

/* With the function's name, its site, and the values. */
static int put_named_at(const struct cairn_event *event, const struct place *at, FILE *out)
{
	pb_event to = CAIRN_PERFETTO__TRACK_EVENT__INIT;
	char name[TEXT_MAX], where[TEXT_MAX], quoted[TEXT_MAX], category[] = "cairn";
	char *categories[] = {category};
	struct annotations values = {0};
	pb_annotation args = CAIRN_PERFETTO__DEBUG_ANNOTATION__INIT,
		      site = CAIRN_PERFETTO__DEBUG_ANNOTATION__INIT, *both[] = {&site, &args};
	int r = add_values(event, false, &values);

	cairn_quote(event->probe->function->name, CAIRN_QUOTE_TEXT, name, sizeof(name));
	cairn_site_text(event->probe->function, event->site->site, NULL, where, sizeof(where));
	cairn_quote(where, CAIRN_QUOTE_TEXT, quoted, sizeof(quoted));
	site.name = (char *)(uintptr_t) "site";
	site.value_case = CAIRN_PERFETTO__DEBUG_ANNOTATION__VALUE_STRING_VALUE;
	site.string_value = quoted;
	args.name = (char *)(uintptr_t) "args";
	args.n_dict_entries = values.n;
	args.dict_entries = values.list;
	to.type = at->type;
	to.name = name;
	to.n_categories = 1;
	to.categories = categories;
	to.n_debug_annotations = values.n ? 2 : 1;
	to.debug_annotations = both;
	if (r == 0)
		r = put_event(at->track, at->time_ns, &to, out);
	arena_fini(&values.arena);
	return r;
}

static int put_named(const struct cairn_event *event, uint32_t type, uint64_t time_ns, FILE *out)
{
	return put_named_at(event, &(struct place){THREAD_TRACK | event->tid, time_ns, type}, out);
}

/* The end of a call, with what the return has. */
static int put_return(const struct cairn_event *event, uint64_t track, FILE *out)
{
	pb_event to = CAIRN_PERFETTO__TRACK_EVENT__INIT;
	struct annotations values = {0};
	pb_annotation results = CAIRN_PERFETTO__DEBUG_ANNOTATION__INIT, *one = &results;
	int r = add_values(event, true, &values);

	results.name = (char *)(uintptr_t) "results";
	results.n_dict_entries = values.n;
	results.dict_entries = values.list;
	to.type = SLICE_END;
	to.n_debug_annotations = values.n ? 1 : 0;
	to.debug_annotations = &one;
	if (r == 0)
		r = put_event(track, event->time_ns, &to, out);
	arena_fini(&values.arena);
	return r;
}

/* Calls beyond @depth are over. */
static int leave(struct thread *thread, const struct cairn_event *event, uint32_t depth, FILE *out)
{
	int r = 0;

	while (thread->n_open > depth && r == 0)
		if (thread->open[--thread->n_open].probe)
			r = put_end(event->tid, event->time_ns, out);
	return r;
}

static int enter(struct thread *thread, const struct cairn_event *event, FILE *out)
{
	int r = leave(thread, event, event->call->depth, out);

	if (r < 0)
		return r;
	while (thread->n_open < event->call->depth)
		thread->open[thread->n_open++] = (struct slice){0};
	thread->open[thread->n_open++] = (struct slice){event->probe, event->call->entered_ns};
	return put_named(event, SLICE_BEGIN, event->time_ns, out);
}

/*
 * Whether the slice that is open at its depth is that of the call; else others were lost between.
 */
static bool is_of_slice(const struct thread *thread, const struct cairn_event *event)
{
	const struct slice *slice = &thread->open[event->call->depth];

	return thread->n_open == event->call->depth + 1 && slice->probe == event->probe &&
	       slice->entered_ns == event->call->entered_ns;
}

/* Without its entry: the slice begins where the kernel says that the call did. */
static int put_late(struct thread *thread, const struct cairn_event *event, FILE *out)
{
	const struct place at = {LATE_TRACK | event->tid, event->call->entered_ns, SLICE_BEGIN};
	int r = leave(thread, event, event->call->depth, out);

	if (r == 0)
		r = put_late_track(thread, event->tid, out);
	if (r == 0)
		r = put_named_at(event, &at, out);
	return r < 0 ? r : put_return(event, at.track, out);
}

static int end_call(struct thread *thread, const struct cairn_event *event, FILE *out)
{
	uint32_t depth = event->call->depth;
	int r = leave(thread, event, depth + 1, out);

	if (r < 0)
		return r;
	if (!is_of_slice(thread, event))
		return put_late(thread, event, out);
	thread->n_open = depth;
	return put_return(event, THREAD_TRACK | event->tid, out);
}

static int put_call(struct thread *thread, const struct cairn_event *event, FILE *out)
{
	int r;

	if (event->call->depth >= DEPTH_MAX && event->call->moment != CAIRN_CALL_NONE)
		return -EINVAL;
	switch (event->call->moment) {
	case CAIRN_CALL_ENTRY:
		return enter(thread, event, out);
	case CAIRN_CALL_RETURN:
		return end_call(thread, event, out);
	case CAIRN_CALL_NONE:
		break;
	}
	r = leave(thread, event, event->call->depth, out);
	return r < 0 ? r : put_named(event, INSTANT, event->time_ns, out);
}

int cairn_perfetto_event(struct cairn_perfetto *p, const struct cairn_event *event, FILE *out)
{
	struct thread *thread = NULL;
	uint64_t duration;
	int r = find_thread(p, event, out, &thread);

	if (r < 0)
		return r;
	if (event->call)
		return put_call(thread, event, out);
	if (!event_duration(event, &duration))
		return put_named(event, INSTANT, event->time_ns, out);
	r = put_named(event, SLICE_BEGIN, event->time_ns - duration, out);
	return r < 0 ? r : put_end(event->tid, event->time_ns, out);
}

/* ---- the end ---- */

static int put_own_track(FILE *out)
{
	pb_track track = CAIRN_PERFETTO__TRACK_DESCRIPTOR__INIT;
	pb_packet packet = CAIRN_PERFETTO__TRACE_PACKET__INIT;
	char name[] = "cairn";

	track.uuid = OWN_TRACK;
	track.name = name;
	packet.track_descriptor = &track;
	return put_packet(&packet, out);
}

static int put_absences(const struct event_absence *absences, size_t n, FILE *out)
{
	pb_event event = CAIRN_PERFETTO__TRACK_EVENT__INIT;
	pb_annotation all[EVENT_ABSENCES_MAX], *list[EVENT_ABSENCES_MAX];
	char name[] = "what this trace does not have";

	for (size_t i = 0; i < n; i++) {
		cairn_perfetto__debug_annotation__init(&all[i]);
		all[i].name = (char *)(uintptr_t)absences[i].name;
		all[i].value_case = CAIRN_PERFETTO__DEBUG_ANNOTATION__VALUE_UINT_VALUE;
		all[i].uint_value = absences[i].n;
		list[i] = &all[i];
	}
	event.type = INSTANT;
	event.name = name;
	event.n_debug_annotations = n;
	event.debug_annotations = list;
	return put_event(OWN_TRACK, now_ns(CLOCK_MONOTONIC), &event, out);
}

int cairn_perfetto_end(struct cairn_perfetto *p, const struct cairn_trace_stats *stats, FILE *out)
{
	struct event_absence absences[EVENT_ABSENCES_MAX];
	size_t n = event_absences(stats, absences);
	int r = n ? put_own_track(out) : 0;

	return n && r == 0 ? put_absences(absences, n, out) : r;
}
