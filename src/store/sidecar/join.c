/* SPDX-License-Identifier: BSD-2-Clause */
#include "sidecar/join.h"

#include <errno.h>
#include <stdlib.h>

/* ---- numbers ---- */

/* A difference of two, folded, plus one, has 32 bits. */
enum { FRAMES_MAX = 1 << 30 };

static int number_files(struct joined *j, const struct unit_facts *f, struct unit_numbers *n)
{
	n->file = calloc(f->files.n + 1, sizeof(*n->file));
	if (!n->file)
		return -ENOMEM;
	int rc = 0;
	for (size_t i = 0; rc >= 0 && i < f->files.n; i++)
		rc = file_table_add(&j->files, j->strings, f->files.p[i], &n->file[i]);
	return rc;
}

static int number_function(struct joined *j, const struct unit_function *f,
			   const struct unit_numbers *n, uint32_t *ret)
{
	struct function_entry p = {.file = n->file[f->file], .line = f->line};
	int rc = strings_add(j->strings, f->name, &p.name);
	if (rc >= 0)
		rc = strings_add(j->strings, f->linkage, &p.linkage);
	/* C++'s extern "C" functions have both, and alike. */
	if (p.linkage == p.name)
		p.linkage = 0;
	return rc < 0 ? rc : function_table_add(&j->functions, &p, ret);
}

static int number_functions(struct joined *j, const struct unit_facts *f, struct unit_numbers *n)
{
	n->function = calloc(f->functions.n + 1, sizeof(*n->function));
	if (!n->function)
		return -ENOMEM;
	int rc = 0;
	for (size_t i = 0; rc >= 0 && i < f->frames.n; i++) {
		uint32_t local = f->frames.p[i].function;
		if (local == NO_FUNCTION)
			continue;
		if (!n->function[local])
			rc = number_function(j, &f->functions.p[local], n, &n->function[local]);
		j->functions.ranking.uses.p[n->function[local]]++;
	}
	return rc;
}

/*
 * Counts how often each file will be named: by rows that follow a row of another file, and by
 * calls.
 */
static void count_files(struct joined *j, const struct unit_facts *f, const struct unit_numbers *n)
{
	for (size_t i = 0; i < f->rows.n; i++)
		if (!i || f->rows.p[i - 1].file != f->rows.p[i].file)
			j->files.ranking.uses.p[n->file[f->rows.p[i].file]]++;
	for (size_t i = 0; i < f->frames.n; i++)
		j->files.ranking.uses.p[n->file[f->frames.p[i].call_file]]++;
}

static int number_unit(struct joined *j, size_t unit)
{
	const struct unit_facts *f = &j->units[unit];
	struct unit_numbers *n = &j->numbers[unit];
	if (f->frames.n >= FRAMES_MAX - j->n_frames)
		return -ERANGE;
	n->first_frame = j->n_frames;
	j->n_frames += (uint32_t)f->frames.n;
	int rc = number_files(j, f, n);
	if (rc >= 0)
		rc = number_functions(j, f, n);
	if (rc >= 0)
		count_files(j, f, n);
	return rc;
}

/* ---- order ---- */

static int by_start(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;
	if (x->piece.lo != y->piece.lo)
		return x->piece.lo < y->piece.lo ? -1 : 1;
	if (x->unit != y->unit)
		return x->unit < y->unit ? -1 : 1;
	return x->piece.from < y->piece.from ? -1 : x->piece.from > y->piece.from;
}

static int site_pieces(struct joined *j)
{
	for (uint32_t u = 0; u < j->n_units; u++) {
		const struct unit_facts *f = &j->units[u];
		for (size_t i = 0; i < f->code.n; i++)
			if (!VEC_ADD(&j->code, ((struct placed){u, f->code.p[i]})))
				return -ENOMEM;
		for (size_t i = 0; i < f->lines.n; i++)
			if (!VEC_ADD(&j->lines, ((struct placed){u, f->lines.p[i]})))
				return -ENOMEM;
	}
	if (j->code.n)
		qsort(j->code.p, j->code.n, sizeof(*j->code.p), by_start);
	if (j->lines.n)
		qsort(j->lines.p, j->lines.n, sizeof(*j->lines.p), by_start);
	return 0;
}

static void count_overlaps(struct joined *j)
{
	uint32_t end = 0, lo;
	for (size_t i = 0; i < j->code.n; i++)
		if (!next_piece(&j->code.p[i].piece, &end, &lo))
			j->n_overlaps++;
}

static int join(struct joined *j)
{
	uint32_t none;
	int rc = j->numbers ? 0 : -ENOMEM;
	if (rc >= 0)
		rc = file_table_add(&j->files, j->strings, NULL, &none);
	if (rc >= 0)
		rc = function_table_add(&j->functions, &(struct function_entry){0}, &none);
	for (size_t i = 0; rc >= 0 && i < j->n_units; i++)
		rc = number_unit(j, i);
	if (rc >= 0)
		rc = ranking_make(&j->files.ranking);
	if (rc >= 0)
		rc = ranking_make(&j->functions.ranking);
	return rc < 0 ? rc : site_pieces(j);
}

int join_units(const struct unit_facts *units, size_t n, struct strings *strings,
	       struct joined *ret, struct cairn_err *err)
{
	*ret = (struct joined){.units = units, .n_units = n, .strings = strings};
	ret->numbers = calloc(n + 1, sizeof(*ret->numbers));
	int rc = join(ret);
	count_overlaps(ret);
	if (rc == -ERANGE)
		return err_set(err, rc, "more strings or inlined copies than 32 bits number");
	return rc < 0 ? err_nomem(err, "the functions of all units") : 0;
}

void joined_fini(struct joined *j)
{
	for (size_t i = 0; j->numbers && i < j->n_units; i++) {
		free(j->numbers[i].file);
		free(j->numbers[i].function);
	}
	free(j->numbers);
	file_table_fini(&j->files);
	function_table_fini(&j->functions);
	VEC_FREE(&j->code);
	VEC_FREE(&j->lines);
}
