/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading a lock file
 *
 * Twice over the lines: first each type gets its node, so that a member may have a type that comes
 * later; then members and enumerators are read into them.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/layout/compare.h>

#include "base/err.h"
#include "base/map.h"
#include "base/quote.h"
#include "base/vec.h"
#include "types/build.h"

enum {
	/* A kernel's structs have some 100,000 members. */
	LINES_MAX = 1 << 22,
	DIMENSIONS_MAX_LOCKED = 64,
};

struct cairn_lock {
	struct cairn_types *types;
	const char *abi;
	VEC(uint32_t) ids;
};

/* Part of a line. */
struct span {
	const char *p;
	size_t n;
};

struct lock_reader {
	struct cairn_lock *lock;
	struct arena *arena;
	const char *name, *text, *end;
	struct cairn_err *err;
	unsigned long line;
	struct map by_name; /* hash of "struct event" to id */
	struct map scalars; /* hash of "u32" to id */
	/* The type that is being read. */
	uint32_t id;
	VEC(struct cairn_member) members;
	VEC(struct cairn_enumerator) enumerators;
};

#define complain(r, what) err_set((r)->err, -EBADMSG, "%s:%lu: %s", (r)->name, (r)->line, what)

/* ---- parts of lines ---- */

static bool span_is(struct span s, const char *word)
{
	return strlen(word) == s.n && !memcmp(s.p, word, s.n);
}

/* The first word, which is taken off. */
static struct span take_first(struct span *from)
{
	const char *blank = from->n ? memchr(from->p, ' ', from->n) : NULL;
	struct span word = {from->p, blank ? (size_t)(blank - from->p) : from->n};
	size_t used = word.n + (blank ? 1 : 0);

	from->p += used;
	from->n -= used;
	return word;
}

/* The last word, which is taken off. */
static struct span take_last(struct span *from)
{
	size_t at = from->n;

	while (at && from->p[at - 1] != ' ')
		at--;
	struct span word = {from->p + at, from->n - at};
	from->n = at ? at - 1 : 0;
	return word;
}

static bool number(struct span s, uint64_t *ret)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s.n; i++)
		if (!isdigit((unsigned char)s.p[i]) || __builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, s.p[i] - '0', &n))
			return false;
	*ret = n;
	return s.n;
}

/* Offsets and sizes in bits have to fit, too. */
static bool bytes(struct span s, uint64_t *ret)
{
	return number(s, ret) && *ret <= UINT64_C(1) << 40;
}

/* ---- types ---- */

static int add_type(struct lock_reader *r, const struct cairn_type *t, uint32_t *ret)
{
	*ret = types_reserve(r->lock->types);
	if (!*ret)
		return err_nomem(r->err, "types");
	types_set(r->lock->types, *ret, t);
	return 0;
}

static const struct scalar {
	const char *prefix;
	enum cairn_type_kind kind;
	enum cairn_type_encoding encoding;
} scalar_words[] = {
	{"ptr", CAIRN_T_PTR, 0},
	{"raw", CAIRN_T_UNSPECIFIED, 0},
	{"bool", CAIRN_T_INT, CAIRN_ENC_BOOL},
	{"u", CAIRN_T_INT, CAIRN_ENC_UNSIGNED},
	{"s", CAIRN_T_INT, CAIRN_ENC_SIGNED},
	{"f", CAIRN_T_FLOAT, 0},
	{"c", CAIRN_T_FLOAT, CAIRN_ENC_COMPLEX},
};

/* u32, f64; the "swapped" before it was read. 0 and no error: it is none. */
static int scalar(struct lock_reader *r, struct span s, bool swapped, uint32_t *ret)
{
	uint64_t key = map_hash_bytes(s.p, s.n) + swapped, known, bits;

	*ret = 0;
	if (map_get(&r->scalars, key, &known)) {
		*ret = (uint32_t)known;
		return 0;
	}
	for (size_t i = 0; i < sizeof(scalar_words) / sizeof(scalar_words[0]); i++) {
		const struct scalar *w = &scalar_words[i];
		size_t n = strlen(w->prefix);

		if (s.n <= n || memcmp(s.p, w->prefix, n) ||
		    !bytes((struct span){s.p + n, s.n - n}, &bits))
			continue;
		struct cairn_type t = {.kind = w->kind,
				       .encoding = w->encoding,
				       .size = bits / 8,
				       .byte_swapped = swapped};
		t.name = w->kind == CAIRN_T_PTR ? NULL : arena_strndup(r->arena, s.p, s.n);
		if ((!t.name && t.kind != CAIRN_T_PTR) ||
		    (!add_type(r, &t, ret) && map_put(&r->scalars, key, *ret) < 0))
			return err_nomem(r->err, "types");
		return *ret ? 0 : -ENOMEM;
	}
	return 0;
}

/* "[4]" at the end, which is taken off; false: there is none. */
static bool take_dimension(struct span *from, bool *ret_counted, uint64_t *ret_count)
{
	size_t at = from->n;

	if (!at || from->p[at - 1] != ']')
		return false;
	while (at && from->p[at - 1] != '[')
		at--;
	struct span inside = {from->p + at, from->n - 1 - at};
	*ret_counted = inside.n;
	*ret_count = 0;
	if (!at || (inside.n && !bytes(inside, ret_count)))
		return false;
	from->n = at - 1;
	return true;
}

static uint64_t name_key(struct span word, struct span name)
{
	return map_hash_bytes(name.p, name.n) ^ (uint64_t)(unsigned char)word.p[0] << 56;
}

static int named(struct lock_reader *r, struct span s, uint32_t *ret)
{
	struct span rest = s, word = take_first(&rest);
	bool swapped = span_is(word, "swapped");
	uint64_t id;
	int rc;

	if (span_is(word, "struct") || span_is(word, "union") || span_is(word, "enum")) {
		*ret = map_get(&r->by_name, name_key(word, rest), &id) ? (uint32_t)id : 0;
		return *ret ? 0 : complain(r, "a type that is not in this file");
	}
	rc = scalar(r, swapped ? rest : s, swapped, ret);
	return rc ? rc : *ret ? 0 : complain(r, "expected a type, as u32, char[16] or struct NAME");
}

static int read_type(struct lock_reader *r, struct span s, uint32_t *ret)
{
	struct {
		bool counted;
		uint64_t count;
	} dims[DIMENSIONS_MAX_LOCKED];
	size_t n = 0;
	int rc;

	while (n < DIMENSIONS_MAX_LOCKED && take_dimension(&s, &dims[n].counted, &dims[n].count))
		n++;
	rc = named(r, s, ret);
	for (size_t i = 0; i < n && !rc; i++) {
		struct cairn_type t = {.kind = CAIRN_T_ARRAY,
				       .ref = *ret,
				       .has_count = dims[i].counted,
				       .count = dims[i].count};

		if (__builtin_mul_overflow(t.count, cairn_types_get(r->lock->types, *ret)->size,
					   &t.size) ||
		    t.size > UINT64_C(1) << 40)
			return complain(r, "an array of more than 2^40 bytes");
		rc = add_type(r, &t, ret);
	}
	return rc;
}

/* ---- lines ---- */

/* "24", "24:3+5"; "?" for an offset that is not known */
static int read_place(struct lock_reader *r, struct span s, struct cairn_member *m)
{
	const char *colon = memchr(s.p, ':', s.n), *plus = memchr(s.p, '+', s.n);
	uint64_t off = 0, bit = 0, width = 0;
	struct span whole = {s.p, colon ? (size_t)(colon - s.p) : s.n};

	m->dynamic = span_is(whole, "?");
	if ((!m->dynamic && !bytes(whole, &off)) || !colon != !plus || plus < colon ||
	    (colon &&
	     (!number((struct span){colon + 1, (size_t)(plus - colon - 1)}, &bit) || bit > 7 ||
	      !number((struct span){plus + 1, (size_t)(s.p + s.n - plus - 1)}, &width) || !width ||
	      width > 128)))
		return complain(r, "expected an offset, as 24 or 24:3+5");
	m->bit_off = m->dynamic ? 0 : 8 * off + bit;
	m->bit_size = (uint32_t)width;
	return 0;
}

static int read_member(struct lock_reader *r, struct span line)
{
	struct span place = take_first(&line), name = take_first(&line);
	struct cairn_member m = {0};
	int rc = read_place(r, place, &m);

	rc = rc ? rc : read_type(r, line, &m.type);
	if (rc)
		return rc;
	m.name = arena_unquote(r->arena, name.p, name.n);
	return m.name && VEC_ADD(&r->members, m) ? 0 : err_nomem(r->err, "members");
}

static int read_enumerator(struct lock_reader *r, struct span line)
{
	struct span name = take_first(&line);
	bool negative = line.n && *line.p == '-';
	uint64_t value;

	if (!number((struct span){line.p + negative, line.n - negative}, &value))
		return complain(r, "expected the value of an enumerator");
	struct cairn_enumerator e = {arena_unquote(r->arena, name.p, name.n),
				     (int64_t)(negative ? -value : value)};
	return e.name && VEC_ADD(&r->enumerators, e) ? 0 : err_nomem(r->err, "enumerators");
}

/* The node of the type that ends here. */
static int close_type(struct lock_reader *r)
{
	struct cairn_type t = *cairn_types_get(r->lock->types, r->id);
	struct cairn_member *members = arena_array(r->arena, r->members.n + 1, sizeof(*members));
	struct cairn_enumerator *enumerators =
		arena_array(r->arena, r->enumerators.n + 1, sizeof(*enumerators));

	if (!r->id)
		return 0;
	if (!members || !enumerators)
		return err_nomem(r->err, "types");
	for (size_t i = 0; i < r->members.n; i++)
		members[i] = r->members.p[i];
	for (size_t i = 0; i < r->enumerators.n; i++)
		enumerators[i] = r->enumerators.p[i];
	t.members = members;
	t.n_members = (uint32_t)r->members.n;
	t.enumerators = enumerators;
	t.n_enumerators = (uint32_t)r->enumerators.n;
	types_set(r->lock->types, r->id, &t);
	r->members.n = r->enumerators.n = 0;
	return 0;
}

/* "struct NAME 24", "enum NAME u32" */
static int declare(struct lock_reader *r, struct span line)
{
	struct span word = take_first(&line);
	bool inner = span_is(word, "inner");
	struct cairn_type t = {0};
	uint32_t id;

	if (inner)
		word = take_first(&line);
	struct span size = take_last(&line);
	t.kind = span_is(word, "struct")  ? CAIRN_T_STRUCT
		 : span_is(word, "union") ? CAIRN_T_UNION
					  : CAIRN_T_ENUM;
	bool sized = t.kind == CAIRN_T_ENUM
			     ? size.n && bytes((struct span){size.p + 1, size.n - 1}, &t.size)
			     : bytes(size, &t.size);
	if (!sized || !line.n || (t.kind == CAIRN_T_ENUM && !span_is(word, "enum")))
		return complain(r, "expected \"struct NAME BYTES\", \"union NAME BYTES\" or \"enum "
				   "NAME u32\"");
	if (t.kind == CAIRN_T_ENUM) {
		t.size /= 8;
		t.encoding = *size.p == 's' ? CAIRN_ENC_SIGNED : CAIRN_ENC_UNSIGNED;
	}
	t.name = arena_unquote(r->arena, line.p, line.n);
	if (!t.name || add_type(r, &t, &id) || map_put(&r->by_name, name_key(word, line), id) < 0 ||
	    (!inner && !VEC_ADD(&r->lock->ids, id)))
		return err_nomem(r->err, "types");
	return 0;
}

/*
 * The first pass declares, the second reads the contents: then types come in the order of their
 * ids.
 */
static int read_line(struct lock_reader *r, struct span line, bool second)
{
	if (!line.n || *line.p == '#')
		return 0;
	if (*line.p == '\t') {
		line.p++;
		line.n--;
		if (!second)
			return 0;
		if (!r->id)
			return complain(r, "a member of nothing");
		return cairn_types_get(r->lock->types, r->id)->kind == CAIRN_T_ENUM
			       ? read_enumerator(r, line)
			       : read_member(r, line);
	}
	if (line.n > 4 && !memcmp(line.p, "abi ", 4)) {
		if (!r->lock->abi)
			r->lock->abi = arena_strndup(r->arena, line.p + 4, line.n - 4);
		return r->lock->abi ? 0 : err_nomem(r->err, "a lock file");
	}
	if (!second)
		return declare(r, line);
	int rc = close_type(r);
	r->id++;
	return rc;
}

static int read_lines(struct lock_reader *r, bool second)
{
	const char *p = r->text;
	int rc = 0;

	for (r->line = 1; p < r->end && !rc; r->line++) {
		const char *stop = memchr(p, '\n', (size_t)(r->end - p));
		size_t n = (size_t)((stop ? stop : r->end) - p);

		if (r->line > LINES_MAX)
			return err_set(r->err, -ERANGE, "%s: more than %d lines", r->name,
				       LINES_MAX);
		rc = read_line(r, (struct span){p, n}, second);
		p += n + 1;
	}
	return rc;
}

static int check_version(const struct lock_reader *r)
{
	static const char first[] = "# cairn layout lock ";
	size_t n = sizeof(first) - 1;

	if ((size_t)(r->end - r->text) < n + 1 || memcmp(r->text, first, n))
		return err_set(r->err, -EBADMSG, "%s:1: expected \"%s1\": this is no lock file",
			       r->name, first);
	bool known = r->text[n] == '1' &&
		     ((size_t)(r->end - r->text) == n + 1 || r->text[n + 1] == '\n');
	return known ? 0 : err_set(r->err, -EOPNOTSUPP, "%s:1: a later version than 1", r->name);
}

int cairn_lock_read(const char *text, size_t size, const char *name, struct cairn_lock **ret,
		    struct cairn_err *err)
{
	struct cairn_lock *lock = calloc(1, sizeof(*lock));
	struct lock_reader r = {
		.lock = lock, .name = name, .text = text, .end = text + size, .err = err};
	int rc = 0;

	if (lock)
		lock->types = types_new();
	if (!lock || !lock->types) {
		cairn_lock_free(lock);
		return err_nomem(err, "a lock file");
	}
	r.arena = types_arena(lock->types);
	rc = check_version(&r);
	rc = rc ? rc : read_lines(&r, false);
	rc = rc ? rc : read_lines(&r, true);
	rc = rc ? rc : close_type(&r);
	map_fini(&r.by_name);
	map_fini(&r.scalars);
	VEC_FREE(&r.members);
	VEC_FREE(&r.enumerators);
	if (rc) {
		cairn_lock_free(lock);
		return rc;
	}
	*ret = lock;
	return 0;
}

void cairn_lock_free(struct cairn_lock *lock)
{
	if (!lock)
		return;
	types_free(lock->types);
	VEC_FREE(&lock->ids);
	free(lock);
}

const struct cairn_types *cairn_lock_types(const struct cairn_lock *lock)
{
	return lock->types;
}

const char *cairn_lock_abi(const struct cairn_lock *lock)
{
	return lock->abi;
}

const uint32_t *cairn_lock_ids(const struct cairn_lock *lock, size_t *ret_n)
{
	*ret_n = lock->ids.n;
	return lock->ids.p;
}
