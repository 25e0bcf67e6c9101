/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Module decl reads C declarations, as the preprocessor leaves them, as types with a layout.
 *
 *	struct decl *decl;
 *	if (decl_parse(text, size, "event.h", cairn_abi_find("i386"), &decl, &err) < 0)
 *		return fail(err.msg);	// event.h:3:17: expected ';' ... and the line with a caret
 *	const struct cairn_types *types = decl_types(decl);
 *	uint32_t id = decl_find(decl, CAIRN_T_STRUCT, "event");
 *	cairn_layout_print(types, id, NULL, stdout);
 *	decl_free(decl);
 *
 * Structs, unions, enums and typedefs become nodes of a type graph, with the offsets that one ABI
 * gives them; constant expressions in them are computed (sizeof, offsetof, casts, enumerators).
 * Bodies of functions, initialisers and asm are skipped. The language is C11 with what GCC and
 * Clang add, as headers use it.
 */
#ifndef DECL_DECL_H
#define DECL_DECL_H

#include <stddef.h>

#include <cairn/err.h>
#include <cairn/layout.h>
#include <cairn/types.h>

struct decl;

/*
 * decl_parse - read declarations and lay them out
 *
 * @text, @size  need not end in NUL; not used afterwards. Lines "# 12 "file.h"" of the preprocessor
 *               are obeyed, so that errors name the header; #pragma pack and ms_struct, too
 * @name         of the file, for errors
 * @ret          owned by the caller, decl_free()
 * Returns 0. -EBADMSG: it cannot be read (err: file, line, column, the line itself and a caret);
 * also for a type that the ABI does not have, a static assertion that does not hold, and a struct
 * that contains itself. -ERANGE: nested deeper than 200, a chain of more than 1,000 typedefs, or a
 * type of more than 2^40 bytes (err as above). -ENOMEM.
 * Cost: O(size). Threads: any. Signals: no.
 */
int decl_parse(const char *text, size_t size, const char *name, const struct cairn_abi *abi,
	       struct decl **ret, struct cairn_err *err);
void decl_free(struct decl *decl);

/* Borrowed until decl_free(). */
const struct cairn_types *decl_types(const struct decl *decl);

/*
 * The type of that name; @kind is CAIRN_T_STRUCT, UNION, ENUM or TYPEDEF. 0: there is none. O(1).
 */
uint32_t decl_find(const struct decl *decl, enum cairn_type_kind kind, const char *name);

/*
 * True when @text has directives that only a preprocessor can obey, #include and the like.
 */
bool decl_needs_preprocessor(const char *text, size_t size);

#endif
