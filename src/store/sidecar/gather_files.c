/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths of a unit, each once. */
#include "sidecar/gather.h"

#include <errno.h>

/* More files than any unit names; a larger number is damage. */
enum { FILE_NUMBER_MAX = 1 << 20 };

static uint32_t add_file(struct gatherer *g, const struct dw_unit *u, uint64_t file, int *rc)
{
	const char *path = dw_unit_file(u, file);
	if (!path)
		return NO_FILE;
	uint32_t number = (uint32_t)g->to->files.n;
	if (!VEC_ADD(&g->to->files, path))
		*rc = -ENOMEM;
	return number;
}

uint32_t gather_file(struct gatherer *g, const struct dw_unit *u, uint64_t file, int *rc)
{
	/* A declaration in another unit: rare, so the path may stand twice among ours. */
	if (u != g->unit)
		return add_file(g, u, file, rc);
	if (file >= FILE_NUMBER_MAX)
		return NO_FILE;
	while (g->file_of.n <= file)
		if (!VEC_ADD(&g->file_of, 0)) {
			*rc = -ENOMEM;
			return NO_FILE;
		}
	if (!g->file_of.p[file])
		g->file_of.p[file] = add_file(g, u, file, rc) + 1;
	return g->file_of.p[file] - 1;
}
