/* SPDX-License-Identifier: BSD-2-Clause */
#include "code/symfile.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/err.h"

enum {
	MAX_SYMBOLS = 1 << 22,
};

struct section {
	uint32_t name, type, link, info;
	uint64_t flags, addr, off, size;
};

struct reader {
	const struct code_memory *memory;
	struct symfile *to;
	struct cursor_src src;
	uint64_t size;
	uint16_t type, machine;
	VEC(struct section) sections;
	uint32_t names; /* section with the names of sections */
};

static struct cursor bytes_of(const struct reader *r, uint64_t off, uint64_t n)
{
	struct cursor c = cursor_of(&r->src, r->to->bytes, r->size, false, NULL);
	cur_skip(&c, off);
	return cur_sub(&c, n);
}

static int damaged(const struct reader *r, const char *what, struct cairn_err *err)
{
	return err_set(err, -EBADMSG, "%s: %s", r->src.file, what);
}

static int read_header(struct reader *r, uint64_t *shoff, uint16_t *shnum, struct cairn_err *err)
{
	static const uint8_t ident[] = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB};
	struct cursor c = bytes_of(r, 0, sizeof(Elf64_Ehdr));
	const uint8_t *has = cur_bytes(&c, EI_NIDENT);
	if (!has || memcmp(has, ident, sizeof(ident)) != 0)
		return damaged(r, "no 64-bit ELF file", err);
	r->type = cur_u16(&c);
	r->machine = cur_u16(&c);
	cur_skip(&c, 20); /* version, entry, program headers */
	*shoff = cur_u64(&c);
	cur_skip(&c, 10); /* flags, sizes, number of program headers */
	uint16_t shentsize = cur_u16(&c);
	*shnum = cur_u16(&c);
	r->names = cur_u16(&c);
	if (c.failed || shentsize != sizeof(Elf64_Shdr))
		return damaged(r, "section headers of another size", err);
	return 0;
}

static int read_sections(struct reader *r, struct cairn_err *err)
{
	uint64_t shoff = 0;
	uint16_t shnum = 0;
	int rc = read_header(r, &shoff, &shnum, err);
	if (rc < 0)
		return rc;
	struct cursor c = bytes_of(r, shoff, (uint64_t)shnum * sizeof(Elf64_Shdr));
	if (c.failed || cur_left(&c) < (size_t)shnum * sizeof(Elf64_Shdr))
		return damaged(r, "section headers are not within it", err);
	for (uint32_t i = 0; i < shnum; i++) {
		struct section s = {.name = cur_u32(&c), .type = cur_u32(&c)};
		s.flags = cur_u64(&c);
		s.addr = cur_u64(&c);
		s.off = cur_u64(&c);
		s.size = cur_u64(&c);
		s.link = cur_u32(&c);
		s.info = cur_u32(&c);
		cur_skip(&c, 16);
		if (!VEC_ADD(&r->sections, s))
			return err_nomem(err, r->src.file);
	}
	return 0;
}

/* "" when it has none. */
static const char *name_in(const struct reader *r, uint32_t table, uint32_t off)
{
	if (table >= r->sections.n || r->sections.p[table].type != SHT_STRTAB ||
	    off >= r->sections.p[table].size)
		return "";
	struct cursor c = bytes_of(r, r->sections.p[table].off, r->sections.p[table].size);
	cur_skip(&c, off);
	const char *name = c.failed ? "" : cur_str(&c);
	return c.failed ? "" : name;
}

static int add_ranges(struct reader *r, struct cairn_err *err)
{
	for (size_t i = 0; i < r->sections.n; i++) {
		const struct section *s = &r->sections.p[i];
		uint64_t hi;
		if (!(s->flags & SHF_EXECINSTR) || !(s->flags & SHF_ALLOC) || !s->addr ||
		    !s->size || __builtin_add_overflow(s->addr, s->size, &hi))
			continue;
		if (!VEC_ADD(&r->to->ranges, ((struct symfile_range){s->addr, hi})))
			return err_nomem(err, r->src.file);
	}
	return 0;
}

/* A symbol of a relocatable file counts from its section. */
static int add_symbol(struct reader *r, uint32_t strings, struct cursor *c)
{
	uint32_t name = cur_u32(c);
	uint8_t type = ELF64_ST_TYPE(cur_u8(c));
	cur_skip(c, 1);
	uint16_t section = cur_u16(c);
	uint64_t value = cur_u64(c), size = cur_u64(c), hi;
	if (type != STT_FUNC || section == SHN_UNDEF)
		return 0;
	if (section < r->sections.n && r->type == ET_REL)
		value += r->sections.p[section].addr;
	if (__builtin_add_overflow(value, size ? size : 1, &hi))
		return 0;
	const char *text = name_in(r, strings, name);
	if (!*text)
		return 0;
	return VEC_ADD(&r->to->symbols, ((struct symfile_symbol){value, text})) &&
			       name_map_add(&r->to->names, value, hi,
					    (uint32_t)(r->to->symbols.n - 1))
		       ? 0
		       : -ENOMEM;
}

static int add_symbols(struct reader *r, struct cairn_err *err)
{
	int rc = 0;
	for (size_t i = 0; i < r->sections.n && rc == 0; i++) {
		const struct section *s = &r->sections.p[i];
		if (s->type != SHT_SYMTAB)
			continue;
		struct cursor c = bytes_of(r, s->off, s->size);
		while (rc == 0 && !c.failed && cur_left(&c) >= sizeof(Elf64_Sym) &&
		       r->to->symbols.n < MAX_SYMBOLS)
			rc = add_symbol(r, s->link, &c);
	}
	if (rc == 0)
		rc = name_map_flatten(&r->to->names);
	return rc < 0 ? err_nomem(err, r->src.file) : 0;
}

/* ---- .eh_frame and .debug_frame ---- */

static uint64_t place_of_symbol(const struct reader *r, const struct section *rela, uint32_t number)
{
	if (rela->link >= r->sections.n)
		return 0;
	const struct section *t = &r->sections.p[rela->link];
	struct cursor c = bytes_of(r, t->off, t->size);
	cur_skip(&c, (uint64_t)number * sizeof(Elf64_Sym) + 6);
	uint16_t section = cur_u16(&c);
	uint64_t value = cur_u64(&c);
	return c.failed || !section || section >= r->sections.n
		       ? 0
		       : r->sections.p[section].addr + value;
}

/*
 * The relocations that compilers write for .eh_frame. False: another one, so that the bytes are not
 * to be believed.
 */
static bool relocate(const struct reader *r, const struct section *rela, uint64_t addr,
		     uint8_t *bytes, uint64_t n)
{
	struct cursor c = bytes_of(r, rela->off, rela->size);
	while (!c.failed && cur_left(&c) >= sizeof(Elf64_Rela)) {
		uint64_t off = cur_u64(&c), info = cur_u64(&c), addend = cur_u64(&c);
		uint64_t value = place_of_symbol(r, rela, ELF64_R_SYM(info));
		uint32_t type = ELF64_R_TYPE(info);
		size_t size = type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4;
		bool is_pcrel = type == R_X86_64_PC32 || type == R_X86_64_PC64;
		if ((!is_pcrel && type != R_X86_64_64 && type != R_X86_64_32) || off > n ||
		    size > n - off || !value)
			return false;
		value += addend - (is_pcrel ? addr + off : 0);
		if (size == 4 && (is_pcrel ? (int64_t)value != (int32_t)value : value > UINT32_MAX))
			return false;
		/* the host is little-endian, as the process on it */
		memcpy(bytes + off, &value, size);
	}
	return !c.failed;
}

static const struct section *relocations_of(const struct reader *r, size_t section)
{
	for (size_t i = 0; i < r->sections.n; i++)
		if (r->sections.p[i].type == SHT_RELA && r->sections.p[i].info == section)
			return &r->sections.p[i];
	return NULL;
}

/* Its own bytes of the file, for where it was not loaded. */
static bool take_from_file(const struct reader *r, size_t number, uint8_t *bytes)
{
	const struct section *s = &r->sections.p[number], *rela = relocations_of(r, number);
	struct cursor c = bytes_of(r, s->off, s->size);
	const uint8_t *from = cur_bytes(&c, s->size);
	if (s->type == SHT_NOBITS || !from)
		return false;
	memcpy(bytes, from, s->size);
	return !rela || (r->machine == EM_X86_64 && relocate(r, rela, s->addr, bytes, s->size));
}

/* The one section of code; with several there is nothing that addresses could count from. */
static bool text_of(const struct reader *r, uint64_t *ret)
{
	size_t n = 0;
	for (size_t i = 0; i < r->sections.n; i++) {
		const struct section *s = &r->sections.p[i];
		bool is_code =
			s->flags & SHF_EXECINSTR && s->flags & SHF_ALLOC && s->addr && s->size;
		n += is_code;
		if (is_code)
			*ret = s->addr;
	}
	return n == 1;
}

static int read_frames(struct reader *r, size_t number, bool is_debug, struct eh_block **ret,
		       struct cairn_err *err)
{
	const struct section *s = &r->sections.p[number];
	struct eh_block_kind kind = {.addr = s->addr, .machine = r->machine, .is_debug = is_debug};
	kind.has_text = text_of(r, &kind.text);
	if (!s->size || s->size > SYMFILE_MAX)
		return 0;
	uint8_t *bytes = malloc(s->size);
	if (!bytes)
		return err_nomem(err, r->src.file);
	bool is_loaded = s->flags & SHF_ALLOC && s->addr &&
			 code_memory_all(r->memory, s->addr, bytes, s->size);
	if (!is_loaded && !take_from_file(r, number, bytes)) {
		free(bytes);
		return 0;
	}
	return eh_block_open(bytes, s->size, &kind, ret, err);
}

static int read_all(struct reader *r, struct cairn_err *err)
{
	int rc = read_sections(r, err);
	if (rc == 0)
		rc = add_ranges(r, err);
	if (rc == 0)
		rc = add_symbols(r, err);
	for (size_t i = 0; rc == 0 && i < r->sections.n; i++) {
		const char *name = name_in(r, r->names, r->sections.p[i].name);
		if (!r->to->eh && !strcmp(name, ".eh_frame"))
			rc = read_frames(r, i, false, &r->to->eh, err);
		else if (!r->to->debug_frame && !strcmp(name, ".debug_frame"))
			rc = read_frames(r, i, true, &r->to->debug_frame, err);
	}
	return rc;
}

int symfile_read(const struct code_memory *memory, uint64_t at, uint64_t size, struct symfile *ret,
		 struct cairn_err *err)
{
	struct reader r = {.memory = memory,
			   .to = ret,
			   .size = size,
			   .src = {.file = "symbol file in memory", .section = ""}};
	*ret = (struct symfile){.size = size};
	if (size > SYMFILE_MAX)
		return err_set(err, -ERANGE, "%s: %" PRIu64 " bytes; at most %d are read",
			       r.src.file, size, SYMFILE_MAX);
	ret->bytes = malloc(size ? size : 1);
	if (!ret->bytes)
		return err_nomem(err, r.src.file);
	r.src.base = ret->bytes;
	if (!code_memory_all(memory, at, ret->bytes, size))
		return err_set(err, -EFAULT, "%s at 0x%" PRIx64 ": cannot be read", r.src.file, at);
	int rc = read_all(&r, err);
	VEC_FREE(&r.sections);
	return rc;
}

void symfile_fini(struct symfile *s)
{
	symfile_lines_free(s->lines);
	eh_block_close(s->eh);
	eh_block_close(s->debug_frame);
	VEC_FREE(&s->ranges);
	VEC_FREE(&s->symbols);
	name_map_fini(&s->names);
	free(s->bytes);
	*s = (struct symfile){0};
}

int symfile_new(const struct code_memory *memory, uint64_t at, uint64_t size, struct symfile **ret,
		struct cairn_err *err)
{
	struct symfile *s = malloc(sizeof(*s));
	if (!s)
		return err_nomem(err, "a symbol file in memory");
	int rc = symfile_read(memory, at, size, s, err);
	if (rc < 0)
		symfile_free(s);
	else
		*ret = s;
	return rc;
}

void symfile_free(struct symfile *s)
{
	if (s)
		symfile_fini(s);
	free(s);
}

const char *symfile_find(const struct symfile *s, uint64_t at, uint64_t *ret_lo)
{
	const struct name_range *r = name_map_find(&s->names, at);
	if (!r)
		return NULL;
	*ret_lo = s->symbols.p[r->item].lo;
	return s->symbols.p[r->item].name;
}

static bool has_rule(const struct rule_words *w)
{
	return w->words[0] != 0;
}

void symfile_rule(const struct symfile *s, uint64_t at, struct rule_words *ret)
{
	rule_undescribed(ret);
	if (s->eh)
		eh_block_rule(s->eh, at, ret);
	if (s->debug_frame && !has_rule(ret))
		eh_block_rule(s->debug_frame, at, ret);
}

size_t symfile_n_fdes(const struct symfile *s)
{
	return (s->eh ? eh_block_n_fdes(s->eh) : 0) +
	       (s->debug_frame ? eh_block_n_fdes(s->debug_frame) : 0);
}
