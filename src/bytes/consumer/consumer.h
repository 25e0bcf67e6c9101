/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads declarations of structs in other languages
 *
 *	struct cairn_consumer *f;
 *	if (cairn_consumer_parse(text, size, "event.go", CAIRN_LANG_GO, cairn_abi_find("i386"),
 *				 &f, &err) < 0)
 *		return fail(err.msg);
 *	cairn_compare(btf_types, id, cairn_consumer_types(f), other, &opts, &changes, &err);
 *	cairn_consumer_free(f);
 *
 * Declarations of Java (hello-ebpf's annotations), Rust (#[repr(C)]), Go, and Python (ctypes,
 * struct formats) become a type graph. It is laid out as that language lays it out, with its
 * mistakes: if hello-ebpf puts a member at another offset than C, the graph does the same. Code
 * between them is skipped.
 */
#ifndef CAIRN_CONSUMER_H
#define CAIRN_CONSUMER_H

#include <stdbool.h>
#include <stddef.h>

#include <cairn/api.h>
#include <cairn/err.h>
#include <cairn/layout.h>
#include <cairn/types.h>

CAIRN_BEGIN_DECLS

enum cairn_lang {
	CAIRN_LANG_JAVA,
	CAIRN_LANG_RUST,
	CAIRN_LANG_GO,
	CAIRN_LANG_PYTHON,
	CAIRN_LANG_N
};

/* By the end of a file's name, ".java"; CAIRN_LANG_N when it is none of theirs. */
enum cairn_lang cairn_lang_of_path(const char *path);
/* "Java" */
const char *cairn_lang_name(enum cairn_lang lang);

struct cairn_consumer;

/*
 * cairn_consumer_parse - read declarations and lay them out
 *
 * @text, @size  need not end in NUL; not used afterwards
 * @name         of the file, for errors
 * @abi          of the machine that runs the program. Java's types have one size everywhere
 * @ret          owned by the caller, cairn_consumer_free()
 * Returns 0. -EBADMSG: it cannot be read (err: file, line, column, the line and a caret). -ERANGE:
 * nested deeper than 200. -ENOMEM. A struct that can be read but not laid out is a problem, below,
 * and is only declared in the graph.
 * Cost: O(size). Threads: any. Signals: no.
 */
int cairn_consumer_parse(const char *text, size_t size, const char *name, enum cairn_lang lang,
			 const struct cairn_abi *abi, struct cairn_consumer **ret,
			 struct cairn_err *err);
void cairn_consumer_free(struct cairn_consumer *f);

/* Borrowed until cairn_consumer_free(). */
const struct cairn_types *cairn_consumer_types(const struct cairn_consumer *f);

/* A type whose layout the language does not fix, or that has a member which is not known here. */
struct cairn_consumer_problem {
	const char *type; /* its name */
	const char *text; /* file, line, column, reason, the line and a caret */
	/* it is laid out all the same; the reason is something that its user should know */
	bool laid_out;
};

/* The @i-th, NULL after the last. */
const struct cairn_consumer_problem *cairn_consumer_problem(const struct cairn_consumer *f,
							    size_t i);

CAIRN_END_DECLS
#endif
