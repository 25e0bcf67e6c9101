/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Module consumer reads the declarations of structs in other languages than C.
 *
 *	struct consumer *f;
 *	if (consumer_parse(text, size, "event.go", CAIRN_LANG_GO, cairn_abi_find("i386"),
 *				 &f, &err) < 0)
 *		return fail(err.msg);
 *	cairn_compare(btf_types, id, consumer_types(f), other, &opts, &changes, &err);
 *	consumer_free(f);
 *
 * Declarations of Java (hello-ebpf's annotations), Rust (#[repr(C)]), Go, and Python (ctypes,
 * struct formats) become a type graph. It is laid out as that language lays it out, with its
 * mistakes: if hello-ebpf puts a member at another offset than C, the graph does the same. Code
 * between them is skipped.
 */
#ifndef CONSUMER_CONSUMER_H
#define CONSUMER_CONSUMER_H

#include <stdbool.h>
#include <stddef.h>

#include <cairn/err.h>
#include <cairn/layout.h>
#include <cairn/types.h>

/* By the end of a file's name, ".java"; CAIRN_LANG_N when it is none of theirs. */
enum cairn_lang consumer_lang_of_path(const char *path);

struct consumer;

/*
 * consumer_parse - read declarations and lay them out
 *
 * @text, @size  need not end in NUL; not used afterwards
 * @name         of the file, for errors
 * @abi          of the machine that runs the program. Java's types have one size everywhere
 * @ret          owned by the caller, consumer_free()
 * Returns 0. -EBADMSG: it cannot be read (err: file, line, column, the line and a caret). -ERANGE:
 * nested deeper than 200. -ENOMEM. A struct that can be read but not laid out is a problem, below,
 * and is only declared in the graph.
 * Cost: O(size). Threads: any. Signals: no.
 */
int consumer_parse(const char *text, size_t size, const char *name, enum cairn_lang lang,
		   const struct cairn_abi *abi, struct consumer **ret, struct cairn_err *err);
void consumer_free(struct consumer *f);

/* Borrowed until consumer_free(). */
const struct cairn_types *consumer_types(const struct consumer *f);

/* The @i-th, NULL after the last. */
const struct cairn_decl_problem *consumer_problem(const struct consumer *f, size_t i);

#endif
