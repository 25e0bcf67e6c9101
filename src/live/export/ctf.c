/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A profile as a trace in CTF 1.8: one stream with one packet
 *
 * Stacks are written once each, as events of their own; samples refer to them.
 */
#include "export/ctf.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * The addresses of a trace: each file is in a range of its own, beyond those of processes and
 * before those of the kernel. The linker's addresses of a file have fewer than 40 bits.
 */
#define FILE_BASE  (UINT64_C(1) << 60)
#define FILE_SHIFT 40
#define FILE_SIZE  (UINT64_C(1) << FILE_SHIFT)
#define FILES_MAX  (1u << 20)

/* A file with mappings, for the filter debug-info. */
struct file {
	const char *path, *build_id;
};

struct writer {
	const struct cairn_profile *p;
	FILE *out;
	VEC(struct file) files;
	uint32_t *file_of; /* by mapping; 1 + index, 0: none */
	bool *is_written;  /* the frames of a sample's stack are */
	struct profile_records records;
	uint64_t now;               /* of the events that are written, from the trace's beginning */
	struct profile_owner owner; /* of them */
};

/* ---- values ---- */

static void put(struct writer *w, const void *bytes, size_t n)
{
	fwrite(bytes, 1, n, w->out);
}

/*
 * An unknown text is "-": for an empty string babeltrace2 2.0.4 shows the one that the member had
 * in an earlier event.
 */
static void put_text(struct writer *w, const char *text)
{
	ctf_put_text(*text ? text : "-", w->out);
}

static void put_event(struct writer *w, uint32_t id, uint64_t ip)
{
	ctf_put_u32(id, w->out);
	ctf_put_u64(w->now, w->out);
	ctf_put_u32((uint32_t)w->owner.pid, w->out);
	ctf_put_u32((uint32_t)w->owner.tid, w->out);
	ctf_put_u64(ip, w->out);
}

/* ---- files and addresses ---- */

static bool same_file(const struct file *f, const struct cairn_profile_mapping *m)
{
	return f->path == m->path && f->build_id == m->build_id;
}

/* Mappings of one file follow each other mostly, and there are hundreds at most. */
static int find_file(struct writer *w, const struct cairn_profile_mapping *m, uint32_t *ret)
{
	size_t i = w->files.n;

	while (i && !same_file(&w->files.p[i - 1], m))
		i--;
	if (!i) {
		if (w->files.n >= FILES_MAX)
			return -ERANGE;
		if (!VEC_ADD(&w->files, ((struct file){m->path, m->build_id})))
			return -ENOMEM;
		i = w->files.n;
	}
	*ret = (uint32_t)i;
	return 0;
}

static int find_files(struct writer *w)
{
	const struct cairn_profile_mapping *m;
	int rc = 0;

	w->file_of = calloc(w->p->mappings.n + 1, sizeof(*w->file_of));
	if (!w->file_of)
		return -ENOMEM;
	for (uint32_t i = 1; rc == 0 && (m = cairn_profile_mapping(w->p, i)); i++)
		if (m->path[0] == '/' && m->code == CAIRN_PROFILE_USER)
			rc = find_file(w, m, &w->file_of[i]);
	return rc;
}

/* In the file: what the linker gave, or else the offset, which is mostly the same. */
static uint64_t in_file(const struct cairn_profile_mapping *m, uint64_t at)
{
	return m->is_linked ? at : at - m->start + m->offset;
}

static uint64_t address_of(const struct writer *w, const struct cairn_profile_location *l)
{
	uint32_t file = l->mapping ? w->file_of[l->mapping] : 0;
	uint64_t at;

	if (!file)
		return l->address;
	at = in_file(cairn_profile_mapping(w->p, l->mapping), l->address);
	return at < FILE_SIZE ? FILE_BASE + ((uint64_t)(file - 1) << FILE_SHIFT) + at : l->address;
}

/* ---- where files are ---- */

static int digit(char c)
{
	return c <= '9' ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

/* Bytes of a build-id in hexadecimal; 0: it is none. */
static size_t build_id_size(const char *id)
{
	size_t n = strlen(id);

	return n % 2 || strspn(id, "0123456789abcdefABCDEF") != n ? 0 : n / 2;
}

static void put_file(struct writer *w, size_t i)
{
	const struct file *f = &w->files.p[i];
	uint64_t base = FILE_BASE + ((uint64_t)i << FILE_SHIFT);
	size_t n = build_id_size(f->build_id);

	put_event(w, CTF_BIN_INFO, base);
	ctf_put_u64(base, w->out);
	ctf_put_u64(FILE_SIZE, w->out);
	/* As it is: it has to be found. */
	put(w, f->path, strlen(f->path) + 1);
	ctf_put_u8(1, w->out);
	ctf_put_u8(n != 0, w->out);
	ctf_put_u8(0, w->out);
	if (!n)
		return;
	put_event(w, CTF_BUILD_ID, base);
	ctf_put_u64(base, w->out);
	ctf_put_u64(n, w->out);
	for (size_t k = 0; k < n; k++)
		ctf_put_u8(
			(uint8_t)(digit(f->build_id[2 * k]) << 4 | digit(f->build_id[2 * k + 1])),
			w->out);
}

static void put_process(struct writer *w, int64_t pid)
{
	w->owner = (struct profile_owner){.pid = pid, .tid = pid};
	put_event(w, CTF_START, 0);
	for (size_t i = 0; i < w->files.n; i++)
		put_file(w, i);
	put_event(w, CTF_END, 0);
}

static int put_processes(struct writer *w)
{
	struct map pids = {0};
	uint64_t known;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < cairn_profile_n_samples(w->p); i++) {
		struct cairn_profile_sample s = cairn_profile_sample(w->p, i);
		int64_t pid = profile_owner(&s).pid;

		if (map_get(&pids, (uint64_t)pid, &known))
			continue;
		rc = map_put(&pids, (uint64_t)pid, 1);
		if (rc == 0)
			put_process(w, pid);
	}
	map_fini(&pids);
	return rc;
}

/* ---- stacks ---- */

/* One function at a location, or a location without one. */
struct frame {
	uint64_t stack;
	uint32_t depth;
	bool is_inlined;
	uint32_t line;
};

static void put_place(struct writer *w, const struct cairn_profile_location *l)
{
	const struct cairn_profile_mapping *m = cairn_profile_mapping(w->p, l->mapping);

	put_text(w, m ? m->path : "");
	ctf_put_u64(m ? l->address - m->start + m->offset : l->address, w->out);
}

static void put_frame(struct writer *w, const struct cairn_profile_location *l,
		      const struct frame *f, const struct cairn_profile_function *function)
{
	put_event(w, CTF_FRAME, address_of(w, l));
	ctf_put_u64(f->stack, w->out);
	ctf_put_u32(f->depth, w->out);
	ctf_put_u8(f->is_inlined, w->out);
	ctf_put_u8((uint8_t)profile_code(w->p, l), w->out);
	put_text(w, function->name);
	put_text(w, function->linkage_name);
	put_text(w, function->file);
	ctf_put_u32(f->line, w->out);
	put_place(w, l);
}

static int put_location(struct writer *w, const struct cairn_profile_location *l, struct frame *f)
{
	struct cairn_profile_function unknown = {.linkage_name = "", .file = ""};
	char *name;

	f->is_inlined = false;
	f->line = 0;
	for (size_t i = 0; i < l->n_lines; i++) {
		f->is_inlined = i + 1 < l->n_lines;
		f->line = l->lines[i].line;
		put_frame(w, l, f, cairn_profile_function(w->p, l->lines[i].function));
		f->depth++;
	}
	if (l->n_lines)
		return 0;
	unknown.name = name = profile_unknown_name(w->p, l);
	if (!name)
		return -ENOMEM;
	put_frame(w, l, f, &unknown);
	f->depth++;
	free(name);
	return 0;
}

/* The innermost frame first; each sample has a number for its stack. */
static int put_stack(struct writer *w, uint32_t sample, const struct cairn_profile_sample *s)
{
	struct frame f = {.stack = sample};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->n_stack; i++)
		rc = put_location(w, cairn_profile_location(w->p, s->stack[i]), &f);
	return rc;
}

/* ---- samples ---- */

static const char *end_of(const struct cairn_profile_sample *s)
{
	for (size_t i = 0; i < s->n_labels; i++)
		if (!strcmp(s->labels[i].key, "end"))
			return s->labels[i].text;
	return "";
}

static void put_sample(struct writer *w, const struct profile_record *r,
		       const struct cairn_profile_sample *s)
{
	const struct cairn_profile *p = w->p;

	put_event(w, CTF_SAMPLE,
		  s->n_stack ? address_of(w, cairn_profile_location(p, s->stack[0])) : 0);
	ctf_put_u64(r->sample, w->out);
	ctf_put_u64((uint64_t)r->value, w->out);
	ctf_put_u8(r->has_time, w->out);
	ctf_put_u32(r->cpu, w->out);
	put_text(w, w->owner.thread);
	put_text(w, end_of(s));
	ctf_put_u32((uint32_t)s->n_stack, w->out);
	for (size_t i = 0; i < s->n_stack; i++)
		ctf_put_u64(address_of(w, cairn_profile_location(p, s->stack[i])), w->out);
}

/* Timestamps are counted from the first one, if that is before the run. */
static int64_t first_ns(const struct profile_records *records)
{
	return records->n && records->list[0].has_time && records->list[0].time_ns < 0
		       ? records->list[0].time_ns
		       : 0;
}

static int put_records(struct writer *w)
{
	int64_t first = first_ns(&w->records);
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < w->records.n; i++) {
		const struct profile_record *r = &w->records.list[i];
		struct cairn_profile_sample s = cairn_profile_sample(w->p, r->sample);

		/* Those without a time come last, at the time of the last one that has it. */
		if (r->has_time)
			w->now = (uint64_t)r->time_ns - (uint64_t)first;
		w->owner = profile_owner(&s);
		if (!w->is_written[r->sample])
			rc = put_stack(w, r->sample, &s);
		w->is_written[r->sample] = true;
		put_sample(w, r, &s);
	}
	return rc;
}

/* ---- the packet ---- */

/* Its sizes and last timestamp are known at the end. */
static void finish_header(const struct writer *w, const struct cairn_profile_bytes *bytes)
{
	struct ctf_packet header = {.magic = CTF_MAGIC,
				    .end = w->now,
				    .content_size = (uint64_t)bytes->size * 8,
				    .packet_size = (uint64_t)bytes->size * 8};

	memcpy(bytes->bytes, &header, sizeof(header));
}

static int write_stream(struct writer *w, struct cairn_profile_bytes *ret)
{
	static const struct ctf_packet unknown;
	int rc;

	w->out = open_memstream((char **)&ret->bytes, &ret->size);
	if (!w->out)
		return -ENOMEM;
	put(w, &unknown, sizeof(unknown));
	rc = put_processes(w);
	rc = rc < 0 ? rc : put_records(w);
	if (ferror(w->out))
		rc = -ENOMEM;
	if (fclose(w->out) != 0)
		rc = -ENOMEM;
	if (rc == 0)
		finish_header(w, ret);
	return rc;
}

static int write_metadata(const struct writer *w, size_t type, const char *title,
			  struct cairn_profile_bytes *ret)
{
	FILE *out = open_memstream((char **)&ret->bytes, &ret->size);
	bool failed;
	int64_t start = cairn_profile_run(w->p).time_ns;

	if (!out)
		return -ENOMEM;
	if (__builtin_add_overflow(start, first_ns(&w->records), &start))
		start = 0;
	ctf_put_metadata(w->p, type, title, start, out);
	failed = ferror(out) != 0;
	return fclose(out) != 0 || failed ? -ENOMEM : 0;
}

static int write_both(struct writer *w, size_t type, const char *title,
		      struct cairn_profile_ctf *ret, struct cairn_err *err)
{
	int rc = profile_records(w->p, type, &w->records, err);

	if (rc < 0)
		return rc;
	w->is_written = calloc(cairn_profile_n_samples(w->p) + 1, sizeof(*w->is_written));
	rc = w->is_written ? find_files(w) : -ENOMEM;
	if (rc == -ERANGE)
		return err_set(err, rc, "a trace may have at most %u files", FILES_MAX);
	rc = rc < 0 ? rc : write_stream(w, &ret->stream);
	rc = rc < 0 ? rc : write_metadata(w, type, title, &ret->metadata);
	return rc < 0 ? err_nomem(err, "a trace") : 0;
}

int cairn_profile_ctf(const struct cairn_profile *p, size_t type, const char *title,
		      struct cairn_profile_ctf *ret, struct cairn_err *err)
{
	struct writer w = {.p = p};
	int rc = profile_check_type(p, type, err);

	*ret = (struct cairn_profile_ctf){0};
	if (rc < 0)
		return rc;
	rc = write_both(&w, type, title, ret, err);
	VEC_FREE(&w.files);
	free(w.file_of);
	free(w.is_written);
	free(w.records.list);
	if (rc < 0)
		cairn_profile_ctf_free(ret);
	return rc;
}

void cairn_profile_ctf_free(struct cairn_profile_ctf *ctf)
{
	free(ctf->metadata.bytes);
	free(ctf->stream.bytes);
	*ctf = (struct cairn_profile_ctf){0};
}
