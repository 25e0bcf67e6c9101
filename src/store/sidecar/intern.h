/* SPDX-License-Identifier: BSD-2-Clause */
/* Strings, files and functions of all units, each once, with 32-bit numbers. */
#ifndef SIDECAR_INTERN_H
#define SIDECAR_INTERN_H

#include "base/map.h"
#include "sidecar/bytes.h"

/* The text of .cairn.strings: each string once, with its NUL; offset 0 is "". */
struct strings {
	struct bytes text;
	struct map by_hash; /* to the offset; of equal hashes the next key is free */
};

/* Returns 0 or -ENOMEM. strings_fini() takes zeroes. */
int strings_init(struct strings *s);
void strings_fini(struct strings *s);

/* Offset of a string in *@ret; of NULL 0. Returns 0, -ENOMEM, -ERANGE (more than 4 GiB). */
int strings_add(struct strings *s, const char *string, uint32_t *ret);

/* Things that are numbered in order of use, so that the frequent ones have small numbers. */
struct ranking {
	VEC(uint32_t) uses;  /* by number of appearance */
	VEC(uint32_t) order; /* the reverse of rank: order.p[rank.p[i]] is i */
	VEC(uint32_t) rank;
};

void ranking_fini(struct ranking *r);

/*
 * Fills order and rank; number 0 stays 0. Among items with equal use, the first to appear comes
 * first. 0 or -ENOMEM.
 */
int ranking_make(struct ranking *r);

/* Paths by number of appearance; 0 is no file. */
struct file_table {
	VEC(uint32_t) path; /* string */
	struct map by_path;
	struct ranking ranking;
};

/* Number of a path; of NULL 0. Returns 0 or an error as strings_add(). */
int file_table_add(struct file_table *t, struct strings *s, const char *path, uint32_t *ret);
void file_table_fini(struct file_table *t);

/* As in .cairn.functions. */
struct function_entry {
	uint32_t name, linkage; /* strings; 0 none */
	uint32_t file;          /* number of appearance; 0 none */
	uint32_t line;
};

/* Functions by number of appearance; 0 is one of which nothing is known. */
struct function_table {
	VEC(struct function_entry) v;
	struct map by_key;
	struct ranking ranking;
};

int function_table_add(struct function_table *t, const struct function_entry *f, uint32_t *ret);
void function_table_fini(struct function_table *t);

#endif
