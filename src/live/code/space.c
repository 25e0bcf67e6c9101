/* SPDX-License-Identifier: BSD-2-Clause */
#include "code/space.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

/*
 * An image by the kernel's identity of the file: device and inode; the vDSO has neither, and its
 * address counts.
 */
struct image {
	struct code_image image;
	struct cfi *cfi; /* of code_space_fde(), after its first use and if it can be read */
	bool has_tried_cfi;
	dev_t dev;
	ino_t ino;
	uint64_t lo;
	char *path;
	uint8_t *bin_bytes, *table_bytes;
	struct cairn_sidecar *refused; /* a sidecar of other code: rows of it may be in use */
	bool has_tried_table;
};

struct code_space {
	struct code_maps maps;
	struct code_source source;
	struct code_sidecars sidecars;
	VEC(struct image *) images;
};

int code_space_new(struct code_maps *maps, const struct code_source *source,
		   struct code_space **ret, struct cairn_err *err)
{
	struct code_space *space = calloc(1, sizeof(*space));
	if (!space) {
		code_maps_fini(maps);
		return err_nomem(err, "the code of a process");
	}
	space->maps = *maps;
	space->source = *source;
	*ret = space;
	return 0;
}

static void image_free(struct image *i)
{
	cfi_close(i->cfi);
	cairn_binary_close(i->image.bin);
	free(i->bin_bytes);
	unwind_table_fini(&i->image.table);
	cairn_sidecar_close(i->image.sidecar);
	cairn_sidecar_close(i->refused);
	free(i->table_bytes);
	free(i->path);
	free(i);
}

void code_space_free(struct code_space *space)
{
	if (!space)
		return;
	for (size_t i = 0; i < space->images.n; i++)
		image_free(space->images.p[i]);
	VEC_FREE(&space->images);
	code_maps_fini(&space->maps);
	free(space);
}

void code_space_use_sidecars(struct code_space *space, const struct code_sidecars *sidecars)
{
	space->sidecars = *sidecars;
}

void code_space_remap(struct code_space *space, struct code_maps *maps)
{
	code_maps_fini(&space->maps);
	space->maps = *maps;
}

const struct code_maps *code_space_maps(const struct code_space *space)
{
	return &space->maps;
}

/* ---- images ---- */

static bool is_image_of(const struct image *i, const struct code_mapping *m)
{
	return m->ino ? i->dev == m->dev && i->ino == m->ino : !i->ino && i->lo == m->lo;
}

/* The table of the sidecar, in place. 1; 0 when there is none, or a damaged one; -ENOMEM. */
static int find_table(const struct code_sidecars *sidecars, struct image *i)
{
	struct cairn_err err = {0};
	size_t size;
	bool is_wanted = sidecars->find && i->ino && !i->image.sidecar && !i->refused;
	int rc = is_wanted ? sidecars->find(sidecars->ctx, i->image.bin, &i->image.sidecar, &err)
			   : 0;
	const void *bytes = i->image.sidecar
				    ? cairn_sidecar_section(i->image.sidecar, ".cairn.cfi", &size)
				    : NULL;
	if (rc == -ENOMEM || !bytes)
		return rc == -ENOMEM ? rc : 0;
	rc = unwind_table_open_unread(bytes, size, cairn_sidecar_path(i->image.sidecar),
				      ".cairn.cfi", &i->image.table, &err);
	return rc == 0;
}

/* Only -ENOMEM is an error: a file that cannot be read leaves a hole with a note. */
static int make_table(struct image *i, unsigned int threads)
{
	struct cairn_err err = {0};
	struct cfi *cfi = NULL;
	size_t size;
	int rc = cfi_open(i->image.bin, &cfi, &err);
	bool is_empty = rc == 0 && !cfi_n_fdes(cfi);
	if (rc == 0)
		rc = unwind_table_build(cfi, UNWIND_PROVED, threads, &i->table_bytes, &size, &err);
	if (rc == 0)
		rc = unwind_table_open(i->table_bytes, size, i->path, "unwind table",
				       &i->image.table, &err);
	if (rc == 0)
		rc = unwind_table_index(&i->image.table);
	/* Go programs have rows without call frame information. */
	if (rc == 0 && is_empty && !i->image.table.n_rows)
		rc = err_set(&err, -ENODATA, "it has no call frame information");
	cfi_close(cfi);
	if (rc == -ENOMEM) {
		/* The next caller tries again. */
		unwind_table_fini(&i->image.table);
		i->image.table = (struct unwind_table){0};
		free(i->table_bytes);
		i->table_bytes = NULL;
	} else if (rc < 0) {
		snprintf(i->image.note, sizeof(i->image.note), "%s", err.msg);
	}
	i->has_tried_table = rc != -ENOMEM;
	return rc == -ENOMEM ? rc : 0;
}

static int get_table(const struct code_space *space, struct image *i)
{
	int rc = find_table(&space->sidecars, i);
	if (rc == 1)
		i->has_tried_table = true;
	return rc ? (rc < 0 ? rc : 0) : make_table(i, space->source.threads);
}

/* A sidecar of other code than the mapped one is not used; the file's own rows are. */
static int refuse_sidecar(const struct code_space *space, struct image *i)
{
	i->refused = i->image.sidecar;
	i->image.sidecar = NULL;
	if (i->table_bytes)
		return 0;
	unwind_table_fini(&i->image.table);
	i->image.table = (struct unwind_table){0};
	return make_table(i, space->source.threads);
}

static int open_image(const struct code_space *space, const struct code_mapping *m, struct image *i)
{
	struct cairn_err err = {0};
	i->dev = m->dev;
	i->ino = m->ino;
	i->lo = m->lo;
	i->path = strdup(m->path);
	if (!i->path)
		return -ENOMEM;
	i->image.path = i->path;
	int rc = space->source.open(space->source.ctx, m, &i->image.bin, &i->bin_bytes, &err);
	if (!i->image.bin)
		snprintf(i->image.note, sizeof(i->image.note), "%s", err.msg);
	return rc;
}

static int image_of(struct code_space *space, const struct code_mapping *m, struct image **ret)
{
	for (size_t i = 0; i < space->images.n; i++)
		if (is_image_of(space->images.p[i], m)) {
			*ret = space->images.p[i];
			return 0;
		}
	struct image *i = calloc(1, sizeof(*i));
	int rc = i ? open_image(space, m, i) : -ENOMEM;
	if (rc == 0 && !VEC_ADD(&space->images, i))
		rc = -ENOMEM;
	if (rc < 0 && i)
		image_free(i);
	*ret = rc < 0 ? NULL : i;
	return rc;
}

static int find(struct code_space *space, struct cairn_addr at, struct image **ret,
		struct cairn_vaddr *ret_at)
{
	const struct code_mapping *m = code_maps_find(&space->maps, at.v);
	*ret = NULL;
	if (!m || (m->path[0] != '/' && strcmp(m->path, "[vdso]") != 0))
		return 0;
	int rc = image_of(space, m, ret);
	if (rc == 0 && (*ret)->image.bin &&
	    !cairn_binary_vaddr((*ret)->image.bin, (struct cairn_foff){at.v - m->lo + m->off},
				ret_at))
		*ret = NULL;
	return rc;
}

int code_space_peek(struct code_space *space, struct cairn_addr at,
		    const struct code_image **ret_image, struct cairn_vaddr *ret_at,
		    struct cairn_err *err)
{
	struct image *i;
	int rc = find(space, at, &i, ret_at);
	*ret_image = rc == 0 && i ? &i->image : NULL;
	return rc < 0 ? err_nomem(err, "the code of a process") : 0;
}

int code_space_find(struct code_space *space, struct cairn_addr at,
		    const struct code_image **ret_image, struct cairn_vaddr *ret_at,
		    struct cairn_err *err)
{
	struct image *i;
	int rc = find(space, at, &i, ret_at);
	if (rc == 0 && i && i->image.bin && !i->has_tried_table)
		rc = get_table(space, i);
	if (rc == 0 && i && i->image.sidecar && !cairn_sidecar_covers(i->image.sidecar, *ret_at))
		rc = refuse_sidecar(space, i);
	*ret_image = rc == 0 && i ? &i->image : NULL;
	return rc < 0 ? err_nomem(err, "the code of a process") : 0;
}

int code_space_fde(struct code_space *space, struct cairn_addr at, struct cairn_vaddr *ret_lo,
		   struct cairn_vaddr *ret_hi, struct cairn_err *err)
{
	struct cairn_vaddr vaddr;
	struct image *i;
	int rc = find(space, at, &i, &vaddr);
	if (rc < 0 || !i || !i->image.bin)
		return rc;
	if (!i->has_tried_cfi && cfi_open(i->image.bin, &i->cfi, err) == -ENOMEM)
		return -ENOMEM;
	i->has_tried_cfi = true;
	return i->cfi && cfi_fde_at(i->cfi, vaddr, ret_lo, ret_hi);
}
