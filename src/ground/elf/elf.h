/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Module elf reads ELF files, their symbols and their debug files.
 *
 * This header: sections in the form that the rest of the library uses.
 *
 * A section is seen decompressed (zlib, zstd, and the older .zdebug_* form) and, in a relocatable
 * file, relocated against the layout that this module gives to the allocated sections. Both happen
 * on first use and stay until the file is closed; everything else is borrowed from the mapping.
 *
 * A file that has checksums (guard.h) is compared with them: its headers when it is opened, a
 * section when its bytes are first used. So no reader of a section can forget it.
 *
 * A file that another program shortens in place while it is mapped raises SIGBUS, as with every
 * reader that maps. Package managers and linkers replace files by rename or unlink, which is safe.
 */
#ifndef ELF_ELF_H
#define ELF_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include <cairn/binary.h>

#include "base/cursor.h"
#include "base/vec.h"

struct elf;

struct elf_section {
	const char *name;
	uint32_t type;           /* SHT_*; SHT_NOBITS has data NULL */
	uint64_t flags;          /* SHF_* */
	struct cairn_vaddr addr; /* link-time; laid out by us in a relocatable file */
	struct cairn_foff foff;
	const uint8_t *data; /* decompressed and relocated; NULL when it has no bytes in the file */
	uint64_t size;       /* bytes at data; of a SHT_NOBITS section: its size in memory */
	struct cursor_src src; /* for cursors over it */
};

/*
 * elf_open_fd - map an ELF file
 *
 * @fd    stays the caller's
 * @name  shown in errors; copied
 * Errors: as cairn_binary_open().
 */
int elf_open_fd(int fd, const char *name, struct elf **ret, struct cairn_err *err);

/* The same, and BPF objects, too: for callers that read only types. */
int elf_open_fd_for_types(int fd, const char *name, struct elf **ret, struct cairn_err *err);

/* The same from memory, which must outlive it. For tests and fuzzers. */
int elf_open_mem(const void *bytes, size_t size, const char *name, struct elf **ret,
		 struct cairn_err *err);
/* Not elf_close(), which is a name of an archive that the program takes in: libbpf 1.7. */
void elf_unref(struct elf *e);

/* Adds an owner, which calls elf_unref(), too. Returns @e. */
struct elf *elf_ref(struct elf *e);

/* Which file was opened, whatever its path leads to by now. From memory: all zero. */
struct elf_origin {
	dev_t dev;
	ino_t ino;
	uid_t owner;
	bool is_file;
	uint64_t size;           /* bytes that were mapped */
	struct timespec changed; /* the file or its attributes, before it was mapped */
};

const char *elf_path(const struct elf *e);

/* Its name, quoted as text, if the file became shorter while it was mapped; else NULL. */
const char *elf_shortened(const struct elf *e);
const struct elf_origin *elf_origin(const struct elf *e);
bool elf_is_relocatable(const struct elf *e);
/* A Linux kernel or a module of one; see kernel.c. O(sections). */
bool elf_is_kernel(const struct elf *e);
/*
 * The section of an image made in memory whose code was read from the kernel that runs: it is
 * patched, and may have breakpoints.
 */
#define ELF_RUNNING_SECTION ".cairn.running"
uint16_t elf_machine(const struct elf *e);

/*
 * elf_need_x86_64 - refuse a file whose instructions cannot be decoded here
 *
 * @what  the result that is wanted, and a verb: "sites are known"
 * Returns 0, -EOPNOTSUPP.
 */
int elf_need_x86_64(const struct elf *e, const char *what, struct cairn_err *err);

/*
 * elf_section - a section by name, with its bytes
 *
 * ".debug_info" also finds ".zdebug_info". Among several sections of one name, the first with
 * bytes. *@ret is NULL when there is none; that is no error.
 * Returns 0, -EBADMSG (outside the file, damaged compression, relocation out of range), -ERANGE (a
 * decompressed size beyond the limit), -EOPNOTSUPP (unknown compression or relocation), -ENOMEM.
 * Threads: any (the first use is serialised inside).
 */
int elf_section(struct elf *e, const char *name, const struct elf_section **ret,
		struct cairn_err *err);

/*
 * Number of sections, and one by index as its header says it. Its bytes are not made ready: data is
 * NULL and size that in the file when they are compressed or wait for relocation. @i counts from 0,
 * below elf_n_sections().
 */
size_t elf_n_sections(const struct elf *e);
const struct elf_section *elf_section_at(const struct elf *e, size_t i);

/*
 * elf_section_unchecked - elf_section() of a file with checksums, whose bytes were not compared
 * with them
 *
 * @ret  a copy; its data is NULL when there is none, or it has no bytes, or they are compressed
 * The reader of the bytes calls elf_guard() for each page. In a file without checksums no section
 * is found.
 */
void elf_section_unchecked(const struct elf *e, const char *name, struct elf_section *ret);

/* The checksums of the file (elf/guard.h); NULL when it has none. */
struct guard *elf_guard(const struct elf *e);

/* One by index with its bytes, for names that occur several times. Otherwise as elf_section(). */
int elf_section_bytes(struct elf *e, size_t i, const struct elf_section **ret,
		      struct cairn_err *err);

/*
 * elf_lowest_address - where the lowest section that is loaded (SHF_ALLOC) begins
 *
 * A kernel's per-processor variables are linked at 0, which is no real address: .data..percpu does
 * not count. The base of the addresses in BTF (docs/formats/btf-loc.md). 0: there is none. Cost:
 * O(sections).
 */
uint64_t elf_lowest_address(const struct elf *e);

/* All bytes of the unchanged file, borrowed. */
const uint8_t *elf_whole(const struct elf *e, size_t *ret_size);

/*
 * elf_release - bytes of the file that are not needed for now
 *
 * Gives their memory back to the system. A later read finds the same bytes, after a page fault.
 * Nothing happens for bytes that are not those of a mapped file, such as decompressed ones.
 * Threads: any, also while others read them.
 */
void elf_release(const struct elf *e, const uint8_t *p, size_t n);

/*
 * The parts that a loader maps: the segments of an executable or shared object, the sections of
 * code of a relocatable file. The first three members are the same in a file, in its stripped
 * version, and in its debug file.
 */
struct elf_load {
	uint64_t at;      /* link-time address */
	uint64_t size;    /* in memory */
	uint32_t flags;   /* PF_* */
	uint64_t foff;    /* of its bytes in the file */
	uint64_t n_bytes; /* 0: this file does not have them */
};
size_t elf_loads(const struct elf *e, const struct elf_load **ret);

/* Copies @n bytes from the @off-th on, all below n_bytes; ELF and program headers as zeros. */
void elf_load_copy(const struct elf *e, const struct elf_load *l, uint64_t off, size_t n,
		   uint8_t *to);

/*
 * Whether @at is in a section of code, and how far that goes; *@ret is NULL where the file has no
 * bytes for it (debug files).
 */
bool elf_is_code(const struct elf *e, struct cairn_vaddr at, const uint8_t **ret,
		 uint64_t *ret_len);

/* Whether @at is in a section of code of which the file has no bytes, as in a debug file. */
static inline bool elf_lacks_code_at(const struct elf *e, struct cairn_vaddr at)
{
	const uint8_t *bytes;
	uint64_t len;
	return elf_is_code(e, at, &bytes, &len) && !bytes;
}

/* True when @at lies in a section with SHF_EXECINSTR; then the bytes from there to its end. */
bool elf_code_at(const struct elf *e, struct cairn_vaddr at, const uint8_t **ret, size_t *ret_len);

const uint8_t *elf_build_id(const struct elf *e, size_t *ret_len);

/* The build-id in notes that are padded to 4 bytes, as a kernel shows them; false: none. */
bool elf_notes_build_id(const uint8_t *notes, size_t size, const uint8_t **ret, size_t *ret_len);

/*
 * One symbol of .symtab (or .dynsym where that is missing), with a value and a section.
 * elf_symbols() gives them sorted by address, then by name; borrowed until elf_unref().
 */
struct elf_symbol {
	const char *name;
	struct cairn_vaddr at;
	uint64_t size;
	uint8_t type;    /* STT_* */
	uint8_t binding; /* STB_* */
};
int elf_symbols(struct elf *e, const struct elf_symbol **ret, size_t *ret_n, struct cairn_err *err);

struct symbol_list {
	VEC(struct elf_symbol) v;
};

/*
 * elf_symbols_named - those of elf_symbols() that have a name, in their order
 *
 * @ret  was empty; its names are borrowed until elf_unref() or elf_forget_symbols()
 * Returns 0, or as elf_symbols(). Cost: until elf_symbols() is called, a search in the strings and a
 * pass over the table; then a pass over the symbols.
 */
int elf_symbols_named(struct elf *e, const char *name, struct symbol_list *ret,
		      struct cairn_err *err);

/* Some names, which it owns. */
struct name_set {
	VEC(char *) v;
};

/* The first @n bytes of @name; one that is there already is left out. Returns 0, -ENOMEM. */
int name_set_add(struct name_set *s, const char *name, size_t n);
void name_set_fini(struct name_set *s);

/* The same as elf_symbols_named() of any of some names. */
int elf_symbols_of_names(struct elf *e, const struct name_set *names, struct symbol_list *ret,
			 struct cairn_err *err);

/*
 * elf_symbols_before - the last symbols that begin at or before an address, without an order of all
 *
 * @ret  was empty; gets the last of elf_symbols() up to @at, and all that begin up to
 *       ELF_SYMBOLS_BEFORE bytes before that one
 * Returns 1; 0 where elf_symbols() has to be asked; -ENOMEM. Cost: a pass over the table.
 */
enum { ELF_SYMBOLS_BEFORE = 4096 };
int elf_symbols_before(struct elf *e, struct cairn_vaddr at, struct symbol_list *ret);

/*
 * elf_visit_bounds - global symbols that have an address and no type, in any order
 *
 * Those of a linker script are among them. Returns 0, or as elf_symbols(). Cost: a pass.
 */
int elf_visit_bounds(struct elf *e, void (*visit)(void *ctx, const struct elf_symbol *s), void *ctx,
		     struct cairn_err *err);

/*
 * elf_forget_symbols - free what elf_symbols() gave; the next call reads them again
 *
 * For programs that run for ever, when nobody has any of them. One with other owners keeps them.
 */
void elf_forget_symbols(struct elf *e);

/*
 * elf_has_thread_symbol - whether a thread-local variable of a name is at an offset of the block
 *
 * @name  of the symbol; that of a static variable may have more: "calls.0", "parse.calls"
 * False also where the symbol table is damaged or missing. Cost: a pass over the symbols.
 */
bool elf_has_thread_symbol(const struct elf *e, const char *name, uint64_t offset);

/*
 * elf_names_print - a number for the symbols and the debug information that are in the file itself
 *
 * The ids of the units' .dwo files and of a file of shared debug information are in it.
 * Equal for equal sections wherever they lie in the file. It is no protection from a person, who
 * could make other names of the same number.
 * Returns 0 if the file has neither. Cost: 0.2 ms per MB of strings.
 */
uint32_t elf_names_print(const struct elf *e);

/* The file has a .symtab with something in it. */
bool elf_has_symtab(const struct elf *e);

/*
 * elf_imports - whether a function or variable of that name is taken from a shared library
 *
 * False also when .dynsym is damaged. Cost: one pass over .dynsym.
 */
bool elf_imports(const struct elf *e, const char *name);

/*
 * The names of all of them, until @visit returns something other than 0, which is the result; else
 * 0.
 */
int elf_visit_imports(const struct elf *e, int (*visit)(void *ctx, const char *name), void *ctx);

/* The files of a binary; debug and alt are NULL if there are none; debug may be main. */
struct elf *binary_main(const struct cairn_binary *bin);
/* The one of both whose symbol table is used. */
struct elf *binary_symbol_file(const struct cairn_binary *bin);
struct elf *binary_debug(const struct cairn_binary *bin);
/*
 * The file with the DWARF if it is another one than the binary; NULL also where it was not looked
 * for yet. Cost: none.
 */
struct elf *binary_separate_debug(const struct cairn_binary *bin);
struct elf *binary_alt(const struct cairn_binary *bin);

/*
 * binary_functions - function symbols of a binary by address, made on first use
 *
 * @ret  borrowed; NULL when they are damaged
 * Returns 0, -ENOMEM; the next call tries again. Threads: any.
 */
struct functions;
int binary_functions(const struct cairn_binary *bin, const struct functions **ret,
		     struct cairn_err *err);
/*
 * The same, for callers that cannot do without: damaged ones are an error, as with elf_symbols().
 */
int binary_functions_need(const struct cairn_binary *bin, const struct functions **ret,
			  struct cairn_err *err);
/*
 * binary_forget_symbols - free the functions and the symbols of its files; they are read again at need
 *
 * As elf_forget_symbols(): nobody may have any of them.
 */
void binary_forget_symbols(const struct cairn_binary *bin);
/*
 * binary_attached - what a later module makes of a binary once, for all who open it
 *
 * @make  called by the first caller, under a lock. A failure is returned, and the next call tries
 *        again. There is one such thing: always the same functions.
 * @done  frees it with the binary
 * Returns 0 and *@ret, or the result of @make. Threads: any.
 */
int binary_attached(const struct cairn_binary *bin,
		    int (*make)(const struct cairn_binary *bin, void **ret, struct cairn_err *err),
		    void (*done)(void *attached), void **ret, struct cairn_err *err);
/* They are those of a .symtab: no function is left out. */
bool binary_has_symtab(const struct cairn_binary *bin);

/*
 * binary_open_dwo, binary_open_dwp - a file with a part of the DWARF: a unit's .dwo, the package of
 * all
 *
 * @comp_dir, @name from the unit's skeleton: DW_AT_comp_dir, DW_AT_dwo_name
 * @ret_elf  the caller's, elf_unref(); NULL when there is none
 * @ret_log  where was looked and why each place did not do, one per line; malloc()ed
 * Returns 0, also when there is none; -ENOMEM. Threads: any.
 */
int binary_open_dwo(const struct cairn_binary *bin, const char *comp_dir, const char *name,
		    struct elf **ret_elf, char **ret_log, struct cairn_err *err);
int binary_open_dwp(const struct cairn_binary *bin, struct elf **ret_elf, char **ret_log,
		    struct cairn_err *err);

/*
 * binary_visit_origins - the files that an answer about a binary may be from
 *
 * They are the binary, its debug files, and the .dwo files that were opened up to now. Visiting
 * ends with the first call of @visit that returns something other than 0, which is the result; else
 * 0. Threads: any.
 */
int binary_visit_origins(const struct cairn_binary *bin,
			 int (*visit)(void *ctx, const char *path, const struct elf_origin *origin),
			 void *ctx);

/* -EBADMSG: cairn_binary_shortened(), so that what was made of it is not reliable; else 0. */
int binary_check_inputs(const struct cairn_binary *bin, struct cairn_err *err);

/*
 * binary_open_alone - cairn_binary_open() without @opts, which leaves debug files alone until a
 * caller needs them
 *
 * For callers that usually need only the binary, as a walk with a sidecar does. The search cannot
 * fail then: a file for which memory is lacking counts as missing. Errors: as cairn_binary_open().
 */
int binary_open_alone(const char *path, struct cairn_binary **ret, struct cairn_err *err);

/*
 * binary_open_for_types - cairn_binary_open() without @opts, which takes BPF objects, too
 *
 * Only its debug information may be used: no code of BPF is decoded here.
 */
int binary_open_for_types(const char *path, struct cairn_binary **ret, struct cairn_err *err);

/*
 * binary_with_debug - the same file, described by another one
 *
 * @debug  belongs to the result, also after an error
 * Returns 0, -ENOMEM.
 */
int binary_with_debug(const struct cairn_binary *bin, struct elf *debug, struct cairn_binary **ret,
		      struct cairn_err *err);

/* As cairn_binary_open() of @path, of which @fd has the bytes. */
int binary_open_fd(int fd, const char *path, const struct cairn_binary_opts *opts,
		   struct cairn_binary **ret, struct cairn_err *err);

/*
 * binary_open_unpacked - as cairn_binary_open() of what is in a compressed file: zstd, gzip
 *
 * Errors: as cairn_binary_open(); -EOPNOTSUPP also for xz, -ERANGE for more than a module has.
 */
int binary_open_unpacked(const char *path, const struct cairn_binary_opts *opts,
			 struct cairn_binary **ret, struct cairn_err *err);

/* A binary from memory, DWARF inside, for tests and fuzzers; @bytes must outlive it. */
int binary_open_mem(const void *bytes, size_t size, const char *name, struct cairn_binary **ret,
		    struct cairn_err *err);

#endif
