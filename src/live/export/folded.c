/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Folded stacks: "main;work;put_[i] 12", as flamegraph.pl of github.com/brendangregg/FlameGraph
 * reads them, with its annotations _[i], _[k] and _[j]
 */
#include "export/profile_impl.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* A line of a real profile has some 10 KB; a stack of 1,024 frames with names of C++, 1 MB. */
#define LINE_MAX_BYTES (16u << 20)

/* ---- writing ---- */

/* The text of each location, as far as one was needed: most are in many stacks. */
struct writer {
	const struct cairn_profile *p;
	struct location_text {
		char *text; /* NULL: not made yet */
		size_t n;
	} * locations;
};

static void put_name(FILE *out, const char *name)
{
	size_t n = strlen(name), len;
	uint32_t c;

	for (size_t at = 0; at < n; at += len ? len : 1) {
		len = utf8_length((const uint8_t *)name + at, n - at, &c);
		if (len == 1 && c == ';')
			fputc(':', out);
		else if (len && utf8_is_safe(c))
			fwrite(name + at, 1, len, out);
		else
			fputc('?', out);
	}
}

static const char *annotation(enum cairn_profile_code code, bool is_inlined)
{
	if (is_inlined)
		return "_[i]";
	return code == CAIRN_PROFILE_KERNEL ? "_[k]" : code == CAIRN_PROFILE_JIT ? "_[j]" : "";
}

/* State of one location, while its text is made. */
struct location_writer {
	const struct cairn_profile *p;
	FILE *out;
};

static int put_frame(void *ctx, const struct profile_frame *f)
{
	struct location_writer *w = ctx;
	char *unknown;
	const char *name = profile_frame_name(w->p, f, &unknown);

	if (!name)
		return -ENOMEM;
	put_name(w->out, name);
	fputs(annotation(f->code, f->is_inlined), w->out);
	if (!f->is_innermost)
		fputc(';', w->out);
	free(unknown);
	return 0;
}

/* "f;g_[i]"; NULL when out of memory. */
static const struct location_text *text_of(struct writer *w, uint32_t id)
{
	struct location_text *t = &w->locations[id];
	struct location_writer to = {.p = w->p};
	int rc;

	if (t->text)
		return t;
	to.out = open_memstream(&t->text, &t->n);
	if (!to.out)
		return NULL;
	rc = profile_walk_location(w->p, id, put_frame, &to);
	if (fclose(to.out) == 0 && rc == 0)
		return t;
	free(t->text);
	t->text = NULL;
	return NULL;
}

struct line {
	char *text;
	int64_t value;
};

static int fold(struct writer *w, const struct cairn_profile_sample *s, struct line *line)
{
	size_t size = sizeof("[no stack]");
	char *to;

	for (size_t i = 0; i < s->n_stack; i++) {
		const struct location_text *t = text_of(w, s->stack[i]);

		if (!t)
			return -ENOMEM;
		size += t->n + 1;
	}
	line->text = to = malloc(size);
	if (!to)
		return -ENOMEM;
	strcpy(to, s->n_stack ? "" : "[no stack]");
	for (size_t i = s->n_stack; i-- > 0;) {
		to = mempcpy(to, w->locations[s->stack[i]].text, w->locations[s->stack[i]].n);
		*to++ = i ? ';' : '\0';
	}
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct line *)a)->text, ((const struct line *)b)->text);
}

static int write_lines(struct line *lines, size_t n, FILE *out, struct cairn_err *err)
{
	qsort(lines, n, sizeof(*lines), by_text);
	for (size_t i = 0, next; i < n; i = next) {
		int64_t sum = 0;

		for (next = i; next < n && !strcmp(lines[next].text, lines[i].text); next++)
			if (profile_add_value(&sum, lines[next].value, err) < 0)
				return -ERANGE;
		if (sum)
			fprintf(out, "%s %" PRId64 "\n", lines[i].text, sum);
	}
	return 0;
}

static int fold_all(struct writer *w, size_t type, struct line *lines)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < cairn_profile_n_samples(w->p); i++) {
		struct cairn_profile_sample s = cairn_profile_sample(w->p, i);

		lines[i].value = s.values[type];
		rc = fold(w, &s, &lines[i]);
	}
	return rc;
}

static void writer_fini(struct writer *w)
{
	for (uint32_t i = 0; w->locations && i < cairn_profile_n_locations(w->p); i++)
		free(w->locations[i].text);
	free(w->locations);
}

int cairn_profile_folded(const struct cairn_profile *p, size_t type,
			 struct cairn_profile_bytes *ret, struct cairn_err *err)
{
	size_t n = cairn_profile_n_samples(p);
	struct writer w = {.p = p};
	struct line *lines;
	FILE *out;
	int rc = profile_check_type(p, type, err);

	*ret = (struct cairn_profile_bytes){0};
	if (rc < 0)
		return rc;
	lines = calloc(n + 1, sizeof(*lines));
	w.locations = calloc((size_t)cairn_profile_n_locations(p) + 1, sizeof(*w.locations));
	out = open_memstream((char **)&ret->bytes, &ret->size);
	rc = lines && w.locations && out ? fold_all(&w, type, lines) : -ENOMEM;
	if (rc == 0) {
		profile_fold_comments(p, out);
		rc = write_lines(lines, n, out, err);
	}
	if (out && fclose(out) != 0 && rc == 0)
		rc = -ENOMEM;
	for (size_t i = 0; lines && i < n; i++)
		free(lines[i].text);
	free(lines);
	writer_fini(&w);
	if (rc < 0) {
		free(ret->bytes);
		*ret = (struct cairn_profile_bytes){0};
	}
	return rc == -ENOMEM ? err_nomem(err, "the folded stacks") : rc;
}

/* ---- reading ---- */

struct reader {
	struct cairn_profile *p;
	uint32_t mappings[3]; /* by enum cairn_profile_code; 0: not there yet */
	VEC(uint32_t) stack;
	VEC(struct cairn_profile_line) lines;
};

static int mapping_of(struct reader *r, enum cairn_profile_code code, uint32_t *ret,
		      struct cairn_err *err)
{
	struct cairn_profile_mapping m = {.code = code};
	int rc = 0;

	m.path = code == CAIRN_PROFILE_KERNEL ? "[kernel.kallsyms]" : "[jit]";
	if (code != CAIRN_PROFILE_USER && !r->mappings[code])
		rc = cairn_profile_add_mapping(r->p, &m, &r->mappings[code], err);
	*ret = r->mappings[code];
	return rc;
}

/* The function that is out of line, and those that were inlined into it, which are kept already. */
static int end_location(struct reader *r, enum cairn_profile_code code, struct cairn_err *err)
{
	struct cairn_profile_location l = {.lines = r->lines.p, .n_lines = r->lines.n};
	uint32_t id;
	int rc = mapping_of(r, code, &l.mapping, err);

	if (rc == 0)
		rc = cairn_profile_add_location(r->p, &l, &id, err);
	if (rc == 0 && !VEC_ADD(&r->stack, id))
		rc = err_nomem(err, "the profile");
	r->lines.n = 0;
	return rc;
}

static int add_frame(struct reader *r, char *name, struct cairn_err *err)
{
	size_t n = strlen(name);
	enum cairn_profile_code code = CAIRN_PROFILE_USER;
	bool is_inlined = false;
	struct cairn_profile_line line = {0};
	int rc;

	if (n > 4 && name[n - 1] == ']' && !strncmp(name + n - 4, "_[", 2) &&
	    strchr("ikj", name[n - 2])) {
		is_inlined = name[n - 2] == 'i';
		code = name[n - 2] == 'k'   ? CAIRN_PROFILE_KERNEL
		       : name[n - 2] == 'j' ? CAIRN_PROFILE_JIT
					    : CAIRN_PROFILE_USER;
		name[n - 4] = '\0';
	}
	rc = cairn_profile_add_function(r->p, &(struct cairn_profile_function){.name = name},
					&line.function, err);
	if (rc == 0 && !VEC_ADD(&r->lines, line))
		rc = err_nomem(err, "the profile");
	return rc < 0 || is_inlined ? rc : end_location(r, code, err);
}

/* @text is one stack, which is written into. */
static int add_stack(struct reader *r, char *text, int64_t value, struct cairn_err *err)
{
	struct cairn_profile_sample s = {.values = &value};
	size_t n = strlen(text);
	int rc = 0;

	r->stack.n = r->lines.n = 0;
	/* From its end: the innermost frame is the first of a sample. */
	for (char *semicolon; rc == 0 && (semicolon = memrchr(text, ';', n));) {
		*semicolon = '\0';
		n = (size_t)(semicolon - text);
		rc = add_frame(r, semicolon + 1, err);
	}
	if (rc == 0)
		rc = add_frame(r, text, err);
	/* An outermost frame that claims to be inlined. */
	if (rc == 0 && r->lines.n)
		rc = end_location(r, CAIRN_PROFILE_USER, err);
	s.stack = r->stack.p;
	s.n_stack = r->stack.n;
	return rc < 0 ? rc : cairn_profile_add_sample(r->p, &s, err);
}

/* The number that ends a line, and the end of the stack before it; false: there is none. */
static bool split(char *line, int64_t *value)
{
	char *blank = strrchr(line, ' '), *end;

	if (!blank || blank == line || (!isdigit((unsigned char)blank[1]) && blank[1] != '-'))
		return false;
	errno = 0;
	*value = strtoll(blank + 1, &end, 10);
	*blank = '\0';
	return !errno && !*end;
}

static int read_line(struct reader *r, const char *at, size_t n, struct cairn_err *err)
{
	int64_t value;
	char *line;
	int rc;

	if (n > LINE_MAX_BYTES)
		return err_set(err, -ERANGE, "a stack of more than %u MiB", LINE_MAX_BYTES >> 20);
	if (memchr(at, '\0', n))
		return -EBADMSG;
	line = malloc(n + 1);
	if (!line)
		return err_nomem(err, "the profile");
	memcpy(line, at, n);
	line[n] = '\0';
	if (n && line[n - 1] == '\r')
		line[n - 1] = '\0';
	rc = split(line, &value) ? add_stack(r, line, value, err) : -EBADMSG;
	free(line);
	return rc;
}

static int read_lines(struct reader *r, const char *text, size_t size, const char *name,
		      struct cairn_err *err)
{
	unsigned long n = 0;
	int rc = 0;

	for (size_t at = 0, len; rc == 0 && at < size; at += len + 1) {
		const char *newline = memchr(text + at, '\n', size - at);

		len = newline ? (size_t)(newline - text) - at : size - at;
		n++;
		if (len && text[at] == '#')
			rc = profile_read_folded_comment(r->p, text + at, len, err);
		else if (len)
			rc = read_line(r, text + at, len, err);
	}
	if (rc == -EBADMSG)
		return err_set(err, rc, "%s:%lu: not a stack and a number: \"main;f;g 12\"", name,
			       n);
	return rc;
}

int profile_read_folded(const char *text, size_t size, const char *name, struct cairn_profile **ret,
			struct cairn_err *err)
{
	static const struct cairn_profile_type samples = {"samples", "count"};
	struct reader r = {0};
	int rc = cairn_profile_new(&samples, 1, &r.p, err);

	if (rc == 0)
		rc = read_lines(&r, text, size, name, err);
	VEC_FREE(&r.stack);
	VEC_FREE(&r.lines);
	if (rc < 0) {
		cairn_profile_close(r.p);
		r.p = NULL;
	}
	*ret = r.p;
	return rc;
}
