/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An entry of a list may be freed and made anew at the same address, with a file of the same size.
 * So the bytes are compared, by their hash. They may be those of before although there were others
 * in between. So after a look that finds anything replaced, nothing of the list is believed for the
 * time since the look before. The list is doubted until the look after, too: a look in the middle
 * of a change may know one entry of many, and that one may be the same again by chance.
 *
 * A jitdump is only appended to, so each function is seen, but not when its code was written: a JIT
 * that uses addresses again may have done so before it wrote the record. So nothing more is
 * believed of a dump in which two functions have had one address.
 */
#include "walk/made.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "code/jitdump.h"
#include "code/symfile.h"

enum {
	MAX_ENTRIES = 1024,       /* of a list: a read each */
	MAX_LOOK_BYTES = 4 << 20, /* of symbol files, and of a dump's records, at one look */
	MAX_SPANS = 1 << 20,      /* of one source */
	MAX_ROWS = 1 << 20,
	MAX_DUMP_BYTES = 64 << 20,
};

/* ---- rows of one FDE ---- */

struct taking {
	struct made_rows *to;
	struct walk_tables *tables;
	uint64_t moved; /* by how much the code lies elsewhere than the FDE says */
};

static int take_rule(void *ctx, uint64_t lo, uint64_t hi, const struct rule_words *rule)
{
	struct taking *t = ctx;
	uint16_t number;
	int rc =
		tables_made_rule(t->tables, (const struct cairn_unwind_rule *)rule->words, &number);

	(void)hi;
	if (rc == 0 && t->to->rows.n >= MAX_ROWS)
		return -ENOSPC;
	if (rc == 0 && !VEC_ADD(&t->to->rows, ((struct made_row){lo + t->moved, number})))
		rc = -ENOMEM;
	return rc;
}

/* One that is damaged describes nothing. */
static int take_fde(struct taking *t, const struct eh_block *eh, size_t i)
{
	size_t first = t->to->rows.n;
	struct made_span span = {.first = (uint32_t)first};
	int rc = eh_block_rules(eh, i, take_rule, t);

	if (rc < 0)
		t->to->rows.n = first;
	eh_block_fde(eh, i, &span.lo, &span.hi);
	span.lo += t->moved;
	span.hi += t->moved;
	span.n = (uint32_t)(t->to->rows.n - first);
	if (rc == -ENOMEM || rc == -ENOSPC)
		return rc;
	return !span.n || span.lo >= span.hi || VEC_ADD(&t->to->spans, span) ? 0 : -ENOMEM;
}

/* 0, -ENOMEM, or -ENOSPC when there are too many. */
static int take_block(struct taking *t, const struct eh_block *eh)
{
	int rc = 0;

	for (size_t i = 0; eh && i < eh_block_n_fdes(eh) && rc == 0; i++)
		rc = t->to->spans.n < MAX_SPANS ? take_fde(t, eh, i) : -ENOSPC;
	return rc;
}

static void rows_fini(struct made_rows *rows)
{
	VEC_FREE(&rows->spans);
	VEC_FREE(&rows->rows);
}

/* ---- GDB's lists ---- */

struct reading {
	struct made_code *made;
	struct walk_tables *tables;
	struct code_memory memory;
	uint64_t budget;
	bool is_changed, is_behind;
};

/* The hash of its bytes; false: it cannot be read, or not now. */
static bool hash_symfile(struct reading *r, const struct gdb_entry *e, uint64_t *ret, int *rc)
{
	if (e->size > r->budget)
		return false;
	r->budget -= e->size;
	uint8_t *bytes = malloc(e->size ? e->size : 1);
	bool is_read = bytes && code_memory_all(&r->memory, e->symfile, bytes, e->size);
	*rc = bytes ? 0 : -ENOMEM;
	if (is_read)
		*ret = map_hash_bytes(bytes, e->size);
	free(bytes);
	return is_read;
}

/* .eh_frame comes after .debug_frame, so that it counts. */
static int take_symfile(struct reading *r, struct made_symfile *to, const struct symfile *s)
{
	struct taking t = {&to->rows, r->tables, 0};
	int rc = take_block(&t, s->debug_frame);

	return rc ? rc : take_block(&t, s->eh);
}

static int read_symfile(struct reading *r, struct made_symfile *to)
{
	struct symfile *s = NULL;
	int rc = 0;

	if (to->entry.size > r->budget) {
		r->made->is_cut = true;
		return 0;
	}
	r->budget -= to->entry.size;
	rc = symfile_new(&r->memory, to->entry.symfile, to->entry.size, &s, NULL);
	to->is_read = true;
	if (rc == 0)
		to->hash = map_hash_bytes(s->bytes, s->size);
	/* Its bytes are those of the entry if that has not changed meanwhile. */
	if (rc == 0 && gdb_entry_is_same(&r->memory, &to->entry))
		rc = take_symfile(r, to, s);
	symfile_free(s);
	r->is_changed |= to->rows.spans.n > 0;
	r->made->is_cut |= rc == -ENOSPC;
	return rc == -ENOMEM ? rc : 0;
}

static bool is_entry(const struct gdb_entry *a, const struct gdb_entry *b)
{
	return a->at == b->at && a->symfile == b->symfile && a->size == b->size;
}

/* Code may have been others in [lo, hi). */
static int touch(struct reading *r, uint64_t lo, uint64_t hi)
{
	return lo >= hi || VEC_ADD(&r->made->touched, ((struct made_interval){lo, hi})) ? 0
											: -ENOMEM;
}

static int touch_list(struct reading *r, struct made_list *list)
{
	struct made_interval all = {UINT64_MAX, 0};

	for (size_t i = 0; i < list->symfiles.n; i++) {
		const struct made_rows *rows = &list->symfiles.p[i].rows;
		for (size_t k = 0; k < rows->spans.n; k++) {
			const struct made_span *s = &rows->spans.p[k];
			all.lo = s->lo < all.lo ? s->lo : all.lo;
			all.hi = s->hi > all.hi ? s->hi : all.hi;
		}
	}
	list->is_unsteady = true;
	r->is_changed |= all.lo < all.hi;
	return touch(r, all.lo, all.hi);
}

static void forget_symfile(struct reading *r, struct made_symfile *s)
{
	r->is_changed |= s->rows.spans.n > 0;
	rows_fini(&s->rows);
	*s = (struct made_symfile){.entry = s->entry};
}

/* Whether what was read of the entry before has other bytes now. */
static bool has_other_bytes(struct reading *r, const struct made_symfile *s, int *rc)
{
	uint64_t hash;

	if (!s->is_read)
		return false;
	/* Too large to be looked at is too large to be believed: hash_symfile() says no. */
	return !hash_symfile(r, &s->entry, &hash, rc) || hash != s->hash;
}

static int check_entries(struct reading *r, struct made_list *list)
{
	bool is_touched = false;
	int rc = 0;

	for (size_t i = 0; i < list->symfiles.n && rc == 0; i++) {
		if (!has_other_bytes(r, &list->symfiles.p[i], &rc) || rc)
			continue;
		rc = is_touched ? 0 : touch_list(r, list);
		is_touched = true;
		forget_symfile(r, &list->symfiles.p[i]);
	}
	return rc;
}

/* By the address of the entry. */
static int by_address(const void *a, const void *b)
{
	const struct made_symfile *x = a, *y = b;

	return x->entry.at < y->entry.at ? -1 : x->entry.at > y->entry.at;
}

/* The entries as they are now, with what is known of them. @old is sorted, and loses those. */
static int take_entries(struct made_list *list, struct made_list *old, const struct gdb_list *now)
{
	for (size_t i = 0; i < now->entries.n; i++) {
		struct made_symfile s = {.entry = now->entries.p[i]}, *known;
		known = old->symfiles.n ? bsearch(&s, old->symfiles.p, old->symfiles.n, sizeof(s),
						  by_address)
					: NULL;
		if (known && is_entry(&known->entry, &s.entry)) {
			s = *known;
			*known = (struct made_symfile){.entry = s.entry};
		}
		if (!VEC_ADD(&list->symfiles, s)) {
			rows_fini(&s.rows);
			return -ENOMEM;
		}
	}
	return 0;
}

/* Whether the order is another one, too: the first of two that overlap counts. */
static bool is_same_list(const struct made_list *list, const struct gdb_list *now)
{
	if (list->symfiles.n != now->entries.n)
		return false;
	for (size_t i = 0; i < now->entries.n; i++)
		if (!is_entry(&list->symfiles.p[i].entry, &now->entries.p[i]))
			return false;
	return true;
}

static void list_fini(struct made_list *list)
{
	for (size_t i = 0; i < list->symfiles.n; i++)
		rows_fini(&list->symfiles.p[i].rows);
	VEC_FREE(&list->symfiles);
}

/* Whether there are only more entries than there were: they come first. */
static bool has_only_more(const struct made_list *list, const struct gdb_list *now)
{
	size_t more = now->entries.n - list->symfiles.n;

	if (now->entries.n < list->symfiles.n)
		return false;
	for (size_t i = 0; i < list->symfiles.n; i++)
		if (!is_entry(&list->symfiles.p[i].entry, &now->entries.p[more + i]))
			return false;
	return true;
}

static int replace_entries(struct reading *r, struct made_list *list, const struct gdb_list *now)
{
	struct made_list old;
	int rc;

	if (is_same_list(list, now))
		return 0;
	rc = has_only_more(list, now) ? 0 : touch_list(r, list);
	if (rc)
		return rc;
	r->is_changed = true;
	old = *list;
	memset(&list->symfiles, 0, sizeof(list->symfiles));
	if (old.symfiles.n)
		qsort(old.symfiles.p, old.symfiles.n, sizeof(*old.symfiles.p), by_address);
	rc = take_entries(list, &old, now);
	list_fini(&old);
	return rc;
}

/* The entries are the same, but something was added and removed meanwhile. */
static int look_at_head(struct reading *r, struct made_list *list, const struct gdb_list *now)
{
	uint64_t head[3];

	if (!code_memory_all(&r->memory, list->descriptor, head, sizeof(head)) ||
	    !memcmp(head, list->head, sizeof(head)))
		return 0;
	memcpy(list->head, head, sizeof(head));
	return is_same_list(list, now) ? touch_list(r, list) : 0;
}

static int read_list(struct reading *r, struct made_list *list)
{
	struct gdb_list now = {0};
	int rc = gdb_list_read(&r->memory, list->descriptor, MAX_ENTRIES, &now);
	bool is_long = now.entries.n == MAX_ENTRIES;

	r->made->is_cut |= rc == 0 && is_long;
	rc = rc || !list->is_unsteady ? rc : touch_list(r, list);
	/* What the look before has found counts once. A list that is too long is no change. */
	list->is_unsteady = now.why && !is_long;
	rc = rc ? rc : look_at_head(r, list, &now);
	rc = rc ? rc : replace_entries(r, list, &now);
	rc = rc ? rc : check_entries(r, list);
	for (size_t i = 0; i < list->symfiles.n && rc == 0; i++)
		if (!list->symfiles.p[i].is_read)
			rc = read_symfile(r, &list->symfiles.p[i]);
	VEC_FREE(&now.entries);
	return rc;
}

static struct made_list *list_at(struct made_code *made, uint64_t descriptor)
{
	for (size_t i = 0; i < made->lists.n; i++)
		if (made->lists.p[i].descriptor == descriptor)
			return &made->lists.p[i];
	struct made_list *new = VEC_PUSH(&made->lists);
	if (new)
		new->descriptor = descriptor;
	return new;
}

/* A list of a library that is not there any more. */
static int forget_lists(struct reading *r, const struct made_sources *from)
{
	size_t to = 0;
	int rc = 0;

	for (size_t i = 0; i < r->made->lists.n; i++) {
		struct made_list *list = &r->made->lists.p[i];
		bool is_there = false;
		for (size_t k = 0; k < from->descriptors.n; k++)
			is_there |= from->descriptors.p[k] == list->descriptor;
		if (is_there || rc) {
			r->made->lists.p[to++] = *list;
			continue;
		}
		rc = touch_list(r, list);
		list_fini(list);
		r->is_changed = true;
	}
	r->made->lists.n = to;
	return rc;
}

static int read_lists(struct reading *r, const struct made_sources *from)
{
	int rc = forget_lists(r, from);

	for (size_t i = 0; i < from->descriptors.n && rc == 0; i++) {
		struct made_list *list = list_at(r->made, from->descriptors.p[i]);
		rc = list ? read_list(r, list) : -ENOMEM;
	}
	return rc;
}

/* ---- jitdumps ---- */

/* A function without rows hides those of an earlier one at its address. */
static int take_function(struct taking *t, const struct jitdump *d,
			 const struct jitdump_function *f)
{
	struct made_span own = {f->lo, f->hi, 0, 0};
	struct eh_block *eh;

	if (t->to->spans.n >= MAX_SPANS)
		return -ENOSPC;
	int rc = VEC_ADD(&t->to->spans, own) ? jitdump_rows(d, f, &eh) : -ENOMEM;
	if (rc < 0)
		return rc;
	t->moved = f->lo - f->written;
	rc = take_block(t, eh);
	eh_block_close(eh);
	return rc;
}

/* Nothing of it is known any more, and what was known may not hold. */
static int forget_dump(struct reading *r, struct made_dump *to)
{
	int rc = 0;

	for (size_t i = 0; i < to->rows.spans.n && rc == 0; i++)
		rc = touch(r, to->rows.spans.p[i].lo, to->rows.spans.p[i].hi);
	r->is_changed |= to->rows.spans.n > 0;
	rows_fini(&to->rows);
	VEC_FREE(&to->code);
	to->n_known = 0;
	return rc;
}

/* Not looked at again. */
static int give_up(struct reading *r, struct made_dump *to)
{
	int rc = forget_dump(r, to);

	r->made->is_cut = true;
	to->n_known = SIZE_MAX;
	return rc;
}

static int by_begin(const void *a, const void *b)
{
	const struct made_interval *x = a, *y = b;

	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static struct made_interval interval_of(const struct jitdump_function *f)
{
	return (struct made_interval){f->lo, f->hi};
}

/* Puts the @n intervals of @sorted into the list, from the end on. Whether two have one address. */
static bool merge(struct made_dump *to, const struct made_interval *sorted, size_t n)
{
	struct made_interval *at = to->code.p + to->code.n + n;
	size_t n_old = to->code.n;
	uint64_t next = UINT64_MAX;
	bool found = false;

	to->code.n += n;
	while (n_old || n) {
		bool is_old = n_old && (!n || by_begin(&to->code.p[n_old - 1], &sorted[n - 1]) > 0);
		*--at = is_old ? to->code.p[--n_old] : sorted[--n];
		found |= next < at->hi;
		next = at->lo;
	}
	return found;
}

/* Whether two of its functions have had one address; 1, 0, -ENOMEM. Only new ones are sorted. */
static int replaces_code(struct made_dump *to, const struct jitdump *d)
{
	if (d->functions.n < to->code.n)
		to->code.n = 0;
	size_t n_known = to->code.n, n = d->functions.n - n_known;
	SCOPE_FREE struct made_interval *sorted = malloc((n ? n : 1) * sizeof(*sorted));

	if (!sorted || !VEC_RESERVE(&to->code, n))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sorted[i] = interval_of(&d->functions.p[n_known + i]);
	qsort(sorted, n, sizeof(*sorted), by_begin);
	return merge(to, sorted, n);
}

static int take_functions(struct reading *r, struct made_dump *to, const struct jitdump *d)
{
	struct taking t = {&to->rows, r->tables, 0};
	int rc = to->n_known < d->functions.n ? replaces_code(to, d) : 0;

	if (rc)
		return rc < 0 ? rc : give_up(r, to);

	for (; to->n_known < d->functions.n && rc == 0; to->n_known++) {
		const struct jitdump_function *f = &d->functions.p[to->n_known];
		if (f->eh_size > r->budget && r->budget < MAX_LOOK_BYTES)
			break;
		if (f->eh_size > r->budget) {
			rc = -ENOSPC;
			break;
		}
		r->budget -= f->eh_size;
		rc = take_function(&t, d, f);
		rc = rc ? rc : touch(r, f->lo, f->hi);
		r->is_changed = true;
	}
	/* The rest comes at the next look; until then it may replace what is known. */
	to->is_behind = to->n_known < d->functions.n;
	r->is_behind |= to->is_behind;
	return rc == -ENOSPC ? give_up(r, to) : rc;
}

static bool is_longer(const struct stat *now, const struct stat *before)
{
	return now->st_dev == before->st_dev && now->st_ino == before->st_ino &&
	       now->st_size >= before->st_size;
}

/* The bytes of the file as it is now. */
static int take_bytes(struct reading *r, struct made_dump *to, struct process_file *file)
{
	struct jitdump d = {0};
	int rc = jitdump_parse((uint8_t *)file->bytes, file->n, &d, NULL);

	if (rc == 0 && (to->n_known || to->code.n) &&
	    (!is_longer(&file->st, &to->st) || d.functions.n < to->n_known))
		rc = forget_dump(r, to);
	to->st = file->st;
	if (rc == 0)
		rc = take_functions(r, to, &d);
	jitdump_fini(&d);
	return rc == -ENOMEM ? rc : 0;
}

static int read_dump(struct reading *r, struct made_dump *to, int pid)
{
	struct process_file file;
	bool is_same;
	int rc;

	if (to->n_known == SIZE_MAX)
		return 0;
	rc = process_file_read(pid, to->path, MAX_DUMP_BYTES,
			       to->st.st_ino && !to->is_behind ? &to->st : NULL, &file, &is_same,
			       NULL);
	if (rc == -ENOMEM || is_same)
		return rc;
	/* It cannot be read, or not any more. */
	if (rc < 0 || !file.bytes)
		return rc == -ERANGE ? give_up(r, to) : forget_dump(r, to);
	return take_bytes(r, to, &file);
}

static struct made_dump *dump_of(struct made_code *made, const char *path)
{
	for (size_t i = 0; i < made->dumps.n; i++)
		if (!strcmp(made->dumps.p[i].path, path))
			return &made->dumps.p[i];
	struct made_dump *new = VEC_PUSH(&made->dumps);
	if (new)
		new->path = strdup(path);
	if (new && !new->path)
		made->dumps.n--;
	return new &&new->path ? new : NULL;
}

static int read_dumps(struct reading *r, const struct made_sources *from)
{
	int rc = 0;

	for (size_t i = 0; i < from->dumps.n && rc == 0; i++) {
		struct made_dump *d = dump_of(r->made, from->dumps.p[i]);
		rc = d ? read_dump(r, d, from->pid) : -ENOMEM;
	}
	return rc;
}

/* ---- all ---- */

int made_read(struct made_code *made, const struct made_sources *from, struct walk_tables *tables,
	      bool *ret_changed)
{
	struct reading r = {.made = made,
			    .tables = tables,
			    .memory = code_memory_of_process(from->pid),
			    .budget = MAX_LOOK_BYTES};
	int rc = read_lists(&r, from);

	r.budget = MAX_LOOK_BYTES;
	rc = rc ? rc : read_dumps(&r, from);
	made->is_behind = r.is_behind;
	*ret_changed = r.is_changed;
	return rc;
}

void made_free(struct made_code *made)
{
	if (!made)
		return;
	for (size_t i = 0; i < made->lists.n; i++)
		list_fini(&made->lists.p[i]);
	for (size_t i = 0; i < made->dumps.n; i++) {
		rows_fini(&made->dumps.p[i].rows);
		VEC_FREE(&made->dumps.p[i].code);
		free(made->dumps.p[i].path);
	}
	VEC_FREE(&made->lists);
	VEC_FREE(&made->dumps);
	VEC_FREE(&made->rows);
	VEC_FREE(&made->pages);
	VEC_FREE(&made->touched);
	free(made);
}
