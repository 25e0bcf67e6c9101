/* SPDX-License-Identifier: BSD-2-Clause */
#include "code/perf_map.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/err.h"

/* More than any process has functions; an index of that many takes 300 MB. */
enum { MAX_LINES = 8 << 20 };

/* A hexadecimal number, with or without 0x as the JVM writes it, and the space after it. */
static bool read_hex(struct cursor *c, uint64_t *ret)
{
	size_t n = 0;
	uint8_t digit;
	*ret = 0;
	if (cur_left(c) > 1 && c->pos[0] == '0' && c->pos[1] == 'x')
		cur_skip(c, 2);
	for (; (digit = cur_u8(c)) != ' '; n++) {
		int value = digit >= '0' && digit <= '9'                 ? digit - '0'
			    : (digit | 32) >= 'a' && (digit | 32) <= 'f' ? (digit | 32) - 'a' + 10
									 : -1;
		if (value < 0 || *ret >> 60)
			return false;
		*ret = *ret << 4 | (unsigned int)value;
	}
	return n > 0;
}

/* @line has its end as NUL. */
static int add_line(struct perf_map *m, struct cursor line)
{
	uint64_t lo, size, hi;
	if (!read_hex(&line, &lo) || !read_hex(&line, &size) ||
	    __builtin_add_overflow(lo, size, &hi) || !size)
		return 0;
	const char *name = cur_str(&line);
	if (!*name)
		return 0;
	return VEC_ADD(&m->items, ((struct perf_name){lo, name})) &&
			       name_map_add(&m->names, lo, hi, (uint32_t)(m->items.n - 1))
		       ? 0
		       : -ENOMEM;
}

int perf_map_parse(char *text, size_t n, struct perf_map *ret)
{
	struct cursor_src src = {.file = ret->path, .section = "", .base = (uint8_t *)text};
	struct cursor c = cursor_of(&src, (uint8_t *)text, n, false, NULL);
	const uint8_t *newline;
	int rc = 0;
	ret->text = text;
	while (rc == 0 && cur_more(&c) && ret->items.n < MAX_LINES &&
	       (newline = memchr(c.pos, '\n', cur_left(&c)))) {
		text[newline - (const uint8_t *)text] = 0;
		rc = add_line(ret, cur_sub(&c, (uint64_t)(newline + 1 - c.pos)));
	}
	return rc < 0 ? rc : name_map_flatten(&ret->names);
}

int perf_map_refresh(struct perf_map *m, int pid, struct cairn_err *err)
{
	struct process_file file;
	bool is_known = m->text, is_same;
	snprintf(m->path, sizeof(m->path), "/tmp/perf-%d.map", process_own_number(pid));
	int rc = process_file_read(pid, m->path, PROCESS_FILE_MAX, is_known ? &m->st : NULL, &file,
				   &is_same, err);
	if (rc == 0 && is_same)
		return 0;
	perf_map_fini(m);
	if (rc < 0 || !file.bytes)
		return rc;
	m->st = file.st;
	rc = perf_map_parse(file.bytes, file.n, m);
	return rc < 0 ? err_nomem(err, m->path) : 0;
}

const char *perf_map_find(const struct perf_map *m, uint64_t at, uint64_t *ret_lo)
{
	const struct name_range *r = name_map_find(&m->names, at);
	if (!r)
		return NULL;
	*ret_lo = m->items.p[r->item].lo;
	return m->items.p[r->item].name;
}

void perf_map_fini(struct perf_map *m)
{
	name_map_fini(&m->names);
	VEC_FREE(&m->items);
	free(m->text);
	m->text = NULL;
}
