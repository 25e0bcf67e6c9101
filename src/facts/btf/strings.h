/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A string table: holds each string once, and finds it by its offset
 *
 * Made for millions of strings: open addressing over offsets, with 32 bits of each hash beside
 * them. So growing touches no string, and a probe compares text only if the hash agrees.
 */
#ifndef BTF_STRINGS_H
#define BTF_STRINGS_H

#include <stddef.h>
#include <stdint.h>

struct cairn_btf;

struct btf_string_slot {
	uint32_t hash;
	uint32_t off; /* + 1; 0: free */
};

struct btf_strings {
	const struct cairn_btf *base; /* whose strings are found too; or NULL */
	uint32_t start;               /* offset of p[0]: the end of the base's strings */
	char *p;
	size_t size, room;
	struct btf_string_slot *slots;
	size_t n, n_slots; /* n_slots is a power of two */
	size_t n_of_base;  /* strings of the base and its bases, with duplicates */
};

/*
 * With those of @base, or with "" at offset 0. Returns 0 or -ENOMEM; btf_strings_fini() in any
 * case.
 */
int btf_strings_init(struct btf_strings *s, const struct cairn_btf *base);
void btf_strings_fini(struct btf_strings *s);

/*
 * The offset of the @len bytes at @text, which hold no NUL, in *@ret. 0, -ENOMEM, -ERANGE (2 GiB).
 */
int btf_strings_add(struct btf_strings *s, const char *text, size_t len, uint32_t *ret);

/*
 * Take a whole string section as it is, also one that has a string twice; only into a table with no
 * own strings.
 */
int btf_strings_adopt(struct btf_strings *s, const char *section, size_t size);

/* A string by offset, own or the base's. */
const char *btf_strings_at(const struct btf_strings *s, uint32_t off);

#endif
