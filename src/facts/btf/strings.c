/* SPDX-License-Identifier: BSD-2-Clause */
#include "btf/strings.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "btf/btf.h"

/* Offsets are 31 bits wide for libbpf (BTF_MAX_STR_OFFSET). */
#define STRINGS_BYTES_MAX INT32_MAX

#define SLOTS_FIRST 1024

/*
 * Two 64-bit multiplications per 16 bytes; the tail is read as a whole word, which may overlap the
 * bytes before it.
 */
static uint32_t hash_of(const char *p, size_t len)
{
	const uint64_t k = 0x9e3779b97f4a7c15;
	uint64_t h = len * k, w = 0;
	size_t i = 0;
	for (; i + 8 <= len; i += 8) {
		memcpy(&w, p + i, 8);
		h = (h ^ w) * k;
		h ^= h >> 32;
	}
	w = 0;
	memcpy(&w, p + i, len - i);
	h = (h ^ w) * k;
	return (uint32_t)(h >> 32 ^ h >> 15);
}

const char *btf_strings_at(const struct btf_strings *s, uint32_t off)
{
	return off >= s->start ? s->p + (off - s->start) : cairn_btf_string(s->base, off);
}

static bool same(const struct btf_strings *s, uint32_t off, const char *text, size_t len)
{
	const char *there = btf_strings_at(s, off);
	return !strncmp(there, text, len) && !there[len];
}

/* The slot that holds the string, or the free one where it belongs. */
static struct btf_string_slot *slot_of(const struct btf_strings *s, uint32_t hash, const char *text,
				       size_t len)
{
	size_t i = hash & (s->n_slots - 1);
	for (; s->slots[i].off; i = (i + 1) & (s->n_slots - 1))
		if (s->slots[i].hash == hash && same(s, s->slots[i].off - 1, text, len))
			break;
	return &s->slots[i];
}

static int grow(struct btf_strings *s)
{
	size_t n_slots = s->n_slots ? 2 * s->n_slots : SLOTS_FIRST;
	struct btf_string_slot *slots = calloc(n_slots, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < s->n_slots; i++) {
		if (!s->slots[i].off)
			continue;
		size_t at = s->slots[i].hash & (n_slots - 1);
		while (slots[at].off)
			at = (at + 1) & (n_slots - 1);
		slots[at] = s->slots[i];
	}
	free(s->slots);
	s->slots = slots;
	s->n_slots = n_slots;
	return 0;
}

/* The slot of a string; a new one gets *@off, and then *@is_new is set. */
static int intern(struct btf_strings *s, const char *text, size_t len, uint32_t *off, bool *is_new)
{
	/* At most two thirds full. */
	if (3 * s->n >= 2 * s->n_slots) {
		int rc = grow(s);
		if (rc < 0)
			return rc;
	}
	uint32_t hash = hash_of(text, len);
	struct btf_string_slot *slot = slot_of(s, hash, text, len);
	*is_new = !slot->off;
	if (*is_new) {
		*slot = (struct btf_string_slot){hash, *off + 1};
		s->n++;
	}
	*off = slot->off - 1;
	return 0;
}

static int make_room(struct btf_strings *s, size_t more)
{
	if (more > STRINGS_BYTES_MAX - s->start || s->size > STRINGS_BYTES_MAX - s->start - more)
		return -ERANGE;
	if (s->size + more <= s->room)
		return 0;
	size_t room = 2 * s->room > s->size + more ? 2 * s->room : s->size + more + 4096;
	char *p = realloc(s->p, room);
	if (!p)
		return -ENOMEM;
	s->p = p;
	s->room = room;
	return 0;
}

static int intern_section(struct btf_strings *s, const char *section, size_t size, uint32_t start,
			  size_t *n)
{
	bool is_new;
	for (size_t i = 0; i < size;) {
		size_t len = strlen(section + i);
		uint32_t off = start + (uint32_t)i;
		int rc = intern(s, section + i, len, &off, &is_new);
		if (rc < 0)
			return rc;
		(*n)++;
		i += len + 1;
	}
	return 0;
}

int btf_strings_adopt(struct btf_strings *s, const char *section, size_t size)
{
	s->size = 0;
	int rc = make_room(s, size);
	if (rc < 0 || !size)
		return rc;
	memcpy(s->p, section, size);
	s->size = size;
	size_t n = 0;
	return intern_section(s, s->p, size, s->start, &n);
}

int btf_strings_init(struct btf_strings *s, const struct cairn_btf *base)
{
	*s = (struct btf_strings){.base = base, .start = base ? btf_end_string(base) : 0};
	/* The eldest first: if two have the same string, its offset is that in the eldest. */
	const struct cairn_btf *next = NULL;
	for (const struct cairn_btf *done = NULL; base && done != base; done = next) {
		for (next = base; next->base != done; next = next->base)
			;
		int rc = intern_section(s, next->strings, next->strings_size, next->start_string,
					&s->n_of_base);
		if (rc < 0)
			return rc;
	}
	uint32_t empty;
	return base ? 0 : btf_strings_add(s, "", 0, &empty);
}

void btf_strings_fini(struct btf_strings *s)
{
	free(s->p);
	free(s->slots);
	*s = (struct btf_strings){0};
}

int btf_strings_add(struct btf_strings *s, const char *text, size_t len, uint32_t *ret)
{
	bool is_new;
	int rc = make_room(s, len + 1);
	if (rc < 0)
		return rc;
	/* Copied first: a new string is then in its place; the copy of a known one is dropped. */
	uint32_t off = s->start + (uint32_t)s->size;
	memcpy(s->p + s->size, text, len);
	s->p[s->size + len] = '\0';
	rc = intern(s, s->p + s->size, len, &off, &is_new);
	if (rc < 0)
		return rc;
	if (is_new)
		s->size += len + 1;
	*ret = off;
	return 0;
}
