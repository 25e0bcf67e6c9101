/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of this module share; nobody else includes it. */
#ifndef ELF_ELF_IMPL_H
#define ELF_ELF_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/vec.h"
#include "elf/elf.h"

/* "No section": also what a table of section indices holds where there is none. */
#define NO_SECTION UINT32_MAX

/*
 * A section, twice. `file` is what the section header says and never changes after open. `ready` is
 * what elf_section() hands out, with decompressed and relocated bytes; it is written once, by
 * the thread that set `busy`, before is_ready is set with release order.
 */
struct section {
	struct elf_section file, ready;
	atomic_bool is_ready;
	uint8_t *bytes;	    /* of `ready`, when they are our own */
	bool busy;	    /* a thread makes it ready; guarded by the file's lock */
	uint64_t file_size; /* sh_size */
	uint64_t entsize;
	uint64_t align;
	uint32_t link, info;
	/* Relocations of this section: a chain of SHT_RELA sections, in file order. */
	uint32_t first_rela, next_rela;
};

/* Bytes [foff, foff + size) of the file are loaded at [vaddr, vaddr + size). */
struct segment {
	uint64_t vaddr, foff, size;
};

struct elf {
	struct arena arena;
	const char *path;
	const uint8_t *bytes;
	size_t size;
	bool mapped; /* bytes come from mmap and are ours to unmap */
	uint16_t type, machine;
	/* Its code sections have no bytes: what objcopy --only-keep-debug leaves. */
	bool debug_only;
	struct section *sections;
	size_t n_sections;
	/* Allocated sections that occupy addresses, by address. */
	uint32_t *by_addr;
	size_t n_by_addr;
	/* The same segments twice: by address, by file offset. */
	struct segment *by_vaddr, *by_foff;
	size_t n_segments;
	const uint8_t *build_id;
	size_t build_id_len;

	pthread_mutex_t lock; /* for what is below, and `busy` of the sections */
	pthread_cond_t no_longer_busy;
	struct arena names; /* symbol names that were cut at their version */
	struct elf_symbol *symbols;
	size_t n_symbols;
	atomic_bool symbols_ready;
};

/* sections.c: not SHT_NOBITS, and not empty. */
bool section_has_bytes(const struct section *s);
/* The bytes of a section in the file, unchanged; -EBADMSG when they are not all there. */
int section_raw(const struct elf *e, size_t i, const uint8_t **ret, struct cairn_err *err);
/* Section @i with its bytes ready; takes the lock. Errors: as elf_section(). */
int section_ready(struct elf *e, size_t i, const struct elf_section **ret, struct cairn_err *err);
/* @i is that of a section and it is of @type. */
bool section_is(const struct elf *e, uint32_t i, uint32_t type);
/* First section of a type; NO_SECTION when there is none. */
uint32_t section_of_type(const struct elf *e, uint32_t type);

/* segments.c: fill by_addr, by_vaddr and by_foff, and lay a relocatable file out. */
int elf_lay_out(struct elf *e, struct cairn_err *err);
struct segment_header {
	uint64_t vaddr, foff, file_size;
};
int elf_set_segments(struct elf *e, const struct segment_header *p, size_t n,
		     struct cairn_err *err);
int elf_index_sections(struct elf *e, struct cairn_err *err);
const struct section *elf_section_holding(const struct elf *e, struct cairn_vaddr at);
bool elf_foff(const struct elf *e, struct cairn_vaddr at, struct cairn_foff *ret);
bool elf_vaddr(const struct elf *e, struct cairn_foff off, struct cairn_vaddr *ret);

/* compress.c */
bool section_is_compressed(const struct elf *e, size_t i);
/* Decompressed bytes, malloc()ed. */
int section_decompress(const struct elf *e, size_t i, uint8_t **ret, uint64_t *ret_size,
		       struct cairn_err *err);

/* relocate.c */
bool section_needs_relocation(const struct elf *e, size_t i);
int section_relocate(const struct elf *e, size_t i, uint8_t *bytes, uint64_t size,
		     struct cairn_err *err);

/* symbols.c: the file has a .symtab with something in it. */
bool elf_has_symtab(const struct elf *e);

/* note.c: find the build-id note; sets build_id and build_id_len. */
int elf_find_build_id(struct elf *e, struct cairn_err *err);

#endif
