/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sections made ready: their bytes decompressed and relocated
 *
 * A section goes through at most two stages on first use, file bytes -> decompressed -> relocated,
 * and each stage is skipped where it does nothing: a plain section of an executable is a pointer
 * into the mapping.
 *
 * Several threads may call it. Sections of one file are prepared in parallel, since decompressing
 * .debug_info takes a second per 250 MB and the others need not wait for it. For one section, the
 * first caller does the work and the others wait.
 */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>

#include "elf/compress.h"
#include "elf/guard.h"
#include "elf/relocate.h"
#include "elf/section_raw.h"

/* The section's bytes in a buffer of our own: decompressed, or a copy for relocation to change. */
static int own_bytes(const struct elf *e, size_t i, uint8_t **ret, uint64_t *ret_size,
		     struct cairn_err *err)
{
	if (section_is_compressed(e, i))
		return section_decompress(e, i, ret, ret_size, err);
	const uint8_t *raw;
	int r = section_raw(e, i, &raw, err);
	if (r < 0)
		return r;
	uint64_t size = e->sections[i].file_size;
	uint8_t *copy = malloc(size);
	if (!copy)
		return err_nomem(err, e->sections[i].file.name);
	memcpy(copy, raw, size);
	*ret = copy;
	*ret_size = size;
	return 0;
}

/* Bytes of a file with checksums, directly from the mapping; NULL of a section that has none. */
static int lend_bytes(struct elf *e, size_t i, struct cairn_err *err)
{
	struct section *s = &e->sections[i];
	const uint8_t *raw;
	int r = section_raw(e, i, &raw, err);
	if (r < 0)
		return r;
	s->ready = s->file;
	s->ready.data = s->ready.src.base = raw;
	atomic_store_explicit(&s->is_ready, true, memory_order_release);
	return 0;
}

/*
 * For a sidecar whose seal is missing, or which is older than seals, only its header can be read,
 * which has the version.
 */
static int check_sealed(const struct elf *e, size_t i, struct cairn_err *err)
{
	const char *name = e->sections[i].file.name;
	if (!e->lacks_checksums || !strcmp(name, SIDECAR_HEADER) || !strncmp(name, ".note", 5))
		return 0;
	return err_set(err, -EBADMSG,
		       "%s: %s: a sidecar without checksums: damaged, or made by an older version; "
		       "make it again with cairn sidecar",
		       e->path, name);
}

static int make_ready(struct elf *e, size_t i, struct cairn_err *err)
{
	struct section *s = &e->sections[i];
	uint8_t *bytes;
	uint64_t size;
	int r = check_sealed(e, i, err);
	if (r < 0)
		return r;
	if (!section_is_compressed(e, i) && (e->guard || !section_has_bytes(s)))
		return lend_bytes(e, i, err);
	r = own_bytes(e, i, &bytes, &size, err);
	if (r < 0)
		return r;
	if (section_needs_relocation(e, i) && (r = section_relocate(e, i, bytes, size, err)) < 0) {
		free(bytes);
		return r;
	}
	s->ready = s->file;
	s->ready.data = s->ready.src.base = bytes;
	s->ready.size = size;
	s->bytes = bytes;
	atomic_store_explicit(&s->is_ready, true, memory_order_release);
	return 0;
}

/* Returns true when the caller is to make it ready; false when another thread did. */
static bool begin_work(struct elf *e, struct section *s)
{
	pthread_mutex_lock(&e->lock);
	while (s->busy)
		pthread_cond_wait(&e->no_longer_busy, &e->lock);
	bool ours = !s->is_ready;
	s->busy = ours;
	pthread_mutex_unlock(&e->lock);
	return ours;
}

static void end_work(struct elf *e, struct section *s)
{
	pthread_mutex_lock(&e->lock);
	s->busy = false;
	pthread_cond_broadcast(&e->no_longer_busy);
	pthread_mutex_unlock(&e->lock);
}

static int section_ready(struct elf *e, size_t i, const struct elf_section **ret,
			 struct cairn_err *err)
{
	struct section *s = &e->sections[i];
	if (!atomic_load_explicit(&s->is_ready, memory_order_acquire)) {
		/* A failure is not kept: the next caller gets the error, too. */
		int r = 0;
		if (begin_work(e, s)) {
			r = make_ready(e, i, err);
			end_work(e, s);
		}
		if (r < 0)
			return r;
	}
	*ret = &s->ready;
	return 0;
}

void elf_section_unchecked(const struct elf *e, const char *name, struct elf_section *ret)
{
	*ret = (struct elf_section){0};
	for (size_t i = 1; e->guard && i < e->n_sections; i++) {
		const struct section *s = &e->sections[i];
		uint64_t off = s->file.foff.v, head = (uint64_t)(e->guard->pages - e->bytes);
		if (strcmp(s->file.name, name) || !section_has_bytes(s) ||
		    section_is_compressed(e, i))
			continue;
		if (off < head || off > e->size || s->file_size > e->size - off)
			continue;
		*ret = s->file;
		ret->data = ret->src.base = e->bytes + off;
		return;
	}
}

static bool name_matches(const char *have, const char *asked)
{
	if (!strcmp(have, asked))
		return true;
	return !strncmp(asked, ".debug_", 7) && !strncmp(have, ".zdebug_", 8) &&
	       !strcmp(have + 8, asked + 7);
}

/*
 * Among several sections of one name the best: with bytes, and then not of a COMDAT group. A .o
 * made with -fdebug-types-section has a .debug_info for each type, and these units come before the
 * main one.
 */
static int rank(const struct section *s)
{
	return section_has_bytes(s) ? (s->file.flags & SHF_GROUP ? 1 : 2) : 0;
}

int elf_section(struct elf *e, const char *name, const struct elf_section **ret,
		struct cairn_err *err)
{
	size_t best = 0;
	int best_rank = -1;
	for (size_t i = 1; i < e->n_sections; i++) {
		struct section *s = &e->sections[i];
		if (rank(s) <= best_rank || !name_matches(s->file.name, name))
			continue;
		best = i;
		best_rank = rank(s);
	}
	*ret = NULL;
	return best ? section_ready(e, best, ret, err) : 0;
}

int elf_section_bytes(struct elf *e, size_t i, const struct elf_section **ret,
		      struct cairn_err *err)
{
	if (i >= e->n_sections)
		return err_set(err, -EINVAL, "%s: no section %zu; there are %zu", e->path, i,
			       e->n_sections);
	return section_ready(e, i, ret, err);
}
