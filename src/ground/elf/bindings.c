/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Variables that another file of the process may have
 *
 * The code of a shared library reads the address of a variable that it exports from a slot of the
 * global offset table. The dynamic linker writes there the first variable of that name in the
 * process. This is often not the library's own: an executable that uses "environ" of the C library
 * has a copy of it, and both use the copy.
 *
 *	libc.so.6	.dynsym	     environ  at 0x1ed600
 *			.rela.dyn    R_X86_64_GLOB_DAT environ  slot 0x1e8e18
 *	program		.rela.dyn    R_X86_64_COPY     environ  at 0x404080	the slot has this
 *
 * An executable is the first of all files, so its names stand for its own variables. So do hidden
 * ones, and those of a library that is linked with -Bsymbolic.
 *
 * Thread-local variables are in a block of each thread, one per file. That of an executable ends at
 * the thread pointer. Where a library's is only the dynamic linker knows, which writes it to slots:
 *
 *	R_X86_64_TPOFF64   the distance from the thread pointer
 *	R_X86_64_DTPMOD64  the number of the file in the table of blocks that each thread has
 *
 * One such slot of the file's own tells where all of the block is.
 */
#include "elf/bindings.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "elf/section_raw.h"

struct bindings {
	const struct elf *e;
	struct cursor_src src; /* of .dynsym */
	const uint8_t *symbols;
	const char *strings; /* NULL: damaged, or none */
	uint64_t n_symbols, n_strings;
	bool is_thread_local; /* of the variable */
	struct cairn_err *err;
};

/* A table of the file as a cursor over its whole entries; empty when there is none. */
static int table_of(const struct bindings *b, size_t i, size_t entry, struct cursor_src *src,
		    struct cursor *ret)
{
	const struct section *s = &b->e->sections[i];
	const uint8_t *bytes = NULL;
	int rc = section_raw(b->e, i, &bytes, b->err);

	*src = (struct cursor_src){b->e->path, s->file.name, bytes};
	*ret = cursor_of(src, bytes, bytes ? s->file_size / entry * entry : 0, false, b->err);
	return rc;
}

/* Returns 1; 0: nothing is exported. */
static int open_symbols(struct bindings *b)
{
	const struct elf *e = b->e;
	const uint8_t *strings = NULL;
	uint32_t i = section_of_type(e, SHT_DYNSYM);
	int rc = i == NO_SECTION ? 0 : section_raw(e, i, &b->symbols, b->err);

	if (rc < 0 || !b->symbols)
		return rc;
	uint32_t link = e->sections[i].link;
	b->src = (struct cursor_src){e->path, e->sections[i].file.name, b->symbols};
	b->n_symbols = e->sections[i].file_size / sizeof(Elf64_Sym);
	rc = section_is(e, link, SHT_STRTAB) ? section_raw(e, link, &strings, b->err) : 0;
	if (rc < 0 || !strings || strings[e->sections[link].file_size - 1])
		return rc < 0 ? rc : 1;
	b->strings = (const char *)strings;
	b->n_strings = e->sections[link].file_size;
	return 1;
}

/* The contents of a file's section for the dynamic linker. */
struct linkage {
	bool is_library;
	bool is_symbolic;
	bool is_of_glibc; /* it uses that C library, or is it */
};

static bool is_glibc(const struct bindings *b, uint64_t name)
{
	if (name >= b->n_strings)
		return false;
	return !strcmp(b->strings + name, "libc.so.6") ||
	       !strcmp(b->strings + name, "ld-linux-x86-64.so.2");
}

static int read_linkage(const struct bindings *b, struct linkage *ret)
{
	uint32_t i = section_of_type(b->e, SHT_DYNAMIC);
	struct cursor_src src;
	struct cursor c;

	*ret = (struct linkage){.is_library = b->e->type == ET_DYN && i != NO_SECTION};
	if (!ret->is_library)
		return 0;
	int rc = table_of(b, i, sizeof(Elf64_Dyn), &src, &c);
	while (rc == 0 && cur_more(&c)) {
		uint64_t tag = cur_u64(&c), value = cur_u64(&c);
		ret->is_library &= tag != DT_FLAGS_1 || !(value & DF_1_PIE);
		ret->is_symbolic |= tag == DT_SYMBOLIC || (tag == DT_FLAGS && value & DF_SYMBOLIC);
		ret->is_of_glibc |= (tag == DT_NEEDED || tag == DT_SONAME) && is_glibc(b, value);
	}
	return rc;
}

/* A symbol of the address, or offset, that other files may take the place of. */
static bool is_exported(const struct bindings *b, uint64_t index, uint64_t at,
			const char **ret_name)
{
	if (index >= b->n_symbols)
		return false;
	struct cursor c = cursor_of(&b->src, b->symbols + index * sizeof(Elf64_Sym),
				    sizeof(Elf64_Sym), false, NULL);
	uint32_t name = cur_u32(&c);
	uint8_t info = cur_u8(&c), other = cur_u8(&c);
	uint16_t section = cur_u16(&c);
	uint64_t value = cur_u64(&c);
	*ret_name = name < b->n_strings ? b->strings + name : "";
	return section != SHN_UNDEF && value == at && ELF64_ST_BIND(info) != STB_LOCAL &&
	       ELF64_ST_VISIBILITY(other) == STV_DEFAULT &&
	       (ELF64_ST_TYPE(info) == STT_TLS) == b->is_thread_local;
}

static bool is_any_exported(const struct bindings *b, uint64_t at)
{
	const char *name;

	for (uint64_t i = 0; i < b->n_symbols; i++)
		if (is_exported(b, i, at, &name))
			return true;
	return false;
}

struct slot {
	struct cairn_vaddr at;
	bool is_found, is_of_name;
};

static int find_slot(const struct bindings *b, size_t section, struct cairn_vaddr at,
		     const char *name, struct slot *ret)
{
	struct cursor_src src;
	struct cursor c;
	int rc = table_of(b, section, sizeof(Elf64_Rela), &src, &c);

	while (rc == 0 && cur_more(&c)) {
		uint64_t slot = cur_u64(&c), info = cur_u64(&c);
		const char *own;
		cur_skip(&c, 8); /* r_addend */
		if (ELF64_R_TYPE(info) != R_X86_64_GLOB_DAT ||
		    !is_exported(b, ELF64_R_SYM(info), at.v, &own))
			continue;
		bool is_of_name = name && !strcmp(own, name);
		if (ret->is_found && (ret->is_of_name || !is_of_name))
			continue;
		*ret = (struct slot){{slot}, true, is_of_name};
	}
	return rc;
}

static int find_slots(const struct bindings *b, struct cairn_vaddr at, const char *name,
		      struct slot *ret)
{
	int rc = 0;

	for (size_t i = 0; i < b->e->n_sections && rc == 0; i++) {
		const struct section *s = &b->e->sections[i];
		if (s->file.type == SHT_RELA && s->file.flags & SHF_ALLOC)
			rc = find_slot(b, i, at, name, ret);
	}
	return rc;
}

int elf_binding_of(const struct elf *e, struct cairn_vaddr at, const char *name,
		   struct cairn_vaddr *ret_slot, struct cairn_err *err)
{
	struct bindings b = {.e = e, .err = err};
	struct slot slot = {0};
	struct linkage linkage = {0};
	int rc = read_linkage(&b, &linkage);

	if (rc == 0)
		rc = open_symbols(&b);
	if (rc <= 0 || !linkage.is_library || linkage.is_symbolic || !is_any_exported(&b, at.v))
		return rc < 0 ? rc : ELF_BOUND_HERE;
	/* Slots of other machines have other relocations. */
	rc = e->machine == EM_X86_64 ? find_slots(&b, at, name, &slot) : 0;
	*ret_slot = slot.at;
	if (rc < 0)
		return rc;
	return slot.is_found ? ELF_BOUND_BY_SLOT : ELF_BOUND_UNKNOWN;
}

/* ---- thread-local variables ---- */

/* The executable's block ends at the thread pointer, its size rounded up. */
static struct elf_thread_place place_in_executable(const struct elf *e, uint64_t offset)
{
	const struct elf_thread_block *block = &e->thread_block;
	uint64_t align = block->align ? block->align : 1;

	if (!block->size || align & (align - 1) || block->at & (align - 1) ||
	    block->size > INT32_MAX || align > INT32_MAX || offset >= block->size)
		return (struct elf_thread_place){.way = ELF_THREAD_UNKNOWN};
	return (struct elf_thread_place){
		.way = ELF_THREAD_FIXED,
		.add = (int64_t)(offset - ((block->size + align - 1) & ~(align - 1)))};
}

/*
 * The contents of one relocation. An exported variable has slots of its own, the others those of
 * none.
 */
static void see_slot(const struct bindings *b, const Elf64_Rela *r, bool exports, uint64_t offset,
		     struct elf_thread_place *ret)
{
	const char *name;
	uint64_t symbol = ELF64_R_SYM(r->r_info);
	uint32_t type = ELF64_R_TYPE(r->r_info);

	if (exports ? !symbol || !is_exported(b, symbol, offset, &name) : symbol)
		return;
	if (type == R_X86_64_TPOFF64)
		*ret = (struct elf_thread_place){.way = ELF_THREAD_OFFSET,
						 .slot = {r->r_offset},
						 .add = exports ? -r->r_addend
								: (int64_t)offset - r->r_addend};
	else if (type == R_X86_64_DTPMOD64 && ret->way == ELF_THREAD_UNKNOWN && !exports)
		*ret = (struct elf_thread_place){
			.way = ELF_THREAD_MODULE, .slot = {r->r_offset}, .add = (int64_t)offset};
}

static int see_slots(const struct bindings *b, size_t section, bool exports, uint64_t offset,
		     struct elf_thread_place *ret)
{
	struct cursor_src src;
	struct cursor c;
	int rc = table_of(b, section, sizeof(Elf64_Rela), &src, &c);

	while (rc == 0 && cur_more(&c)) {
		Elf64_Rela r = {.r_offset = cur_u64(&c)};
		r.r_info = cur_u64(&c);
		r.r_addend = (int64_t)cur_u64(&c);
		see_slot(b, &r, exports, offset, ret);
	}
	return rc;
}

static int place_in_library(struct bindings *b, const struct linkage *linkage, uint64_t offset,
			    struct elf_thread_place *ret)
{
	bool exports = !linkage->is_symbolic && is_any_exported(b, offset);
	int rc = 0;

	for (size_t i = 0; i < b->e->n_sections && rc == 0; i++) {
		const struct section *s = &b->e->sections[i];
		if (s->file.type == SHT_RELA && s->file.flags & SHF_ALLOC)
			rc = see_slots(b, i, exports, offset, ret);
	}
	if (ret->way == ELF_THREAD_MODULE && !linkage->is_of_glibc)
		ret->way = ELF_THREAD_UNKNOWN;
	return rc;
}

int elf_thread_place_of(const struct elf *e, uint64_t offset, struct elf_thread_place *ret,
			struct cairn_err *err)
{
	struct bindings b = {.e = e, .is_thread_local = true, .err = err};
	struct linkage linkage = {0};

	*ret = (struct elf_thread_place){.way = ELF_THREAD_UNKNOWN};
	if (e->machine != EM_X86_64)
		return 0;
	int rc = open_symbols(&b);
	if (rc >= 0)
		rc = read_linkage(&b, &linkage);
	if (rc < 0)
		return rc;
	if (linkage.is_library)
		return place_in_library(&b, &linkage, offset, ret);
	*ret = place_in_executable(e, offset);
	return 0;
}
