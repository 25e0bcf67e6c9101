/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads types from any source through one handle: a binary with DWARF, BTF, or C declarations
 *
 *	struct cairn_source *source;
 *	struct cairn_source_list found;
 *	if (cairn_source_open("vmlinux", NULL, &source, &err) < 0 ||
 *	    cairn_source_select(source, "task_struct", &found, &err) < 0)
 *		return fail(err.msg);
 *	for (size_t i = 0; i < found.n; i++)
 *		cairn_layout_print(layout, found.ids[i], stdout);
 *	free(found.ids);
 *	cairn_source_close(source);
 */
#ifndef CAIRN_SOURCE_H
#define CAIRN_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/api.h>
#include <cairn/binary.h>
#include <cairn/btf.h>
#include <cairn/err.h>
#include <cairn/layout.h>
#include <cairn/types.h>

CAIRN_BEGIN_DECLS

struct cairn_source;

enum cairn_source_kind { CAIRN_SOURCE_DWARF, CAIRN_SOURCE_BTF, CAIRN_SOURCE_DECL };

struct cairn_source_opts {
	size_t size; /* sizeof(struct cairn_source_opts); a longer, unknown tail must be zero */
	const struct cairn_btf *base; /* of split BTF; outlives the source. NULL: not split */
	bool btf;                     /* BTF also where there is DWARF */
	unsigned int threads;         /* 0: one per processor */
	/*
	 * The ABI that DWARF's types are laid out for, if it is not that of the file; NULL: that of
	 * the file.
	 */
	const struct cairn_abi *abi;
	/*
	 * For DWARF: "all" includes the typedefs of structs without a name, as it does for
	 * declarations.
	 */
	bool typedefs;
	/* The same file, opened already; outlives the source. NULL: it is opened. */
	const struct cairn_binary *binary;
};

/*
 * cairn_source_open - the types of a file: raw BTF, or an ELF file with DWARF or with BTF
 *
 * The DWARF is searched as cairn_binary_open() does, and is used if there are both.
 * Returns 0 with *@ret owned by the caller, cairn_source_close(). -ENOENT; -ENODATA: neither is
 * there (err: where it was searched); -EBADMSG; -EINVAL for options that are not known here;
 * -ENOMEM; the errors of cairn_btf_open() and cairn_binary_open(). Cost: DWARF: unit headers; BTF:
 * O(records), none of them read.
 */
int cairn_source_open(const char *path, const struct cairn_source_opts *opts,
		      struct cairn_source **ret, struct cairn_err *err);

/*
 * cairn_source_parse - C declarations, as the preprocessor leaves them, with a layout
 *
 * Structs, unions, enums and typedefs become nodes of a type graph, with the offsets that one ABI
 * gives them; constant expressions in them are computed (sizeof, offsetof, casts, enumerators).
 * Bodies of functions, initialisers and asm are skipped. The language is C11 with what GCC and
 * Clang add, as headers use it.
 *
 * @text, @size  need not end in NUL; not used afterwards. Lines "# 12 "file.h"" of the preprocessor
 *               are obeyed, so that errors name the header; #pragma pack and ms_struct, too
 * @name         of the file, for errors
 * Returns 0. -EBADMSG: it cannot be read (err: file, line, column, the line itself and a caret);
 * also for a type that the ABI does not have, a static assertion that does not hold, and a struct
 * that contains itself. -ERANGE: nested deeper than 200, a chain of more than 1,000 typedefs, or a
 * type of more than 2^40 bytes (err as above). -ENOMEM.
 * Cost: O(size). Threads: any. Signals: no.
 */
int cairn_source_parse(const char *text, size_t size, const char *name, const struct cairn_abi *abi,
		       struct cairn_source **ret, struct cairn_err *err);
/* True when @text has directives that only a preprocessor can obey, #include and the like. */
bool cairn_source_needs_preprocessor(const char *text, size_t size);

/* By the end of a file's name, ".java"; CAIRN_LANG_N when it is none of theirs. */
enum cairn_lang cairn_lang_of_path(const char *path);
/*
 * cairn_source_parse_foreign - declarations of another language; kind DECL, too
 *
 * Java (hello-ebpf's annotations), Rust (#[repr(C)]), Go, and Python (ctypes, struct formats). They
 * are laid out as that language lays them out, with its mistakes: if hello-ebpf puts a member at
 * another offset than C, the graph does the same. Code between them is skipped.
 *
 * @abi  of the machine that runs the program. Java's types have one size everywhere
 * Parameters, errors and cost as cairn_source_parse(). A struct that can be read but not laid out
 * is a problem, below, and is only declared in the graph.
 */
int cairn_source_parse_foreign(const char *text, size_t size, const char *name,
			       enum cairn_lang lang, const struct cairn_abi *abi,
			       struct cairn_source **ret, struct cairn_err *err);
void cairn_source_close(struct cairn_source *source);

/*
 * A file that the types are read from, and that became shorter while it was open; NULL: none.
 * Anything made of the types is not reliable then. Borrowed. Cost: a stat(2) for each. Threads:
 * any.
 */
const char *cairn_source_shortened(const struct cairn_source *source);

enum cairn_source_kind cairn_source_kind(const struct cairn_source *source);
/* For DWARF and BTF it has the selected types; for declarations it is complete. */
const struct cairn_types *cairn_source_types(const struct cairn_source *source);
/*
 * The @i-th problem of another language's declarations, NULL after the last; other sources have
 * none. Borrowed until cairn_source_close().
 */
const struct cairn_decl_problem *cairn_source_problem(const struct cairn_source *source, size_t i);
/*
 * The ABI that the types were laid out for; for BTF that of the ELF file that it is in. NULL: not
 * known.
 */
const struct cairn_abi *cairn_source_abi(const struct cairn_source *source);
bool cairn_source_is_big_endian(const struct cairn_source *source);
/*
 * The .dwo files (split DWARF) that were not found, as cairn_sites_missing(): their types are in no
 * answer.
 */
size_t cairn_source_missing(const struct cairn_source *source, const char **ret);

struct cairn_source_list {
	uint32_t *ids; /* free() */
	size_t n, cap;
};

/*
 * cairn_source_select - append the types of a name, complete, in the order of the input
 *
 * @pattern  "list_head", "struct list_head" (union, enum), a typedef's name, or a pattern of the
 *           shell, "tcp_*"; NULL: all structs and unions that have a name
 * @list     zeroed before its first use; the caller's
 * In DWARF typedefs come after all structs, and by name only if no struct has it. A name that no
 * type has may be that of a type in some scope: "Job" finds "ns::Job". In DWARF it may also be that
 * of a type that a function defines for itself: "f::inner", or "inner". Patterns find the latter if
 * they have "::". "All" has no types of functions.
 * Returns their number; 0: none. -ENOMEM, -EBADMSG.
 * Cost: O(types); for DWARF, the first call lists all definitions of the binary, in parallel by
 * unit, and the first that needs typedefs lists those.
 */
int64_t cairn_source_select(struct cairn_source *source, const char *pattern,
			    struct cairn_source_list *list, struct cairn_err *err);

/*
 * cairn_source_select_value - as cairn_source_select(); if there is none, types that have a value
 * but no members
 *
 * Those are typedefs of a number, a pointer or an array, and numbers by their own names. Any
 * spelling of C does: "unsigned long" finds GCC's "long unsigned int".
 *
 * @name  no pattern: patterns find what cairn_source_select() finds
 * Cost: as cairn_source_select(); for DWARF, that of typedefs.
 */
int64_t cairn_source_select_value(struct cairn_source *source, const char *name,
				  struct cairn_source_list *list, struct cairn_err *err);

/*
 * cairn_source_read_all - read all types of BTF, also those without a name; for callers that search
 * the graph themselves
 *
 * For other sources it does nothing: declarations are complete, and DWARF has too many units.
 * Returns 0; -ENOMEM. Cost: O(types) of BTF.
 */
int cairn_source_read_all(struct cairn_source *source, struct cairn_err *err);

CAIRN_END_DECLS
#endif
