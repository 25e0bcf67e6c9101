/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sources of types: a binary with DWARF, BTF, or C declarations, behind one handle
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

#include <stddef.h>
#include <stdint.h>

#include <cairn/api.h>
#include <cairn/binary.h>
#include <cairn/btf.h>
#include <cairn/err.h>
#include <cairn/consumer.h>
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
	 * What DWARF's types are laid out for when it is not what the file is for; NULL: what the
	 * file is for.
	 */
	const struct cairn_abi *abi;
	/*
	 * Of DWARF: "all" has the typedefs of structs without a name, too, as it has of
	 * declarations.
	 */
	bool typedefs;
	/* The same file, opened already; outlives the source. NULL: it is opened. */
	const struct cairn_binary *binary;
};

/*
 * cairn_source_open - the types of a file: raw BTF, or an ELF file with DWARF or with BTF
 *
 * DWARF is looked for as cairn_binary_open() does, and is taken where there are both.
 * Returns 0 with *@ret owned by the caller, cairn_source_close(). -ENOENT; -ENODATA: neither is
 * there (err: where it was looked for); -EBADMSG; -EINVAL for options that are not known here;
 * -ENOMEM; what cairn_btf_open() and cairn_binary_open() say. Cost: DWARF: unit headers; BTF:
 * O(records), none of them read.
 */
int cairn_source_open(const char *path, const struct cairn_source_opts *opts,
		      struct cairn_source **ret, struct cairn_err *err);

/* C declarations, see cairn_decl_parse() for everything. */
int cairn_source_parse(const char *text, size_t size, const char *name, const struct cairn_abi *abi,
		       struct cairn_source **ret, struct cairn_err *err);
/* Another language's declarations, see cairn_consumer_parse(); kind DECL, too. */
int cairn_source_parse_foreign(const char *text, size_t size, const char *name,
			       enum cairn_lang lang, const struct cairn_abi *abi,
			       struct cairn_source **ret, struct cairn_err *err);
void cairn_source_close(struct cairn_source *source);

enum cairn_source_kind cairn_source_kind(const struct cairn_source *source);
/* Of DWARF and BTF it has what was selected; of declarations it is complete. */
const struct cairn_types *cairn_source_types(const struct cairn_source *source);
/* What was read of another language; NULL: it is something else. */
const struct cairn_foreign *cairn_source_foreign(const struct cairn_source *source);
/* Which the types were laid out for; of BTF by the ELF file that it is in. NULL: not known. */
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
 * In DWARF typedefs come after all structs, and by name only when no struct has it. A name that no
 * type has may be that of a type in some scope ("Job" finds "ns::Job") or, in DWARF, of one that a
 * function defines for itself ("f::inner", or "inner"); patterns find the latter when they have
 * "::". "All" has no types of functions. Returns how many there were; 0: none. -ENOMEM, -EBADMSG.
 * Cost: O(types); of DWARF, the first call lists all definitions of the binary, in parallel by
 * unit, and the first that looks for typedefs lists those.
 */
int64_t cairn_source_select(struct cairn_source *source, const char *pattern,
			    struct cairn_source_list *list, struct cairn_err *err);

/*
 * cairn_source_select_value - as cairn_source_select(), and when there is none, what has a value
 * but no members
 *
 * That is a typedef of a number, a pointer or an array, and a number by its own name, in any
 * spelling of C ("unsigned long" finds GCC's "long unsigned int").
 *
 * @name  no pattern: patterns find what cairn_source_select() finds
 * Cost: as cairn_source_select(); of DWARF, that of typedefs.
 */
int64_t cairn_source_select_value(struct cairn_source *source, const char *name,
				  struct cairn_source_list *list, struct cairn_err *err);

/*
 * cairn_source_read_all - all types of BTF, also those without a name; for those who search the
 * graph themselves
 *
 * Of other sources nothing: declarations are complete, and DWARF has units beyond number.
 * Returns 0; -ENOMEM. Cost: O(types) of BTF.
 */
int cairn_source_read_all(struct cairn_source *source, struct cairn_err *err);

CAIRN_END_DECLS
#endif
