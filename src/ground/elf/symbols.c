/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Symbols of one file
 *
 * Read on first use only: half of the users of a large binary never ask. Kept are symbols that have
 * an address: not undefined, absolute, common, section, file and thread-local ones.
 */
#include "elf/symbol_table.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>

#include "base/keyed.h"
#include "elf/gopclntab.h"
#include "elf/section_raw.h"

static int set_strings(struct symbol_table *t, uint32_t i, struct cairn_err *err)
{
	const struct elf *e = t->e;
	if (!section_is(e, i, SHT_STRTAB))
		return err_set(err, -EBADMSG,
			       "%s: %s: its names are in section %u, which is not a string table",
			       e->path, t->src.section, i);
	int r = section_raw(e, i, &t->strings, err);
	if (r < 0)
		return r;
	t->strings_size = t->strings ? e->sections[i].file_size : 0;
	if (t->strings_size && t->strings[t->strings_size - 1])
		return err_set(err, -EBADMSG, "%s: %s: no NUL at its end", e->path,
			       e->sections[i].file.name);
	return 0;
}

static int set_shndx(struct symbol_table *t, uint32_t symtab, struct cairn_err *err)
{
	uint32_t i = section_of_type(t->e, SHT_SYMTAB_SHNDX);
	if (i == NO_SECTION || t->e->sections[i].link != symtab)
		return 0;
	int r = section_raw(t->e, i, &t->shndx, err);
	t->n_shndx = t->shndx ? t->e->sections[i].file_size / 4 : 0;
	return r;
}

int symbol_table_find(const struct elf *e, uint32_t type, struct symbol_table *ret,
		      struct cairn_err *err)
{
	uint32_t i = section_of_type(e, type);
	if (i == NO_SECTION || !e->sections[i].file_size)
		return 0;
	const struct section *s = &e->sections[i];
	struct symbol_table t = {.e = e, .size = s->file_size};
	int r = section_raw(e, i, &t.symbols, err);
	if (r < 0)
		return r;
	t.src = (struct cursor_src){e->path, s->file.name, t.symbols};
	if (s->file.flags & SHF_COMPRESSED)
		return err_set(err, -EOPNOTSUPP, "%s: %s: a compressed symbol table", e->path,
			       t.src.section);
	if ((r = set_strings(&t, s->link, err)) < 0 || (r = set_shndx(&t, i, err)) < 0)
		return r;
	*ret = t;
	return 1;
}

/* A symbol's name in place, or a copy that ends before its version ("memcpy@@GLIBC_2.14"). */
static int set_name(struct elf *e, const struct symbol_table *t, uint64_t index, uint32_t off,
		    struct elf_symbol *ret, struct cairn_err *err)
{
	if (off >= t->strings_size)
		return err_set(err, -EBADMSG,
			       "%s: %s: symbol %" PRIu64
			       ": its name is at 0x%x of a table of 0x%" PRIx64 " bytes",
			       e->path, t->src.section, index, off, t->strings_size);
	ret->name = (const char *)t->strings + off;
	const char *version = strchr(ret->name, '@');
	if (!version || version == ret->name)
		return 0;
	ret->name = arena_strndup(&e->names, ret->name, version - ret->name);
	return ret->name ? 0 : err_nomem(err, "a symbol's name");
}

/* Returns 1 when @ret was filled, 0 for a symbol without an address. */
static int read_symbol(struct elf *e, const struct symbol_table *t, struct cursor *c,
		       uint64_t index, struct elf_symbol *ret, struct cairn_err *err)
{
	uint32_t name = cur_u32(c);
	uint8_t info = cur_u8(c);
	cur_u8(c); /* st_other */
	uint32_t shndx = cur_u16(c);
	struct elf_symbol s = {.type = ELF64_ST_TYPE(info), .binding = ELF64_ST_BIND(info)};
	s.at.v = cur_u64(c);
	s.size = cur_u64(c);
	if (c->failed)
		return -EBADMSG;
	if (!symbol_has_address(s.type, shndx))
		return 0;
	if (shndx == SHN_XINDEX && index < t->n_shndx) {
		struct cursor_src src = {e->path, ".symtab_shndx", t->shndx};
		struct cursor x = cursor_of(&src, t->shndx + 4 * index, 4, false, err);
		shndx = cur_u32(&x);
	}
	if (shndx >= e->n_sections)
		return err_set(err, -EBADMSG,
			       "%s: %s: symbol %" PRIu64 " is in section %u; there are %zu",
			       e->path, t->src.section, index, shndx, e->n_sections);
	if (e->type == ET_REL)
		s.at.v += e->sections[shndx].file.addr.v;
	int r = set_name(e, t, index, name, &s, err);
	if (r < 0)
		return r;
	*ret = s;
	return 1;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct elf_symbol *)a)->name, ((const struct elf_symbol *)b)->name);
}

/* Those of one address. */
static void sort_names(struct elf_symbol *p, size_t n)
{
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && p[end].at.v == p[i].at.v;)
			end++;
		if (end - i > 1)
			qsort(p + i, end - i, sizeof(*p), by_name);
	}
}

/* By the lower half of the addresses first, and then by the upper one; those with one are few. */
int symbols_sort(const struct elf_symbol *p, size_t n, struct elf_symbol *sorted)
{
	struct keyed *order = n < UINT32_MAX ? malloc((n + 1) * sizeof(*order)) : NULL;
	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		order[i] = (struct keyed){.key = (uint32_t)p[i].at.v, .value = (uint32_t)i};
	int rc = keyed_sort(order, n);
	for (size_t i = 0; i < n; i++)
		order[i].key = (uint32_t)(p[order[i].value].at.v >> 32);
	if (!rc)
		rc = keyed_sort(order, n);
	for (size_t i = 0; i < n; i++)
		sorted[i] = p[order[i].value];
	free(order);
	sort_names(sorted, n);
	return rc;
}

/* Functions of a stripped Go program. Returns their number. */
static size_t read_go(const struct gopclntab *go, struct elf_symbol *ret)
{
	struct go_function f;
	size_t n = 0;
	for (uint32_t i = 0; i < go->n; i++)
		if (gopclntab_function(go, i, &f))
			ret[n++] = (struct elf_symbol){.name = f.name,
						       .at = {f.lo},
						       .size = f.hi - f.lo,
						       .type = STT_FUNC,
						       .binding = STB_LOCAL};
	return n;
}

static int load(struct elf *e, struct cairn_err *err)
{
	struct symbol_table t = {0};
	struct gopclntab go = {.n = 0};
	int r = symbol_table_find(e, SHT_SYMTAB, &t, err);
	if (r == 0) {
		if (!gopclntab_open(e, &go))
			go.n = 0;
		r = symbol_table_find(e, SHT_DYNSYM, &t, err);
	}
	if (r < 0 || (r == 0 && !go.n))
		return r;
	uint64_t n = t.size / sizeof(Elf64_Sym), room = n + go.n + 1;
	struct elf_symbol *p = calloc(room, sizeof(*p)), *sorted = calloc(room, sizeof(*sorted));
	struct cursor c = cursor_of(&t.src, t.symbols, n * sizeof(Elf64_Sym), false, err);
	size_t kept = 0;
	r = p && sorted ? 0 : err_nomem(err, "symbols");
	for (uint64_t i = 0; i < n && r >= 0; i++) {
		r = read_symbol(e, &t, &c, i, &p[kept], err);
		kept += r > 0;
	}
	if (r >= 0)
		kept += read_go(&go, p + kept);
	if (r >= 0 && (r = symbols_sort(p, kept, sorted)) < 0)
		err_nomem(err, "symbols");
	free(p);
	if (r < 0) {
		free(sorted);
		return r;
	}
	e->symbols = sorted;
	e->n_symbols = kept;
	return 0;
}

int elf_symbols(struct elf *e, const struct elf_symbol **ret, size_t *ret_n, struct cairn_err *err)
{
	if (!atomic_load_explicit(&e->symbols_ready, memory_order_acquire)) {
		int r = 0;
		pthread_mutex_lock(&e->lock);
		if (!e->symbols_ready && (r = load(e, err)) == 0)
			atomic_store_explicit(&e->symbols_ready, true, memory_order_release);
		pthread_mutex_unlock(&e->lock);
		if (r < 0)
			return r;
	}
	*ret = e->symbols;
	*ret_n = e->n_symbols;
	return 0;
}

void elf_forget_symbols(struct elf *e)
{
	if (atomic_load_explicit(&e->n_owners, memory_order_acquire) > 1)
		return;
	pthread_mutex_lock(&e->lock);
	free(e->symbols);
	e->symbols = NULL;
	e->n_symbols = 0;
	arena_fini(&e->names);
	arena_init(&e->names);
	atomic_store_explicit(&e->symbols_ready, false, memory_order_release);
	pthread_mutex_unlock(&e->lock);
}

bool elf_has_symtab(const struct elf *e)
{
	return e->has_symtab;
}

int elf_visit_imports(const struct elf *e, int (*visit)(void *ctx, const char *name), void *ctx)
{
	struct symbol_table t;
	int rc = 0;
	if (symbol_table_find(e, SHT_DYNSYM, &t, NULL) <= 0)
		return 0;
	uint64_t n = t.size / sizeof(Elf64_Sym);
	struct cursor c = cursor_of(&t.src, t.symbols, n * sizeof(Elf64_Sym), false, NULL);
	for (uint64_t i = 0; i < n && !c.failed && !rc; i++) {
		uint32_t off = cur_u32(&c);
		cur_u8(&c); /* st_info */
		cur_u8(&c); /* st_other */
		bool undefined = cur_u16(&c) == SHN_UNDEF;
		cur_u64(&c); /* st_value */
		cur_u64(&c); /* st_size */
		/* The table ends with a NUL: symbol_table_find() has looked. */
		if (undefined && off < t.strings_size)
			rc = visit(ctx, (const char *)t.strings + off);
	}
	return rc;
}

static int is_name(void *ctx, const char *name)
{
	return !strcmp(ctx, name);
}

bool elf_imports(const struct elf *e, const char *name)
{
	return elf_visit_imports(e, is_name, (void *)name) > 0;
}

/* "calls", "calls.0", "parse.calls", or the "5calls" in "_ZZ5parsevE5calls". */
static bool is_symbol_of(const char *symbol, const char *name)
{
	size_t n = strlen(name);
	bool is_mangled = !strncmp(symbol, "_Z", 2);

	for (const char *at = strstr(symbol, name); n && at; at = strstr(at + 1, name)) {
		bool is_begin = at == symbol || at[-1] == '.' ||
				(is_mangled && at[-1] >= '0' && at[-1] <= '9');
		if (is_begin && (is_mangled || !at[n] || at[n] == '.'))
			return true;
	}
	return false;
}

static bool has_thread_symbol(const struct symbol_table *t, const char *name, uint64_t offset)
{
	uint64_t n = t->size / sizeof(Elf64_Sym);
	struct cursor c = cursor_of(&t->src, t->symbols, n * sizeof(Elf64_Sym), false, NULL);

	for (uint64_t i = 0; i < n && !c.failed; i++) {
		uint32_t off = cur_u32(&c);
		uint8_t type = ELF64_ST_TYPE(cur_u8(&c));
		cur_u8(&c); /* st_other */
		bool undefined = cur_u16(&c) == SHN_UNDEF;
		uint64_t value = cur_u64(&c);
		cur_u64(&c); /* st_size */
		/* The table ends with a NUL: symbol_table_find() has looked. */
		if (type == STT_TLS && !undefined && value == offset && off < t->strings_size &&
		    is_symbol_of((const char *)t->strings + off, name))
			return true;
	}
	return false;
}

bool elf_has_thread_symbol(const struct elf *e, const char *name, uint64_t offset)
{
	struct symbol_table t;
	int r = symbol_table_find(e, SHT_SYMTAB, &t, NULL);

	if (r == 0)
		r = symbol_table_find(e, SHT_DYNSYM, &t, NULL);
	return r > 0 && has_thread_symbol(&t, name, offset);
}
