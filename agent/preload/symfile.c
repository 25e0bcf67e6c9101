/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JITs fill in as much as GDB needs: sections of code with the addresses they were loaded to,
 * mostly in a file of type ET_REL, where symbols count from their section. CFI is where its section
 * says, if it was loaded, and has the right addresses there; a JIT that does not load it writes it
 * with addresses into the file itself.
 */
#include "symfile.h"

#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fde.h"

enum {
	PAGE = 4096,
	LOADED_MAX = 16 << 20, /* of CFI: a JIT's object has kilobytes */
};

static bool is_within(const struct symfile *s, uint64_t off, uint64_t n)
{
	return off <= s->n_bytes && n <= s->n_bytes - off;
}

bool symfile_open(const void *at, uint64_t n_bytes, struct symfile *ret)
{
	const Elf64_Ehdr *e = at;
	struct symfile s = {.at = at, .n_bytes = n_bytes};
	if (!at || (uintptr_t)at % sizeof(uint64_t) || n_bytes < sizeof(*e) ||
	    memcmp(e->e_ident, ELFMAG, SELFMAG) || e->e_ident[EI_CLASS] != ELFCLASS64 ||
	    e->e_shentsize != sizeof(Elf64_Shdr) || e->e_shoff % sizeof(uint64_t) ||
	    !is_within(&s, e->e_shoff, (uint64_t)e->e_shnum * sizeof(Elf64_Shdr)))
		return false;
	s.sections = (const Elf64_Shdr *)(s.at + e->e_shoff);
	s.n_sections = e->e_shnum;
	*ret = s;
	return true;
}

const Elf64_Shdr *symfile_code(const struct symfile *s, unsigned *i)
{
	while (*i < s->n_sections) {
		const Elf64_Shdr *section = &s->sections[(*i)++];
		if (section->sh_flags & SHF_ALLOC && section->sh_flags & SHF_EXECINSTR &&
		    section->sh_addr && section->sh_size)
			return section;
	}
	return NULL;
}

/* ---- CFI ---- */

/*
 * An address in a symbol file may mean nothing here. A byte of each page is copied by the kernel,
 * which fails where a load would end the program.
 */
static bool is_readable(uint64_t at, uint64_t n_bytes)
{
	char byte;
	if (at + n_bytes < at || n_bytes > LOADED_MAX)
		return false;
	for (uint64_t page = at & ~(uint64_t)(PAGE - 1); page < at + n_bytes; page += PAGE) {
		struct iovec to = {&byte, 1}, from = {(void *)(uintptr_t)page, 1};
		if (syscall(SYS_process_vm_readv, getpid(), &to, 1UL, &from, 1UL, 0UL) != 1)
			return false;
	}
	return true;
}

static bool is_about(const void *begin, uint64_t n_bytes, uint64_t lo, uint64_t hi)
{
	struct fde_walk walk;
	struct fde fde;
	fde_walk_begin_within(&walk, begin, n_bytes);
	while (fde_walk_next(&walk, &fde))
		if (fde.lo >= lo && fde.hi <= hi)
			return true;
	return false;
}

static const char *name_of(const struct symfile *s, const Elf64_Shdr *section)
{
	unsigned names = ((const Elf64_Ehdr *)s->at)->e_shstrndx;
	uint64_t off = names < s->n_sections ? s->sections[names].sh_offset + section->sh_name : 0;
	return off && is_within(s, off, 1) && memchr(s->at + off, 0, s->n_bytes - off)
		       ? (const char *)s->at + off
		       : "";
}

bool symfile_cfi(const struct symfile *s, uint64_t lo, uint64_t hi, uint64_t *ret_lo,
		 uint64_t *ret_hi)
{
	for (unsigned i = 0; i < s->n_sections; i++) {
		const Elf64_Shdr *section = &s->sections[i];
		if (strcmp(name_of(s, section), ".eh_frame") || section->sh_size < 8)
			continue;
		const uint8_t *loaded = (const uint8_t *)(uintptr_t)section->sh_addr;
		const uint8_t *in_file = is_within(s, section->sh_offset, section->sh_size)
						 ? s->at + section->sh_offset
						 : NULL;
		bool is_loaded = loaded && is_readable(section->sh_addr, section->sh_size) &&
				 is_about(loaded, section->sh_size, lo, hi);
		if (!is_loaded && !(in_file && is_about(in_file, section->sh_size, lo, hi)))
			continue;
		*ret_lo = (uintptr_t)(is_loaded ? loaded : in_file);
		*ret_hi = *ret_lo + section->sh_size;
		return true;
	}
	return false;
}

/* ---- functions ---- */

static const Elf64_Shdr *symbol_table(const struct symfile *s)
{
	for (unsigned i = 0; i < s->n_sections; i++) {
		const Elf64_Shdr *section = &s->sections[i];
		if (section->sh_type == SHT_SYMTAB && section->sh_link < s->n_sections &&
		    section->sh_offset % sizeof(uint64_t) == 0 &&
		    is_within(s, section->sh_offset, section->sh_size))
			return section;
	}
	return NULL;
}

static bool read_function(const struct symfile *s, const Elf64_Sym *symbol,
			  const Elf64_Shdr *strings, struct symfile_function *ret)
{
	bool is_relative = ((const Elf64_Ehdr *)s->at)->e_type == ET_REL;
	uint64_t name = strings->sh_offset + symbol->st_name;
	if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || !symbol->st_size || !symbol->st_name ||
	    !is_within(s, name, 1) || !memchr(s->at + name, 0, s->n_bytes - name))
		return false;
	if (is_relative && symbol->st_shndx >= s->n_sections)
		return false;
	ret->lo = symbol->st_value + (is_relative ? s->sections[symbol->st_shndx].sh_addr : 0);
	ret->hi = ret->lo + symbol->st_size;
	ret->name = (const char *)s->at + name;
	return true;
}

/* In its place among @n; one that overlaps another is left out. */
static size_t insert(struct symfile_function *all, size_t n, const struct symfile_function *f)
{
	size_t i = n;
	while (i && all[i - 1].lo >= f->hi)
		i--;
	if (i && all[i - 1].hi > f->lo)
		return n;
	memmove(&all[i + 1], &all[i], (n - i) * sizeof(*all));
	all[i] = *f;
	return n + 1;
}

size_t symfile_functions(const struct symfile *s, uint64_t lo, uint64_t hi,
			 struct symfile_function *ret, size_t max)
{
	const Elf64_Shdr *table = symbol_table(s);
	size_t n = 0, n_symbols = table ? table->sh_size / sizeof(Elf64_Sym) : 0;
	for (size_t i = 0; i < n_symbols && n < max; i++) {
		const Elf64_Sym *symbol = (const Elf64_Sym *)(s->at + table->sh_offset) + i;
		struct symfile_function f;
		if (!read_function(s, symbol, &s->sections[table->sh_link], &f) || f.lo < lo ||
		    f.hi > hi)
			continue;
		n = ret ? insert(ret, n, &f) : n + 1;
	}
	return n;
}
