/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A profile in the processed format of the Firefox Profiler: its tables (firefox_tables.c) as JSON,
 * each an object with an array for each column
 */
#include "export/firefox.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/text.h>

#include "export/gzip.h"

struct writer {
	struct firefox *f;
	FILE *out;
	bool failed; /* out of memory */
};

/* ---- values ---- */

static void put_text(struct writer *w, const char *text)
{
	fputc('"', w->out);
	cairn_quote_put(text, CAIRN_QUOTE_JSON, w->out);
	fputc('"', w->out);
}

static void put_number(struct writer *w, int64_t number)
{
	if (number == FIREFOX_NULL)
		fputs("null", w->out);
	else
		fprintf(w->out, "%" PRId64, number);
}

/* Nanoseconds as the milliseconds of the format, exactly. */
static void put_ms(struct writer *w, int64_t ns)
{
	uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;

	fprintf(w->out, "%s%" PRIu64, ns < 0 ? "-" : "", size / 1000000);
	if (size % 1000000)
		fprintf(w->out, ".%06u", (unsigned int)(size % 1000000));
}

/* ---- tables ---- */

struct column {
	const char *name;
	int same; /* index into texts that all rows have; 0: they have the number at @at */
	size_t at;
};

static const char *const same_texts[] = {NULL, "null", "false", "1"};
enum { OWN, ALL_NULL, ALL_FALSE, ALL_ONE };

static void put_column(struct writer *w, const struct firefox_table *t, const struct column *c)
{
	fprintf(w->out, "\"%s\":[", c->name);
	for (size_t i = 0; i < t->n; i++) {
		int64_t number;

		if (i)
			fputc(',', w->out);
		if (c->same) {
			fputs(same_texts[c->same], w->out);
			continue;
		}
		memcpy(&number, t->rows + i * t->size + c->at, sizeof(number));
		put_number(w, number);
	}
	fputs("],", w->out);
}

static void put_table(struct writer *w, const char *name, const struct firefox_table *t,
		      const struct column *columns)
{
	fprintf(w->out, "\"%s\":{", name);
	for (; columns->name; columns++)
		put_column(w, t, columns);
	fprintf(w->out, "\"length\":%zu},\n", t->n);
}

#define COLUMN(type, name, member)                                                                 \
	{                                                                                          \
		name, OWN, offsetof(struct firefox_##type, member)                                 \
	}

static const struct column frame_columns[] = {
	COLUMN(frame, "address", address),
	COLUMN(frame, "lib", lib),
	COLUMN(frame, "inlineDepth", depth),
	COLUMN(frame, "category", category),
	COLUMN(frame, "subcategory", subcategory),
	COLUMN(frame, "func", function),
	COLUMN(frame, "nativeSymbol", symbol),
	{"innerWindowID", ALL_NULL, 0},
	COLUMN(frame, "line", line),
	{"column", ALL_NULL, 0},
	{"originalLocation", ALL_NULL, 0},
	{0},
};

static const struct column function_columns[] = {
	COLUMN(function, "name", name),
	{"isJS", ALL_FALSE, 0},
	{"relevantForJS", ALL_FALSE, 0},
	COLUMN(function, "resource", resource),
	COLUMN(function, "source", source),
	COLUMN(function, "lineNumber", line),
	{"columnNumber", ALL_NULL, 0},
	{"originalLocation", ALL_NULL, 0},
	{0},
};

static const struct column symbol_columns[] = {
	COLUMN(symbol, "libIndex", lib),
	COLUMN(symbol, "address", address),
	COLUMN(symbol, "name", name),
	{"functionSize", ALL_NULL, 0},
	{0},
};

static const struct column source_columns[] = {
	{"id", ALL_NULL, 0},
	COLUMN(source, "filename", file),
	{"startLine", ALL_ONE, 0},
	{"startColumn", ALL_ONE, 0},
	{"sourceMapURL", ALL_NULL, 0},
	{"content", ALL_NULL, 0},
	{0},
};

/* Nothing here has another source than that which the compiler read. */
static const struct column no_columns[] = {
	{"source", ALL_NULL, 0}, {"line", ALL_NULL, 0}, {"column", ALL_NULL, 0}, {0}};

/* A stack is counted back to its parent; 0 is a root. */
static void put_stacks(struct writer *w)
{
	const struct firefox_table *t = &w->f->stacks;
	const struct firefox_stack *rows = (const void *)t->rows;

	fputs("\"stackTable\":{\"frame\":[", w->out);
	for (size_t i = 0; i < t->n; i++)
		fprintf(w->out, "%s%" PRId64, i ? "," : "", rows[i].frame);
	fputs("],\"prefixOffset\":[", w->out);
	for (size_t i = 0; i < t->n; i++)
		fprintf(w->out, "%s%" PRId64, i ? "," : "",
			rows[i].parent < 0 ? 0 : (int64_t)i - rows[i].parent);
	fprintf(w->out, "],\"length\":%zu},\n", t->n);
}

static const struct firefox_lib *lib_at(const struct firefox *f, size_t i)
{
	return (const struct firefox_lib *)(const void *)f->libs.rows + i;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Resources are the libraries. */
static void put_resources(struct writer *w)
{
	size_t n = w->f->libs.n;

	fputs("\"resourceTable\":{\"name\":[", w->out);
	for (size_t i = 0; i < n; i++) {
		const char *name = base_name(w->f->strings.p[lib_at(w->f, i)->path]);
		int64_t number = firefox_string(w->f, name);

		w->failed |= number < 0;
		fprintf(w->out, "%s%" PRId64, i ? "," : "", number);
	}
	fputs("],\"host\":[", w->out);
	for (size_t i = 0; i < n; i++)
		fputs(i ? ",null" : "null", w->out);
	/* 1: a library. */
	fputs("],\"type\":[", w->out);
	for (size_t i = 0; i < n; i++)
		fputs(i ? ",1" : "1", w->out);
	fprintf(w->out, "],\"length\":%zu},\n", n);
}

static void put_strings(struct writer *w)
{
	fputs("\"stringArray\":[", w->out);
	for (size_t i = 0; i < w->f->strings.n; i++) {
		if (i)
			fputs(",\n", w->out);
		put_text(w, w->f->strings.p[i]);
	}
	fputs("]", w->out);
}

/* The strings come last: the other tables add to them. */
static void put_shared(struct writer *w)
{
	static const struct firefox_table empty;

	fputs("\"shared\":{\n", w->out);
	put_stacks(w);
	put_table(w, "frameTable", &w->f->frames, frame_columns);
	put_table(w, "funcTable", &w->f->functions, function_columns);
	put_resources(w);
	put_table(w, "nativeSymbols", &w->f->symbols, symbol_columns);
	put_table(w, "sources", &w->f->sources, source_columns);
	put_table(w, "sourceLocationTable", &empty, no_columns);
	put_strings(w);
	fputs("},\n", w->out);
}

/* ---- libraries ---- */

/*
 * The id by which symbol servers know a file: the first 16 bytes of the build-id as a GUID of this
 * byte order, and the age 0. "": the build-id is none.
 */
static void breakpad_id(const char *build_id, char to[34])
{
	static const uint8_t order[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
	size_t n = strspn(build_id, "0123456789abcdefABCDEF");
	char padded[33];

	to[0] = 0;
	if (!n || build_id[n])
		return;
	memset(padded, '0', 32);
	memcpy(padded, build_id, n < 32 ? n : 32);
	for (size_t i = 0; i < 16; i++) {
		to[2 * i] = (char)toupper((unsigned char)padded[2 * order[i]]);
		to[2 * i + 1] = (char)toupper((unsigned char)padded[2 * order[i] + 1]);
	}
	strcpy(to + 32, "0");
}

static void put_lib(struct writer *w, const struct firefox_lib *lib)
{
	const char *path = w->f->strings.p[lib->path];
	const char *build_id = w->f->strings.p[lib->build_id];
	char breakpad[34];

	breakpad_id(build_id, breakpad);
	fputs("{\"arch\":\"\",\"name\":", w->out);
	put_text(w, base_name(path));
	fputs(",\"path\":", w->out);
	put_text(w, path);
	fputs(",\"debugName\":", w->out);
	put_text(w, base_name(path));
	fputs(",\"debugPath\":", w->out);
	put_text(w, path);
	fprintf(w->out, ",\"breakpadId\":\"%s\",\"codeId\":", breakpad);
	if (*build_id)
		put_text(w, build_id);
	else
		fputs("null", w->out);
	fputs("}", w->out);
}

static void put_libs(struct writer *w)
{
	fputs("\"libs\":[", w->out);
	for (size_t i = 0; i < w->f->libs.n; i++) {
		fputs(i ? ",\n" : "", w->out);
		put_lib(w, lib_at(w->f, i));
	}
	fputs("],\n", w->out);
}

/* ---- threads ---- */

static bool is_time(const struct writer *w)
{
	return !strcmp(cairn_profile_type(w->f->p, w->f->type)->unit, "nanoseconds");
}

static const char *weight_type(const struct writer *w)
{
	if (is_time(w))
		return "tracing-ms";
	return strcmp(cairn_profile_type(w->f->p, w->f->type)->unit, "bytes") ? "samples" : "bytes";
}

/*
 * Samples without a time follow the last one that has one. Each takes its own time where values are
 * times, and a millisecond otherwise.
 */
static void put_times(struct writer *w, const struct firefox_thread *t)
{
	int64_t next = 0;

	fputs("\"time\":[", w->out);
	for (size_t i = 0; i < t->records.n; i++) {
		const struct profile_record *r = t->records.p[i];
		int64_t time = r->has_time ? r->time_ns : next;
		int64_t lasts = is_time(w) && r->value > 0 ? r->value : 1000000;

		fputs(i ? "," : "", w->out);
		put_ms(w, time);
		if (__builtin_add_overflow(time, lasts, &next))
			next = time;
	}
	fputs("],", w->out);
}

static void put_samples(struct writer *w, const struct firefox_thread *t)
{
	fputs("\"samples\":{", w->out);
	put_times(w, t);
	fputs("\"stack\":[", w->out);
	for (size_t i = 0; i < t->records.n; i++)
		fprintf(w->out, "%s%" PRIu32, i ? "," : "",
			w->f->samples[t->records.p[i]->sample].stack);
	fputs("],\"weight\":[", w->out);
	for (size_t i = 0; i < t->records.n; i++) {
		fputs(i ? "," : "", w->out);
		if (is_time(w))
			put_ms(w, t->records.p[i]->value);
		else
			fprintf(w->out, "%" PRId64, t->records.p[i]->value);
	}
	fprintf(w->out, "],\"weightType\":\"%s\",\"length\":%zu},\n", weight_type(w), t->records.n);
}

/* The main thread comes first; a process without one in the profile has its first thread's name. */
static const char *process_name(const struct firefox *f, const struct firefox_thread *t)
{
	while (t > f->threads.p && t[-1].pid == t->pid)
		t--;
	return t->name;
}

static void put_thread_name(struct writer *w, const struct firefox_thread *t)
{
	char number[40] = "all threads";

	if (t->tid)
		snprintf(number, sizeof(number), "thread %" PRId64, t->tid);
	put_text(w, *t->name ? t->name : number);
}

static void put_thread(struct writer *w, const struct firefox_thread *t)
{
	fputs("{\"processType\":\"default\",\"processStartupTime\":0,\"processShutdownTime\":null,"
	      "\"registerTime\":0,\"unregisterTime\":null,\"pausedRanges\":[],\"name\":",
	      w->out);
	put_thread_name(w, t);
	fprintf(w->out, ",\"isMainThread\":%s,\"pid\":\"%" PRId64 "\",\"tid\":%" PRId64 ",",
		t->pid == t->tid ? "true" : "false", t->pid, t->tid);
	if (*process_name(w->f, t)) {
		fputs("\"processName\":", w->out);
		put_text(w, process_name(w->f, t));
		fputs(",", w->out);
	}
	fputs("\n", w->out);
	put_samples(w, t);
	fputs("\"markers\":{\"data\":[],\"name\":[],\"startTime\":[],\"endTime\":[],\"phase\":[],"
	      "\"category\":[],\"length\":0}}",
	      w->out);
}

static void put_threads(struct writer *w)
{
	fputs("\"threads\":[", w->out);
	for (size_t i = 0; i < w->f->threads.n; i++) {
		fputs(i ? ",\n" : "", w->out);
		put_thread(w, &w->f->threads.p[i]);
	}
	fputs("]", w->out);
}

/* ---- the run ---- */

/* One of the categories has to be grey, and each has to have "Other" first. */
static const char categories[] =
	"[{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":[\"Other\",\"Inlined\"]},"
	"{\"name\":\"User\",\"color\":\"yellow\",\"subcategories\":[\"Other\",\"Inlined\"]},"
	"{\"name\":\"Kernel\",\"color\":\"orange\",\"subcategories\":[\"Other\",\"Inlined\"]},"
	"{\"name\":\"JIT\",\"color\":\"green\",\"subcategories\":[\"Other\",\"Inlined\"]}]";

static void put_entry(struct writer *w, const char *label, const char *text, bool is_first)
{
	fprintf(w->out, "%s{\"label\":\"%s\",\"format\":\"string\",\"value\":", is_first ? "" : ",",
		label);
	put_text(w, text);
	fputs("}", w->out);
}

static void put_extra(struct writer *w)
{
	const struct cairn_profile_type *t = cairn_profile_type(w->f->p, w->f->type);
	char times[160];

	snprintf(times, sizeof(times),
		 "%zu have their own; %zu sums of samples without a time follow each other after "
		 "the last one of their thread",
		 w->f->records.n - w->f->records.n_without_time, w->f->records.n_without_time);
	fputs("\"extra\":[{\"label\":\"Samples\",\"entries\":[", w->out);
	put_entry(w, "Value", t->type, true);
	put_entry(w, "Unit", t->unit, false);
	put_entry(w, "Times", times, false);
	fputs("]}]", w->out);
}

/* From one sample to the next: what the period says, where it is a time. */
static int64_t interval_ns(const struct cairn_profile_run *run)
{
	bool is_time = !strcmp(run->each.unit, "nanoseconds") && run->period > 1;

	return is_time ? run->period : 1000000;
}

static void put_meta(struct writer *w, const char *title)
{
	struct cairn_profile_run run = cairn_profile_run(w->f->p);

	fputs("\"meta\":{\"interval\":", w->out);
	put_ms(w, interval_ns(&run));
	fputs(",\"startTime\":", w->out);
	put_ms(w, run.time_ns);
	fputs(",\"profilingStartTime\":0,\"profilingEndTime\":", w->out);
	put_ms(w, run.duration_ns);
	fprintf(w->out,
		",\"processType\":0,\"product\":\"Cairn\",\"importedFrom\":\"Cairn\","
		"\"stackwalk\":1,\"version\":%d,\"preprocessedProfileVersion\":%d,"
		"\"symbolicated\":true,\"usesOnlyOneStackType\":true,"
		"\"sourceCodeIsNotOnSearchfox\":true,\"markerSchema\":[],\"arguments\":",
		FIREFOX_GECKO_VERSION, FIREFOX_PROCESSED_VERSION);
	put_text(w, title);
	fprintf(w->out,
		",\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\","
		"\"threadCPUDelta\":\"ns\"},\n\"categories\":%s,\n",
		categories);
	put_extra(w);
	fputs("},\n", w->out);
}

static void put_all(struct writer *w, const char *title)
{
	fputs("{", w->out);
	put_meta(w, title);
	put_libs(w);
	put_shared(w);
	put_threads(w);
	fputs("}\n", w->out);
}

static int write_json(struct firefox *f, const char *title, struct cairn_profile_bytes *ret,
		      struct cairn_err *err)
{
	struct writer w = {.f = f, .out = open_memstream((char **)&ret->bytes, &ret->size)};

	if (w.out) {
		put_all(&w, title);
		w.failed |= ferror(w.out) != 0;
		w.failed |= fclose(w.out) != 0;
	}
	if (w.out && !w.failed)
		return 0;
	free(ret->bytes);
	*ret = (struct cairn_profile_bytes){0};
	return err_nomem(err, "a Firefox profile");
}

/* If it fails, nothing is left of the bytes. */
static int compress(struct cairn_profile_bytes *bytes, struct cairn_err *err)
{
	uint8_t *small;
	size_t size;
	int rc = gzip_deflate(bytes->bytes, bytes->size, &small, &size, err);

	free(bytes->bytes);
	*bytes = (struct cairn_profile_bytes){0};
	if (rc == 0)
		*bytes = (struct cairn_profile_bytes){small, size};
	return rc;
}

int cairn_profile_firefox(const struct cairn_profile *p, size_t type, const char *title, bool gzip,
			  struct cairn_profile_bytes *ret, struct cairn_err *err)
{
	struct firefox f;
	int rc = profile_check_type(p, type, err);

	*ret = (struct cairn_profile_bytes){0};
	if (rc < 0)
		return rc;
	rc = firefox_tables_make(&f, p, type, err);
	if (rc == 0)
		rc = write_json(&f, title, ret, err);
	firefox_tables_fini(&f);
	return rc == 0 && gzip ? compress(ret, err) : rc;
}
