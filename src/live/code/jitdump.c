/* SPDX-License-Identifier: BSD-2-Clause */
#include "code/jitdump.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/err.h"

enum {
	MAGIC = 0x4a695444,
	HEADER_SIZE = 40,
	RECORD_SIZE = 16,
	MAX_FUNCTIONS = 8 << 20, /* each takes 130 bytes here */
	PERF_TEXT_OFF = 64,      /* of code in the files that perf makes */
};

enum { LOAD, MOVE, DEBUG_INFO, CLOSE, UNWINDING };

/* The records about the load that is still to come. */
struct pending {
	struct jitdump_lines lines;
	uint64_t lines_for; /* code address */
	uint64_t eh_off, eh_size;
	bool keeps_frame_pointer;
};

static struct cursor_src src_of(const struct jitdump *d)
{
	return (struct cursor_src){
		.file = d->path ? d->path : "jitdump", .section = "jitdump", .base = d->bytes};
}

static int add(struct jitdump *d, struct jitdump_function f)
{
	if (f.lo >= f.hi)
		return 0;
	if (d->functions.n == MAX_FUNCTIONS) {
		d->why = "it has more functions than are read";
		return 0;
	}
	uint32_t i = (uint32_t)d->functions.n;
	return VEC_ADD(&d->functions, f) && name_map_add(&d->names, f.lo, f.hi, i)
		       ? map_put(&d->by_number, f.number, i)
		       : -ENOMEM;
}

static int take_load(struct jitdump *d, struct cursor c, struct pending *p)
{
	struct jitdump_function f = {.eh_off = p->eh_off,
				     .eh_size = p->eh_size,
				     .keeps_frame_pointer = p->keeps_frame_pointer};
	cur_skip(&c, 16); /* pid, tid, address */
	f.lo = f.written = cur_u64(&c);
	uint64_t size = cur_u64(&c);
	f.number = cur_u64(&c);
	f.name = cur_str(&c);
	if (p->lines_for == f.lo)
		f.lines = p->lines;
	*p = (struct pending){0};
	if (c.failed || __builtin_add_overflow(f.lo, size, &f.hi))
		return 0;
	return add(d, f);
}

static int take_move(struct jitdump *d, struct cursor c)
{
	cur_skip(&c, 16);
	uint64_t from = cur_u64(&c), to = cur_u64(&c), size = cur_u64(&c), number = cur_u64(&c);
	uint64_t i;
	if (c.failed || !map_get(&d->by_number, number, &i) || d->functions.p[i].lo != from)
		return 0;
	struct jitdump_function f = d->functions.p[i];
	f.lo = to;
	return __builtin_add_overflow(to, size, &f.hi) ? 0 : add(d, f);
}

static void take_lines(const struct jitdump *d, struct cursor c, struct pending *p)
{
	p->lines_for = cur_u64(&c);
	uint64_t n = cur_u64(&c);
	p->lines = (struct jitdump_lines){(uint64_t)(c.pos - d->bytes), cur_left(&c), n};
}

static void take_unwinding(const struct jitdump *d, struct cursor c, struct pending *p)
{
	uint64_t size = cur_u64(&c), hdr = cur_u64(&c), mapped = cur_u64(&c);
	if (c.failed || size > cur_left(&c) || hdr > size)
		return;
	p->keeps_frame_pointer = !mapped;
	p->eh_off = (uint64_t)(c.pos - d->bytes);
	p->eh_size = mapped ? size - hdr : 0;
}

static int take_record(struct jitdump *d, uint32_t id, struct cursor body, struct pending *p)
{
	switch (id) {
	case LOAD:
		return take_load(d, body, p);
	case MOVE:
		return take_move(d, body);
	case DEBUG_INFO:
		take_lines(d, body, p);
		return 0;
	case UNWINDING:
		take_unwinding(d, body, p);
		return 0;
	}
	return 0;
}

static int read_records(struct jitdump *d, struct cursor c)
{
	struct pending p = {0};
	int rc = 0;
	while (rc == 0 && cur_left(&c)) {
		if (cur_left(&c) < RECORD_SIZE)
			break; /* still being written */
		uint32_t id = cur_u32(&c), size = cur_u32(&c);
		cur_skip(&c, sizeof(uint64_t));
		if (size < RECORD_SIZE) {
			d->why = "a record is smaller than its head";
			break;
		}
		if (size - RECORD_SIZE > cur_left(&c))
			break;
		struct cursor body = cur_sub(&c, size - RECORD_SIZE);
		if (id == CLOSE)
			break;
		rc = take_record(d, id, body, &p);
	}
	return rc;
}

int jitdump_parse(uint8_t *bytes, size_t n, struct jitdump *d, struct cairn_err *err)
{
	d->bytes = bytes;
	d->n = n;
	struct cursor_src src = src_of(d);
	struct cursor c = cursor_of(&src, bytes, n, false, NULL);
	uint32_t magic = cur_u32(&c), version = cur_u32(&c), size = cur_u32(&c);
	d->machine = (uint16_t)cur_u32(&c);
	if (c.failed || magic != MAGIC || version != 1 || size < HEADER_SIZE || size > n)
		return err_set(err, -EBADMSG, "%s: no jitdump file of version 1", src.file);
	cur_skip(&c, size - cur_off(&c));
	int rc = read_records(d, c);
	if (rc == 0)
		rc = name_map_flatten(&d->names);
	return rc < 0 ? err_nomem(err, src.file) : 0;
}

int jitdump_refresh(struct jitdump *d, int pid, const char *path, struct cairn_err *err)
{
	struct process_file file;
	bool is_same, is_known = d->path && !strcmp(d->path, path);
	int rc = process_file_read(pid, path, PROCESS_FILE_MAX, is_known ? &d->st : NULL, &file,
				   &is_same, err);
	if (rc == 0 && is_same)
		return 0;
	jitdump_fini(d);
	if (rc < 0 || !file.bytes)
		return rc;
	d->path = strdup(path);
	d->st = file.st;
	if (!d->path) {
		free(file.bytes);
		return err_nomem(err, path);
	}
	return jitdump_parse((uint8_t *)file.bytes, file.n, d, err);
}

void jitdump_fini(struct jitdump *d)
{
	name_map_fini(&d->names);
	map_fini(&d->by_number);
	VEC_FREE(&d->functions);
	free(d->bytes);
	free(d->path);
	*d = (struct jitdump){0};
}

bool jitdump_is_name(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path,
		   *end = name + strlen(name);
	return path[0] == '/' && !strncmp(name, "jit-", 4) && end - name > 9 &&
	       !strcmp(end - 5, ".dump");
}

const struct jitdump_function *jitdump_find(const struct jitdump *d, uint64_t at)
{
	const struct name_range *r = name_map_find(&d->names, at);
	return r ? &d->functions.p[r->item] : NULL;
}

struct line_entry {
	uint64_t at;
	uint32_t line;
	const char *file;
};

static bool next_line(struct cursor *c, struct line_entry *e)
{
	e->at = cur_u64(c);
	e->line = cur_u32(c);
	cur_skip(c, sizeof(uint32_t));
	const char *name = cur_str(c);
	if (strcmp(name, "\xff") != 0)
		e->file = name;
	return !c->failed;
}

static uint64_t lines_are_shifted_by(struct cursor c, const struct jitdump_function *f)
{
	struct line_entry e = {0};
	uint64_t lowest = UINT64_MAX;
	for (uint64_t i = 0; i < f->lines.n && next_line(&c, &e); i++)
		if (e.at < lowest)
			lowest = e.at;
	return lowest >= f->written && lowest - f->written >= PERF_TEXT_OFF ? PERF_TEXT_OFF : 0;
}

static bool is_name(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ')
			return false;
	return true;
}

uint32_t jitdump_line(const struct jitdump *d, const struct jitdump_function *f, uint64_t at,
		      const char **ret_file)
{
	struct cursor_src src = src_of(d);
	struct cursor c = cursor_of(&src, d->bytes + f->lines.off, f->lines.size, false, NULL);
	uint64_t begin = f->written + lines_are_shifted_by(c, f), best = 0;
	struct line_entry e = {0};
	uint32_t found = 0;
	for (uint64_t i = 0; i < f->lines.n && next_line(&c, &e); i++) {
		/* An address before the begin wraps around to a large one. */
		uint64_t off = e.at - begin;
		if (off > at - f->lo || off < best)
			continue;
		best = off;
		found = e.line;
		*ret_file = e.file && is_name(e.file) ? e.file : NULL;
	}
	return found;
}

int jitdump_rows(const struct jitdump *d, const struct jitdump_function *f, struct eh_block **ret)
{
	enum { EH_FRAME_ALIGN = 8 };
	*ret = NULL;
	if (!f->eh_size)
		return 0;
	uint8_t *bytes = malloc(f->eh_size);
	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, d->bytes + f->eh_off, f->eh_size);
	uint64_t after = f->written +
			 ((f->hi - f->lo + EH_FRAME_ALIGN - 1) & ~(uint64_t)(EH_FRAME_ALIGN - 1));
	const struct eh_block_kind kind = {.addr = after, .machine = d->machine};
	int rc = eh_block_open(bytes, f->eh_size, &kind, ret, NULL);
	return rc == -ENOMEM ? rc : 0;
}

int jitdump_rule(const struct jitdump *d, const struct jitdump_function *f, uint64_t at,
		 struct rule_words *ret)
{
	struct eh_block *eh;
	int rc = jitdump_rows(d, f, &eh);
	rule_undescribed(ret);
	if (eh)
		eh_block_rule(eh, at - f->lo + f->written, ret);
	eh_block_close(eh);
	return rc;
}
