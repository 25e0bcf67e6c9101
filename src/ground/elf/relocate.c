/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Relocation of .o and .ko files, of BPF objects, too
 *
 * In a relocatable file every address and every reference between debug sections is a hole that the
 * linker would fill. We fill it against the layout of segments.c:
 *
 *	.rela.debug_info:  offset 0x2d  type R_X86_64_64  symbol .text  addend 0x40
 *	                   u64 at .debug_info+0x2d = address of .text + 0x40
 *
 * BPF has no field for the addend in its records (SHT_REL): the value in the hole is added.
 *
 * Sections that are not loaded stay at address 0, so that a reference into .debug_str has DWARF's
 * meaning: an offset into it. A symbol that is defined in no section of this file counts as 0.
 *
 * The relocated parts: debug sections, .eh_frame, data. Code is not relocated: its bytes are
 * compared with those of the file and of memory, and its holes hold nothing that is read here.
 *
 * vmlinux keeps .rela.debug_* with the relocations already applied; it is ET_EXEC and never comes
 * here.
 */
#include "elf/relocate.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>

#include <cairn/text.h>

#include "elf/section_raw.h"

/* The parts of the relocation formula; 'S' symbol value, 'A' addend, 'P' place, 'Z' symbol size. */
enum formula {
	S_PLUS_A,
	S_PLUS_A_MINUS_P,
	Z_PLUS_A,
	TLS_PLUS_A, /* offset in the thread-local block: the section's address does not count */
};

enum range {
	ANY,
	UNSIGNED,
	SIGNED,
	EITHER,
};

struct kind {
	uint32_t type;
	uint8_t width; /* bytes */
	enum formula formula;
	enum range range;
};

static const struct kind x86_64[] = {
	{R_X86_64_64, 8, S_PLUS_A, ANY},
	{R_X86_64_32, 4, S_PLUS_A, UNSIGNED},
	{R_X86_64_32S, 4, S_PLUS_A, SIGNED},
	{R_X86_64_PC32, 4, S_PLUS_A_MINUS_P, SIGNED},
	{R_X86_64_PLT32, 4, S_PLUS_A_MINUS_P, SIGNED},
	{R_X86_64_PC64, 8, S_PLUS_A_MINUS_P, ANY},
	{R_X86_64_DTPOFF64, 8, TLS_PLUS_A, ANY},
	{R_X86_64_DTPOFF32, 4, TLS_PLUS_A, SIGNED},
	{R_X86_64_TPOFF64, 8, TLS_PLUS_A, ANY},
	{R_X86_64_TPOFF32, 4, TLS_PLUS_A, SIGNED},
	{R_X86_64_SIZE64, 8, Z_PLUS_A, ANY},
	{R_X86_64_SIZE32, 4, Z_PLUS_A, UNSIGNED},
	{R_X86_64_16, 2, S_PLUS_A, UNSIGNED},
	{R_X86_64_PC16, 2, S_PLUS_A_MINUS_P, SIGNED},
	{R_X86_64_8, 1, S_PLUS_A, UNSIGNED},
	{R_X86_64_PC8, 1, S_PLUS_A_MINUS_P, SIGNED},
};

/* The numbers are those of the psABI; <elf.h> of old systems lacks some. */
static const struct kind aarch64[] = {
	{257, 8, S_PLUS_A, ANY},            /* ABS64 */
	{258, 4, S_PLUS_A, EITHER},         /* ABS32 */
	{259, 2, S_PLUS_A, EITHER},         /* ABS16 */
	{260, 8, S_PLUS_A_MINUS_P, ANY},    /* PREL64 */
	{261, 4, S_PLUS_A_MINUS_P, EITHER}, /* PREL32 */
	{262, 2, S_PLUS_A_MINUS_P, EITHER}, /* PREL16 */
	{314, 4, S_PLUS_A_MINUS_P, SIGNED}, /* PLT32 */
	{1029, 8, TLS_PLUS_A, ANY},         /* TLS_DTPREL64 */
};

/* LLVM's numbers; before its version 13, 1 and 10 were also those of data. */
static const struct kind bpf[] = {
	{1, 8, S_PLUS_A, ANY},       /* 64_64 */
	{2, 8, S_PLUS_A, ANY},       /* 64_ABS64 */
	{3, 4, S_PLUS_A, UNSIGNED},  /* 64_ABS32 */
	{4, 4, S_PLUS_A, UNSIGNED},  /* 64_NODYLD32 */
	{10, 4, S_PLUS_A, UNSIGNED}, /* 64_32 */
};

static const struct machine {
	uint16_t machine;
	const struct kind *kinds;
	size_t n;
	uint32_t none; /* a second number for "nothing", beside 0 */
} machines[] = {
	{EM_X86_64, x86_64, sizeof(x86_64) / sizeof(x86_64[0]), 0},
	{EM_AARCH64, aarch64, sizeof(aarch64) / sizeof(aarch64[0]), 256},
	{EM_BPF, bpf, sizeof(bpf) / sizeof(bpf[0]), 0},
};

/* Everything that is the same for all relocations of one relocation section. */
struct job {
	const struct elf *e;
	const char *rela_name;
	bool has_addends; /* SHT_RELA */
	const struct machine *machine;
	const struct section *target;
	uint8_t *bytes;
	uint64_t size;
	const uint8_t *symbols; /* of the symbol table it names */
	uint64_t n_symbols;
	struct cursor_src symbols_src;
	const uint8_t *shndx; /* section indices that do not fit a symbol; may be NULL */
	uint64_t n_shndx;
};

struct rela {
	uint64_t offset;
	uint32_t type, symbol;
	uint64_t addend; /* two's complement */
};

struct value {
	uint64_t at, tls, size;
};

bool section_needs_relocation(const struct elf *e, size_t i)
{
	const struct section *s = &e->sections[i];
	return s->first_rela != NO_SECTION && !(s->file.flags & SHF_EXECINSTR) &&
	       section_has_bytes(s);
}

static const struct machine *machine_of(uint16_t machine)
{
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
		if (machines[i].machine == machine)
			return &machines[i];
	return NULL;
}

static const struct kind *kind_of(const struct machine *m, uint32_t type)
{
	for (size_t i = 0; m && i < m->n; i++)
		if (m->kinds[i].type == type)
			return &m->kinds[i];
	return NULL;
}

static int section_addr(const struct job *j, uint32_t symbol, uint32_t shndx, uint64_t *ret,
			struct cairn_err *err)
{
	const struct elf *e = j->e;
	*ret = 0;
	if (shndx == SHN_XINDEX) {
		if (symbol >= j->n_shndx)
			return err_set(err, -EBADMSG, "%s: symbol %u: no extended section index",
				       e->path, symbol);
		struct cursor_src src = {e->path, ".symtab_shndx", j->shndx};
		struct cursor c = cursor_of(&src, j->shndx + 4ull * symbol, 4, false, err);
		shndx = cur_u32(&c);
	} else if (shndx == SHN_UNDEF || shndx >= SHN_LORESERVE) {
		return 0; /* undefined, absolute, common */
	}
	if (shndx >= e->n_sections)
		return err_set(err, -EBADMSG, "%s: symbol %u is in section %u; there are %zu",
			       e->path, symbol, shndx, e->n_sections);
	*ret = e->sections[shndx].file.addr.v;
	return 0;
}

static int symbol_value(const struct job *j, uint32_t symbol, struct value *ret,
			struct cairn_err *err)
{
	*ret = (struct value){0};
	if (!symbol)
		return 0;
	if (symbol >= j->n_symbols)
		return err_set(err, -EBADMSG, "%s: %s: symbol %u; there are %" PRIu64, j->e->path,
			       j->rela_name, symbol, j->n_symbols);
	struct cursor c =
		cursor_of(&j->symbols_src, j->symbols + (uint64_t)symbol * sizeof(Elf64_Sym),
			  sizeof(Elf64_Sym), false, err);
	cur_skip(&c, 4 + 1 + 1); /* st_name, st_info, st_other */
	uint32_t shndx = cur_u16(&c);
	uint64_t value = cur_u64(&c);
	uint64_t base;
	int r = section_addr(j, symbol, shndx, &base, err);
	if (r < 0)
		return r;
	/* The value of a common symbol is its alignment. */
	ret->tls = shndx == SHN_COMMON ? 0 : value;
	ret->at = ret->tls + base;
	ret->size = cur_u64(&c);
	return 0;
}

static uint64_t compute(const struct kind *k, const struct value *v, const struct rela *r,
			uint64_t place)
{
	switch (k->formula) {
	case S_PLUS_A:
		return v->at + r->addend;
	case S_PLUS_A_MINUS_P:
		return v->at + r->addend - place;
	case Z_PLUS_A:
		return v->size + r->addend;
	case TLS_PLUS_A:
		return v->tls + r->addend;
	}
	return 0;
}

static bool fits(uint64_t x, unsigned int width, enum range range)
{
	int64_t s = (int64_t)x;
	switch (range) {
	case ANY:
		return true;
	case UNSIGNED:
		return !(x >> (8 * width));
	case SIGNED:
		return s >= -(1ll << (8 * width - 1)) && s < 1ll << (8 * width - 1);
	case EITHER:
		return s >= -(1ll << (8 * width - 1)) && s < 1ll << (8 * width);
	}
	return false;
}

/* The value in the hole; narrow ones are extended as their range requires. */
static uint64_t addend_in_place(const uint8_t *at, const struct kind *k)
{
	uint64_t x = 0;
	memcpy(&x, at, k->width); /* both are little-endian */
	unsigned int unused = 64 - 8u * k->width;
	return k->range == SIGNED ? (uint64_t)((int64_t)(x << unused) >> unused) : x;
}

static int apply(const struct job *j, struct rela *r, struct cairn_err *err)
{
	const char *file = j->e->path, *name = j->target->file.name;
	if (!r->type || (j->machine && r->type == j->machine->none))
		return 0;
	const struct kind *k = kind_of(j->machine, r->type);
	if (!k)
		return err_set(err, -EOPNOTSUPP, "%s: %s+0x%" PRIx64 ": relocation type %u", file,
			       name, r->offset, r->type);
	if (r->offset > j->size || k->width > j->size - r->offset)
		return err_set(err, -EBADMSG,
			       "%s: %s+0x%" PRIx64
			       ": relocation after the section's end, 0x%" PRIx64,
			       file, name, r->offset, j->size);
	if (!j->has_addends)
		r->addend = addend_in_place(j->bytes + r->offset, k);
	struct value v;
	int ret = symbol_value(j, r->symbol, &v, err);
	if (ret < 0)
		return ret;
	uint64_t x = compute(k, &v, r, j->target->file.addr.v + r->offset);
	if (!fits(x, k->width, k->range))
		return err_set(err, -EBADMSG,
			       "%s: %s+0x%" PRIx64 ": relocated value 0x%" PRIx64
			       " does not fit %s",
			       file, name, r->offset, x, cairn_counted(k->width, "byte").text);
	memcpy(j->bytes + r->offset, &x, k->width); /* both are little-endian */
	return 0;
}

static int set_symbols(struct job *j, const struct section *rela, struct cairn_err *err)
{
	const struct elf *e = j->e;
	if (!section_is(e, rela->link, SHT_SYMTAB))
		return err_set(err, -EBADMSG, "%s: %s: its symbol table, section %u, is not one",
			       e->path, j->rela_name, rela->link);
	const struct section *symtab = &e->sections[rela->link];
	int r = section_raw(e, rela->link, &j->symbols, err);
	if (r < 0)
		return r;
	j->n_symbols = j->symbols ? symtab->file_size / sizeof(Elf64_Sym) : 0;
	j->symbols_src = (struct cursor_src){e->path, symtab->file.name, j->symbols};
	uint32_t shndx = section_of_type(e, SHT_SYMTAB_SHNDX);
	if (shndx == NO_SECTION || e->sections[shndx].link != rela->link)
		return 0;
	if ((r = section_raw(e, shndx, &j->shndx, err)) < 0)
		return r;
	j->n_shndx = j->shndx ? e->sections[shndx].file_size / 4 : 0;
	return 0;
}

static int apply_section(struct job *j, size_t i, struct cairn_err *err)
{
	const struct section *rela = &j->e->sections[i];
	j->rela_name = rela->file.name;
	j->has_addends = rela->file.type == SHT_RELA;
	if (rela->file.flags & SHF_COMPRESSED)
		return err_set(err, -EOPNOTSUPP, "%s: %s: compressed relocations", j->e->path,
			       j->rela_name);
	const uint8_t *raw;
	int r = section_raw(j->e, i, &raw, err);
	if (r < 0 || !raw)
		return r;
	if ((r = set_symbols(j, rela, err)) < 0)
		return r;
	struct cursor_src src = {j->e->path, j->rela_name, raw};
	struct cursor c = cursor_of(&src, raw, rela->file_size, false, err);
	while (cur_more(&c)) {
		struct rela x;
		x.offset = cur_u64(&c);
		x.type = cur_u32(&c);
		x.symbol = cur_u32(&c);
		x.addend = j->has_addends ? cur_u64(&c) : 0;
		if (c.failed)
			break;
		if ((r = apply(j, &x, err)) < 0)
			return r;
	}
	return c.failed ? -EBADMSG : 0;
}

int section_relocate(const struct elf *e, size_t i, uint8_t *bytes, uint64_t size,
		     struct cairn_err *err)
{
	const struct section *target = &e->sections[i];
	struct job j = {.e = e,
			.machine = machine_of(e->machine),
			.target = target,
			.bytes = bytes,
			.size = size};
	for (uint32_t rela = target->first_rela; rela != NO_SECTION;
	     rela = e->sections[rela].next_rela) {
		int r = apply_section(&j, rela, err);
		if (r < 0)
			return r;
	}
	return 0;
}
