/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which function symbol holds an address
 *
 * Symbol ranges nest and overlap, and many start at the same address:
 *
 *	0x10       0x20       0x30       0x40
 *	|--- outer ------------------------|
 *	           |- inner --|
 *	           |- alias --|
 *
 * A search for the nearest start below 0x35 finds `inner`, which has ended there. So the ranges are
 * flattened once into pieces that do not overlap, each with its winner, and a lookup is one binary
 * search:
 *
 *	[0x10, 0x20) outer   [0x20, 0x30) alias   [0x30, 0x40) outer
 *
 * The winner of a place is the symbol that starts last among those that hold it (the innermost); of
 * several that start there a global one wins over a weak and that over a local one, then the
 * shorter name, then the first in alphabetical order.
 *
 * A function without a size (hand-written assembler, _start of old C libraries) has all code up to
 * the next function of its section, except code that belongs to another. In a file that has only
 * dynamic symbols, the next function may be one without a name: there it has its first byte and no
 * more.
 *
 * A label, which has neither a type nor a size, names code that no function holds: within a
 * function's size it is one of many places of that function. A global label ends a function
 * without a size, as another file may call it. A local one does not: assemblers keep the labels of
 * loops.
 *
 * Flattening sweeps over the starts in order. A heap keeps the open ranges with the winner on top.
 * An ended range leaves it only when it comes to the top: until then it cannot win. Each symbol
 * enters and leaves once: O(n log n). The top at a place lasts until it ends or another starts.
 */
#include "elf/functions.h"

#include <elf.h>
#include <errno.h>

#include "base/search.h"
#include "elf/segments.h"

static bool is_label(const struct elf_symbol *s)
{
	return s->type == STT_NOTYPE && !s->size;
}

bool functions_is_local_label(const struct elf_symbol *s)
{
	return is_label(s) && s->binding == STB_LOCAL;
}

/* "$x" marks where code begins for a linker, ".annobin_f.c" where a compiler's notes do. */
static bool is_mark(const struct elf_symbol *s)
{
	return functions_is_local_label(s) && (s->name[0] == '$' || s->name[0] == '.');
}

/* Functions, and what has no type in code: among those are the kernel's assembly entry points. */
static bool is_function(const struct elf *e, const struct elf_symbol *s)
{
	if (s->type == STT_FUNC || s->type == STT_GNU_IFUNC)
		return true;
	if (s->type != STT_NOTYPE || !s->name[0] || is_mark(s))
		return false;
	const struct section *section = elf_section_holding(e, s->at);
	return section && (section->file.flags & SHF_EXECINSTR);
}

/*
 * End of [start, end). A function without a size has its first byte; extend() adds the bytes that
 * belong to nothing else.
 */
static uint64_t end_of(const struct elf_symbol *s)
{
	uint64_t size = s->size ? s->size : 1;
	return size > UINT64_MAX - s->at.v ? UINT64_MAX : s->at.v + size;
}

static int binding_rank(const struct elf_symbol *s)
{
	switch (s->binding) {
	case STB_GLOBAL:
	case STB_GNU_UNIQUE:
		return 0;
	case STB_WEAK:
		return 1;
	default:
		return 2;
	}
}

/* True when @a wins over @b where both hold. */
static bool wins(const struct elf_symbol *a, const struct elf_symbol *b)
{
	if (is_label(a) != is_label(b))
		return is_label(b);
	if (a->at.v != b->at.v)
		return a->at.v > b->at.v;
	/* A sized function says more than a bare label at the same place. */
	if (!a->size != !b->size)
		return a->size != 0;
	if (binding_rank(a) != binding_rank(b))
		return binding_rank(a) < binding_rank(b);
	size_t la = strlen(a->name), lb = strlen(b->name);
	return la != lb ? la < lb : strcmp(a->name, b->name) < 0;
}

/* Binary heap of open symbols, the winner at [0]. */
struct heap {
	const struct elf_symbol **p;
	size_t n;
};

static void heap_push(struct heap *h, const struct elf_symbol *s)
{
	size_t i = h->n++;
	while (i && wins(s, h->p[(i - 1) / 2])) {
		h->p[i] = h->p[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	h->p[i] = s;
}

static void heap_pop(struct heap *h)
{
	const struct elf_symbol *last = h->p[--h->n];
	size_t i = 0;
	for (;;) {
		size_t child = 2 * i + 1;
		if (child >= h->n)
			break;
		if (child + 1 < h->n && wins(h->p[child + 1], h->p[child]))
			child++;
		if (!wins(h->p[child], last))
			break;
		h->p[i] = h->p[child];
		i = child;
	}
	if (h->n)
		h->p[i] = last;
}

/* Pieces from @lo up to @hi, as long as something is open. */
static int sweep(struct functions *f, struct heap *h, uint64_t lo, uint64_t hi)
{
	while (h->n && lo < hi) {
		const struct elf_symbol *top = h->p[0];
		uint64_t end = end_of(top);
		if (end <= lo) {
			heap_pop(h);
			continue;
		}
		uint64_t stop = end < hi ? end : hi;
		struct function_range *last = f->ranges.n ? &f->ranges.p[f->ranges.n - 1] : NULL;
		if (last && last->symbol == top && last->hi == lo) {
			last->hi = stop;
		} else {
			struct function_range piece = {lo, stop, top};
			if (!VEC_ADD(&f->ranges, piece))
				return -ENOMEM;
		}
		lo = stop;
	}
	return 0;
}

static int flatten(struct functions *f, const struct elf_symbol **p, size_t n)
{
	struct heap h = {calloc(n ? n : 1, sizeof(*h.p)), 0};
	if (!h.p)
		return -ENOMEM;
	int r = 0;
	for (size_t i = 0; i < n && r == 0;) {
		uint64_t at = p[i]->at.v;
		while (i < n && p[i]->at.v == at)
			heap_push(&h, p[i++]);
		r = sweep(f, &h, at, i < n ? p[i]->at.v : UINT64_MAX);
	}
	free(h.p);
	return r;
}

static uint64_t end_of_section(const struct elf *e, uint64_t at)
{
	const struct section *s = elf_section_holding(e, (struct cairn_vaddr){at});
	return s && s->file.flags & SHF_EXECINSTR ? s->file.addr.v + s->file_size : at;
}

/* True if @r begins where the code of the range before it, which has no size, goes on. */
static bool is_within(const struct function_range *before, const struct function_range *r,
		      const struct elf *e)
{
	return functions_is_local_label(r->symbol) && !before->symbol->size &&
	       !functions_is_local_label(before->symbol) && end_of_section(e, before->lo) > r->lo;
}

static void drop_labels_within(struct functions *f, const struct elf *e)
{
	size_t kept = 0;
	for (size_t i = 0; i < f->ranges.n; i++)
		if (!kept || !is_within(&f->ranges.p[kept - 1], &f->ranges.p[i], e))
			f->ranges.p[kept++] = f->ranges.p[i];
	f->ranges.n = kept;
}

static void extend(struct functions *f, const struct elf *e)
{
	drop_labels_within(f, e);
	for (size_t i = 0; i < f->ranges.n; i++) {
		struct function_range *r = &f->ranges.p[i];
		uint64_t next = i + 1 < f->ranges.n ? r[1].lo : UINT64_MAX;
		if (r->symbol->size)
			continue;
		uint64_t end = end_of_section(e, r->lo);
		end = end < next ? end : next;
		r->hi = end > r->hi ? end : r->hi;
	}
}

int functions_flatten(struct functions *f, const struct elf *e, const struct elf_symbol *symbols,
		      size_t n)
{
	const struct elf_symbol **p = calloc(n ? n : 1, sizeof(*p));
	size_t n_functions = 0;
	*f = (struct functions){0};
	if (!p)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (is_function(e, &symbols[i]))
			p[n_functions++] = &symbols[i];
	int r = flatten(f, p, n_functions);
	free(p);
	if (r == 0 && elf_has_symtab(e))
		extend(f, e);
	if (r < 0)
		functions_fini(f);
	return r;
}

int functions_init(struct functions *f, struct elf *e, struct cairn_err *err)
{
	*f = (struct functions){0};
	const struct elf_symbol *symbols;
	size_t n;
	int r = elf_symbols(e, &symbols, &n, err);
	if (r < 0)
		return r;
	return functions_flatten(f, e, symbols, n) < 0 ? err_nomem(err, "function ranges") : 0;
}

void functions_fini(struct functions *f)
{
	VEC_FREE(&f->ranges);
}

const struct elf_symbol *functions_at(const struct functions *f, struct cairn_vaddr at)
{
	size_t lo = SEARCH(0, f->ranges.n, mid, f->ranges.p[mid].lo <= at.v);
	return lo && at.v < f->ranges.p[lo - 1].hi ? f->ranges.p[lo - 1].symbol : NULL;
}
