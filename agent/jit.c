/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A region and the elements published in it
 *
 * Three chains (jit_chain.c) of the same form: rows, symbols, lines. A function is published in the
 * order lines, symbols, rows, so that a reader that finds how to unwind it also finds its name; all
 * of that is before its code can run. In the common case each of the three is some stores and one
 * store-release.
 *
 * When one of the chains has to be split, or gets its first table, the region is registered anew:
 * one new epoch for all three. Until that has worked, no reader can see a difference, so every
 * failure leaves the old state.
 */
#include <cairn/jit/jit.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jit_chain.h"
#include "process.h"

struct cairn_jit {
	uint64_t text, n_bytes;
	uint32_t flags;
	char *name;
	struct jit_pool pool;
	struct jit_chain chains[JIT_N_KINDS];
};

/* The function to publish: at addresses [lo, hi) of the region. */
struct function {
	uint64_t lo, hi;
	const struct cairn_jit_frame *frame;
	const struct cairn_jit_info *info; /* the caller's, or own */
	struct cairn_jit_info own;
	uint32_t rest; /* bytes of the rule that holds at the end */
	size_t n[JIT_N_KINDS];
};

static const struct cairn_jit_info no_info;

static uint64_t address(const void *p)
{
	return (uintptr_t)p;
}

/* ---- registration ---- */

static struct code_jit_info registration(const struct cairn_jit *jit)
{
	return (struct code_jit_info){
		.text_start = jit->text,
		.text_end = jit->text + jit->n_bytes,
		.extended = CODE_JIT_EXTENDED,
		.unwind_head = address(jit_chain_head(&jit->chains[JIT_ROWS])),
		.symbols_head = address(jit_chain_head(&jit->chains[JIT_SYMBOLS])),
		.lines_head = address(jit_chain_head(&jit->chains[JIT_LINES])),
		.flags = jit->flags & CAIRN_JIT_FRAME_POINTERS ? CODE_JIT_FRAME_POINTER : 0,
		.name = address(jit->name),
	};
}

static int register_region(struct cairn_jit *jit)
{
	struct code_jit_info info = registration(jit);
	struct codectl_request request;
	struct registry_writer *w;
	int rc = codectl_read_request(CODE_REGISTER_JIT, &info, sizeof(info), &request);
	if (rc == 0)
		rc = process_enter(&w);
	if (rc < 0)
		return rc;
	rc = registry_writer_add(w, &request);
	process_leave();
	return rc;
}

static void free_name(void *ctx, const void *element)
{
	const struct code_jit_symbol *symbol = element;
	free((void *)(uintptr_t)symbol->name);
}

static void splice(void *ctx)
{
	struct cairn_jit *jit = ctx;
	for (int kind = 0; kind < JIT_N_KINDS; kind++)
		jit_chain_splice(&jit->chains[kind]);
}

static void cancel(struct cairn_jit *jit)
{
	for (int kind = 0; kind < JIT_N_KINDS; kind++)
		jit_chain_cancel(&jit->chains[kind]);
}

/* The plans become the chains, under a new epoch. */
static int renew(struct cairn_jit *jit)
{
	struct code_jit_info info = registration(jit);
	struct registry_writer *w;
	int rc = process_enter(&w);
	if (rc < 0)
		return rc;
	rc = registry_writer_renew(w, &info, splice, jit);
	process_leave();
	for (int kind = 0; rc == 0 && kind < JIT_N_KINDS; kind++) {
		bool owns = kind == JIT_SYMBOLS && jit->flags & CAIRN_JIT_COPY_NAMES;
		jit_chain_finish(&jit->chains[kind], owns ? free_name : NULL, NULL);
	}
	return rc;
}

/*
 * A struct that begins with its size, up to the known members; false when there is more and that is
 * not 0.
 */
static bool take_struct(void *to, size_t known, const void *from)
{
	const uint8_t *bytes = from;
	size_t size = *(const size_t *)from;
	for (size_t i = known; i < size; i++)
		if (bytes[i])
			return false;
	memset(to, 0, known);
	memcpy(to, from, size < known ? size : known);
	return true;
}

int cairn_jit_open(const void *text, size_t n_bytes, const struct cairn_jit_opts *opts,
		   struct cairn_jit **ret)
{
	const uint32_t known = CAIRN_JIT_COPY_NAMES | CAIRN_JIT_FRAME_POINTERS;
	struct cairn_jit_opts o = {0};
	if (opts && (!take_struct(&o, sizeof(o), opts) || o.flags & ~known))
		return -EINVAL;
	struct cairn_jit *jit = calloc(1, sizeof(*jit));
	if (!jit)
		return -ENOMEM;
	jit->text = address(text);
	jit->n_bytes = n_bytes;
	jit->flags = o.flags;
	for (int kind = 0; kind < JIT_N_KINDS; kind++)
		jit_chain_init(&jit->chains[kind], (enum jit_kind)kind, &jit->pool, n_bytes);
	int rc = -ENOMEM;
	if (!o.name || (jit->name = strdup(o.name)))
		rc = jit_chain_find_room(&jit->chains[JIT_ROWS], 0, 0, 1);
	if (rc == 1)
		rc = register_region(jit);
	if (rc < 0) {
		jit_pool_fini(&jit->pool);
		jit_chain_fini(&jit->chains[JIT_ROWS]);
		free(jit->name);
		free(jit);
		return rc;
	}
	jit_chain_finish(&jit->chains[JIT_ROWS], NULL, NULL);
	*ret = jit;
	return 0;
}

void cairn_jit_close(struct cairn_jit *jit)
{
	struct registry_writer *w;
	if (!jit)
		return;
	/* -EBUSY cannot be: this is not for signal handlers. */
	if (process_enter(&w) == 0) {
		registry_writer_remove(w, jit->text, jit->text + jit->n_bytes);
		process_leave();
	}
	if (jit->flags & CAIRN_JIT_COPY_NAMES)
		jit_chain_each(&jit->chains[JIT_SYMBOLS], free_name, NULL);
	for (int kind = 0; kind < JIT_N_KINDS; kind++)
		jit_chain_fini(&jit->chains[kind]);
	jit_pool_fini(&jit->pool);
	free(jit->name);
	free(jit);
}

/* ---- the elements to publish ---- */

static bool are_inlines(const struct function *f)
{
	const struct cairn_jit_info *info = f->info;
	uint64_t size = f->hi - f->lo;
	for (size_t i = 0; i < info->n_inlines; i++) {
		const struct cairn_jit_inline *copy = &info->inlines[i];
		if (copy->start >= copy->end || copy->end > size || !copy->depth || !copy->name ||
		    (i && copy->start < copy[-1].start))
			return false;
	}
	return true;
}

static bool are_lines(const struct function *f)
{
	const struct cairn_jit_info *info = f->info;
	for (size_t i = 0; i < info->n_lines; i++)
		if (info->lines[i].start >= f->hi - f->lo ||
		    (i && info->lines[i].start < info->lines[i - 1].start))
			return false;
	return true;
}

static int describe(const struct cairn_jit *jit, const struct cairn_jit_frame *frame,
		    const void *end, const struct cairn_jit_info *info, struct function *ret)
{
	struct function *f = ret;
	f->frame = frame;
	f->lo = address(frame->start) - jit->text;
	f->hi = address(end) - jit->text;
	f->info = &no_info;
	f->n[JIT_SYMBOLS] = f->n[JIT_LINES] = 0;
	if (frame->error)
		return frame->error;
	uint64_t last = frame->now.word[0] >> 32;
	if (f->lo >= f->hi || f->hi > jit->n_bytes || f->hi - f->lo < last ||
	    f->hi - f->lo > UINT32_MAX)
		return -EINVAL;
	f->rest = (uint32_t)(f->hi - f->lo - last);
	f->n[JIT_ROWS] = frame->n_rows + (f->rest != 0);
	if (!info)
		return 0;
	f->info = info;
	if (info->size != sizeof(*info)) {
		if (!take_struct(&f->own, sizeof(f->own), info))
			return -EINVAL;
		f->info = info = &f->own;
	}
	if ((!info->name && info->n_inlines) || !are_inlines(f) || !are_lines(f))
		return -EINVAL;
	f->n[JIT_SYMBOLS] = info->name ? 1 + info->n_inlines : 0;
	/* The end is an element, too; nothing begins after 4 GiB. */
	f->n[JIT_LINES] = info->n_lines ? info->n_lines + (f->hi <= UINT32_MAX) : 0;
	return 0;
}

/* ---- elements ---- */

static void put(uint64_t *to, uint64_t value)
{
	__atomic_store_n(to, value, __ATOMIC_RELAXED);
}

static uint64_t pair(uint64_t low, uint64_t high)
{
	return (low & UINT32_MAX) | high << 32;
}

enum { ROW_WORDS = sizeof(struct code_jit_unwind_fre) / sizeof(uint64_t) };

/*
 * @more: offset of the function in the upper half; below, bytes where they are not in the row yet.
 */
static inline void put_row(uint64_t *to, const struct cairn_jit_rule *row, uint64_t more)
{
	put(&to[0], row->word[0] + more);
	put(&to[1], row->word[1]);
	put(&to[2], row->word[2]);
}

/* Rows [@from, @to); after the complete ones comes the rule that holds at the end. */
static inline void put_rows(uint64_t *words, const struct function *f, size_t from, size_t to)
{
	const struct cairn_jit_frame *frame = f->frame;
	size_t n = to < frame->n_rows ? to : frame->n_rows;
	for (size_t i = from; i < n; i++, words += ROW_WORDS)
		put_row(words, &frame->rows[i], f->lo << 32);
	if (n < to)
		put_row(words, &frame->now, f->lo << 32 | f->rest);
}

static void put_symbol(uint64_t *to, const struct function *f, size_t i)
{
	const struct cairn_jit_inline *copy = i ? &f->info->inlines[i - 1] : NULL;
	uint64_t size = copy ? copy->end - copy->start : f->hi - f->lo;
	put(&to[0], pair(size, f->lo + (copy ? copy->start : 0)));
	put(&to[1], address(copy ? copy->name : f->info->name));
	put(&to[2], copy ? pair(copy->depth, copy->call_line) : 0);
	put(&to[3], copy ? address(copy->call_file) : 0);
}

static void put_line(uint64_t *to, const struct function *f, size_t i)
{
	const struct cairn_jit_line *line = i < f->info->n_lines ? &f->info->lines[i] : NULL;
	put(&to[0], line ? pair(f->lo + line->start, line->line) : pair(f->hi, 0));
	put(&to[1], line ? address(line->file) : 0);
}

/* Elements [@from, @to). */
static inline void put_elements(enum jit_kind kind, uint64_t *words, const struct function *f,
				size_t from, size_t to)
{
	switch (kind) {
	case JIT_ROWS:
		put_rows(words, f, from, to);
		break;
	case JIT_SYMBOLS:
		for (size_t i = from; i < to;
		     i++, words += sizeof(struct code_jit_symbol) / sizeof(*words))
			put_symbol(words, f, i);
		break;
	case JIT_LINES:
		for (size_t i = from; i < to;
		     i++, words += sizeof(struct code_jit_line) / sizeof(*words))
			put_line(words, f, i);
		break;
	case JIT_N_KINDS:
		break;
	}
}

/* The begin of element @i, in the region. */
static uint64_t begin_of(enum jit_kind kind, const struct function *f, size_t i)
{
	if (kind == JIT_SYMBOLS)
		return f->lo + (i ? f->info->inlines[i - 1].start : 0);
	return f->lo + (i < f->info->n_lines ? f->info->lines[i].start : f->hi - f->lo);
}

/* [@from, @to), for which there is room. */
static inline void append(struct jit_chain *chain, enum jit_kind kind, const struct function *f,
			  size_t from, size_t to)
{
	size_t n = kind < JIT_N_KINDS ? f->n[kind] : 0;
	put_elements(kind, jit_chain_next(chain), f, from, to);
	/* The next element may begin where this ends. */
	uint64_t end = to < n ? begin_of(kind, f, to) : f->hi;
	jit_chain_publish(chain, end, (to - from) * jit_stride(kind));
}

/* The elements after the first part go into tables of their own if need be. */
static int append_rest(struct jit_chain *chain, const struct function *f)
{
	size_t n = f->n[chain->kind];
	for (size_t i = JIT_APPEND_MAX; i < n;) {
		size_t to = n - i < JIT_APPEND_MAX ? n : i + JIT_APPEND_MAX;
		int rc = jit_chain_find_room(chain, chain->lo, f->hi, to - i);
		if (rc < 0)
			return rc;
		append(chain, chain->kind, f, i, to);
		i = to;
	}
	return 0;
}

/*
 * The first part has its room. @kind is a constant for the compiler: this is the cost of
 * publishing.
 */
static inline int append_all(struct cairn_jit *jit, enum jit_kind kind, const struct function *f)
{
	struct jit_chain *chain = &jit->chains[kind];
	size_t n = f->n[kind];
	if (!n)
		return 0;
	append(chain, kind, f, 0, n < JIT_APPEND_MAX ? n : JIT_APPEND_MAX);
	return n <= JIT_APPEND_MAX ? 0 : append_rest(chain, f);
}

/* ---- functions ---- */

/* Copies replace the names in @f; on failure there are none. */
static int copy_names(struct function *f, struct cairn_jit_inline **ret_inlines)
{
	size_t n = f->info->n_inlines;
	struct cairn_jit_inline *inlines = n ? malloc(n * sizeof(*inlines)) : NULL;
	char *name = strdup(f->info->name);
	bool has_all = name && (!n || inlines);
	size_t i = 0;
	for (; has_all && i < n; i++) {
		inlines[i] = f->info->inlines[i];
		has_all = (inlines[i].name = strdup(inlines[i].name));
	}
	if (!has_all) {
		while (inlines && i--)
			free((void *)(uintptr_t)inlines[i].name);
		free(name);
		free(inlines);
		return -ENOMEM;
	}
	f->own = *f->info;
	f->own.name = name;
	f->own.inlines = inlines;
	f->info = &f->own;
	*ret_inlines = inlines;
	return 0;
}

static void free_names(const struct function *f)
{
	for (size_t i = 0; i < f->info->n_inlines; i++)
		free((void *)(uintptr_t)f->info->inlines[i].name);
	free((void *)(uintptr_t)f->info->name);
}

/* In all three chains; a new generation when one of them needs it. */
static int find_room(struct cairn_jit *jit, const struct function *f)
{
	int rc = 0;
	bool is_new = false;
	for (int kind = 0; rc >= 0 && kind < JIT_N_KINDS; kind++) {
		struct jit_chain *chain = &jit->chains[kind];
		size_t n = f->n[kind] < JIT_APPEND_MAX ? f->n[kind] : JIT_APPEND_MAX;
		if (!n || jit_chain_fits(chain, f->lo, f->hi, n * jit_stride((enum jit_kind)kind)))
			continue;
		rc = jit_chain_find_room(chain, f->lo, f->hi, n);
		is_new |= rc == 1;
	}
	if (rc >= 0 && is_new)
		rc = renew(jit);
	if (rc < 0)
		cancel(jit);
	return rc < 0 ? rc : 0;
}

static int publish(struct cairn_jit *jit, const struct function *f)
{
	int rc = find_room(jit, f);
	if (rc == 0)
		rc = append_all(jit, JIT_LINES, f);
	if (rc == 0)
		rc = append_all(jit, JIT_SYMBOLS, f);
	return rc < 0 ? rc : append_all(jit, JIT_ROWS, f);
}

int cairn_jit_publish(struct cairn_jit *jit, const struct cairn_jit_frame *frame, const void *end,
		      const struct cairn_jit_info *info)
{
	struct function f;
	struct cairn_jit_inline *inlines = NULL;
	bool owns = info && info->name && jit->flags & CAIRN_JIT_COPY_NAMES;
	int rc = describe(jit, frame, end, info, &f);
	if (rc == 0 && owns)
		rc = copy_names(&f, &inlines);
	if (rc < 0)
		return rc;
	rc = publish(jit, &f);
	if (rc < 0 && owns)
		free_names(&f);
	free(inlines);
	return rc;
}

void cairn_jit_withdraw(struct cairn_jit *jit, const void *start, const void *end)
{
	uint64_t lo = address(start) - jit->text, hi = address(end) - jit->text;
	/* How to unwind it goes last: a name alone would say that it is code. */
	jit_chain_withdraw(&jit->chains[JIT_LINES], lo, hi);
	jit_chain_withdraw(&jit->chains[JIT_SYMBOLS], lo, hi);
	jit_chain_withdraw(&jit->chains[JIT_ROWS], lo, hi);
}
