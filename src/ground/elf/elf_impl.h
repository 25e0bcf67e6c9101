/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An open ELF file; its sections and segments as the headers say. Only files of this module include
 * it.
 */
#ifndef ELF_ELF_IMPL_H
#define ELF_ELF_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/vec.h"
#include "elf/elf.h"

/* "No section": also the value in a table of section indices for a missing section. */
#define NO_SECTION UINT32_MAX

/*
 * A section, twice. `file` is from the section header and never changes after open. `ready` is the
 * result of elf_section(), with decompressed and relocated bytes; it is written once, by the thread
 * that set `busy`, before is_ready is set with release order.
 */
struct section {
	struct elf_section file, ready;
	atomic_bool is_ready;
	uint8_t *bytes;     /* of `ready`, when they are our own */
	bool busy;          /* a thread makes it ready; guarded by the file's lock */
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

/* The first contents of thread-local variables: PT_TLS. */
struct elf_thread_block {
	uint64_t at, size, align;
};

struct elf {
	struct arena arena;
	const char *path;
	struct elf_origin origin;
	const uint8_t *bytes;
	size_t size;
	bool mapped; /* bytes come from mmap and are ours to unmap */
	/* no caller will decode its instructions, so BPF objects are accepted, too */
	bool for_types;
	uint16_t type, machine;
	atomic_uint n_owners;
	struct guard *guard;  /* NULL: a file without checksums */
	bool lacks_checksums; /* and which should have them: a sidecar */
	struct elf_load *loads;
	size_t n_loads;
	uint64_t phoff, ph_size;              /* the program headers */
	struct elf_thread_block thread_block; /* size 0: there is none */
	/* Its code sections have no bytes: the result of objcopy --only-keep-debug. */
	bool debug_only;
	struct section *sections;
	size_t n_sections;
	bool has_symtab; /* elf_has_symtab() */
	/* Allocated sections that occupy addresses, by address. */
	uint32_t *by_addr;
	size_t n_by_addr;
	/* The one that was asked for last, by any thread: most questions are about one section. */
	uint32_t last_by_addr;
	/* The same segments twice: by address, by file offset. */
	struct segment *by_vaddr, *by_foff;
	size_t n_segments;
	const uint8_t *build_id;
	size_t build_id_len;

	pthread_mutex_t lock; /* for the members below, and `busy` of the sections */
	pthread_cond_t no_longer_busy;
	struct arena names; /* symbol names that were cut at their version */
	struct elf_symbol *symbols;
	size_t n_symbols;
	atomic_bool symbols_ready;
};

#endif
